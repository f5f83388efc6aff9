"""Budget plans on disk: JSON that a person can read and a program can trust."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.accounting import LeakageSeries, LeakageSupremum
from temporaldp.accounting.protocol import DIRECTIONS, AccountingName, checked_accounting
from temporaldp.errors import InputError
from temporaldp.files.atomic import brief, replacing, require_file
from temporaldp.planning import BudgetPlan

FORMAT = "temporaldp.plan/2"


def save_plan(plan: BudgetPlan, path: str | Path) -> None:
    """Write a plan as JSON so that `load_plan` gives it back.

    Parameters
    ----------
    plan : BudgetPlan
    path : path

    Raises
    ------
    OutputError
        The file cannot be written; what stood there is untouched.
    """
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(plan_document(plan), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def plan_document(plan: BudgetPlan) -> dict[str, Any]:
    """A plan as JSON values, with a digest that shows whether any of them was changed."""
    document = {
        "format": FORMAT,
        "alpha": plan.alpha,
        "horizon": plan.horizon,
        "method": plan.method,
        "unit": "nats",
        "neighboring_relation": plan.neighboring_relation,
        "states": plan.states,
        "step": plan.step,
        "provenance": plan.provenance,
        "warning": plan.warning,
        "objective": plan.objective,
        "error": plan.error,
        "error_bound": plan.error_bound,
        "bound": plan.bound,
        **({} if plan.scales is None else _noise_document(plan)),
        "epsilons": plan.epsilons.tolist(),
        "leakage": leakage_document(plan.leakage),
    }
    return document | {"digest": _digest(document)}


def _noise_document(plan: BudgetPlan) -> dict[str, Any]:
    assert plan.scales is not None
    return {"delta": plan.delta, "mechanism": plan.mechanism, "scales": plan.scales.tolist()}


def _digest(document: dict[str, Any]) -> str:
    """SHA-256 of everything but the digest itself, in one canonical spelling."""
    content = {key: value for key, value in document.items() if key != "digest"}
    spelled = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(spelled.encode("utf-8")).hexdigest()


def load_plan(path: str | Path) -> BudgetPlan:
    """Read a plan that `save_plan` wrote.

    Raises
    ------
    MissingFileError
        There is no such file.
    InputError
        It is not a plan, or was changed so that its parts contradict one another.
    """
    source = require_file(path, "a budget plan (from `temporaldp plan`)")
    try:
        document = json.loads(source.read_text(encoding="utf-8"))
        _refuse_changed(document)
        bound = checked_accounting(document["bound"])
        return BudgetPlan(
            np.array(document["epsilons"], dtype=np.float64),
            float(document["alpha"]),
            document["horizon"],
            document["method"],
            _leakage(document["leakage"], document["epsilons"], bound, float(document.get("delta", 0.0))),
            None if document["states"] is None else tuple(document["states"]),
            document["neighboring_relation"],
            document["step"],
            document["provenance"],
            document["warning"],
            document["objective"],
            document["error"],
            document["error_bound"],
            bound,
            float(document.get("delta", 0.0)),
            document.get("mechanism"),
            document.get("scales"),
        )
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError, RecursionError, OverflowError) as error:
        raise InputError(
            f"{source}: expected a plan as `temporaldp plan` writes it, but its content does not fit: {brief(error)}"
        ) from None


def _refuse_changed(document: dict[str, Any]) -> None:
    if document["format"] != FORMAT:
        raise InputError(f"expected format {FORMAT!r}, got {str(document['format'])[:40]!r}")
    if document["digest"] != _digest(document):
        raise InputError("the plan was changed after it was made, and nothing vouches for it any more: plan again")


def leakage_document(leakage: LeakageSeries | LeakageSupremum) -> dict[str, Any]:
    """A series or supremum as JSON values; infinity as the string "inf", which JSON has no number for."""
    if isinstance(leakage, LeakageSupremum):
        return {field: json_number(getattr(leakage, field)) for field in ("epsilon", *DIRECTIONS)}
    return {field: getattr(leakage, field).tolist() for field in DIRECTIONS}


def json_number(value: float) -> float | str:
    """`value`, or "inf": strict JSON has no infinity, and every language's float() reads the word."""
    return value if math.isfinite(value) else "inf"


def _leakage(
    document: dict[str, Any], epsilons: list[float], bound: AccountingName, delta: float
) -> LeakageSeries | LeakageSupremum:
    if "epsilon" in document:
        limits = [float(document[field]) for field in ("epsilon", *DIRECTIONS)]
        return LeakageSupremum(limits[0], limits[1], limits[2], limits[3], bound=bound, delta=delta)
    past, future, both = (np.array(document[field], dtype=np.float64) for field in DIRECTIONS)
    return LeakageSeries(np.array(epsilons, dtype=np.float64), past, future, both, bound=bound, delta=delta)
