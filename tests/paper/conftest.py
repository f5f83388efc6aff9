"""All claims, and figures, computed once a session for the tests that read them."""

from __future__ import annotations

import pytest

from temporaldp.paper import check_claims, exhibit
from temporaldp.paper.claims import STATEMENTS


class Exhibits(dict):
    """By their names; each is computed when it is first asked for."""

    def __missing__(self, key):
        return self.setdefault(key, exhibit(key))


@pytest.fixture(scope="session")
def exhibits():
    return Exhibits()


@pytest.fixture(scope="session")
def claims():
    """What does not depend on the machine."""
    lasting = [statement.identifier for statement in STATEMENTS if not statement.measured]
    return {claim.identifier: claim for claim in check_claims(lasting)}
