"""Both kernels: a fixture for whole folders of tests, and a switch within one."""

from __future__ import annotations

import contextlib
import os

import pytest

KERNELS = ("numba", "numpy")


@contextlib.contextmanager
def using(kernels: str, threads: int | None = None):
    """Within the block, these kernels compute, on this many threads."""
    asked = {"TEMPORALDP_KERNELS": kernels, "TEMPORALDP_THREADS": None if threads is None else str(threads)}
    before = {name: os.environ.get(name) for name in asked}
    for name, value in asked.items():
        _put(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            _put(name, value)


def _put(name, value):
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _used(request):
    with using(request.param):
        yield request.param


kernels = pytest.fixture(_used, autouse=True, scope="module", params=KERNELS, name="kernels")
"""Every test of a folder or module that imports this runs with both kernels."""

compiled_kernels = pytest.fixture(
    _used, autouse=True, scope="module", params=["numba", pytest.param("numpy", marks=pytest.mark.slow)], name="kernels"
)
"""Every test of a folder that imports this runs with machine code; with NumPy alone in `make test-slow`."""
