"""Databases that go away, servers that hang, and the client that asks them."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from postgres import place_of
from served import served, token_for
from serving import DEFINITION
from temporaldp import Ledger
from temporaldp.apps.serve import Client, served_release
from temporaldp.base.errors import LedgerError, RequestRefusedError, ServiceError
from temporaldp.publish.release.database import store_at


@pytest.mark.long
def test_database_outage_spends_nothing_and_recovers(tmp_path, request):
    import psycopg

    store = place_of("postgresql", tmp_path, request)
    name, url = store.split("@/")[1].split("?")[0], request.getfixturevalue("postgres_server")
    token = token_for(store)
    with served(store=store) as ask, Client(f"http://127.0.0.1:{ask.port}", token, patience=0.3) as client:
        release = client.create(DEFINITION)
        first = client.spend(release, key="a")
        with psycopg.connect(url.format(name="postgres"), autocommit=True) as server:
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            answer = ask.post(f"/v1/releases/{release}/spend", {}, token=token, key="b")
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert "postgres" not in answer.text and name not in answer.text
            assert ask.get("/ready").status == 503 and ask.get("/health").status == 200
            with pytest.raises(ServiceError, match="same key"):
                client.spend(release, key="b")
            server.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        with Client(f"http://127.0.0.1:{ask.port}", token) as patient:
            assert patient.spend(release, key="a") == first
            assert patient.spend(release, key="b")["step"] == 1


@pytest.mark.long
@pytest.mark.parametrize("how", ["read-only", "no right to insert"])
def test_database_that_cannot_be_written_is_not_ready(how, tmp_path, request):
    """As a standby, or after a switch of the primary."""
    import psycopg

    store = place_of("postgresql", tmp_path, request)
    name = store.split("@/")[1].split("?")[0]
    token_for(store)
    if how == "read-only":
        closed, opened = (
            f'ALTER DATABASE "{name}" SET default_transaction_read_only = {state}' for state in ("on", "off")
        )
    else:
        with psycopg.connect(store, autocommit=True) as owner:
            owner.execute("DROP ROLE IF EXISTS writer")
            owner.execute("CREATE ROLE writer LOGIN")
            owner.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer")
        closed, opened = ("REVOKE INSERT ON temporaldp_steps FROM writer", "GRANT INSERT ON temporaldp_steps TO writer")
    database = store if how == "read-only" else store.replace("postgres@", "writer@")
    with served(store=database) as ask, psycopg.connect(store, autocommit=True) as owner:
        assert ask.get("/ready").status == 200
        for statement, status in ((closed, 503), (opened, 200)):
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(statement)
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()",
                (name,),
            )
            assert ask.get("/ready").status in {status, 503}  # of a connection that was just ended
            assert ask.get("/ready").status == status
            assert ask.get("/health").status == 200


@pytest.mark.long
def test_user_without_rights_is_told_so(tmp_path, request):
    import psycopg

    store = place_of("postgresql", tmp_path, request)
    token_for(store)
    with psycopg.connect(store, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS reader")
        owner.execute("CREATE ROLE reader LOGIN")
    with (
        closing(store_at(store.replace("postgres@", "reader@"))) as kept,
        pytest.raises(LedgerError, match="grant that user the right"),
    ):
        Ledger(kept)


def test_log_states_why_a_database_cannot_be_used(tmp_path, capsys):
    store = tmp_path / "service.db"
    token = token_for(str(store))
    with served(store=str(store), log=True) as ask:
        release = ask.post("/v1/releases", DEFINITION, token=token).json["release"]
        with sqlite3.connect(store) as connection:
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f'ALTER TABLE "{name}" RENAME TO "gone_{name}"')
        assert ask.post(f"/v1/releases/{release}/spend", {}, token=token, key="b").status == 503
    line = next(line for line in map(json.loads, capsys.readouterr().err.splitlines()) if line.get("status") == 503)
    assert line["cause"] == "LedgerError OperationalError SQLITE_ERROR"
    assert "gone_" not in str(line)


@pytest.mark.long
def test_hanging_step_blocks_other_servers_without_loss(tmp_path, request, monkeypatch):
    """A process hangs in its step while it holds the release's row: others are asked to retry; nothing is lost."""
    store = place_of("postgresql", tmp_path, request)
    token = token_for(store)
    drawing, go_on = threading.Event(), threading.Event()
    plain = served_release.ServedMechanism.__call__

    def hanging(self, counts, epsilon):
        if counts == (9, 9, 9):
            drawing.set()
            assert go_on.wait(30)
        return plain(self, counts, epsilon)

    monkeypatch.setattr(served_release.ServedMechanism, "__call__", hanging)
    with served(store=store) as one, served(store=store) as two:
        release = one.post("/v1/releases", DEFINITION, token=token).json["release"]
        path = f"/v1/releases/{release}/publish"
        answers = []
        body = {"counts": [9, 9, 9]}
        slow = threading.Thread(target=lambda: answers.append(one.post(path, body, token=token, key="slow")))
        slow.start()
        assert drawing.wait(10)
        other = two.post(path, {"counts": [1, 2, 3]}, token=token, key="quick")  # waits for the row, 5 seconds
        assert other.status == 503
        go_on.set()
        slow.join(30)
        assert answers[0].status == 200
        assert two.post(path, {"counts": [1, 2, 3]}, token=token, key="quick").json["step"] == 1
        assert two.post(path, body, token=token, key="slow").body == answers[0].body


@pytest.fixture
def client(tmp_path):
    store = str(tmp_path / "service.db")
    with served(store=store) as ask, Client(f"http://127.0.0.1:{ask.port}", token_for(store)) as made:
        yield made


REFUSED = [(400, "text/plain", "Invalid host header"), (403, "text/html", "<h1>Forbidden</h1>")]
"""Answers to a request that a service never saw: Starlette refuses a host with plain text, a proxy with a page."""

NO_ANSWER = [
    (499, "text/html", ""),
    (520, "text/html", "<h1>Error</h1>"),
    (524, "text/html", ""),
    (302, "text/html", ""),
]
"""Answers of proxies that do not show whether the service took the step."""


@pytest.mark.parametrize("first", REFUSED)
def test_client_gives_up_at_once_where_a_proxy_refuses(first):
    with (
        answering(first) as (address, keys),
        Client(address, "t") as client,
        pytest.raises(RequestRefusedError) as refused,
    ):
        client.spend("0" * 32)
    assert (refused.value.status, len(keys)) == (first[0], 1)


@pytest.mark.parametrize("first", NO_ANSWER)
def test_client_repeats_a_request_with_its_key_until_the_service_answers(first):
    with answering(first, (200, "application/json", '{"step": 3}')) as (address, keys), Client(address, "t") as client:
        assert client.spend("0" * 32) == {"step": 3}
    assert len(keys) == 2 and len(set(keys)) == 1


@contextmanager
def answering(*answers):
    """The address of a server that gives these answers, one after the other, and the keys of the requests."""
    left, keys = list(answers), []

    class Scripted(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            keys.append(self.headers["Idempotency-Key"])
            status, kind, body = left.pop(0)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            """No output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", keys
        server.shutdown()


def test_client_covers_every_route(client):
    release = client.create(DEFINITION | {"name": "beds"}, key="k")
    assert client.create(DEFINITION | {"name": "beds"}, key="k") == release
    granted = client.check(release)
    assert client.check(release, epsilon=granted["epsilon"]) == granted
    step = client.publish(release, [70, 30, 5], time="2024-01-01")
    assert client.spend(release, epsilon=0.1, time="2024-01-02")["step"] == 1
    assert client.steps(release, limit=1) == [step]
    state = client.state(release, leakage=True)
    assert (state["name"], state["n_steps"]) == ("beds", 2)
    assert 0.0 < state["leakage"] <= 1.0
    assert client.verify(release, head=step["head"])["intact"]
    with pytest.raises(RequestRefusedError) as refused:
        client.spend(release, epsilon=5.0, time="2024-01-03")
    assert refused.value.status == 409 and 0.0 < refused.value.remaining < 1.0
    with pytest.raises(RequestRefusedError, match="noted head"):
        client.verify(release, head="0" * 12)
