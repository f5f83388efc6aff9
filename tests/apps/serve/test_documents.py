"""What the documents and the examples of the service say is run as it stands."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import postgres
from command import temporaldp
from places import REPOSITORY
from postgres import place_of
from served import served, token_for
from temporaldp.apps.serve.server import create_app

DOCUMENT = (REPOSITORY / "docs" / "how-to" / "service.md").read_text()
EXAMPLES = REPOSITORY / "examples" / "service"
DEFINITION = {
    "alpha": 1.0, "mechanism": {"kind": "histogram", "n_states": 2},
    "backward": [[0.8, 0.2], [0.2, 0.8]], "forward": [[0.8, 0.2], [0.2, 0.8]],
}  # fmt: skip


@pytest.fixture
def service(tmp_path):
    """A server, and what a shell has to know of it."""
    store = str(tmp_path / "service.db")
    token = token_for(store)
    with served(store=store) as ask:
        yield ask, {"SERVICE": f"http://127.0.0.1:{ask.port}", "TOKEN": token}


def shell(words, environment, **options):
    return subprocess.run(
        words, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=60, **options
    )  # fmt: skip


def block(heading, language):
    part = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.search(f"```{language}\n(.*?)```", part, re.DOTALL)[1]


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@needs_curl
def test_curl_command_creates_a_release(service):
    done = shell(["sh", "-euc", block("With curl", "sh")], service[1])
    assert done.returncode == 0, done.stderr
    assert '"reserve":0.2598' in done.stdout


@needs_curl
def test_curl_example_run_twice_spends_once(service):
    _, known = service
    one, two = (shell(["sh", EXAMPLES / "publish.sh"], known) for _ in range(2))
    assert (one.returncode, two.returncode) == (0, 0), one.stderr + two.stderr
    admitted, first, again, spent, state, intact = one.stdout.splitlines()
    assert first == again and first in two.stdout and spent in two.stdout
    assert '"laplace_scale":10.0' in admitted and '"n_steps":2' in state and '"intact":true' in intact


@pytest.fixture
def sql(service, tmp_path, request):
    """A table of visits in a real PostgreSQL; runs SQL, and the example for a day."""
    psql = shutil.which("psql") or (postgres.programs() and shutil.which("psql", path=str(postgres.programs())))
    if not psql:
        pytest.skip("psql is not installed (Debian: postgresql-client)")
    ask, known = service
    database = place_of("postgresql", tmp_path, request)
    named = DEFINITION | {"states": ["work", "home"]}
    release = ask.post("/v1/releases", named, token=known["TOKEN"]).json["release"]
    known |= {"RELEASE": release, "DATABASE": database, "PATH": f"{Path(psql).parent}{os.pathsep}{os.environ['PATH']}"}

    def run(statement):
        done = shell([psql, database, "-At", "--set=ON_ERROR_STOP=1", "--command", statement], {})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def steps():
        return ask.get(f"/v1/releases/{release}/steps", token=known["TOKEN"]).json["steps"]

    run("CREATE TABLE visits (day date, person text, place text)")
    return run, steps, lambda day: shell(["sh", EXAMPLES / "publish_from_sql.sh", day], known)


def visits(day, place, first, last):
    return f"INSERT INTO visits SELECT '{day}', 'p' || n, {place} FROM generate_series({first}, {last}) AS n"


@pytest.mark.long
@needs_curl
def test_sql_example_counts_publishes_and_stores(sql):
    """Over a real PostgreSQL, twice for one day; by the states of the release, also where a place has no visit."""
    run, steps, publish = sql
    run(visits("2024-05-01", "CASE WHEN n % 3 = 0 THEN 'home' ELSE 'work' END", 1, 900))
    run(visits("2024-05-01", "'work'", 1, 1))  # a second visit of one place
    run(visits("2024-05-02", "'home'", 1, 900))
    for day in ("2024-05-01", "2024-05-01", "2024-05-02"):
        done = publish(day)
        assert done.returncode == 0, done.stderr
    first, second = steps()
    told = [line.split("|") for line in run("SELECT day, counts, head FROM published_visits ORDER BY day").splitlines()]
    assert [(day, json.loads(counts), head) for day, counts, head in told] == [
        ("2024-05-01", first["counts"], first["head"]),
        ("2024-05-02", second["counts"], second["head"]),
    ]
    assert abs(first["counts"][0] - 600) < 150 and abs(first["counts"][1] - 300) < 150
    assert abs(second["counts"][0]) < 150 and abs(second["counts"][1] - 900) < 150


@pytest.mark.long
@needs_curl
@pytest.mark.parametrize("place", ["'work'", "'a place that is no state'", "NULL"])
def test_sql_example_publishes_nothing_if_one_person_counts_more_than_once(sql, place):
    run, steps, publish = sql
    run(visits("2024-05-01", "'home'", 1, 90))
    run(visits("2024-05-01", place, 7, 7))
    run(visits("2024-05-02", "'home'", 1, 90))
    done = publish("2024-05-01")
    assert (done.returncode, steps()) == (2, [])
    assert "expected one place for each person on 2024-05-01" in done.stderr
    assert "p7" not in done.stderr
    run("DELETE FROM visits WHERE day = '2024-05-01' AND person = 'p7' AND place IS DISTINCT FROM 'home'")
    assert publish("2024-05-01").returncode == 0
    assert len(steps()) == 1
    run(f"INSERT INTO visits VALUES ('2024-05-02', 'p91', {place}), ('2024-05-02', NULL, 'home')")
    assert publish("2024-05-02").returncode == 2


@pytest.mark.long
def test_python_example_runs(service, capsys):
    names = {"service": service[1]["SERVICE"], "token": service[1]["TOKEN"], "definition": DEFINITION}
    exec(block("In Python", "python"), names)
    assert "Nothing was spent" in capsys.readouterr().out


def test_every_route_is_documented(tmp_path):
    app = create_app(store=str(tmp_path / "service.db"))
    try:
        for path, methods in app.openapi()["paths"].items():
            if not path.startswith("/v1/view"):
                assert all(f"`{method.upper()} {path}`" in DOCUMENT for method in methods), path
    finally:
        app.state.service.database.close()


def test_container_files_refer_to_existing_commands():
    """Without a container engine: the commands, their options and the route of the health check."""
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text())
    servers = [one for one in compose["services"].values() if "build" in one]
    assert len(servers) == 2
    for server in servers:
        assert (EXAMPLES / server["build"]["context"]).resolve() == REPOSITORY
        assert (REPOSITORY / server["build"]["dockerfile"]).is_file()
        assert temporaldp(*server["command"], "--help").returncode == 0
        assert "TEMPORALDP_STORE" in server["environment"]
        assert "/ready" in server["healthcheck"]["test"][-1]
        assert server["volumes"] == ["key:/key"]
    container = (EXAMPLES / "Containerfile").read_text()
    assert "ENV TEMPORALDP_KEY_FILE=/key/" in container
    for name in re.search(r"COPY (pyproject.*) \./", container)[1].split():
        assert (REPOSITORY / name).is_file()
    command = re.search(r"CMD (\[.*\])", container)[1]
    assert yaml.safe_load(command) == servers[0]["command"]


def test_systemd_units_refer_to_existing_commands():
    unit = configparser.ConfigParser(strict=False)  # Environment= is there twice
    unit.optionxform = str
    unit.read_string((EXAMPLES / "temporaldp.service").read_text())
    program, *command = unit["Service"]["ExecStart"].split()
    assert program.endswith("/temporaldp") and command[0] == "serve"
    assert temporaldp(*command, "--help").returncode == 0
    assert "TEMPORALDP_STORE=/var/lib/temporaldp/" in (EXAMPLES / "temporaldp.service").read_text()
    assert unit["Service"]["StateDirectory"] == "temporaldp temporaldp-key"
    assert "TEMPORALDP_KEY_FILE=/var/lib/temporaldp-key/" in (EXAMPLES / "temporaldp.service").read_text()
