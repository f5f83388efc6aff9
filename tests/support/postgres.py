"""A PostgreSQL server of the tests' own, from Debian's packages, on a socket in a folder of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

UNPRIVILEGED = ("postgres", "nobody")


def programs() -> Path | None:
    """The folder with initdb and pg_ctl; None if PostgreSQL's server is not installed."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


def server_user() -> str | None:
    """Whom the server runs as: root may not."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in UNPRIVILEGED if name in known)


@contextmanager
def server(*, fsync: bool = False) -> Iterator[str]:
    """A running server; gives the URL of a database without its name: append one."""
    tools, user = programs(), server_user()
    assert tools is not None
    folder = Path(tempfile.mkdtemp(prefix="temporaldp-postgres-"))
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"

    def run(*command: object) -> None:
        subprocess.run([str(word) for word in command], check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    run(
        tools / "initdb",
        "--pgdata",
        data,
        "--username",
        "postgres",
        "--auth",
        "trust",
        "--encoding",
        "UTF8",
        "--no-sync",
    )
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync={'on' if fsync else 'off'}"
    run(tools / "pg_ctl", "--pgdata", data, "--options", options, "--log", folder / "log", "--wait", "start")
    try:
        yield f"postgresql://postgres@/{{name}}?host={folder}"
    finally:
        run(tools / "pg_ctl", "--pgdata", data, "--mode", "immediate", "--wait", "stop")
        shutil.rmtree(folder)


def create_database(url: str, name: str) -> str:
    """An empty database; its URL."""
    import psycopg

    with psycopg.connect(url.format(name="postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return url.format(name=name)


def crash(url: str, moment: int) -> None:
    """Kill the server of a URL, its postmaster alone or everything at once, and start it again as after a power cut."""
    import signal
    import time

    folder = Path(url.split("host=")[1])
    tools, user = programs(), server_user()
    assert tools is not None
    if moment % 2:
        os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    else:
        subprocess.run(
            [tools / "pg_ctl", "--pgdata", folder / "data", "--mode", "immediate", "stop"],
            check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
    start = [
        tools / "pg_ctl",
        "--pgdata",
        folder / "data",
        "--options",
        options,
        "--log",
        folder / "log",
        "--wait",
        "start",
    ]
    for _ in range(100):  # what the killed one left may still be there for a moment
        if subprocess.run(start, check=False, user=user, cwd=folder, stdout=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError((folder / "log").read_text()[-2000:])


def place_of(kind, folder, request) -> str:
    """Where a ledger or a service can keep its releases: a file, or a database on a real server."""
    if kind == "sqlite":
        return str(folder / "release.db")
    return create_database(request.getfixturevalue("postgres_server"), f"release_{uuid.uuid4().hex}")
