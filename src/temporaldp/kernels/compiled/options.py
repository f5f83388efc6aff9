"""Former place of `temporaldp.kernels.compilation`, for kernels that still import from here."""

from temporaldp.kernels.compilation import Kernel, kernel, summing_kernel

compiled = Kernel

__all__ = ["compiled", "kernel", "summing_kernel"]
