"""Places for ledgers: a file, and a database on a real server."""

from __future__ import annotations

import pytest

from postgres import place_of


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def place(request, tmp_path):
    """Where a ledger can be made."""
    return place_of(request.param, tmp_path, request)
