"""Where things lie: this repository, and the data sets."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def shared_folder() -> Path:
    """Where the data sets lie: beside the checkout unless the environment says otherwise."""
    return Path(os.environ.get("TEMPORALDP_SHARED", REPOSITORY.parent / "shared"))
