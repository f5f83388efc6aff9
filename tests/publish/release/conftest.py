"""Places for ledgers: a file, and a database on a real server."""

from __future__ import annotations

import uuid

import pytest

import postgres


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def place(request, tmp_path):
    """Where a ledger can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "release.db")
    url = request.getfixturevalue("postgres_server")
    return postgres.create_database(url, f"ledger_{uuid.uuid4().hex}")
