"""A project file proposed for a table: which columns are user, time and state, and how the times are spaced."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from temporaldp.base.errors import InputError
from temporaldp.base.names import in_order, listed
from temporaldp.core.correlation import Adversary, Provenance
from temporaldp.core.planning import Guarantee
from temporaldp.data.smoothing import GuaranteeComparison, PublicCorrelation, compare_guarantees
from temporaldp.data.tables import Traces, estimate_models
from temporaldp.data.tables.moments import moment, steps_between
from temporaldp.data.tables.trace_table import TraceTable
from temporaldp.data.tables.traces import shared_people
from temporaldp.lab.studies.refinements import ModelChoice, chosen_models
from temporaldp.publish.project.document import DEFAULT_FILE
from temporaldp.publish.project.looking import MAX_STATES, Looked, look
from temporaldp.publish.project.planning import guarantee_of, past_counts, periods_of_streams
from temporaldp.publish.project.settings import OF_EACH_TABLE, Settings
from temporaldp.publish.report.sentences import observers

MOST_PHASES = 48
"""Steps of a day up to which the time of day is tested."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A proposed project file, what its owner must decide, the next command, and whether the table can be read with it."""

    text: str
    questions: list[str]
    next_step: str
    is_readable: bool = True


def propose(
    table: Path,
    history: Path | None,
    output: Path = DEFAULT_FILE,
    given: Mapping[str, dict[str, Any]] | None = None,
    *,
    stream: bool = False,
) -> Proposal:
    """Propose a project file for a table.

    Parameters
    ----------
    table, history : path
    output : path
        Where the file will be: paths in it are relative to its folder.
    given : mapping, optional
        Keys that are known, by section; those of the traces are also for the history.
    stream : bool
        Whether later steps follow, however finished the table looks.

    Raises
    ------
    MissingFileError, TraceError, StateError
        The table cannot be read, or its columns have names that are repeated or not printable.
    """
    given = given or {}
    known = dict(given.get("traces", {}))
    traces = look(table, known)
    past = None
    if history is not None:
        of_past = {key: value for key, value in known.items() if key != "where"} | given.get("history", {})
        past = look(history, of_past, every=traces.settings.get("every"))
    if stream and traces.settings.get("layout") == "long":
        traces.settings.setdefault("sort", True)  # late rows are added at the end of a file that grows
    is_listed = {"states", "states_from"} & traces.settings.keys()
    if traces.traces is not None and traces.traces.n_states <= MAX_STATES and not is_listed:
        _ask_about_states(traces, traces.traces, history)
    if past is not None and past.traces is not None and traces.traces is not None:
        _compare(traces, traces.traces, past.traces)
    questions = [f"{table.name}: {one}" for one in traces.questions]
    for looked in filter(None, (traces, past)):
        if "states_from" in looked.settings:
            looked.settings["states_from"] = os.path.relpath(looked.settings["states_from"], output.parent)
    traces.settings = {"path": os.path.relpath(table, output.parent), **traces.settings}
    where = "" if output == DEFAULT_FILE else f" --project {shlex.quote(str(output))}"
    publication = _publication(traces, past, questions, given, stream)
    if past is not None and history is not None:
        own = {key: v for key, v in past.settings.items() if key in OF_EACH_TABLE or traces.settings.get(key) != v}
        past.settings = {"path": os.path.relpath(history, output.parent), **own}
    if traces.traces is None:
        again = f"temporaldp init {shlex.quote(str(table))} --set traces.KEY=VALUE --overwrite"
        next_step = f"{again}, with what the questions above ask for"
        return Proposal(_text(traces, past, publication), questions, next_step, is_readable=False)
    if past is None or history is None:
        again = "" if output == DEFAULT_FILE else f" --output {shlex.quote(str(output))}"
        later = f"temporaldp init {shlex.quote(str(table))} --history OTHER_TABLE --overwrite{again}"
        shorter = f"temporaldp plan{where}, then temporaldp release{where}"
        needs = f"temporaldp plan{where}; for a temporal level, which needs other traces, {later}"
        next_step = f"{shorter}; for a temporal level, {later}" if publication.is_ready else needs
        return Proposal(_text(traces, None, publication), questions, next_step)
    questions += [f"{history.name}: {one}" for one in past.questions]
    steps = ", then ".join(f"temporaldp {command}{where}" for command in ("plan", "release", "report"))
    return Proposal(_text(traces, past, publication), questions, steps)


@dataclass(frozen=True, slots=True)
class ProposedPublication:
    """A proposed publication: the keys of [privacy], [plan] and [release], those in comments, what to expect, and models."""

    privacy: dict[str, Any]
    plan: dict[str, Any]
    release: dict[str, Any]
    left_out: dict[str, Any]
    facts: list[str]
    is_ready: bool
    models: ModelChoice | None = None
    period: int | None = None


def _publication(
    looked: Looked, past: Looked | None, questions: list[str], given: Mapping[str, dict[str, Any]], stream: bool
) -> ProposedPublication:
    """A publication of all steps of a finished table, or of a stream, with the guarantee and delta that cost least for it."""
    traces, history = looked.traces, None if past is None else past.traces
    privacy: dict[str, Any] = {"alpha": 1.0, "epsilon": 0.1} | given.get("privacy", {})
    plan = dict(given.get("plan", {}))
    release: dict[str, Any] = {"ledger": "release.db", "output": "published.csv"} | given.get("release", {})
    if traces is None:
        return ProposedPublication(privacy, plan, release, {"horizon": 96}, [], is_ready=False)
    n_steps, left_out = traces.n_times, dict[str, Any]()
    if traces.absence is not None and "population" not in release:
        release["population"] = traces.n_users
        questions.append(
            f"is it public that these are {traces.n_users} people, the absent included? If others may come later, give a "
            "larger number: --set release.population=N"
        )
    if "horizon" in privacy or stream:
        pass
    elif _is_finished(looked, traces):
        privacy["horizon"] = n_steps
        questions.append(
            f"are these {n_steps} steps all that will be published from this table? If later steps follow, --stream: a "
            "stream has the user level within a period only, against the releases of that period (user:365d)"
        )
        if history is not None and looked.settings.get("layout") != "long" and history.n_times == n_steps:
            release["same_start"] = True
            questions.append(
                "does the release begin as the history does, such as a night or a course? Otherwise leave out "
                "release.same_start"
            )
    else:
        left_out["horizon"] = n_steps
        questions.append(f"does the release end? If so, --set privacy.horizon={n_steps}, or another number of steps")
    adversaries, public, choice, period = _correlated(traces, history, begins_alike=bool(release.get("same_start")))
    windows, epochs = ([], []) if "horizon" in privacy else periods_of_streams(traces.step)
    found = compare_guarantees(
        adversaries,
        alphas=privacy["alpha"],
        horizon=privacy.get("horizon"),
        windows=windows,
        epochs=epochs,
        n_people=traces.n_observed,
        n_states=traces.n_states,
        correlation=public,
        past_counts=None if public is None else past_counts(history, public.states),
    )
    if choice is not None:
        found = replace(
            found,
            observers=observers(Provenance("history", "A history.", models=choice.models, left_out=choice.left_out)),
        )
    guarantee, facts = _guaranteed(found, privacy, questions, traces.step)
    if guarantee is None:
        return ProposedPublication(privacy, plan, release, left_out, facts, False, choice, period)
    if public is not None and "horizon" in privacy:
        release["estimates"] = "smoothed"
        terms = guarantee, privacy.get("delta", 0.0)
        gaps = next((row for row in found.rows if row.drawn and (row.guarantee, row.delta) == terms), None)
        if gaps is not None and "draw_every" not in plan:
            plan["draw_every"] = gaps.draw_every
            questions.append(
                f"may counts be {gaps.drawn}, and estimated in between? A change that comes and goes between two draws is not "
                "seen. If not, leave out plan.draw_every: at every step, estimates have a larger error"
            )
    if public is None:
        release.pop("same_start", None)
    is_ready = adversaries is not None or not guarantee.is_temporal
    return ProposedPublication(privacy, plan, release, left_out, facts, is_ready, choice, period)


def _guaranteed(
    found: GuaranteeComparison, privacy: dict[str, Any], questions: list[str], step: str | None
) -> tuple[Guarantee | None, list[str]]:
    """The guarantee that was given, or else the one that is advised, written into the keys; None without either."""
    best, facts = found.advised, [found.advice]
    if best is not None and (best.plan is None or best.guarantee.kind == "window"):  # not for observers who know habits
        best = None
    if "guarantee" not in privacy:
        if best is None:
            return None, facts
        privacy["guarantee"] = str(best.guarantee)
        if best.delta:
            privacy.setdefault("delta", best.delta)
        return best.guarantee, facts
    wanted = guarantee_of(Settings.model_validate({"privacy": dict(privacy)}), step)
    if best is None or best.guarantee != wanted:
        facts = [f"The guarantee {privacy['guarantee']} was given. The advice is another one: {found.advice}"]
        questions.append(f"is {privacy['guarantee']} wanted? The advice is another guarantee: {found.advice}")
    return wanted, facts


def _correlated(
    traces: TraceTable, history: TraceTable | None, *, begins_alike: bool
) -> tuple[dict[str, Adversary] | None, PublicCorrelation | None, ModelChoice | None, int | None]:
    """Models of a history of other people with the same states; the first of them for smoothing, the choice, and the period."""
    if history is None or set(history.states) != set(traces.states):
        return None, None, None, None
    with suppress(InputError):  # where it is too short
        if not shared_people(history, traces).n_observed:  # a comparison by protected states would reveal some of them
            period = _steps_of_a_day(history)
            choice = chosen_models(history, period=period)
            period = period if any(name.startswith("time of day") for name in choice.models) else None
            adversaries = estimate_models(history, choice.models, period=period, phase=0)
            initial = history.histogram()[0] if begins_alike else None
            return (
                adversaries,
                PublicCorrelation.of(adversaries["first order"], "a history", initial=initial),
                choice,
                period,
            )
    return None, None, None, None


def _steps_of_a_day(history: Traces) -> int | None:
    """Steps after which the clock repeats, where the history has two days of few of them; None elsewhere."""
    steps = None if history.step is None else steps_between(history.step, "2024-01-01", "2024-01-02")
    is_clock = steps is not None and steps == int(steps) and 2 <= steps <= MOST_PHASES and history.n_times >= 2 * steps
    return int(steps) if steps is not None and is_clock else None


def _is_finished(looked: Looked, traces: Traces) -> bool:
    """Whether no later step is to be expected: columns or sequences, or times whose last step is over long ago."""
    if looked.settings.get("layout") != "long" or moment(traces.times[-1]).clock is None:
        return True
    days = steps_between("86400 seconds", traces.times[-1][:10], datetime.now(UTC).date().isoformat())
    return days is None or days > 7.0  # a table of a running release ends not long ago


def _ask_about_states(looked: Looked, traces: Traces, history: Path | None) -> None:
    """The list of states in a comment: states that were read from a protected table are not public because of that."""
    spelled: dict[str, list[str]] = {}
    for state in traces.states:
        spelled.setdefault(re.sub(r"[\W_]", "", state).casefold(), []).append(state)
    for same in (states for letters, states in spelled.items() if letters and len(states) > 1):
        looked.questions.append(f"are {listed(same)} one state? If so, map them to one (traces.states_from = FILE)")
    looked.left_out["states"] = list(traces.states)
    looked.facts.append("The states below were read from this protected table: remove the # if they are public.")
    until = "taken from the protected table, outside of the guarantee" if history is None else f"that of {history.name}"
    complete = "complete the list and remove the # before states"
    if len(traces.states) <= 8 and not any("," in state for state in traces.states):
        complete = f"--set traces.states={shlex.quote(','.join(traces.states))}, with those that are missing"
    looked.questions.append(
        f"are its states public, that is, known without looking at the table ({listed(traces.states)})? If so, {complete}; "
        f"until then the list is {until}"
    )


def _compare(looked: Looked, traces: Traces, past: Traces) -> None:
    """Ask about states and steps of the protected traces that a history does not have."""
    if lacking := in_order(set(traces.states) - set(past.states)):
        looked.questions.append(
            f"the history is never in {listed(lacking)}: give a longer one, or list all states (traces.states) with a prior "
            "(correlation.prior = 1)"
        )
    if None not in (traces.step, past.step) and traces.step != past.step:
        looked.questions.append(
            f"one step is {traces.step}, but {past.step} in the history: a correlation needs steps of one length"
        )


def _text(traces: Looked, past: Looked | None, publication: ProposedPublication) -> str:
    """The file, each key with its meaning."""
    history = [
        "# The temporal level needs a correlation from other traces than those that are protected:",
        "# [history]",
        '# path = ""',
        "",
    ]
    return "\n".join(
        [
            "# The settings of this release; docs/project-file.md lists every key.",
            "",
            *_section("traces", traces.settings, facts=traces.facts, left_out=traces.left_out),
            *(
                history
                if past is None
                else _section("history", past.settings, facts=past.facts, left_out=past.left_out)
            ),
            *([] if publication.models is None else _correlation(publication.models, publication.period)),
            *_section("privacy", publication.privacy, facts=publication.facts, left_out=publication.left_out),
            *(_section("plan", publication.plan) if publication.plan else []),
            *_section("release", publication.release),
            *_section("report", {"output": "report.html"}),
        ]
    )


def _correlation(choice: ModelChoice, period: int | None) -> list[str]:
    keys: dict[str, Any] = {"models": choice.models, "left_out": choice.left_out, "period": period}
    keys = {key: value for key, value in keys.items() if value}
    return _section("correlation", keys, facts=choice.reasons)


def _section(
    name: str, keys: dict[str, Any], *, facts: Sequence[str] = (), left_out: Mapping[str, Any] | None = None
) -> list[str]:
    """The lines of a section; keys that are left out stand in comments."""
    given = [_line(name, key, value) for key, value in keys.items()]
    proposed = [_line(name, key, value) for key, value in (left_out or {}).items()]
    return [f"[{name}]", *(f"# {fact}" for fact in facts), *given, *(f"# {line}" for line in proposed), ""]


def _line(section: str, key: str, value: Any) -> str:
    """A key, its value and its meaning."""
    owner: Any = Settings.model_fields[section].annotation
    return f"{key} = {json.dumps(value, ensure_ascii=False)}  # {owner.model_fields[key].description}"
