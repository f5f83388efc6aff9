"""Formulas as MathML, which browsers draw by themselves: no script, no fonts to load, and a formula can be read aloud."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

SPACE = "http://www.w3.org/1998/Math/MathML"
UNDER = {"max", "min", "sup"}
ElementTree.register_namespace("", SPACE)


def mathml(latex: str, *, display: bool) -> str:
    r"""The formula, with what the converter leaves out: indices below max, a space after log, and Euler's number upright."""
    # The converter writes the e of \mathrm{e} as an entity, and any other e as a letter.
    source = convert(latex, display="block" if display else "inline").replace(
        "<mi>&#x00065;</mi>", '<mi mathvariant="normal">e</mi>'
    )
    root = ElementTree.fromstring(source)
    for element in root.iter():
        children = list(element)
        if display and element.tag == f"{{{SPACE}}}msub" and children[0].text in UNDER:
            element.tag = f"{{{SPACE}}}munder"
        for k, child in reversed(list(enumerate(children[:-1]))):
            following = "".join(children[k + 1].itertext())
            if child.text in {"log", "exp"} and not following.startswith(("(", "[", ")")):
                element.insert(k + 1, ElementTree.Element(f"{{{SPACE}}}mspace", width="0.17em"))
    return ElementTree.tostring(root, encoding="unicode")


def inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    writer.body.append(mathml(node.astext(), display=False))
    raise nodes.SkipNode


def display(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, with its number if it has one."""
    number = get_node_equation_number(writer, node) if node["number"] else ""
    label = f'<span class="eqno">({number})</span>' if number else ""
    writer.body.append(f'<div class="formula">{mathml(node.astext(), display=True)}{label}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it the way of drawing formulas."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
