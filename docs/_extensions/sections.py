"""What a docstring says of a document, "docs/theory.md, section 10", becomes a link to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

PLACE = re.compile(r"`?docs/([\w/-]+)\.md`?(?:, section (\d+))?")


def anchors(folder: Path) -> dict[str, str]:
    """The anchor of each numbered section of the theory."""
    headings = re.findall(r"^## ((\d+)\. .*)$", (folder / "theory.md").read_text(encoding="utf-8"), re.MULTILINE)
    return {number: re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title, number in headings}


def setup(app: Sphinx) -> dict[str, Any]:
    """Have every docstring read before it is set."""
    found = anchors(Path(app.srcdir))

    def linked(place: re.Match[str]) -> str:
        page, section = place[1], place[2]
        if not (Path(app.srcdir) / f"{page}.md").exists():
            raise LookupError(f"a docstring names docs/{page}.md, which there is not")
        if page == "theory" and section:
            return f"`theory, section {section} <../theory.html#{found[section]}>`__"
        return f":doc:`/{page}`" + (f", section {section}" if section else "")

    def read(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
        lines[:] = PLACE.sub(linked, "\n".join(lines)).split("\n")

    app.connect("autodoc-process-docstring", read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
