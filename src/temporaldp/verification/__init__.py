"""Confidence bounds of the leakage at a delta, by simulated releases."""

from temporaldp.verification.leakage import OwnLeakage, VerifiedLeakage, own_leakage, verify_leakage

__all__ = ["OwnLeakage", "VerifiedLeakage", "own_leakage", "verify_leakage"]
