"""The paper's statements: reproduction/README.md is what the code gives; disagreements are shown by other means."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from oracles import brute_force_loss, defined_leakage, exact_loss
from places import REPOSITORY
from reproduction import EXHIBITS, STATEMENTS
from reproduction.__main__ import main
from reproduction.claim import Verdict
from reproduction.document import render_document
from reproduction.runtime_figure import figure_5

PAGE = (REPOSITORY / "reproduction" / "README.md").read_text()
MEASURED = {name for name, statement in STATEMENTS.items() if statement.measured}


def lasting(page):
    """The page without the rows of claims that depend on the machine."""
    return [line for line in page.splitlines() if not line.startswith(tuple(f"| {name} |" for name in MEASURED))]


@pytest.mark.slow
def test_page_agrees_with_the_code(claims, exhibits):
    untimed = figure_5(sizes=(), alphas=())  # its notes and its place
    given = render_document(list(claims.values()), [untimed if key == "5" else exhibits[key] for key in EXHIBITS])
    given = given.replace("; 0 more are measured", f"; {len(MEASURED)} more are measured")
    assert lasting(PAGE) == lasting(given), "run `make bench NAME=paper`"


def verdict_on_the_page(identifier):
    return re.search(rf"^\| {identifier} \| .* \| \**([a-z, ]+?)\**(?:, measured)? \|$", PAGE, flags=re.M)[1]


def test_every_claim_is_on_the_page_and_the_page_is_short():
    for statement in STATEMENTS.values():
        assert f"| {statement.identifier} | {statement.place} | " in PAGE
    assert PAGE.count(", measured |") == len(MEASURED) == 3
    assert len(PAGE.split()) <= 1200


def test_the_command_prints_the_verdict_on_the_page(capsys):
    main(["--claim", "noise-scale", "--claim", "theorem-3"])
    printed = capsys.readouterr().out
    for identifier in ("noise-scale", "theorem-3"):
        shown = printed.split(f"{identifier}\n")[1]
        assert re.search(rf"^  verdict +{verdict_on_the_page(identifier)}$", shown, flags=re.M)
        assert STATEMENTS[identifier].says in shown


@pytest.mark.slow
def test_the_verdicts_on_the_page_are_those_of_the_checks(claims):
    for identifier, claim in claims.items():
        assert verdict_on_the_page(identifier) == claim.verdict


@pytest.mark.long
def test_claims_are_distinct_and_include_disagreements(claims):
    assert len(STATEMENTS) >= 40
    verdicts = [claim.verdict for claim in claims.values()]
    assert all(verdicts.count(verdict) >= 5 for verdict in Verdict)
    for claim in claims.values():
        assert min(map(len, (claim.place, claim.says, claim.found, claim.why))) > 5
        assert "nan" not in claim.found.split()


# What is said to be wrong, shown to be wrong without the package.


@pytest.mark.long
def test_one_road_example_agrees_with_enumeration(claims):
    road = [[0, 1, 0], [0, 0, 1], [0, 0, 1]]
    _, forward, temporal = defined_leakage(None, [road] * 3, [0.1] * 4)
    assert temporal.max() == pytest.approx(0.2)
    assert forward.max() == pytest.approx(0.2)
    assert claims["one-road"].verdict is Verdict.LOOSELY


@pytest.mark.long
def test_enumeration_shows_that_both_directions_do_not_add_up(claims):
    past = [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]]
    future = [[0.5, 0.5, 0], [1, 0, 0], [0, 1, 0]]
    backward, forward, temporal = defined_leakage([past] * 2, [future] * 2, [0.1] * 3)
    assert backward[1] == pytest.approx(0.2)
    assert forward[1] == pytest.approx(0.2)
    assert temporal[1] < 0.26
    assert claims["sum-of-both-sides"].verdict is Verdict.DISAGREES


@pytest.mark.long
def test_enumeration_shows_that_the_recursion_is_not_an_equality(claims):
    ring = np.array([[0.6, 0.2, 0.0, 0.2], [0.2, 0.6, 0.2, 0.0], [0.0, 0.2, 0.6, 0.2], [0.2, 0.0, 0.2, 0.6]])
    steps = 4
    backward, _, _ = defined_leakage([ring] * (steps - 1), None, [0.5] * steps)
    recursion = [0.5]
    for _ in range(steps - 1):
        recursion.append(brute_force_loss(ring, recursion[-1]) + 0.5)
    assert backward[1] == pytest.approx(recursion[1])
    assert backward[-1] < 0.95 * recursion[-1]
    assert claims["recursion"].verdict is Verdict.DISAGREES


@pytest.mark.long
def test_one_move_changes_the_counts_of_two_places(claims):
    """The worst ratio of two discrete Laplace draws when one person moves, from the probabilities themselves."""
    scale = 10.0

    def probability(k):
        return math.exp(-abs(k) / scale)

    ratios = [
        probability(a) * probability(b) / (probability(a + 1) * probability(b - 1))
        for a in range(-30, 30)
        for b in range(-30, 30)
    ]
    assert math.log(max(ratios)) == pytest.approx(0.2)
    assert claims["noise-scale"].verdict is Verdict.DISAGREES


def test_smaller_level_is_exceeded_under_another_accounting():
    backward, forward = [[0.8, 0.2], [0.2, 0.8]], [[0.8, 0.2], [0.1, 0.9]]
    middle = min(0.7 - brute_force_loss(backward, 0.7), 0.5 - brute_force_loss(forward, 0.5))
    series = [0.7]
    for epsilon in (*[middle] * 8, 0.5):
        series.append(brute_force_loss(backward, series[-1]) + epsilon)
    assert max(series) == pytest.approx(0.7163, abs=1e-4)
    assert series[0] > 0.5


@pytest.mark.long
def test_algorithm_1_loses_precision_against_rational_arithmetic(claims):
    places = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
    assert exact_loss(places, 40.0) == pytest.approx(math.log(5.0))
    assert "L(40) = 0; right is L(40) = 1.609" in claims["algorithm-1-in-doubles"].found


@pytest.mark.long
def test_figure_6_converges_as_claimed(claims):
    def settled(s, epsilon):
        q, d = (1 + s) / (1 + 50 * s), s / (1 + 50 * s)
        series = [epsilon]
        for _ in range(600):
            x = math.expm1(series[-1])
            series.append(epsilon + math.log1p(q * x) - math.log1p(d * x))
        return 1 + next(k for k, value in enumerate(series) if value >= 0.95 * series[-1]), series[-1]

    assert [settled(0.005, epsilon)[0] for epsilon in (1.0, 0.1)] == [9, 22]
    assert [settled(0.0005, epsilon)[0] for epsilon in (1.0, 0.1)] == [9, 79]
    assert settled(0.005, 0.1)[1] == pytest.approx(0.6334, abs=1e-4)
    assert "at step 9 for epsilon = 1 and at step 22 for 0.1. For s = 0.0005: steps 9 and 79" in claims["delay"].found


def test_unknown_claims_and_figures_are_refused(capsys):
    for arguments, expected in ((["--figure", "1"], "'3', '4', '5', '6', '7', '8'"), (["--claim", "x"], "one-road")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert expected in capsys.readouterr().err
