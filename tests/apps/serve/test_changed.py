"""A database that somebody edited: nothing is spent on it, and the answer says why."""

from __future__ import annotations

import sqlite3

import pytest

from served import served, token_for
from serving import DEFINITION

HIGHER = """replace({}, '"alpha":1.0', '"alpha":9.0')"""

EDITS = {
    "a budget": "UPDATE temporaldp_steps SET epsilon = 0.001, parameter = 0.001 WHERE step = 1",
    "a step less": "DELETE FROM temporaldp_steps WHERE step = 2",
    "the last steps forgotten": "UPDATE temporaldp_releases SET n_steps = 1",
    "the head, by someone without the server's key": "UPDATE temporaldp_releases SET n_steps = 0, head = 'ab'",
    "what was published": "UPDATE temporaldp_steps SET output = '{\"value\":[0,0,0]}' WHERE step = 0",
    "alpha": f"UPDATE temporaldp_releases SET definition = {HIGHER.format('definition')}",
    "the definition": "UPDATE temporaldp_releases SET definition = '{}'",
    "by which request": "UPDATE temporaldp_steps SET request_key = 'zz' WHERE step = 1",
    "what it is for": f"UPDATE temporaldp_releases SET configuration = {HIGHER.format('configuration')}",
    "what every step may spend": "UPDATE temporaldp_releases SET configuration = json_set(configuration, '$.every_step', 0.9)",
    "a step before the first": "INSERT INTO temporaldp_steps SELECT release, -1, 'x', 9.0, 9.0, NULL, 0, NULL, NULL, NULL, 'x' "
    "FROM temporaldp_releases",
}


@pytest.mark.long
@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_release_is_not_continued(edit, tmp_path):
    store = str(tmp_path / "service.db")
    token = token_for(store)
    with served(store=store) as ask:
        release = ask.post("/v1/releases", DEFINITION, token=token).json["release"]
        for k in range(3):
            assert (
                ask.post(f"/v1/releases/{release}/publish", {"counts": [1, 2, 3]}, token=token, key=f"{k}").status
                == 200
            )
    connection = sqlite3.connect(store)
    assert connection.execute(EDITS[edit]).rowcount > 0
    connection.commit()
    connection.close()
    with served(store=store) as ask:
        for answer in (
            ask.post(f"/v1/releases/{release}/spend", {"epsilon": 0.1}, token=token, key="after"),
            ask.get(f"/v1/releases/{release}/verify", token=token),
        ):
            assert (answer.status, answer.json["title"]) == (409, "The ledger was changed"), answer.text
            assert str(tmp_path) not in answer.text
