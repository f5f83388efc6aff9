"""What the documents and the examples of the service say is run as it stands."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import postgres
from command import temporaldp
from conftest import REPOSITORY
from serve_places import place_of, token_for
from served import served
from temporaldp.serve.application import create_app

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


@pytest.mark.long
@needs_curl
def test_sql_example_counts_publishes_and_stores(service, tmp_path, request):
    """Over a real PostgreSQL, twice for one day."""
    psql = shutil.which("psql") or (postgres.programs() and shutil.which("psql", path=str(postgres.programs())))
    if not psql:
        pytest.skip("psql is not installed (Debian: postgresql-client)")
    ask, known = service
    database = place_of("postgresql", tmp_path, request)
    release = ask.post("/v1/releases", DEFINITION, token=known["TOKEN"]).json["release"]
    visits = (
        "CREATE TABLE visits (day date, person text, place text); INSERT INTO visits SELECT '2024-05-01', 'p' || n, "
    )
    visits += "CASE WHEN n % 3 = 0 THEN 'home' ELSE 'work' END FROM generate_series(1, 90) AS n"
    assert shell([psql, database, "--quiet", "--command", visits], {}).returncode == 0
    known |= {"RELEASE": release, "DATABASE": database, "PATH": f"{Path(psql).parent}{os.pathsep}{os.environ['PATH']}"}
    for _ in range(2):
        done = shell(["sh", EXAMPLES / "publish_from_sql.sh", "2024-05-01"], known)
        assert done.returncode == 0, done.stderr
    told = shell(
        [psql, database, "-At", "--command", "SELECT day, counts, head FROM published_visits"], {}
    ).stdout.strip()
    (step,) = ask.get(f"/v1/releases/{release}/steps", token=known["TOKEN"]).json["steps"]
    day, counts, head = told.split("|")
    assert (day, counts.replace(" ", ""), head) == ("2024-05-01", str(step["counts"]).replace(" ", ""), step["head"])
    assert abs(step["counts"][0] - 30) < 200 and abs(step["counts"][1] - 60) < 200


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
