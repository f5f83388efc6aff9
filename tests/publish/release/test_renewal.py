"""A renewed level goes on with another correlation and another plan."""

from __future__ import annotations

import numpy as np
import pytest

from exact_oracles import boxes_of, enumerated_boxes
from temporaldp import (
    Adversary,
    BudgetError,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    Ledger,
    PlanError,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
    temporal_leakage,
)
from temporaldp.base.errors import LedgerMismatchError
from temporaldp.publish.release import adopt_correlation
from temporaldp.publish.release.renewal import renewal_of

CALM, BUSY = np.array([[0.6, 0.4], [0.3, 0.7]]), np.array([[0.85, 0.15], [0.2, 0.8]])
BEFORE, AFTER = (Adversary(TransitionMatrix(one), TransitionMatrix(one)) for one in (CALM, BUSY))
PLANS = {id(known): plan_budget(known, alpha=1.0, horizon=4) for known in (BEFORE, AFTER)}


def opened(place, adversary, *, every="steps", plan=None):
    return ContinualRelease(
        DiscreteLaplaceHistogram(2), ledger=place, plan=plan or PLANS[id(adversary)], renewed=every,
        accountant=TemporalAccountant(adversary),
    )  # fmt: skip


def leaked(epsilons, adopted):
    """By enumeration, with the matrices that were valid at each step."""
    transitions = range(len(epsilons) - 1)
    backward, forward = ([BUSY if s + later >= adopted else CALM for s in transitions] for later in (1, 0))
    return enumerated_boxes(backward, forward, *boxes_of(epsilons, 2))[2]


def days(first, n):
    return [str(np.datetime64("2024-01-29") + k) for k in range(first, first + n)]


@pytest.mark.parametrize("every", ["steps", "monthly"])
@pytest.mark.parametrize("adopted", [1, 3, 4, 6])
@pytest.mark.long
def test_every_epoch_satisfies_alpha_and_all_satisfy_the_new_promise(tmp_path, every, adopted, monkeypatch):
    monkeypatch.setattr("temporaldp.publish.release.step.STEPS_BETWEEN_CHECKPOINTS", 4)
    place = tmp_path / "release.db"
    with opened(place, BEFORE, every=every) as release:
        for day in days(0, adopted):
            release.release([70, 30], time=day)
    event = adopt_correlation(place, AFTER, plan=PLANS[id(AFTER)], by="Ann")
    for day in days(adopted, 7 - adopted):  # a process a day; 29 to 31 January, then February
        with opened(place, AFTER, every=every) as release:
            release.release([70, 30], time=day)
            promised = release.guard.promise
    with Ledger(place) as ledger:
        epsilons, told, renewal = ledger.epsilons, [row.leakage for row in ledger[:]], renewal_of(ledger)
        epochs = renewal.epochs_of(ledger.times)
    assert epochs == ([(0, 4), (4, 7)] if every == "steps" else [(0, 3), (3, 7)])
    for n in range(1, 8):
        assert told[n - 1] == pytest.approx(leaked(epsilons[:n], adopted).max(), rel=1e-11)
    for first, end in epochs:
        assert leaked(epsilons[first:end], max(adopted - first, 0)).max() <= 1.0
    assert told[-1] <= promised == renewal.promise == event.details["promise"]
    share, mixed = event.details["share"], adopted not in {first for first, _ in epochs}
    assert 0.0 < share <= 1.0 and (mixed or share == 1.0 or every == "monthly")
    granted = PLANS[id(AFTER)].epsilons
    first, end = next(one for one in reversed(epochs) if one[0] <= adopted)
    assert (epsilons[adopted:end] <= (share if mixed else 1.0) * granted[adopted - first : end - first]).all()


@pytest.mark.long
def test_the_rest_of_an_epoch_uses_what_is_left_of_its_level(tmp_path):
    place = tmp_path / "release.db"
    with opened(place, BEFORE) as release:
        for day in days(0, 2):
            release.release([70, 30], time=day)
        spent = release.ledger.epsilons
    share = adopt_correlation(place, AFTER, plan=PLANS[id(AFTER)]).details["share"]
    assert share < 1.0
    whole = np.concatenate((spent, share * PLANS[id(AFTER)].epsilons[2:]))
    assert leaked(whole, 2).max() == pytest.approx(1.0, abs=1e-7)
    with opened(place, AFTER) as release:
        budget = release.forecast(days(2, 1)[:1])[0].parameter
        assert budget == share * PLANS[id(AFTER)].epsilons[2]
        with pytest.raises(BudgetError, match="what is left of this epoch's level"):
            release.release([70, 30], time=days(2, 1)[0], epsilon=1.01 * budget)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.long
def test_promise_after_an_adoption_is_a_tight_bound(tmp_path, n):
    place = tmp_path / "release.db"
    with opened(place, BEFORE) as release:
        for day in days(0, n):
            release.release([70, 30], time=day)
        spent = release.ledger.epsilons
    told = adopt_correlation(place, AFTER, plan=PLANS[id(AFTER)]).details
    plan = PLANS[id(AFTER)].epsilons
    following = np.concatenate((spent, told["share"] * plan[n % 4 :], plan, plan, plan))[:10]
    worst = leaked(following, n).max()
    assert worst <= told["promise"]
    long = np.concatenate((spent, told["share"] * plan[n % 4 :], np.tile(plan, 20)))
    matrices = [TransitionMatrix(BUSY if s >= n else CALM) for s in range(len(long))]
    followed = Adversary(matrices[1:], matrices[:-1])
    assert told["promise"] <= 1.0001 * temporal_leakage(followed, long).worst


@pytest.mark.long
def test_refused_adoption_changes_nothing(tmp_path):
    place = tmp_path / "release.db"
    with opened(place, BEFORE) as release:
        release.release([70, 30], time="2024-01-01")
        head = release.ledger.head
        for plan, error, said in (
            (None, InputError, "make a plan with the new one"),
            (plan_budget(AFTER, alpha=0.9, horizon=4), InputError, "expected a plan of alpha = 1 for 4 steps"),
            (plan_budget(AFTER, alpha=1.0, horizon=5), InputError, "expected a plan of alpha = 1 for 4 steps"),
            (plan_budget(AFTER, alpha=1.0), InputError, "an infinite horizon"),
            (PLANS[id(BEFORE)], PlanError, "by themselves against this correlation"),
        ):
            with pytest.raises(error, match=said):
                adopt_correlation(place, AFTER, plan=plan)
        release.refresh()
        assert release.ledger.head == head
        adopt_correlation(place, AFTER, plan=PLANS[id(AFTER)])
        with pytest.raises(LedgerMismatchError, match="another plan since it was opened"):
            release.release([70, 30], time="2024-01-02")
    with pytest.raises(LedgerMismatchError, match="correlations"):
        opened(place, BEFORE)
    with (
        ContinualRelease(
            DiscreteLaplaceHistogram(2), ledger=tmp_path / "b.db", accountant=TemporalAccountant(BEFORE, alpha=1.0)
        ) as release,
        pytest.raises(InputError, match="not renewed"),
    ):
        adopt_correlation(release.ledger, AFTER, plan=PLANS[id(AFTER)])
