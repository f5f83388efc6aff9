"""The documentation stays short, and neither it nor the code uses the terms that CONTRIBUTING.md discourages."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from places import REPOSITORY

DOCS = REPOSITORY / "docs"
SOURCE = REPOSITORY / "src" / "temporaldp"

GENERATED = {"reference.md", "command-line.md", "project-file.md"}
"""Lists of names, options and keys: they are not counted."""

TOTAL = 41_600
"""Words of all pages."""

PAGES = 14_900
"""Words of the pages other than those of `REWRITTEN_ELSEWHERE`."""

REWRITTEN_ELSEWHERE = {"architecture.md", "promises.md", "how-to/smoothing.md", "topics/correlated-noise.md"} | {
    path.relative_to(DOCS).as_posix() for folder in ("measured", "theory") for path in (DOCS / folder).glob("*.md")
}
"""The theory, the measured pages, the promises and the architecture."""


def pages():
    return sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts and path.name not in GENERATED)


def words(paths):
    """Words of these pages, without directives such as tabs: what has a letter or a digit, so no bars of tables."""
    lines = (line for path in paths for line in path.read_text(encoding="utf-8").splitlines())
    return sum(bool(re.search(r"\w", word)) for line in lines if not line.startswith(":") for word in line.split())


def test_the_documentation_is_short():
    written = [path for path in pages() if str(path.relative_to(DOCS)) not in REWRITTEN_ELSEWHERE]
    assert words(written) <= PAGES
    assert words(pages()) <= TOTAL


@functools.cache
def discouraged():
    """The terms in the first column of the table in CONTRIBUTING.md, as one pattern; a name joins words by underscores."""
    table = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Terms to avoid")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    terms = [term for cell in cells for term in re.findall(r"`(.*?)`", cell)]
    assert len(terms) > 10
    return re.compile(r"\b(" + "|".join(term.replace(" ", r"[\s_]+") for term in terms) + r")\b", re.IGNORECASE)


def prose(page):
    """A page without its code and its links."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$|`[^`]*`|\]\([^)]*\)", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *pages()], ids=lambda path: str(path.relative_to(REPOSITORY))
)
def test_a_page_uses_none_of_the_discouraged_terms(page):
    assert not discouraged().findall(prose(page))


def texts(module):
    """Docstrings, messages and names of a module."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name | ast.Attribute):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def as_words(text):
    """A name such as `for_ever` or `EndlessPlan` as words; other texts as they are."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).replace("_", " ") if text.isidentifier() else text


@pytest.mark.parametrize("module", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_uses_none_of_the_discouraged_terms(module: Path):
    found = [term for text in texts(module) for term in discouraged().findall(as_words(text))]
    assert not found
