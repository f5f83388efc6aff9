"""Cells of tables that hold a number stay on one line: no browser may break "90.2 s", or "4e-13" after its e."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NUMBER = re.compile(r"[~<+−-]?\d[\d.,]*(e[+-]?\d+)?( ?(%|ns|us|ms|s|min|h|KiB|MiB|GiB))?")


class ShortCells(SphinxTransform):
    """Gives such cells a class, for the style sheet."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Look at every cell."""
        for cell in self.document.findall(nodes.entry):
            if NUMBER.fullmatch(cell.astext()):
                cell["classes"].append("number")


def setup(app: Sphinx) -> dict[str, Any]:
    """Look at every page."""
    app.add_transform(ShortCells)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
