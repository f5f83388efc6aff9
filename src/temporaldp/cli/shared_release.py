"""`temporaldp release` with `release.table`: one table of a shared account, as its job publishes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from temporaldp import InputError, ReleasedHistograms, save_released
from temporaldp.cli.earlier_output import is_earlier, refuse_existing
from temporaldp.cli.operation import ledger_facts, nearly_used, other_data, say_forecast, trial_place
from temporaldp.cli.released import ledger_document, ledger_rows, say_counts
from temporaldp.cli.render import warn, working
from temporaldp.correlation import Traces
from temporaldp.correlation.states import require_same_states
from temporaldp.planning.histogram_noise import laplace_scales
from temporaldp.project.inputs import read_data
from temporaldp.release import SharedRelease, consistent_counts
from temporaldp.release.histograms import gap_before, require_same_step
from temporaldp.release.store import Store, heading_at
from temporaldp.report.sentences import steps

if TYPE_CHECKING:
    from temporaldp.project.settings import Settings

OF_ALL = ", of all tables together"


def release_table(
    settings: Settings, output: Path, line: dict[str, Any], *, dry_run: bool, overwrite: bool, as_json: bool
) -> None:
    """Publish one table of an account, or report what that would do; `line` is the line of the log."""
    asked = settings.release
    assert asked.ledger is not None
    if dry_run:
        with trial_place(asked.ledger) as place, _opened(settings, place) as shared:
            _forecast(shared, _data_of(shared, settings), as_json)
        return
    with _opened(settings, asked.ledger) as shared:
        is_first = not shared.n_published
        data = _data_of(shared, settings)
        shared.refresh()
        refuse_existing(
            output,
            overwrite or is_earlier(output, lambda time: shared.published(time) if shared.has(time) else None, data),
        )
        before, gap = len(shared.ledger), gap_before(data, shared.stream)
        shared.stream.require_next([time for time in data.times if not shared.stream.has(time)])
        again = [time for time in data.times if shared.has(time)]
        with working("drawing noise", stored=shared.ledger):
            released = _released(shared, data, asked.consistent)
        save_released(released, output, **settings.traces.own_names)
        line |= {"table": asked.table, "new_tables": data.n_times - len(again), **ledger_facts(shared.stream)}
        line |= {"new_steps": len(shared.ledger) - before}
        warn(gap)
        warn(other_data(shared, data, data.times))
        warn(nearly_used(shared.stream, asked.warn_at))
        say_counts(
            released,
            data,
            output,
            as_json,
            is_first=is_first,
            document=ledger_document(shared.stream, before) | {"table": shared.table},
            rows=(
                ("table", f"{shared.table}, whose share of every step is {shared.share:g}"),
                *ledger_rows(shared.stream, before, OF_ALL),
            ),
        )


def refuse_account(ledger: str) -> None:
    """`InputError` where a ledger is an account of several tables, and no table was named."""
    heading = heading_at(ledger)
    tables = json.loads(heading.configuration).get("tables") if heading is not None else None
    if tables:
        raise InputError(
            f"the ledger is an account of several tables, {', '.join(sorted(tables))}: name the one that this job publishes "
            "(--set release.table=NAME). The account has the level and the correlation"
        )


def _opened(settings: Settings, place: str | Store) -> SharedRelease:
    asked = settings.release
    assert asked.table is not None
    shared = SharedRelease.of(asked.table, place)
    if asked.head is not None:
        shared.ledger.verify(head=asked.head)
    return shared


def _data_of(shared: SharedRelease, settings: Settings) -> Traces:
    """The data of a table, with the states of the account."""
    data = read_data(settings.traces, shared.states)
    assert shared.states is not None
    require_same_states(shared.states, data.states, what="the data (the account is about others)")
    require_same_step(shared.stream.step, data.step, what="account")
    return data


def _released(shared: SharedRelease, data: Traces, consistent: bool) -> ReleasedHistograms:
    """The table at all times of the data: as it was, or drawn now."""
    truth = data.histogram()
    counts = np.stack([shared.release(row, time=time) for row, time in zip(truth, data.times, strict=True)])
    if consistent:  # the number of people is public, and taken from the data at hand
        counts = np.stack(
            [consistent_counts(row, total=int(all_.sum())) for row, all_ in zip(counts, truth, strict=True)]
        )
    spent = np.array([shared.spent(time) for time in data.times])
    guard = shared.stream.guard
    times = tuple(shared.stream.row(time).time for time in data.times)
    return ReleasedHistograms(
        counts, spent, laplace_scales(spent), data.states, times, guard.alpha, consistent, accounting=guard.accounting
    )


def _forecast(shared: SharedRelease, data: Traces, as_json: bool) -> None:
    """Report the new steps of a table, of which other tables' jobs may have charged some already."""
    charged = [time for time in data.times if shared.stream.has(time) and not shared.has(time)]
    found = shared.forecast(data.times)
    rows = [
        ("nothing was drawn", f"this is what a release of {shared.table} would do"),
        ("published already", f"{steps(data.n_times - len(found))} of these data, which would be given again"),
        ("charged already", f"{steps(len(charged))}, by another table's job: they leak no more"),
        ("new to all tables", steps(len(found) - len(charged))),
    ]
    document = {"table": shared.table, "new": len(found), "charged_already": len(charged)}
    say_forecast(shared.stream, found, as_json, document=document, rows=rows, of=OF_ALL)
