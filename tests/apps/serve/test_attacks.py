"""Requests that nobody well-meaning sends: each gets a clear 4xx, nothing changes, and memory stays bounded."""

from __future__ import annotations

import json
import math
import socket
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from served import served, token_for
from serving import DEFINITION
from temporaldp.apps.serve.service import database_at
from temporaldp.apps.serve.tokens import Role, TokenRefusedError, Tokens

PATIENCE = 0.4


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return str(tmp_path_factory.mktemp("attacked") / "service.db")


@pytest.fixture(scope="module")
def own(store):
    return token_for(store)


@pytest.fixture(scope="module")
def ask(store):
    with served(store=store, patience=PATIENCE) as asking:
        yield asking


@pytest.fixture
def release(ask, own):
    """One release, and after the test the certainty that nothing was done to it."""
    made = ask.post("/v1/releases", DEFINITION, token=own).json["release"]
    before = ask.get(f"/v1/releases/{made}", token=own).json
    yield made
    assert ask.get(f"/v1/releases/{made}", token=own).json == before


def require_refused(answer, *statuses):
    assert answer.status in statuses, (answer.status, answer.text[:500])
    assert "Traceback" not in answer.text and ".py" not in answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == answer.status and answer.json["detail"]


DEEP = b'{"epsilon":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

BODIES = {
    "deep": (DEEP, {400, 422}),
    "nan": (b'{"epsilon": NaN}', {400}),
    "infinity": (b'{"epsilon": Infinity}', {400}),
    "overflow": (b'{"epsilon": 1e999}', {422}),
    "negative": (b'{"epsilon": -0.1}', {422}),
    "zero": (b'{"epsilon": 0}', {422}),
    "tiny": (b'{"epsilon": 1e-320}', {422}),
    "huge number": (b'{"epsilon": ' + b"9" * 5000 + b"}", {400, 422}),
    "text for a number": (b'{"epsilon": "0.1"}', {422}),
    "truth for a number": (b'{"epsilon": true}', {422}),
    "twice": (b'{"epsilon": 0.1, "epsilon": 0.2}', {400}),
    "no json": (b"{epsilon: 0.1}", {400}),
    "no utf-8": (b'{"time": "\xff\xfe"}', {400}),
    "half a character": (b'{"time": "\\ud800"}', {422}),
    "nul": (b'{"time": "a\\u0000b"}', {422}),
    "line end": (b'{"time": "a\\nb"}', {422}),
    "long": (b'{"time": "' + b"a" * 65 + b'"}', {422}),
    "blank": (b'{"time": " "}', {422}),
    "unknown field": (b'{"epsilon": 0.1, "admin": true}', {422}),
    "a list": (b"[]", {422}),
    "nothing": (b"", {422}),
    "null": (b"null", {422}),
}


@pytest.mark.parametrize("name", BODIES)
def test_invalid_bodies_are_refused(ask, own, release, name):
    body, statuses = BODIES[name]
    require_refused(ask("POST", f"/v1/releases/{release}/spend", body=body, token=own, key="k"), *statuses)


DEFINITIONS = {
    "other counts than states": {"mechanism": {"kind": "histogram", "n_states": 5}},
    "no distribution": {"forward": [[0.5, 0.4], [0.5, 0.5]]},
    "not square": {"forward": [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]},
    "other sizes": {"forward": [[0.5, 0.5], [0.5, 0.5]]},
    "nothing known": {"forward": None, "backward": None},
    "too many states": {"forward": [[1.0] + [0.0] * 64] * 65, "backward": None},
    "bounds of many states": {"forward": {"lower": [[0.0] * 5] * 5, "upper": [[1.0] * 5] * 5}, "backward": None},
    "alpha": {"alpha": 0.0},
    "horizon": {"horizon": 10**9},
    "mechanism": {"mechanism": {"kind": "os.system", "description": "rm"}},
    "step": {"step": "0 seconds"},
    "step of dots": {"step": ".."},
    "repeated names": {"states": ["a", "a", "b"]},
    "name": {"name": "\u0000"},
}


def test_a_number_that_no_json_has_is_refused_in_every_place(ask, own, store):
    """Of a model, too, whose document is stored as it came."""
    before, model = n_releases(store), {"kind": "adversary", "note": math.nan}
    body = json.dumps(DEFINITION | {"backward": None, "forward": None, "models": {"day": model}}).encode()
    require_refused(ask("POST", "/v1/releases", body=body, token=own), 400)
    assert n_releases(store) == before


@pytest.mark.parametrize("name", DEFINITIONS)
def test_invalid_releases_are_refused(ask, own, store, name):
    before = n_releases(store)
    require_refused(ask.post("/v1/releases", DEFINITION | DEFINITIONS[name], token=own), 422)
    assert n_releases(store) == before


def n_releases(store):
    import sqlite3

    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        found = connection.execute("SELECT count(*) FROM temporaldp_releases").fetchone()[0]
    connection.close()
    return found


@pytest.mark.parametrize(
    "counts", [[1, 2], [1, 2, -3], [1, 2, 2**53 + 1], [1, 2, 3.5], ["1", "2", "3"], [[1], [2], [3]], []]
)
def test_invalid_counts_are_refused(ask, own, release, counts):
    require_refused(ask.post(f"/v1/releases/{release}/publish", {"counts": counts}, token=own, key="k"), 422)


NAMES = [
    "'; DROP TABLE temporaldp_releases; --",
    "\u202enoitpurroc",
    "Łódź 🛏️".replace("\ufe0f", ""),
    "%s %(x)s :of",
    "{0}",
    "a" * 200,
]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_treated_as_text(ask, own, store, name):
    answer = ask.post("/v1/releases", DEFINITION | {"name": name}, token=own)
    if not name.isprintable():
        require_refused(answer, 422)
        return
    assert answer.status == 201
    release = answer.json["release"]
    assert ask.get(f"/v1/releases/{release}", token=own).json["name"] == name
    label = name[:60]
    step = ask.post(f"/v1/releases/{release}/publish", {"counts": [1, 2, 3], "time": label}, token=own, key="k")
    assert (step.status, step.json["time"]) == (200, label)
    assert n_releases(store) > 0


PATHS = [
    "/v1/releases/../../etc/passwd", "/v1/releases/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/v1/releases/..%00", "/../../etc/passwd",
    "/v1/releases/' OR 1=1 --".replace(" ", "%20"), "/docs/../../../etc/passwd", "/static/../application.py", "//etc/passwd",
    "/v1/releases/" + "0" * 32, "/v1/releases/" + "A" * 32, "/v1/releases/" + "9" * 5000, "/v1/releases/%F0%9F%98%80",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_path_traversal_is_refused(ask, own, path):
    require_refused(ask.get(path, token=own), 404, 422)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Content-Type": "text/plain"}, 422),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 422),
    ],
)
def test_cross_site_requests_are_refused(ask, own, release, headers, status):
    body = json.dumps({"epsilon": 0.1}).encode()
    answer = ask("POST", f"/v1/releases/{release}/spend", body=body, token=own, key="k", **headers)
    require_refused(answer, status)
    assert "access-control-allow-origin" not in answer.headers and "set-cookie" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::1", "", "127.0.0.1:x"])
def test_requests_for_other_hosts_are_refused(ask, own, release, host):
    answer = ask("POST", f"/v1/releases/{release}/spend", body=b'{"epsilon": 0.1}', token=own, key="k", Host=host)
    assert (answer.status, answer.text) == (400, "Invalid host header")
    assert answer.headers["content-security-policy"]


def test_cross_origin_preflight_is_refused(ask, release):
    answer = ask("OPTIONS", f"/v1/releases/{release}/spend", Origin="http://evil.example")
    require_refused(answer, 403)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_same_origin_requests_are_accepted(ask, own, release):
    answer = ask.post(f"/v1/releases/{release}/check", {}, token=own, Origin=f"http://127.0.0.1:{ask.port}")
    assert answer.status == 200


TOKENS = ["", "x", "tdp_", "tdp_" + "0" * 16 + "_" + "A" * 43, "' OR 1=1", "é", "tdp_" + "9" * 10_000]


@pytest.mark.parametrize("token", TOKENS)
def test_invalid_tokens_are_refused(ask, release, token):
    require_refused(
        ask.post(f"/v1/releases/{release}/spend", {"epsilon": 0.1}, token=token.encode().decode("latin-1"), key="k"),
        401,
    )


def test_a_reader_takes_no_step(ask, own, store):
    """Steps of nearly no budget would use up a horizon, and a step that was taken is closed to the publisher."""
    made = ask.post("/v1/releases", DEFINITION | {"horizon": 3, "step": "12 months"}, token=own).json["release"]
    reader, publisher = (token_for(store, made, role) for role in (Role.READ, Role.PUBLISH))
    for k in range(3):
        for act, body in (("spend", {}), ("publish", {"counts": [1, 2, 3]})):
            body |= {"epsilon": 1e-9, "time": f"{2020 + k}-01-01"}
            require_refused(ask.post(f"/v1/releases/{made}/{act}", body, token=reader, key=f"{k}"), 403)
    body = {"counts": [1, 2, 3], "epsilon": 0.1, "time": "2020-01-01"}
    assert ask.post(f"/v1/releases/{made}/publish", body, token=publisher, key="0").json["step"] == 0
    assert [role.value for role in Role] == ["read", "publish", "own"]


UNREAD = b"[" * 500_000
"""No JSON, which is found only by reading it."""


@pytest.mark.parametrize(
    "path", ["/v1/releases", "/v1/releases/{}/check", "/v1/releases/{}/spend", "/v1/releases/{}/publish"]
)
def test_the_token_is_checked_before_the_body(ask, own, store, release, path):
    """A client without the permission gets the same answer to any body, which is not read."""
    other = ask.post("/v1/releases", DEFINITION, token=own).json["release"]
    strangers = [(None, 401), ("x", 401), (f"tdp_{'0' * 16}_{'A' * 43}", 401), (token_for(store, other), 403)]
    readers = [(token_for(store, release, Role.READ), 403)] * (not path.endswith("check"))
    for token, status in strangers + readers:
        for body in (UNREAD, b" " * (3 << 19), json.dumps({"counts": ["a"] * 90_000}).encode()):
            require_refused(ask("POST", path.format(release), body=body, token=token, key="k"), status)
    require_refused(ask("POST", path.format(release), body=UNREAD, token=own, key="k"), 400)


def test_a_body_of_many_errors_gets_a_few(ask, own, release):
    counts = {"counts": ["a"] * 90_000}
    answer = ask.post(f"/v1/releases/{release}/publish", counts, token=own, key="k")
    require_refused(answer, 422)
    assert len(answer.json["errors"]) == 1 and "counts/0" in answer.json["errors"][0]["where"]


def test_wrong_foreign_and_revoked_tokens_are_refused(ask, own, store, release):
    path = f"/v1/releases/{release}/spend"
    other = ask.post("/v1/releases", DEFINITION, token=own).json["release"]
    require_refused(ask.post(path, {}, token=token_for(store, other), key="k"), 403)
    token = token_for(store, release, Role.PUBLISH)
    require_refused(ask.post(path, {}, token=token[:-1] + ("A" if token[-1] != "A" else "B"), key="k"), 401)
    database = database_at(store)
    Tokens(database).revoke(token.split("_")[1])
    database.close()
    require_refused(ask.post(path, {}, token=token, key="k"), 401)


def test_database_contains_no_token(store, own):
    """A reader of a backup cannot send requests."""
    content = Path(store).read_bytes() + Path(f"{store}-wal").read_bytes()
    assert own.split("_")[1].encode() in content
    assert own.split("_", 2)[2].encode() not in content


def test_clock_set_back_admits_nothing(store):
    now = 1_800_000_000.0
    database = database_at(store)
    told = [now]
    tokens = Tokens(database, clock=lambda: told[0])
    made = tokens.make(release=None, role=Role.READ, days=1.0)
    assert tokens.check(made).role == Role.READ
    told[0] = now + 2 * 86_400.0
    with pytest.raises(TokenRefusedError, match="expired"):
        tokens.check(made)
    told[0] = now  # no earlier time is believed than one that was seen
    with pytest.raises(TokenRefusedError, match="expired"):
        tokens.check(made)
    with pytest.raises(TokenRefusedError, match="clock"):  # a server that was started on a machine whose clock is wrong
        Tokens(database, clock=lambda: now - 86_400.0).check(made)
    database.close()


def test_database_contains_no_digest_of_counts(ask, own, store):
    release = ask.post("/v1/releases", DEFINITION, token=own).json["release"]
    body = {"counts": [37, 63, 11], "time": "1"}
    assert ask.post(f"/v1/releases/{release}/publish", body, token=own, key="a").status == 200
    database = database_at(store)
    with database.reading() as connection:
        read = connection.exec_driver_sql
        (step,) = read("SELECT * FROM temporaldp_steps WHERE release = ?", (release,)).mappings().all()
        kept = read("SELECT name FROM temporaldp_kept").scalars().all()
    database.close()
    # The noisy counts, what was asked, and the hash of these: nothing else could depend on the counts.
    asked = {
        "release",
        "step",
        "time",
        "parameter",
        "epsilon",
        "leakage",
        "last",
        "output",
        "digest",
        "hash",
        "request_key",
    }
    assert set(step) == asked
    assert step["digest"] is None
    assert all(name.startswith("correlations-") for name in kept)  # the matrices of the definition, for reports


@pytest.mark.parametrize(
    ("step", "first", "far"),
    [
        (None, None, "9999-12-31"),
        (None, None, "1e300"),
        (None, None, "day 1000000"),
        (None, "2026-01-01", "9999-12-31"),
        ("300 seconds", "2020-01-01T00:00Z", "9999-12-31T00:00Z"),
        ("1 months", "2020-01", "9999-12"),
        (None, "1", "3"),
        ("5", "5", "11"),
        (None, "day 1", "day 3"),
        ("86400 seconds", None, "x"),
        ("86400 seconds", None, "0"),
        ("86400 seconds", None, "day 1"),
        ("1 months", None, "1"),
        ("5", None, "2026-01-01"),
    ],
)
def test_publisher_cannot_end_a_release_by_a_time_far_ahead(ask, own, store, step, first, far):
    made = ask.post("/v1/releases", DEFINITION | {"step": step}, token=own).json["release"]
    publisher = token_for(store, made, Role.PUBLISH)
    path = f"/v1/releases/{made}/spend"
    if first is not None:
        assert ask.post(path, {"time": first}, token=publisher, key="first").status == 200
    refused = ask.post(path, {"time": far}, token=publisher, key="far")
    require_refused(refused, 422)
    assert "ahead" in refused.json["detail"]
    require_refused(ask.post(path, {"time": far, "ahead": True}, token=publisher, key="far"), 403)
    require_refused(ask.post(path, {"time": far}, token=own, key="far"), 422)
    assert ask.post(path, {"time": far, "ahead": True}, token=own, key="far").status == 200


@pytest.mark.parametrize("step", [None, "86400 seconds"])
def test_publisher_cannot_advance_beyond_the_clock_in_small_steps(ask, own, store, step):
    made = ask.post("/v1/releases", DEFINITION | {"step": step}, token=own).json["release"]
    publisher, today = token_for(store, made, Role.PUBLISH), datetime.now(UTC).date()
    answers = [
        ask.post(
            f"/v1/releases/{made}/spend",
            {"time": (today + timedelta(days=days)).isoformat(), "epsilon": 1e-9},
            token=publisher,
            key=f"{days}",
        )
        for days in range(5)
    ]
    assert answers[0].status == 200
    require_refused(answers[3], 422)  # tomorrow is today somewhere, and a step ahead of that is allowed
    require_refused(answers[4], 422)


@pytest.mark.parametrize(
    ("step", "times"),
    [
        ("86400 seconds", ["2020-01-01", "2020-02-01", "today"]),
        ("300 seconds", ["2020-01-01T00:00+01:00", "now"]),
        (None, ["today"]),
        ("1", ["0", "1", "2"]),
        ("5", ["5", "10"]),
        (None, ["Reykjavik", "Lima"]),
        (None, ["s1", "S 2", "s3"]),
    ],
)
def test_publisher_may_take_steps_up_to_the_clock(ask, own, store, step, times):
    made = ask.post("/v1/releases", DEFINITION | {"step": step}, token=own).json["release"]
    publisher = token_for(store, made, Role.PUBLISH)
    now = datetime.now(UTC)
    known = {"today": now.date().isoformat(), "now": now.isoformat()}
    for k, label in enumerate(times):
        answer = ask.post(f"/v1/releases/{made}/spend", {"time": known.get(label, label)}, token=publisher, key=f"{k}")
        assert answer.status == 200, answer.text


def test_order_of_steps_does_not_depend_on_the_clock(ask, own, release):
    """The order of steps is that of their labels; the clock decides nothing."""
    other = ask.post("/v1/releases", DEFINITION, token=own).json["release"]
    assert ask.post(f"/v1/releases/{other}/spend", {"time": "2020-01-02"}, token=own, key="a").status == 200
    require_refused(ask.post(f"/v1/releases/{other}/spend", {"time": "2020-01-01"}, token=own, key="b"), 409)


def raw(ask, *parts, pause=0.0, patience=5.0):
    """What a server answers to bytes that come in parts; None if it hangs up without a word."""
    with socket.create_connection(("127.0.0.1", ask.port), timeout=patience) as connection:
        try:
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
        except OSError:
            pass  # it has hung up already; what it said can still be read
        found = b""
        try:
            while more := connection.recv(65536):
                found += more
        except ConnectionResetError:
            pass
        return int(found.split(b" ")[1]) if found else None


def head(release, own, **headers):
    told = {"Host": "127.0.0.1", "Authorization": f"Bearer {own}", "Content-Type": "application/json"} | headers
    lines = [f"POST /v1/releases/{release}/spend HTTP/1.1", *(f"{name}: {value}" for name, value in told.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@pytest.mark.long
def test_slow_clients_time_out(ask, own, release):
    text = head(release, own, **{"Content-Length": 40})
    assert raw(ask, text, *[b" "] * 20, pause=PATIENCE / 10) == 408


def test_unfinished_heads_and_bodies_time_out(ask, own, release):
    began = head(release, own).removesuffix(b"\r\n")
    assert raw(ask, began, *[b"X: " + b"a" * 8000 + b"\r\n"] * 40) in {431, None}
    assert raw(ask, began, b"X: " + b"a" * 1_000_000) in {431, None}
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    assert raw(ask, head(release, own, **{"Transfer-Encoding": "chunked"}), *[chunk] * 40) in {413, None}


def test_invalid_http_is_refused(ask, own, release):
    assert raw(ask, b"\x16\x03\x01 hello\r\n\r\n") == 400
    assert raw(ask, head(release, own, **{"Content-Length": "5, 6"}) + b"{}") == 400
    assert raw(ask, head(release, own, **{"Content-Length": "-1"}) + b"{}") == 400
    both = head(release, own, **{"Content-Length": 2, "Transfer-Encoding": "chunked"})
    assert raw(ask, both + b"0\r\n\r\n{}") == 400  # smuggling
    twice = head(release, own).removesuffix(b"\r\n") + b"Host: evil.example\r\nContent-Length: 2\r\n\r\n{}"
    assert raw(ask, twice) == 400


@pytest.mark.parametrize("size", [33_000, 40_000, 60_000])
def test_large_head_in_one_packet_is_refused(ask, release, own, size):
    ends = {"Content-Length": "2", "Connection": "close"}
    for request in (
        head(release, own, **{"X-Padding": "a" * size} | ends) + b"{}",
        head(release, own, **{f"X-{k}": "a" * 1000 for k in range(size // 1000)} | ends) + b"{}",
        head(release, own, **ends).replace(b"/spend", b"/spend?" + b"a" * size) + b"{}",
    ):
        assert raw(ask, request) in {431, None}
    assert raw(ask, head(release, own, **{"X-Padding": "a" * 30_000} | ends) + b"{}") == 422  # it has no key
