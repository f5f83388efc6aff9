"""Simulated releases, as likelihoods of every state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from temporaldp.errors import InputError, StateError
from temporaldp.mechanisms.discrete_noise import DiscreteGaussianNoise, DiscreteLaplaceNoise
from temporaldp.mechanisms.noise import GaussianNoise, LaplaceNoise
from temporaldp.mechanisms.output_table import OutputTable, RandomizedResponse
from temporaldp.mechanisms.protocol import Mechanisms
from temporaldp.values import FloatArray, IntArray

Values: TypeAlias = IntArray

HISTOGRAM = 2
"""Counts that move when one person's state is replaced."""


def require_simulated(release: Mechanisms, n_states: int) -> None:
    """Raise an error for a release whose likelihoods are not determined by its parameters.

    Raises
    ------
    InputError
        Several mechanisms at one step, a guarantee alone, or noise on fewer numbers than states.
    StateError
        The table has other states.
    """
    if len(release) > 1:
        raise InputError(f"expected one mechanism per step to simulate, got {len(release)} at one step")
    for mechanism in release:
        match mechanism:
            case GaussianNoise():
                pass
            case LaplaceNoise(coordinates=count) if count == HISTOGRAM or (count == 1 and n_states == 2):
                pass
            case DiscreteLaplaceNoise(coordinates=count) | DiscreteGaussianNoise(coordinates=count) if (
                count == HISTOGRAM
            ):
                pass
            case OutputTable() | RandomizedResponse():
                rows = len(mechanism.probabilities)
                if rows != n_states:
                    raise StateError(f"{mechanism!r:.60} is about {rows} states, the correlation has {n_states} states")
            case _:
                raise InputError(
                    f"{mechanism!r:.80} cannot be simulated: expected noise on a histogram (coordinates=2), on one number that "
                    "distinguishes two states, or a table of outputs; a guarantee alone does not determine outputs"
                )


def drawn_likelihoods(release: Mechanisms, values: Values, n_states: int, rng: np.random.Generator) -> FloatArray:
    """Log likelihood of every state, up to a constant, given one output for each of the true `states`, shape (count, n).

    Histograms count n states. All other users' states are known, so that one user's indicator and the noise are observed.
    `GaussianNoise` has the states at the corners of a simplex with its sensitivity as distance: the histogram, if that is
    sqrt(2).
    """
    count = len(values)
    if not release:
        return np.zeros((count, n_states))
    own = np.arange(n_states) == values[:, None]
    mechanism: Any = release[0]
    match mechanism:
        case GaussianNoise(standard_deviation=sigma, sensitivity=apart):
            mu = apart / sigma
            return np.asarray(rng.standard_normal((count, n_states)) * (mu / np.sqrt(2.0)) + own * (0.5 * mu * mu))
        case LaplaceNoise(scale=scale, sensitivity=apart, coordinates=1):
            seen = apart * values + rng.laplace(scale=scale, size=count)
            return np.stack((-np.abs(seen), -np.abs(seen - apart)), axis=1) / scale
        case LaplaceNoise(scale=scale, sensitivity=apart):
            seen = apart * own + rng.laplace(scale=scale, size=(count, n_states))
            return np.asarray((np.abs(seen) - np.abs(seen - apart)) / scale)
        case DiscreteLaplaceNoise(scale=scale, sensitivity=apart):
            seen = apart * own + drawn_noise("laplace", scale, own.shape, rng)
            return np.asarray((np.abs(seen) - np.abs(seen - apart)) / scale)
        case DiscreteGaussianNoise(scale=scale, sensitivity=apart):
            noise = drawn_noise("gaussian", scale, own.shape, rng)
            return np.asarray(((apart * own + noise) * (2.0 * apart) - apart**2) / (2.0 * scale**2))
        case _:
            table = mechanism.probabilities
            outputs = drawn_columns(np.cumsum(table, axis=1)[values], rng)
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(table[:, outputs]).T)


def arriving_likelihoods(rows: Sequence[FloatArray], own: Iterable[FloatArray], first: FloatArray) -> list[FloatArray]:
    """Log likelihoods, up to a constant, of the releases before each step, given its state, by ``x <- P (m x)``.

    Parameters
    ----------
    rows : sequence of array, shape (n, n)
        P of each transition: row = the state at the later step.
    own : iterable of array, shape (count, n)
        Log likelihoods of the release of each step but the last.
    first : array, shape (count, n)
        Zeros: the log likelihoods before the first step.
    """
    found = [first]
    for matrix, one in zip(rows, own, strict=True):
        known = found[-1] + one
        top = known.max(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            found.append(np.log(np.exp(known - top) @ matrix.T))
    return found


def drawn_columns(limits: FloatArray, rng: np.random.Generator) -> IntArray:
    """A column drawn for each row of weights, whose running sums along the last axis are `limits`."""
    drawn = rng.random(limits.shape[:-1])[..., None] * limits[..., -1:]
    return np.asarray((drawn >= limits[..., :-1]).sum(axis=-1))


def drawn_paths(
    backward: Sequence[FloatArray],
    forward: Sequence[FloatArray],
    step: int,
    state: int | IntArray,
    draws: int,
    rng: np.random.Generator,
) -> IntArray:
    """Paths given the state at a step, shape (T, draws), for the matrices of T - 1 transitions in each direction."""
    paths = np.full((len(forward) + 1, draws), state)
    for t in range(step - 1, -1, -1):
        paths[t] = drawn_columns(backward[t].cumsum(axis=1)[paths[t + 1]], rng)
    for t in range(step + 1, len(paths)):
        paths[t] = drawn_columns(forward[t - 1].cumsum(axis=1)[paths[t - 1]], rng)
    return paths


def drawn_noise(
    noise: Literal["gaussian", "laplace"], scale: float, shape: int | tuple[int, ...], rng: np.random.Generator
) -> Values:
    """Discrete noise for simulation only, not for releases."""
    if noise == "laplace":
        falls = -np.expm1(-1.0 / scale)
        return np.asarray(rng.geometric(falls, shape) - rng.geometric(falls, shape))
    # Discrete Gaussian noise beyond so many scales has a probability below 1e-30, less than uniform numbers can tell
    reach = int(np.ceil(12.0 * scale))
    weights = np.cumsum(np.exp(-0.5 * np.square(np.arange(-reach, reach + 1) / scale)))
    return np.asarray(np.searchsorted(weights, rng.random(shape) * weights[-1], side="right") - reach)
