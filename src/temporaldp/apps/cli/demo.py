"""`temporaldp demo`: the other commands on the bundled sample, each printed before its output."""

from __future__ import annotations

import os
import shlex
import shutil
from contextlib import chdir
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from temporaldp import load_sample, sample_commuters
from temporaldp.apps.cli.console import console
from temporaldp.base.errors import OutputError
from temporaldp.data.files.atomic import write_text
from temporaldp.data.files.columns import save_columns

PROJECT = """\
# 76 people of the bundled sample in five stages of sleep, every five minutes
[traces]
path = "protected.csv"
layout = "wide"
states = ["wake", "REM", "N1 light", "N2", "N3 deep"]

[correlation]
models = ["first order", "dwell times"]  # what an observer may know about how people move from step to step

[privacy]
epsilon = 0.08       # what `audit` assumes that every step spends, in nats
alpha = 1.0          # level that `plan` satisfies at every step, in nats
horizon = 47         # steps

[plan]
draw_every = 4       # counts are drawn at every fourth step, and estimated in between

[release]
estimates = "smoothed"
same_start = true    # a night begins as those of the history do

[report]
title = "Sleep stages of 76 people, every five minutes"
step = "5 min"
true_counts = true   # shown beside the released ones: for internal use only
"""

COMMANDS = {
    "1. audit: what leaks?": ["audit --history history.csv --figure audit.svg"],
    "2. plan: what does each guarantee cost?": ["plan --history history.csv --figure guarantees.svg -o plan.json"],
    "3. release: estimates with intervals, and noisy counts": [
        "release --plan plan.json --history history.csv -o released.parquet --figure estimates.svg"
    ],
    "4. report": ["report --plan plan.json --history history.csv --released released.parquet -o report.html"],
}

TOWN = {
    "5. 12,000 people: a curve to print, for every correlation (synthetic data)": [
        "init commuters.csv --set traces.states=Centre,Docks,Harbour,Hill,Park,Station --set privacy.horizon=96",
        "release -o curve.csv --figure curve.svg",
    ],
}


def demo(
    context: typer.Context,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for pictures, plan, counts and report.")
    ] = Path("temporaldp-demo"),
) -> None:
    """Audit, plan, release and report on the bundled sample: 75 people as public history, 76 protected, 47 steps.

    Then a release of 12,000 synthetic commuters, in the folder `town`.

    Writes two tables and a project file, then prints and runs commands that can be repeated in that folder.
    """
    # A demo that is run again is no lost ledger: its key and marks are its own
    os.environ["TEMPORALDP_KEY_FILE"] = str((output / "town" / ".key" / "key").absolute())
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"cannot make folder {output}: {error.strerror}; choose another with -o") from error
    town = output / "town"
    for made in (output / "released.parquet", town):  # of an earlier one: nothing is drawn over
        shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
    sample = load_sample()
    stages = np.array(["wake", "REM", "N1 light", "N2", "N3 deep"])[sample.codes]
    for name, people in (("history.csv", slice(75)), ("protected.csv", slice(75, None))):
        steps = {str(step + 1): column.tolist() for step, column in enumerate(stages[people].T)}
        save_columns({"user": sample.users[people]} | steps, output / name)
    write_text(output / "temporaldp.toml", PROJECT)
    console.print(f"In {output}: history.csv, protected.csv and temporaldp.toml\n", soft_wrap=True, markup=False)
    console.print(PROJECT, style="dim", markup=False)
    _run(context, output, COMMANDS)
    town.mkdir()
    walks = sample_commuters()
    zones = np.array(walks.states)[walks.codes].T.tolist()
    save_columns({"person": list(walks.users)} | dict(zip(walks.times, zones, strict=True)), town / "commuters.csv")
    console.print(
        f"To repeat what follows: cd {town}; export TEMPORALDP_KEY_FILE=.key/key", soft_wrap=True, markup=False
    )
    _run(context, town, TOWN)
    console.print(f"Report, plan, counts and pictures are in {output}: open {output / 'report.html'}", soft_wrap=True)


def _run(context: typer.Context, folder: Path, commands: dict[str, list[str]]) -> None:
    """Print and run commands in a folder."""
    with chdir(folder):
        for title, lines in commands.items():
            console.rule(title, align="left")
            for line in lines:
                console.print(f"$ temporaldp {line}\n", style="bold", soft_wrap=True, markup=False)
                context.find_root().command.main(shlex.split(line), "temporaldp", standalone_mode=False)
