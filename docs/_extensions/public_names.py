"""Links to the page of a public name from every page that mentions it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

NAME = re.compile(r"(?:tdp\.)?([A-Za-z_]\w+)(?=$|\(|\.\w)")
REFERENCE = (Path(__file__).parents[1] / "reference.md").read_text(encoding="utf-8")
PUBLIC = {name.rpartition(".")[2]: name for name in re.findall(r"^   ([A-Za-z]\S*)$", REFERENCE, re.MULTILINE)}
"""The names that docs/reference.md lists, and how they are qualified after `temporaldp.`."""


class Links(SphinxTransform):
    """A literal that is a public name, with or without arguments, becomes a link to its docstring."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Replace the literals of one page, but for headings and what is a link already."""
        for literal in list(self.document.findall(nodes.literal)):
            found = NAME.match(literal.astext())
            own_page = found and self.env.docname == f"api/temporaldp.{PUBLIC.get(found[1])}"
            if found and found[1] in PUBLIC and not own_page and not self.inside(literal):
                target = addnodes.pending_xref(
                    "", literal.deepcopy(), refdomain="py", reftype="obj", reftarget=f"temporaldp.{PUBLIC[found[1]]}",
                    refdoc=self.env.docname, refexplicit=True, refwarn=True,
                )  # fmt: skip
                literal.replace_self(target)

    def inside(self, literal: nodes.Node) -> bool:
        """Whether it stands in a heading or in a link."""
        parent = literal.parent
        while parent is not None:
            if isinstance(parent, nodes.title | nodes.reference | addnodes.pending_xref | addnodes.download_reference):
                return True
            parent = parent.parent
        return False


def setup(app: Sphinx) -> dict[str, Any]:
    """Remove pages of names that are no longer public, and add the links."""
    for page in (Path(app.srcdir) / "api").glob("temporaldp.*.rst"):  # of names that were removed
        if page.stem.removeprefix("temporaldp.") not in PUBLIC.values():
            page.unlink()
    app.add_transform(Links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
