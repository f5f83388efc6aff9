"""Cross-references of docstrings to documents: "Theory, section 10" and "docs/how-to/alpha.md" become links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PAGE = re.compile(r"`?docs/([\w/-]+)\.md`?")
SECTIONS = re.compile(r"Theory, sections? (\d+)(?: and (\d+))?")


def anchors(folder: Path) -> dict[str, str]:
    """Return the page and the anchor of each numbered section of the theory."""
    found = {}
    for chapter in sorted((folder / "theory").glob("*.md")):
        for title, number in re.findall(r"^## ((\d+)\. .*)$", chapter.read_text(encoding="utf-8"), re.MULTILINE):
            anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            if number in found:
                raise LookupError(f"section {number} of the theory is in {found[number]} and in {chapter.name}")
            found[number] = f"{chapter.stem}.html#{anchor}"
    return found


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the conversion of docstrings."""
    found = anchors(Path(app.srcdir))

    def section(citation: re.Match[str]) -> str:
        links = [f"`{number} <../theory/{found[number]}>`__" for number in citation.groups() if number]
        return f"Theory, section {' and '.join(links)}"

    def page(citation: re.Match[str]) -> str:
        if not (Path(app.srcdir) / f"{citation[1]}.md").exists():
            raise LookupError(f"a docstring cites docs/{citation[1]}.md, which does not exist")
        return f":doc:`/{citation[1]}`"

    def read(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
        lines[:] = SECTIONS.sub(section, PAGE.sub(page, "\n".join(lines))).split("\n")

    app.connect("autodoc-process-docstring", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
