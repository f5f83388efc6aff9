"""A release by its settings: counts drawn, estimates made from them, and the table of both written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.base.errors import InputError, OutputError, TemporaldpError
from temporaldp.core.correlation import Provenance
from temporaldp.core.correlation.provenance import together
from temporaldp.core.planning.histogram_noise import mean_absolute_noise
from temporaldp.data.counts import ReleasedHistograms, SmoothedHistograms, save_released, smooth
from temporaldp.data.files.atomic import write_text
from temporaldp.data.tables import Traces
from temporaldp.data.tables.moments import moment
from temporaldp.publish.project.planning import beaten_by_even_split
from temporaldp.publish.project.recipe import recipes_of
from temporaldp.publish.project.release import BOTH_TOGETHER, ReleaseSetup, named_times, published_in, published_times
from temporaldp.publish.release import ContinualRelease, filtered_histograms, release_histograms
from temporaldp.publish.release.key_and_marks import require_decision
from temporaldp.publish.report.sentences import published_text


@dataclass
class PublishingRun:
    """A run of a release.

    Parameters
    ----------
    setup : ReleaseSetup
    stream : ContinualRelease or None
        The release on its ledger; None for a plan without one.
    earlier : ReleasedHistograms or None
        Counts that the output has already, and keeps.
    """

    setup: ReleaseSetup
    stream: ContinualRelease[Any, Any] | None
    earlier: ReleasedHistograms | None
    released: ReleasedHistograms = field(init=False)
    estimates: SmoothedHistograms | None = field(init=False, default=None)
    not_estimated: str | None = None

    def draw(self) -> None:
        """Draw the counts of a plan, or those that a ledger lacks, after a note of what they come from; and estimates."""
        setup, stream = self.setup, self.stream
        if stream is not None:
            setup.note(stream.ledger)
        drawn_by = setup.plan if stream is None else stream
        assert drawn_by is not None
        drawn = release_histograms(setup.data, drawn_by, reached=setup.settings.release.reached)
        # A run that was stopped before it wrote its output may have recorded it
        if (
            stream is not None
            and stream.ledger.disregarded
            and not any(one.kind == "begin anew" for one in stream.ledger.events)
        ):
            raise InputError(
                "--begin-anew is recorded with the first step that is drawn, and the ledger has all steps of these data: give "
                "data that are released anew, or leave it out. No file was written"
            )
        self.released = drawn
        try:
            self._estimate(drawn)
        except TemporaldpError as error:  # what was drawn is written in any case
            self.not_estimated = f"no estimates could be made, and the table has only noisy counts: {error}"
        if not self.released.drawn.any():
            raise InputError(
                "no count is drawn at these steps, and the output has none of the steps before: name the output of the earlier "
                "runs (--output FILE), or give their data too. No file was written; the ledger passes over these steps"
            )

    def _estimate(self, drawn: ReleasedHistograms) -> None:
        """Estimate the counts that were drawn, by the ledger's filter, the public correlation, or each step by itself."""
        setup, stream = self.setup, self.stream
        if stream is not None and stream.correlation is not None:
            self.estimates = filtered_histograms(setup.data, stream, times=drawn.times)
        else:
            public, earlier = setup.public, self.earlier
            known = dict(zip(map(moment, setup.data.times), setup.data.histogram().sum(axis=1).tolist(), strict=True))
            if earlier is not None and earlier.estimates is not None:
                # Rows that come late change no total that was published
                totals = np.rint(earlier.estimates.counts.sum(axis=1)).tolist()
                each = zip(map(moment, earlier.times), totals, earlier.drawn, strict=True)
                known |= {time: total for time, total, is_drawn in each if is_drawn or time not in known}
            if public is not None and earlier is not None:  # all draws, also those of tables before
                drawn = _with_earlier(drawn, replace(earlier, estimates=None), stream)
            labels = {moment(time): time for time in (*setup.data.times, *drawn.times)}
            times = list(drawn.times if public is None else labels.values())
            if len(times) > len(setup.data.times) and stream is not None:
                times.sort(key=lambda time: stream.row(time).step)
            self.estimates = smooth(drawn, public, total=[known[moment(time)] for time in times], times=times)
        self.released = self.estimates.of(drawn)
        if setup.public is None and self.earlier is not None:
            self.released = _keeping_estimates(self.released, self.earlier)

    @property
    def known(self) -> Provenance:
        """The provenance of all that is published about correlations: of the level, and of the estimates."""
        setup = self.setup
        return setup.provenance if setup.public is None else together([setup.provenance, setup.public.provenance])

    @property
    def everything(self) -> ReleasedHistograms:
        """The counts of this run and those that the output had before, in the order of the ledger."""
        return _with_earlier(self.released, self.earlier, self.stream)

    @property
    def n_people(self) -> int:
        """Number of people at a step, on average; it is public."""
        found = self.released.estimates
        return self.setup.data.n_observed if found is None else found.n_people

    @property
    def present(self) -> tuple[int, int]:
        """People who are not absent at a step, on average and by the estimates; and the number of their states."""
        found, away, states = self.released.estimates, self.setup.data.absence, self.released.states
        if found is None or away is None:
            return self.n_people, len(states)
        others = np.delete(found.counts, states.index(away), axis=1)
        return max(round(float(others.sum(axis=1).mean())), 1), len(states) - 1

    def write(self, output: Path) -> Path:
        """Write the table, and the text that explains its columns; give the place of the text."""
        everything, beside = self.everything, output.with_suffix(".md")
        save_released(everything, output, **self.setup.settings.traces.own_names)
        write_text(
            beside,
            published_text(
                everything,
                self.estimates,
                self.known,
                self.n_people,
                output.name,
                self.setup.source,
                warnings=self.warnings,
                is_part=self.is_part,
                present=self.present,
                on_grid=self.setup.settings.traces.every is not None,
            ),
        )
        return beside

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before publishing: of this run, and what earlier runs on the ledger warned of."""
        noted = () if self.stream is None else recipes_of(self.stream.ledger)
        earlier = (warning for _, recipe in noted for warning in recipe.warnings)
        return tuple(dict.fromkeys((*self.setup.warnings, *earlier)))

    @property
    def is_part(self) -> bool:
        """Whether this is a table of an account, with a part of its level."""
        return self.stream is not None and self.stream.table is not None

    @property
    def even_split(self) -> str | None:
        """Warning where equal noise at the user level, which holds for every correlation, would be less; None elsewhere."""
        found, plan, stream = self.released, self.setup.plan, self.stream
        if self.is_part or found.alpha is None or not found.guarantee.is_temporal:
            return None
        horizon = None if stream is None else stream.guard.horizon
        n_drawn = horizon if plan is None else plan.n_drawn
        noise = mean_absolute_noise(found.scales, found.noise)
        return None if n_drawn is None else beaten_by_even_split(found.alpha, n_drawn, found.delta, found.noise, noise)


@contextmanager
def publishing(
    setup: ReleaseSetup, output: Path | None, *, overwrite: bool = False, begin_anew: bool = False
) -> Iterator[PublishingRun]:
    """Open the ledger of a release, and check what its output has; without an output, nothing of that.

    Raises
    ------
    LedgerError
        The ledger cannot be read, written or trusted.
    OutputError
        The output exists with other counts, and may not be overwritten.
    """
    ledger = setup.settings.release.ledger
    if ledger is None and output is not None:
        require_unpublished(output, setup.data, begin_anew=begin_anew)
    with nullcontext() if ledger is None else setup.opened(ledger, begin_anew=begin_anew) as stream:
        kept = None if output is None else earlier_counts(output, setup.data, stream, overwrite or begin_anew)
        yield PublishingRun(setup, stream, kept)


def earlier_counts(
    output: Path, data: Traces, stream: ContinualRelease[Any, Any] | None, overwrite: bool
) -> ReleasedHistograms | None:
    """Counts of the output that a run keeps there, because all of them are its ledger's; None if there are none.

    Raises
    ------
    OutputError
        The file exists and has others, and may not be overwritten.
    """
    found = None if stream is None else _of_ledger(output, stream, data)
    if found is None and output.exists() and not overwrite:
        raise OutputError(
            f"{output} exists, and not all of it is released again: name another output, or replace it (--overwrite)"
        )
    return found


def require_unpublished(output: Path, data: Traces, *, begin_anew: bool) -> None:
    """Refuse to draw times of the data again without a ledger, unless an owner begins anew.

    Raises
    ------
    OutputError
        The output contains a time of the data.
    InputError
        The owner begins anew, although the output contains none.
    """
    drawn = {moment(time) for time in data.times}
    lost = [time for time in published_times(output) if moment(time) in drawn]
    refusal = OutputError(
        f"{output} has published counts of {named_times(lost)} of these data, and releasing the same data twice spends the "
        f"budgets twice: they would be drawn again with new noise, and {BOTH_TOGETHER}"
    )
    require_decision(refusal if lost else None, begin_anew=begin_anew)


def _of_ledger(output: Path, stream: ContinualRelease[Any, Any], data: Traces) -> ReleasedHistograms | None:
    """The counts of a file, if a ledger published all of them."""
    old = published_in(output)
    if old is None or set(old.states) != set(data.states):
        return None
    old = old.reordered(data.states)
    kept = [stream.published(time) for time in old.times]
    pairs = zip(kept, old.counts, old.drawn, strict=True)
    is_kept = all(
        isinstance(one, np.ndarray) and np.array_equal(one, counts) if drawn else one is None and stream.has(time)
        for (one, counts, drawn), time in zip(pairs, old.times, strict=True)
    )
    return old if is_kept else None


def _keeping_estimates(released: ReleasedHistograms, earlier: ReleasedHistograms) -> ReleasedHistograms:
    """The counts of a run with the estimates that were published before, each of which is made from its step alone."""
    new, old, places = released.estimates, earlier.estimates, {moment(time): k for k, time in enumerate(earlier.times)}
    if new is None or old is None:
        return released
    source = np.array([places.get(moment(time), -1) for time in released.times])
    kept = new.mapped(lambda now, before: np.where(source[:, None] >= 0, before[source], now), old)
    return replace(released, estimates=kept)


def _with_earlier(
    released: ReleasedHistograms, earlier: ReleasedHistograms | None, stream: ContinualRelease[Any, Any] | None
) -> ReleasedHistograms:
    """Counts of a run and those that its output had before, in the order of the ledger; estimates that were published stay."""
    if earlier is None or stream is None:
        return released
    step_of = {stream.row(time).step: k for k, time in enumerate(released.times)}
    others = [k for k, time in enumerate(earlier.times) if stream.row(time).step not in step_of]
    if not others:
        return released
    rows = [stream.row(earlier.times[k]) for k in others]
    spent = np.array([row.epsilon for row in rows])
    order = np.argsort([*step_of, *(row.step for row in rows)])
    times = (*released.times, *(row.time for row in rows))
    new, old = released.estimates, earlier.estimates
    scales = stream.guard.drawn_scales([row.step for row in rows], spent)
    return replace(
        released,
        counts=np.vstack([released.counts, earlier.counts[others]])[order],
        epsilons=np.append(released.epsilons, spent)[order],
        scales=np.append(released.scales, scales)[order],
        times=tuple(times[k] for k in order),
        estimates=new and old and new.mapped(lambda one, other: np.vstack([one, other[others]])[order], old),
    )
