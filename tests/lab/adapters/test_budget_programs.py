"""Programs that type the budget of a temporal level into other libraries: by the own accounting of these, the level holds."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys

import numpy as np
import pytest

from places import REPOSITORY
from temporaldp import TemporalAccountant

FOLDER = REPOSITORY / "examples" / "budget"


def here(name, module):
    """A program whose library is in the environment of the tests."""
    return pytest.param(name, module, None, marks=pytest.mark.long, id=name)


def elsewhere(name, folder, mark):
    """A program whose library has an environment of its own."""
    return pytest.param(name, None, folder, marks=mark, id=name)


@pytest.fixture(scope="module")
def survey():
    return runpy.run_path(str(FOLDER / "survey.py"))


def interpreter(folder):
    if folder is None:
        return sys.executable
    python = REPOSITORY / folder / "bin" / "python"
    if not python.exists():
        pytest.skip(f"the library of this program has an environment of its own, and there is no {folder}")
    if "tumult" in folder and shutil.which("java") is None:
        pytest.skip("Tumult Analytics needs Java (Debian: default-jre-headless)")
    return python


@pytest.mark.parametrize(
    ("name", "module", "folder"),
    [
        here("opendp_budget", "opendp"),
        here("diffprivlib_budget", "diffprivlib"),
        here("dp_accounting_check", "dp_accounting"),
        elsewhere("opendp_polars_budget", ".venv-peers", pytest.mark.slow),
        elsewhere("pipelinedp_budget", ".venv-peers", pytest.mark.slow),
        elsewhere("smartnoise_budget", ".venv-peers", pytest.mark.slow),
        elsewhere("tumult_budget", ".venv-tumult", pytest.mark.spark),
    ],
)
def test_what_a_library_says_it_spent_is_within_the_level(name, module, folder, survey, tmp_path):
    if module is not None:
        pytest.importorskip(module, reason=f"{module} is not installed")
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
    command = [interpreter(folder), FOLDER / f"{name}.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])

    # Without a horizon it would keep a reserve for tables after the last one
    accountant = TemporalAccountant(survey["OBSERVER"], alpha=survey["ALPHA"], horizon=survey["QUARTERS"])
    for epsilon in told["epsilons"]:
        accountant.spend(epsilon * told["moves"])
    assert len(accountant) == survey["QUARTERS"]
    assert 0.9 <= accountant.total() <= 1.0

    if told["tables"]:
        true = [[states.count(state) for state in survey["STATES"]] for states in survey["answers"]()]
        off = np.abs(np.subtract(told["tables"], true)).mean()
        # A replaced state changes two counts by 1. The mean of |noise| over 108 counts is within a third of the scale, but
        # for one run in some ten thousand; half the noise that was due is not
        scale = 2.0 / (told["moves"] * np.mean(told["epsilons"]))
        assert scale / 1.6 < off < scale * 1.6
