"""A synthetic table of a transport agency: who tapped in which zone when, over five days, with gaps; and a history of it.

People have a home and a work zone, travel in the morning and the evening, and are sometimes elsewhere. A row is a person in a
zone at a quarter of an hour; a share of the rows is missing, as where a reader failed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

ZONES = [f"Z{k:02d}" for k in range(1, 13)]
QUARTERS = 96


def commuting(rng, home, work, days):
    """The zone of each person at each step, shape (people, steps), from Monday on; homes and places of work are given."""
    here, found = home, []
    for t in range(days * QUARTERS):
        quarter = t % QUARTERS
        moves = rng.random(len(home)) < (0.45 if quarter in {*range(28, 38), *range(64, 74)} else 0.08)
        strays = rng.random(len(home)) < 0.01
        here = np.where(moves, work if 34 <= quarter < 68 else home, here)
        here = np.where(strays, rng.integers(0, len(ZONES), len(home)), here)
        found.append(here)
    return np.stack(found, axis=1)


def commuters(rng, n_people, days):
    """The zones of people most of whom work in three of them."""
    busy = np.r_[4.0, 3.0, 2.0, np.ones(len(ZONES) - 3)]
    work = rng.choice(len(ZONES), n_people, p=busy / busy.sum())
    return commuting(rng, rng.integers(0, len(ZONES), n_people), work, days)


def write_table(path, *, n_people, days, seed, start="2024-03-04", missing=0.02, prefix="P"):
    """Write the table of `days` days from Monday on, as CSV or Parquet."""
    rng = np.random.default_rng(seed)
    home, work = (rng.integers(0, len(ZONES), n_people) for _ in range(2))
    zone = commuting(rng, home, work, days)
    kept = rng.random(zone.shape) >= missing
    person, step = np.nonzero(kept)
    times = np.datetime64(start) + step.astype("timedelta64[m]") * 15
    table = pa.table(
        {
            "person_id": pa.array(np.char.mod(f"{prefix}%04d", person)),
            "timestamp": pa.array(times.astype("datetime64[s]")),
            "zone": pa.array(np.array(ZONES)[zone[person, step]]),
        }
    )
    (parquet.write_table if Path(path).suffix == ".parquet" else csv.write_csv)(table, path)
