"""Accounting method: privacy curves, for approximate DP."""
