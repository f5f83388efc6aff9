"""Optional extras: imports that fail with an error that names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from temporaldp.base.errors import MissingExtraError

EXTRAS = {
    "tables": "traces in files and data frames",
    "pandas": "results as pandas data frames",
    "polars": "results as Polars data frames",
    "release": "the noise of a release",
    "ledger": "a ledger",
    "report": "pictures and reports",
    "deployment": "records of deployments",
    "cli": "the command line",
    "client": "a client of the service",
    "serve": "the service and its page",
    "postgresql": "a ledger in PostgreSQL",
    "spark": "traces on a cluster",
    "dp-accounting": "an event of dp-accounting",
    "diffprivlib": "an adapter for diffprivlib",
}
"""Extras declared in pyproject.toml, with the part of the package that needs each."""


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Guard the imports of libraries that this extra installs.

    Raises
    ------
    MissingExtraError
        A library is not installed or cannot be loaded.
    """
    try:
        yield
    except MissingExtraError:  # raised by an inner import
        raise
    except ImportError as error:
        raise MissingExtraError(extra, EXTRAS[extra], str(error)) from error
