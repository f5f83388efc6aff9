"""Plans and leakage on disk, as readable JSON with a digest."""

import hashlib
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from temporaldp.base.documents import plain, spelled, value_of
from temporaldp.base.errors import InputError
from temporaldp.base.values import REPLACE_ONE
from temporaldp.core.accounting import Attained, LeakageSeries, LeakageSupremum
from temporaldp.core.accounting.methods import accounting_from
from temporaldp.core.accounting.protocol import DIRECTIONS
from temporaldp.core.planning import BudgetPlan, NoisePlan, Plan
from temporaldp.data.files.atomic import write_text
from temporaldp.data.files.matrices import parsed

PLAN_FORMAT, LEAKAGE_FORMAT = "temporaldp.plan/7", "temporaldp.leakage/1"


def save_plan(plan: Plan, path: str | Path) -> None:
    """Write a plan as JSON for `load_plan`.

    Parameters
    ----------
    plan : BudgetPlan or NoisePlan
    path : path

    Raises
    ------
    OutputError
        The file cannot be written; an existing file is untouched.
    """
    write_text(path, json.dumps(plan_document(plan), indent=1, allow_nan=False) + "\n")


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values, with a digest that detects changes."""
    own = {field.name: getattr(plan, field.name) for field in fields(plan) if field.name != "leakage"}
    content: dict[str, Any] = plain(
        {
            "format": PLAN_FORMAT,
            "kind": "noise" if isinstance(plan, NoisePlan) else "budgets",
            "horizon": plan.horizon,
            "accounting": plan.accounting,
            "delta": plan.delta,
            "unit": "nats",
            "neighboring_relation": REPLACE_ONE,
            **own,
            "epsilons": plan.epsilons,
            "leakage": _numbers(plan.leakage),
        }
    )
    return content | {"digest": _digest(content)}


def save_leakage(leakage: LeakageSeries | LeakageSupremum, path: str | Path) -> None:
    """Write leakage as JSON for `load_leakage`: the numbers of all users, and the method; no evidence but what is attained.

    Parameters
    ----------
    leakage : LeakageSeries or LeakageSupremum
    path : path

    Raises
    ------
    InputError
        The accounting method is one of your own, which nothing in the file could make again.
    OutputError
        The file cannot be written; an existing file is untouched.
    """
    content = json.loads(spelled({"format": LEAKAGE_FORMAT, "unit": "nats"} | _leakage_document(leakage)))
    write_text(path, json.dumps(content | {"digest": _digest(content)}, indent=1, allow_nan=False) + "\n")


def load_leakage(path: str | Path) -> LeakageSeries | LeakageSupremum:
    """Read leakage written by `save_leakage`.

    Raises
    ------
    MissingFileError
        There is no such file.
    InputError
        It is not leakage, or was changed.
    """
    with parsed(path, "leakage as save_leakage writes it", InputError) as text:
        return _leakage_of(_checked(json.loads(text), LEAKAGE_FORMAT, "compute it again"))


def _leakage_document(found: LeakageSeries | LeakageSupremum) -> dict[str, Any]:
    numbers = {"accounting": found.accounting, "delta": found.delta, "leakage": _numbers(found)}
    if isinstance(found, LeakageSupremum):
        return numbers | {"horizon": None, "name": found.worst_user, "certified": found.certified}
    return numbers | {
        "horizon": len(found),
        "name": found.name,
        "members": [_leakage_document(member) for member in found.members],
    }


def _leakage_of(document: dict[str, Any]) -> LeakageSeries | LeakageSupremum:
    found, name = _leakage(document), document["name"]
    if isinstance(found, LeakageSupremum):
        return replace(found, worst_user=name, certified=document["certified"])
    return replace(found, name=name, members=tuple(map(_leakage_of, document["members"])))  # type: ignore[arg-type]


def _checked(document: dict[str, Any], expected: str, advice: str) -> dict[str, Any]:
    """A document of the expected format that was not changed; `InputError` for others."""
    if document["format"] != expected:
        raise InputError(f"expected format {expected!r}, got {str(document['format'])[:40]!r}")
    if document["digest"] != _digest(document):
        raise InputError(f"the file was changed after it was made, so its numbers are no longer valid: {advice}")
    return document


def _numbers(found: LeakageSeries | LeakageSupremum) -> dict[str, Any]:
    """Leakage of each step by itself, which under a metric differs from the budget; and in each direction."""
    promised = found.epsilons if isinstance(found, LeakageSeries) else [found.epsilon]
    numbers = {"epsilons": promised, **_directions(found)}
    if found.label != found.accounting.label:  # because the effort of the exact method ended, less is attained
        attained = found.attained if isinstance(found, LeakageSeries) else found.lower
        numbers["attained"] = attained and _directions(attained)
    return numbers


def _directions(leakage: Any) -> dict[str, Any]:
    return {name: getattr(leakage, name) for name in DIRECTIONS}


def _digest(document: dict[str, Any]) -> str:
    """SHA-256 of everything but the digest itself, in one canonical spelling."""
    content = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


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
    with parsed(path, "a plan as `temporaldp plan` writes it", InputError) as text:
        return plan_from(json.loads(text))


def plan_from(content: dict[str, Any]) -> BudgetPlan | NoisePlan:
    """Return the plan of a document; `InputError` if it was changed or is of another format."""
    document = _checked(content, PLAN_FORMAT, "plan again")
    kinds: dict[str, type[BudgetPlan] | type[NoisePlan]] = {"budgets": BudgetPlan, "noise": NoisePlan}
    kind = kinds[document["kind"]]
    own = {
        name: document[name] if name in {"epsilons", "scales"} else value_of(hint, document[name])  # arrays as lists
        for name, hint in get_type_hints(kind).items()
        if name != "leakage"
    }
    return kind(leakage=_leakage(document), **own)


def _leakage(document: dict[str, Any]) -> LeakageSeries | LeakageSupremum:
    method = accounting_from(document["accounting"])
    epsilons, past, future, both = (
        np.array(document["leakage"][name], dtype=np.float64) for name in ("epsilons", *DIRECTIONS)
    )
    known = document["leakage"].get("attained")
    attained = known and Attained(*(np.array(known[name], dtype=np.float64)[()] for name in DIRECTIONS))
    if document["horizon"] is not None:
        return LeakageSeries(epsilons, past, future, both, accounting=method, details=attained)
    limits = LeakageSupremum(epsilons.item(), past.item(), future.item(), both.item(), accounting=method)
    return replace(limits, certified=False, lower=attained) if "attained" in document["leakage"] else limits
