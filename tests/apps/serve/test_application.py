"""What every answer has in common."""

from __future__ import annotations

import pytest

from served import served
from temporaldp.apps.serve import bodies


@pytest.fixture(scope="module")
def ask():
    with served() as asking:
        yield asking


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/style.css", "/openapi.json", "/health", "/ready"])
def test_responses_load_nothing_external(ask, path):
    found = ask.get(path)
    assert found.status == 200
    assert found.headers["content-security-policy"].startswith("default-src 'self'")
    assert "http://" not in found.text and "https://" not in found.text and "//cdn" not in found.text


def test_more_bodies_than_the_server_holds_are_refused_for_now(ask, monkeypatch):
    monkeypatch.setattr(bodies, "MOST_IN_FLIGHT", 10)
    found = ask.post("/v1/view/plan", {"alpha": [1.0] * 20})
    assert found.status == 429 and "nothing was done" in found.text
    assert (found.headers["retry-after"], found.headers["connection"]) == ("1", "close")
