"""One self-contained HTML page: nothing is loaded from anywhere."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp import __version__
from temporaldp.extras import needing
from temporaldp.files.atomic import write_text
from temporaldp.planning.histogram_noise import laplace_scales, mean_absolute_noise
from temporaldp.report import explanation, sentences
from temporaldp.report.content import Evidence
from temporaldp.report.figures import budget_figure, leakage_figure, matrix_figure, release_figure, witness_figure
from temporaldp.report.style import figure_svg, name_step
from temporaldp.report.uncertainty import uncertainty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 400
"""Steps in the table at the end of the page."""


def page_figure(figure: Figure, alternative: str, caption: str, *, step: str | None = None) -> dict[str, str]:
    """A figure for a template: its data URL, alternative text and caption; with the length of a step if it is known."""
    name_step(figure, step)
    encoded = base64.b64encode(figure_svg(figure)).decode("ascii")
    return {"url": f"data:image/svg+xml;base64,{encoded}", "alternative": alternative, "caption": caption}


def rendered(package: str, template: str, **content: Any) -> str:
    """Fill in a template of a package; everything that is filled in is escaped."""
    with needing("report"):
        from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string((files(package) / template).read_text(encoding="utf-8"))
    return page.render(version=__version__, s=sentences, **content)


def render_report(evidence: Evidence, *, title: str = "Temporal privacy leakage report") -> str:
    """Return the report as one HTML document: verdict, guarantee, reasons, assumptions, figures, method, numbers.

    Parameters
    ----------
    evidence : Evidence
    title : str

    Returns
    -------
    str
        HTML that loads nothing from outside.
    """
    series = evidence.leakage
    steps = (series.epsilons, series.backward, series.forward, series.temporal)
    return rendered(
        "temporaldp.report",
        "page.html.j2",
        title=title,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        evidence=evidence,
        series=series,
        explanation=explanation,
        noise=(noise := _noise(evidence)),
        meaning=explanation.meaning(evidence, noise),
        pictures=_pictures(evidence),
        most_rows=MOST_ROWS,
        rows=list(zip(evidence.times, *(values[:MOST_ROWS].tolist() for values in steps), strict=False)),
    )


def write_report(evidence: Evidence, path: str | Path, *, title: str = "Temporal privacy leakage report") -> None:
    """Write the report to one HTML file, whole or not at all.

    Raises
    ------
    OutputError
        The file cannot be written; its previous content is unchanged.
    """
    write_text(path, render_report(evidence, title=title))


def _noise(evidence: Evidence) -> float | None:
    """Mean absolute noise of a count; None at a delta without a plan, where the noise is unknown."""
    if evidence.plan is not None:
        return mean_absolute_noise(evidence.plan.scales_for(len(evidence.leakage)), evidence.plan.noise)
    return None if evidence.leakage.delta else mean_absolute_noise(laplace_scales(evidence.leakage.epsilons))


def _pictures(evidence: Evidence) -> list[dict[str, str]]:
    series, alpha, seen = evidence.leakage, evidence.alpha, evidence.observation
    step = None if evidence.plan is None else evidence.plan.source.step
    pictures = [
        page_figure(
            leakage_figure(series, times=evidence.times, alpha=alpha, paper=None if alpha else evidence.paper),
            f"Line chart of leakage over {len(series)} steps; the temporal leakage is largest, "
            f"{sentences.nats(series.worst)}, at step {evidence.explained_step + 1}.",
            "Leakage over time: of each release by itself (epsilon, dotted), with earlier releases (BPL), with later releases "
            "(FPL), and with all releases (TPL).",
            step=step,
        )
    ]
    if evidence.uncertainty is not None:
        pictures.append(
            page_figure(
                uncertainty_figure(evidence.uncertainty),
                explanation.uncertainty(evidence.uncertainty),
                "Plausible leakage (draws) and guaranteed leakage, given the traces.",
            )
        )
    if seen is not None:
        pictures.append(
            page_figure(
                witness_figure(seen, evidence.times),
                f"The counts, of {len(seen.states)}, that are high at each step of the most revealing observation.",
                f"The most revealing observation about step {seen.time + 1} (framed): high counts are filled.",
                step=step,
            )
        )
    budgets = f"Bar chart of the budget of each of {len(series)} steps."
    pictures.append(page_figure(budget_figure(series, evidence.times), budgets, "Budget of each step.", step=step))
    for direction, when in (("backward", "before"), ("forward", "later")):
        correlation = getattr(evidence.worst_adversary, direction)
        matrix = next(iter(correlation.matrices), None)
        if matrix is not None and not matrix.is_set:
            whose = f" of {evidence.who}, who has the largest leakage" if evidence.who else ""
            first = "" if correlation.is_constant else " (first of several)"
            pictures.append(
                page_figure(
                    matrix_figure(matrix, backward=direction == "backward"),
                    f"Heat map of the {direction} transition matrix over {matrix.n_states} states.",
                    f"The {direction} correlation{whose}{first}: each row is the distribution of the state one step {when}.",
                )
            )
    if evidence.released is not None:
        shown = f"Released {'counts' if evidence.true_counts is None else 'and true counts'} over time."
        pictures.append(page_figure(release_figure(evidence.released, evidence.true_counts), shown, shown, step=step))
    return pictures
