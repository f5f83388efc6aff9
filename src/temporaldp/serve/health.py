"""Whether the server lives, and whether it can serve."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["operation"])


@router.get("/health")
def health() -> dict[str, str]:
    """The process answers."""
    return {"status": "alive"}


@router.get("/ready")
def ready() -> dict[str, str]:
    """It can do what it is asked for: its database answers, and it is not being stopped."""
    return {"status": "ready"}
