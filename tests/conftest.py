"""What all tests share: the reference numbers, the data sets, and random matrices."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import postgres
from places import REPOSITORY, shared_folder

# The same cases on every machine, so that a change is judged by the change. `make test-slow` takes more of them, and
# `make test-slow NAME=random` looks for new ones.
settings.register_profile(
    "same", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, max_examples=20
)
settings.register_profile("deep", settings.get_profile("same"), max_examples=200)
settings.register_profile(
    "random", settings.get_profile("same"), derandomize=False, print_blob=True, max_examples=1_000
)
settings.load_profile("same")


os.environ.setdefault("TEMPORALDP_KEY_FILE", str(Path(tempfile.mkdtemp(prefix="temporaldp-key-")) / "key"))


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """Numbers that other people's implementations printed; each entry says whose."""
    return json.loads((REPOSITORY / "tests" / "support" / "reference_values.json").read_text())


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The real data sets."""
    path = shared_folder() / "data"
    if not path.is_dir():
        pytest.skip(f"no data sets at {path}; set TEMPORALDP_SHARED")
    return path


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator with a fixed seed."""
    return np.random.default_rng(20170501)


@pytest.fixture(scope="session")
def postgres_server():
    """A server that these tests started, or a reason why there is none."""
    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not installed")
    if postgres.programs() is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    with postgres.server() as url:
        yield url
