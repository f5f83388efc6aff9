"""The demonstration writes all of its files, over those of an earlier one."""

from __future__ import annotations

import json

import pytest

from command import temporaldp

pytestmark = pytest.mark.long


def test_the_demo_makes_every_file_and_picture(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "plan.json").write_text("of an earlier demo")
    result = temporaldp("demo", "-o", "out", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    made = {path.name: path.stat().st_size for path in folder.iterdir()}
    named = "audit", "witness", "plan", "budgets", "comparison", "matrix", "released", "smoothed"
    pictures = {f"{name}.svg" for name in named}
    others = {"plan.json", "released.parquet", "report.html", "backward.csv", "smoothed.csv"}
    assert set(made) == pictures | others | {"correlation.json"}
    assert all(made[name] > 10_000 for name in pictures)
    assert json.loads((folder / "plan.json").read_text())["horizon"] == 47
