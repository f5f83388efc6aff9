"""The settings of a project file: one section per topic, one key per setting, validated by pydantic.

The descriptions of the keys are the documentation: the reference page, the JSON schema, the comments of a proposed file and
the error messages are made from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from temporaldp.base.errors import InputError
from temporaldp.core.accounting.exact.method import Exact
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.accounting.protocol import Accounting
from temporaldp.data.files.places import mapping_place
from temporaldp.data.tables.traces import LEAST_REACHED


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected a number, not true or false")  # noqa: TRY004  pydantic reports a ValueError
    return value


def _list(value: Any) -> Any:
    """Words separated by commas, as a command line gives them; none in an empty text or list."""
    value = "" if value == "[]" else value
    return [word.strip() for word in value.split(",") if value.strip()] if isinstance(value, str) else value


def _range(value: Any) -> Any:
    """Two numbers written as FROM:TO; one number is the range of itself."""
    if not isinstance(value, str):
        return value
    parts = value.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) not in {1, 2}:
        raise ValueError("expected FROM:TO, two probabilities such as 0.7:0.95")
    return [numbers[0], numbers[-1]]


def _by_name(value: Any) -> Any:
    """NAME=NUMBER pairs separated by commas, as a command line gives them."""
    if not isinstance(value, str):
        return value
    pairs = [[one.strip() for one in part.partition("=")] for part in value.split(",")]
    if any(not equals or not name for name, equals, _ in pairs) or len({name for name, _, _ in pairs}) < len(pairs):
        raise ValueError("expected NAME=NUMBER,... with each name once, such as country=0.11,county=0.22")
    return {name: number for name, _, number in pairs}


Number: TypeAlias = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
Positive: TypeAlias = Annotated[float, BeforeValidator(_number), Field(gt=0.0, allow_inf_nan=False)]
Share: TypeAlias = Annotated[float, BeforeValidator(_number), Field(gt=0.0, lt=1.0)]
Count: TypeAlias = Annotated[int, BeforeValidator(_number), Field(ge=1)]
Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_list)]
Shares: TypeAlias = Annotated[tuple[Share, ...], BeforeValidator(_list)]
Numbers: TypeAlias = Annotated[tuple[Positive, ...], BeforeValidator(_list)]
Range: TypeAlias = Annotated[tuple[Number, Number], BeforeValidator(_range)]
NumbersByName: TypeAlias = Annotated[dict[str, Positive], BeforeValidator(_by_name)]


@dataclass(frozen=True, slots=True)
class Written:
    """Mark of the keys of files that commands write: the endings that a project file may give their names."""

    suffixes: tuple[str, ...]


LEDGER_FILE = Written((".db", ".sqlite", ".sqlite3"))
TABLE_FILE = Written((".parquet", ".csv"))


class Section(BaseModel):
    """A section of the project file. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True, validate_default=False)

    @property
    def is_given(self) -> bool:
        """Whether any key of this section is set to a value other than its default."""
        return self != type(self)()


OF_EACH_TABLE = ("path", "where", "delimiter")
"""Keys of [traces] that [history] does not take over."""


class TableSettings(Section):
    """Settings for reading a table."""

    path: Path | None = Field(
        None, description="File, folder or pattern: CSV, Parquet, or text with a sequence a line."
    )
    layout: Literal["auto", "long", "wide", "sequences"] = Field(
        "auto",
        description="long: a row per user and time; wide: a column per step; sequences: a line, or cell, per user.",
    )
    user: str = Field("user", description="Column with the user.")
    time: str = Field("time", description="Column with the time (long layout), or with the beginning of an interval.")
    state: str = Field("state", description="Column with the state (long layout), or with sequences.")
    end: str | None = Field(
        None, description="Column with the end of an interval, such as a trip or a stay (with every)."
    )
    end_state: str | None = Field(
        None, description="Column with the state from the end of an interval on; without it, the user is then absent."
    )
    by: str | None = Field(None, description="Column with the group of a user, such as a region.")
    states: Names | None = Field(None, description="Public list of states, in order; other states are errors.")
    states_from: Path | None = Field(
        None, description="Table with the state of each entry: FILE (first two columns), or FILE:entry,state."
    )
    other: str | None = Field(None, description="State of entries that states_from, or else states, does not list.")
    missing: Names | None = Field(
        None, description="Texts that are no value beside the empty one; by default NA, N/A, NaN, null and none."
    )
    time_format: str | None = Field(
        None,
        description="How times are written: %d.%m.%Y %H:%M (strptime), unix or unix_ms; by default ISO or numbers.",
    )
    decimal: Literal[".", ","] = Field(".", description="Decimal mark of times that are numbers.")
    encoding: str = Field("utf-8", description="Encoding of text files, such as latin-1, cp1252 or utf-16.")
    delimiter: str | None = Field(None, description="Separator of CSV or text; detected if not given.")
    gaps: bool = Field(
        False,
        description="A cell without a state means that the user was not observed then; with fill = last, absent from there on.",
    )
    sort: bool = Field(False, description="Sort rows by time instead of refusing times out of order.")
    ties: Literal["last", "first", "longest"] | None = Field(
        None,
        description="Which of several states of a user at one time, or in one step, counts; without it, two at one time are an "
        "error.",
    )
    absent: str | None = Field(None, description="State of users without a row at a step; presence is then protected.")
    every: str | None = Field(None, description="Rows are events: put them on a grid, such as 15min, 1h or 1d.")
    fill: Literal["last", "absent"] | None = Field(
        None, description="State at a step without an event (with every): the last one, or absent."
    )
    fill_limit: str | None = Field(
        None, description="How long the last state is kept, such as 8h; then the user is absent."
    )
    timezone: str | None = Field(None, description="Clock of the grid (with every), such as Europe/Amsterdam.")
    where: str | None = Field(
        None, description="SQL condition on the rows that are read, such as zone <> 'depot'; no subqueries."
    )
    memory: str = Field("1GiB", description="Memory for reading; more is spilled to temporary files.")

    @property
    def has_domain(self) -> bool:
        """Whether the states are public: listed, or those of a mapping."""
        return self.states is not None or self.states_from is not None


class TracesSettings(TableSettings):
    """The protected traces, or counts in place of them."""

    transitions: Path | None = Field(None, description="In place of path: table with the columns from, to, count.")
    counts: Path | None = Field(None, description="In place of path: table with the columns time, state, count.")

    _left_out: Path | None = PrivateAttr(None)

    @property
    def protected(self) -> Path | None:
        """Path of the protected traces, also where they were left out."""
        return self.path or self._left_out

    def without_data(self) -> Self:
        """The settings without the protected data: what post-processing may read."""
        kept = self.model_copy(update={"path": None, "transitions": None, "counts": None})
        kept._left_out = self.protected
        return kept

    def with_data(self) -> Self:
        """The settings with the protected traces that were left out, to compare a history with them."""
        return self.model_copy(update={"path": self.protected})

    @property
    def own_names(self) -> dict[str, str]:
        """Names of the columns of time and state in what is published."""
        columns = () if self.states_from is None else mapping_place(self.states_from)[1]
        return {"time": self.time, "state": columns[1] if columns else self.state}

    @property
    def is_counted(self) -> bool:
        """Whether counts take the place of traces.

        Raises
        ------
        InputError
            Both are given.
        """
        found = self.transitions is not None or self.counts is not None
        if found and self.path is not None:
            raise InputError("traces.transitions and traces.counts replace the traces: give one or the other")
        return found


class CorrelationSettings(Section):
    """The temporal correlation that the adversary uses; estimated from traces unless it is given."""

    file: Path | None = Field(
        None, description="Correlation of both directions (.json), as `temporaldp learn` writes it."
    )
    backward: Path | None = Field(None, description="Backward transition matrix (.csv, .json).")
    forward: Path | None = Field(None, description="Forward transition matrix (.csv, .json).")
    stays: Range | None = Field(
        None, description="Every correlation under which a state is kept with a probability in this range: 0.7:0.95."
    )
    models: Names = Field(
        (),
        description="Models that the observer may know, all estimated from the same traces: first order, second order, dwell "
        "times, time of day (with period), each also at a confidence (dwell times 0.95); per person; confidence 0.95 (all "
        "matrices within intervals). Default: first order, or time of day with a period.",
    )
    left_out: Names = Field(
        (),
        description="Models that a test of the history prefers and that are not computed, because that takes minutes: "
        "sentences about the guarantee name them.",
    )
    directions: Literal["both", "backward", "forward"] = Field("both", description="Directions that are estimated.")
    prior: Annotated[float, BeforeValidator(_number), Field(ge=0.0, allow_inf_nan=False)] = Field(
        0.0, description="Dirichlet prior: added to the count of every transition."
    )
    per_user: bool = Field(False, description="Estimate one correlation per user instead of one for all.")
    confidence: Share | None = Field(
        None,
        description="Use all correlations within Clopper-Pearson intervals at this level, such as 0.95: of a stationary chain "
        "or, without a history or with release.same_start, with backward ones of each step where the shares of states change.",
    )
    period: Count | None = Field(None, description="Estimate one matrix for each of so many steps of a clock.")
    phase: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Step of the clock at which the release begins (with period); 0: where the history begins."
    )

    @property
    def is_estimated(self) -> bool:
        """Whether a key about estimation is set."""
        keys = {"models", "directions", "prior", "per_user", "confidence", "period", "phase"}
        return bool(self.model_dump(include=keys, exclude_defaults=True))


class PrivacySettings(Section):
    """The level, and what one step spends."""

    alpha: Positive | None = Field(
        None, description="Level, in nats: largest leakage about what the guarantee protects."
    )
    epsilon: Positive | None = Field(
        None, description="Epsilon of every step that `audit` and `report` assume, in nats."
    )
    guarantee: str = Field(
        "temporal",
        description="What is protected: temporal (one state, for given correlations), user (all states of a person), user:365d "
        "(those of any 365 days, against the tables of these days alone), or window:7d (those of any 7 days, if states of "
        "other days reveal nothing about them).",
    )
    delta: Share | None = Field(None, description="Account in (epsilon, delta)-DP_T instead of delta = 0.")
    noise: Literal["gaussian", "laplace"] | None = Field(
        None, description="Discrete noise on every count (with delta)."
    )
    scale: Positive | None = Field(None, description="Scale of that noise, in counts (`audit`).")
    horizon: Count | None = Field(None, description="Number of steps; without it, any number of steps.")
    bound: Literal["exact", "paper"] | None = Field(
        None, description="Accounting method: the exact leakage, or the upper bound of Cao et al."
    )
    effort: Positive | None = Field(
        None,
        description="Seconds after which the exact leakage, or a plan by it, stops comparing states: it is then an interval, "
        "of which plans use the upper side. No limit by default.",
    )
    renew: Literal["steps", "daily", "weekly", "monthly", "yearly"] | None = Field(
        None,
        description="Begin the plan again with each day, week, month or year of traces.timezone, or after its last step.",
    )

    @property
    def accounting(self) -> Accounting[Any, Any]:
        """The accounting method at delta = 0."""
        return self.by(self.bound or "exact")

    def by(self, bound: str) -> Accounting[Any, Any]:
        """The accounting method at delta = 0 of this name; the paper's needs no time that an effort could limit."""
        if bound != "exact" or self.effort is None:
            return accounting_from({"method": bound})
        return Exact(effort=self.effort)


class PlanSettings(Section):
    """Settings for choosing budgets."""

    method: Literal["optimal", "upper_bound", "quantified", "uniform"] | None = Field(
        None,
        description="Planning method; optimal with a horizon, upper_bound without. For a delta, optimal has less noise at the "
        "ends, in minutes; by default, noise is the same at every step.",
    )
    objective: Literal["mean_absolute_error", "mean_squared_error"] = Field(
        "mean_absolute_error", description="Error that the optimal plan minimises."
    )
    draw_every: int = Field(
        1,
        ge=1,
        description="Counts are drawn at the first step and every so many after it, and estimated in between (smoothed). For "
        "delta = 0 and a horizon: few draws with large budgets are worth more than many with small ones.",
    )


class ReleaseSettings(Section):
    """Settings of a release and its ledger."""

    plan: Path | None = Field(None, description="Plan file (from `temporaldp plan`), in place of alpha.")
    ledger: Annotated[str, Field(json_schema_extra={"format": "path"}), LEDGER_FILE] | None = Field(
        None, description="SQLite file or postgresql:// URL that stores every step."
    )
    output: Annotated[Path, TABLE_FILE] | None = Field(None, description="Published counts (.parquet or .csv).")
    population: Count | None = Field(
        None,
        description="Public number of people, the absent included. A release with a ledger and a state of absence needs it: "
        "the number of people seen so far would reveal when a person appears.",
    )
    estimates: Literal["smoothed", "filtered", "single"] | None = Field(
        None,
        description="Releases that an estimate uses, by a public correlation: all (smoothed), those up to its step (filtered: "
        "what was published does not change), or its own alone (single). By default filtered with a ledger, else smoothed.",
    )
    same_start: bool = Field(False, description="The release begins as the history does (a night, a course).")
    table: str | None = Field(None, description="Table of a shared account (`temporaldp ledger share`) to publish.")
    shares: NumbersByName | None = Field(
        None, description="Share of a step for each table of an account (`ledger share`): sleep=0.6,places=0.4."
    )
    head: str | None = Field(None, description="Noted head: a ledger that lacks it is refused.")
    warn_at: Annotated[float, BeforeValidator(_number), Field(gt=0.0, le=1.0)] | None = Field(
        None, description="Warn once this share of the steps, or of alpha, is used, such as 0.8."
    )
    reached: Annotated[float, BeforeValidator(_number), Field(ge=0.0, lt=1.0)] = Field(
        LEAST_REACHED,
        description="Share of people who must have reached the last step: rows with wrong dates stop the run. 0: accept all.",
    )
    log: Annotated[Path, Written((".jsonl", ".log"))] | None = Field(
        None, description="File to which each run appends one line of JSON (.jsonl or .log)."
    )


class ReportSettings(Section):
    """Settings of the written report."""

    output: Annotated[Path, Written((".html",))] | None = Field(None, description="Where to write the page (.html).")
    title: str = Field("What the releases reveal about one person", description="Heading of the page.")
    controller: str | None = Field(None, description="Who is responsible for the data and publishes the counts.")
    purpose: str | None = Field(None, description="What the counts are published for.")
    contact: str | None = Field(None, description="Where people ask about the publication.")
    period: str | None = Field(
        None, description="Period that the counts are about; by default from the first to the last time."
    )
    approval: Names = Field((), description="Names or roles of those who sign the report, each a line for a signature.")
    step: str | None = Field(None, description="Length of a step for figures, such as 5 min, where times are numbers.")
    released: Path | None = Field(None, description="Released histograms to show.")
    true_counts: bool = Field(False, description="Show true counts beside released ones: for internal use only.")
    name_users: bool = Field(False, description="Name the user with the largest leakage (with per_user).")


class LearningSettings(Section):
    """Estimation of a correlation with differential privacy."""

    epsilon: Positive | None = Field(None, description="Epsilon for all states of a user together, in nats.")
    output: Annotated[Path, Written((".json",))] | None = Field(
        None, description="Where to write the correlation (.json)."
    )
    ledger: Annotated[Path, LEDGER_FILE] | None = Field(
        None, description="Ledger of this spend: a stored result is never drawn again."
    )
    contributed: Count | None = Field(None, description="Largest number of transitions of each user, drawn at random.")
    confidence: Share = Field(
        0.95, description="Probability that all entries lie within their intervals, if the Markov chain is stationary."
    )


class StudySettings(Section):
    """Settings of `plan`, `budget`, `population` and `attack`."""

    alphas: Numbers | None = Field(None, description="Levels to compare, in nats (`plan`).")
    error: Positive | None = Field(None, description="Find the level with this error of a count, in users (`plan`).")
    stays: Shares = Field((), description="Probabilities of staying in a state to compare (`budget`).")
    n_states: Annotated[int, BeforeValidator(_number), Field(ge=2)] = Field(
        2, description="Number of states, of which people who do not stay take any other (`budget`)."
    )
    above: Positive | None = Field(None, description="Report the share of users above this leakage (`population`).")
    share: Annotated[float, BeforeValidator(_number), Field(gt=0.0, le=1.0)] = Field(
        1.0, description="Share of users for whom a budget satisfies alpha (`population`)."
    )
    repeats: Count = Field(50, description="Repetitions of the noise (`attack`).")
    seed: int = Field(0, description="Seed of the repetitions (`attack`).")


class DeploymentSettings(Section):
    """Assumptions about a published system that its record does not state."""

    states: Names | None = Field(None, description="The secret: the states of a step; present, absent by default.")
    stays: Range | None = Field(
        None, description="Probability that the state stays the same from step to step; 0.5:0.99 by default."
    )
    at: Number | None = Field(None, description="Probability of staying that the explanation in words is about.")
    correlation: Path | None = Field(
        None, description="In place of stays: forward matrix (.csv), or both directions (.json)."
    )
    horizon: Count | None = Field(None, description="Number of steps; one year by default.")
    since: date | None = Field(None, description="In place of a horizon: first day.")
    until: date | None = Field(None, description="Last day (with since); today by default.")
    unit: Literal["replace-one", "add-or-remove", "binary-count", "category-histogram"] | None = Field(
        None,
        description="How a change of state counts in units of the guarantee; by the record by default: two units from one "
        "counted state to another.",
    )
    absent: str | None = Field(None, description="The state at which a user contributes nothing (add-or-remove).")
    contributions: Count | None = Field(None, description="Largest number of promised units in a step.")
    tables: NumbersByName | None = Field(
        None,
        description="Epsilons of the tables that the state enters, in place of the record's: country=0.11,county=0.22.",
    )
    delta: Share | None = Field(None, description="Delta of the accounting, where the promise is not pure.")
    every: (
        Literal["hour", "quarter-day", "half-day", "day", "week", "half-month", "month", "quarter", "half-year", "year"]
        | None
    ) = Field(None, description="Length of a step, where the record does not state it.")
    fresh_noise: bool = Field(
        False, description="Noise drawn on devices is drawn anew at every step, which a delta needs."
    )
    guarantee: str = Field(
        "temporal",
        description="What the verdict is about: temporal, user, user:W or window:W, with W a number of steps.",
    )


class Settings(Section):
    """All sections of a project file."""

    traces: TracesSettings = Field(TracesSettings(), description="The protected traces.")
    history: TableSettings = Field(
        TableSettings(),
        description="Other traces to estimate the correlation from. Its keys are those of [traces], without "
        "transitions and counts.",
    )
    correlation: CorrelationSettings = Field(CorrelationSettings(), description="What the adversary uses.")
    privacy: PrivacySettings = Field(PrivacySettings(), description="The level and what a step spends.")
    plan: PlanSettings = Field(PlanSettings(), description="How budgets are chosen.")
    release: ReleaseSettings = Field(ReleaseSettings(), description="What is published.")
    report: ReportSettings = Field(ReportSettings(), description="The written report.")
    learn: LearningSettings = Field(LearningSettings(), description="Estimation with differential privacy.")
    study: StudySettings = Field(StudySettings(), description="Studies.")
    deployment: DeploymentSettings = Field(DeploymentSettings(), description="Assumptions about a published system.")

    @property
    def has_correlation(self) -> bool:
        """Whether the project file or the command gives the correlation of the adversary."""
        return self.history.path is not None or self.correlation.is_given

    @property
    def has_other_source(self) -> bool:
        """Whether the correlation is from elsewhere than the protected traces: a history, a file, matrices or a range."""
        known = self.correlation
        given = (self.history.path, known.file, known.backward, known.forward, known.stays)
        return any(one is not None for one in given)

    @property
    def history_table(self) -> TableSettings:
        """Settings of the history table: keys that [history] omits are those of [traces], except its rows and its format.

        The grid of events is not that of a history in layout wide or sequences, which are states already.
        """
        grid = () if self.history.layout in {"auto", "long"} else ("every", "fill", "timezone")
        own = {*OF_EACH_TABLE, *grid, *self.history.model_fields_set}
        shared = {key: getattr(self.traces, key) for key in TableSettings.model_fields if key not in own}
        return self.history.model_copy(update=shared)

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """Every file that is read to find data and correlation."""
        given = self.correlation
        mappings = (one.states_from for one in (self.traces, self.history))
        return (
            *(None if one is None else mapping_place(one)[0] for one in mappings),
            self.traces.path,
            self.traces.transitions,
            self.traces.counts,
            self.history.path,
            given.file,
            given.backward,
            given.forward,
        )
