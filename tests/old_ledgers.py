"""Ledgers that earlier versions made, as those versions wrote them (`release/formats/`)."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import sqlalchemy as sa

FORMATS = Path(__file__).with_name("release") / "formats"
BOUNDS = {"format2": "exact", "format3": "paper", "format4": "exact"}
HEADS = {
    "format2": "d210f468dead44b39aa37586402f0aaec7e1f7269355b22d493f14d185fe30f2",
    "format3": "0894c05c10fa62a03a662a12e9de65acefe32375b3196fff4bec6f98bfc6d0df",
    "format4": "3a2d6f1fbc7acb2a26891e4ec0d298a12ec99c67ce75a3a3dd21cf911b3abe40",
}
"""As the old versions printed them."""

OLDER = ("format2", "format3")
"""Those that are migrated."""


def restored(name, place):
    """The old ledger in a file or a database."""
    script = (FORMATS / f"{name}.sql").read_text()
    if "://" not in place:
        with sqlite3.connect(place) as connection:
            connection.executescript(script)
        connection.close()
        Path(place).chmod(0o600)
        return place
    engine = sa.create_engine(place.replace("postgresql://", "postgresql+psycopg://"))
    script = script.replace("BEGIN TRANSACTION;", "").replace("COMMIT;", "")
    script = re.sub(r"\bDOUBLE\b", "DOUBLE PRECISION", script)
    script = script.replace(",0,'{\"array", ",false,'{\"array").replace(",0,NULL,", ",false,NULL,")
    with engine.begin() as connection:
        connection.exec_driver_sql(script.replace("%", "%%"))
    engine.dispose()
    return place
