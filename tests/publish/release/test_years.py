"""Three years of hourly steps: kills, two writers, adopted histories, late files; and what is left says the truth."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import years
from streams import noted
from temporaldp import Ledger, temporal_leakage
from temporaldp.publish.release import export_ledger

HOURS = 3 * 365 * 24


@pytest.mark.long
def test_recomputed_leakage_agrees_with_the_series():
    """Check the recomputation of this test against the series, with matrices that change."""
    rng = np.random.default_rng(0)
    epsilons = 0.4 * rng.random(24)
    line = years.ADVERSARIES[0].changed(7, years.ADVERSARIES[1]).changed(15, years.ADVERSARIES[2])
    expected = temporal_leakage(line, epsilons).temporal
    assert years.reckoned(epsilons, [0, 7, 15], depth=30) == pytest.approx(expected, abs=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("store", "n_steps", "n_kills"),
    [
        ("sqlite", 70, 2),
        ("postgresql", 120, 3),
        ("sqlite", HOURS, 200),
        ("postgresql", HOURS, 200),
    ],
)
def test_a_release_that_runs_for_years(store, n_steps, n_kills, tmp_path, request):
    if store == "sqlite":
        place = str(tmp_path / "release.db")
    else:
        import postgres

        place = postgres.create_database(request.getfixturevalue("postgres_server"), f"years_{n_steps}")
    command = [sys.executable, years.__file__, place, str(tmp_path), str(n_steps), str(n_kills), "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=7200)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["killed"] > 0.9 * n_kills  # a fast machine is done before the last ones
    assert report["adopted"] == 3
    with Ledger(place) as ledger:
        ledger.verify()
        stored = [output.tolist() for output in ledger.outputs]
        epsilons, told = ledger.epsilons, [row.leakage for row in ledger[:]]
        adopted = [event.step for event in ledger.events if event.kind == "adopt"]
        assert list(ledger.times) == [years.label(step) for step in range(n_steps)]
        export_ledger(ledger, tmp_path / "steps.parquet")
    handed_out = [line for number in range(years.N_WRITERS) for line in noted(tmp_path / f"published{number}")]
    assert len({line["step"] for line in handed_out}) > 0.9 * n_steps  # the others were stored, and their writer killed
    assert all(line["output"] == stored[line["step"]] for line in handed_out), "a step was drawn twice"
    assert noted(tmp_path / "late") and not noted(tmp_path / "wrong")
    exported = pq.read_table(tmp_path / "steps.parquet").to_pydict()
    assert [json.loads(text) for text in exported["output"]] == stored
    assert exported["epsilon"] == epsilons.tolist()
    leakage = years.reckoned(epsilons, [0, *adopted])
    assert leakage.max() <= years.ALPHA
    assert told[-1] == pytest.approx(leakage.max(), rel=1e-10)
    n_late = len(noted(tmp_path / "late"))
    print(
        f"{store}: {n_steps} steps, {n_kills} kills, {len(handed_out)} outputs handed out, {n_late} late files refused, "
        f"adopted before steps {adopted}, largest leakage {leakage.max():.12f} of {years.ALPHA:g}, "
        f"{report['seconds']:.0f} s"
    )
