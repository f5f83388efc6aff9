"""One self-contained HTML page: nothing is loaded from anywhere."""

from __future__ import annotations

import base64
import math
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp import __version__
from temporaldp.base.extras import needing
from temporaldp.core.planning.histogram_noise import HISTOGRAM_SENSITIVITY, laplace_scales, mean_absolute_noise
from temporaldp.data.files.atomic import write_text
from temporaldp.publish.report import explanation, figures, sentences
from temporaldp.publish.report.content import Report
from temporaldp.publish.report.study_figures import uncertainty_figure
from temporaldp.publish.report.style import figure_svg, name_step

if TYPE_CHECKING:
    from jinja2 import Template
    from matplotlib.figure import Figure


@cache
def template(name: str) -> Template:
    """A template of the package, such as "publish/report/page.html.j2"; what is filled in is escaped in HTML.

    Templates share `sentences` as `s`; the function `data_url` draws a figure, with the length of a step on axes of time.
    """
    with needing("report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    known = Environment(
        loader=PackageLoader("temporaldp", ""),
        autoescape=select_autoescape(["html.j2"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    known.globals |= {"s": sentences, "version": __version__, "data_url": _data_url, "inf": math.inf}
    return known.get_template(name)


def _data_url(figure: Figure, step: str | None = None) -> str:
    name_step(figure, step)
    return f"data:image/svg+xml;base64,{base64.b64encode(figure_svg(figure)).decode('ascii')}"


def render_report(
    report: Report, *, title: str = "What the releases reveal about one person", step: str | None = None
) -> str:
    """Return the report as one HTML document: verdict, guarantee, reasons, assumptions, figures, method, numbers.

    Parameters
    ----------
    report : Report
    title : str
    step : str, optional
        Length of a step, for the labels of figures. Default: that of the plan.

    Returns
    -------
    str
        HTML that loads nothing from outside.
    """
    series, plan = report.leakage, report.plan
    return template("publish/report/page.html.j2").render(
        step=sentences.duration(plan.provenance.step) if step is None and plan is not None else step,
        title=title,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        report=report,
        series=series,
        explanation=explanation,
        figures=figures,
        uncertainty_figure=uncertainty_figure,
        noise=_noise(report),
        sensitivity=HISTOGRAM_SENSITIVITY,
    )


def write_report(
    report: Report,
    path: str | Path,
    *,
    title: str = "What the releases reveal about one person",
    step: str | None = None,
) -> None:
    """Write the report to one HTML file, whole or not at all; `title` and `step` as for `render_report`.

    Raises
    ------
    OutputError
        The file cannot be written; its previous content is unchanged.
    """
    write_text(path, render_report(report, title=title, step=step))


def _noise(report: Report) -> float | None:
    """Mean absolute noise of a count; None at a delta without a plan, and for several tables, of each of which it differs."""
    if report.plan is not None:
        return mean_absolute_noise(report.plan.scales_for(len(report.leakage)), report.plan.noise)
    return (
        None if report.leakage.delta or report.tables else mean_absolute_noise(laplace_scales(report.leakage.epsilons))
    )
