"""docs/measured/published-systems.md is generated from the records, and states its limits before its first number."""

from __future__ import annotations

import importlib.util

import pytest

from places import REPOSITORY, shared_folder

PAGE = REPOSITORY / "docs" / "measured" / "published-systems.md"


@pytest.mark.long
def test_page_is_up_to_date():
    folder = shared_folder() / "deployments"
    if not folder.is_dir():
        pytest.skip(f"no records at {folder}; set TEMPORALDP_SHARED")
    place = importlib.util.spec_from_file_location("deployments", REPOSITORY / "benchmarks" / "deployments.py")
    script = importlib.util.module_from_spec(place)
    import sys

    sys.modules["deployments"] = script
    try:
        place.loader.exec_module(script)
        assert script.document(folder) == PAGE.read_text(), "run make bench NAME=deployments"
    finally:
        del sys.modules["deployments"]


def test_the_page_states_its_limits_first_and_has_every_case():
    text = PAGE.read_text()
    assert text.index("Limits first") < text.index("do not show") < text.index("| record |") < text.index("| case |")
    for title in (
        "count of people at work",
        "Movement Range Maps",
        "current pageviews",
        "historical pageviews",
        "Symptoms",
    ):
        assert f"{title}\n" in text
        assert f"{title} | " in text
    assert text.count("Origin of the options: ") == 7
    assert text.count("\nAssumptions: ") == 3
    assert "Suggested message to a publisher" in text
