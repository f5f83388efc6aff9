"""Accounting method: the paper's bound."""
