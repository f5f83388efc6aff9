"""The page's own arithmetic in Chromium, against the library's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import temporaldp as tdp
from browsing import Visit, browsing
from methods import method_of
from temporaldp.planning.histogram_noise import laplace_scales, mean_absolute_noise
from temporaldp.report import sentences

pytestmark = pytest.mark.browser

CLOSE = 1e-9


@pytest.fixture(scope="module")
def compute():
    """Runs a line of JavaScript that has the page's modules in `m`, with the argument `x`."""
    names = ("chain", "profile", "exact", "budget", "words", "commands", "setting")
    loaded = "".join(f"...await import('/page/{name}.js')," for name in names)
    with browsing() as (browser, address):
        visit = Visit(browser, address).open()
        yield lambda line, x=None: visit.page.evaluate(f"async (x) => {{ const m = {{{loaded}}}; return {line}; }}", x)
        visit.close()


def rows(rng, n, concentration):
    drawn = rng.dirichlet([concentration] * n, size=n)
    return drawn / drawn.sum(axis=1, keepdims=True)


def lazy(rng, n, stays):
    mixed = stays * np.eye(n) + (1.0 - stays) * rows(rng, n, 1.0)
    return mixed / mixed.sum(axis=1, keepdims=True)


def ring(n):
    return 0.5 * (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))


def cases():
    rng = np.random.default_rng(20)
    made = []
    for _ in range(60):
        n, horizon = int(rng.integers(2, 9)), int(rng.integers(1, 60))
        epsilon = float(10.0 ** rng.uniform(-4, 0.7))
        concentration = float(10.0 ** rng.uniform(-1, 1))
        known = rng.choice(["both", "both", "past", "future"])
        backward = None if known == "future" else rows(rng, n, concentration)
        forward = None if known == "past" else rows(rng, n, concentration)
        made.append((backward, forward, epsilon, horizon))
    for stays in (0.0, 0.5, 0.9, 0.999, 1.0):
        n = int(rng.integers(2, 6))
        sticky = np.full((n, n), (1.0 - stays) / (n - 1))
        np.fill_diagonal(sticky, stays)
        made.append((sticky, sticky, 0.2, 80))
    made += [(lazy(rng, 6, 0.97), lazy(rng, 6, 0.97), 0.1, 100), (ring(6), ring(6), 0.1, 60), (ring(5), None, 2.0, 30)]
    made += [(np.full((3, 3), 1 / 3), np.full((3, 3), 1 / 3), 0.3, 9), (np.eye(2)[::-1], np.eye(2)[::-1], 3.0, 40)]
    made += [(rows(rng, 10, 0.3), rows(rng, 10, 0.3), 0.1, 100), (rows(rng, 20, 1.0), rows(rng, 20, 1.0), 0.3, 40)]
    return made


def adversary(backward, forward):
    known = [None if one is None else tdp.TransitionMatrix(one) for one in (backward, forward)]
    return tdp.Adversary(*known)


def asked(backward, forward, epsilon, horizon):
    some = backward if backward is not None else forward
    given = [None if one is None else one.tolist() for one in (backward, forward)]
    return {"backward": given[0], "forward": given[1], "n": len(some), "epsilon": epsilon, "horizon": horizon}


LEAKAGE = """(() => {
    const found = m.leakage(x);
    const taken = (series) => ["backward", "forward", "temporal"].map((name) => [...series[name]]);
    const pairs = found.worstPairs.map((pair) => found.pairs[pair]);
    return { exact: taken(found), paper: taken(found.paper), worst: m.worstCase(x).leakage, pairs };
})()"""
DIRECTIONS = ("backward", "forward", "temporal")


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"n{len(case[0] if case[0] is not None else case[1])}")
def test_leakage_is_the_librarys(compute, case):
    backward, forward, epsilon, horizon = case
    found = compute(LEAKAGE, asked(*case))
    known = adversary(backward, forward)
    for bound in ("exact", "paper"):
        series = tdp.temporal_leakage(known, [epsilon] * horizon, accounting=method_of(bound))
        for direction, here in zip(DIRECTIONS, found[bound], strict=True):
            there = getattr(series, direction)
            assert np.abs(np.array(here) - there).max() <= CLOSE * max(1.0, there.max()), (bound, direction)
    exact = tdp.temporal_leakage(known, [epsilon] * horizon)
    # never too low: not below what an observation attains
    assert (np.array(found["exact"][2]) >= exact.attained.temporal - 1e-15).all()
    assert found["worst"] == pytest.approx(exact.worst, rel=CLOSE, abs=CLOSE)
    metric = exact.evidence.metric(exact.worst_time)
    i, j = found["pairs"][exact.worst_time]
    assert metric[i, j] >= metric.max() - CLOSE


def test_the_observation_reaches_what_the_page_shows(compute):
    rng = np.random.default_rng(3)
    for _ in range(12):
        n, horizon = int(rng.integers(2, 6)), int(rng.integers(1, 14))
        backward, forward = rows(rng, n, 0.5), rows(rng, n, 0.5)
        epsilon, step = float(rng.uniform(0.1, 2.0)), int(rng.integers(0, horizon))
        line = f"(() => {{ const r = m.leakage(x); return [r.temporal[{step}], r.worstPair({step}), r.witness({step})]; }})()"
        leakage, (i, j), high = compute(line, asked(backward, forward, epsilon, horizon))
        factors = np.exp(epsilon * np.array(high, dtype=float))
        # likelihoods of all outputs before and after the step for each value there, by the chain itself
        past, future = np.ones(n), np.ones(n)
        for t in range(step):
            past = backward @ (factors[t] * past)
        for t in range(horizon - 1, step, -1):
            future = forward @ (factors[t] * future)
        likelihood = past * factors[step] * future
        assert math.log(likelihood[i] / likelihood[j]) == pytest.approx(leakage, rel=CLOSE)


def test_a_constant_budget_holds_alpha_and_is_the_largest(compute):
    rng = np.random.default_rng(4)
    for alpha in (0.05, 0.5, 1.0, 4.0):
        backward, forward = rows(rng, 4, 0.5), rows(rng, 4, 0.5)
        horizon = int(rng.integers(2, 40))
        found = compute(
            f"m.constantBudget(x, {alpha}, {{ step: x.horizon >> 1, pair: [0, 1] }})",
            asked(backward, forward, 0.0, horizon),
        )
        known = adversary(backward, forward)
        assert tdp.temporal_leakage(known, [found] * horizon).worst <= alpha
        assert tdp.temporal_leakage(known, [found * (1.0 + 1e-5)] * horizon).worst > alpha


def test_the_noise_of_a_budget_is_the_librarys(compute):
    for epsilon in (0.01, 0.3, 2.0, 9.0):
        here = compute(f"m.meanAbsoluteNoise(m.laplaceScale({epsilon}))")
        assert here == pytest.approx(mean_absolute_noise(laplace_scales([epsilon])), rel=1e-12)


def test_the_reversed_chain_is_the_librarys(compute):
    rng = np.random.default_rng(5)
    for n in (2, 3, 7):
        forward = tdp.TransitionMatrix(rows(rng, n, 0.5))
        there = forward.reversed(forward.stationary_distribution()).dense()
        here = compute("m.reversedRows(x)", forward.dense().tolist())
        assert np.allclose(here, there, rtol=1e-12, atol=1e-15)
        assert np.abs(np.sum(here, axis=1) - 1.0).max() <= tdp.ROW_SUM_TOLERANCE
    assert compute("m.reversedRows(x)", [[1.0, 0.0], [0.5, 0.5]]) is None


def test_numbers_and_sentences_are_those_of_reports(compute):
    rng = np.random.default_rng(6)
    values = [*(10.0 ** rng.uniform(-8, 4, size=2_000)), 0.0, 1.0, 0.1, 9999.5, 0.00012345, 12345.678, 0.6632]
    values = [float(value) for value in values]
    here = compute("x.map((v) => [m.up(v), m.down(v), m.factor(v), m.percent(1 / (1 + Math.exp(-v)))])", values)
    for value, told in zip(values, here, strict=True):
        there = [sentences.number(value, up=True), sentences.number(value, down=True), sentences.factor(value)]
        assert told == [*there, sentences.percent(1.0 / (1.0 + math.exp(-value)))], value
    shared = {"sentences": sentences.TEMPLATES, "priors": sentences.PRIORS}
    for leakage in (0.1, 1.0, 5.0, 20.0):
        for delta in (0.0, 1e-3, 1e-6, 1e-10):
            said = compute("m.meaning(x[0], x[1], x[2])", [leakage, delta, shared])
            assert said["odds"] == sentences.odds(leakage, delta)
            assert said["surest"] == sentences.posteriors(leakage, delta)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#from=sticky&values=7&stays=0.91&knows=past&noise=any&epsilon=0.3&delta=0&horizon=12&alpha=0.7",
        "#from=sample&noise=gaussian&scale=12.5&delta=1e-7&horizon=30&alpha=2&b.from=sticky&b.values=2",
        "#from=matrix&names=a%2Cb,%3Cscript%3E&forward=0.25,0.75;0.5,0.5&horizon=3",
    ],
)
def test_a_link_carries_a_setting(compute, text):
    first = compute("m.settingsOf(x)", text)
    assert first["problems"] == []
    again = compute("m.settingsOf('#' + m.fragment(m.settingsOf(x).settings).text)", text)
    assert again == first


@pytest.mark.parametrize(
    "text",
    ["#epsilon=-1", "#horizon=1e9", "#from=nowhere", "#delta=2", "#from=matrix&names=a&forward=1", "#values=2.5"],
)
def test_a_link_that_is_wrong_says_so_and_shows_the_rest(compute, text):
    found = compute("m.settingsOf(x)", text)
    assert len(found["problems"]) == 1
    assert found["settings"] == [compute("({...m.DEFAULT})")]
