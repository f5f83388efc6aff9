"""Accounting method: Markov quilts, for mechanisms whose noise may be shared between steps."""
