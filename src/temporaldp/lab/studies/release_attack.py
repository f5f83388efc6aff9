"""Likelihood-ratio attack on a finished release, compared with the rates that the guarantee allows.

Notation
--------
score    log likelihood ratio of a person's true state at a step and another one, given all published counts
rates    for a threshold: how often the score of the true state reaches it (true positives), and how often that of the other
         state does (false positives). Both are means over the same pairs of people who have two different states at a step

Given the state at a step and the states of all other people, the releases before it, at it and after it are independent, so
that their likelihoods multiply; those before and after follow by ``x <- P (m x)``, m the likelihoods of one release.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temporaldp.base.errors import InputError
from temporaldp.base.names import require_same_states
from temporaldp.base.progress import progressed
from temporaldp.base.values import FloatArray, IntArray, compared_by_value, copy_in, plural, whole_number
from temporaldp.core.accounting import temporal_leakage
from temporaldp.core.accounting.curve.method import ApproximateDP
from temporaldp.core.correlation import Adversary, Population
from temporaldp.core.correlation.adversary import exactly_known
from temporaldp.core.correlation.protocol import Correlation
from temporaldp.core.planning.histogram_noise import Noise, histogram_profile
from temporaldp.data.counts import ReleasedHistograms
from temporaldp.data.tables.traces import as_traces, codes_of

THRESHOLDS = np.linspace(-1.5, 1.5, 121) * (1.0 - 1e-9)
"""Times the guarantee's epsilon, fixed before anything is seen. No test is sharper than the one just below 1, where scores are
as large as pure differential privacy allows."""


@compared_by_value
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleaseAttack:
    """Rates of the likelihood-ratio attack on a release, compared with its guarantee.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee against this adversary, epsilon in nats: ``true positives <= e^epsilon false positives + delta``.
    n_people, n_steps : int
        Number of attacked people and of steps.
    false_positives, true_positives : array, shape (K,)
        Rates of the release itself, one for each threshold, descending.
    mean_false_positives, mean_true_positives : array, shape (K,)
        Means over `repeats` other draws of the same noise on the same data; empty if there are none.
    repeats : int
    evidence : float
        E-value against the guarantee over these draws: if the guarantee is satisfied, it is x or more with a probability of at
        most 1 / x. 1 without repeats.
    """

    epsilon: float
    delta: float
    n_people: int
    n_steps: int
    false_positives: FloatArray
    true_positives: FloatArray
    mean_false_positives: FloatArray
    mean_true_positives: FloatArray
    repeats: int
    evidence: float

    def __post_init__(self) -> None:
        copy_in(self, "false_positives", "true_positives", "mean_false_positives", "mean_true_positives")

    @property
    def exceeds(self) -> bool:
        """Whether the guarantee is found to be exceeded; a false finding has probability at most 0.01."""
        # By Markov's inequality, an e-value of 100 has probability at most 0.01 if the guarantee is satisfied
        return self.evidence >= 100.0

    def recognised(self, false_positives: ArrayLike) -> FloatArray:
        """Return the true positive rates of the attack on the release itself at false positive rates."""
        x, y = (np.concatenate(([1.0], rates, [0.0]))[::-1] for rates in (self.false_positives, self.true_positives))
        return np.asarray(np.interp(np.asarray(false_positives, dtype=np.float64), x, y))

    def allowed(self, false_positives: ArrayLike) -> FloatArray:
        """Return the largest true positive rates that the guarantee allows at false positive rates."""
        false = np.asarray(false_positives, dtype=np.float64)
        above = math.exp(min(self.epsilon, 700.0)) * false + self.delta
        beside = 1.0 - math.exp(-self.epsilon) * (1.0 - self.delta - false)
        return np.clip(np.minimum(above, beside), 0.0, 1.0)

    @property
    def right(self) -> float:
        """Probability that the attack on the release itself decides correctly between two states, at the best threshold."""
        return float(np.max(0.5 * (1.0 + self.true_positives - self.false_positives), initial=0.5))

    @property
    def most_right(self) -> float:
        """Largest probability of a correct decision that the guarantee allows; guessing has 0.5."""
        return (1.0 + self.delta * math.exp(-self.epsilon)) / (1.0 + math.exp(-self.epsilon))

    @property
    def sentences(self) -> list[str]:
        """The result in sentences."""
        nats = f"{math.ceil(1e4 * self.epsilon) / 1e4:g}"
        level = plural(nats, "nat") + (f" at delta {self.delta:g}" if self.delta else "")
        at, found, most = 0.05, float(self.recognised(0.05)), float(self.allowed(0.05))
        sentences = [
            f"An attacker who knows the states of all other people, and asks which of two states a person had at a step, "
            f"is right in {_percent(self.right)} of cases by all {self.n_steps} published histograms. Guessing is right in "
            f"50 %; the guarantee of {level} allows {_percent(self.most_right, up=True)}.",
            f"With {_percent(at)} false alarms the attack recognises {_percent(found)} of the true states: guessing would "
            f"recognise {_percent(at)}, and the guarantee allows {_percent(most, up=True)}.",
        ]
        drawn = f"over {self.repeats} other draws of the same noise"
        if self.exceeds:
            sentences.append(
                f"The guarantee is exceeded {drawn}: if it held, draws like these would come up with a probability of at most "
                f"{1.0 / self.evidence:.2g}. These people do not follow the correlation (so few may do so by chance), or "
                "the noise is not the stated one."
            )
        elif self.repeats:
            sentences.append(
                f"The guarantee is not exceeded {drawn}. One release may be luckier or unluckier for the attacker than the "
                "mean."
            )
        return sentences

    def __repr__(self) -> str:
        return (
            f"ReleaseAttack({self.n_people} people, {self.n_steps} steps, right in {_percent(self.right)} of cases, "
            f"allowed {_percent(self.most_right, up=True)})"
        )


def attack_release(
    traces: Any,
    released: ReleasedHistograms,
    adversary: Adversary | Mapping[str, Adversary],
    *,
    repeats: int = 50,
    seed: int = 0,
) -> ReleaseAttack:
    """Attack a release by likelihood ratios, as an adversary who knows the states of all other people.

    By the lemma of Neyman and Pearson no test of one state against another has a higher true positive rate, at any false
    positive rate, than the likelihood ratio, which is exact here. The rates are those of this one release, whose noise all
    people share; for the mean, the noise is drawn `repeats` times again.

    Parameters
    ----------
    traces : Trajectories, or a table
        The true data that were released.
    released : ReleasedHistograms
        As drawn, not post-processed.
    adversary : Adversary, or a mapping of the users' names to them
        Correlation that the attacker knows.
    repeats : int
        Number of further draws of the noise.
    seed : int
        Seed of these draws.

    Raises
    ------
    InputError
        Counts that were post-processed, traces of other times or without users, nothing to distinguish, an unknown user.
    StateError
        The traces, release and adversary have different states.

    Examples
    --------
    >>> import temporaldp as tdp
    >>> walks = tdp.load_sample()
    >>> adversary = next(tdp.estimate_adversaries(walks))
    >>> released = tdp.release_histograms(walks, tdp.plan_budget(adversary, alpha=1.0, horizon=47))
    >>> found = attack_release(walks, released, adversary, repeats=5)
    >>> found.exceeds, 0.5 < found.right < found.most_right < 0.74
    (False, True)
    """
    walks = as_traces(traces)
    codes, truth = codes_of(walks), walks.histogram()
    released = released.reordered(walks.states)
    unknown = [time for time in released.times if time not in walks.times]
    if unknown:
        raise InputError(f"expected traces for every released time, got none for {unknown[0]!r}")
    shown = np.flatnonzero(released.drawn)
    steps = [walks.times.index(released.times[k]) for k in shown]
    scales, drawn = np.full(len(truth), np.inf), np.zeros(truth.shape)
    scales[steps], drawn[steps] = released.scales[shown], released.counts[shown] - truth[steps]
    # More are not attacked, but some of them, evenly spaced: the noise is the same for all, so that more say little
    # more
    chosen = np.unique(np.linspace(0, len(codes) - 1, min(len(codes), 2_000)).astype(np.int64))
    everyone = _adversaries(adversary, [walks.users[k] for k in chosen.tolist()], walks.states, len(truth))
    epsilon = max(_guarantee(one, released, scales, steps) for one, _ in everyone)
    groups = [(one, codes[chosen[rows]]) for one, rows in everyone]
    if not any(np.unique(column[column >= 0]).size > 1 for column in codes[chosen].T):
        raise InputError("expected two people with different states at some step: no two people can be distinguished")

    def scored(noise: FloatArray) -> tuple[FloatArray, FloatArray]:
        each = of_one_release(released.noise, scales, noise)
        likelihoods = np.concatenate([of_all_releases(one, part, each) for one, part in groups], axis=1)
        return _scores(codes[chosen], likelihoods)

    at, means = THRESHOLDS * (epsilon if 0.0 < epsilon < math.inf else 1.0), []
    false, true = _rates(*scored(drawn), at)
    rng = np.random.default_rng(seed)
    for k in range(whole_number(repeats, "repeats", least=0)):
        progressed("attacks on other draws", k / repeats)
        again = np.zeros(truth.shape)
        for t in steps:
            again[t] = _drawn_noise(released.noise, float(scales[t]), truth.shape[1], rng)
        means.append(_rates(*scored(again), at))
    each = np.array(means).reshape(-1, 2, THRESHOLDS.size)
    mean = each.mean(axis=0) if repeats else np.zeros((2, 0))
    against = evidence_against(epsilon, released.delta, each)
    return ReleaseAttack(
        epsilon, released.delta, len(chosen), len(truth), false, true, mean[0], mean[1], repeats, against
    )


def of_one_release(noise: Noise, scales: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return the log likelihood of each state of a person, up to a constant, by the true state: shape (T, n + 1, n).

    `drawn` is the noise of each count, shape (T, n); a scale of infinity is a step without a release. The last row is for
    a person who was not counted at the step, and has no effect.
    """
    n_steps, n = drawn.shape
    seen = drawn[:, None, :] + np.eye(n)
    each = scales[:, None, None]
    by_laplace = (np.abs(seen) - np.abs(seen - 1.0)) / each
    found = by_laplace if noise == "laplace" else (2.0 * seen - 1.0) / (2.0 * np.square(each))
    return np.concatenate((found, np.zeros((n_steps, 1, n))), axis=1)


def of_all_releases(adversary: Adversary, codes: IntArray, likelihoods: FloatArray) -> FloatArray:
    """Return the log likelihood of all releases for each state at each step, up to a constant: shape (T, n_people, n)."""
    own = np.stack([likelihoods[t][codes[:, t]] for t in range(codes.shape[1])])
    future = _arriving(adversary.forward.in_reverse(), own[::-1])[::-1]
    return np.asarray(_arriving(adversary.backward, own) + own + future)


def _arriving(correlation: Correlation, own: FloatArray) -> FloatArray:
    """Return the log likelihood of the releases before each step, given its state, by ``x <- P (m x)``."""
    found = np.zeros_like(own)
    for t in range(len(own) - 1) if correlation else ():
        known = found[t] + own[t]
        top = known.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            found[t + 1] = np.log(np.exp(known - top) @ exactly_known(correlation.at(t)).dense().T)
    return found


def _adversaries(
    given: Adversary | Mapping[str, Adversary], users: list[str], states: tuple[str, ...], n_steps: int
) -> list[tuple[Adversary, IntArray]]:
    """Return each adversary with the people it targets."""
    everyone = Population.of(given)
    for one in everyone.users:
        if one.states is not None:
            if set(one.states) == set(states) and one.states != states:
                raise InputError("expected the adversary's states in the order of the traces: reorder its matrices")
            require_same_states(states, one.states, what="the adversary")
        if one.is_uncertain:
            raise InputError("an attack needs one matrix, of this adversary's only a set is known; such as .central()")
    if len(everyone) == 1 and not isinstance(given, Mapping):
        return [(everyone.users[0].over(n_steps), np.arange(len(users)))]
    known = dict(everyone)
    missing = [name for name in users if name not in known]
    if missing:
        raise InputError(f"expected an adversary for every user, there is none for {missing[0]!r}")
    return [(known[name].over(n_steps), np.array([k])) for k, name in enumerate(users)]


def _guarantee(one: Adversary, released: ReleasedHistograms, scales: FloatArray, steps: list[int]) -> float:
    """Return the leakage of the release for the adversary, in nats, at the delta of the release."""
    if released.delta:
        made = [histogram_profile(released.noise, scale) if np.isfinite(scale) else None for scale in scales.tolist()]
        return temporal_leakage(one, made, accounting=ApproximateDP(released.delta)).worst
    spent = np.zeros(len(scales))
    spent[steps] = released.epsilons[released.drawn]
    return temporal_leakage(one, spent).worst


def _scores(codes: IntArray, likelihoods: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the score of each true state against every other one, weighted by the people with the other state.

    So every pair of people with two different states at a step counts once as true and once as false, and a bound for each
    pair of states at each step is a bound for the means.
    """
    own, states = codes.T[:, :, None], np.arange(likelihoods.shape[2])
    is_own = own == states  # shape (T, n_people, n); nowhere for a person without a state at the step
    with np.errstate(invalid="ignore"):
        scores = np.take_along_axis(likelihoods, np.maximum(own, 0), axis=2) - likelihoods
    weights = np.where(is_own | (own < 0), 0.0, is_own.sum(axis=1, keepdims=True))
    counted = weights > 0.0
    return np.nan_to_num(scores[counted], nan=0.0, posinf=np.inf, neginf=-np.inf), weights[counted]


def _rates(scores: FloatArray, weights: FloatArray, thresholds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return false and true positive rates: the other state reaches a threshold where minus the score does."""
    order = np.argsort(scores)
    sums = np.concatenate(([0.0], np.cumsum(weights[order])))
    total, ordered = sums[-1], scores[order]
    true = 1.0 - sums[np.searchsorted(ordered, thresholds, side="left")] / total
    false = sums[np.searchsorted(ordered, -thresholds, side="right")] / total
    return false, true


def evidence_against(epsilon: float, delta: float, rates: FloatArray) -> float:
    """Return an e-value against (epsilon, delta) from the rates of independent draws, shape (draws, 2, thresholds).

    At every threshold ``D = true - e^epsilon false - delta`` is at least ``-(e^epsilon + delta)``, and its mean is at most 0 if
    the guarantee is satisfied. So a sum of which a fixed share is bet on D stays above 0, and does not grow in the mean; nor
    does the mean of such sums over thresholds and shares. By Markov's inequality it reaches x with a probability of at most
    1 / x (Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024).
    """
    most = math.exp(min(epsilon, 700.0)) + delta
    over = rates[:, 1] - (most - delta) * rates[:, 0] - delta
    # Shares of the largest sum that could be bet against the guarantee with every draw, and never be lost
    sums = np.array([np.log1p(stake / most * over).sum(axis=0) for stake in (0.05, 0.1, 0.2, 0.5, 0.9)])
    return float(np.exp(np.minimum(sums, 700.0)).mean())


def _percent(share: float, *, up: bool = False) -> str:
    return f"{(math.ceil(1e3 * share) if up else round(1e3 * share)) / 10.0:g} %"


def _drawn_noise(noise: str, scale: float, count: int, rng: np.random.Generator) -> IntArray:
    """Discrete noise for simulation only, not for releases."""
    if noise == "laplace":
        falls = -np.expm1(-1.0 / scale)
        return np.asarray(rng.geometric(falls, count) - rng.geometric(falls, count))
    # Discrete Gaussian noise beyond so many scales has a probability below 1e-30, less than uniform numbers can tell
    reach = int(np.ceil(12.0 * scale))
    weights = np.cumsum(np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / scale)))
    return np.asarray(np.searchsorted(weights, rng.random(count) * weights[-1], side="right") - reach)
