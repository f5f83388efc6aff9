"""The paper's settings: the correlations, budgets and levels of its examples and experiments."""

from __future__ import annotations

from temporaldp import Adversary, TransitionMatrix, smoothed_correlation, strongest_correlation

UNCHANGING = TransitionMatrix([[1.0, 0.0], [0.0, 1.0]])
"""The strongest correlation: one value gives away the other (Examples 2 and 3)."""

MODERATE = TransitionMatrix([[0.8, 0.2], [0.0, 1.0]])
"""Example 2, Figure 3 (ii)."""

OVERLAPPING = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]])
"""No value is ruled out by another (d > 0): our choice for Figure 4 (d); the paper's P^F of Figure 7."""

THREE_PLACES = TransitionMatrix([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]])
"""The matrix of Figure 2 (a) as the authors' program has it; the text gives only its 0.7."""

ALLOCATED = Adversary(TransitionMatrix([[0.8, 0.2], [0.2, 0.8]]), OVERLAPPING)
"""Section VI-C, Figure 7."""

EPSILON = 0.1
"""What each step promises in Examples 2 and 3, in nats."""

N_STEPS = 10
"""Their number of steps."""


def smoothed(n_states: int, s: float) -> TransitionMatrix:
    """The strongest correlation after Laplacian smoothing, Section VI; which permutation it is changes no leakage."""
    return smoothed_correlation(strongest_correlation(n_states), s=s)


def in_both(matrix: TransitionMatrix) -> Adversary:
    """An adversary who knows the same matrix in both directions, as in Figures 3 and 8."""
    return Adversary(matrix, matrix)
