"""`temporaldp deployment`: what is the promise of a published system worth over time?"""

from __future__ import annotations

import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from temporaldp import (
    Adversary,
    Deployment,
    DeploymentCard,
    InputError,
    MissingFileError,
    load_correlation,
    load_matrix,
)
from temporaldp.cli import options as o
from temporaldp.cli.render import console, facts, say_json, warn, working
from temporaldp.deployment.card import Overview, overview_of
from temporaldp.deployment.figure import card_figure
from temporaldp.deployment.page import write_card
from temporaldp.deployment.question import STATES, STAYS, Question
from temporaldp.deployment.registry_field import registry_yaml
from temporaldp.files.atomic import brief, require_writable
from temporaldp.report.style import figure_suffix, save_figure
from temporaldp.report.words import factor, number

MOST_RECORDS = 2_000
"""Files of a folder; more are no records that somebody put there to be read at once."""


class Units(StrEnum):
    """How many promised units a change of value is."""

    REPLACE_ONE = "replace-one"
    ADD_OR_REMOVE = "add-or-remove"
    BINARY_COUNT = "binary-count"
    CATEGORY_HISTOGRAM = "category-histogram"


class Steps(StrEnum):
    """Length of a step."""

    HOUR = "hour"
    QUARTER_DAY = "quarter-day"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


def deployment(
    record: Annotated[
        Path,
        typer.Argument(
            metavar="RECORD",
            help="A record of the deployments registry (.yaml), or a folder of them.",
            show_default=False,
        ),
    ],
    states: Annotated[
        str, typer.Option("--states", metavar="A,B", help="The secret: which values a step can have.")
    ] = ",".join(STATES),
    stays: Annotated[
        str | None,
        typer.Option(
            "--stays",
            metavar="FROM:TO",
            help="Range of the probability that a value stays from one step to the next; "
            f"{STAYS[0]:g}:{STAYS[1]:g} unless given.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        float | None,
        typer.Option(
            "--at",
            metavar="P",
            help="Of the range, the probability that the answer in words is about; 0.9, or else the range's worse end.",
            show_default=False,
        ),
    ] = None,
    correlation: Annotated[
        Path | None,
        typer.Option(
            "--correlation",
            help="Instead of --stays: a forward transition matrix (.csv, .json), or a correlation of both directions (.npz).",
            show_default=False,
        ),
    ] = None,
    horizon: Annotated[
        int | None,
        typer.Option("--horizon", metavar="T", help="Number of steps; a year's unless given.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DATE", help="Instead: steps from this day on.", show_default=False),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="DATE", help="With --since: up to this day; today unless given.", show_default=False
        ),
    ] = None,
    unit: Annotated[
        Units | None,
        typer.Option(
            "--unit",
            help="How many promised units a change of value is; by the record and the number of values unless given.",
            show_default=False,
        ),
    ] = None,
    absent: Annotated[
        str | None,
        typer.Option(
            "--absent",
            metavar="NAME",
            help="The value at which a person contributes nothing (add-or-remove).",
            show_default=False,
        ),
    ] = None,
    contributions: Annotated[
        int | None,
        typer.Option(
            "--contributions",
            metavar="N",
            help="The promise is for one contribution, and a step holds at most N.",
            show_default=False,
        ),
    ] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            "--tables",
            metavar="NAME=E,...",
            help="The tables or levels that the value enters: their epsilons add up, in place of the record's.",
            show_default=False,
        ),
    ] = None,
    delta: o.DeltaOption = None,
    every: Annotated[
        Steps | None,
        typer.Option("--every", help="Length of a step, where the record does not say it.", show_default=False),
    ] = None,
    fresh_noise: Annotated[
        bool, typer.Option("--fresh-noise", help="Noise drawn on devices is known to be drawn anew at every step.")
    ] = False,
    png: Annotated[Path | None, typer.Option("--png", help="Draw the card (.png).", show_default=False)] = None,
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw the card (.svg).", show_default=False)] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the card as one self-contained page.", show_default=False)
    ] = None,
    emit: Annotated[
        bool,
        typer.Option("--emit", help="Print the field that a record would need about correlation, as YAML, and stop."),
    ] = False,
    as_json: o.JsonOption = False,
) -> None:
    """What is a published promise worth over time, to people whose steps resemble each other? From its record alone.

    RECORD says what is promised, about which unit, and how often. The options say what it cannot: the secret, the correlation,
    how many steps, and how the unit maps to a change of one step's value. The card names all that was assumed.
    """
    _require_places(record, correlation, png, svg, html)
    if stays is not None and correlation is not None:
        raise InputError("expected either --stays or --correlation, got both")
    if emit and as_json:
        raise InputError("expected either --emit (YAML) or --json, got both")
    asked = Question(
        states=tuple(name.strip() for name in states.split(",")),
        stays=STAYS if stays is None else _range(stays),
        correlation=None if correlation is None else _known(correlation),
        correlation_name="" if correlation is None else correlation.name,
        at=at,
        horizon=horizon,
        since=_day(since, "--since"),
        until=_day(until, "--until"),
        unit=None if unit is None else unit.value,
        absent=absent,
        contributions=contributions,
        tables=None if tables is None else _tables(tables),
        delta=delta,
        every=None if every is None else every.value,
        fresh_noise=fresh_noise,
    )
    if record.is_dir():
        if emit or png is not None or svg is not None or html is not None:
            raise InputError(
                f"--emit, --png, --svg and --html are about one record, but {record} is a folder: give one file"
            )
        _folder(record, asked, as_json)
        return
    loaded = Deployment.load(record)
    with working("accounting"):
        card = loaded.card(asked)
    if emit:
        typer.echo(registry_yaml(card), nl=False)
    with working("drawing", writes=True):
        for place in (png, svg):
            if place is not None:
                save_figure(card_figure(card), place)
        if html is not None:
            write_card(card, html)
    if as_json:
        say_json(card.to_dict())
    elif not emit:
        show_card(card)
        for place in (png, svg, html):
            if place is not None:
                console.print(f"card written to {place}", soft_wrap=True, markup=False)


def show_card(card: DeploymentCard) -> None:
    """The card for people: limits first."""
    record, found = card.deployment, card.leakage
    who = ", ".join(record.curators)
    console.print(record.name + (f" ({who})" if who else ""), style="bold", markup=False)
    _listing("What this is not", card.limits)
    if found is None:
        _listing("Answer", card.sentences)
    else:
        _listing("What the promise is worth over time", card.sentences)
        table = Table(title="For ever, by the probability that a value stays", title_justify="left", title_style="bold")
        for name in ("stays", "leaks (nats)", "odds, at most times"):
            table.add_column(name, justify="right")
        for p, leak in zip(found.stays, found.lasting, strict=True):
            shown = "without bound" if leak == float("inf") else number(leak, up=True)
            table.add_row(f"{p:g}", shown, factor(leak), style="bold" if p == found.at else None)
        console.print(table)
    if card.assumptions:
        _listing("Assumed", card.assumptions)
    if card.to_publisher:
        _listing("What one could write to the publisher", (card.to_publisher,))


def _listing(title: str, sentences: tuple[str, ...]) -> None:
    facts(title, [("-", sentence) for sentence in sentences])
    console.print()


def _folder(folder: Path, asked: Question, as_json: bool) -> None:
    """A line for each record; whatever cannot be read is named, and the rest goes on."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix.lower() in {".yaml", ".yml"} and path.is_file())
    except OSError as error:
        raise InputError(f"{folder}: expected a folder of records, but it cannot be read: {brief(error)}") from None
    if not files:
        raise MissingFileError(f"expected records (.yaml) in {folder}, but there are none")
    if len(files) > MOST_RECORDS:
        raise InputError(f"expected at most {MOST_RECORDS} records in {folder}, got {len(files)}")
    lines: list[Overview] = []
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
        named = [{"file": name, "reason": reason} for name, reason in unread]
        say_json({"records": [line.to_dict() for line in lines], "not_used": named, "unit": "nats"})
        return
    _show_folder(lines, unread)


def _show_folder(lines: list[Overview], unread: list[tuple[str, str]]) -> None:
    points = sorted({p for line in lines for p in line.stays})
    title = "Leakage about one step for ever (nats), by the probability that a value stays"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name, most in (("record", 26), ("epsilon (delta)", 16)):
        table.add_column(name, no_wrap=True, overflow="ellipsis", max_width=most)
    for p in points:
        table.add_column(f"{p:g}", justify="right", no_wrap=True, min_width=6)
    table.add_column("", no_wrap=True, overflow="ellipsis")
    for line in lines:
        known = dict(zip(line.stays, line.lasting, strict=True))
        cells = [number(known[p], up=True).replace("inf", "no bound") if p in known else "-" for p in points]
        kind = f"at most, delta {line.delta:g}" if line.delta else "exact" if line.exact else "at most"
        told = kind if line.misfit is None else line.misfit.brief
        table.add_row(
            escape(_file(line)),
            line.promise.brief,
            *cells,
            escape(told),
        )
    console.print(table)
    listed = [(_file(line), line.misfit.sentence) for line in lines if line.misfit is not None] + unread
    if listed:
        console.print()
        facts("Without a number", listed)
    console.print(
        "\nBounds on inference under a correlation that is assumed; no break of anybody's differential privacy. What is "
        "assumed of a record: temporaldp deployment RECORD.",
        markup=False,
    )
    for name, _ in unread:
        warn(f"{name} could not be used; the reason stands below the table")


def _file(line: Overview) -> str:
    return line.deployment.source.removesuffix(".yaml") or line.deployment.name


def _require_places(
    record: Path, correlation: Path | None, png: Path | None, svg: Path | None, html: Path | None
) -> None:
    for place, suffix, option in ((png, ".png", "--png"), (svg, ".svg", "--svg")):
        if place is not None and figure_suffix(place) != suffix:
            raise InputError(f"expected a file ending in {suffix} for {option}, got {str(place)!r}")
    for place in (png, svg, html):
        if place is not None:
            require_writable(place, reads=(record if record.is_file() else None, correlation))


def _range(text: str) -> tuple[float, float]:
    """FROM:TO, or one probability."""
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in {1, 2} or any(number != number for number in numbers):  # noqa: PLR0124  nan differs from itself
        raise InputError(f"expected --stays FROM:TO, two probabilities such as 0.5:0.99, got {text!r}")
    return numbers[0], numbers[-1]


def _known(path: Path) -> Adversary:
    """Both directions: as the file has them, or those of the stationary chain of a forward matrix."""
    if path.suffix.lower() == ".npz":
        return load_correlation(path)
    forward = load_matrix(path)
    return Adversary.from_forward(forward, initial=forward.stationary_distribution())


def _day(text: str | None, option: str) -> datetime.date | None:
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise InputError(f"expected a date such as 2020-01-31 for {option}, got {text!r}") from None


def _tables(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            epsilon = float(value)
        except ValueError:
            raise InputError(
                f"expected --tables NAME=EPSILON,..., such as country=0.11,county=0.22, got {part!r}"
            ) from None
        if not name.strip() or name.strip() in found:
            raise InputError(f"expected every table of --tables once, by a name, got {part!r}")
        found[name.strip()] = epsilon
    return found
