"""Libraries that only a part of the package needs: an extra of the package each, and an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from temporaldp.errors import MissingExtraError

EXTRAS = {
    "tables": "traces in files and data frames",
    "pandas": "results as pandas data frames",
    "polars": "results as Polars data frames",
    "release": "the noise of a release",
    "ledger": "a ledger",
    "report": "pictures and reports",
    "deployment": "records of deployments",
    "cli": "the command line",
    "serve": "the service and its page",
    "postgresql": "a ledger in PostgreSQL",
    "spark": "traces on a cluster",
    "dp-accounting": "an event of dp-accounting",
    "diffprivlib": "an adapter for diffprivlib",
}
"""The extras that pyproject.toml declares, and what each is for."""


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Import inside what this extra installs.

    Raises
    ------
    MissingExtraError
        It is not there, or cannot be loaded.
    """
    try:
        yield
    except MissingExtraError:  # said already, by what was imported
        raise
    except ImportError as error:
        raise MissingExtraError(extra, EXTRAS[extra], str(error)) from error
