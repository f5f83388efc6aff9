"""Budget plans on disk: JSON that a person can read and a program can trust."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from temporaldp.accounting import LeakageSeries, LeakageSupremum
from temporaldp.accounting.series import DIRECTIONS
from temporaldp.errors import InputError
from temporaldp.files.atomic import replacing, require_file
from temporaldp.planning import BudgetPlan

FORMAT = "temporaldp.plan/1"


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
    """A plan as JSON values."""
    return {
        "format": FORMAT,
        "alpha": plan.alpha,
        "horizon": plan.horizon,
        "method": plan.method,
        "unit": "nats",
        "neighboring_relation": plan.neighboring_relation,
        "states": plan.states,
        "provenance": plan.provenance,
        "epsilons": plan.epsilons.tolist(),
        "leakage": leakage_document(plan.leakage),
    }


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
        if document["format"] != FORMAT:
            raise InputError(f"{source}: expected format {FORMAT!r}, got {document['format']!r}")
        plan = BudgetPlan(
            np.array(document["epsilons"], dtype=np.float64),
            float(document["alpha"]),
            document["horizon"],
            document["method"],
            _leakage(document["leakage"], document["epsilons"]),
            None if document["states"] is None else tuple(document["states"]),
            document["neighboring_relation"],
            document["provenance"],
        )
    except (KeyError, TypeError, ValueError, UnicodeDecodeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{source}: expected a plan as `temporaldp plan` writes it, but its content does not fit: {error!r}"
        ) from None
    _check(plan, source)
    return plan


def leakage_document(leakage: LeakageSeries | LeakageSupremum) -> dict[str, Any]:
    """A series or supremum as JSON values; infinity as the string "inf", which JSON has no number for."""
    if isinstance(leakage, LeakageSupremum):
        return {field: json_number(getattr(leakage, field)) for field in ("epsilon", *DIRECTIONS)}
    return {field: getattr(leakage, field).tolist() for field in DIRECTIONS}


def json_number(value: float) -> float | str:
    """`value`, or "inf": strict JSON has no infinity, and every language's float() reads the word."""
    return value if math.isfinite(value) else "inf"


def _leakage(document: dict[str, Any], epsilons: list[float]) -> LeakageSeries | LeakageSupremum:
    if "epsilon" in document:
        limits = [float(document[field]) for field in ("epsilon", *DIRECTIONS)]
        return LeakageSupremum(limits[0], limits[1], limits[2], limits[3])
    past, future, both = (np.array(document[field], dtype=np.float64) for field in DIRECTIONS)
    return LeakageSeries(np.array(epsilons, dtype=np.float64), past, future, both)


def _check(plan: BudgetPlan, source: Path) -> None:
    expected = (plan.horizon or 1,)
    usable = plan.epsilons.shape == expected and bool((np.isfinite(plan.epsilons) & (plan.epsilons >= 0)).all())
    if not usable:
        raise InputError(
            f"{source}: expected {expected[0]} finite epsilons >= 0, got an array of shape {plan.epsilons.shape}"
        )
    if not 0 < plan.leakage.worst <= plan.alpha:
        raise InputError(
            f"{source}: the plan says alpha = {plan.alpha:g}, but its own leakage is {plan.leakage.worst:g}; "
            "the file was changed after it was made: plan again"
        )
