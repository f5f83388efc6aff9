"""One self-contained HTML page: nothing is loaded from anywhere."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp.extras import needing
from temporaldp.files.atomic import replacing
from temporaldp.planning.histogram_noise import laplace_scales, mean_absolute_noise
from temporaldp.report import words
from temporaldp.report.content import Evidence
from temporaldp.report.figures import budget_figure, leakage_figure, matrix_figure, release_figure, witness_figure
from temporaldp.report.style import figure_svg
from temporaldp.report.uncertainty import uncertainty_figure, uncertainty_sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_ROWS = 400
"""Steps in the table at the end; beyond, the page says where the rest is."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure as a data URL, with the text that stands for it and under it."""

    url: str
    alternative: str
    caption: str


def render_report(evidence: Evidence, *, title: str = "Temporal privacy leakage report") -> str:
    """The report as one HTML document: verdict, guarantee, reasons, assumptions, figures, method, numbers.

    Parameters
    ----------
    evidence : Evidence
    title : str

    Returns
    -------
    str
        HTML that refers to nothing outside itself.
    """
    with needing("report"):
        from jinja2 import Environment, StrictUndefined

    from temporaldp import __version__

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("temporaldp.report") / "page.html.j2").read_text(encoding="utf-8"))
    series = evidence.leakage
    return template.render(
        title=title,
        version=__version__,
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        evidence=evidence,
        series=series,
        number=words.number,
        times_promised=f"{series.worst / series.epsilons.max():.1f}",
        kind=series.accounting.label,
        paper=words.paper(evidence),
        supremum=words.supremum,
        noise=_noise(evidence),
        guarantee=[*words.guarantee(evidence), *_uncertain(evidence)],
        assumptions=words.assumptions(evidence),
        reasons=words.reasons(evidence),
        witness=words.witness(evidence),
        pictures=_pictures(evidence),
        most_rows=MOST_ROWS,
        rows=list(
            zip(
                evidence.times,
                *(
                    values[:MOST_ROWS].tolist()
                    for values in (series.epsilons, series.backward, series.forward, series.temporal)
                ),
                strict=False,
            )
        ),
    )


def _noise(evidence: Evidence) -> float | None:
    """Mean absolute noise of a count; None at a delta without a plan, where nothing says which noise there is."""
    if evidence.plan is not None:
        return mean_absolute_noise(evidence.plan.scales_for(len(evidence.leakage)), evidence.plan.noise)
    return None if evidence.leakage.delta else mean_absolute_noise(laplace_scales(evidence.leakage.epsilons))


def write_report(evidence: Evidence, path: str | Path, *, title: str = "Temporal privacy leakage report") -> None:
    """Write the report to one HTML file, whole or not at all.

    Raises
    ------
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    page = render_report(evidence, title=title)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _pictures(evidence: Evidence) -> list[Picture]:
    series, alpha = evidence.leakage, evidence.alpha if evidence.renewal is None else evidence.renewal.alpha
    worst = words.number(series.worst, up=True)
    pictures = [
        _picture(
            leakage_figure(series, evidence.times, alpha=alpha, paper=None if alpha else evidence.paper),
            f"Line chart of leakage over {len(series)} steps; the temporal leakage is largest, {worst} nats, at step "
            f"{evidence.explained_step + 1}.",
            "Leakage over time: what a step gives away by itself (dotted), with the past (BPL), with the future (FPL), "
            "and with everything that is ever released (TPL).",
        ),
        *_uncertainty(evidence),
        *_witness(evidence),
        _picture(
            budget_figure(series, evidence.times),
            f"Bar chart of the budget of each of {len(series)} steps.",
            "Budget of each step.",
        ),
    ]
    adversary = evidence.worst_adversary
    for direction in ("backward", "forward"):
        known = getattr(adversary, direction)
        matrix = next(iter(known.matrices), None)
        if matrix is not None and not matrix.is_set:
            whose = f" of {evidence.who}, the one who is leaked about most" if evidence.who else ""
            first = "" if known.is_constant else " (first of several)"
            when = "before" if direction == "backward" else "later"
            pictures.append(
                _picture(
                    matrix_figure(matrix, backward=direction == "backward"),
                    f"Heat map of the {direction} transition matrix over {matrix.n_states} states.",
                    f"The {direction} correlation{whose}{first}: a row tells where a person in that state is one step {when}.",
                )
            )
    if evidence.released is not None:
        shown = "Released counts" if evidence.true_counts is None else "Released against true counts"
        pictures.append(
            _picture(
                release_figure(evidence.released, evidence.true_counts), f"{shown} over time.", f"{shown} over time."
            )
        )
    return pictures


def _uncertain(evidence: Evidence) -> list[str]:
    return [] if evidence.uncertainty is None else [uncertainty_sentence(evidence.uncertainty)]


def _uncertainty(evidence: Evidence) -> list[Picture]:
    if evidence.uncertainty is None:
        return []
    return [
        _picture(
            uncertainty_figure(evidence.uncertainty),
            uncertainty_sentence(evidence.uncertainty),
            "What is plausible (draws) and what is guaranteed, as far as the traces tell the correlation.",
        )
    ]


def _witness(evidence: Evidence) -> list[Picture]:
    seen = evidence.observation
    if seen is None:
        return []
    return [
        _picture(
            witness_figure(seen, evidence.times),
            f"Which of {len(seen.states)} counts come out high at each step in the observation that gives most away.",
            f"The observation that gives most away about step {seen.time + 1} (framed): dark where the count of a value comes "
            "out high.",
        )
    ]


def _picture(figure: Figure, alternative: str, caption: str) -> Picture:
    encoded = base64.b64encode(figure_svg(figure)).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{encoded}", alternative, caption)
