"""The releases behind HTTP: what is asked, what is answered, and who may."""

from __future__ import annotations

import json
import math
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager

import numpy as np
import pytest

from command import refused, temporaldp
from level import worst_leakage
from making import of_words
from postgres import place_of
from served import served, token_for
from temporaldp import Adversary, Ledger, LedgerError, Periodic, TemporalAccountant, TransitionMatrix, plan_budget
from temporaldp.apps.serve import served_release
from temporaldp.apps.serve import service as service_module
from temporaldp.apps.serve.definition import Definition
from temporaldp.apps.serve.tokens import Role
from temporaldp.publish.release.guards import AccountantGuard
from temporaldp.publish.release.step import StepRequest

ROWS = [[0.8, 0.2], [0.2, 0.8]]
ADVERSARY = Adversary(TransitionMatrix(ROWS), TransitionMatrix(ROWS))
DEFINITION = {"alpha": 1.0, "backward": ROWS, "forward": ROWS, "mechanism": {"kind": "histogram", "n_states": 2}}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def service(request, tmp_path_factory):
    """A server over a database of its own, and what asks it."""
    store = place_of(request.param, tmp_path_factory.mktemp("service"), request)
    with served(store=store) as ask:
        yield Service(store, ask, token_for(store))


class Service:
    def __init__(self, store, ask, own):
        self.store, self.ask, self.own, self.n = store, ask, own, 0

    def create(self, **changed):
        answer = self.ask.post("/v1/releases", DEFINITION | changed, token=self.own)
        assert answer.status == 201, answer.text
        return answer.json["release"]

    def post(self, release, act, body, key=None, token=None):
        return self.ask.post(f"/v1/releases/{release}/{act}", body, token=token or self.own, key=key)

    def get(self, release, rest="", token=None):
        return self.ask.get(f"/v1/releases/{release}{rest}", token=token or self.own)

    def steps(self, release):
        return self.get(release, "/steps").json["steps"]


def test_a_release_admits_what_an_accountant_admits(service):
    release = service.create()
    accountant = TemporalAccountant(Adversary(*[TransitionMatrix(ROWS)] * 2), alpha=1.0)
    assert service.get(release).json["remaining"] == accountant.remaining()
    for k, epsilon in enumerate([0.2, 0.3, 0.1, 0.3, accountant.reserve]):
        checked = service.post(release, "check", {"epsilon": epsilon})
        assert (checked.status, checked.json["step"]) == (200, k)
        assert checked.json["laplace_scale"] >= 2.0 / epsilon
        assert service.post(release, "spend", {"epsilon": epsilon}, key=f"k{k}").json["epsilon"] == epsilon
        accountant.spend(epsilon)
    refused = service.post(release, "spend", {"epsilon": 0.9}, key="much")
    assert (refused.status, refused.headers["content-type"]) == (409, "application/problem+json")
    assert refused.json["remaining"] == accountant.remaining()
    assert "Nothing was spent" in refused.json["detail"]
    assert service.post(release, "check", {"epsilon": 0.9}).json == refused.json
    state = service.get(release, "?leakage=true").json
    assert (state["n_steps"], state["leakage"]) == (5, pytest.approx(accountant.total(), rel=1e-12))
    assert state["spent"] == pytest.approx(accountant.spent.sum())
    exact = worst_leakage(ROWS, ROWS, [step["epsilon"] for step in service.steps(release)])
    assert exact <= state["leakage"] * (1 + 1e-12) <= 1.0


@pytest.mark.long
def test_release_of_several_models_satisfies_the_level_for_each(service, tmp_path):
    returning = of_words([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]])
    models = {"first order": ADVERSARY, "second order": returning.adversary}
    documents = {name: one.document() for name, one in models.items()}
    release = service.create(models=documents, backward=None, forward=None)
    accountant = TemporalAccountant(models, alpha=1.0)
    state = service.get(release).json
    assert state["reserve"] == pytest.approx(accountant.reserve, rel=1e-12)
    alone = [TemporalAccountant(one, alpha=1.0).reserve for one in models.values()]
    assert state["reserve"] == pytest.approx(min(alone), rel=1e-12)
    for k in range(3):
        assert service.post(release, "publish", {"counts": [70, 30]}, key=f"models-{k}").status == 200
    assert service.get(release, "?leakage=true").json["leakage"] <= 1.0
    shown = temporaldp("ledger", "show", service.store, "--release", release).stdout
    assert "2 correlations" in shown
    made = temporaldp(
        "report", "--ledger", service.store, "--release", release, "-o", str(tmp_path / "r.html"), "--json"
    )
    assert made.returncode == 0 and not json.loads(made.stdout)["is_internal"], made.stderr
    page = " ".join((tmp_path / "r.html").read_text().split())
    assert "move from step to step (first order, second order)" in page and "of each person" not in page


def test_models_that_do_not_fit_the_release_are_refused_and_contradictions_are_told(service):
    """Of other states than the histogram, or of a clock where times may be left out; and matrices of two chains."""
    clock = Adversary.from_forward(Periodic([TransitionMatrix(ROWS), TransitionMatrix([[0.5, 0.5], [0.5, 0.5]])]))
    three = Adversary(TransitionMatrix(np.full((3, 3), 1 / 3)), None)
    for model, more, said in (
        (three, {}, "expected a histogram of the models' 3 states, got n_states 2"),
        (clock, {"horizon": 8}, "expected the length of a step (step)"),
    ):
        terms = DEFINITION | {"models": {"a": model.document()}, "backward": None, "forward": None} | more
        answer = service.ask.post("/v1/releases", terms, token=service.own)
        assert (answer.status, said in answer.json["detail"]) == (422, True), answer.text
    terms = {"models": {"a": clock.document()}, "backward": None, "forward": None, "horizon": 8, "step": "3600 seconds"}
    assert service.ask.post("/v1/releases", DEFINITION | terms, token=service.own).status == 422  # at which phase?
    uncountable = service.ask.post("/v1/releases", DEFINITION | terms | {"begins": "hour 1"}, token=service.own)
    assert uncountable.status == 422 and "from which steps of 3600 seconds can be counted" in uncountable.json["detail"]
    release = service.create(**terms, begins="2024-03-04T05:00")
    counted, spent = TemporalAccountant(clock), (0.1, 0.0, 0.3)
    counted.spend(spent)

    def step(hour, epsilon, what="spend"):
        body = {"time": f"2024-03-04T0{hour}:00", "epsilon": epsilon} | (
            {"counts": [70, 30]} if what == "publish" else {}
        )
        return service.post(release, what, body, key=f"clock-{hour}-{what}")

    assert "the first step" in step(4, 0.1, "publish").json["detail"]
    assert step(5, 0.1, "publish").status == 200
    assert "Pass over those between" in step(7, 0.1, "publish").json["detail"]
    assert step(6, 0.0, "publish").status == 422
    passed = step(6, 0.0)
    assert passed.status == 200 and passed.json == step(6, 0.0).json and passed.json["counts"] is None
    assert step(7, 0.3, "publish").status == 200
    assert service.get(release, "?leakage=true").json["leakage"] == pytest.approx(counted.leakage().worst, rel=1e-9)
    sequence = Adversary.from_forward([TransitionMatrix(ROWS)] * 3, initial=[0.5, 0.5])
    answer = service.ask.post(
        "/v1/releases", DEFINITION | terms | {"models": {"a": sequence.document()}, "begins": "0"}, token=service.own
    )
    assert answer.status == 422 and "number of steps as horizon, 4, got 8" in answer.json["detail"]
    cycle = [[0.05, 0.9, 0.05], [0.05, 0.05, 0.9], [0.9, 0.05, 0.05]]
    terms = DEFINITION | {"backward": cycle, "forward": cycle, "mechanism": {"kind": "histogram", "n_states": 3}}
    created = service.ask.post("/v1/releases", terms, token=service.own, key="cycle")
    assert created.status in {200, 201} and "another backward matrix" in created.json["warning"], created.text


@pytest.mark.parametrize("guarantee", ["window:3", "user:3"])
def test_budgets_of_any_window_add_up_to_at_most_the_level(service, guarantee):
    """Without a correlation: by sums of what the steps spent, of which the last one may use all that is left."""
    release = service.create(guarantee=guarantee, backward=None, forward=None)
    every = service.get(release).json["reserve"]
    assert every == pytest.approx(1 / 3)
    asked = [(None, 200), (None, 200), (0.34, 409), (0.2, 200), (0.3, 200), (0.1, 200)]
    for k, (epsilon, status) in enumerate(asked):
        body = {} if epsilon is None else {"epsilon": epsilon}
        found = service.post(release, "spend", body, key=f"{guarantee}-{k}")
        assert found.status == status
        assert found.json["remaining" if status == 409 else "epsilon"] == (
            every if epsilon in {None, 0.34} else epsilon
        )
    assert service.get(release, "?leakage=true").json["leakage"] == pytest.approx(2 / 3 + 0.2)
    for epsilon, status in ((0.61, 409), (0.59, 200)):
        last = service.post(release, "spend", {"epsilon": epsilon, "last": True}, key=f"{guarantee}-last-{epsilon}")
        assert last.status == status
    over = service.get(release, "?leakage=true").json
    assert over["leakage"] == pytest.approx(0.99) and over["is_over"] and over["remaining"] == 0.0
    shown = temporaldp("ledger", "show", service.store, "--release", release).stdout
    assert "3 consecutive steps" in " ".join(shown.split())


def test_the_user_level_of_a_service_is_spent_by_all_steps(service):
    terms = {"guarantee": "user", "horizon": 4, "backward": None, "forward": None}
    release = service.create(**terms)
    for k, (epsilon, status) in enumerate([(0.5, 200), (0.6, 409), (0.4, 200), (0.2, 409), (0.05, 200)]):
        assert service.post(release, "spend", {"epsilon": epsilon}, key=f"user-{k}").status == status
    assert service.get(release, "?leakage=true").json["leakage"] == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"guarantee": "user"}, "a horizon with the guarantee user"),
        ({"guarantee": "window:3", "horizon": 4}, "none with user:W or window:W"),
        ({"guarantee": "window:3", "backward": ROWS}, "expected no matrices"),
        ({"guarantee": "event"}, "guarantee"),
        ({"guarantee": "window:0"}, "guarantee"),
    ],
)
def test_guarantee_that_does_not_fit_is_refused(service, changed, said):
    terms = DEFINITION | {"backward": None, "forward": None} | changed
    refused = service.ask.post("/v1/releases", terms, token=service.own)
    assert (refused.status, said in refused.text) == (422, True), refused.text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"labels": [0, 0, 1]}, "expected the number of a state for each of 4 hidden states"),
        ({"labels": [0.0, 0.0, 1.0, 1.0]}, "expected the number of a state"),
        ({"shares": [[0.5, 0.0, 0.25, 0.0], [0.0, 0.5, 0.0, 0.5]]}, "have the sum 1"),
        ({"shares": [[1.5, 0.0, -0.5, 0.0], [0.0, 0.5, 0.0, 0.5]]}, "the shares of the hidden states that show it"),
        ({"forward": 3}, "to be what `Adversary.document()` returns"),
        ({"backward": None, "forward": None, "labels": None}, "to be what `Adversary.document()` returns"),
    ],
)
def test_model_that_is_none_is_refused(service, changed, said):
    chain = of_words([[[0.9, 0.1], [0.6, 0.4]], [[0.5, 0.5], [0.2, 0.8]]]).adversary
    terms = DEFINITION | {"models": {"words": chain.document() | changed}, "backward": None, "forward": None}
    answer = service.ask.post("/v1/releases", terms, token=service.own)
    assert answer.status == 422, answer.text
    assert said in answer.json["detail"]


def test_models_and_matrices_together_are_refused(service):
    answer = service.ask.post("/v1/releases", DEFINITION | {"models": {"a": ADVERSARY.document()}}, token=service.own)
    assert (answer.status, "or models" in answer.json["detail"]) == (422, True)


def test_published_step_is_stored_and_returned_again(service):
    release = service.create()
    first = service.post(release, "publish", {"counts": [70, 30], "time": "2024-01-01"}, key="a")
    assert first.json["epsilon"] == pytest.approx(0.2598, abs=1e-4)
    again = service.post(release, "publish", {"counts": [70, 30], "time": "2024-01-01"}, key="a")
    assert (again.json, again.headers["idempotent-replayed"]) == (first.json, "true")
    without_time = service.post(release, "publish", {"counts": [70, 30]}, key="a")
    assert without_time.json == first.json
    assert service.steps(release) == [first.json]
    with served(store=service.store) as another:  # a second server on the same database
        path = f"/v1/releases/{release}/publish"
        body = {"counts": [70, 30], "time": "2024-01-01"}
        assert another.post(path, body, token=service.own, key="a").json == first.json


@pytest.mark.parametrize(
    ("act", "body", "key"),
    [
        ("publish", {"counts": [70, 30], "time": "1", "last": True}, "a"),
        ("publish", {"counts": [70, 30], "time": "1", "epsilon": 0.1}, "a"),
        ("publish", {"counts": [70, 30], "time": "2"}, "a"),
        ("spend", {"time": "1"}, "a"),
        ("publish", {"counts": [70, 30], "time": "1"}, "b"),
        ("publish", {"counts": [70, 30], "time": "0"}, "c"),
    ],
    ids=["last", "epsilon", "time", "act", "key", "late"],
)
def test_repeated_key_with_another_request_is_refused(service, act, body, key):
    release = service.create()
    first = service.post(release, "publish", {"counts": [70, 30], "time": "1"}, key="a")
    assert first.status == 200
    refused = service.post(release, act, body, key=key)
    assert refused.status == 409, refused.text
    assert service.steps(release) == [first.json]


def test_no_response_depends_on_the_published_counts(service):
    release = service.create()
    first = service.post(release, "publish", {"counts": [37, 63], "time": "1"}, key="a")
    other = token_for(service.store, release, Role.PUBLISH)
    for token, key in ((service.own, "a"), (service.own, "b"), (other, "a"), (other, "c")):
        answers = [
            service.post(release, "publish", {"counts": counts, "time": "1"}, key=key, token=token)
            for counts in ([37, 63], [38, 62], [0, 0])
        ]
        assert len({(answer.status, answer.text) for answer in answers}) == 1
        assert answers[0].status == (200 if (token, key) == (service.own, "a") else 409)
    assert service.steps(release) == [first.json]


def test_idempotency_key_belongs_to_its_token(service):
    release = service.create()
    other = token_for(service.store, release, Role.PUBLISH)
    steps = [service.post(release, "publish", {"counts": [5, 5]}, key="a", token=t).json for t in (service.own, other)]
    assert service.steps(release) == steps
    assert service.post(release, "publish", {"counts": [6, 4]}, key="a", token=other).json == steps[1]


def test_request_without_time_or_key_is_refused(service):
    release = service.create()
    assert service.post(release, "spend", {}).status == 422
    assert service.post(release, "spend", {"time": "1"}).status == 422
    assert service.steps(release) == []


def test_creating_a_release_twice_with_one_key_creates_one(service):
    one, two = (service.ask.post("/v1/releases", DEFINITION, token=service.own, key="same") for _ in range(2))
    assert (one.status, two.status, one.json) == (201, 201, two.json)
    other = service.ask.post("/v1/releases", DEFINITION | {"alpha": 2.0}, token=service.own, key="same")
    assert other.status == 409


def test_a_job_with_a_new_token_finds_its_release_again(service):
    """A second account would draw published times again."""
    first = service.ask.post("/v1/releases", DEFINITION, token=service.own, key="same").json["release"]
    other = token_for(service.store)
    assert service.ask.post("/v1/releases", DEFINITION, token=other, key="same").json["release"] == first


def test_releases_are_listed_in_pages_to_those_who_may_read_all(service):
    made = sorted(service.create() for _ in range(3))
    assert service.post(made[1], "publish", {"counts": [70, 30]}, key="a").status == 200
    found, after = [], ""
    while page := service.ask.get(f"/v1/releases?limit=2&after={after}", token=service.own).json["releases"]:
        found, after = found + page, page[-1]["release"]
    assert [one["release"] for one in found] == sorted(one["release"] for one in found)
    mine = [one for one in found if one["release"] in made]
    assert [(one["release"], one["n_steps"]) for one in mine] == [(made[0], 0), (made[1], 1), (made[2], 0)]
    assert mine[1]["head"] == service.steps(made[1])[-1]["head"]
    assert service.ask.get("/v1/releases", token=token_for(service.store, made[0])).status == 403
    assert service.ask.get("/v1/releases?after=x", token=service.own).status == 422


@pytest.mark.long
def test_a_release_is_a_ledger_for_those_who_have_the_database(service, tmp_path):
    release = service.create()
    assert service.post(release, "publish", {"counts": [70, 30], "time": "2024-01-01"}, key="a").status == 200
    with Ledger(service.store, release) as ledger:
        ledger.verify(head=service.steps(release)[-1]["head"])
        assert ledger.times == ("2024-01-01",)
    shown = temporaldp("ledger", "show", service.store, "--release", release, "--json")
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["steps"][0]["time"] == "2024-01-01"
    for command in ("show", "verify"):
        said = temporaldp("ledger", command, service.store, "--release", release)
        assert said.returncode == 0 and "DP_T" in said.stdout, said.stderr
    table = tmp_path / "steps.csv"
    assert temporaldp("ledger", "export", service.store, "--release", release, "-o", table).returncode == 0
    assert "2024-01-01" in table.read_text()
    page = tmp_path / "report.html"
    about = temporaldp("report", "--ledger", service.store, "--release", release, "-o", page, "--json")
    assert about.returncode == 0, about.stderr
    state = service.ask.get(f"/v1/releases/{release}?leakage=true", token=service.own).json
    assert json.loads(about.stdout)["worst_leakage"] == pytest.approx(state["leakage"], rel=1e-12)
    assert json.loads(about.stdout)["is_satisfied"] is True
    assert "2024-01-01" in page.read_text()
    assert "never written" in refused("ledger", "show", service.store, code=4) or "://" in service.store
    assert "there is no ledger" in refused("ledger", "show", service.store, "--release", "0" * 32, code=4)


def test_concurrent_requests_with_one_key_take_one_step(service):
    release = service.create()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: service.post(release, "publish", {"counts": [5, 5]}, key="one"), range(16)))
    assert {answer.status for answer in found} == {200}
    assert len({answer.body for answer in found}) == len(service.steps(release)) == 1


@pytest.mark.long
def test_two_servers_racing_spend_no_more_than_the_level(service):
    release = service.create()
    path = f"/v1/releases/{release}/spend"
    with served(store=service.store) as another, ThreadPoolExecutor(8) as pool:

        def spend(k):
            ask = (service.ask, another)[k % 2]
            return ask.post(path, {"epsilon": 0.1 + 0.01 * (k % 30)}, token=service.own, key=f"k{k}").status

        statuses = list(pool.map(spend, range(60)))
    steps = service.steps(release)
    assert statuses.count(200) == len(steps) > 5 and statuses.count(409) == 60 - len(steps) > 0
    assert worst_leakage(ROWS, ROWS, [step["epsilon"] for step in steps]) <= 1.0
    assert service.get(release, "/verify").json == {
        "intact": True,
        "authentic": True,
        "n_steps": len(steps),
        "head": steps[-1]["head"],
    }


@pytest.mark.long
@pytest.mark.parametrize("beyond", [False, True])
def test_a_server_that_is_started_again_counts_from_a_checkpoint(service, monkeypatch, beyond):
    """Whether or not budgets beyond the reserve needed the filter at each step; numbers are those of counting all steps."""
    for module in ("publish.release.step", "apps.serve.served_release"):
        monkeypatch.setattr(f"temporaldp.{module}.STEPS_BETWEEN_CHECKPOINTS", 10)
    release = service.create()
    reserve = service.get(release).json["reserve"]
    for step in range(37):
        budget = reserve * (1.05 if beyond and step % 4 == 3 else 0.7)
        assert service.post(release, "spend", {"epsilon": budget}, key=f"{release}-{step}").status == 200
        if step in {24, 35}:
            service.get(release)  # counts; the next step stores it
    told = service.get(release, "?leakage=true").json
    with opened_again(service.store, release) as again:
        resumed = again.state(leakage=True)
        assert again.ledger.checkpoint.end.n_steps == (30 if beyond else 36)
        assert (resumed.remaining, resumed.leakage) == (told["remaining"], told["leakage"])
        assert again.verify(told["head"]).n_steps == 37
        counted = TemporalAccountant(ADVERSARY, alpha=DEFINITION["alpha"])
        counted.spend(list(again.ledger.epsilons))
    assert counted.remaining() == pytest.approx(resumed.remaining, rel=1e-9)
    assert counted.total() == pytest.approx(resumed.leakage, rel=1e-9)


def test_steps_and_questions_at_once_do_not_block_one_another_for_good(service, monkeypatch):
    """Locks are taken in one order: by questions, and by steps that store checkpoints."""
    for module in ("publish.release.step", "apps.serve.served_release"):
        monkeypatch.setattr(f"temporaldp.{module}.STEPS_BETWEEN_CHECKPOINTS", 3)
    with opened_again(service.store, service.create()) as found:

        def act(number):
            if number % 2:
                return found.state(leakage=True).n_steps
            budget = found.reserve * (1.01 if number % 4 else 0.5)
            return found.take_step(StepRequest(None, budget, key=f"{number}"))[0].step

        with ThreadPoolExecutor(6) as pool:
            done = list(pool.map(act, range(60), timeout=120))
        assert sorted(done[::2]) == list(range(30))
        assert found.verify(None).n_steps == 30


@contextmanager
def opened_again(store, release):
    """The release in another server."""
    server = service_module.Service(store)
    with closing(server.database):
        yield server.find(release)


def test_last_step_may_use_the_reserve_and_is_final(service):
    release = service.create()
    publisher = token_for(service.store, release, Role.PUBLISH)
    assert service.post(release, "spend", {"last": True, "epsilon": 0.9}, key="l", token=publisher).status == 403
    assert service.post(release, "spend", {"last": True, "epsilon": 0.9}, key="l").status == 200
    after = service.post(release, "spend", {"epsilon": 0.01}, key="m")
    assert (after.status, service.get(release).json["is_over"]) == (409, True)
    assert service.get(release).json["remaining"] == 0.0


@pytest.mark.long
def test_a_release_of_some_steps_or_unknown_matrices_or_the_papers_bound(service):
    horizon = service.create(horizon=3)
    assert service.post(horizon, "spend", {}, key="none").status == 422
    planned = plan_budget(Adversary(*[TransitionMatrix(ROWS)] * 2), alpha=1.0, horizon=3, method="optimal").epsilons
    for k, epsilon in enumerate(planned):
        body = {"counts": [1, 2], "epsilon": min(epsilon, service.get(horizon).json["remaining"])}
        assert service.post(horizon, "publish", body, key=f"{k}").status == 200
    assert service.post(horizon, "spend", {"epsilon": 0.1}, key="3").status == 409
    spent = [step["epsilon"] for step in service.steps(horizon)]
    assert 0.99 < worst_leakage(ROWS, ROWS, spent) <= 1.0
    bounds = {"lower": [[0.7, 0.1], [0.1, 0.7]], "upper": [[0.9, 0.3], [0.3, 0.9]]}
    interval = service.create(backward=bounds, forward=None)
    assert service.post(interval, "spend", {}, key="0").status == 200
    paper = service.create(bound="paper")
    assert service.post(paper, "spend", {}, key="0").json["epsilon"] < 0.26
    elsewhere = service.create(mechanism={"kind": "elsewhere", "description": "a mean in SQL"})
    assert service.post(elsewhere, "spend", {}, key="0").status == 200
    assert service.post(elsewhere, "publish", {"counts": [1, 2]}, key="1").status == 422
    for release in (interval, paper, elsewhere):
        assert service.get(release).json["n_steps"] == 1


ACTS = [
    ("read", "GET", "", None),
    ("read", "POST", "/check", {}),
    ("publish", "POST", "/spend", {}),
    ("publish", "POST", "/publish", {"counts": [1, 2]}),
]


@pytest.mark.parametrize("role", ["read", "publish"])
def test_token_allows_its_role_only(service, role):
    release, other = service.create(), service.create()
    token = token_for(service.store, release, Role(role))
    for needed, method, path, body in ACTS:
        found = service.ask(method, f"/v1/releases/{release}{path}", body, token=token, key=f"{role}{path}")
        assert found.status == (200 if needed in {"read", role} else 403)
        assert service.ask(method, f"/v1/releases/{other}{path}", body, token=token, key="k").status == 403
    assert service.ask.post("/v1/releases", DEFINITION, token=token).status == 403
    assert service.steps(other) == []


def test_questions_about_a_release_delay_no_step(service, monkeypatch):
    """One question of a release is answered at a time, and not in the threads of steps; too many are refused."""
    asked, other = service.create(), service.create()
    reader = token_for(service.store, asked, Role.READ)
    computing, done, together = threading.Event(), threading.Event(), []

    def slow(guard, *arguments, **options):
        together.append(1)
        computing.set()
        assert done.wait(60)
        return plain(guard, *arguments, **options)

    plain = AccountantGuard.measurement
    monkeypatch.setattr(AccountantGuard, "measurement", slow)  # asked where a budget exceeds the reserve

    def check(_):
        return service.ask.post(f"/v1/releases/{asked}/check", {"epsilon": 0.3}, token=reader).status

    with ThreadPoolExecutor(80) as clients:
        answers = [clients.submit(check, k) for k in range(80)]
        try:
            assert computing.wait(60)
            refused = next(as_completed(answers))
            assert refused.result() == 429
            for k in range(3):
                for release in (asked, other):
                    assert service.post(release, "publish", {"counts": [1, 2]}, key=f"{k}").status == 200
            assert len(together) == 1
        finally:
            done.set()
        statuses = Counter(answer.result() for answer in answers)
    assert set(statuses) == {200, 429} and statuses[200] >= 32
    assert service.get(asked).json["n_steps"] == 3


def test_counts_states_tokens_and_noise_are_not_logged(service, capsys):
    with served(store=service.store, log=True) as ask:
        body = DEFINITION | {"states": ["Zanzibar", "Quito"], "name": "Ouagadougou"}
        release = ask.post("/v1/releases", body, token=service.own).json["release"]
        noisy = ask.post(
            f"/v1/releases/{release}/publish",
            {"counts": [314159, 271828], "time": "Reykjavik"},
            token=service.own,
            key="Lima",
        )
        assert ask.post(f"/v1/releases/{release}/publish", {"counts": "Paris"}, token=service.own).status == 422
        metrics = ask.get("/metrics").text
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["status"] for line in lines] == [201, 200, 422, 200]
    assert lines[1]["release"] == release and lines[1]["route"] == "/v1/releases/{release}/publish"
    said = json.dumps(lines) + metrics
    secret = [
        "Zanzibar",
        "Ouagadougou",
        "Reykjavik",
        "Lima",
        "Paris",
        "314159",
        service.own,
        *map(str, noisy.json["counts"]),
    ]
    assert not [word for word in secret if word in said]
    assert release not in metrics
    assert 'temporaldp_steps_total{became="taken",kind="publish"} 1' in metrics


def test_readiness_reports_the_database(service):
    while service.ask.get("/ready").status == 503:  # it loads what the first step needs
        time.sleep(0.1)
    assert service.ask.get("/ready").json == {"status": "ready"}
    assert math.isfinite(service.get(service.create()).json["remaining"])


def test_a_release_that_cannot_be_made_leaves_the_others_of_the_file(tmp_path, monkeypatch):
    """A disk that is full for a moment, between the heading of the second release and what is kept beside it."""
    monkeypatch.setenv("TEMPORALDP_KEY_FILE", str(tmp_path / "key"))

    def failing(*_):
        raise LedgerError("disk full")

    made = service_module.Service(str(tmp_path / "s.db"))
    first = made.create(Definition.model_validate(DEFINITION), "one")
    ask = StepRequest(None, 0.1, key="k", data=(3, 4))
    row, _ = made.find(first.release).take_step(ask)
    with monkeypatch.context() as broken, pytest.raises(LedgerError, match="disk full"):
        broken.setattr(served_release, "keep_correlations", failing)
        made.create(Definition.model_validate(DEFINITION | {"alpha": 2.0}), "two")
    again, _ = made.find(first.release).take_step(ask)
    assert again.counts == row.counts and (tmp_path / "s.db").exists()
    assert made.create(Definition.model_validate(DEFINITION | {"alpha": 2.0}), "two").release != first.release
