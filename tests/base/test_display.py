"""What a notebook shows of results: small tables, all escaped; pictures of one call; and tables for other libraries."""

from __future__ import annotations

import html
import math
import re
import sys
from html.parser import HTMLParser

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import temporaldp as tdp
from temporaldp.base.display import apart, number

STICKY = tdp.TransitionMatrix([[0.9, 0.1], [0.2, 0.8]], states=["<home>", "work & co"])
BOTH = tdp.Adversary(STICKY, STICKY)
SERIES = tdp.temporal_leakage(BOTH, [0.1, 0.2, 0.1])
BUDGETS = tdp.plan_budget(BOTH, alpha=1.0, horizon=4)
FOR_EVER = tdp.plan_budget(BOTH, alpha=1.0)
NOISE = tdp.plan_noise(BOTH, alpha=1.0, horizon=2, accounting=tdp.ApproximateDP(1e-6))
PEOPLE = tdp.studies.LeakageDistribution(["<i>Ann</i>", "Bo"], [0.2, 0.5], epsilon=0.1)
RELEASED = tdp.ReleasedHistograms(
    counts=[[3, -1], [2, 5]], epsilons=[0.1, 0.2], scales=[20, 10], states=STICKY.states, times=("9:00", "<9:05>")
)
COMPARED = tdp.compare_plans(BOTH, alpha=1.0, horizon=2)
SHOWN = [
    SERIES, BUDGETS, FOR_EVER, NOISE, PEOPLE, RELEASED, COMPARED, STICKY, BOTH,
    tdp.leakage_supremum(BOTH, 0.1), tdp.Adversary(backward=[STICKY, STICKY]),
]  # fmt: skip


class Table(HTMLParser):
    """The texts of cells; and that every tag which is opened is closed again."""

    def __init__(self, html):
        super().__init__()
        self.open, self.cells, self.tags = [], [], set()
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag in {"td", "th"}:
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in {"td", "th"}:
            self.cells[-1] += data


@pytest.mark.parametrize("result", SHOWN, ids=lambda result: type(result).__name__)
def test_notebook_table_escapes_names(result):
    table = Table(result._repr_html_())
    assert table.cells
    assert table.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p", "small", "em"}
    assert len(table.cells) <= 200


def test_table_agrees_with_the_result():
    cells = Table(SERIES._repr_html_()).cells
    assert f"{number(SERIES.worst, up=True, digits=6)} at worst, about step {SERIES.worst_time}" in cells
    assert "0.1 to 0.2" in cells
    assert Table(STICKY._repr_html_()).cells == [
        "",
        "<home>",
        "work & co",
        "<home>",
        "0.9",
        "0.1",
        "work & co",
        "0.2",
        "0.8",
    ]


def test_upper_bounds_are_rounded_up_wherever_they_are_shown():
    """Leakages of which the seventh digit is small: rounding to the nearest would understate them."""
    low = 0.1234561
    series = tdp.LeakageSeries(*np.full((4, 3), low))
    limit = tdp.LeakageSupremum(*[low] * 4)
    people = tdp.studies.LeakageDistribution(["Ann", "Bo"], [low, low], epsilon=0.1)
    odometer = tdp.TemporalAccountant(tdp.Adversary()).spend(low)
    for shown in (series, limit, people, odometer, tdp.LikelihoodBox([0.0, 0.0], [low, 0.0])):
        texts = [repr(shown)] + ([shown._repr_html_()] if hasattr(shown, "_repr_html_") else [])
        for text in texts:
            found = [float(one) for one in re.findall(r"0\.12\d+", text)]
            assert found, text
            assert min(found) >= low, text


@pytest.mark.parametrize("value", [5e-324, 1e-310, 1.2345e-308, 0.1, 1.0, 1e300])
def test_every_double_can_be_rounded_up_and_down(value):
    assert float(number(value, down=True)) <= value <= float(number(value, up=True))
    assert float(number(value, up=True)) <= value * 1.002 + 1e-323


def test_numbers_in_a_refusal_differ():
    for low, high in ((1.0, math.nextafter(1.0, 2.0)), (0.4999999998, 0.5), (0.1, 0.2)):
        below, above = apart(low, high)
        assert float(below) <= low < high <= float(above)


def test_corner_of_a_large_dense_or_sparse_matrix_is_shown():
    from scipy import sparse

    n = 40
    matrix = tdp.TransitionMatrix(sparse.csr_array(0.5 * np.eye(n) + 0.5 * np.roll(np.eye(n), 1, axis=1)))
    html = matrix._repr_html_()
    assert "the first 12 of 40 values" in html
    assert len(Table(html).cells) == 13 * 13


@pytest.mark.parametrize(
    ("result", "options", "axes"),
    [
        (SERIES, {"alpha": 1.0, "times": ["a", "b", "c"]}, 1),
        (SERIES, {"paper": tdp.temporal_leakage(BOTH, [0.1, 0.2, 0.1], accounting=tdp.PaperBound())}, 1),
        (BUDGETS, {}, 2),
        (NOISE, {"times": range(2)}, 2),
        (COMPARED, {}, 1),
        (STICKY, {"backward": True}, 2),
        (PEOPLE, {"level": 0.3, "groups": True}, 1),
        (RELEASED, {"true_counts": np.array([[3, 2], [2, 3]])}, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plot_returns_a_displayable_figure(result, options, axes):
    import matplotlib._pylab_helpers as pylab

    figure = result.plot(**options)
    assert len(figure.axes) == axes
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert not pylab.Gcf.figs  # it belongs to no global state


@pytest.mark.parametrize(
    ("result", "options"),
    [
        (SERIES, {"alpha": 1.0}),
        (BUDGETS, {"times": "abcd"}),
        (COMPARED, {}),
        (STICKY, {}),
        (PEOPLE, {}),
        (PEOPLE, {"groups": True}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_plot_on_given_axes_changes_nothing_else(result, options):
    from matplotlib.figure import Figure

    def contents(axes):
        return [
            (type(artist).__name__, artist.get_label()) for artist in (*axes.lines, *axes.patches, *axes.images)
        ] + [axes.get_xlabel(), axes.get_ylabel()]

    ours, other = Figure().subplots(1, 2)
    before = ours.spines["top"].get_visible()
    assert result.plot(ax=ours, **options) is ours
    alone = result.plot(**options).axes[0]
    assert contents(ours)[:-2] == contents(alone)[:-2]
    assert ours.get_ylabel() == alone.get_ylabel()
    assert contents(other) == ["", ""]
    assert ours.spines["top"].get_visible() == before  # the style is that of the figure


def test_the_picture_of_a_series_draws_its_numbers():
    (axes,) = SERIES.plot().axes
    drawn = {line.get_label().split(",")[0]: np.asarray(line.get_ydata()) for line in axes.get_lines()}
    for name, values in (("TPL", SERIES.temporal), ("BPL", SERIES.backward), ("FPL", SERIES.forward)):
        assert drawn[name].tolist() == values.tolist()


def test_results_without_a_figure_are_refused_with_the_reason():
    with pytest.raises(tdp.InputError, match="expected a plan with a horizon"):
        FOR_EVER.plot()
    with pytest.raises(tdp.InputError, match="a label for each of the 3 steps, got 2"):
        SERIES.plot(times=["a", "b"])
    with pytest.raises(tdp.InputError, match="at least one method with a plan"):
        tdp.planning.PlanComparison({}, {}).plot()


def test_all_data_frame_libraries_read_the_same_table():
    expected = {
        "step": [0, 1, 2],
        "epsilon": [0.1, 0.2, 0.1],
        "backward": SERIES.backward.tolist(),
        "forward": SERIES.forward.tolist(),
        "temporal": SERIES.temporal.tolist(),
    }
    assert pl.DataFrame(SERIES).to_dict(as_series=False) == expected
    assert pa.table(SERIES).to_pydict() == expected
    assert pa.table(SERIES).to_pandas().to_dict("list") == expected
    series = SERIES
    assert duckdb.sql("select temporal from series order by step").fetchall() == [
        (x,) for x in series.temporal.tolist()
    ]
    assert pd.DataFrame(SERIES).to_dict("list") == expected
    assert SERIES.to_pandas().to_dict("list") == SERIES.to_polars().to_dict(as_series=False) == expected
    assert [row.temporal for row in SERIES] == expected["temporal"]


def test_other_results_are_tables():
    assert pl.DataFrame(BUDGETS).columns == ["step", "epsilon", "scale"]
    assert pl.DataFrame(BUDGETS)["epsilon"].to_list() == BUDGETS.epsilons.tolist()
    assert pl.DataFrame(FOR_EVER).height == 1
    assert pl.DataFrame(NOISE)["scale"].to_list() == NOISE.scales.tolist()
    assert pl.DataFrame(PEOPLE).rows() == [("Bo", 0.5, 1), ("<i>Ann</i>", 0.2, 1)]
    assert pl.DataFrame(RELEASED).to_dict(as_series=False) == RELEASED.columns()


@pytest.mark.parametrize(
    "result", [SERIES, BUDGETS, FOR_EVER, NOISE, PEOPLE, RELEASED], ids=lambda one: type(one).__name__
)
def test_every_data_frame_of_a_result_has_its_columns(result):
    expected = {name: list(values) for name, values in result.columns().items()}
    assert pd.DataFrame(result).to_dict("list") == expected
    assert result.to_pandas().to_dict("list") == expected
    assert result.to_polars().to_dict(as_series=False) == expected


@pytest.mark.parametrize(("library", "method"), [("pandas", "to_pandas"), ("polars", "to_polars")])
def test_a_data_frame_of_a_library_that_is_not_installed_names_its_extra(monkeypatch, library, method):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "pyarrow.pandas_compat", None)
    with pytest.raises(tdp.errors.MissingExtraError, match=rf"'\.\[{library}\]'"):
        getattr(SERIES, method)()


def test_a_level_that_is_not_a_short_decimal_is_promised_rounded_up():
    """At most 0.333333 nats would be less than the plan satisfies."""
    P = [[0.8, 0.2], [0.2, 0.8]]
    adversary = tdp.Adversary(P, P)
    plan = tdp.plan_budget(adversary, alpha=1 / 3, horizon=3)
    shown = [repr(tdp.TemporalAccountant(adversary, alpha=1 / 3)), plan.level, repr(plan)]
    assert all("alpha = 0.333334" in one for one in shown)


def test_accountants_and_guarantees_show_their_numbers():
    walk = tdp.Adversary(tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    accountant = tdp.TemporalAccountant(walk, alpha=1.0, horizon=4).spend([0.1, 0.3])
    shown = accountant._repr_html_()
    for text in ("2 of 4", "0.1 to 0.3", "level"):
        assert text in shown
    assert "spent" not in tdp.TemporalAccountant(walk)._repr_html_()
    guarantees = tdp.compare_guarantees(walk, alphas=[1.0], horizon=4, n_people=100, n_states=2)
    assert guarantees.advice in html.unescape(guarantees._repr_html_())


def test_suprema_accountants_and_guarantees_are_drawn():
    walk = tdp.Adversary(tdp.TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]))
    bars = tdp.leakage_supremum(walk, 0.1).plot().axes[0]
    assert bars.texts[0].get_text() == "0.1"
    unbounded = tdp.leakage_supremum(tdp.Adversary(tdp.TransitionMatrix([[1.0, 0.0], [0.0, 1.0]])), 0.1).plot().axes[0]
    assert "no bound" in unbounded.get_xlabel()
    accountant = tdp.TemporalAccountant(walk, alpha=1.0, horizon=4).spend([0.1, 0.3])
    assert accountant.plot().axes[0].lines
    guarantees = tdp.compare_guarantees(walk, alphas=[1.0], horizon=4, n_people=100, n_states=2)
    axes = guarantees.plot().axes[0]
    assert len(axes.get_yticklabels()) == sum(row.plan is not None for row in guarantees.rows)
