"""All claims, and figures, computed once a session for the tests that read them."""

from __future__ import annotations

import pytest

from reproduction import EXHIBITS, STATEMENTS


class Exhibits(dict):
    """By their names; each is computed when it is first asked for."""

    def __missing__(self, key):
        return self.setdefault(key, EXHIBITS[key].compute())


@pytest.fixture(scope="session")
def exhibits():
    return Exhibits()


@pytest.fixture(scope="session")
def claims():
    """What does not depend on the machine."""
    return {name: statement.examine() for name, statement in STATEMENTS.items() if not statement.measured}
