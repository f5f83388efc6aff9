"""The paper, reproduced with the public functions of temporaldp: its figures, its table, and its claims one by one.

Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy under Temporal Correlations, ICDE 2017.

``make bench NAME=paper`` (``python -m reproduction -o paper`` in a checkout) writes all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from reproduction import claims_algorithms, claims_experiments, claims_leakage
from reproduction.budget_figures import draw_figure_7, draw_figure_8, figure_7, figure_8
from reproduction.claim import Statement
from reproduction.exhibit import Exhibit
from reproduction.leakage_figures import (
    draw_figure_3,
    draw_figure_4,
    draw_figure_6,
    draw_table_2,
    figure_3,
    figure_4,
    figure_6,
    table_2,
)
from reproduction.runtime_figure import draw_figure_5, figure_5

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Maker(NamedTuple):
    """Functions that compute an exhibit and draw it."""

    compute: Callable[[], Exhibit]
    draw: Callable[[Exhibit], Figure]


EXHIBITS: dict[str, Maker] = {
    "3": Maker(figure_3, draw_figure_3),
    "4": Maker(figure_4, draw_figure_4),
    "5": Maker(figure_5, draw_figure_5),
    "6": Maker(figure_6, draw_figure_6),
    "7": Maker(figure_7, draw_figure_7),
    "8": Maker(figure_8, draw_figure_8),
    "table2": Maker(table_2, draw_table_2),
}
"""Figures and table of the paper, by the argument of ``--figure``."""

STATEMENTS: dict[str, Statement] = {
    statement.identifier: statement
    for part in (claims_leakage, claims_algorithms, claims_experiments)
    for statement in part.STATEMENTS
}
"""Statements of the paper in its order, by the argument of ``--claim``."""
