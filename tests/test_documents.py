"""The README's shell lines and the examples are run as they stand; its Python lines run as doctests."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command import temporaldp
from conftest import REPOSITORY
from registry_records import VISITS

README = (REPOSITORY / "README.md").read_text()
SAMPLE = REPOSITORY / "src" / "temporaldp" / "sample" / "sleep_5min.csv"


def in_a_shell(line, folder):
    """The installed command, with whatever the line asks of the shell."""
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": binaries}
    return subprocess.run(
        line, shell=True, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )  # fmt: skip


def test_the_shell_lines_of_the_readme_run(tmp_path):
    block = README.split("## In the shell")[1].split("```sh")[1].split("```")[0]
    lines = [line.split("  #")[0].strip() for line in block.strip().splitlines()]
    assert len(lines) == 22
    shutil.copy(SAMPLE, tmp_path / "traces.csv")
    shutil.copy(SAMPLE, tmp_path / "past.csv")
    (tmp_path / "record.yaml").write_text(VISITS)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "plan.json").write_text("of an earlier demo")
    for line in lines:
        result = in_a_shell(line, tmp_path) if ">" in line else temporaldp(*shlex.split(line)[1:], cwd=tmp_path)
        assert result.returncode == 0, (line, result.stderr)
    made = {path.name: path.stat().st_size for path in (tmp_path / "out").iterdir()}
    pictures = {
        "audit.png",
        "witness.png",
        "plan.png",
        "budgets.png",
        "comparison.png",
        "matrix.png",
        "released.png",
        "smoothed.png",
    }
    others = {"plan.json", "released.parquet", "report.html", "backward.csv", "smoothed.csv"}
    assert set(made) == pictures | others | {"correlation.npz", "correlation.db"}
    assert all(made[name] > 10_000 for name in pictures)
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["horizon"] == 47
    assert json.loads((tmp_path / "audit.json").read_text())["epsilon"] == 0.1
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "released.parquet").is_file()
    assert (tmp_path / "paper" / "figure3.svg").is_file()


def test_the_links_of_the_documents_lead_somewhere():
    for document in (REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


@pytest.mark.long
@pytest.mark.parametrize("path", sorted((REPOSITORY / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(path, tmp_path):
    if "diffprivlib" in path.name:
        pytest.importorskip("diffprivlib", reason="the extra 'diffprivlib' is not installed")
    result = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    told = re.findall(r"worst leakage ([0-9.]+)", result.stdout)
    assert told, result.stdout
    assert all(float(leakage) > 0.0 for leakage in told)
