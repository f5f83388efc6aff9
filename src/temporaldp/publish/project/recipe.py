"""The inputs of a release, recorded in its ledger, from which its report states how to reproduce it.

There is no hash of the protected traces, nor of counts: an adversary with the data of all other people could try the states of
one person until the hash fits.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp.base.documents import plain, value_of
from temporaldp.core.correlation import Origin
from temporaldp.core.planning import Plan, Source
from temporaldp.data.files.places import trace_files
from temporaldp.publish.release import Ledger
from temporaldp.publish.report import Recipe

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings

SECTIONS = {"traces", "history", "correlation", "privacy", "release"}
"""Sections of the settings that a release depends on."""

OF_ONE_RUN = {
    "traces": {"path", "transitions", "counts", "memory", "where"},
    "release": {"ledger", "output", "smoothed", "head", "log", "warn_at"},
}
"""Settings that a recipe leaves out: those that differ from run to run, those that the counts do not depend on, and conditions
on rows, which may name people."""


def recipe_of(
    command: str, settings: Settings, origin: Origin | Source, *histories: Path, plan: Plan | None = None
) -> Recipe:
    """Return the recipe of a release, with the origin of its correlation, or with what its plan reports of it.

    `histories` are files of the correlation that the settings do not name; `plan` was made for a correlation that may differ.
    """
    if isinstance(origin, Source):
        origin = _origin_of(origin)
    learnt = None if plan is None or not plan.source.learning_epsilon else _origin_of(plan.source)
    if learnt is not None and learnt.sentence == origin.sentence:
        learnt = None
    known = settings.correlation
    history = None if origin.source == "protected" else settings.history.path
    paths = (history, *histories, known.file, known.backward, known.forward, settings.release.plan)
    chosen = settings.model_dump(mode="json", include=SECTIONS, exclude=OF_ONE_RUN, exclude_defaults=True)
    inputs = {path.name: _sha256(path) for path in paths if path is not None}
    return Recipe(command, {name: keys for name, keys in chosen.items() if keys}, inputs, origin, learnt)


def _origin_of(source: Source) -> Origin:
    """The origin of a plan's correlation."""
    text, epsilon = source.provenance or "Given as transition matrices (of the plan).", source.learning_epsilon
    return Origin("learnt", text, epsilon, "of the plan", source.warning) if epsilon else Origin("matrices", text)


def note_recipe(ledger: Ledger, recipe: Recipe) -> None:
    """Note a recipe in a ledger, unless the last one that it notes is the same."""
    noted = recipes_of(ledger)
    if not noted or noted[-1][1] != recipe:
        with ledger.writing() as writer:
            writer.note("source", by="temporaldp", details=plain(recipe))


def recipes_of(ledger: Ledger) -> tuple[tuple[int, Recipe], ...]:
    """Return the recipes that a ledger notes, each with the number of steps before it."""
    return tuple((event.step, value_of(Recipe, event.details)) for event in ledger.events if event.kind == "source")


def _sha256(path: Path) -> str:
    """Hash of a file; of a folder or a pattern, of its files one after the other."""
    whole = hashlib.sha256()
    for file in trace_files(path):
        with file.open("rb") as content:
            hashlib.file_digest(content, lambda: whole)
    return whole.hexdigest()
