"""Accounting method: the exact leakage of the definitions."""
