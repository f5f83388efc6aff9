"""Servers and database killed under load, answers cut off: no step is drawn, spent or told twice, or lost."""

from __future__ import annotations

import hashlib
import json
import random
import socket
import subprocess
import sys
import threading
import time
import uuid

import pytest
import sqlalchemy as sa

import postgres
import serving
from level import worst_leakage
from postgres import place_of
from served import token_for
from serving import BACKWARD, DEFINITION, FORWARD
from temporaldp.apps.serve import Client
from temporaldp.base.errors import RequestRefusedError

ALPHA = DEFINITION["alpha"]
QUICK, LONG, IN_ONE_DATABASE = 5, 500, 50
DATABASE_EVERY = 10
"""One kill of so many is the database's."""

CLIENTS = 8

CUT = 0.15
"""Share of requests whose connection is cut before the whole answer was read."""


class Servers:
    """Servers on fixed ports, over one store."""

    def __init__(self, store, folder, number):
        self.ports = [free_port() for _ in range(number)]
        command = [sys.executable, serving.__file__, store, str(folder)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "ready\n"
        for port in self.ports:
            self.tell("start", port)

    def tell(self, act, port):
        print(act, port, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == f"{act}\n"

    def stop(self):
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Pipeline(threading.Thread):
    """A client that spends and publishes as much as it is let, and notes what it was told."""

    def __init__(self, port, token, releases, seed):
        super().__init__()
        self.port, self.token, self.releases, self.rng = port, token, releases, random.Random(seed)
        self.over = threading.Event()
        self.asked, self.told, self.refused, self.error = {}, [], 0, None

    def run(self):
        try:
            with Client(f"http://127.0.0.1:{self.port}", self.token, patience=120, answer_within=20) as client:
                while not self.over.is_set():
                    self.step(client)
        except Exception as error:
            self.error = error

    def step(self, client):
        release, key = self.rng.choice(self.releases), uuid.uuid4().hex
        body = {} if self.rng.random() < 0.5 else {"epsilon": self.rng.uniform(0.01, 0.6)}
        kind = self.rng.choice(["spend", "publish"])
        counts = [self.rng.randrange(100) for _ in range(3)]
        self.asked[key] = release, kind, body, counts
        if self.rng.random() < CUT:
            self.cut(release, kind, body | ({"counts": counts} if kind == "publish" else {}), key)
        for again in range(1 + (self.rng.random() < 0.1)):
            try:
                answer = ask(client, release, kind, body, counts, key)
            except RequestRefusedError as refusal:
                assert refusal.status == 409 and "Nothing was spent" in str(refusal), refusal
                assert not again, "taken, and then refused"
                self.refused += 1
                return
            self.told.append((key, answer))

    def cut(self, release, kind, body, key):
        """Send a request and read its answer in part, or not at all; it is repeated afterwards."""
        text = json.dumps(body)
        head = (
            f"POST /v1/releases/{release}/{kind} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n"
        )
        head += f"Idempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall((head + text)[: self.rng.choice([len(head + text), len(head) + 3, 10**6])].encode())
                if self.rng.random() < 0.7:
                    connection.recv(self.rng.randrange(1, 200))
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset, not closed
        except OSError:
            pass


def ask(client, release, kind, body, counts, key):
    if kind == "spend":
        return client.spend(release, key=key, **body)
    return client.publish(release, counts, key=key, **body)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "n_kills"),
    [
        ("postgresql", QUICK),
        pytest.param("sqlite", LONG, marks=pytest.mark.slow),
        pytest.param("postgresql", LONG, marks=pytest.mark.slow),
    ],
)
def test_kills_under_load_store_every_response_and_satisfy_the_level(kind, n_kills, tmp_path, request):
    found = []
    for number in range(max(n_kills // IN_ONE_DATABASE, 1)):
        folder = tmp_path / str(number)
        folder.mkdir()
        store = place_of(kind, folder, request)
        found.append(storm(store, folder, min(n_kills, IN_ONE_DATABASE), number, kind))
        print(f"{kind}: {found[-1]}", flush=True)
    total = {name: sum(one[name] for one in found) for name in found[0]}
    print(f"{kind}: {n_kills} kills, {total}")
    assert total["steps"] > n_kills, "the load was too small to show anything"
    if n_kills == LONG:
        assert total["lost draws"] > 0, "nobody was killed between a draw and its commit"
        assert total["refused"] > 0, "the level was never near"


def storm(store, folder, n_kills, seed, kind):
    """Load, and kills at random moments; what is there afterwards must be what was told."""
    rng = random.Random(seed)
    token = token_for(store)
    servers = Servers(store, folder, 1 if kind == "sqlite" else 2)
    releases = []
    with Client(f"http://127.0.0.1:{servers.ports[0]}", token) as client:
        for k in range(3):
            releases.append(client.create(DEFINITION, key=f"made-{k}"))
    pipelines = [Pipeline(rng.choice(servers.ports), token, releases, 100 * seed + k) for k in range(CLIENTS)]
    for one in pipelines:
        one.start()
    for number in range(n_kills):
        time.sleep(rng.uniform(0.1, 0.8))
        if kind == "postgresql" and number % DATABASE_EVERY == DATABASE_EVERY // 2 - 1:
            postgres.crash(store, rng.randrange(2))
            continue
        victim = rng.choice(servers.ports)
        servers.tell("kill", victim)
        time.sleep(rng.uniform(0.0, 0.1))
        servers.tell("start", victim)
    time.sleep(0.5)
    for one in pipelines:
        one.over.set()
    for one in pipelines:
        one.join()
        assert one.error is None, one.error
    try:
        return judge(store, folder, servers.ports, token, releases, pipelines)
    finally:
        servers.stop()


def judge(store, folder, ports, token, releases, pipelines):
    """Read the database with SQL of our own, and compare it with what was told and what was drawn."""
    rows = stored(store)
    by_key = {row["request_key"].partition(" ")[2]: row for row in rows}  # after the name of the token
    assert len(by_key) == len(rows), "one request took two steps"
    asked = {key: what for one in pipelines for key, what in one.asked.items()}
    told = [pair for one in pipelines for pair in one.told]
    assert set(by_key) <= set(asked)
    for key, answer in told:
        row = by_key[key]
        assert (answer["release"], answer["step"], answer["time"]) == (row["release"], row["step"], row["time"])
        assert (answer["epsilon"], answer["head"]) == (row["epsilon"], row["hash"])
        if asked[key][1] == "publish":
            assert json.loads(row["output"])["value"] == answer["counts"]
    answered = {key for key, _ in told}
    assert all(key in answered for key in by_key), "a step was taken, and its client told that it was refused"
    for release in releases:
        own = [row for row in rows if row["release"] == release]
        assert [row["step"] for row in own] == list(range(len(own))), "a step is missing"
        require_chained(store, release, own)
        assert worst_leakage(BACKWARD, FORWARD, [row["epsilon"] for row in own]) <= ALPHA
    drawn = (folder / "drawn").read_text().splitlines() if (folder / "drawn").exists() else []
    published = [
        json.dumps(json.loads(row["output"])["value"]) for key, row in by_key.items() if asked[key][1] == "publish"
    ]
    left = list(drawn)
    for output in published:
        left.remove(output)  # each was drawn for itself
    again = random.Random(1).sample(told, min(20, len(told)))
    with Client(f"http://127.0.0.1:{ports[-1]}", token) as client:
        for key, answer in again:
            release, kind, body, counts = asked[key]
            assert ask(client, release, kind, body, counts, key) == answer
        assert all(client.verify(release)["intact"] for release in releases)
    return {
        "steps": len(rows),
        "answers": len(told),
        "refused": sum(one.refused for one in pipelines),
        "lost draws": len(left),
        "n_longest": max(row["step"] for row in rows) + 1,
    }


def stored(store):
    engine = sa.create_engine(engine_url(store))
    with engine.connect() as connection:
        asked = sa.text("SELECT * FROM temporaldp_steps ORDER BY release, step")
        found = [dict(row) for row in connection.execute(asked).mappings()]
    engine.dispose()
    return found


def engine_url(store):
    return store.replace("postgresql://", "postgresql+psycopg://") if "://" in store else f"sqlite:///{store}"


def require_chained(store, release, rows):
    """Each row's hash is that of its content and the hash before it, by hashlib and json alone."""
    engine = sa.create_engine(engine_url(store))
    with engine.connect() as connection:
        asked = sa.text("SELECT configuration, n_steps, head FROM temporaldp_releases WHERE release = :release")
        configuration, n_steps, head = connection.execute(asked, {"release": release}).one()
        asked = sa.text("SELECT * FROM temporaldp_events WHERE release = :release ORDER BY number")
        events = list(connection.execute(asked, {"release": release}).mappings())
    engine.dispose()
    assert [event["number"] for event in events] == list(range(len(events)))
    assert {event["kind"] for event in events} <= {"checkpoint"}
    previous = hashlib.sha256(f"temporaldp ledger 10\n{configuration}".encode()).hexdigest()
    names = ("step", "time", "parameter", "epsilon", "leakage", "last", "output", "digest", "request_key")
    entries = [(row["step"], row, [bool(row[name]) if name == "last" else row[name] for name in names]) for row in rows]
    names = ("number", "step", "kind", "at", "by", "content")
    # An event after n steps follows step n - 1.
    entries += [(event["step"] - 0.5, event, ["event", *(event[name] for name in names)]) for event in events]
    for _, entry, content in sorted(entries, key=lambda one: (one[0], one[1].get("number", 0))):
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
        assert previous == entry["hash"]
    assert (n_steps, head) == (len(rows), previous)
