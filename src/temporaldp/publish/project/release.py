"""A release by its settings: what satisfies the level, the data, and the public correlation for smoothing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from temporaldp.base.errors import InputError, LedgerError, OutputError
from temporaldp.base.names import listed
from temporaldp.base.values import plural, refuse
from temporaldp.core.accounting import PaperBound, TemporalAccountant
from temporaldp.core.correlation import Adversary, Provenance
from temporaldp.core.correlation.provenance import UNSTATED, together
from temporaldp.core.planning import NoisePlan, Plan
from temporaldp.data.counts import ReleasedHistograms, load_released
from temporaldp.data.counts.histogram import brief_histogram, histogram_mechanism
from temporaldp.data.counts.released import COLUMNS, release_suffix
from temporaldp.data.files.atomic import require_writable
from temporaldp.data.files.columns import with_names
from temporaldp.data.files.plans import plan_document
from temporaldp.data.smoothing import PublicCorrelation
from temporaldp.data.tables import Traces
from temporaldp.data.tables.models import ANOTHER_SAMPLE, LONGER_MEMORY
from temporaldp.data.tables.moments import label_of, phase_at
from temporaldp.publish.project.inputs import Inputs, Tables, gather, read_data
from temporaldp.publish.project.planning import given_plan, public_part
from temporaldp.publish.project.planning import planned as planned_by
from temporaldp.publish.project.recipe import note_recipe, recipe_of, recipes_of
from temporaldp.publish.release import ContinualRelease, Ledger, SharedRelease
from temporaldp.publish.release.calendar import Calendar
from temporaldp.publish.release.database import Store, connect, file_of
from temporaldp.publish.release.ledger import configuration_at
from temporaldp.publish.release.shared_account import account_tables
from temporaldp.publish.report import Recipe
from temporaldp.publish.report.sentences import OWN_STATES

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


BOTH_TOGETHER = (
    "what is known about people from both releases together may exceed the level. Only an owner may decide that: "
    "--begin-anew"
)
"""What it means to draw published times again."""


@dataclass(frozen=True, slots=True)
class ReleaseSetup:
    """Guard of the level of a release (a plan, an accountant, or both), the data, and the correlation that smooths counts.

    Parameters
    ----------
    settings : Settings
    plan : Plan or None
        Of given budgets or noise.
    accountant : TemporalAccountant or None
    data : Traces
    provenance : Provenance
        Where the correlation comes from, with the cost of learning that of the plan.
    recipe : Recipe or None
        From what the release is computed, as the ledger notes it; None for a table of an account.
    public : PublicCorrelation or None
        The correlation that smooths the counts, where they are smoothed.
    """

    settings: Settings
    plan: Plan | None
    accountant: TemporalAccountant | None
    data: Traces
    provenance: Provenance
    recipe: Recipe | None
    public: PublicCorrelation | None

    @property
    def source(self) -> Provenance:
        """Where the correlation comes from for which the level holds; counts may be smoothed by another one."""
        return self.provenance if self.plan is None or self.accountant is not None else self.plan.provenance

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before publishing: of the correlations, and of states that the protected table itself determined."""
        found = [
            self.source.warning,
            self.provenance.warning,
            None if self.public is None else self.public.provenance.warning,
        ]
        known, plan = self.settings, self.plan
        # A correlation has states of its own, unless it is a stated range; other guarantees have none, also with a history
        is_alone = not known.has_correlation if plan is None else not plan.guarantee.is_temporal
        of_table = is_alone or "stated" in {self.source.source, self.provenance.source}
        if of_table and not (known.traces.has_domain or known.release.table):
            found.append(OWN_STATES)
        return tuple(dict.fromkeys(filter(None, found)))

    @contextmanager
    def opened(self, ledger: str | Store, *, begin_anew: bool = False) -> Iterator[ContinualRelease[Any, Any]]:
        """Open the release on a ledger, and check that it contains the noted head. No step is written."""
        output = self.settings.release.output
        place = ledger if isinstance(ledger, Store) else Store(connect(ledger), output=output)
        if output is not None:
            place.lacking = partial(_lacking, output, self.settings.release.table)
        with self._stream(place, begin_anew) as stream:
            if self.settings.release.head is not None:
                stream.ledger.verify(head=self.settings.release.head)
            yield stream

    def note(self, ledger: Ledger) -> None:
        """Note in the ledger from what the release is computed, and a plan that was made from the settings, for later runs."""
        if self.recipe is not None:
            noted = [one for _, recipe in recipes_of(ledger) for one in recipe.provenances]
            inputs, history = dict(self.recipe.inputs), self.settings.history.path
            # Earlier steps protected its rows, although the traces of today have none of them
            if history is not None and any(one.source == "protected" for one in noted):
                inputs.pop(history.name, None)
            note_recipe(ledger, replace(self.recipe, inputs=inputs, warnings=self.warnings))
        made = self.plan if self.settings.release.plan is None else None
        if made is not None and not any(event.kind == "plan" for event in ledger.events):
            with ledger.writing() as writer:
                writer.note("plan", by="temporaldp", details=plan_document(made))

    def _stream(self, ledger: Store, begin_anew: bool) -> ContinualRelease[Any, Any]:
        table, n_states, every = self.settings.release.table, self.data.n_states, self.settings.privacy.renew
        if table is not None:
            return SharedRelease.of(table, ledger, begin_anew=begin_anew)
        return ContinualRelease(
            brief_histogram(n_states) if self.plan is None else histogram_mechanism(self.plan, n_states),
            ledger=ledger,
            accountant=self.accountant,
            plan=self.plan,
            states=self.data.states,
            step=self.provenance.step,
            correlation=None if self.settings.release.estimates == "smoothed" else self.public,
            renewed=every,
            timezone=None if every in {None, "steps"} else self.settings.traces.timezone,
            begin_anew=begin_anew,
        )


def published_in(output: Path | None) -> ReleasedHistograms | None:
    """The published counts of a file, where it is there and readable."""
    try:
        return load_released(output) if output is not None and output.is_file() else None
    except InputError:
        return None


def published_times(output: Path) -> tuple[str, ...]:
    """Times of a file of published counts; none if there is no such file, or another one."""
    found = published_in(output)
    return () if found is None else found.times


def named_times(times: Sequence[str]) -> str:
    """The number of times and the first of them."""
    return f"{plural(len(times), 'time')} ({', '.join(times[:3])}{', ...' if len(times) > 3 else ''})"


def _was_published(output: Path) -> bool:
    """Whether a file that cannot be read has the columns of published counts, as one that a spreadsheet saved."""
    with output.open("rb") as file:
        header = file.readline(4096).decode("utf-8", errors="replace")
    return output.suffix == ".parquet" or {"noisy", "scale"} <= set(re.findall(r"\w+", header))


def _lacking(output: Path, table: str | None, ledger: Ledger) -> LedgerError | None:
    """What an output has and its ledger lacks, also times of which a run has no data: their budget is not counted."""
    step_of = Calendar(ledger, ledger.configuration["step"]).position
    own = (event for event in ledger.events if event.kind == "table" and event.by == table)
    has = (
        range(len(ledger))
        if table is None
        else {one["step"] for one in (event.details for event in own) if one["output"]}
    )
    if not has and output.is_file() and published_in(output) is None and _was_published(output):
        return LedgerError(
            f"{output} cannot be read as published counts, of which the ledger {ledger.place} has none: if the one that it was "
            f"published from is lost, what was spent is not counted, and {BOTH_TOGETHER}. If it is something else, move it away"
        )
    lost = [time for time in published_times(output) if step_of(label_of(time)) not in has]
    if not lost:
        return None
    return LedgerError(
        f"{output} has published counts of {named_times(lost)}, which the ledger {ledger.place} lacks. Use the ledger that "
        "they were published from, or another output for another release. If the ledger is lost, what was spent on them is not "
        f"counted, and {BOTH_TOGETHER}"
    )


def setup_of(settings: Settings) -> ReleaseSetup:
    """Return the data of a release and the plan or accountant of its level; without a ledger, only a plan is possible.

    Raises
    ------
    InputError
        The settings give no level, or contradict each other.
    """
    found, asked = _setup(settings), settings.release
    if asked.estimates is None and asked.ledger is not None and found.public is not None:
        begun = configuration_at(asked.ledger)
        # Whether a history is public can change as the traces grow; without a setting, a ledger goes on as it began
        found = found if begun is None or "filter" in begun else replace(found, public=None)
    if found.data.absence is None:  # the number of people who are observed at each step is published
        return found
    if asked.population is not None:
        return replace(found, data=found.data.of_population(asked.population))
    if asked.ledger is not None:
        raise InputError(
            "expected the public number of people, the absent included (--set release.population=N), where absence is a state: "
            "the number of people seen so far, to which the counts of a step add up, would reveal when a person appears. "
            "Leave room for those who come later; people without a row are absent"
        )
    return found


def _setup(settings: Settings) -> ReleaseSetup:
    """The setup, with the people whom the table contains."""
    privacy = settings.privacy
    if settings.release.table is not None:
        return _setup_of_table(settings.release.table, settings)
    planned, made = given_plan(settings), None
    _refuse_contradictions(settings, planned)
    if planned is not None and planned.guarantee.is_temporal:
        _require_models(settings, planned)
    remembers = any(name.startswith(LONGER_MEMORY) for name in settings.correlation.models)
    by_plan_alone = privacy.delta is not None or (remembers and privacy.horizon is not None)
    by_plan_alone = by_plan_alone or settings.plan.draw_every > 1
    if planned is None and (by_plan_alone or privacy.guarantee != "temporal"):
        planned, made = _made_plan(settings)
    ends = privacy.horizon if planned is None else planned.horizon
    # The noise of a plan at a delta is fixed beforehand; a correlation is there to smooth by. An accountant of a clock without
    # end would need the phases of all later steps, and one of a longer memory computes all steps again at each.
    is_alone = settings.release.ledger is None or not settings.has_correlation or isinstance(planned, NoisePlan)
    is_alone = is_alone or (remembers and ends is not None and privacy.renew is None)
    is_alone = is_alone or (planned is not None and not planned.guarantee.is_temporal)
    if is_alone or (settings.correlation.period is not None and ends is None):
        return plan_alone(settings, *(_made_plan(settings) if planned is None else (planned, made)))
    by_plan = privacy.renew and planned and planned.accounting == PaperBound()
    method = privacy.by(privacy.bound or ("paper" if by_plan else "exact"))
    if planned is not None and planned.accounting.is_exact and not method.is_exact:
        raise InputError(
            "the plan satisfies alpha by the exact leakage, which the paper's bound exceeds: leave out privacy.bound = "
            "'paper', or plan with it"
        )
    found = gather(settings, None if planned is None else planned.states, _begun_at(settings))
    if found.trajectories is None:
        read_data(settings.traces)  # raises: a release needs data
    assert found.trajectories is not None
    level = privacy.alpha if planned is None else planned.alpha
    if privacy.renew is not None:
        level, ends = None, None  # the plan satisfies its level within each epoch; the odometer counts all of them
    accountant = TemporalAccountant(found.everyone, alpha=level, horizon=ends, accounting=method)
    known = found.provenance if planned is None else together([found.provenance, planned.provenance])
    recipe = recipe_of("temporaldp release TRACES", settings, found.provenance, plan=planned)
    public = _estimating(settings, lambda: public_part(found, same_start=settings.release.same_start))
    return ReleaseSetup(settings, planned, accountant, found.trajectories, known, recipe, public)


def _require_models(settings: Settings, planned: Plan) -> None:
    """Refuse a plan that was made for fewer models than the settings name."""
    known = {name.partition(ANOTHER_SAMPLE)[0] for name in planned.provenance.models} or {"first order"}
    if lacking := [name for name in settings.correlation.models if name not in known]:
        raise InputError(
            f"the plan is for observers who know {listed(sorted(known))}, but correlation.models has {listed(lacking)}: plan "
            "again, or leave out those models"
        )


def _refuse_contradictions(settings: Settings, planned: Plan | None) -> None:
    """Refuse settings that contradict each other, or that give no level."""
    asked, privacy, has_ledger = settings.release, settings.privacy, settings.release.ledger is not None
    tables = (configuration_at(asked.ledger) or {}).get("tables") if asked.ledger is not None else None
    refuse(
        (
            not has_ledger and any(one is not None for one in (asked.warn_at, asked.log, asked.head, privacy.renew)),
            InputError(
                "release.warn_at, release.log, release.head and privacy.renew need a ledger: --ledger LEDGER, or "
                "release.ledger in the project file"
            ),
        ),
        (
            not has_ledger and planned is None,
            InputError(
                "expected --plan FILE (from `temporaldp plan`), or --ledger LEDGER with --plan or --alpha; or these settings "
                "in the project file"
            ),
        ),
        (
            bool(tables),
            InputError(
                f"the ledger is an account of several tables, {', '.join(sorted(tables or ()))}: name the one that this job "
                "publishes (--set release.table=NAME). The account has the level and the correlation"
            ),
        ),
        (
            settings.plan.draw_every > 1 and asked.estimates != "smoothed",
            InputError(
                "plan.draw_every leaves steps without counts, which estimates from all releases fill: give "
                "release.estimates = smoothed and a public correlation (--history FILE), or leave out plan.draw_every"
            ),
        ),
        (
            planned is None and privacy.alpha is None,
            InputError("expected a level: --alpha A with a correlation (--history FILE), or a plan (--plan FILE)"),
        ),
        (
            privacy.renew is not None and privacy.guarantee != "temporal",
            InputError(
                "privacy.renew begins a plan of the temporal level again. The user level within W steps, against the "
                "releases of these steps alone (privacy.guarantee = user:365d), goes on without an end: leave out "
                "privacy.renew and privacy.horizon"
            ),
        ),
        (
            privacy.renew is not None
            and (planned is None or planned.horizon is None or isinstance(planned, NoisePlan)),
            InputError(
                "privacy.renew begins a plan of budgets again: give --plan FILE, from `temporaldp plan --alpha A --horizon T` "
                "without a delta"
            ),
        ),
        (
            privacy.renew is not None and not settings.has_correlation,
            InputError("privacy.renew needs a correlation, to account for leakage between epochs: give --history FILE"),
        ),
        (
            planned is None and not settings.has_correlation and privacy.guarantee == "temporal",
            InputError(
                "--alpha needs a correlation: --history FILE, or matrices (--set correlation.backward=FILE). It is not "
                "estimated from TRACES, which grow from run to run and are protected"
            ),
        ),
        (
            has_ledger and not settings.has_correlation and privacy.bound is not None,
            InputError(
                "privacy.bound is the accounting method of an accountant, and a plan alone has none: leave it out, or give a "
                "correlation (--history FILE)"
            ),
        ),
        (
            has_ledger and settings.has_correlation and not settings.has_other_source,
            InputError(
                "with a ledger, a correlation is estimated from a history (--history FILE), or with privacy (`temporaldp "
                "learn`), never from TRACES: they grow from run to run and are protected"
            ),
        ),
    )


def _setup_of_table(table: str, settings: Settings) -> ReleaseSetup:
    """One table of an account, whose ledger has the level, the correlation and the states."""
    asked, privacy = settings.release, settings.privacy
    if asked.ledger is None:
        raise InputError("release.table names a table of a shared account: give its ledger (--ledger LEDGER)")
    own = (asked.plan, asked.estimates, privacy.alpha, privacy.horizon, privacy.bound, privacy.renew, privacy.delta)
    if any(one is not None for one in own) or settings.has_correlation or privacy.guarantee != "temporal":
        raise InputError(
            "with release.table, the account determines the level and the correlation (`temporaldp ledger share`): leave out "
            "plan, alpha, horizon, bound, renew, delta, guarantee, the correlation and release.estimates"
        )
    with Ledger(asked.ledger) as ledger:
        states = account_tables(ledger, table)[table]["states"]
    return ReleaseSetup(settings, None, None, read_data(settings.traces, states), UNSTATED, None, None)


def _begun_at(settings: Settings) -> str | None:
    """Time of the first step of the ledger, from which the phases of a clock are counted; None without a clock or steps."""
    ledger = settings.release.ledger
    if ledger is None or settings.correlation.period is None or configuration_at(ledger) is None:
        return None
    with Ledger(ledger) as opened:
        return opened[0].time if len(opened) else None


def _made_plan(settings: Settings) -> tuple[Plan, Inputs]:
    """A plan by the settings, where no accountant enforces it: for a delta, every correlation, a longer memory, a clock."""
    found = (
        gather(without_traces(settings))
        if settings.privacy.guarantee == "temporal"
        else Inputs((Adversary(),), UNSTATED, read_data(settings.traces))
    )
    return planned_by(settings, found), found


def _estimating(settings: Settings, public: Callable[[], PublicCorrelation]) -> PublicCorrelation | None:
    """The public correlation that counts are estimated by; without one, each release is estimated by itself.

    Where the settings do not ask for one, a correlation that cannot be used is left out.
    """
    asked, begins_alike = settings.release.estimates, settings.release.same_start
    is_asked = asked is not None or (begins_alike and settings.correlation.confidence is None)
    if asked == "single" or not (is_asked or settings.has_other_source):
        return None
    with nullcontext() if is_asked else suppress(InputError):
        return public()
    return None


def plan_alone(settings: Settings, plan: Plan, made: Inputs | None) -> ReleaseSetup:
    """Return the setup of a plan that satisfies the level by itself, and was made from some inputs if it was not given."""
    provenance, clock = plan.provenance, plan.provenance.clock
    past, data = (None, None) if made is None else (made.tables[0], made.trajectories or made.tables[1])
    if data is None or data.states != plan.states:
        past, data = None, read_data(settings.traces, plan.states)
    if plan.has_phases and (clock is None or phase_at(clock, data.times[0]) is None):
        unknown = (
            "each step of the plan has a phase of a clock, and the plan alone cannot show whether the first step of these data "
            "is at the phase that it was made for: check that, or release with a ledger and the history, whose accountant does"
        )
        provenance = replace(provenance, warning=f"{provenance.warning}; {unknown}" if provenance.warning else unknown)
    public = _estimating(settings, lambda: public_correlation(settings, data.states, _begun_at(settings), (past, data)))
    if public is not None and public.provenance.spends:  # what was learned is published with the estimates
        provenance = together([provenance, public.provenance])
    recipe = recipe_of("temporaldp release TRACES", settings, provenance, is_public=public is not None)
    return ReleaseSetup(settings, plan, None, data, provenance, recipe, public)


def public_correlation(
    settings: Settings, states: tuple[str, ...] | None, begun_at: str | None = None, tables: Tables = (None, None)
) -> PublicCorrelation:
    """Return the correlation for smoothing a release that began at a time, by default at that of the data; as `gather`.

    Raises
    ------
    InputError
        There is none but that of the protected traces.
    """
    if not settings.has_other_source:
        raise InputError(
            "counts are smoothed by a public correlation: give --history FILE with other traces, --set correlation.file=FILE "
            "from `temporaldp learn`, or --set correlation.forward=FILE. It is not estimated from the released traces: that "
            "would reveal information about them outside of the guarantee"
        )
    known = settings.correlation
    if "first order" in known.models:  # the others smooth no counts
        alone = known.model_copy(update={"models": ("first order",), "period": None, "phase": None})
        settings = settings.model_copy(update={"correlation": alone})
    return public_part(gather(settings, states, begun_at, tables), same_start=settings.release.same_start)


def checked_output(settings: Settings, *, is_check: bool = False) -> Path:
    """Return where the counts are written, after a check of all outputs; a check writes none.

    Raises
    ------
    InputError, OutputError
        An output is missing, is not writable, or is one of the inputs or another output.
    """
    release = settings.release
    refuse(
        (
            release.estimates == "filtered" and release.ledger is None,
            InputError(
                "release.estimates = 'filtered' needs a ledger (--ledger LEDGER), which keeps the estimates of each step; "
                "without one, all releases are used ('smoothed')"
            ),
        ),
    )
    output = Path(os.devnull) if release.output is None and is_check else release.output
    if output is None:
        raise InputError("expected --output FILE (.parquet or .csv), where the counts are written")
    if release.output is not None:
        with_names(dict.fromkeys(COLUMNS, ()), **settings.traces.own_names)  # before anything is drawn
        for place in (output, output.with_suffix(".md")):
            require_writable(place, reads=(*settings.inputs, release.plan))
        release_suffix(output)
        beside = output.with_suffix(".md")
        if beside.exists() and not beside.read_text(encoding="utf-8", errors="replace").startswith(f"# {output.stem}."):
            raise OutputError(
                f"{beside} exists, and is not the text that explains {output}, which would take its place: name another output"
            )
    file = None if release.ledger is None else file_of(release.ledger)
    if file is not None and os.path.realpath(file) == os.path.realpath(output):
        raise OutputError(f"release.ledger and an output are both {file}; the counts would take the ledger's place")
    return output


def without_traces(settings: Settings) -> Settings:
    """Return the settings without the protected traces: what post-processing may read."""
    return settings.model_copy(update={"traces": settings.traces.without_data()})
