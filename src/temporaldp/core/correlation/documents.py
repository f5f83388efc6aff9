"""Correlations from JSON documents, in files and beside ledgers; `Correlation.document` makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from temporaldp.base.documents import value_of
from temporaldp.base.errors import MatrixError
from temporaldp.core.correlation.adversary import Adversary, exactly_known
from temporaldp.core.correlation.interval_matrix import IntervalMatrix
from temporaldp.core.correlation.lifted_chain import LiftedChain
from temporaldp.core.correlation.protocol import Correlation, Periodic, PerStep
from temporaldp.core.correlation.provenance import Provenance
from temporaldp.core.correlation.transition import TransitionMatrix


def correlation_from(document: Any) -> Correlation | None:
    """Return the correlation of a document; None of an unknown one.

    Raises
    ------
    MatrixError, StateError
        The document describes no correlation; the message names the faulty entry.
    """
    match document:
        case None:
            return None
        case {"each": list(each), "phase": phase}:
            return Periodic([_matrix(one) for one in each], phase=phase)
        case {"each": list(each), "order": order}:
            known = [_matrix(one) for one in each]
            if any(not isinstance(k, int) or not 0 <= k < len(known) for k in order):
                raise MatrixError(
                    f"expected a correlation with the order of {len(known)} matrices, from 0, got {order[:8]}"
                )
            return PerStep(tuple(known[k] for k in order))
    return _matrix(document)


def adversary_from(document: Any) -> Adversary:
    """Return the adversary of a document, who is nameless.

    Raises
    ------
    KeyError, MatrixError, StateError
        The document describes none.
    """
    sides = document["backward"], document["forward"]
    if "labels" not in document:
        return Adversary(*map(correlation_from, sides))
    backward, forward = (exactly_known(_matrix(side)) for side in sides)
    labels, shares = np.array(document["labels"]), np.array(document["shares"])
    chain = LiftedChain(tuple(document["states"]), labels, backward, forward, shares, document["memory"])
    return chain.adversary


def _matrix(document: Any) -> TransitionMatrix | IntervalMatrix:
    match document:
        case {"states": list(states), "lower": lower, "upper": upper, "provenance": provenance}:
            return IntervalMatrix(lower, upper, states, provenance=value_of(Provenance, provenance))
        case {"states": list(states), "rows": rows, "columns": columns, "probabilities": entries}:
            parts = np.array(entries, np.float64), np.array(columns, np.int32), np.array(rows, np.int32)
            sparse = scipy.sparse.csr_array(parts, shape=(len(states), len(states)))
            sparse.check_format(full_check=True)
            return TransitionMatrix(sparse, states)
        case {"states": list(states), "probabilities": list(entries)}:
            return TransitionMatrix(entries, states)
    found = f"one of {', '.join(map(repr, document))[:80]}" if isinstance(document, dict) else type(document).__name__
    raise MatrixError(
        f"expected a matrix: an object of 'states' and 'probabilities', or of 'states', 'lower', 'upper' and 'provenance'; got "
        f"{found}"
    )
