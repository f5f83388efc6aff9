"""A server of the tests' own in a thread of this process, tokens for it, and the plainest client there is."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

from temporaldp.apps.serve.server import UVICORN_OPTIONS, create_app
from temporaldp.apps.serve.service import database_at
from temporaldp.apps.serve.tokens import Role, Tokens


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Asking:
    """Asks one server; every request on a connection of its own."""

    def __init__(self, port):
        self.port = port

    def __call__(self, method, path, document=None, *, body=None, token=None, key=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if document is not None:
            body = json.dumps(document).encode()
        if body is not None:
            named.setdefault("Content-Type", "application/json")
        if token is not None:
            named["Authorization"] = f"Bearer {token}"
        if key is not None:
            named["Idempotency-Key"] = key
        try:
            connection.request(method, path, body, named)
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        finally:
            connection.close()

    def get(self, path, **options):
        return self("GET", path, **options)

    def post(self, path, document=None, **options):
        return self("POST", path, document, **options)


@contextmanager
def served(store: str | None = None, **options: Any) -> Iterator[Asking]:
    """A server that answers, on a port that was free."""
    app = create_app(store, **options)
    server, listener = uvicorn.Server(uvicorn.Config(app, **UVICORN_OPTIONS)), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    deadline = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive() and time.monotonic() < deadline, "the server did not start"
        time.sleep(0.01)
    try:
        yield Asking(listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(30)


def token_for(store, release=None, role=Role.OWN, days=1.0):
    """A token, made as the command line makes them."""
    database = database_at(store)
    try:
        return Tokens(database).make(release=release, role=role, days=days)
    finally:
        database.close()
