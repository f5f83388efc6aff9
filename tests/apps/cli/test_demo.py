"""The demonstration writes all of its files, over those of an earlier one."""

from __future__ import annotations

import json

import pytest

from command import temporaldp

pytestmark = pytest.mark.long


def test_demo_writes_all_files_by_repeatable_commands(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "plan.json").write_text("of an earlier demo")
    result = temporaldp("demo", "-o", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    made = {path.name: path.stat().st_size for path in folder.iterdir()}
    pictures = {"audit.svg", "comparison.svg", "smoothed.svg"}
    inputs = {"history.csv", "protected.csv", "temporaldp.toml"}
    others = {"plan.json", "released.parquet", "report.html", "smoothed.csv", "correlation.json"}
    assert set(made) == pictures | inputs | others
    assert all(made[name] > 10_000 for name in pictures)
    assert json.loads((folder / "plan.json").read_text())["horizon"] == 47
    line = next(line for line in result.stdout.splitlines() if line.startswith("$ temporaldp audit"))
    again = temporaldp(*line.split()[2:], cwd=folder)
    assert again.returncode == 0, again.stderr
    assert again.stdout in result.stdout
