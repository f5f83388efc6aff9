"""Where the tests of the service keep their releases."""

from __future__ import annotations

import pytest

from serve_places import place_of


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def store(request, tmp_path):
    """Where a service can keep its releases."""
    return place_of(request.param, tmp_path, request)
