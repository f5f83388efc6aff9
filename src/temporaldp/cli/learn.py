"""`temporaldp learn`: a correlation from protected traces, with differential privacy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from temporaldp import Adversary, IntervalMatrix, learn_correlation, save_correlation
from temporaldp.cli import options as o
from temporaldp.cli.inputs import read_data
from temporaldp.cli.render import console, facts, warn, working
from temporaldp.files.atomic import require_writable
from temporaldp.release.learning import CONTRIBUTED
from temporaldp.report.words import number


@o.grouped
def learn(
    reading: o.TraceOptions,
    epsilon: Annotated[
        float,
        typer.Option("--epsilon", help="What is spent on it, for all values of a person together.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the correlation (.npz).", show_default=False)
    ],
    traces: o.TracesArgument = None,
    contributed: Annotated[
        int,
        typer.Option(
            "--contributed",
            metavar="L",
            help="At most so many transitions of each person, at random; best as many as most have.",
        ),
    ] = CONTRIBUTED,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="C", help="That all entries are within their intervals.")
    ] = 0.95,
    ledger: Annotated[
        Path | None,
        typer.Option(
            "--ledger", help="Ledger of this one spend: what it holds is never drawn again.", show_default=False
        ),
    ] = None,
) -> None:
    """Learn a correlation from the traces that are to be protected, as intervals, with differential privacy.

    Plans made from it (plan --correlation) are public; alpha and epsilon add up.
    """
    require_writable(output, reads=(traces, ledger))
    data = read_data(traces, reading)
    with working("learning the correlation", writes=True):
        adversary = learn_correlation(
            data, epsilon=epsilon, contributed=contributed, confidence=confidence, ledger=ledger
        )
        save_correlation(adversary, output)
    if reading.states is None:
        warn("the list of states was taken from the traces, outside the guarantee; give the public list with --states")
    show_learnt(adversary)
    console.print(f"correlation written to {output}", soft_wrap=True, markup=False)


def show_learnt(adversary: Adversary) -> None:
    """What was learnt, for people."""
    rows, narrowest = [], 1.0
    for direction in ("backward", "forward"):
        matrix = getattr(adversary, direction)
        if isinstance(matrix, IntervalMatrix):
            widths = matrix.upper - matrix.lower
            narrowest = min(narrowest, float(widths.min()))
            rows.append((direction, f"intervals {number(float(widths.min()))} to {number(float(widths.max()))} wide"))
    assert isinstance(adversary.backward, IntervalMatrix)
    origin = adversary.backward.origin
    rows.append(("spent", f"{number(origin.epsilon, up=True)} nats, for all values of a person together"))
    rows.append(("how", origin.sentence))
    facts("Correlation learnt with differential privacy", rows)
    if narrowest > 0.5:
        warn(
            "no interval is narrower than 1/2: plans will spend little more than alpha / T a step. More people, a larger "
            "--epsilon, or as many transitions of each as most people have (--contributed) tell more; what is learnt anew is "
            "spent anew"
        )
