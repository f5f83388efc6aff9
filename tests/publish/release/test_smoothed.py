"""smooth() of a finished release, and filtered counts of a continual one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from data_sets import sleep_sample
from temporaldp import (
    Adversary,
    ApproximateDP,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    PaperBound,
    PublicCorrelation,
    TemporalAccountant,
    Trajectories,
    TransitionMatrix,
    plan_noise,
    release_histograms,
    smooth,
)
from temporaldp.base.errors import LedgerMismatchError, StateError
from temporaldp.data.counts import NoisyHistogram
from temporaldp.publish.release import filtered_histograms

SAMPLE = sleep_sample()
PEOPLE = Trajectories(SAMPLE.codes, states=SAMPLE.states, times=SAMPLE.times)
HISTORY, PROTECTED = PEOPLE[:75], PEOPLE[75:]
KNOWN = PublicCorrelation.from_history(HISTORY, same_start=True, name="a test")
ADVERSARY = Adversary(KNOWN.forward, KNOWN.forward)
MECHANISM = DiscreteLaplaceHistogram(5)


def opened(place, **more):
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0, accounting=PaperBound())
    return ContinualRelease(MECHANISM, ledger=place, accountant=accountant, states=PEOPLE.states, **more)


@pytest.fixture(scope="module")
def streamed(tmp_path_factory):
    place = tmp_path_factory.mktemp("ledger") / "release.db"
    with opened(place, correlation=KNOWN) as stream:
        released = release_histograms(PROTECTED, stream)
        return place, released, filtered_histograms(PROTECTED, stream)


@pytest.mark.long
def test_filtered_counts_are_stored_and_depend_on_the_past_only(streamed):
    place, released, found = streamed
    assert found.seen == "past releases"
    with opened(place, correlation=KNOWN) as stream:
        again = filtered_histograms(PROTECTED, stream)
        assert np.array_equal(again.counts, found.counts)
        assert np.array_equal(stream.filtered("s30").upper, found.upper[30])
        stream.ledger.verify()
    # The last step of a smoother that ends there sees what the filter saw.
    for t in (0, 20, 46):
        part = replace(
            released,
            counts=released.counts[: t + 1],
            epsilons=released.epsilons[: t + 1],
            scales=released.scales[: t + 1],
            times=released.times[: t + 1],
        )
        np.testing.assert_allclose(smooth(part, KNOWN, total=76).counts[-1], found.counts[t], atol=1e-6)


def test_ledger_records_that_its_counts_are_filtered(streamed):
    """By which correlation may change: a release may adopt another one, and estimates cost no privacy."""
    place, _, found = streamed
    with pytest.raises(LedgerMismatchError, match="filter"):
        opened(place)
    other = PublicCorrelation(TransitionMatrix(np.full((5, 5), 0.2), PEOPLE.states), provenance="another")
    with opened(place, correlation=other) as stream:
        np.testing.assert_array_equal(stream.filtered(found.times[0]).counts, found.counts[0])


def test_skipped_steps_are_predicted(tmp_path):
    truth = PROTECTED.histogram()
    with opened(tmp_path / "l.db", correlation=KNOWN) as stream:
        stream.skip(time="s00")
        stream.release(truth[1], time="s01")
        stream.skip(time="s02")
        stream.release(truth[3], time="s03")
        found = stream.filtered("s03")
        assert found.counts.sum() == pytest.approx(76.0)
        with pytest.raises(InputError, match="no filtered counts"):
            stream.filtered("s02")
    with opened(tmp_path / "m.db") as plain:
        plain.release(truth[0], time="s00")
        with pytest.raises(InputError, match="correlation from its first step"):
            plain.filtered("s00")


def test_only_histograms_are_filtered(tmp_path):
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0, accounting=PaperBound())
    with pytest.raises(InputError, match="expected a histogram"):
        ContinualRelease(
            lambda one, _: one, ledger=tmp_path / "x.db", accountant=accountant, description="none", correlation=KNOWN
        )


@pytest.mark.long
def test_gaussian_noise_of_a_stream_is_smoothed(tmp_path):
    plan = plan_noise(Adversary(), alpha=1.0, horizon=47, accounting=ApproximateDP(1e-5))
    with ContinualRelease(
        NoisyHistogram(5, "gaussian"), ledger=tmp_path / "g.db", plan=plan, states=PEOPLE.states, correlation=KNOWN
    ) as stream:
        released = release_histograms(PROTECTED, stream)
        filtered = filtered_histograms(PROTECTED, stream)
    smoothed = smooth(released, KNOWN, total=PROTECTED.histogram().sum(axis=1))
    truth = PROTECTED.histogram()
    assert np.abs(smoothed.counts - truth).mean() < np.abs(released.counts - truth).mean()
    assert filtered.counts.shape == (47, 5)


def test_unpublished_steps_are_estimated_from_neighbouring_steps(streamed):
    _, released, _ = streamed
    kept = [t for t in range(47) if t % 3]
    part = replace(
        released,
        counts=released.counts[kept],
        epsilons=released.epsilons[kept],
        scales=released.scales[kept],
        times=tuple(released.times[t] for t in kept),
    )
    found = smooth(part, KNOWN, total=76, times=released.times)
    assert found.counts.shape == (47, 5)
    assert found.published.tolist() == [t % 3 != 0 for t in range(47)]
    widths = (found.upper - found.lower).mean(axis=1)
    assert widths[6] > min(widths[5], widths[7])
    with pytest.raises(InputError, match="not among them"):
        smooth(released, KNOWN, total=76, times=released.times[:-1])


@pytest.mark.parametrize("total", [0, -5, 76.5, [76, 76], "many", np.nan, 76_000])
def test_impossible_totals_are_refused(streamed, total):
    with pytest.raises(InputError, match=r"total|people"):
        smooth(streamed[1], KNOWN, total=total)


def test_unsupported_releases_are_refused(streamed):
    released = streamed[1]
    with pytest.raises(InputError, match="PublicCorrelation"):
        smooth(released, KNOWN.forward, total=76)
    with pytest.raises(StateError):
        smooth(released, PublicCorrelation(TransitionMatrix(np.eye(2)), provenance="x"), total=76)


def test_result_records_its_inputs(streamed):
    found = smooth(streamed[1], KNOWN, total=76)
    assert "nothing else of the protected table" in found.used
    assert "a test" in found.used
    assert found.provenance == KNOWN.provenance
    order = tuple(reversed(PEOPLE.states))
    turned = smooth(streamed[1].reordered(order), KNOWN, total=76)
    np.testing.assert_allclose(turned.counts[:, ::-1], found.counts, atol=1e-8)
