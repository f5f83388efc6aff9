"""Shared checks and limits of values, the neighbouring relation, plurals, and equality of objects with arrays."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from temporaldp.base.errors import BudgetError, InputError

Kind = TypeVar("Kind")
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

ULP = sys.float_info.epsilon
"""Distance from 1 to the next double."""

ROUNDOFF = ULP / 2.0
"""Largest relative change of a number by rounding to the nearest double."""

SAME_SIDES = 1e-9
"""Share of a number up to which its lower and its upper side count as one number."""

SMALLEST, LARGEST = 1e-100, 1e100
"""Limits of budgets and levels, in nats: beyond them, arithmetic would leave the range of doubles."""

REPLACE_ONE = "replace_one"
"""Neighbouring databases differ in the state of one person at one step; the number of people is public."""

REPLACE_PERSON = "replace_person"
"""Neighbouring databases differ in all states of one person; the number of people is public."""


LIMITS = {"gt": (">", operator.gt), "ge": (">=", operator.ge), "lt": ("<", operator.lt), "le": ("<=", operator.le)}
"""Comparisons of `real_number` with its limits, by the names that pydantic has for them."""


def plural(n: object, noun: str) -> str:
    """Return a printed number with its noun in the singular or plural: 1 step, 2 steps, 0.1 nats."""
    return f"{n} {noun}" if str(n) == "1" else f"{n} {noun}s"


def real_number(value: Any, name: str, *, error: type[InputError] = InputError, **limits: float) -> float:
    """Return `value` as a float if it is finite and within limits, such as ``gt=0.0, le=1.0``; raise `error` otherwise.

    Text and truth values are no numbers.
    """
    with suppress(TypeError, ValueError, OverflowError):
        number = float(value)
        is_number = math.isfinite(number) and np.asarray(value).dtype.kind not in "bSU"
        if is_number and all(LIMITS[limit][1](number, bound) for limit, bound in limits.items()):
            return number
    raise error(f"expected {name} to be a finite number{_within(limits)}, got {value!r}")


def real_array(
    values: Any,
    name: str,
    *,
    shape: tuple[int, ...] | None = None,
    error: type[InputError] = InputError,
    is_protected: bool = False,
    **limits: float,
) -> FloatArray:
    """Return a float array of finite numbers within limits, as of `real_number`; raise `error` otherwise.

    The message contains no entry; of protected arrays, neither how many are wrong, nor which.
    """
    try:
        is_known = not np.ma.is_masked(values) and np.asarray(values).dtype.kind not in "bSU"
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        is_known = False
    if not is_known:
        raise error(f"expected {name} to be numbers, got something else")
    if shape is not None and found.shape != shape:
        raise error(f"expected {name} of shape {shape}, got shape {found.shape}")
    sound = np.isfinite(found)
    for limit, bound in limits.items():
        sound &= LIMITS[limit][1](found, bound)
    if not sound.all():
        first = tuple(int(k) for k in np.argwhere(~sound)[0])
        found_others = "others" if is_protected else f"{int((~sound).sum())} others, the first at {first}"
        raise error(f"expected {name} to be finite numbers{_within(limits)}, got {found_others}")
    return found


def _within(limits: dict[str, float]) -> str:
    """The limits as the end of "a finite number"."""
    return " " * bool(limits) + " and ".join(f"{LIMITS[limit][0]} {bound:g}" for limit, bound in limits.items())


def exact_sum(values: Iterable[float]) -> tuple[float, ...]:
    """Numbers that add up to the exact sum: the nearest double, then the nearest to what it leaves out, and so on."""
    terms, parts = list(values), list[float]()
    while (rest := math.fsum([*terms, *(-part for part in parts)])) != 0.0:
        parts.append(rest)
    return tuple(parts)


def is_at_most(values: Iterable[float], limit: float) -> bool:
    """Whether a sum is at most a limit, without rounding."""
    return math.fsum([*values, -limit]) <= 0.0


def sum_up(values: Iterable[float]) -> float:
    """The smallest double that is no less than a sum."""
    terms = list(values)
    total = math.fsum(terms)
    return total if is_at_most(terms, total) else math.nextafter(total, math.inf)


def refuse(*cases: tuple[bool, Exception]) -> None:
    """Raise the error of the first case that applies."""
    for applies, error in cases:
        if applies:
            raise error


def positive(value: Any, name: str) -> float:
    """Return `value` as a float if it is a positive budget, level or scale within the limits."""
    return real_number(value, name, ge=SMALLEST, le=LARGEST, error=BudgetError)


def whole_number(value: Any, name: str, *, least: int | None = None, error: type[InputError] = InputError) -> int:
    """Return `value` as an int if it is a whole number of at least `least`; raise `error` otherwise."""
    with suppress(TypeError):
        number = operator.index(value)
        if not isinstance(value, bool) and (least is None or number >= least):
            return number
    bound = "" if least is None else f" of at least {least}"
    raise error(f"expected {name} to be a whole number{bound}, got {value!r}")


def read_only(values: ArrayLike, kind: DTypeLike = np.float64) -> NDArray[Any]:
    """Return a read-only copy."""
    return locked(np.array(values, dtype=kind))


def locked(value: Kind) -> Kind:
    """Return the value after making its arrays read-only, also within tuples and sparse matrices."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple):
        for one in value:
            locked(one)
    elif hasattr(value, "indptr"):
        locked(tuple(getattr(value, part) for part in ("data", "indices", "indptr")))
    return value


def assign(instance: object, **fields: Any) -> None:
    """Set fields of a frozen object that is being made."""
    for name, value in fields.items():
        object.__setattr__(instance, name, value)


def copy_in(instance: object, *fields: str, kind: DTypeLike = np.float64) -> None:
    """Replace these fields of a frozen object by read-only arrays of its own; None stays None."""
    for field in fields:
        if (given := getattr(instance, field)) is not None:
            assign(instance, **{field: read_only(given, kind)})


def checked_relation(relation: Any) -> str:
    """Return the neighbouring relation, given as a word or as dp-accounting's enumeration; only "replace_one" is supported."""
    name = str(getattr(relation, "name", relation)).lower()
    if name != REPLACE_ONE:
        raise InputError(
            f"expected neighboring_relation to be {REPLACE_ONE!r} (the paper's theorems are about replacing one person's "
            f"state), got {relation!r}; restate sensitivities under replacement: a histogram's L1 sensitivity is 2"
        )
    return REPLACE_ONE


def compared_by_value(cls: type[Kind]) -> type[Kind]:
    """Make a frozen dataclass or named tuple with arrays comparable by value, arrays entry by entry.

    Dataclasses and tuples compare fields with ``==``, which has no single answer for arrays. NaN equals NaN here, so that a
    value always equals its copy. Hashes are consistent with equality. Methods defined by the class itself are kept. Arrays of
    pickled or copied values are made read-only again. Fields with ``compare=False`` are left out.
    """
    declared = getattr(cls, "__dataclass_fields__", None)
    names = getattr(cls, "_fields", ()) if declared is None else [key for key, one in declared.items() if one.compare]

    def equal(self: Any, other: object) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or all(_comparable(getattr(self, k)) == _comparable(getattr(other, k)) for k in names)

    def hashed(self: Any) -> int:
        return hash((cls.__name__, *(_comparable(getattr(self, name)) for name in names)))

    methods = {"__eq__": equal, "__ne__": object.__ne__, "__hash__": hashed}  # tuples have a "not equal" of their own
    for name, method in methods.items():
        if name not in vars(cls):
            setattr(cls, name, method)
    if (restored := vars(cls).get("__setstate__")) is not None:
        setattr(cls, "__setstate__", lambda self, state: restored(self, [locked(value) for value in state]))  # noqa: B010
    return cls


def _comparable(value: Any) -> Any:
    """Return an object that compares and hashes by value in place of an array, also within tuples, lists and dicts."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            value = np.where(np.isnan(value), np.nan, value + 0.0)  # one NaN, and one zero
        elif value.dtype.kind == "i":
            value = value.astype(np.int64)
        return value.shape, value.dtype.kind, value.tobytes()
    if type(value) in {tuple, list}:
        return tuple(_comparable(one) for one in value)
    if isinstance(value, Exception):
        return type(value), _comparable(value.args)
    if isinstance(value, dict):
        return frozenset((key, _comparable(one)) for key, one in value.items())
    return value
