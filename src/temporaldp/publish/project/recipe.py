"""The inputs of a release, recorded in its ledger, from which its report states how to reproduce it.

There is no hash of the protected traces, nor of counts: an adversary with the data of all other people could try the states of
one person until the hash fits.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from temporaldp.base.documents import plain, value_of
from temporaldp.core.correlation import Provenance
from temporaldp.core.planning import Plan
from temporaldp.data.files.places import trace_files
from temporaldp.publish.release import Ledger
from temporaldp.publish.report import Recipe

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings

SECTIONS = {"traces", "history", "correlation", "privacy", "plan", "release"}
"""Sections of the settings that a release depends on."""

OF_ONE_RUN = {
    "traces": {"path", "transitions", "counts", "memory", "where"},
    "history": {"memory", "where"},
    "release": {"ledger", "output", "head", "log", "warn_at"},
}
"""Settings that a recipe leaves out: those that differ from run to run, those that the counts do not depend on, and conditions
on rows, which may name people."""


def recipe_of(
    command: str,
    settings: Settings,
    provenance: Provenance,
    *histories: Path,
    plan: Plan | None = None,
    is_public: bool = True,
) -> Recipe:
    """Return the recipe of a release, with the provenance of its correlation.

    `histories` are files of the correlation that the settings do not name; `plan` was made for a correlation that may differ;
    `is_public`: whether the history of the settings was found to be that of other people, or else its hash is left out.
    """
    known = settings.correlation
    history = settings.history.path if is_public and provenance.source != "protected" else None
    paths = (history, *histories, known.file, known.backward, known.forward, settings.release.plan)
    chosen = settings.model_dump(mode="json", include=SECTIONS, exclude=OF_ONE_RUN, exclude_defaults=True)
    files = {"path", "file", "backward", "forward", "plan", "states_from"}  # by name: their folders stay here
    chosen = {
        section: {key: Path(value).name if key in files else value for key, value in keys.items()}
        for section, keys in chosen.items()
    }
    inputs = {path.name: _sha256(path) for path in paths if path is not None}
    provenances = (provenance,) if plan is None else (provenance, plan.provenance)
    warnings = tuple(dict.fromkeys(one.warning for one in provenances if one.warning))
    return Recipe(command, {name: keys for name, keys in chosen.items() if keys}, inputs, provenances, warnings)


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
