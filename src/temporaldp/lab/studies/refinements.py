"""Likelihood-ratio tests of finer models than one first-order matrix for all users, and states with few data.

Notation
--------
G       2 log of the likelihood ratio of a finer model and a coarser one, both at maximum likelihood (the G-test); under the
        coarser one about chi-square with as many degrees of freedom as the finer one has parameters more
BIC     -2 log likelihood + parameters log(transitions): the model with the smaller one is preferred
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from scipy.special import chdtrc, rel_entr

from temporaldp.base.errors import EstimationError
from temporaldp.base.values import BoolArray, IntArray, whole_number
from temporaldp.data.tables.estimation import all_transitions
from temporaldp.data.tables.longer_memory import ages_of
from temporaldp.data.tables.models import estimate_models
from temporaldp.data.tables.traces import Traces, transitions_of

FEW_A_CELL = 5.0
"""Transitions a possible cell below which a row is thin: its probabilities are known to one digit at best."""


OLD = 6
"""Steps from which on a state counts as old."""

LARGEST_CHOSEN = 400_000
"""Pairs of states times hidden states times steps up to which a model, or one at a confidence, is chosen by default."""

SIGNIFICANT = 0.05
"""Probability that some test rejects first order although it is true."""


@dataclass(frozen=True, slots=True)
class Refinement:
    """A finer model, compared with one first-order matrix for all users.

    Parameters
    ----------
    name : str
        Name of the model.
    statistic : float
        G.
    degrees : int
    p_value : float
        Probability of this G or a larger one if the coarser model is true; by chi-square, approximate for small counts.
    bic_gain : float
        BIC of the coarser model less that of the finer one: above 0 the finer one is preferred.
    transitions : int
        Number of compared transitions.
    """

    name: str
    statistic: float
    degrees: int
    p_value: float
    bic_gain: float
    transitions: int

    @property
    def preferred(self) -> bool:
        """Whether the data prefer the finer model, by BIC."""
        return self.bic_gain > 0.0

    @property
    def has_few(self) -> bool:
        """Whether too few transitions were compared for a test of any power."""
        return self.transitions < FEW_A_CELL * self.degrees


def compared(name: str, groups: IntArray, rows: IntArray, columns: IntArray, n: int) -> Refinement:
    """Test whether the next state depends on the group, given the current state.

    Parameters
    ----------
    groups, rows, columns : int arrays, shape (m,)
        Group, row and column of each transition.
    n : int
        Number of states.
    """
    n_groups = int(groups.max(initial=0)) + 1
    fine = np.bincount((groups * n + rows) * n + columns, minlength=n_groups * n * n).reshape(n_groups, n, n)
    coarse = fine.sum(axis=0)
    # Log likelihoods at maximum likelihood: the sum of c log(c / total of the row) over all cells
    of_fine, of_coarse = (rel_entr(cells, cells.sum(axis=-1, keepdims=True)).sum() for cells in (fine, coarse))
    statistic = 2.0 * float(of_fine - of_coarse)
    possible = (coarse > 0).sum(axis=1)
    visited = (fine.sum(axis=2) > 0).sum(axis=0)
    degrees = int((np.maximum(visited - 1, 0) * np.maximum(possible - 1, 0)).sum())
    p_value = float(chdtrc(degrees, statistic)) if degrees else 1.0
    bic_gain = statistic - degrees * float(np.log(max(len(rows), 1)))
    return Refinement(name, statistic, degrees, p_value, bic_gain, len(rows))


def refinements(trajectories: Traces, *, period: int | None = None) -> tuple[Refinement, ...]:
    """Test order 2, a matrix for each part of the time (or phase of a period), person and age of a state, against one matrix.

    Raises
    ------
    InputError
        The period is not admissible.
    """
    n = trajectories.n_states
    people, times, before, after = transitions_of(trajectories)
    followed = (people[1:] == people[:-1]) & (times[1:] == times[:-1] + 1)  # by the next transition of the same person
    if period is None:
        name = "a matrix for each quarter of the time"
        groups = np.minimum(4 * times // max(trajectories.n_times - 1, 1), 3)
    else:
        whole_number(period, "period", least=2)
        groups, name = times % period, f"a matrix for each of {period} phases"
    age = ages_of(trajectories, OLD)[people, times]
    aged = age > 0
    return (
        compared("order 2", before[:-1][followed], before[1:][followed], after[1:][followed], n),
        compared(name, groups, before, after, n),
        compared("a matrix for each person", people, before, after, n),
        compared("a matrix for each age of a state", age[aged] - 1, before[aged], after[aged], n),
    )


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Models of the correlation that a history prefers, and why.

    Parameters
    ----------
    models : tuple of str
        Names, as `estimate_models` takes them.
    reasons : tuple of str
        Sentences, with the figures of each test.
    left_out : tuple of str
        Names of models that the history prefers and whose leakage takes minutes.
    """

    models: tuple[str, ...]
    reasons: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def chosen_models(history: Traces, *, period: int | None = None) -> ModelChoice:
    """Choose first order and each model that a likelihood-ratio test prefers to it, at 5 % for all tests together.

    Models are taken at 95 % confidence; first order, too, where no other is preferred. Where there are too few transitions for
    a test, or a model cannot be estimated, all first-order chains within 95 % confidence are added. A model whose leakage takes
    minutes is left out, with a reason.
    """
    order, clock, _, ages = refinements(history, period=period)
    tests = {"second order": order, "dwell times": ages} | ({} if period is None else {"time of day": clock})
    models, reasons, left_out, is_undecided = [], [], [], False
    n = history.n_states
    per_hidden = n * (n - 1) * history.n_times
    takes_long = {
        name
        for name, m in (("first order", n), ("second order", n**2), ("dwell times", n * OLD))
        if m * per_hidden > LARGEST_CHOSEN
    }
    for name, one in tests.items():
        figures = (
            f"G = {one.statistic:.0f} of {one.degrees} degrees, p = {one.p_value:.2g}, {one.transitions} transitions"
        )
        if one.has_few or not one.degrees:
            is_undecided = True
            reasons.append(f"Too few data for {name} ({figures}).")
            continue
        if one.p_value >= SIGNIFICANT / len(tests):
            reasons.append(f"First order is not rejected for {name} ({figures}).")
            continue
        if name in takes_long:
            left_out.append(name)
            reasons.append(
                f"First order is rejected for {name} ({figures}), whose leakage takes minutes: move it to models to wait."
            )
            continue
        try:
            estimate_models(history, [name], period=period)
        except EstimationError as error:
            is_undecided = True
            reasons.append(f"{str(error)[:1].upper()}{str(error)[1:]} ({figures}).")
            continue
        models.append(f"{name} 0.95")
        reasons.append(f"First order is rejected for {name} ({figures}).")
    if is_undecided and "first order" in takes_long:
        reasons.append(
            "All first-order chains within 95 % confidence would take minutes: add 'confidence 0.95' to wait for them."
        )
    elif is_undecided:
        models.append("confidence 0.95")
        reasons.append("So all first-order chains within 95 % confidence count, too.")
    if not models and "first order" not in takes_long:
        models = ["first order 0.95"]
    return ModelChoice(("first order", *models), tuple(reasons), tuple(left_out))


@dataclass(frozen=True, slots=True)
class Weaknesses:
    """Parts of a correlation with few data, by the names of states.

    Parameters
    ----------
    groups : tuple of tuple of str
        States that communicate; several groups do not communicate with one another.
    never_left : tuple of str
        States with transitions to themselves only.
    unseen : tuple of str
        States without a transition to a next state.
    thin : tuple of str
        States with fewer than five transitions for each state that can follow.
    """

    groups: tuple[tuple[str, ...], ...]
    never_left: tuple[str, ...]
    unseen: tuple[str, ...]
    thin: tuple[str, ...]


def weaknesses(trajectories: Traces) -> Weaknesses:
    """Return the parts of the correlation for which the traces contain few data."""
    counts = all_transitions(trajectories)
    names = trajectories.states
    n_groups, label = scipy.sparse.csgraph.connected_components(
        scipy.sparse.csr_array(counts), directed=True, connection="strong"
    )
    total, following = counts.sum(axis=1), (counts > 0).sum(axis=1)

    def named(chosen: BoolArray) -> tuple[str, ...]:
        return tuple(names[k] for k in np.flatnonzero(chosen))

    return Weaknesses(
        tuple(sorted((named(label == g) for g in range(n_groups)), key=len, reverse=True)),
        named((total > 0) & (np.diag(counts) == total)),
        named(total == 0),
        named((total > 0) & (total < FEW_A_CELL * following)),
    )
