"""Blocks of an accountant: every release inside is charged once, before noise is drawn."""

from __future__ import annotations

import asyncio
import threading

import numpy as np
import pytest

from temporaldp import (
    Adversary,
    ContinualRelease,
    DiscreteLaplaceHistogram,
    Exact,
    InputError,
    LeakageBudgetError,
    MetricPrivacy,
    TemporalAccountant,
    TransitionMatrix,
    plan_budget,
)
from temporaldp.publish.release import release_snapshots

MATRIX = TransitionMatrix([[0.8, 0.2], [0.2, 0.8]])


ADVERSARY = Adversary(MATRIX, MATRIX)


CERTAIN = TransitionMatrix(np.eye(2))


@pytest.mark.long
def test_releases_inside_a_block_are_charged_once_before_noise_is_drawn():
    mechanism = DiscreteLaplaceHistogram(n_states=2)
    plan = plan_budget(ADVERSARY, alpha=1.0, horizon=3)
    with TemporalAccountant(ADVERSARY, alpha=3.0) as outer:
        mechanism([3, 4], 0.1)
        with TemporalAccountant(ADVERSARY) as inner, TemporalAccountant(ADVERSARY) as innermost:
            released = release_snapshots(mechanism, [[3, 4]] * 2, plan)
        assert inner.spent.tolist() == innermost.spent.tolist() == released.epsilons.tolist()
        with pytest.raises(LeakageBudgetError), inner:
            release_snapshots(mechanism, [[3, 4]] * 3, plan_budget(ADVERSARY, alpha=20.0, horizon=3))
        assert (len(inner), len(outer)) == (2, 3), "one refusal, and nobody is charged"
        drawn = []
        with pytest.raises(LeakageBudgetError):
            release_snapshots(
                lambda snapshot, epsilon: drawn.append(snapshot),
                [1, 2, 3],
                plan_budget(ADVERSARY, alpha=20.0, horizon=3),
            )
        with pytest.raises(LeakageBudgetError):
            mechanism([3, 4], 9.0)
        with pytest.raises(InputError):
            mechanism([3, 4, 5], 0.1)
        assert drawn == []
        assert outer.spent.tolist() == [mechanism.epsilon_spent(0.1), *released.epsilons]
    mechanism([3, 4], 0.5)
    assert len(outer) == 3


def test_accountant_of_two_nested_blocks_is_charged_once():
    with TemporalAccountant(ADVERSARY, horizon=1) as accountant, accountant:
        DiscreteLaplaceHistogram(n_states=2)([3, 4], 0.1)
    assert len(accountant) == 1


def test_block_does_not_apply_to_other_threads():
    mechanism = DiscreteLaplaceHistogram(n_states=2)
    with TemporalAccountant(ADVERSARY, alpha=1.0) as accountant:
        thread = threading.Thread(target=mechanism, args=([3, 4], 5.0))
        thread.start()
        thread.join()
    assert len(accountant) == 0


def test_two_tasks_may_share_the_block_of_an_accountant():
    accountant = TemporalAccountant(ADVERSARY)
    mechanism = DiscreteLaplaceHistogram(n_states=2)

    async def publish(seconds):
        with accountant:
            await asyncio.sleep(seconds)
            mechanism([3, 4], 0.1)
        mechanism([3, 4], 0.1)

    async def both():
        await asyncio.gather(publish(0.02), publish(0.01))

    asyncio.run(both())
    assert len(accountant) == 2


def test_budget_spent_in_a_failed_block_stays_spent():
    accountant = TemporalAccountant(ADVERSARY, alpha=1.0)
    with pytest.raises(ZeroDivisionError), accountant:
        DiscreteLaplaceHistogram(n_states=2)([3, 4], 0.1)
        raise ZeroDivisionError
    assert len(accountant) == 1


@pytest.mark.long
@pytest.mark.parametrize("distance", [3.0, 0.5])
def test_budgets_that_multiply_other_distances_are_refused(distance, tmp_path):
    """A budget of the plan would count for a third, or for half, of what is released."""
    metric = MetricPrivacy([[0.0, distance], [distance, 0.0]])
    plain, apart = (plan_budget(ADVERSARY, 1.0, 5, accounting=one) for one in (Exact(), metric))
    for plan, around in ((apart, Exact()), (plain, metric)):
        drawn = []
        with TemporalAccountant(ADVERSARY, accounting=around) as accountant:
            with pytest.raises(InputError, match="other distances"):
                release_snapshots(lambda one, epsilon, drawn=drawn: drawn.append(epsilon), [1] * 5, plan)
            release = ContinualRelease(
                lambda one, epsilon, drawn=drawn: drawn.append(epsilon),
                ledger=tmp_path / f"{around.name}.db",
                plan=plan,
            )
            with release, pytest.raises(InputError, match="other distances"):
                release.release(1, time=0)
        assert not drawn and not len(accountant)
    with TemporalAccountant(ADVERSARY, accounting=metric) as accountant:
        release_snapshots(lambda one, epsilon: one, [1] * 5, apart)
    assert len(accountant) == 5


def test_a_mechanism_called_where_states_are_near_is_refused():
    """It distinguishes any two states by its whole epsilon, of which half would be counted."""
    near = TemporalAccountant(ADVERSARY, accounting=MetricPrivacy([[0.0, 0.5], [0.5, 0.0]]))
    with near, pytest.raises(InputError, match="metric puts two of them"):
        DiscreteLaplaceHistogram(n_states=2)([3, 4], 0.2)
    assert not len(near)
