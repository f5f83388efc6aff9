"""Memoised responses: a permanent answer for each state, reported at every step through a second randomisation.

Given the table of permanent answers the reports are those of a hidden Markov chain, so that their likelihood is a mean over all
tables (Theory, section 25).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temporaldp.accounting.protocol import DIRECTIONS, SIDES, Attained, Evidence, Leakage
from temporaldp.accounting.quilt.method import MarkovQuilt
from temporaldp.accounting.sequence import SequenceMechanism
from temporaldp.correlated_noise.coupling import matrices_of
from temporaldp.correlated_noise.simulation import confidence_bounds
from temporaldp.correlation import Adversary
from temporaldp.errors import InputError
from temporaldp.kernels.shared_noise import add_likelihoods
from temporaldp.mechanisms.output_table import OutputTable, checked_table
from temporaldp.mechanisms.protocol import epsilon_of_one
from temporaldp.mechanisms.simulation import drawn_columns, drawn_paths
from temporaldp.values import ULP, FloatArray, assign, compared_by_value, positive, read_only, whole_number

MOST_ENUMERATED = 1 << 22
"""Sequences of reports times tables times states up to which all are enumerated."""

MOST_TABLES = 4_000
"""Tables of permanent answers; 5 states with 5 answers have 3,125."""

MOST_DRAWS = 2_000_000
"""Outputs given each state. A delta that needs more has the bound by quilts alone. If doubled: half the delta is verified."""

CHUNK = 1 << 22
"""Numbers of one array of simulated reports. If doubled: simulations take twice the memory."""

LEAST_LIKELIHOOD = 1e-200
"""Of scaled reports, given the most likely state. Smaller ones are refused, since the other states' may underflow."""

LEAST_DRAWS = 100.0
"""Times 1 / delta: outputs that a simulation draws given each state."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MemoizedLeakage(Evidence):
    """Leakage of every step between two bounds, which are equal where all reports were enumerated.

    Parameters
    ----------
    states : tuple of str
    attained : Attained
        Lower bounds of the leakage of every step.
    failure : float
        Probability over the simulated draws that a bound is wrong; 0 for enumerated leakage.
    """

    states: tuple[str, ...]
    attained: Attained = field()  # `field()`, or the base's property would be taken for a default
    failure: float = 0.0

    def __len__(self) -> int:
        return len(self.attained.temporal)

    def __repr__(self) -> str:
        return f"MemoizedLeakage({len(self)} steps, {len(self.states)} states, failure={self.failure:g})"

    def worst_pair(self, step: int, direction: object = "temporal") -> None:
        """None: leakage of pairs is not kept."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False)
class MemoizedResponse(SequenceMechanism):
    """Answers that are randomised once for each state and again for each report, as in RAPPOR and telemetry systems.

    The permanent answer of each state is drawn once, independently of the others; each report is a randomisation of the
    permanent answer of the state at its step (Erlingsson, Pihur and Korolova, CCS 2014). Repeated reports of one state reveal
    its permanent answer at most, but *when* a state was held is another secret, about which reports accumulate.

    `temporal_leakage` with ``Exact()`` or ``ApproximateDP(delta)`` enumerates tables and reports while that is feasible. At a
    delta, longer horizons are simulated: upper confidence bounds, with ``series.attained`` as the lower ones and
    ``series.evidence.failure`` as the probability over the draws that one is wrong; at most a thousandth of delta.
    A delta below 5e-5 would
    need too many draws, and has the upper bound of ``MarkovQuilt()``, which holds for any horizon.

    Parameters
    ----------
    permanent : float or array_like, shape (n, g)
        Epsilon of the randomised response that draws a permanent answer (that of state k has true answer k modulo g), or its
        table: row x holds the probability of each answer for state x.
    instantaneous : float or array_like, shape (g, m)
        Epsilon of the randomised response to the permanent answer at each report, or its table.
    n_answers : int
        Number g of permanent answers, at least 2.

    Raises
    ------
    InputError
        An epsilon or a table is not admissible.

    Examples
    --------
    >>> from temporaldp import Adversary, Exact, TransitionMatrix, temporal_leakage
    >>> adversary = Adversary.from_forward(TransitionMatrix([[0.9, 0.1], [0.2, 0.8]]))
    >>> series = temporal_leakage(adversary, MemoizedResponse(1.0, 1.0, 2), accounting=Exact(), horizon=8)
    >>> series.worst < 2.0
    True
    """

    permanent: float | ArrayLike
    instantaneous: float | ArrayLike
    n_answers: int
    reports: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        g = whole_number(self.n_answers, "n_answers", least=2)
        reports = _table(self.instantaneous, np.arange(g), g, "instantaneous")
        if len(reports) != g:
            raise InputError(f"expected a table of reports with a row for each of {g} answers, got {len(reports)} rows")
        assign(self, reports=reports)

    def answers(self, n_states: int) -> FloatArray:
        """Probability of each permanent answer of each state, shape (n, g)."""
        table = _table(self.permanent, np.arange(n_states) % self.n_answers, self.n_answers, "permanent")
        if table.shape != (n_states, self.n_answers):
            raise InputError(
                f"expected a table of permanent answers of shape ({n_states}, {self.n_answers}), got {table.shape}"
            )
        return table

    def event_level(self, n_steps: int, delta: float) -> FloatArray:
        """Epsilon of the instantaneous randomisation for each step, shape (T,): with all else known, a step has one report."""
        return np.full(n_steps, _leakage(OutputTable(self.reports), delta))

    def own_leakage(self, user: Adversary, n_steps: int, delta: float) -> Leakage:
        """Leakage of every step: exact where all reports are enumerated, else confidence bounds at the delta.

        Raises
        ------
        InputError
            A correlation is missing, there are too many tables, or too many reports for delta = 0.
        """
        if user.states is None or (n_steps > 1 and not (user.backward and user.forward)):
            raise InputError(
                "expected an adversary with a backward and a forward correlation for memoised responses, whose reports share "
                "noise with the steps of both sides; MarkovQuilt() accounts for one direction alone"
            )
        reports = _Reports(self, user, n_steps)
        if self.reports.shape[1] ** n_steps * reports.tables.size <= MOST_ENUMERATED:
            exact = np.array([reports.enumerated(t, delta) for t in range(n_steps)]).T
            # Nats, and at a delta a share, by which the computed epsilon may be above the true one, several times over
            short = 4.0 * reports.rounding + 1e-11 + (2e-6 * exact if delta else 0.0)
            attained = Attained(*np.maximum(exact - short, 0.0))
            return Leakage(exact[0], exact[1], exact[2], MemoizedLeakage(user.states, attained))
        if not delta:
            raise InputError(
                f"expected at most {MOST_ENUMERATED} sequences of reports, tables and states to enumerate, got "
                f"{self.reports.shape[1]}^{n_steps} x {reports.tables.size}; use ApproximateDP(delta), which simulates, or "
                "MarkovQuilt(), an upper bound for any horizon"
            )
        sure = MarkovQuilt().series([user], self.event_level(n_steps, 0.0))[0]
        if MOST_DRAWS * delta < LEAST_DRAWS:
            unknown = MemoizedLeakage(user.states, Attained(*np.zeros((3, n_steps))))
            return Leakage(sure.backward, sure.forward, sure.temporal, unknown)
        failure = 1e-3 * delta
        rng = np.random.default_rng(0)
        each = [
            confidence_bounds(
                partial(reports.drawn, t),
                len(user.states),
                delta,
                failure / (3 * n_steps),
                int(LEAST_DRAWS / delta),
                rng,
            )
            for t in range(n_steps)
        ]
        lower, upper = np.array(each).transpose(2, 1, 0)
        most = [np.minimum(one, getattr(sure, name)) for one, name in zip(upper, DIRECTIONS, strict=True)]
        return Leakage(most[0], most[1], most[2], MemoizedLeakage(user.states, Attained(*lower), failure))


class _Reports:
    """Likelihoods of the reports of one user over T steps, given the state at one of them.

    `tables`, shape (M, n): the permanent answer of each state in each table; `chances`, shape (M,): its probability;
    `emitted`, shape (M, n, m): the probability of each report of each state.
    """

    def __init__(self, mechanism: MemoizedResponse, user: Adversary, n_steps: int) -> None:
        n, g, self.n_steps = len(user.states or ()), mechanism.n_answers, n_steps
        if g**n > MOST_TABLES:
            raise InputError(
                f"expected at most {MOST_TABLES} tables of permanent answers, got {g}^{n}; MarkovQuilt() gives an upper bound"
            )
        self.tables: NDArray[np.int64] = np.array(list(itertools.product(range(g), repeat=n)))
        self.chances = mechanism.answers(n)[np.arange(n), self.tables].prod(axis=1)
        self.emitted = mechanism.reports[self.tables]
        self.backward, self.forward = (
            np.array(matrices_of(user, side, n_steps)).reshape(n_steps - 1, n, n) for side in SIDES
        )

    @property
    def rounding(self) -> float:
        """Largest relative error of an enumerated probability: of its likelihood and of the total, sums of terms >= 0."""
        M, n, _ = self.emitted.shape
        return 2.0 * float(M + (self.n_steps + 1) * (n + 4) + 8) * ULP

    def enumerated(self, step: int, delta: float) -> tuple[float, float, float]:
        """Backward, forward and temporal leakage about a step, from all sequences of reports; rounded up."""
        M, n, _ = self.emitted.shape
        before = np.ones((1, M, n))
        for t in range(step):
            before = _extended(before, self.emitted) @ self.backward[t].T
        after = np.ones((1, M, n))
        for t in range(len(self.forward) - 1, step - 1, -1):
            after = _extended(after, self.emitted) @ self.forward[t].T
        past, future = _extended(before, self.emitted), _extended(after, self.emitted)
        both = np.einsum("amx,bmx,m->xab", past, after, self.chances).reshape(n, -1)
        return tuple(  # type: ignore[return-value]
            _epsilon(given, delta, self.rounding)
            for given in (
                np.einsum("amx,m->xa", past, self.chances),
                np.einsum("amx,m->xa", future, self.chances),
                both,
            )
        )

    def drawn(self, step: int, state: int, draws: int, rng: np.random.Generator) -> FloatArray:
        """Log likelihoods of reports drawn given a state, shape (3, draws, n): up to the step, from it on, and of all."""
        size = max(CHUNK // self.n_steps // self.emitted.shape[2], 1)
        some = [self._some(step, state, min(size, draws - k), rng) for k in range(0, draws, size)]
        return np.concatenate(some, axis=1)

    def _some(self, step: int, state: int, draws: int, rng: np.random.Generator) -> FloatArray:
        states = drawn_paths(list(self.backward), list(self.forward), step, state, draws, rng)
        table = rng.choice(len(self.chances), size=draws, p=self.chances / self.chances.sum())
        reports = drawn_columns(self.emitted.cumsum(axis=2)[table[None, :], states], rng).T
        likelihoods = np.zeros((3, draws, self.emitted.shape[1]))
        # A factor for each report changes no ratio, and fewer products underflow.
        scaled = self.emitted / np.maximum(self.emitted.max(axis=(0, 1)), LEAST_LIKELIHOOD)
        add_likelihoods(reports, scaled, self.chances, self.backward, self.forward, step, likelihoods)
        if likelihoods.max(axis=2).min() < LEAST_LIKELIHOOD:
            raise InputError(
                f"expected a horizon whose likelihoods are within the range of doubles, got {self.n_steps} steps; take a "
                "shorter one, or MarkovQuilt(), an upper bound for any horizon"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(likelihoods))


def _extended(known: FloatArray, emitted: FloatArray) -> FloatArray:
    """Likelihoods with one report more: shape (K, M, n) to (K m, M, n)."""
    return np.asarray((known[:, None] * np.moveaxis(emitted, 2, 0)[None]).reshape(-1, *known.shape[1:]))


def _epsilon(likelihoods: FloatArray, delta: float, rounding: float) -> float:
    """The leakage at a delta of observing one of finitely many outputs, given likelihoods of shape (n, K); rounded up.

    Probabilities with a relative error r have an epsilon at ``delta / (1 + r)`` that is at most 2 r below the true one at
    delta.
    """
    observed = likelihoods.sum(axis=0) > 0.0
    totals = np.array([[math.fsum(row)] for row in likelihoods.tolist()])
    table = OutputTable(likelihoods[:, observed] / totals)
    return _leakage(table, delta / (1.0 + rounding)) + 2.0 * rounding * (1.0 + rounding)


def _leakage(table: OutputTable, delta: float) -> float:
    return epsilon_of_one(table, delta=delta) if delta else table.pure_epsilon


def _table(given: float | ArrayLike, true: NDArray[np.int64], g: int, name: str) -> FloatArray:
    """A table of probabilities: as it is given, or of randomised response over g answers, shape (len(true), g)."""
    if isinstance(given, int | float) and not isinstance(given, bool):
        share = math.exp(-positive(given, name))
        return read_only(np.where(np.arange(g) == true[:, None], 1.0, share) / (1.0 + (g - 1) * share))
    return checked_table(given)
