"""A page for every public name, made from its docstring, and links to it wherever a page of the site says the name."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import temporaldp

NAME = re.compile(r"(?:tdp\.)?([A-Za-z_]\w+)(?=$|\(|\.\w)")
TITLES = {
    "kernels": "What one step leaks",
    "correlation": "What the adversary knows",
    "mechanisms": "What one release gives away",
    "accounting": "What a sequence leaks",
    "planning": "How much to spend",
    "smoothing": "Which counts are worth publishing",
    "files": "In and out",
    "release": "Spending it",
    "studies": "Studies of a release or a correlation",
    "project": "The project file",
    "adapters": "Around other libraries",
    "deployment": "Published systems",
    "errors": "Errors",
}


PUBLIC = {name: name for name in temporaldp.__all__ if name not in {"studies", "deployment", "errors"}}
PUBLIC |= {name: f"studies.{name}" for name in temporaldp.studies.__all__}
REFERENCE = (Path(__file__).parents[1] / "reference.md").read_text(encoding="utf-8")
for place in TITLES:
    for name in getattr(import_module(f"temporaldp.{place}"), "__all__", ()):
        if name not in PUBLIC and f"`{name}" in REFERENCE:
            PUBLIC[name] = f"{place}.{name}"
"""The public names, and how they are qualified after `temporaldp.`: those of the package, and those of its folders."""


def folder(name: str) -> str:
    """The folder of the package that a public name comes from."""
    if isinstance(getattr(temporaldp, name, None), ModuleType):
        return name
    for candidate in TITLES:
        if getattr(import_module(f"temporaldp.{candidate}"), name, None) is not None:
            return candidate
    raise LookupError(f"no folder of docs/_extensions/public_names.py gives the public name {name}")


def index() -> str:
    """The page that lists all names, by folder."""
    folders: dict[str, list[str]] = {title: [] for title in TITLES}
    for name, qualified in PUBLIC.items():
        folders[folder(name)].append(qualified)
    lines = ["Every docstring", "===============", "", ".. currentmodule:: temporaldp", ""]
    for place, names in folders.items():
        title = TITLES[place]
        lines += [title, "-" * len(title), "", ".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names] + [""]
    return "\n".join(lines)


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
    """Write the list of names before Sphinx looks for pages."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    for page in folder.glob("temporaldp.*.rst"):  # of names that there are no longer
        if page.stem.removeprefix("temporaldp.") not in PUBLIC.values():
            page.unlink()
    page = folder / "index.rst"
    if not page.exists() or page.read_text() != index():
        page.write_text(index())
    app.add_transform(Links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
