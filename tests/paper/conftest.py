"""All claims and all figures but the timed one, computed once a session for the tests that read them."""

from __future__ import annotations

import pytest

from temporaldp.paper import EXHIBITS, check_claims, exhibit
from temporaldp.paper.claims import STATEMENTS


@pytest.fixture(scope="session")
def exhibits():
    return {key: exhibit(key) for key in EXHIBITS if key != "5"}


@pytest.fixture(scope="session")
def claims():
    """What does not depend on the machine."""
    lasting = [statement.identifier for statement in STATEMENTS if not statement.measured]
    return {claim.identifier: claim for claim in check_claims(lasting)}
