"""Formulas as MathML, which browsers draw by themselves: no script, no fonts to load, and a formula can be read aloud."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number


def inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line of text."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display(writer: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, with its number if it has one."""
    number = get_node_equation_number(writer, node) if node["number"] else ""
    label = f'<span class="eqno">({number})</span>' if number else ""
    writer.body.append(f'<div class="formula">{convert(node.astext(), display="block")}{label}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Make it the way of drawing formulas."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.config.html_math_renderer = "mathml"
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
