"""A project: one TOML file that defines a release, and the functions that read it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from temporaldp.core.correlation import Adversary
from temporaldp.core.planning import Plan
from temporaldp.data.counts import ReleasedHistograms
from temporaldp.data.tables import Traces
from temporaldp.publish.project.inputs import Inputs, gather, read_data
from temporaldp.publish.project.planning import planned, planning_inputs
from temporaldp.publish.project.publishing import publishing
from temporaldp.publish.project.release import checked_output, setup_of

if TYPE_CHECKING:
    from temporaldp.publish.project.settings import Settings


@dataclass(frozen=True, slots=True)
class Project:
    r"""A release as its project file describes it: data, correlation, level, ledger and outputs.

    Parameters
    ----------
    settings : Settings
        Validated settings, one section each: ``project.settings.privacy.alpha``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from importlib.resources import files
    >>> sample = files("temporaldp.data.sample") / "sleep_5min.csv"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "temporaldp.toml"
    ...     _ = file.write_text(f"[traces]\npath = '{sample}'\n[privacy]\nalpha = 1.0\nhorizon = 47\n")
    ...     project = Project.load(file)
    ...     round(float(project.plan().epsilons[0]), 4), project.traces().n_users
    (0.2721, 151)
    """

    settings: Settings

    @classmethod
    def load(cls, file: str | os.PathLike[str] = "temporaldp.toml", assignments: Sequence[str] = ()) -> Self:
        """Read a project file.

        Parameters
        ----------
        file : path
            TOML; relative paths in it are relative to its folder.
        assignments : sequence of str
            Settings that override it, each "section.key=value".

        Raises
        ------
        MissingFileError
            There is no such file.
        InputError
            It is not TOML, a key is unknown, or a value is not accepted.
        """
        from temporaldp.publish.project.document import read_settings

        return cls(read_settings(Path(file), assignments))

    def traces(self) -> Traces:
        """Read the protected traces, or the counts in place of them."""
        return read_data(self.settings.traces)

    def inputs(self) -> Inputs:
        """Read the data and the correlation, with where it comes from."""
        return gather(self.settings)

    def adversary(self) -> Adversary | tuple[Adversary, ...] | dict[str, Adversary]:
        """Read or estimate the correlation: one adversary for all users, one per user, or one per model by its name."""
        return self.inputs().everyone

    def plan(self, inputs: Inputs | None = None) -> Plan:
        """Plan budgets, or noise if a delta is set, that satisfy the level.

        Raises
        ------
        InputError
            No alpha is set, or the settings contradict each other.
        PlanError
            No plan satisfies it.
        """
        return planned(self.settings, planning_inputs(self.settings) if inputs is None else inputs)

    def release(self, *, overwrite: bool = False, begin_anew: bool = False) -> ReleasedHistograms:
        """Publish the histograms of the traces, and write them with their estimates to the output that is set.

        With a ledger, a step that was published before is returned as it was. Without one, every call draws new noise and
        spends the budgets of the plan again. The settings ``release.log`` and ``release.warn_at`` apply to the command only.

        Parameters
        ----------
        overwrite : bool
            Whether an existing output that is not from the ledger is replaced.
        begin_anew : bool
            Draw times again that the output contains, or that a lost ledger had; as for `ContinualRelease`.

        Raises
        ------
        InputError
            There is neither a ledger with a level nor a plan, or the settings contradict each other.
        LedgerError
            The ledger cannot be read, written or trusted.
        OutputError
            The output exists, or cannot be written.
        """
        output = None if self.settings.release.output is None else checked_output(self.settings)
        setup = setup_of(self.settings)
        with publishing(setup, output, overwrite=overwrite, begin_anew=begin_anew) as run:
            run.draw()
            if output is not None:
                run.write(output)
            return run.released
