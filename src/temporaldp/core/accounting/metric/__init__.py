"""Accounting method: leakage pair by pair, for metric privacy."""
