"""Another correlation from a step on: the level holds for all steps, and what is told is the leakage of varying matrices."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from exact_cases import random_rows
from making import of_words
from temporaldp import (
    Adversary,
    InputError,
    LeakageBudgetError,
    TemporalAccountant,
    TransitionMatrix,
    sustainable_budget,
    temporal_leakage,
)
from temporaldp.core.accounting.adoption import KeptAdoption


def mixing(rng, n):
    """Rows that have values in common: every level has a sustainable budget."""
    return Adversary(*(TransitionMatrix(0.8 * random_rows(n, rng) + 0.2 / n) for _ in range(2)))


def two(p):
    matrix = TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]])
    return Adversary(matrix, matrix)


def varying(valid, spent):
    """The leakage by the series, one matrix a transition: of each step the one that was valid at it."""
    if len(spent) < 2:
        return max(spent)
    backward = [valid[t].backward for t in range(1, len(spent))]
    forward = [valid[t].forward for t in range(len(spent) - 1)]
    return temporal_leakage(Adversary(backward, forward), spent).worst


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.long
def test_level_is_satisfied_and_can_be_exhausted_after_a_change_of_correlation(seed):
    rng = np.random.default_rng(40 + seed)
    n = int(rng.integers(2, 5))
    known = [mixing(rng, n) for _ in range(3)]
    accountant, valid, tail = TemporalAccountant(known[0], alpha=1.0), [], 40
    for step in range(16):
        if step in (6, 12):
            accountant.adopt(known[step // 6])
        now = known[step // 6]
        asked = float(rng.choice([accountant.reserve, accountant.remaining(), accountant.reserve * rng.random()]))
        accountant.spend(asked)
        valid.append(now)
        spent, later = list(accountant.spent), [now] * tail
        assert accountant.total() == pytest.approx(varying(valid, spent), rel=1e-10)
        assert varying(valid + later, [*spent, *[accountant.reserve] * tail]) <= 1.0
        if step in (6, 14):
            most, later = accountant.remaining(), [now] * 200
            assert varying(valid + later, [*spent, most, *[accountant.reserve] * 199]) <= 1.0
            more = most * (1.0 + 1e-6)
            assert varying(valid + later, [*spent, more, *[accountant.reserve] * 199]) > 1.0
            with pytest.raises(LeakageBudgetError):
                accountant.spend(more * 1.01)


@pytest.mark.long
def test_the_reserve_after_a_change_is_the_largest_that_the_series_allows():
    calm, busy = two(0.6), two(0.9)
    accountant = TemporalAccountant(calm, alpha=1.0)
    while accountant.remaining() > accountant.reserve * (1.0 + 1e-9) and len(accountant) < 6:
        accountant.spend(accountant.remaining())
    spent = list(accountant.spent)
    accountant.adopt(busy)
    assert accountant.reserve < sustainable_budget(busy, alpha=1.0)  # what leaked before counts
    valid = [calm] * len(spent) + [busy] * 150
    assert varying(valid, [*spent, *[accountant.reserve] * 150]) <= 1.0
    assert varying(valid, [*spent, *[accountant.reserve * (1.0 + 1e-5)] * 150]) > 1.0


@pytest.mark.long
def test_adopting_with_both_counts_the_larger_leakage():
    calm, busy = two(0.6), two(0.9)
    accountant = TemporalAccountant(busy, alpha=1.0)
    for _ in range(5):
        accountant.spend(accountant.reserve)
    one, both = copy(accountant).adopt(calm), copy(accountant).adopt(calm, both=True)
    assert both.reserve < one.reserve
    for _ in range(10):
        one.spend(one.reserve)
        both.spend(both.reserve)
    assert one.total() == pytest.approx(varying([busy] * 5 + [calm] * 10, list(one.spent)), rel=1e-10)
    spent = list(both.spent)
    each = [varying([busy] * 5 + [now] * 10, spent) for now in (busy, calm)]
    assert both.total() == pytest.approx(max(each), rel=1e-10)
    assert both.leakage().worst == pytest.approx(max(each), rel=1e-10)


def test_adopted_users_continue_the_user_of_the_same_name():
    calm, busy = two(0.6), two(0.9)
    accountant = TemporalAccountant({"a": calm, "b": busy}, alpha=1.0, reserve=0.0).spend(0.1)
    assert copy(accountant).adopt({"a": busy, "b": calm}).population.names == ("a", "b")
    assert copy(accountant).adopt({"a": busy}).population.names == ("a", "b")  # b keeps the old one
    assert len(copy(accountant).adopt({"c": calm}).population) == 2  # c may be either
    assert len(copy(accountant).adopt(calm).population) == 2  # everybody
    assert len(copy(accountant).adopt(calm, both=True).population) == 4


@pytest.mark.long
def test_replaying_the_history_restores_the_accountant():
    calm, busy = two(0.6), two(0.9)
    accountant = TemporalAccountant(calm, alpha=1.0)
    for _ in range(4):
        accountant.spend(accountant.reserve)
    accountant.adopt(busy)
    for part in (1.0, 0.5, 1.5):
        accountant.spend(min(part * accountant.reserve, accountant.remaining()))
    again = TemporalAccountant(calm, alpha=1.0)
    for epsilon in accountant.spent[:4]:
        again.spend(epsilon, enforce=False)
    again.adopt_kept(KeptAdoption(4, busy, both=False, reserve=accountant.reserve))
    for epsilon in accountant.spent[4:]:
        again.spend(epsilon, enforce=False)
    assert again.total() == accountant.total()
    assert again.reserve == accountant.reserve
    assert again.remaining() == pytest.approx(accountant.remaining(), rel=1e-9)


@pytest.mark.parametrize("spent", [[0.5, 0.5], [0.9], []])
@pytest.mark.long
def test_the_reserve_after_an_adoption_is_one_that_what_was_spent_allows(spent):
    """It is admitted at every later step, without a look at what was spent."""
    accountant = TemporalAccountant(two(1.0), alpha=1.0)
    for epsilon in spent:
        accountant.spend(epsilon)
    accountant.adopt(two(0.9))
    for _ in range(4):
        accountant.spend(max(accountant.reserve, accountant.remaining()))
    assert accountant.leakage().worst <= 1.0


def test_adoption_before_the_first_step_equals_a_new_accountant():
    calm, busy = two(0.6), two(0.9)
    changed, fresh = TemporalAccountant(calm, alpha=1.0).adopt(busy), TemporalAccountant(busy, alpha=1.0)
    assert changed.reserve == pytest.approx(fresh.reserve, rel=1e-8)
    for accountant in (changed, fresh):
        accountant.spend(0.05)
        accountant.spend(0.05)
    assert changed.total() == fresh.total()


@pytest.mark.parametrize(
    ("accountant", "adversary", "message"),
    [
        (TemporalAccountant(two(0.6), alpha=1.0), Adversary(two(0.9).backward), "the same directions"),
        (
            TemporalAccountant(two(0.6), alpha=1.0),
            Adversary([two(0.9).backward], [two(0.9).backward]),
            "constant matrices",
        ),
        (
            TemporalAccountant(two(0.6), alpha=1.0),
            Adversary(*[TransitionMatrix(np.eye(2), states=["x", "y"])] * 2),
            "new correlation",
        ),
    ],
)
def test_refused_adoption_changes_nothing(accountant, adversary, message):
    accountant.spend(0.1)
    before = accountant.remaining(), accountant.total(), len(accountant.population)
    with pytest.raises(InputError, match=message):
        accountant.adopt(adversary)
    assert (accountant.remaining(), accountant.total(), len(accountant.population)) == before


def test_no_reserve_if_the_new_correlation_has_no_sustainable_budget():
    calm, certain = two(0.6), Adversary(*[TransitionMatrix(np.eye(2))] * 2)
    accountant = TemporalAccountant(calm, alpha=1.0)
    for _ in range(3):
        accountant.spend(0.1)
    accountant.adopt(certain)
    assert accountant.reserve == 0.0
    accountant.spend(accountant.remaining())
    assert 0.99 < varying([calm] * 3 + [certain], list(accountant.spent)) <= 1.0
    assert accountant.remaining() == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (0.9, 0.6),
        (0.9, 0.9),
        pytest.param(0.6, 0.999, marks=pytest.mark.long),
        pytest.param(0.6, 0.9999, marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_evidence_from_before_a_change_never_proves_more_than_alpha(before, after):
    """A rollout compares leakage with the level at that time, and may exceed it by slack or rounding of a sign."""
    accountant = TemporalAccountant(two(before), alpha=1.0)
    for _ in range(3):
        accountant.spend(accountant.remaining())
    levels = []
    for known in (two(before), two(after), two(before)):
        accountant.adopt(known)
        (one,) = accountant.filters
        levels.append(one.problem.level)
        assert max(levels) + max(one.problem.slack, one.problem.room) <= 1.0
        assert accountant.remaining() > 0.0
        accountant.spend(accountant.remaining())
    whole = two(before).changed(4, two(after)).changed(5, two(before)).between(0, 6)
    assert temporal_leakage(whole, accountant.spent).worst <= 1.0


def test_nothing_is_adopted_beside_a_longer_memory():
    calm, busy = (TransitionMatrix([[p, 1.0 - p], [1.0 - p, p]]) for p in (0.6, 0.9))
    models = {"first order": Adversary(calm, calm), "second order": of_words(np.full((2, 2, 2), 0.5))}
    accountant = TemporalAccountant(models).spend(0.1)
    with pytest.raises(InputError, match="expected an accountant by the exact leakage"):
        accountant.adopt({"first order": Adversary(busy, busy)})
    assert accountant.n_adopted == 0 and len(accountant.spend(0.1)) == 2


@pytest.mark.long
def test_a_reserve_that_is_asked_for_is_the_one_that_was_proved():
    """A reserve some 1e-7 above what the level allows was kept, and then admitted without a look at the level."""
    asked = sustainable_budget(two(0.9), 1.0) * (1.0 + 3e-7)
    accountant = TemporalAccountant(two(0.6), alpha=1.0, reserve=asked).adopt(two(0.9))
    for _ in range(300):
        accountant.spend(accountant.reserve)
    assert accountant.total() <= 1.0
