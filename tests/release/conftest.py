"""Places for ledgers: a file, and a database on a real server."""

from __future__ import annotations

import uuid

import pytest

import postgres


@pytest.fixture(scope="session")
def postgres_server():
    """A server that these tests started, or a reason why there is none."""
    pytest.importorskip("psycopg", reason="PostgreSQL's driver is not installed")
    if postgres.programs() is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: postgresql)")
    with postgres.server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a ledger can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "release.db")
    url = request.getfixturevalue("postgres_server")
    return postgres.create_database(url, f"ledger_{uuid.uuid4().hex}")
