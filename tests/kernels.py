"""A switch for the number of threads, and fixtures of the time when there were two forms of each kernel."""

from __future__ import annotations

import contextlib
import os

import pytest


@contextlib.contextmanager
def using_threads(threads):
    """Within the block, kernels run on this many threads."""
    before = os.environ.get("TEMPORALDP_THREADS")
    os.environ["TEMPORALDP_THREADS"] = str(threads)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TEMPORALDP_THREADS"]
        else:
            os.environ["TEMPORALDP_THREADS"] = before


@contextlib.contextmanager
def using(kernels, threads=None):
    """Former switch between forms of the kernels; only the number of threads counts."""
    with contextlib.nullcontext() if threads is None else using_threads(threads):
        yield


@pytest.fixture(name="kernels")
def kernels():
    """The only form of the kernels."""
    return "numba"


compiled_kernels = kernels
