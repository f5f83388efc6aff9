"""A switch for the number of threads."""

from __future__ import annotations

import contextlib
import os


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
