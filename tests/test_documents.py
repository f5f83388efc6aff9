"""The README's shell lines and the examples are run as they stand; its Python lines run as doctests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
SAMPLE = REPOSITORY / "src" / "temporaldp" / "sample" / "sleep_5min.csv"


def test_the_shell_lines_of_the_readme_run(tmp_path):
    block = README.split("## In the shell")[1].split("```sh")[1].split("```")[0]
    lines = [line.split("  #")[0].strip() for line in block.strip().splitlines()]
    assert len(lines) == 15
    shutil.copy(SAMPLE, tmp_path / "traces.csv")
    shutil.copy(SAMPLE, tmp_path / "past.csv")
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in lines:
        result = subprocess.run(
            line,
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PATH": binaries},
        )
        assert result.returncode == 0, (line, result.stderr)
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "released.parquet").is_file()
    assert (tmp_path / "paper" / "figure3.svg").is_file()


def test_the_links_of_the_documents_lead_somewhere():
    for document in (REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")):
        for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


@pytest.mark.parametrize("path", sorted((REPOSITORY / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(path, tmp_path):
    if "diffprivlib" in path.name:
        pytest.importorskip("diffprivlib", reason="the extra 'examples' is not installed")
    result = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    told = re.findall(r"worst leakage ([0-9.]+)", result.stdout)
    assert told, result.stdout
    assert all(float(leakage) > 0.0 for leakage in told)
