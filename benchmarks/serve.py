"""What the service bears: steps a second and how long each takes, on a real PostgreSQL, asked by 16 clients.

python benchmarks/serve.py [OUTPUT]     writes benchmarks/recorded/service-load.md, or prints

The server and PostgreSQL (with fsync) run beside the load generator on this machine; nothing else is asked. Requests are sent on a
schedule, and waited for from the moment at which they should have been sent, so that a server that falls behind is seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from measure import record, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
import postgres

CLIENTS = 16
RATE = 200.0
SECONDS = float(os.environ.get("SECONDS_A_LOAD", "12"))
RELEASES = int(os.environ.get("RELEASES", "10000"))
ADVERSARIES = 20
STATES = 5


def command(*arguments):
    return [sys.executable, "-m", "temporaldp", *arguments]


@contextlib.contextmanager
def server(store):
    """A server of its own process; gives its port and the seconds to its first page."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command("serve", "--no-browser", "--port", "0", "--store", store), stdout=subprocess.PIPE, text=True
    )
    try:
        port = int(process.stdout.readline().rstrip().rstrip("/").rsplit(":", 1)[1])
        asyncio.run(first_page(port))
        yield port, time.perf_counter() - began, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


async def first_page(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /docs HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    writer.close()


class Connection:
    """One client's connection, used again and again."""

    def __init__(self, port, token):
        self.port, self.token, self.streams = port, token, None

    async def post(self, path, document, key):
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        body = json.dumps(document).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\nIdempotency-Key: {key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        told = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1]) for line in told.lower().split(b"\r\n") if line.startswith(b"content-length")
        )
        return int(told[9:12]), json.loads(await reader.readexactly(length))


def adversaries(rng):
    for _ in range(ADVERSARIES):
        rows = 0.6 * np.eye(STATES) + 0.4 * rng.dirichlet(np.ones(STATES), size=STATES)
        yield (rows / rows.sum(axis=1, keepdims=True)).tolist()


async def create(port, token, number, bound="exact", seed=1):
    """So many releases, of a few adversaries; gives their identifiers."""
    known = list(adversaries(np.random.default_rng(seed)))
    waiting = list(range(number))
    made = []

    async def client():
        connection = Connection(port, token)
        while waiting:
            k = waiting.pop()
            document = {
                "alpha": 1.0, "backward": known[k % ADVERSARIES], "forward": known[k % ADVERSARIES], "bound": bound,
                "mechanism": {"kind": "histogram", "n_states": STATES},
            }  # fmt: skip
            status, answer = await connection.post("/v1/releases", document, f"{bound}-{seed}-{k}")
            assert status == 201, answer
            made.append((answer["release"], answer["reserve"]))

    await asyncio.gather(*(client() for _ in range(8)))
    return made


async def load(port, token, act, rate, seconds):
    """16 clients that ask on a schedule (or, without a rate, one after the other); gives latencies in seconds and statuses."""
    latencies, statuses = [], {}
    began = time.perf_counter()
    ticket = iter(range(10**9))

    async def client():
        connection = Connection(port, token)
        while True:
            k = next(ticket)
            due = began + k / rate if rate else time.perf_counter()
            if due > began + seconds:
                return
            await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            path, document = act(k)
            status, _ = await connection.post(path, document, f"{began}-{k}")
            latencies.append(time.perf_counter() - due)
            statuses[status] = statuses.get(status, 0) + 1

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return np.array(latencies), statuses, time.perf_counter() - began


def at_reserve(made, rng):
    def act(_):
        release, _reserve = made[rng.randrange(len(made))]
        return f"/v1/releases/{release}/spend", {}

    return act


def any_budget(made, rng):
    def act(_):
        release, reserve = made[rng.randrange(len(made))]
        return f"/v1/releases/{release}/spend", {"epsilon": reserve * rng.uniform(0.5, 1.1)}

    return act


def published(made, rng):
    def act(_):
        release, _reserve = made[rng.randrange(len(made))]
        return f"/v1/releases/{release}/publish", {"counts": [rng.randrange(1000) for _ in range(STATES)]}

    return act


HEAD = """| what | asked a second | done a second | median | 99 of 100 within | longest | server's processor a step | refused |
| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"""


def row(name, how, found, processor):
    latencies, statuses, seconds = found
    p = np.percentile(latencies, [50, 99, 100]) * 1e3
    assert set(statuses) <= {200, 409}, statuses
    line = (
        f"| {name} | {how} | {len(latencies) / seconds:.0f} | {p[0]:.1f} ms | {p[1]:.1f} ms | {p[2]:.0f} ms | "
        f"{processor / len(latencies) * 1e3:.1f} ms | {statuses.get(409, 0)} |"
    )
    print(line, flush=True)
    return line


def cpu_seconds(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process):
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def measured(port, token, process, name, act, rate, seconds):
    before = cpu_seconds(process)
    found = asyncio.run(load(port, token, act, rate, seconds))
    return row(name, f"{rate:g}" if rate else "all they can", found, cpu_seconds(process) - before)


def run(output):
    lines, rng = [], random.Random(1)
    with durable_postgres() as url:
        store = postgres.create_database(url, "service")
        token = subprocess.run(
            command("token", "create", "--store", store, "--role", "own"), capture_output=True, text=True, check=True
        ).stdout.strip()
        firsts = []
        for _ in range(5):
            with server(store) as (_, first, _):
                firsts.append(first)
        with server(store) as (port, _, process):
            began = time.perf_counter()
            made = asyncio.run(create(port, token, RELEASES))
            creating = time.perf_counter() - began
            print(f"first page {np.median(firsts):.2f} s; {len(made)} releases created in {creating:.0f} s", flush=True)
            paper = asyncio.run(create(port, token, CLIENTS, "paper", 2))
            few, own, mixed = (asyncio.run(create(port, token, CLIENTS, "exact", seed)) for seed in (3, 4, 5))
            cases = [
                (f"spend what every step can, on any of {len(made):,} releases", at_reserve(made, rng)),
                (f"the same, on {CLIENTS} releases", at_reserve(few, rng)),
                ("the same, all on one release", at_reserve(own[:1], rng)),
                (f"publish counts, on {CLIENTS} releases", published(few, rng)),
                (f"spend any budget, by the paper's bound, on {CLIENTS} releases", any_budget(paper, rng)),
                (f"spend any budget, by the exact leakage, on {CLIENTS} releases", any_budget(mixed, rng)),
            ]
            for name, act in cases:
                for rate, seconds in ((RATE, SECONDS), (None, SECONDS / 2)):
                    lines.append(measured(port, token, process, name, act, rate, seconds))
            megabytes = memory(process)
        with server(store) as (port, _, process):
            name = f"just started again: spend what every step can, on any of {len(made):,} releases"
            lines.append(measured(port, token, process, name, at_reserve(made, rng), RATE, SECONDS))
    found = [
        [f"creating {len(made):,} releases of {ADVERSARIES} correlations of {STATES} states", f"{creating:.0f} s"],
        ["memory of the server then", f"{megabytes:.0f} MB"],
        ["from the start of the process to the first page, median of five", f"{np.median(firsts):.2f} s"],
        ["longest of five", f"{max(firsts):.2f} s"],
    ]
    text = "\n".join(["## Load\n", HEAD, *lines, "\n## Server\n", table(["what", "measured"], found)])
    if output:
        record(Path(output), text, "make bench NAME=serve")


@contextlib.contextmanager
def durable_postgres():
    """With fsync, as a service has it."""
    with postgres.server(fsync=True) as url:
        yield url


if __name__ == "__main__":
    run(sys.argv[1] if len(sys.argv) > 1 else None)
