"""Every test in this folder runs with both kernels."""

from kernels import kernels

__all__ = ["kernels"]
