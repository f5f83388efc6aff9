"""A plan that begins again: each epoch holds its level; what all leak together is counted, and promised beforehand."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pytest

from exact_oracles import temporal_by_sign_rule
from renewing import ADVERSARY, BACK, FORTH, PLAN, opened
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    InputError,
    Ledger,
    LedgerError,
    PlanError,
    TransitionMatrix,
    plan_budget,
    plan_noise,
)
from temporaldp.base.errors import LedgerMismatchError
from temporaldp.publish.release import adopt_correlation, export_ledger
from temporaldp.publish.release.renewal import renewal_of


@pytest.mark.long
def test_each_epoch_satisfies_its_level_and_all_satisfy_the_promise(place):
    promised = []
    for day in range(4):  # a process a day, which does not care where epochs end
        with opened(place) as release:
            promised.append(release.guard.promise)
            for time in range(2 * day, 2 * day + 2):
                release.release([70, 30], time=time)
    assert len(set(promised)) == 1
    with Ledger(place) as ledger:
        ledger.verify()
        epsilons, told, renewal = ledger.epsilons, [row.leakage for row in ledger[:]], renewal_of(ledger)
        assert [event.kind for event in ledger.events] == ["renewal"] and ledger.events[0].step == 0
    assert (epsilons[:6] <= np.tile(PLAN.epsilons, 2)).all() and epsilons[3] == epsilons[0]
    for n in range(1, 9):
        assert told[n - 1] == pytest.approx(temporal_by_sign_rule(BACK, FORTH, epsilons[:n]).max(), rel=1e-11)
    assert renewal.epochs_of(ledger.times) == [(0, 3), (3, 6), (6, 8)]
    assert all(temporal_by_sign_rule(BACK, FORTH, epsilons[a:b]).max() <= 1.0 for a, b in [(0, 3), (3, 6), (6, 8)])
    assert 1.0 < told[-1] <= promised[0] == renewal.promise < 1.5


@pytest.mark.long
def test_skipped_step_lowers_leakage_and_raises_no_budget(place):
    with opened(place) as release:
        release.skip(time=0)
        release.release([70, 30], time=1, epsilon=0.1)
        with pytest.raises(BudgetError, match="more than the plan grants"):
            release.release([70, 30], time=2, epsilon=1.0)
        release.release([70, 30], time=2)
        assert release.forecast([3])[0].parameter == PLAN.epsilons[0]
        forecast = release.forecast([3, 4, 5, 6])
        made = [release.release([70, 30], time=time) is not None for time in (3, 4, 5, 6)]
        rows = release.ledger[:]
    assert all(made) and [one.epsilon for one in forecast] == [row.epsilon for row in rows[3:]]
    assert [one.leakage for one in forecast] == [row.leakage for row in rows[3:]]
    exact = temporal_by_sign_rule(BACK, FORTH, [row.epsilon for row in rows]).max()
    assert rows[-1].leakage == pytest.approx(exact, rel=1e-11)


@pytest.mark.long
def test_renewed_release_resumes_from_a_checkpoint_with_identical_results(tmp_path, monkeypatch):
    monkeypatch.setattr("temporaldp.publish.release.step.STEPS_BETWEEN_CHECKPOINTS", 10)
    place = tmp_path / "release.db"
    with opened(place) as release:
        for time in range(25):
            release.release([70, 30], time=time)
        before = release.accountant.total(), release.forecast([25])[0].parameter
    with opened(place) as release:
        assert release.ledger.checkpoint.end.n_steps == 20
        assert (release.accountant.total(), release.forecast([25])[0].parameter) == before


@pytest.mark.long
def test_promise_is_part_of_the_ledger(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as release:
        release.release([70, 30], time=0)
    with Ledger(place) as ledger:
        export_ledger(ledger, tmp_path / "steps.json")
        promise = renewal_of(ledger).promise
    (event,) = json.loads((tmp_path / "steps.json").read_text())["events"]
    assert (event["kind"], event["promise"], event["steps"]) == ("renewal", promise, 3)
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE temporaldp_events SET content = replace(content, '1.', '0.')")
    connection.close()
    with pytest.raises(LedgerError, match="was changed"):
        Ledger(place)


@pytest.mark.long
def test_invalid_renewals_are_refused(tmp_path):
    forgetful, sticky = (TransitionMatrix(rows) for rows in ([[0.55, 0.45], [0.45, 0.55]], np.eye(2)))
    known = Adversary(sticky, sticky)
    with pytest.raises(PlanError, match="accumulates without bound"):
        opened(tmp_path / "a.db", plan=plan_budget(known, alpha=1.0, horizon=3), adversary=known)
    with pytest.raises(PlanError, match="by themselves against this correlation"):
        opened(tmp_path / "a.db", plan=plan_budget(Adversary(forgetful, forgetful), alpha=1.0, horizon=3))
    for wrong in (
        lambda: opened(tmp_path / "a.db", alpha=1.0),
        lambda: opened(tmp_path / "a.db", plan=plan_budget(ADVERSARY, alpha=1.0)),
        lambda: opened(
            tmp_path / "a.db", plan=plan_noise(ADVERSARY, alpha=1.0, horizon=2, accounting=ApproximateDP(1e-3))
        ),
        lambda: opened(tmp_path / "a.db", plan=None),
        lambda: ContinualRelease(DiscreteLaplaceHistogram(2), ledger=tmp_path / "a.db", plan=PLAN, renewed="steps"),
    ):
        with pytest.raises(InputError):
            wrong()
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_renewed_ledger_refuses_other_settings_and_adoptions(tmp_path):
    place = tmp_path / "release.db"
    with opened(place) as release:
        release.release([70, 30], time=0)
    with pytest.raises(LedgerMismatchError, match="renewal"):
        ContinualRelease(DiscreteLaplaceHistogram(2), ledger=place, plan=PLAN)
    with pytest.raises(LedgerMismatchError, match="plan: another one"):
        opened(place, plan=plan_budget(ADVERSARY, alpha=0.9, horizon=3))
    with pytest.raises(InputError, match="is renewed, by a plan"):
        adopt_correlation(place, Adversary(TransitionMatrix(FORTH), TransitionMatrix(FORTH)))
