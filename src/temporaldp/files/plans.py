"""Plans on disk: JSON that a person can read and a program can trust."""

import hashlib
import json
import math
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.accounting import LeakageSeries, LeakageSupremum
from temporaldp.accounting.methods import accounting_from
from temporaldp.accounting.protocol import DIRECTIONS
from temporaldp.errors import InputError
from temporaldp.files.atomic import brief, replacing, require_file
from temporaldp.planning import BudgetPlan, NoisePlan, Optimality, Plan, Source, Verification
from temporaldp.values import REPLACE_ONE

FORMAT = "temporaldp.plan/5"

KINDS: dict[str, type[BudgetPlan] | type[NoisePlan]] = {"budgets": BudgetPlan, "noise": NoisePlan}
"""By the word in the file."""


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan as JSON so that `load_plan` gives it back.

    Parameters
    ----------
    plan : BudgetPlan or NoisePlan
    path : path

    Raises
    ------
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(plan_document(plan), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def plan_document(plan: Plan) -> dict[str, Any]:
    """A plan as JSON values, with a digest that shows whether any of them was changed."""
    own = {field.name: getattr(plan, field.name) for field in fields(plan) if field.name != "leakage"}
    document = {
        "format": FORMAT,
        "kind": next(kind for kind, made in KINDS.items() if isinstance(plan, made)),
        "horizon": plan.horizon,
        "accounting": plan.accounting.document(),
        "delta": plan.delta,
        "unit": "nats",
        "neighboring_relation": REPLACE_ONE,
        **{name: _plain(value) for name, value in own.items()},
        "epsilons": plan.epsilons.tolist(),
        "leakage": {"epsilons": _promised(plan), **leakage_document(plan.leakage)},
    }
    return document | {"digest": _digest(document)}


def _promised(plan: Plan) -> list[float]:
    """What each step leaks by itself; under a metric that is not the budget."""
    return plan.leakage.epsilons.tolist() if isinstance(plan.leakage, LeakageSeries) else [plan.leakage.epsilon]


def _plain(value: Any) -> Any:
    """A field of a plan as JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _digest(document: dict[str, Any]) -> str:
    """SHA-256 of everything but the digest itself, in one canonical spelling."""
    content = {key: value for key, value in document.items() if key != "digest"}
    spelled = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(spelled.encode("utf-8")).hexdigest()


def load_plan(path: str | Path) -> BudgetPlan | NoisePlan:
    """Read a plan written by `save_plan`.

    Parameters
    ----------
    path : str or Path
        A JSON file.

    Returns
    -------
    BudgetPlan or NoisePlan

    Raises
    ------
    MissingFileError
        There is no such file.
    InputError
        It is not a plan, or its parts contradict one another.
    """
    source = require_file(path, "a plan (from `temporaldp plan`)")
    try:
        document = json.loads(source.read_text(encoding="utf-8"))
        _refuse_changed(document)
        kind = KINDS[document["kind"]]
        own = {field.name: document[field.name] for field in fields(kind) if field.name in document}
        own = {name: value for name, value in own.items() if name not in {"leakage", "source"}}
        if own.get("optimality") is not None:
            own["optimality"] = Optimality(**own["optimality"])
        if own.get("verification") is not None:
            own["verification"] = Verification(**own["verification"])
        source_states = document["source"].pop("states")
        states = None if source_states is None else tuple(source_states)
        plan = kind(leakage=_leakage(document), source=Source(states, **document["source"]), **own)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, RecursionError, OverflowError, AttributeError) as error:
        raise InputError(
            f"{source}: expected a plan as `temporaldp plan` writes it, but its content does not fit: {brief(error)}"
        ) from None
    return plan


def _refuse_changed(document: dict[str, Any]) -> None:
    if document["format"] != FORMAT:
        raise InputError(f"expected format {FORMAT!r}, got {str(document['format'])[:40]!r}")
    if document["digest"] != _digest(document):
        raise InputError("the plan was changed after it was made, and nothing vouches for it any more: plan again")


def leakage_document(leakage: LeakageSeries | LeakageSupremum) -> dict[str, Any]:
    """A series or supremum as JSON values; infinity as the string "inf", which JSON has no number for."""
    if isinstance(leakage, LeakageSupremum):
        return {field: json_number(getattr(leakage, field)) for field in DIRECTIONS}
    return {field: getattr(leakage, field).tolist() for field in DIRECTIONS}


def json_number(value: float) -> float | str:
    """`value`, or "inf": strict JSON has no infinity, and every language's float() reads the word."""
    return value if math.isfinite(value) else "inf"


def _leakage(document: dict[str, Any]) -> LeakageSeries | LeakageSupremum:
    method = accounting_from(document["accounting"])
    leakage = document["leakage"]
    epsilons = np.array(leakage["epsilons"], dtype=np.float64)
    if document["horizon"] is None:
        past, future, both = (float(leakage[field]) for field in DIRECTIONS)
        return LeakageSupremum(float(epsilons[0]), past, future, both, accounting=method)
    series = [np.array(leakage[field], dtype=np.float64) for field in DIRECTIONS]
    return LeakageSeries(epsilons, series[0], series[1], series[2], accounting=method)
