"""The proxy of examples/service/nginx.conf in front of a real server: what it passes on, and what it keeps away."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import time
from http.client import HTTPSConnection

import pytest

from places import REPOSITORY
from served import served, token_for
from serving import DEFINITION

EXAMPLE = REPOSITORY / "examples" / "service" / "nginx.conf"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        shutil.which("nginx") is None or shutil.which("openssl") is None, reason="needs nginx and openssl"
    ),
]


@pytest.fixture
def proxied(tmp_path):
    """A port of nginx before a server, with time-outs of a second, and a token."""
    store = str(tmp_path / "service.db")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    certificate = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=service.example"]
    certificate += ["-keyout", "service.key", "-out", "service.crt"]
    subprocess.run(certificate, cwd=tmp_path, check=True, capture_output=True)
    with served(store=store, hosts=("service.example",)) as ask:
        text = EXAMPLE.read_text().replace("8443", str(port)).replace("8477", str(ask.port))
        (tmp_path / "nginx.conf").write_text(text.replace("timeout 10s", "timeout 1s"))
        command = ["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as nginx:
            try:
                require_listening(port)
                yield port, token_for(store)
            finally:
                nginx.terminate()


def require_listening(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("nginx does not listen")


def asked(port, method, path, body=None, headers=None, host="service.example"):
    connection = HTTPSConnection("127.0.0.1", port, timeout=20, context=trusting())
    connection.request(method, path, body=body, headers={"Host": host, **(headers or {})})
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def trusting():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_proxy_forwards_requests_and_blocks_large_and_slow_ones(proxied):
    port, token = proxied
    sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    assert asked(port, "GET", "/health") == 200
    assert asked(port, "POST", "/v1/releases", json.dumps(DEFINITION), sent) == 201
    own_page = {**sent, "Origin": f"https://service.example:{port}"}
    assert asked(port, "POST", "/v1/releases", b"{}", own_page, host=f"service.example:{port}") == 422
    assert asked(port, "POST", "/v1/releases", b"{}", {**sent, "Origin": "https://evil.example"}) == 403
    assert asked(port, "POST", "/v1/releases", b" " * (1 << 20) + b"{}", sent) == 413
    assert asked(port, "GET", "/health", headers={"X-Padding": "a" * 40_000}) in {400, 431, 494}
    assert asked(port, "GET", "/metrics") == 404
    assert asked(port, "GET", "/health", host="evil.example") == 400  # the server's own check
    with trusting().wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=20)) as slow:
        slow.sendall(b"GET /health HT")
        began = time.monotonic()
        assert slow.recv(1000).split(b" ")[1:2] in ([], [b"408"])  # nginx hangs up, or says why
        assert time.monotonic() - began < 15.0
