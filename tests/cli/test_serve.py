"""`temporaldp serve` and `temporaldp token`: started, asked, refused and stopped as processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request

from command import refused, temporaldp
from serving import DEFINITION
from temporaldp.serve import Client


def made_token(store, *options):
    result = temporaldp("token", "create", "--store", store, *options)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_a_service_from_the_shell(tmp_path):
    """A token, a release, tokens of its own, and one that is taken back while the server runs; the server ends with code 0."""
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
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address) as page:
            assert page.status == 200
        with Client(address, own) as client:
            release = client.create(DEFINITION)
        spender = made_token(store, "--role", "spend", "--release", release, "--days", "7")
        with Client(address, spender) as client:
            assert client.spend(release)["step"] == 0
        listed = json.loads(temporaldp("token", "list", "--store", store, "--json").stdout)["tokens"]
        assert [(one["role"], one["release"], one["note"]) for one in listed] == [
            ("own", None, "operator"),
            ("spend", release, ""),
        ]
        assert temporaldp("token", "revoke", listed[1]["name"], "--store", store).returncode == 0
        told = temporaldp("token", "list", "--store", store).stdout
        assert "revoked" in told and spender not in told and spender.split("_", 2)[2] not in told
        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    lines = [json.loads(line) for line in errors.splitlines()]
    assert lines[-1]["event"] == "stopped"
    assert {line.get("route") for line in lines[:-1]} == {"/", "/v1/releases", "/v1/releases/{release}/spend"}


def test_what_cannot_be_served_is_refused(tmp_path):
    (tmp_path / "other.db").write_text("not a database, but long enough to look like one" * 20)
    (tmp_path / "other.db").chmod(0o600)
    assert "other.db" in refused("serve", "--no-browser", "--store", "other.db", cwd=tmp_path, code=4)
    assert "postgresql://" in refused("serve", "--no-browser", "--store", "mysql://host/db", cwd=tmp_path)
    assert "days" in refused("token", "create", "--store", "new.db", "--role", "own", "--days", "0", cwd=tmp_path)


def test_tokens_for_what_is_not_there_are_refused(tmp_path):
    made_token(tmp_path / "service.db", "--role", "own")
    message = refused("token", "create", "--store", "service.db", "--role", "read", "--release", "0" * 32, cwd=tmp_path)
    assert "no release" in message
    assert "no token" in refused("token", "revoke", "abc", "--store", "service.db", cwd=tmp_path)
