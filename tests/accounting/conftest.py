"""Every test in this folder runs with machine code, and with NumPy alone if it is in `make test-slow`."""

from kernels import compiled_kernels

__all__ = ["compiled_kernels"]
