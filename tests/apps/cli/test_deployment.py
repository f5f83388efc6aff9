"""`temporaldp deployment`: cards in every form, folders, and what is refused."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from command import refused, temporaldp
from places import REPOSITORY, shared_folder
from registry_records import VISITS, record, with_parameters
from temporaldp import TransitionMatrix, save_matrix

PRINTED = {0.7: 2.05, 0.8: 2.96, 0.9: 4.50, 0.99: 9.27}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "r.yaml").write_text(VISITS)
    return tmp_path


def run(*arguments, cwd):
    done = temporaldp("deployment", *arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


def test_json(folder):
    found = json.loads(run("r.yaml", "--stays", "0.7:0.99", "--json", cwd=folder).stdout)
    assert len(found["stays"]) == len(found["over_time"])
    leaks = dict(zip(found["stays"], found["over_time"], strict=True))
    assert {p: leaks[p] for p in PRINTED} == pytest.approx(PRINTED, abs=0.005)
    assert (found["promised"], found["horizon"], found["kind"]) == (1.0, 365, "exact")
    assert all(isinstance(sentence, str) for sentence in found["assumptions"])


def test_text_states_limits_first(folder):
    told = " ".join(run("r.yaml", "--horizon", "30", cwd=folder).stdout.split())
    places = [
        told.index(part)
        for part in ("do not show", "4.4995 nats about one day", "30 days", "Assumptions", "to the publisher")
    ]
    assert places == sorted(places)


@pytest.mark.long
def test_figures_and_a_self_contained_page(folder):
    run("r.yaml", "--output", "c.png", "--output", "c.svg", "--output", "c.html", cwd=folder)
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "c.svg").read_bytes()
    page = (folder / "c.html").read_text()
    parts = (
        "A suspicion of 50 %",
        "for an observer who",
        "What it does not protect",
        "How good",
        "<details",
        "Assumptions",
    )
    assert sorted(map(page.index, parts)) == list(map(page.index, parts))
    assert "4.4995 nats, for an observer" in page
    assert "@media print" in page
    assert not re.search(r"(src|href)=\"(?!data:)|@import|url\(", page)
    first = (folder / "c.svg").read_bytes()
    run("r.yaml", "--output", "c.svg", cwd=folder)
    assert (folder / "c.svg").read_bytes() == first


def test_record_without_a_number_has_a_card(folder):
    (folder / "r.yaml").write_text(record(release_type="One release", name="<b>Births</b>"))
    done = run("r.yaml", "--output", "c.html", "--output", "c.png", cwd=folder)
    assert "No number is given" in done.stdout
    assert "<b>Births</b>" not in (folder / "c.html").read_text()
    found = json.loads(run("r.yaml", "--json", cwd=folder).stdout)
    assert (found["fits"], found["stays"], found["over_time"], found["promised"]) == (False, [], [], 1.0)
    assert "there is none" in refused("deployment", "r.yaml", "--emit", cwd=folder)


def test_emitted_yaml_can_be_read_and_is_in_the_documentation(folder):
    line = ("r.yaml", "--stays", "0.7:0.99", "--emit")
    told = run(*line, cwd=folder).stdout
    assert f"```yaml\n{told}```" in (REPOSITORY / "docs" / "measured" / "published-systems.md").read_text()
    (folder / "field.yaml").write_text(told)
    field = yaml.safe_load((folder / "field.yaml").read_text())["temporal_correlation"]
    assert (field["step"], field["steps"], field["chains"]["stays"]) == ("day", 365, [0.7, 0.99])
    for entry in field["leakage"]["infinite_horizon"]:
        if entry["stays"] in PRINTED:
            assert entry["at_most"] == pytest.approx(PRINTED[entry["stays"]], abs=0.005)


def test_a_matrix(folder):
    save_matrix(TransitionMatrix([[0.9, 0.1], [0.1, 0.9]], states=["home", "away"]), folder / "m.csv")
    found = json.loads(run("r.yaml", "--correlation", "m.csv", "--json", cwd=folder).stdout)
    assert found["stays"] == [0.9]
    assert found["over_time"] == pytest.approx([6.1081], abs=1e-4)  # both states contribute: two units
    assert found["states"] == ["home", "away"]


@pytest.mark.long
def test_tables_dates_and_units(folder):
    options = (
        "--tables",
        "country=0.1,county=0.2",
        "--set",
        "deployment.since=2020-01-01",
        "--set",
        "deployment.until=2020-01-31",
    )
    found = json.loads(run("r.yaml", *options, "--stays", "0.9", "--json", cwd=folder).stdout)
    assert found["promised"] == pytest.approx(0.3)
    assert (found["horizon"], found["stays"]) == (31, [0.9])
    found = json.loads(run("r.yaml", "--unit", "category-histogram", "--stays", "0.5", "--json", cwd=folder).stdout)
    assert (found["promised"], found["alone"]) == (1.0, 2.0)
    assert found["over_time"] == pytest.approx([2.0])


def test_invalid_records_of_a_folder_are_skipped(folder):
    (folder / "bad.yaml").write_text("a: !!python/name:os.system")
    (folder / "once.yaml").write_text(record(release_type="One release"))
    (folder / "unit.yaml").write_text(record(privacy_unit="Flock-level"))
    (folder / "notes.txt").write_text("no record")
    done = temporaldp("deployment", ".", cwd=folder, columns="100")
    assert done.returncode == 0
    lines = [line for line in done.stdout.split("Without a number")[0].splitlines() if line.startswith(("r ", "once "))]
    assert len(lines) == 2
    assert "4.4995" in next(line for line in lines if line.startswith("r "))
    assert "one release" in next(line for line in lines if line.startswith("once "))
    assert "bad.yaml" in done.stderr
    assert "unit.yaml" in done.stderr
    found = json.loads(run(".", "--json", cwd=folder).stdout)
    assert {line["file"]: line["fits"] for line in found["records"]} == {"r.yaml": True, "once.yaml": False}
    assert {line["file"] for line in found["not_used"]} == {"bad.yaml", "unit.yaml"}


def test_the_registry(folder):
    records = shared_folder() / "deployments"
    if not records.is_dir():
        pytest.skip(f"no records at {records}; set TEMPORALDP_SHARED")
    found = json.loads(run(records, "--json", cwd=folder).stdout)
    assert len(found["records"]) >= 16
    assert [line["file"] for line in found["not_used"]] == ["schema.yaml"]
    leaks = {line["file"]: dict(zip(line["stays"], line["over_time"], strict=True)) for line in found["records"]}
    assert leaks["wikimedia_historical_usage_data.yaml"][0.9] == pytest.approx(4.4995, abs=1e-4)
    assert all(line["fits"] or line["reason"] for line in found["records"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--stays", "0.9:0.5"), "smallest <= largest"),
        (("--stays", "often"), "FROM:TO"),
        (("--stays", "nan:nan"), "finite number"),
        (("--stays", "0.5:0.9:1"), "FROM:TO"),
        (("--states", "home"), "at least 2 states"),
        (("--states", "home,home"), "home"),
        (("--horizon", "0"), "greater than or equal to 1"),
        (("--set", "deployment.since=yesterday"), "valid date"),
        (("--set", "deployment.until=2020-01-01"), "until"),
        (("--tables", "country"), "NAME=NUMBER"),
        (("--tables", "country=0.1,country=0.2"), "each name once"),
        (("--tables", "country=9"), "add up to 9"),
        (("--set", "deployment.contributions=0"), "greater than or equal to 1"),
        (("--unit", "binary-count", "--states", "a,b,c"), "category-histogram"),
        (("--set", "deployment.absent=gone"), "gone"),
        (("--delta", "1e-6"), "leave it out"),
        (("--output", "card.pdf"), "ending in .png or .svg or .html"),
        (("--output", "r.yaml"), "ending in .png or .svg or .html"),
        (("--output", "nowhere/card.html"), "does not exist"),
        (("--emit", "--json"), "either --emit"),
        (("--correlation", "none.csv"), "none.csv"),
        (("--correlation", "none.csv", "--stays", "0.9"), "either --stays or --correlation"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_invalid_options_are_refused(folder, options, says):
    assert says in " ".join(refused("deployment", "r.yaml", *options, cwd=folder).split())


def test_invalid_records_are_refused(folder):
    (folder / "r.yaml").write_text(with_parameters("epsilon: plenty"))
    assert "r.yaml" in refused("deployment", "r.yaml", cwd=folder)
    (folder / "empty").mkdir()
    assert "none" in refused("deployment", "empty", cwd=folder)
    assert "nowhere.yaml" in refused("deployment", "nowhere.yaml", cwd=folder)
    assert "--output are about one record" in " ".join(
        refused("deployment", ".", "--output", "c.html", cwd=folder).split()
    )
