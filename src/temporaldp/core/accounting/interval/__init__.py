"""Accounting method: a bound for every matrix of a set."""
