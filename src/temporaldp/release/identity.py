"""What a ledger remembers of an adversary: enough to know him again, not what he knows."""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter
from collections.abc import Iterable
from typing import Any

from temporaldp.correlation import Adversary
from temporaldp.planning import Plan
from temporaldp.release.chain import canonical


def correlations_of(adversaries: Iterable[Adversary], *, salt: str | None = None) -> dict[str, Any]:
    """Salted digests of every adversary's matrices, sorted; users are not named."""
    grain = secrets.token_hex(16) if salt is None else salt
    return {"salt": grain, "users": sorted(_digest(adversary, grain) for adversary in adversaries)}


def difference(kept: dict[str, Any], now: dict[str, Any]) -> str | None:
    """In words, how two results of `correlations_of` with one salt differ; None if they do not."""
    before, after = Counter(kept["users"]), Counter(now["users"])
    if before == after:
        return None
    gone, new = (before - after).total(), (after - before).total()
    return f"{gone} of the ledger's {before.total()} are none of this release's {after.total()}, and {new} of those are new"


def _digest(adversary: Adversary, salt: str) -> str:
    whole = hashlib.sha256(salt.encode("ascii"))
    for direction in adversary.directions:
        whole.update(f"|{direction.kind} {len(direction.matrices)}".encode("ascii"))
        for matrix in direction.matrices:
            matrix.update_digest(whole)
    return whole.hexdigest()


def plan_digest(plan: Plan) -> str:
    """A hash of what the plan is, so that another one is told apart."""
    content = canonical([plan.alpha, plan.identity])
    return hashlib.sha256(content.encode("ascii")).hexdigest()
