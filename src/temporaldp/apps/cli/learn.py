"""`temporaldp learn`: a correlation from protected traces, with differential privacy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from temporaldp import Adversary, InputError, IntervalMatrix, learn_correlation, save_correlation
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import warn
from temporaldp.apps.cli.render import answer, facts, working
from temporaldp.base.display import number
from temporaldp.base.errors import LedgerError, OutputError
from temporaldp.data.files.atomic import require_writable
from temporaldp.publish.project.inputs import read_data
from temporaldp.publish.release import Ledger
from temporaldp.publish.release.correlations import CONTRIBUTED
from temporaldp.publish.release.database import Store, connect
from temporaldp.publish.release.key_and_marks import require_decision
from temporaldp.publish.report.sentences import LIST_STATES, OWN_STATES


def learn(
    context: typer.Context,
    traces: o.TracesArgument = None,
    epsilon: Annotated[
        float | None,
        o.option(
            "--epsilon", key="learn.epsilon", help="Epsilon for all states of a user together, in nats.", metavar="E"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        o.option("--output", "-o", key="learn.output", help="Where to write the correlation (.json).", metavar="FILE"),
    ] = None,
    ledger: Annotated[
        Path | None,
        o.option(
            "--ledger",
            key="learn.ledger",
            help="Ledger of this spend; a stored result is never drawn again.",
            metavar="FILE",
        ),
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
    store = None
    if asked.ledger is None:
        require_decision(_learned_already(asked.output), begin_anew=begin_anew)
    else:
        store = Store(connect(asked.ledger), output=asked.output, lacking=partial(_learned_already, asked.output))
    with working("reading traces"):
        data = read_data(settings.traces)
    with working("learning the correlation", writes=True):
        adversary = learn_correlation(
            data,
            epsilon=asked.epsilon,
            contributed=asked.contributed or CONTRIBUTED,
            confidence=asked.confidence,
            ledger=store,
            begin_anew=begin_anew and store is not None,
        )
        if not settings.traces.has_domain:
            adversary = Adversary(*(side.mapped(_of_own_states) for side in adversary.directions))
        save_correlation(adversary, asked.output)
    if not settings.traces.has_domain:
        warn(OWN_STATES, LIST_STATES)
    backward, forward = adversary.backward, adversary.forward
    assert isinstance(backward, IntervalMatrix) and isinstance(forward, IntervalMatrix)
    provenance, apart = (
        backward.provenance,
        {"backward": backward.upper - backward.lower, "forward": forward.upper - forward.lower},
    )
    widths = {side: [float(each.min()), float(each.max())] for side, each in apart.items()}
    warn(adversary.contradiction)
    if min(narrowest for narrowest, _ in widths.values()) > 0.5:
        warn(
            "no interval is narrower than 1/2: plans will spend little more than alpha / T per step. More people, a larger "
            "--epsilon, or more transitions of each (--set learn.contributed=L) narrow them; learning again "
            "spends again"
        )
    document = {
        "correlation": asked.output,
        "epsilon": provenance.epsilon,
        "widths": widths,
        "how": provenance.sentence,
        "warning": provenance.warning,
    }
    rows = [
        *((side, f"intervals {number(low)} to {number(high)} wide") for side, (low, high) in widths.items()),
        ("spent", f"{number(provenance.epsilon, up=True)} nats, for all states of a person together"),
        ("how", provenance.sentence),
    ]
    answer(
        as_json,
        document=lambda: document,
        show=partial(facts, "Correlation learned with differential privacy", rows),
        correlation=asked.output,
    )


def _of_own_states(matrix: Any) -> IntervalMatrix:
    """The matrix, with a note in its provenance that its states are those of the protected table."""
    known = matrix.provenance
    noted = replace(known, sentence=f"{known.sentence} {OWN_STATES.capitalize()}.")
    return IntervalMatrix(matrix.lower, matrix.upper, matrix.states, provenance=noted)


def _learned_already(output: Path, ledger: Ledger | None = None) -> OutputError | LedgerError | None:
    """Why a correlation that exists is not learned again: its ledger is not given, or lost."""
    if not output.exists() or (ledger is not None and len(ledger)):
        return None
    return (OutputError if ledger is None else LedgerError)(
        f"{output} exists, and no ledger has it: learning again draws new noise and spends epsilon again, and both spends add "
        "up. Use its ledger (--ledger FILE), or another output. If the correlation was learned before and the ledger is lost, "
        "only an owner may decide that: --begin-anew"
    )
