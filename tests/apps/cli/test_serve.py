"""`temporaldp serve` and `temporaldp token`: a process that is started, asked, attacked and stopped, and what is refused."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from command import refused, temporaldp
from served import served
from serving import DEFINITION
from temporaldp.apps.serve import Client
from temporaldp.base.errors import ServiceError

MOST_MEMORY = 16 << 20
"""By which 100 MB that are sent may enlarge the process, for a moment."""


def made_token(store, *options):
    result = temporaldp("token", "create", "--store", store, *options)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.long
def test_a_service_from_the_shell(tmp_path):
    """Tokens, a release, an attack on its memory, and the end in the middle of a step: the process takes long to start."""
    store = tmp_path / "service.db"
    own = made_token(store, "--role", "own", "--note", "operator")
    assert store.stat().st_mode & 0o077 == 0
    command = [
        sys.executable,
        "-m",
        "temporaldp",
        "serve",
        "--no-browser",
        "--port",
        "0",
        "--store",
        str(store),
        "--log",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            with urllib.request.urlopen(f"{address}health") as health:
                assert health.status == 200
            assert "another server uses" in refused("serve", "--no-browser", "--port", "0", "--store", store)
            with Client(address, own) as client:
                release = client.create(DEFINITION)
            require_revocable(address, store, release)
            require_bounded_memory(address, process.pid)
            step = stopped_in_the_middle_of_a_step(address, own, store, release, process)
        except BaseException:
            process.kill()
            raise
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    with served(store=str(store)) as ask:
        assert ask.get(f"/v1/releases/{release}/steps", token=own).json["steps"][-1] == step
    lines = [json.loads(line) for line in errors.splitlines()]
    assert lines[-1]["event"] == "stopped"
    spent = [line for line in lines if line.get("route") == "/v1/releases/{release}/spend"]
    assert [(line["status"], line["release"]) for line in spent] == [(200, release), (401, release)]


def require_revocable(address, store, release):
    """A token that the shell makes, shows without its secret, and takes back while the server runs."""
    token = made_token(store, "--role", "publish", "--release", release, "--days", "7")
    with Client(address, token) as client:
        assert client.spend(release)["step"] == 0
        listed = json.loads(temporaldp("token", "list", "--store", store, "--json").stdout)["tokens"]
        told = [(one["role"], one["release"], one["note"]) for one in listed]
        assert told == [("own", None, "operator"), ("publish", release, "")]
        assert temporaldp("token", "revoke", listed[1]["token"], "--store", store).returncode == 0
        shown = temporaldp("token", "list", "--store", store).stdout
        assert "revoked" in shown and token.split("_", 2)[2] not in shown
        with pytest.raises(Exception, match="revoked"):
            client.spend(release)


def require_bounded_memory(address, pid):
    """100 MB, announced or not, are not kept."""
    status, port = Path(f"/proc/{pid}/status"), int(address.rstrip("/").rsplit(":", 1)[1])
    if not status.exists():
        return
    while json.load(answer_of(f"{address}ready")) != {"status": "ready"}:  # it loads what the first step needs
        time.sleep(0.1)

    def memory():
        return int(status.read_text().split("VmRSS:")[1].split()[0]) << 10

    before, most = memory(), 0
    for length in (f"Content-Length: {100 << 20}", "Transfer-Encoding: chunked"):
        head = f"POST /v1/releases HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
        block = b" " * (1 << 20)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(head.encode())
            try:
                for _ in range(100):
                    connection.sendall(block if "Content" in length else b"100000\r\n" + block + b"\r\n")
                    most = max(most, memory())
            except OSError:
                pass  # it hangs up
    assert most - before < MOST_MEMORY
    assert json.load(answer_of(f"{address}health")) == {"status": "alive"}


def answer_of(address):
    try:
        return urllib.request.urlopen(address)
    except urllib.error.HTTPError as answer:
        return answer


def stopped_in_the_middle_of_a_step(address, own, store, release, process):
    """Told to stop while a step waits for the file's lock; gives the step, which was finished all the same."""
    told = []
    with Client(address, own) as client:
        writing = sqlite3.connect(store, isolation_level=None)
        writing.execute("BEGIN IMMEDIATE")
        stepping = threading.Thread(target=lambda: told.append(client.publish(release, [1, 2, 3])))
        stepping.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert process.poll() is None and not told
        with Client(address, own, patience=0.0) as another, pytest.raises(ServiceError):
            another.state(release)  # nobody listens any more
        writing.execute("ROLLBACK")
        writing.close()
        stepping.join(20)
    return told[0]


@pytest.mark.long
def test_invalid_arguments_of_serve_are_refused(tmp_path):
    (tmp_path / "other.db").write_text("not a database, but long enough to look like one" * 20)
    (tmp_path / "other.db").chmod(0o600)
    assert "other.db" in refused("serve", "--no-browser", "--store", "other.db", cwd=tmp_path, code=4)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = refused("serve", "--no-browser", "--port", taken.getsockname()[1], cwd=tmp_path)
        assert "choose another --port" in told
    assert "postgresql://" in refused("serve", "--no-browser", "--store", "mysql://host/db", cwd=tmp_path)
    assert "days" in refused("token", "create", "--store", "new.db", "--role", "own", "--days", "0", cwd=tmp_path)


@pytest.mark.long
def test_tokens_for_missing_releases_are_refused(tmp_path):
    made_token(tmp_path / "service.db", "--role", "own")
    message = refused("token", "create", "--store", "service.db", "--role", "read", "--release", "0" * 32, cwd=tmp_path)
    assert "no release" in message
    assert "no token" in refused("token", "revoke", "abc", "--store", "service.db", cwd=tmp_path)


@pytest.mark.long
def test_tokens_of_an_existing_database_are_listed(tmp_path):
    typo = tmp_path / "typo.db"
    for words in (("list",), ("revoke", "0" * 16)):
        assert "there is no database of a service" in refused("token", words[0], "--store", typo, *words[1:], code=4)
    assert not typo.exists()
    said = refused("token", "list", "--store", "postgresql://user:secret@127.0.0.1:1/db", code=4)
    assert "cannot use the database" in said
    assert "secret" not in said
    assert "published" not in said


@pytest.mark.long
def test_allowed_hosts_are_names_without_patterns(tmp_path):
    for name in ("*", "*.example.com", "a*b"):
        assert "without *" in refused("serve", "--no-browser", "--allow-host", name, cwd=tmp_path)
