"""The demonstration writes all of its files, over those of an earlier one."""

from __future__ import annotations

import json

import pytest

from command import temporaldp
from temporaldp import load_released

pytestmark = pytest.mark.long


def test_demo_writes_all_files_by_repeatable_commands(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "plan.json").write_text("of an earlier demo")
    result = temporaldp("demo", "-o", "out", cwd=tmp_path, columns="80")
    assert result.returncode == 0, result.stderr
    assert "…" not in result.stdout  # no cell is cut at 80 columns
    assert "commuters.csv: " not in result.stderr  # the town's states and horizon are given
    made = {path.name: path.stat().st_size for path in folder.iterdir()}
    pictures = {"audit.svg", "guarantees.svg", "estimates.svg"}
    inputs = {"history.csv", "protected.csv", "temporaldp.toml"}
    others = {"plan.json", "released.parquet", "released.md", "report.html", "town"}
    assert set(made) == pictures | inputs | others
    town = {path.name for path in (folder / "town").iterdir()}
    assert town == {".key", "commuters.csv", "temporaldp.toml", "release.db", "curve.csv", "curve.md", "curve.svg"}
    curve = load_released(folder / "town" / "curve.csv")
    assert curve.estimates.counts.sum(axis=1) == pytest.approx([12_000] * 96, abs=0.1)
    assert (curve.guarantee.kind, float(curve.scales[0])) == ("user", pytest.approx(58.54, rel=1e-3))
    assert all(made[name] > 10_000 for name in pictures)
    assert json.loads((folder / "plan.json").read_text())["horizon"] == 47
    line = next(line for line in result.stdout.splitlines() if line.startswith("$ temporaldp audit"))
    again = temporaldp(*line.split()[2:], cwd=folder, columns="80")
    assert again.returncode == 0, again.stderr
    assert again.stdout in result.stdout
