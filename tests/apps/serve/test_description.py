"""The OpenAPI description says what is true: requests made from it are never answered with a fault, or out of its words."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import HealthCheck, settings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of libraries that schemathesis loads
    import schemathesis
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from served import served, token_for
from serving import DEFINITION

QUICK, DEEP = 3, 400
"""Requests of each kind."""


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """A running service, its description, a token, and a release that the requests are about."""
    store = str(tmp_path_factory.mktemp("described") / "service.db")
    token = token_for(store)
    with served(store=store) as ask:
        release = ask.post("/v1/releases", DEFINITION, token=token).json["release"]
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{ask.port}/openapi.json")
        yield schema, token, release


@pytest.mark.long
@pytest.mark.parametrize("n_examples", [QUICK, pytest.param(DEEP, marks=pytest.mark.slow)])
def test_responses_agree_with_the_openapi_description(described, n_examples):
    schema, token, release = described
    asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        modes = [GenerationMode.POSITIVE] + ([GenerationMode.NEGATIVE] if "{release}" in operation.path else [])
        asked += sum(ask_as_described(operation, mode, token, release, n_examples) for mode in modes)
    assert asked > 12 * n_examples


def ask_as_described(operation, mode, token, release, n_examples):
    from hypothesis import Phase, given

    asked = 0

    @settings(
        max_examples=n_examples, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case):
        nonlocal asked
        asked += 1
        if "release" in (case.path_parameters or {}) and asked % 2:
            case.path_parameters["release"] = release
        answer = case.call(headers={"Authorization": f"Bearer {token}"} | dict(case.headers or {}))
        # No schema can say that rows are distributions, or which time may come next; and the token is always a good one.
        case.validate_response(answer, excluded_checks=[positive_data_acceptance, negative_data_rejection])

    ask()
    return asked
