"""What every answer has in common."""

from __future__ import annotations

import pytest

from served import served


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
