"""The page's files, what it asks of the server, and uploads; what a browser makes of them is tested in tests/apps/browser."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.client
import io
import json
import math
import os
import re
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

import temporaldp as tdp
from command import SAMPLE
from served import served, token_for
from temporaldp.apps.serve.bodies import LARGEST_UPLOAD
from temporaldp.apps.serve.page import assets
from temporaldp.apps.serve.page.questions import correlation_of
from temporaldp.apps.serve.page.work import FaultError
from temporaldp.apps.serve.page.worker import TooLongError, Worker
from temporaldp.apps.serve.tokens import Role
from temporaldp.publish.report import sentences

STICKY = [[0.8, 0.2], [0.2, 0.8]]
KNOWN = {"names": ["a", "b"], "backward": STICKY, "forward": STICKY, "horizon": 4}


@pytest.fixture(scope="module")
def ask():
    with served() as asking:
        yield asking


def adversary():
    known = tdp.TransitionMatrix(STICKY, ["a", "b"])
    return tdp.Adversary(known, known)


def test_the_page_has_no_script_or_style_of_its_own_and_every_file_is_there(ask):
    page = ask.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    assert "<style" not in page.text
    assert " style=" not in page.text
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page.text, flags=re.DOTALL)
    assert [content for attributes, content in scripts if "application/json" not in attributes] == [""]
    for name in re.findall(r'"/page/([^"]*)"', page.text):
        assert ask.get(f"/page/{name}").status == 200
    for name in assets.MODULES:
        found = ask.get(f"/page/{name}")
        assert found.headers["content-type"].startswith("text/javascript")
        earlier = assets.MODULES[: assets.MODULES.index(name)]
        assert set(re.findall(r'from "\./([^"]*)"', found.text)) <= set(earlier)


@pytest.mark.parametrize("name", ["page.html", "..%2Frouter.py", "nothing.js", "vendor", "%2Fetc%2Fpasswd"])
def test_no_other_file_is_served(ask, name):
    assert ask.get(f"/page/{name}").status == 404


def test_single_file_page_runs_only_its_own_scripts(ask):
    page = ask.get("/v1/view/alone").text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    inline = [*re.findall(r"<style>(.*?)</style>", page, flags=re.DOTALL)]
    inline += [
        text for kind, text in re.findall(r"<script([^>]*)>(.*?)</script>", page, flags=re.DOTALL) if "json" not in kind
    ]
    assert len(inline) == 2
    for content in inline:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert not re.search(r'(src|href)="(?!data:|#)', page)


@pytest.mark.long
def test_page_starts_with_the_sample(ask):
    setup = json.loads(re.search(r'id="setup">(.*?)</script>', ask.get("/").text, flags=re.DOTALL).group(1))
    sample = next(iter(tdp.estimate_adversaries(tdp.load_sample())))
    assert np.array_equal(setup["sample"]["backward"], sample.backward.dense())
    assert np.array_equal(setup["sample"]["forward"], sample.forward.dense())
    assert setup["sample"]["names"] == list(sample.states)


@pytest.mark.long
def test_single_response_has_all_results_of_a_leakage(ask):
    found = ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.3}).json
    series = tdp.temporal_leakage(adversary(), [0.3] * 4)
    paper = tdp.temporal_leakage(adversary(), [0.3] * 4, accounting=tdp.PaperBound())
    for name in ("backward", "forward", "temporal"):
        assert found["curves"][name] == getattr(series, name).tolist()
        assert found["paper"][name] == getattr(paper, name).tolist()
    assert (found["curves"]["worst"], found["curves"]["worst_time"]) == (series.worst, series.worst_time)
    assert found["matrices"] == {"backward": STICKY, "forward": STICKY}
    assert found["supremum"] == {"temporal": tdp.leakage_supremum(adversary(), 0.3).temporal, "certified": True}
    seen = series.evidence.witness(series.worst_time)
    assert (found["step"], found["high"]) == (series.worst_time, seen.high.tolist())
    assert ["ab"[k] for k in found["pairs"][found["step"]]] == [seen.state, seen.other_state]
    assert found["meaning"] == f"{sentences.odds(series.worst, 0.0)}. {sentences.posteriors(series.worst, 0.0)}"
    other = ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.3, "step": 0}).json
    assert (other["step"], other["high"]) == (0, series.evidence.witness(0).high.tolist())
    endless = ask.post("/v1/view/leakage", KNOWN | {"forward": [[1.0, 0.0], [0.0, 1.0]], "epsilon": 0.3}).json
    assert endless["supremum"] == {"temporal": None, "certified": True}


def test_known_directions_are_part_of_the_request(ask):
    asked = {
        "names": ["a", "b"],
        "horizon": 4,
        "epsilon": 0.3,
        "forward": [[0.9, 0.1], [0.4, 0.6]],
        "backward": "bayes",
    }
    chain = tdp.TransitionMatrix(asked["forward"])
    reverse = chain.reversed(chain.stationary_distribution()).dense().tolist()
    known = {
        "both": (reverse, chain.dense().tolist()),
        "past": (reverse, None),
        "future": (None, chain.dense().tolist()),
    }
    for knows, (backward, forward) in known.items():
        found = ask.post("/v1/view/leakage", asked | {"knows": knows}).json
        assert found["matrices"] == {"backward": backward, "forward": forward}
    absorbing = asked | {"forward": [[1.0, 0.0], [0.5, 0.5]]}
    assert "cannot be reached" in ask.post("/v1/view/leakage", absorbing).json["detail"]
    assert ask.post("/v1/view/leakage", absorbing | {"knows": "future"}).status == 200
    sticky = {"names": ["a", "b"], "horizon": 4, "epsilon": 0.3, "stays": 0.8}
    series = tdp.temporal_leakage(adversary(), [0.3] * 4)
    assert ask.post("/v1/view/leakage", sticky).json["curves"]["worst"] == pytest.approx(series.worst, rel=1e-12)
    nothing = ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.3, "backward": None, "knows": "past"})
    assert (nothing.status, "expected a correlation" in nothing.json["detail"]) == (422, True)


@pytest.mark.parametrize("alpha", [0.05, 1.0, 4.0])
def test_a_constant_budget_satisfies_alpha_and_is_the_largest(ask, alpha):
    found = ask.post("/v1/view/constant", KNOWN | {"horizon": 20, "alpha": alpha}).json
    epsilon = found["epsilon"]
    assert tdp.temporal_leakage(adversary(), [epsilon] * 20).worst <= alpha
    assert tdp.temporal_leakage(adversary(), [epsilon * (1.0 + 1e-6)] * 20).worst > alpha
    assert found["scale"] == 2.0 / epsilon


@pytest.mark.long
def test_other_responses_agree_with_the_library(ask):
    plan = ask.post("/v1/view/plan", KNOWN | {"alpha": 1.0}).json
    there = tdp.plan_budget(adversary(), alpha=1.0, horizon=4)
    assert plan["epsilons"] == there.epsilons.tolist()
    delta = ask.post("/v1/view/delta", KNOWN | {"noise": "laplace", "scale": 8.0, "delta": 1e-3}).json
    noisy = [tdp.DiscreteLaplaceNoise(8.0)] * 4
    series = tdp.temporal_leakage(adversary(), noisy, accounting=tdp.ApproximateDP(1e-3, pairwise=False))
    assert delta["curves"]["temporal"] == series.temporal.tolist()
    assert sentences.posteriors(series.worst, 1e-3) in delta["meaning"]
    sweep = ask.post("/v1/view/sweep", KNOWN | {"epsilon": 0.3}).json
    at = sweep["stays"].index(0.8)
    assert sweep["exact"][at] == pytest.approx(tdp.temporal_leakage(adversary(), [0.3] * 4).worst, rel=1e-12)
    assert all(exact <= paper * (1.0 + 1e-12) for exact, paper in zip(sweep["exact"], sweep["paper"], strict=True))


def test_columns_of_an_upload_can_be_chosen(ask):
    content = b"person,time,zone\n" + b"".join(b"u,%d,%s\n" % (t, b"ab"[t % 2 : t % 2 + 1]) for t in range(5))
    found = ask.post("/v1/view/correlation?kind=traces", body=content).json
    assert found["columns"] == ["person", "time", "zone"]
    assert "=..." not in found["problem"]
    chosen = "/v1/view/correlation?kind=traces&user=person&state=zone"
    assert ask.post(chosen, body=content).json["names"] == ["a", "b"]
    assert ask.post(chosen, body=b"x,y\n1,2\n").status == 422


@pytest.mark.parametrize(
    ("path", "change", "status"),
    [
        ("leakage", {"epsilon": -1.0}, 422),
        ("leakage", {"epsilon": math.nan}, 400),
        ("leakage", {"epsilon": 0.1, "forward": [[0.5, 0.6], [0.5, 0.5]]}, 422),
        ("leakage", {"epsilon": 0.1, "forward": [[1.0]]}, 422),
        ("leakage", {"epsilon": 0.1, "names": ["a", "a"]}, 422),
        ("leakage", {"epsilon": 0.1, "more": 1}, 422),
        ("plan", {"alpha": 1.0, "horizon": 100_000}, 422),
        ("plan", {"alpha": 1.0, "names": [f"v{k}" for k in range(31)]}, 422),
        ("delta", {"noise": "cauchy", "scale": 1.0, "delta": 0.1}, 422),
        ("noise", {"noise": "gaussian", "alpha": 1.0, "delta": 2.0}, 422),
        ("nothing", {}, 404),
    ],
)
def test_invalid_requests_are_explained(ask, path, change, status):
    found = ask.post(f"/v1/view/{path}", KNOWN | change)
    assert found.status == status
    assert found.json["detail"]
    assert "Traceback" not in found.text


@pytest.mark.long
def test_matrices_of_an_upload_agree_with_the_command_line(ask):
    content = Path(SAMPLE).read_bytes()
    found = ask.post("/v1/view/correlation?kind=traces", body=content).json
    sample = next(iter(tdp.estimate_adversaries(tdp.read_traces(SAMPLE))))
    assert found["names"] == list(sample.states)
    assert np.array_equal(found["backward"], sample.backward.dense())
    assert np.array_equal(found["forward"], sample.forward.dense())
    assert (found["horizon"], found["note"]) == (47, "151 people, 47 steps")


def test_parquet_upload_is_read(ask):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"user": ["u"] * 3 + ["w"] * 3, "time": [1, 2, 3] * 2, "state": list("abaaba")})
    parquet.write_table(table, content := io.BytesIO())
    assert ask.post("/v1/view/correlation?kind=traces", body=content.getvalue()).json["names"] == ["a", "b"]


@pytest.mark.parametrize("damage", ["a name", "a header", "a page", "the end", "the schema"])
def test_a_damaged_upload_is_refused_and_the_next_one_is_read(ask, damage):
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"user": ["u1"] * 3 + ["w2"] * 3, "time": [1, 2, 3] * 2, "state": list("abaaba")})
    parquet.write_table(table, content := io.BytesIO(), compression="none")
    whole = content.getvalue()
    damaged = {
        "a name": whole.replace(b"u1", b"u\xff"),
        "a header": b"user,time,sta\xffe\nu,1,a\nu,2,b\n",
        "a page": whole.replace(b"u1", b"").ljust(len(whole), b"\0"),
        "the end": whole[:-9] + whole[-8:],
        "the schema": whole.replace(b"user", b"us\xffr"),
    }[damage]
    found = ask.post("/v1/view/correlation?kind=traces", body=damaged)
    assert (found.status, "expected traces" in found.text) == (422, True)
    good = ask.post("/v1/view/correlation?kind=traces", body=b"user,time,state\nu,1,a\nu,2,b\nu,3,a\n")
    assert good.json["names"] == ["a", "b"]


def test_failed_process_is_replaced():
    async def asked():
        worker = Worker()
        try:
            first = await worker.answer(os.getpid, is_gone=waiting)
            with pytest.raises(FaultError):
                await worker.answer(float, "a fault of a library", is_gone=waiting)
            assert await worker.answer(os.getpid, is_gone=waiting) != first
        finally:
            await worker.stop()

    asyncio.run(asked())


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b",a,b\na,0.8,0.2\nb,0.2,0.8\n", ["a", "b"]),
        (b"0.8,0.2\n0.2,0.8\n", ["0", "1"]),
        (b'{"states": ["x", "y"], "probabilities": [[0.8, 0.2], [0.2, 0.8]]}', ["x", "y"]),
    ],
)
def test_matrices_are_read_from_memory(ask, content, names):
    found = ask.post("/v1/view/correlation?kind=matrix", body=content).json
    assert (found["names"], found["forward"]) == (names, STICKY)


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("matrix", b",a,b\na,0.8,0.3\nb,0.2,0.8\n", "'a'"),
        ("matrix", b"\xff\xfe\x00", "expected a transition matrix"),
        ("matrix", b"1\n", "2"),
        ("matrix", b"", "expected"),
        ("matrix", b'{"states": 1}', "expected"),
        ("traces", b"", "expected traces as CSV"),
        ("traces", b"user,time,state\nu,1,a\n", "expected"),
        ("traces", b"PAR1 but no table", "expected traces"),
        (
            "traces",
            b"user,time,state\n" + b"".join(b"u,%d,s%d\n" % (t, t % 40) for t in range(200)),
            "at most 30 states",
        ),
    ],
)
def test_uploads_that_cannot_be_used_are_explained(ask, kind, content, said):
    found = ask.post(f"/v1/view/correlation?kind={kind}", body=content)
    assert found.status == 422
    assert said in found.json["detail"]


def test_requests_of_the_page_are_not_in_the_openapi_description(ask):
    assert not [path for path in ask.get("/openapi.json").json["paths"] if "view" in path or "page" in path]


@pytest.mark.long
def test_disconnected_client_blocks_no_other(ask):
    rows = (0.05 / 9.0 * (np.ones((10, 10)) - np.eye(10)) + 0.95 * np.eye(10)).tolist()
    names = [f"v{k}" for k in range(10)]
    body = json.dumps({"names": names, "backward": rows, "forward": rows, "horizon": 200, "alpha": 1.0}).encode()
    leaving = http.client.HTTPConnection("127.0.0.1", ask.port, timeout=30)
    leaving.request("POST", "/v1/view/plan", body, {"Content-Type": "application/json"})  # takes minutes
    time.sleep(0.3)
    leaving.close()
    begun = time.monotonic()
    assert ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.2}).status == 200
    assert time.monotonic() - begun < 29  # the limit of a computation is a minute


async def waiting():
    return False


@pytest.mark.long
def test_a_computation_that_takes_too_long_is_ended_and_the_next_one_answered():
    async def asked():
        worker = Worker(seconds=8.0)
        try:
            first = await worker.answer(os.getpid, is_gone=waiting)
            assert first != os.getpid()
            assert await worker.answer(os.getpid, is_gone=waiting) == first
            hurried = Worker(seconds=0.2)
            begun = time.monotonic()
            with pytest.raises(TooLongError, match=r"more than 0\.2 seconds"):
                await hurried.answer(time.sleep, 60, is_gone=waiting)
            assert time.monotonic() - begun < 30
            await hurried.stop()
            with pytest.raises(tdp.InputError, match="expected"):
                await worker.answer(correlation_of, b"a,b\n", "matrix", {}, is_gone=waiting)
            with pytest.raises(FaultError) as fault:
                await worker.answer(float, "what somebody uploaded", is_gone=waiting)
            assert str(fault.value) == "ValueError"
        finally:
            await worker.stop()

    asyncio.run(asked())


@pytest.mark.long
def test_long_request_yields_to_others(monkeypatch):
    monkeypatch.setattr(Worker, "seconds_before_others", 0.5)

    async def asked():
        worker = Worker()
        try:
            await worker.answer(abs, -3, is_gone=waiting)
            begun = time.monotonic()
            questions = [worker.answer(time.sleep, 30, is_gone=waiting), worker.answer(abs, -3, is_gone=waiting)]
            long, short = await asyncio.gather(*questions, return_exceptions=True)
            assert time.monotonic() - begun < 20
            assert "0.5 seconds, and other questions wait" in str(long)
            assert (type(long), short) == (TooLongError, 3)
            assert await worker.answer(time.sleep, 1.0, is_gone=waiting) is None  # nobody waits: it may take longer
        finally:
            await worker.stop()

    asyncio.run(asked())


@pytest.mark.long
def test_abandoned_computation_is_ended():
    async def asked():
        worker = Worker()
        looks = iter([False, False, True])

        async def leaving():
            return next(looks)

        assert await worker.answer(time.sleep, 60, is_gone=leaving) is None
        assert await worker.answer(abs, -3, is_gone=waiting) == 3
        await worker.stop()

    asyncio.run(asked())


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_matrix_saved_by_the_page_has_no_formula_and_round_trips(tmp_path):
    names = ['=HYPERLINK("http://x")', "-2+3", "'=x", "-5"]
    static = assets.files("temporaldp.apps.serve.page") / "static"
    for name in assets.MODULES:
        (tmp_path / name).write_text((static / name).read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')
    code = f"import {{ matrixFile }} from './commands.js'; console.log(matrixFile({[[0.25] * 4] * 4}, {json.dumps(names)}))"
    (tmp_path / "ask.js").write_text(code)
    saved = subprocess.run(["node", "ask.js"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (tmp_path / "m.csv").write_text(saved)
    tdp.save_matrix(tdp.TransitionMatrix(np.full((4, 4), 0.25), names), tmp_path / "there.csv")
    assert saved.count("'-2+3") == 2
    assert saved.split() == (tmp_path / "there.csv").read_text().split()
    assert tdp.load_matrix(tmp_path / "m.csv").states == tuple(names)


# Beside a service, and against those who send too much


PAGES = ["/", "/page/main.js", "/v1/view/alone"]


def basic(token):
    return "Basic " + base64.b64encode(f"anybody:{token}".encode()).decode()


def test_service_has_no_page_by_default(tmp_path):
    with served(store=str(tmp_path / "service.db")) as ask:
        assert {ask.get(path).status for path in PAGES} == {404}
        assert ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.2}).status == 404
        upload = ask.post("/v1/view/correlation?kind=traces", body=b"a", Content_Length=f"{2 << 20}")
        assert upload.status == 404


@pytest.mark.long
def test_page_of_a_service_requires_a_token(tmp_path):
    store = str(tmp_path / "service.db")
    token = token_for(store, role=Role.READ)
    with served(store=store, page=True) as ask:
        for shown in (
            {},
            {"Authorization": basic("tdp_" + "0" * 16 + "_" + "a" * 43)},
            {"Authorization": f"Bearer {token}"},
        ):
            answers = [ask.get(path, **shown) for path in PAGES]
            answers.append(ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.2}, **shown))
            answers.append(ask("POST", "/v1/view/leakage", body=b"[" * 500_000, **shown))  # no JSON, if it were read
            assert {answer.status for answer in answers} == {401}
            assert all(answer.headers["www-authenticate"].startswith("Basic") for answer in answers)
        shown = {"Authorization": basic(token)}
        assert {ask.get(path, **shown).status for path in PAGES} == {200}
        assert ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.2}, **shown).status == 200
        assert ask.post("/v1/releases", {}, **shown).status == 401  # a password of a browser allows nothing else


def test_requests_beyond_the_queue_are_refused_at_once(ask, monkeypatch):
    async def asked():
        worker = Worker()
        try:
            questions = [worker.answer(time.sleep, 0.05, is_gone=waiting) for _ in range(24)]
            return await asyncio.gather(*questions, return_exceptions=True)
        finally:
            await worker.stop()

    found = asyncio.run(asked())
    assert found[:8] == [None] * 8
    assert {type(one).__name__ for one in found[8:]} == {"BusyError"}
    monkeypatch.setattr(Worker, "most_waiting", 0)
    refused = ask.post("/v1/view/leakage", KNOWN | {"epsilon": 0.2})
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")


@pytest.mark.long
def test_waiting_uploads_use_bounded_memory(ask):
    head = (
        f"POST /v1/view/correlation?kind=traces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {LARGEST_UPLOAD}\r\n\r\n"
    ).encode()
    with ExitStack() as open_ones:
        waiting = []
        for _ in range(4):
            connection = open_ones.enter_context(socket.create_connection(("127.0.0.1", ask.port), timeout=20))
            waiting.append(connection)
            with suppress(ConnectionError):
                connection.sendall(head + b"a" * (LARGEST_UPLOAD - 1))  # its last byte never comes
        refused = []
        for connection in waiting:
            connection.settimeout(2)
            with suppress(TimeoutError, ConnectionError):
                refused.append(connection.recv(4096).split(b" ")[1])
        assert b"429" in refused
    deadline = time.monotonic() + 20
    while ask.post("/v1/view/correlation?kind=matrix", body=b"0.8,0.2\n0.2,0.8\n").status != 200:
        assert time.monotonic() < deadline, "bytes of connections that have gone are still counted"
        time.sleep(0.2)


def bomb(n_rows, n_columns=3):
    """A small Parquet file of one entry, repeated."""
    import pyarrow as pa
    from pyarrow import parquet

    names = ["user", "time", "state", *(f"c{k}" for k in range(n_columns - 3))]
    one = pa.repeat("x" * 20, n_rows).dictionary_encode()
    parquet.write_table(pa.table(dict.fromkeys(names, one)), content := io.BytesIO(), compression="zstd")
    return content.getvalue()


@pytest.mark.parametrize(
    "kind", ["rows", "columns", "csv columns", "blank line", "quoted break", "csv entries", "parquet columns"]
)
@pytest.mark.long
def test_uploads_that_would_expand_are_refused_before_reading(ask, kind):
    header = ",".join(f"c{k}" for k in range(20_000)).encode()
    content = {
        "rows": lambda: bomb(50_000_000),
        "columns": lambda: bomb(20_000, 1_500),
        "csv columns": lambda: b"\n".join([header] * 20),
        "blank line": lambda: b"\n" + b"\n".join([header] * 20),
        "quoted break": lambda: b'"a\n",' + b"\n".join([header] * 20),
        "csv entries": lambda: b",".join([b"a"] * 1_000) + b"\n" + b",\n" * 30_000,
        "parquet columns": lambda: bomb(2, 5_000),
    }[kind]()
    assert len(content) < 4 << 20
    begun = time.monotonic()
    found = ask.post("/v1/view/correlation?kind=traces", body=content)
    assert (found.status, time.monotonic() - begun < 20) == (422, True)
    assert "expected at most 2000 columns" in found.json["detail"]


def test_memory_of_a_computation_is_limited():
    async def asked():
        worker = Worker()
        try:
            for _ in range(2):
                with pytest.raises(tdp.InputError, match="more memory than the page may use"):
                    await worker.answer(bytes, 16 << 30, is_gone=waiting)
            with pytest.raises(TooLongError, match="more memory than the page may use"):
                await worker.answer(os.abort, is_gone=waiting)  # as libraries do that get no memory
            assert await worker.answer(abs, -3, is_gone=waiting) == 3
        finally:
            await worker.stop()

    asyncio.run(asked())


def test_duplicate_column_is_refused(ask):
    found = ask.post("/v1/view/correlation?kind=traces", body=b"user,time,state,state\nu,1,a,a\nu,2,b,b\n")
    assert (found.status, "different names" in found.text) == (422, True)
