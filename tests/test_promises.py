"""docs/promises.md and SECURITY.md: every test and section that is named exists; a promise has a test and an oracle."""

from __future__ import annotations

import ast
import functools
import re

import pytest

from places import REPOSITORY

DOCUMENT = REPOSITORY / "docs" / "promises.md"


def promises():
    """The four cells of each row below the heads of the tables."""
    rows = [line.strip().strip("|").split("|") for line in DOCUMENT.read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows]
    return [row for row in cells if row[0] not in {"promise", "---"}]


def anchors(document):
    """What a link may name after ``#``: headings in lower case, without punctuation, with hyphens."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@functools.cache
def functions(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_promise_has_a_test_and_an_oracle():
    rows = promises()
    assert len(rows) > 40
    for row in rows:
        assert len(row) == 4, row
        promise, _, oracle, tests = row
        assert promise.endswith("."), promise
        assert "::" in tests and oracle, promise


NAMED = re.findall(r"`(tests/[\w/]+\.py::\w+)`", DOCUMENT.read_text() + (REPOSITORY / "SECURITY.md").read_text())


@pytest.mark.parametrize("named", sorted(set(NAMED)))
def test_named_test_exists(named):
    path, _, function = named.partition("::")
    assert function in functions(REPOSITORY / path)


def test_named_section_exists():
    for file, anchor in re.findall(r"\]\(([\w./-]+\.md)#([^)]+)\)", DOCUMENT.read_text()):
        assert anchor in anchors(DOCUMENT.parent / file), f"{file}#{anchor}"
