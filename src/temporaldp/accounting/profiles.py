"""The profiles of a whole population in one call."""

from __future__ import annotations

from collections.abc import Iterable

from numpy.typing import ArrayLike

from temporaldp.correlation.states import state_names
from temporaldp.correlation.transition import checked_stack
from temporaldp.errors import StateError
from temporaldp.kernels import LeakageProfiles, compute_profiles


def leakage_profiles(matrices: ArrayLike, *, states: Iterable[object] | None = None) -> LeakageProfiles:
    """The exact leakage profiles of many matrices of one size, one per person, on all cores.

    What ``TransitionMatrix(matrix).leakage_profile()`` computes for one, without a Python object for each: meant for a
    million people with 5 to 50 states. ``.merged`` is what the worst of them leaks at every level; ``.undominated`` numbers
    those that can be the worst at all.

    Parameters
    ----------
    matrices : array_like, shape (count, n, n)
        Each a transition matrix, all backward or all forward.
    states : sequence of n distinct names, optional
        For the witnesses; defaults to ``"0", "1", ...``.

    Returns
    -------
    LeakageProfiles
        A sequence of `LeakageProfile`. Exact to rounding.

    Raises
    ------
    MatrixError
        Names the matrix, the row and what is wrong with it.
    StateError
        Names are missing, repeated, or not n.

    Examples
    --------
    >>> profiles = leakage_profiles([[[0.8, 0.2], [0.2, 0.8]], [[0.6, 0.4], [0.4, 0.6]]])
    >>> profiles[0].loss(1.0) == profiles.merged.loss(1.0), profiles.undominated.tolist()
    (True, [0])
    """
    stack = checked_stack(matrices)
    names = state_names(range(stack.shape[1]) if states is None else states)
    if len(names) != stack.shape[1]:
        raise StateError(f"expected {stack.shape[1]} state names, one per row, got {len(names)}")
    return compute_profiles(stack, names)
