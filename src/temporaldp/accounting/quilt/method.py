"""Accounting for any mechanism with an event-level guarantee, whatever its noise: an upper bound by Markov quilts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from temporaldp.accounting.protocol import Leakage, Side, constant_matrix
from temporaldp.accounting.quilt.arrivals import QuiltArrival, QuiltSteps, has_quilts
from temporaldp.accounting.quilt.evidence import QuiltLeakage
from temporaldp.accounting.stepwise_accounting import StepwiseAccounting
from temporaldp.correlation import Adversary
from temporaldp.kernels.lifting import off_diagonal
from temporaldp.values import FloatArray


class MarkovQuilt(StepwiseAccounting[QuiltArrival]):
    """Leakage of any mechanism that is epsilon-DP about each single step; noise may be shared between steps.

    Every other accounting method assumes fresh noise at each step. Tree and matrix mechanisms share noise between steps, and
    telemetry systems memoise answers; of many published systems it is not known. Let the whole output be e_t-DP when the state
    of step t alone is replaced. Given the states at a steps before and b steps after t (the quilt),

    ``log Pr(R | l_t = i) / Pr(R | l_t = j) <= E(a, b) + max_x log B^a[i,x] / B^a[j,x] + max_y log F^b[i,y] / F^b[j,y]``

    with E(a, b) the sum of the epsilons of the steps strictly between, and the smallest over a and b counts, for each pair of
    states (Theory, section 20; after Song, Wang and Chaudhuri, SIGMOD 2017). It is an upper bound. The lower side,
    `LeakageSeries.attained`, is the exact leakage of independent noise with the same epsilons, which is such a mechanism.

    Epsilons must be fixed beforehand: event-level guarantees of shared noise do not compose along epsilons that depend on
    outputs.

    Examples
    --------
    >>> from temporaldp import Adversary, TransitionMatrix, leakage_supremum
    >>> forward = TransitionMatrix([[0.9, 0.1], [0.2, 0.8]])
    >>> adversary = Adversary.from_forward(forward)
    >>> round(leakage_supremum(adversary, 0.1).temporal, 3)                             # independent noise: exact
    0.586
    >>> round(leakage_supremum(adversary, 0.1, accounting=MarkovQuilt()).temporal, 3)   # any noise
    1.773
    """

    name = "quilt"
    takes_sets = True
    assumes_fresh_noise = False

    sentence = (
        "Leakage is an upper bound for every mechanism whose whole output satisfies the stated epsilons at event level, "
        "also where its noise is shared between steps (Markov quilts)."
    )

    def document(self) -> dict[str, Any]:
        """The name: there are no parameters."""
        return {"method": self.name}

    def leakage(
        self, user: Adversary, past: tuple[QuiltArrival, ...], releases: FloatArray, future: tuple[QuiltArrival, ...]
    ) -> Leakage:
        """The largest leakage of any pair at each step."""
        found = super().leakage(user, past, releases, future)
        if user.states is None:
            return found
        before, after = (tuple(np.asarray(one.pairs) for one in arrived) for arrived in (past, future))
        apart = off_diagonal(len(user.states))
        return replace(found, evidence=QuiltLeakage(user.states, releases, apart, before, after, user))

    def supremum_arrivals(self, user: Adversary, side: Side, release: FloatArray) -> tuple[QuiltArrival, ...]:
        """Incoming leakage of every step; an empty tuple where some pair has no quilt of finite ratio at any distance."""
        matrix = constant_matrix(user, side)
        if matrix is not None and float(release[0]) > 0.0 and not has_quilts(matrix):
            return ()
        return super().supremum_arrivals(user, side, release)

    def steps(self, user: Adversary) -> QuiltSteps:
        """Return the steps of one user."""
        return QuiltSteps(user)
