"""`temporaldp deployment`: leakage over time under the promise of a published system."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from temporaldp import Adversary, InputError, load_correlation, load_matrix
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, warn
from temporaldp.apps.cli.render import answer, facts, listing, require_places, say_json, say_text, say_written, working
from temporaldp.base.errors import MissingFileError
from temporaldp.base.values import refuse
from temporaldp.data.files.atomic import suffix_of, write_text
from temporaldp.publish.deployment import Assumptions, Deployment, DeploymentCard
from temporaldp.publish.deployment.card import overview_of
from temporaldp.publish.deployment.formats import card_figure, heading, registry_yaml, render_card
from temporaldp.publish.report.sentences import INFERENCE_ONLY, INFINITE_HORIZON, factor, upper
from temporaldp.publish.report.style import save_figure


def deployment(
    context: typer.Context,
    record: Annotated[
        Path,
        typer.Argument(
            metavar="RECORD",
            help="Record of the deployments registry (.yaml), or a folder of them.",
            show_default=False,
        ),
    ],
    states: Annotated[
        str | None,
        o.option(
            "--states",
            key="deployment.states",
            help="The secret: states of a step (default: present,absent).",
            metavar="A,B",
        ),
    ] = None,
    stays: Annotated[
        str | None,
        o.option(
            "--stays",
            key="deployment.stays",
            help="Probability that the state stays the same from step to step (default: 0.5:0.99).",
            metavar="FROM:TO",
        ),
    ] = None,
    correlation: Annotated[
        Path | None,
        o.option(
            "--correlation",
            key="deployment.correlation",
            help="In place of --stays: forward matrix, or correlation of both directions.",
            metavar="FILE",
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        o.option("--horizon", key="deployment.horizon", help="Number of steps (default: one year).", metavar="T"),
    ] = None,
    guarantee: Annotated[
        str | None,
        o.option(
            "--guarantee",
            key="deployment.guarantee",
            help="What the verdict is about (default: temporal).",
            metavar="temporal|user[:W]|window:W",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        o.option(
            "--unit",
            key="deployment.unit",
            help="How a change of state counts in units of the guarantee.",
            metavar="replace-one|add-or-remove|...",
        ),
    ] = None,
    tables: Annotated[
        str | None,
        o.option(
            "--tables",
            key="deployment.tables",
            help="Tables that the state enters; their epsilons add up.",
            metavar="NAME=E,...",
        ),
    ] = None,
    delta: Annotated[
        float | None,
        o.option("--delta", key="deployment.delta", help="Account in (epsilon, delta)-DP_T.", metavar="D"),
    ] = None,
    output: Annotated[
        list[Path] | None,
        o.option("--output", "-o", help="Write the card (.png, .svg or .html; repeatable).", metavar="FILE"),
    ] = None,
    emit: Annotated[
        bool, o.option("--emit", help="Print the record's missing field about correlation, as YAML.")
    ] = False,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Compute what the guarantee of a published system is worth over time, from its record.

    Options and the section `deployment` of the project file give what a record does not: the secret, the correlation, the
    number of steps, and how the unit of the guarantee maps to a change of state. The card lists every assumption.
    """
    given = o.given(context).settings.deployment
    places = output or []
    for place in places:
        suffix_of(place, (".png", ".svg", ".html"), "--output")
    require_places(*places, reads=(record if record.is_file() else None, given.correlation))
    refuse(
        (
            given.stays is not None and given.correlation is not None,
            InputError("expected either --stays or --correlation, got both"),
        ),
        (emit and as_json, InputError("expected either --emit (YAML) or --json, got both")),
        (
            record.is_dir() and (emit or bool(places)),
            InputError(f"--emit and --output are about one record, but {record} is a folder: give one file"),
        ),
    )
    terms = given.model_dump(exclude_unset=True, exclude={"correlation"})
    if given.correlation is not None:
        terms |= {"correlation": _known(given.correlation), "correlation_name": given.correlation.name}
    asked = Assumptions(**terms)
    if record.is_dir():
        _folder(record, asked, as_json)
        return
    with working("accounting"):
        card = Deployment.load(record).card(asked)
    with working("drawing", writes=True):
        for place in places:
            if place.suffix.lower() == ".html":
                write_text(place, render_card(card))
            else:
                save_figure(card_figure(card), place)
    if emit:
        say_text(registry_yaml(card))
        return
    answer(as_json, document=card.to_dict, show=partial(_show, card, places))


def _show(card: DeploymentCard, places: list[Path]) -> None:
    """Print the card, limits first, and the files that it was written to."""
    found = card.leakage
    console.print(heading(card), style="bold", markup=False)
    _sentences("Limits", card.explained("limits"))
    _sentences("Result" if found is None else "Leakage over time", card.explained("answers"))
    kinds = [
        {
            "guarantee": ("> " if kind == card.protected else "  ") + kind.wording.label,
            "leakage (nats)": upper(leakage) if kind.is_temporal or math.isfinite(leakage) else "not known",
            "odds change by": factor(leakage) if kind.is_temporal or math.isfinite(leakage) else "-",
            "observers": kind.wording.observers,
        }
        for kind, leakage in card.by_guarantee.items()
    ]
    listing(kinds, f"Worth at most, over {card.horizon} {card.period}s", left=("guarantee", "observers"))
    console.print()
    title = f"{INFINITE_HORIZON.capitalize()}, by the probability that the state stays the same"
    rows = [
        {"stays": f"{p:g}", "leakage (nats)": upper(leakage), "odds change by at most": factor(leakage)}
        for p, leakage in zip(card.stays, card.over_time, strict=True)
    ]
    listing(rows, title, boxed=True, bold=None if found is None else card.stays.index(found.at))
    _sentences("Assumptions", card.explained("assumptions"))
    _sentences("Suggested message to the publisher", card.explained("to_publisher"))
    for place in places:
        say_written(card=place)


def _sentences(title: str, sentences: tuple[str, ...]) -> None:
    if sentences:
        facts(title, [("-", sentence) for sentence in sentences])
        console.print()


def _folder(folder: Path, asked: Assumptions, as_json: bool) -> None:
    """Print one row for each record; records that cannot be read are listed."""
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".yaml", ".yml"} and path.is_file())
    if not files:
        raise MissingFileError(f"expected records (.yaml) in {folder}, but there are none")
    lines: list[DeploymentCard] = []
    unread: list[tuple[str, str]] = []
    with working("accounting"):
        for path in files:
            try:
                lines.append(overview_of(Deployment.load(path), asked))
            except (InputError, MissingFileError) as error:
                unread.append((path.name, str(error).removeprefix(f"{path}: ").removeprefix(f"{path.name}: ")))
    if not lines:
        raise InputError(f"{folder}: expected records, but none could be used; {unread[0][0]}: {unread[0][1]}")
    if as_json:
        say_json(
            {
                "records": [line.row() for line in lines],
                "not_used": [{"file": name, "reason": reason} for name, reason in unread],
                "unit": "nats",
            }
        )
        return
    points = sorted({p for line in lines for p in line.stays})
    title = f"Leakage about one step (nats): {INFINITE_HORIZON}, by the probability that the state stays the same"
    rows = [
        {
            "record": _file(line),
            "promise": line.promise.sentence,
            **{f"{p:g}": upper(line.suprema[p].limit.temporal) if p in line.suprema else "-" for p in points},
            "": line.remark,
        }
        for line in lines
    ]
    listing(rows, title, left=("record", "promise", ""))
    listed = [(_file(line), line.misfit.sentence) for line in lines if line.misfit is not None] + unread
    if listed:
        console.print()
        facts("Without a number", listed)
    console.print(
        f"\n{INFERENCE_ONLY} Assumptions about a record: temporaldp deployment RECORD.",
        markup=False,
    )
    warn(*(f"{name} could not be used; the reason is below the table" for name, _ in unread))


def _file(line: DeploymentCard) -> str:
    return line.deployment.source.removesuffix(".yaml") or line.deployment.name


def _known(path: Path) -> Adversary:
    """Both directions: as the file has them, or those of the stationary chain of a forward matrix."""
    if path.suffix.lower() == ".json":
        return load_correlation(path)
    forward = load_matrix(path)
    return Adversary.from_forward(forward, initial=forward.stationary_distribution())
