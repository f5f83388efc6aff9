"""`temporaldp ledger share`: one account for several tables about the same people, each published by a job of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from temporaldp import DiscreteLaplaceHistogram, InputError, TemporalAccountant, estimate_adversaries
from temporaldp.apps.cli import options as o
from temporaldp.apps.cli.console import console, warn
from temporaldp.apps.cli.render import facts, say_json, working
from temporaldp.base.errors import OutputError
from temporaldp.base.values import refuse
from temporaldp.core.correlation import independent_adversary
from temporaldp.data.tables import Traces, joint_trajectories
from temporaldp.publish.project.estimates import estimated_from
from temporaldp.publish.project.inputs import read
from temporaldp.publish.project.recipe import note_recipe, recipe_of
from temporaldp.publish.project.settings import CorrelationSettings
from temporaldp.publish.release import SharedRelease
from temporaldp.publish.release.ledger import Ledger, configuration_at
from temporaldp.publish.report.sentences import NOT_SUSTAINABLE, guarantee_line, sustainable

NOT_COMPARED = (
    "the histories of the account were not compared with its tables: that none is the protected table itself is for the "
    "publisher to ensure"
)


def share(
    context: typer.Context,
    ledger: o.LedgerArgument = None,
    alpha: o.AlphaOption = None,
    tables: Annotated[
        list[str] | None,
        o.option("--table", help="A table, and past traces of it; once for each table.", metavar="NAME=HISTORY"),
    ] = None,
    shares: Annotated[
        str | None,
        o.option(
            "--shares",
            key="release.shares",
            help="Share of a step's budget for each table (default: equal).",
            metavar="NAME=SHARE,...",
        ),
    ] = None,
    independent: Annotated[
        bool,
        o.option(
            "--independent",
            help="Assume that the tables are independent, instead of estimating their joint correlation. If they are not, "
            "leakage is underestimated.",
        ),
    ] = False,
    begin_anew: o.BeginAnewOption = False,
    as_json: o.JsonOption = False,
    project: o.ProjectOption = None,
    assignments: o.SetOption = None,
) -> None:
    """Create a shared account: several tables about the same users whose leakage together satisfies alpha.

    Each job then publishes its table: `temporaldp release DATA --ledger LEDGER --set release.table=NAME -o FILE`.
    """
    settings = o.given(context).settings
    place, level, prior = o.ledger_of(settings), settings.privacy.alpha, settings.correlation.prior
    if level is None:
        raise InputError("expected --alpha A, the level for all tables together, in nats")
    if settings.privacy.guarantee != "temporal" or settings.privacy.delta is not None:
        raise InputError(
            "an account of several tables is of the temporal level with delta = 0: leave out guarantee and delta"
        )
    privacy, others = settings.privacy, settings.correlation != CorrelationSettings(prior=prior)
    if others or privacy.horizon is not None or privacy.renew is not None or privacy.bound == "paper":
        raise InputError(
            "an account of several tables is of first order, estimated from the histories (correlation.prior alone), by the "
            "exact leakage, for any number of steps: leave out other keys of correlation, and privacy.horizon, renew and bound"
        )
    histories = _histories(tables or [])
    parts = _shares(settings.release.shares, list(histories))
    if configuration_at(place) is not None:
        with Ledger(place) as known:
            if len(known):
                raise OutputError(
                    f"the ledger has {len(known)} steps already: an account begins with a ledger of its own. What that one "
                    "spent about the same people is not counted in it, and both add up"
                )
    past = {name: read(settings.traces.model_copy(update={"path": Path(path)})) for name, path in histories.items()}
    step = _one_step(past)
    with working("learning correlations"):
        if independent:
            everyone = independent_adversary(*(next(estimate_adversaries(one, prior=prior)) for one in past.values()))
        else:
            everyone = next(estimate_adversaries(joint_trajectories(*past.values()), prior=prior))
    with working("what every step can spend"):
        accountant = TemporalAccountant(everyone, alpha=level)
        kept = accountant.reserve
    first, states = next(iter(past)), {name: one.states for name, one in past.items()}
    with SharedRelease(
        first,
        DiscreteLaplaceHistogram(len(states[first])),
        shares=parts,
        ledger=place,
        accountant=accountant,
        step=step,
        states=states,
        begin_anew=begin_anew,
    ) as made:
        names = ", ".join(Path(place).name for place in histories.values())
        learnt = estimated_from(f"other traces ({names})", CorrelationSettings(prior=prior))
        provenance = replace(learnt, warning=NOT_COMPARED)
        note_recipe(
            made.ledger,
            recipe_of("temporaldp ledger share LEDGER", settings, provenance, *map(Path, histories.values())),
        )
        with made.ledger.writing() as writer:
            writer.begin_anew()
        head, where = made.ledger.head, made.ledger.place
    warn(NOT_SUSTAINABLE if kept == 0.0 else None, NOT_COMPARED)
    if as_json:
        say_json(
            {"ledger": where, "alpha": level, "reserve": kept, "shares": parts, "states": states, "step": step, "head": head,
             "independent": independent, "unit": "nats"}
        )  # fmt: skip
        return
    how = (
        "assumed to be independent of one another"
        if independent
        else f"estimated jointly, from the people in all histories; {len(everyone.states or ())} combinations occur there, and "
        "all others are assumed to be impossible"
    )
    rows = [
        ("ledger", where),
        ("guarantee", guarantee_line(level, 0.0, None, provenance) + ", of all tables together"),
        *((f"table {name}", f"{100.0 * parts[name]:g} % of every step, {len(states[name])} states") for name in parts),
        ("values", how),
        sustainable(kept),
        ("head", head),
    ]
    facts("Account", rows)
    console.print(
        "Publish each table with `temporaldp release DATA --ledger LEDGER --set release.table=NAME -o FILE`.",
        style="dim",
    )


def _histories(tables: list[str]) -> dict[str, str]:
    """History of each table, from NAME=HISTORY."""
    found = {name.strip(): history.strip() for name, _, history in (one.partition("=") for one in tables)}
    refuse(
        (
            not all(name and history for name, history in found.items()),
            InputError(f"expected --table NAME=HISTORY, got {', '.join(tables)}"),
        ),
        (
            len(found) < max(len(tables), 2),
            InputError(f"expected two tables or more with names of their own, got {', '.join(tables) or 'none'}"),
        ),
    )
    return found


def _shares(given: dict[str, float] | None, names: list[str]) -> dict[str, float]:
    """Share of each table, in the order of the tables."""
    shares = dict.fromkeys(names, 1.0 / len(names)) if given is None else given
    total = sum(shares.values())
    refuse(
        (
            set(shares) != set(names),
            InputError(f"expected --shares for {', '.join(names)}, got some for {', '.join(shares)}"),
        ),
        (
            total > 1.0 + 1e-9,  # as they are typed
            InputError(f"expected --shares of at most 1 together, got {total:g}: lower one of them"),
        ),
    )
    return {name: shares[name] / max(total, 1.0) for name in names}


def _one_step(past: Mapping[str, Traces]) -> str | None:
    """Length of one step in all histories."""
    lengths = {name: one.step for name, one in past.items() if one.step is not None}
    if len(set(lengths.values())) > 1:
        raise InputError(
            "one step must be as long in all histories, as all tables are charged together; got "
            f"{', '.join(f'{name} {length}' for name, length in lengths.items())}"
        )
    return next(iter(lengths.values()), None)
