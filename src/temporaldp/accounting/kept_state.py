"""What an accountant by the exact leakage has to know of the past, as JSON values: however long it is, that does not grow.

The odometer and the filter keep what arrives at the next step, and the rollouts of earlier steps that what follows may still
raise; all others are proved never to matter again (docs/theory.md, section 11). That is written down here, every number to its
last bit, so that an accountant that goes on from it gives the answers of one that was told all budgets. The matrices are not
written down: whoever restores a state gives them.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from temporaldp.accounting.adoption import Adoption
from temporaldp.accounting.counted_odometers import CountedOdometers
from temporaldp.accounting.exact.odometer import CountedExactly, ExactOdometer, Open
from temporaldp.accounting.exact.online import ExactStanding
from temporaldp.accounting.exact.reserve import lasting_tail
from temporaldp.accounting.exact.sides import Problem, Side, Way
from temporaldp.accounting.filter import Filters
from temporaldp.accounting.protocol import Filter, Odometer
from temporaldp.correlation import Adversaries, Adversary
from temporaldp.errors import InputError
from temporaldp.kernels.signs import Coefficients, Path

KINDS = ("<f8", "<i8", "|b1")
"""The entries that arrays have."""


ReadBudgets: TypeAlias = Callable[[], Sequence[float]]
"""Gives what the steps before a kept state spent."""


@dataclass(frozen=True, slots=True)
class KeptAdoption:
    """A change of what is known, whose reserve was found when it was made; as for `TemporalAccountant.adopt`."""

    step: int
    adversary: Adversaries
    both: bool
    reserve: float


@dataclass(frozen=True, slots=True, eq=False)
class Resumed:
    """A state that an accountant goes on from."""

    _counted: CountedOdometers
    filters: Filters | None

    @property
    def counted(self) -> CountedOdometers:
        """Odometers of one's own."""
        return copy(self._counted)


def state_document(
    known: dict[str, Any], odometers: Sequence[Odometer], filters: Filters | None
) -> dict[str, Any] | None:
    """What is known of the past and all odometers and filters; None where one of them does not let itself be kept."""
    counted, allowed = odometers_document(odometers), filters_document(filters)
    if counted is None or (allowed is None and filters is not None):
        return None
    return {**known, "odometers": counted, "filters": allowed}


def restored(
    state: dict[str, Any],
    alpha: float | None,
    first: Sequence[Adversary],
    adoptions: Sequence[Adoption],
    horizon: int | None,
) -> Resumed:
    """Odometers and filters as they were; a filter if and only if there is a level."""
    if state["horizon"] != horizon:
        raise ValueError(f"it is for {state['horizon']} steps")
    each = restored_odometers(state["odometers"], first, adoptions)
    told = state["filters"]
    if (told is None) != (alpha is None):
        raise ValueError("a filter without a level, or a level without a filter")
    filters = None if told is None or alpha is None else restored_filters(told, alpha, first, adoptions, horizon)
    return Resumed(CountedOdometers(int(state["n_steps"]), len(adoptions), each), filters)


@contextmanager
def checked_state(state: dict[str, Any], n_spent: int, n_adopted: int) -> Iterator[None]:
    """A block that restores a state: whatever does not fit becomes an `InputError`."""
    if n_spent:
        raise InputError(f"expected an accountant that has spent nothing yet, got one with {n_spent} steps")
    try:
        if state["n_adopted"] != n_adopted:
            raise InputError(f"the state is after {state['n_adopted']} adoptions, but {n_adopted} are known")
        yield
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"expected the kept state of an accountant like this one: {error}") from error


def odometers_document(odometers: Sequence[Odometer]) -> list[dict[str, Any]] | None:
    """Everybody's odometer; None where one does not count by the exact leakage."""
    found = []
    for one in odometers:
        if not isinstance(one, CountedExactly):
            return None
        now = one.now
        found.append(
            {
                "matrices": _transitions_of(now.problem),
                "n_steps": now.n_steps,
                "largest": now.largest.hex(),
                "time": now.time,
                "timed": now.timed.hex(),
                "depth": now.depth,
                "spent": _text(now.spent),
                "past": _side(now.past),
                "open": [_text(array) for array in (now.open.step, now.open.pair, *now.open.rollouts.arrays)],
            }
        )
    return found


def filters_document(filters: Filters | None) -> dict[str, Any] | None:
    """Everybody's filter; None without a level, or where one is none of the exact leakage."""
    if filters is None or not all(isinstance(one, ExactStanding) for one in filters.each):
        return None
    return {
        "reserve": filters.reserve.hex(),
        "n_steps": filters.n_steps,
        "n_adopted": filters.n_adopted,
        "each": [_standing(one) for one in filters.each if isinstance(one, ExactStanding)],
    }


def restored_odometers(
    document: list[dict[str, Any]], first: Sequence[Adversary], adoptions: Sequence[Adoption]
) -> list[Odometer]:
    """Everybody's odometer, with the matrices from the first step on."""
    problems = _problems(first, adoptions, math.inf, None)
    found: list[Odometer] = []
    for one, problem in zip(document, problems, strict=True):
        if one["matrices"] != _transitions_of(problem):
            raise ValueError("its matrices stand in another order of steps")
        step, pair, *rollouts = (_array(text) for text in one["open"])
        now = ExactOdometer(
            problem,
            int(one["n_steps"]),
            float.fromhex(one["largest"]),
            int(one["time"]),
            float.fromhex(one["timed"]),
            _restored_side(one["past"], problem.backward),
            _array(one["spent"]),
            int(one["depth"]),
            Open(step, pair, Coefficients(*rollouts)),
        )
        found.append(CountedExactly(now))
    return found


def restored_filters(
    document: dict[str, Any],
    alpha: float,
    first: Sequence[Adversary],
    adoptions: Sequence[Adoption],
    horizon: int | None,
) -> Filters:
    """Everybody's filter; `InputError` where what lasts for ever is no longer found to."""
    problems = _problems(first, adoptions, alpha, horizon)
    each: list[Filter] = []
    for one, problem in zip(document["each"], problems, strict=True):
        pairs, *rollouts = (_array(text) for text in one["open"])
        standing = replace(
            ExactStanding.at_start_of(problem),
            n_steps=int(one["n_steps"]),
            past=_restored_side(one["past"], problem.backward),
            pairs=pairs,
            open=Coefficients(*rollouts),
            keeps_reserve=bool(one["keeps_reserve"]),
            broken=bool(one["broken"]),
        )
        reserve = float.fromhex(one["tail"])
        tail = standing.tail_of(reserve) if horizon is None else lasting_tail(problem, reserve)
        if tail is None or tail.epsilon != reserve:
            raise InputError(f"expected a reserve of {reserve!r} to last for ever, as it did when the state was kept")
        each.append(replace(standing, tail=tail))
    return Filters(
        tuple(each),
        alpha,
        float.fromhex(document["reserve"]),
        horizon,
        int(document["n_steps"]),
        int(document["n_adopted"]),
    )


def _standing(one: ExactStanding) -> dict[str, Any]:
    return {
        "n_steps": one.n_steps,
        "tail": one.tail.epsilon.hex(),
        "past": _side(one.past),
        "open": [_text(array) for array in (one.pairs, *one.open.arrays)],
        "keeps_reserve": one.keeps_reserve,
        "broken": one.broken,
    }


def _problems(
    first: Sequence[Adversary], adoptions: Sequence[Adoption], alpha: float, horizon: int | None
) -> list[Problem]:
    """Everybody's problem after all changes."""
    known: dict[int, Problem] = {}

    def of(user: Adversary) -> Problem:
        if id(user) not in known:
            known[id(user)] = Problem.of(user, alpha, user.n_steps or horizon)
        return known[id(user)]

    each = [of(user) for user in first]
    for made in adoptions:
        each = [each[k].changed(made.step, of(user)) for k, user in zip(made.parents, made.users, strict=True)]
    return each


def _transitions_of(problem: Problem) -> list[str | None]:
    """For each direction which matrix leads where, by a hash; None for one that is constant but for adoptions.

    A state names matrices by number, in the order in which they first occur.
    """
    return [
        None if way is None or way.which is None else hashlib.sha256(way.which.tobytes()).hexdigest()
        for way in problem.ways
    ]


def _side(side: Side) -> dict[str, Any]:
    path = side.path
    told = None
    if path is not None:
        told = {"ends": path.ends, "arrays": [_text(array) for array in (path.leads, path.up, path.spread)]}
    return {
        "path": told, "depth": side.depth, "arrays": [_text(array) for array in (side.arriving, side.close, side.rho)]
    }  # fmt: skip


def _restored_side(document: dict[str, Any], way: Way | None) -> Side:
    path, told = None, document["path"]
    if told is not None:
        assert way is not None
        leads, up, spread = (_array(text) for text in told["arrays"])
        path = Path(way.matrices, leads, up, spread, ends=bool(told["ends"]))
    arriving, close, rho = (_array(text) for text in document["arrays"])
    return Side(path, arriving, close, rho, int(document["depth"]))


def _text(array: NDArray[Any]) -> str:
    kind = {"f": "<f8", "i": "<i8", "b": "|b1"}[array.dtype.kind]
    plain = np.ascontiguousarray(array, dtype=kind)
    return f"{kind} {' '.join(map(str, array.shape))} {base64.b64encode(plain.tobytes()).decode('ascii')}"


def _array(text: str) -> NDArray[Any]:
    kind, *shape, content = text.split(" ")
    if kind not in KINDS:
        raise ValueError(f"expected an array of one of {', '.join(KINDS)}, got {kind[:10]!r}")
    found = np.frombuffer(base64.b64decode(content, validate=True), dtype=kind)
    return found.reshape([int(length) for length in shape]).copy()
