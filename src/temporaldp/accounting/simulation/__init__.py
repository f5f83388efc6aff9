"""Confidence bounds of the leakage at a delta, by simulation of releases."""
