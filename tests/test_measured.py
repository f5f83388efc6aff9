"""docs/measured is generated from benchmarks/recorded; each table has the command, commit and machine of its measurement."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from places import REPOSITORY

PAGES = ("counts", "speed", "tightness")
RECORDED = sorted((REPOSITORY / "benchmarks" / "recorded").glob("*.md"))


def test_pages_agree_with_the_recorded_measurements(tmp_path):
    subprocess.run([sys.executable, REPOSITORY / "benchmarks" / "pages.py", tmp_path], check=True)
    for name in PAGES:
        page = REPOSITORY / "docs" / "measured" / f"{name}.md"
        assert page.read_text() == (tmp_path / f"{name}.md").read_text(), "run make bench NAME=pages"


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_measurement_has_its_command_commit_date_and_machine(path):
    commit = "[0-9a-f]{7,}(?: and [0-9a-f]{7,})*"
    date = r"\d{4}-\d\d-\d\d(?: and \d{4}-\d\d-\d\d)*"
    first = path.read_text().partition("\n")[0]
    found = re.fullmatch(rf"<!-- (`make .+`); commit {commit}, {date}; .*cores.*Python.* -->", first)
    assert found, first
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)[^`]*`", found[1])) <= targets


def test_the_measured_pages_are_short():
    folder = REPOSITORY / "docs" / "measured"
    assert sum(len(path.read_text().split()) for path in folder.glob("*.md")) <= 9000
