"""An accountant that goes on from a kept state gives the answers, to the last bit, of one that was told every budget."""

from __future__ import annotations

import json
import pickle
from copy import copy

import numpy as np
import pytest

from exact_cases import random_rows
from temporaldp import Adversary, InputError, PaperBound, TemporalAccountant, TransitionMatrix, temporal_leakage
from temporaldp.core.accounting.adoption import KeptAdoption


def refused():
    raise AssertionError("a budget from before the kept state was asked for")


def answers(accountant):
    found = [accountant.total(), accountant.total(0.05), len(accountant)]
    if accountant.alpha is not None:
        found += [
            accountant.reserve,
            accountant.remaining(),
            accountant.remaining(last=True),
            accountant.admits([0.01]),
        ]
    return found


def a_case(rng, *, directions=(True, True)):
    def one():
        n = 3
        pair = [TransitionMatrix(0.8 * random_rows(n, rng) + 0.2 / n) if known else None for known in directions]
        return Adversary(*pair)

    return one(), one()


def test_copy_includes_budgets_read_while_it_is_made():
    first, _ = a_case(np.random.default_rng(1))
    told = TemporalAccountant(first)
    told.spend(0.1)
    told.spend(0.2)
    again = TemporalAccountant(first)
    again.resume(told.kept_state(), [], lambda: [0.1, 0.2])

    class Reading:
        """Odometers whose copy takes so long that another thread asks for the budgets."""

        def __copy__(self):
            assert again.spent.tolist() == [0.1, 0.2]
            return self

    again._known_odometers = Reading()
    assert copy(again).spent.tolist() == [0.1, 0.2]
    with pytest.raises(InputError, match="n_steps"):
        TemporalAccountant(first).resume(told.kept_state() | {"n_steps": -1}, [], refused)


@pytest.mark.parametrize("alpha", [None, 0.8])
@pytest.mark.parametrize(
    ("directions", "changes"),
    [
        ((True, True), True),
        ((False, True), False),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in [((True, True), False), ((True, False), False), ((True, False), True), ((False, True), True)]
        ),
    ],
)
def test_resumed_accountant_continues_as_after_a_full_replay(alpha, directions, changes):
    """Random budgets, some as large as there is room for, and another correlation in between."""
    rng = np.random.default_rng([sum(directions), changes, alpha is None, directions[0]])
    first, second = a_case(rng, directions=directions)
    told, adopted = TemporalAccountant(first, alpha=alpha), []

    def spend(accountant, share, loud):
        most = 0.2 if alpha is None else max(accountant.remaining(), 0.0)
        accountant.spend(most * share if loud or alpha is None else min(most, accountant.reserve) * share)

    for step in range(16):
        if changes and step == 10:
            told.adopt(second)
            adopted.append(KeptAdoption(10, second, False, told.reserve))
        spend(told, rng.random(), step % 4 == 0)
    spent = told.spent.tolist()
    state = json.loads(json.dumps(told.kept_state()))
    resumed = TemporalAccountant(first, alpha=alpha)
    resumed.resume(state, adopted, refused)
    assert answers(resumed) == answers(told)
    for step in range(8):
        share = rng.random()
        for one in (told, resumed):
            spend(one, share, step % 5 == 0)
        assert answers(resumed) == answers(told)
    line = first.changed(10, second) if changes else first
    series = temporal_leakage(line, told.spent)
    assert resumed.total() == pytest.approx(series.worst, rel=1e-11)
    assert resumed.total() >= series.attained.temporal.max()
    whole = TemporalAccountant(first, alpha=alpha)
    whole.resume(state, adopted, lambda: spent)
    assert whole.spent.tolist() == spent  # read when they are asked for
    assert whole.leakage(spent).worst == pytest.approx(told.leakage(spent).worst, rel=1e-12)


def test_resumed_accountant_has_its_reserve():
    rng = np.random.default_rng(5)
    first, _ = a_case(rng)
    told = TemporalAccountant(first, alpha=0.8)
    for _ in range(12):
        told.spend(told.reserve)
    resumed = TemporalAccountant(first, alpha=0.8)
    resumed.resume(told.kept_state(), [], refused)
    for _ in range(10):
        resumed.spend(resumed.reserve)
        told.spend(told.reserve)
    assert answers(resumed) == answers(told)


@pytest.mark.long
def test_kept_state_does_not_grow():
    matrix = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    accountant, sizes = TemporalAccountant(Adversary(matrix, matrix)), []
    for steps in (320, 90):
        for _ in range(steps):
            accountant.spend(0.1)
        sizes.append(len(json.dumps(accountant.kept_state())))
    assert sizes[1] < 1.1 * sizes[0]


def test_copy_is_independent():
    matrix = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    told = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0).spend(0.1)
    resumed = TemporalAccountant(Adversary(matrix, matrix), alpha=1.0)
    resumed.resume(told.kept_state(), [], lambda: [0.1])
    other = pickle.loads(pickle.dumps(resumed))
    other.spend(0.2)
    assert (len(resumed), len(other), other.spent.tolist()) == (1, 2, [0.1, 0.2])
    assert resumed.total() == told.total() < other.total()


def test_no_state_is_kept_where_every_budget_is_needed():
    """Where every budget is needed: another accounting method, and after the last step."""
    matrix = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    constant = Adversary(matrix, matrix)
    assert TemporalAccountant(constant, accounting=PaperBound()).spend(0.1).kept_state() is None
    assert TemporalAccountant(constant, alpha=1.0).spend(0.1, last=True).kept_state() is None


def test_horizon_and_time_varying_matrices_are_kept():
    one, two = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]]), TransitionMatrix([[0.6, 0.4], [0.1, 0.9]])
    varying = Adversary([one, two] * 3 + [one], [two, one] * 3 + [two])
    for told in (
        TemporalAccountant(Adversary(one, one), alpha=1.0, horizon=8, reserve=0.05),
        TemporalAccountant(varying, alpha=1.0),
    ):
        resumed = copy(told)
        told.spend([0.1, 0.2, 0.1])
        resumed.resume(json.loads(json.dumps(told.kept_state())), (), refused)
        assert answers(resumed.spend(0.05)) == answers(told.spend(0.05))


def test_inconsistent_state_is_refused():
    two = TransitionMatrix([[0.8, 0.2], [0.3, 0.7]])
    state = TemporalAccountant(Adversary(two, two), alpha=1.0).spend(0.1).kept_state()

    def fresh(alpha=1.0):
        return TemporalAccountant(Adversary(two, two), alpha=alpha)

    for bad in (
        {**state, "n_adopted": 1},
        {key: value for key, value in state.items() if key != "odometers"},
        {**state, "filters": None},
        {**state, "odometers": state["odometers"] * 2},
        {**state, "odometers": [{**state["odometers"][0], "arrays": ["<f4 1 AAAA"]}]},
    ):
        with pytest.raises(InputError, match=r"state|adoption"):
            fresh().resume(bad, [], list)
    with pytest.raises(InputError, match="another level"):
        fresh(alpha=0.01).resume(state, [], list)
    with pytest.raises(InputError, match="spent nothing"):
        fresh().spend(0.1).resume(state, [], list)


def test_state_of_other_users_is_refused():
    """Also where the users are the same in another order: each has an odometer of its own."""
    often, seldom = (TransitionMatrix([[stay, 1.0 - stay], [0.1, 0.9]]) for stay in (0.5, 0.9))
    users = {"a": Adversary(often, often), "b": Adversary(seldom, seldom)}
    state = TemporalAccountant(users, alpha=1.0).spend(0.1).kept_state()
    TemporalAccountant(users, alpha=1.0).resume(state, [], list)
    for others in ({"a": users["a"]}, dict(reversed(users.items())), {"a": users["a"], "b": Adversary(often, seldom)}):
        with pytest.raises(InputError, match="other adversaries"):
            TemporalAccountant(others, alpha=1.0).resume(state, [], list)
