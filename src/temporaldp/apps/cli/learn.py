"""`temporaldp learn`: a correlation from protected traces, with differential privacy."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from temporaldp import InputError, IntervalMatrix, learn_correlation, save_correlation
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import warn
from temporaldp.apps.cli.render import facts, working
from temporaldp.apps.cli.written import answer
from temporaldp.base.display import number
from temporaldp.base.errors import LedgerError, OutputError
from temporaldp.core.correlation import Origin
from temporaldp.data.files.atomic import require_writable
from temporaldp.publish.project.inputs import read_data
from temporaldp.publish.release import Ledger
from temporaldp.publish.release.correlations import CONTRIBUTED
from temporaldp.publish.release.database import Store, connect
from temporaldp.publish.release.key_and_marks import require_decision


def learn(
    context: typer.Context,
    traces_path: o.TracesArgument = None,
    learn_epsilon: Annotated[
        float | None, o.option("--epsilon", help="Epsilon for all states of a user together, in nats.", metavar="E")
    ] = None,
    learn_output: Annotated[
        Path | None, o.option("--output", "-o", help="Where to write the correlation (.json).", metavar="FILE")
    ] = None,
    learn_ledger: Annotated[
        Path | None,
        o.option("--ledger", help="Ledger of this spend; a stored result is never drawn again.", metavar="FILE"),
    ] = None,
    begin_anew: o.BeginAnewOption = False,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Estimate a correlation from protected traces with differential privacy, as intervals for a stationary Markov chain.

    Plans made with it (--set correlation.file=FILE) may be published. The leakage of the release and the
    epsilon of learning add up: a release with level alpha leaks at most alpha + epsilon about any step.
    """
    settings = o.given(context).settings
    asked = settings.learn
    if asked.epsilon is None or asked.output is None:
        raise InputError(
            "expected --epsilon E (what is spent) and --output FILE (.json, where the correlation is written)"
        )
    require_writable(asked.output, reads=(*settings.inputs, asked.ledger))
    ledger = None
    if asked.ledger is None:
        require_decision(_lacking(asked.output), begin_anew=begin_anew)
    else:
        ledger = Store(connect(asked.ledger), output=asked.output, lacking=partial(_lacking, asked.output))
    with working("reading traces"):
        data = read_data(settings.traces)
    with working("learning the correlation", writes=True):
        adversary = learn_correlation(
            data,
            epsilon=asked.epsilon,
            contributed=asked.contributed or CONTRIBUTED,
            confidence=asked.confidence,
            ledger=ledger,
            begin_anew=begin_anew and ledger is not None,
        )
        save_correlation(adversary, asked.output)
    if settings.traces.states is None:
        warn(
            "the list of states was taken from the traces, outside of the guarantee: give the public list "
            "(--set traces.states=A,B,C)"
        )
    backward, forward = adversary.backward, adversary.forward
    assert isinstance(backward, IntervalMatrix)
    assert isinstance(forward, IntervalMatrix)
    widths = {
        side: [float((matrix.upper - matrix.lower).min()), float((matrix.upper - matrix.lower).max())]
        for side, matrix in (("backward", backward), ("forward", forward))
    }
    warn(adversary.contradiction)
    if min(narrowest for narrowest, _ in widths.values()) > 0.5:
        warn(
            "no interval is narrower than 1/2: plans will spend little more than alpha / T per step. More people, a larger "
            "--epsilon, or more transitions of each (--set learn.contributed=L) narrow them; learning again "
            "spends again"
        )
    answer(
        as_json,
        document=partial(_document, backward.origin, widths, asked.output),
        show=partial(_show, backward.origin, widths),
        correlation=asked.output,
    )


def _lacking(output: Path, ledger: Ledger | None = None) -> OutputError | LedgerError | None:
    """Why a correlation that exists is not learned again: its ledger is not given, or lost."""
    if not output.exists() or (ledger is not None and len(ledger)):
        return None
    return (OutputError if ledger is None else LedgerError)(
        f"{output} exists, and no ledger has it: learning again draws new noise and spends epsilon again, and both spends add "
        "up. Use its ledger (--ledger FILE), or another output. If the correlation was learned before and the ledger is lost, "
        "only an owner may decide that: --begin-anew"
    )


def _document(origin: Origin, widths: dict[str, list[float]], output: Path) -> dict[str, Any]:
    return {
        "correlation": output,
        "epsilon": origin.epsilon,
        "widths": widths,
        "how": origin.sentence,
        "warning": origin.warning,
    }


def _show(origin: Origin, widths: dict[str, list[float]]) -> None:
    """Print the learned correlation: the widths of its intervals, and what it cost."""
    spans = [(side, f"intervals {number(low)} to {number(high)} wide") for side, (low, high) in widths.items()]
    spent = f"{number(origin.epsilon, up=True)} nats, for all states of a person together"
    facts("Correlation learned with differential privacy", [*spans, ("spent", spent), ("how", origin.sentence)])
