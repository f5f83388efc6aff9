"""Distribution of the exact leakage over plausible matrices, given traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.accounting.protocol import budgets, listed
from temporaldp.accounting.series import temporal_leakage
from temporaldp.correlation import Adversary
from temporaldp.correlation.draws import JEFFREYS, bootstrap_adversaries, posterior_adversaries
from temporaldp.correlation.traces import Traces, as_traces
from temporaldp.progress import part, progressed
from temporaldp.values import FloatArray, compared_by_value, copy_in, real_number

AT_ONCE = 500
"""Draws between two reports of progress."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LeakageDraws:
    """Largest exact temporal leakage of any step for each of m drawn adversaries, in nats.

    The draws describe plausible leakage; they are not a guarantee. `worst` has shape (m,), in the order of drawing.
    """

    worst: FloatArray

    def __post_init__(self) -> None:
        copy_in(self, "worst")

    def __len__(self) -> int:
        return len(self.worst)

    def quantile(self, share: float) -> float:
        """Return the smallest drawn leakage that at least this share of the draws do not exceed."""
        real_number(share, "share", gt=0.0, le=1.0)
        return float(np.quantile(self.worst, share, method="inverted_cdf"))

    def __repr__(self) -> str:
        return f"LeakageDraws({len(self)} draws, median {self.quantile(0.5):.6g}, 95 % below {self.quantile(0.95):.6g})"


def leakage_posterior(
    trajectories: Traces,
    *,
    epsilons: ArrayLike,
    n_draws: int = 1000,
    prior: float = JEFFREYS,
    rng: np.random.Generator | int | None = None,
) -> LeakageDraws:
    """Sample the exact leakage over the posterior of the transition matrices (Dirichlet rows), in nats.

    Parameters
    ----------
    trajectories : Traces
    epsilons : array_like, shape (T,), or one number for each step of the traces
    n_draws : int, >= 1
    prior : float, > 0
        Dirichlet concentration of every cell; 1/2 is Jeffreys' prior.
    rng : numpy Generator or seed, optional

    Examples
    --------
    >>> from temporaldp import load_sample
    >>> draws = leakage_posterior(load_sample(), epsilons=[0.1] * 8, n_draws=50, rng=0)
    >>> len(draws), bool(draws.quantile(0.5) < draws.quantile(0.95))
    (50, True)
    """
    traces = as_traces(trajectories)
    spent = budgets(listed(epsilons, traces.n_times))
    return _leakage(posterior_adversaries(traces, n_draws=n_draws, prior=prior, rng=rng), spent)


def leakage_bootstrap(
    trajectories: Traces,
    *,
    epsilons: ArrayLike,
    n_draws: int = 1000,
    prior: float = 0.0,
    rng: np.random.Generator | int | None = None,
) -> LeakageDraws:
    """Sample the exact leakage over people resampled with replacement (bootstrap), in nats.

    Arguments as for `leakage_posterior`; the prior may be 0. Wider than the posterior where the transitions of one person are
    alike.
    """
    traces = as_traces(trajectories)
    spent = budgets(listed(epsilons, traces.n_times))
    return _leakage(bootstrap_adversaries(traces, n_draws=n_draws, prior=prior, rng=rng), spent)


def _leakage(adversaries: Sequence[Adversary], spent: FloatArray) -> LeakageDraws:
    worst: list[float] = []
    for first in range(0, len(adversaries), AT_ONCE):
        some = adversaries[first : first + AT_ONCE]
        progressed("leakage of drawn matrices", first / len(adversaries))
        with part(first / len(adversaries), (first + len(some)) / len(adversaries), "leakage of drawn matrices"):
            series = temporal_leakage(list(some), spent)
        worst += [member.worst for member in series.members or (series,)]
    return LeakageDraws(np.array(worst))
