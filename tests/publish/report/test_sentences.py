"""Numbers and sentences that report, card, command line and page share."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from temporaldp import Exact, LeakageSupremum, PaperBound
from temporaldp.base.display import number, spread
from temporaldp.core.planning import Guarantee
from temporaldp.publish.report import sentences
from temporaldp.publish.report.sentences import NoiseBesideCounts


@pytest.mark.parametrize(
    ("value", "shown", "up"),
    [
        (1.03325, "1.033", "1.0333"),
        (0.1, "0.1", "0.1"),
        (0.30000000000000004, "0.3", "0.3"),
        (12345.6, "12350", "12350"),
        (123.41, "123.4", "123.5"),
        (1e-7, "1e-07", "1e-07"),
        (1.00001, "1", "1.0001"),
        (0.0, "0", "0"),
        (float("inf"), "inf", "inf"),
    ],
)
def test_numbers_of_guarantees_are_rounded_up(value, shown, up):
    assert float(number(value)) == float(shown)
    assert float(number(value, up=True)) == float(up)


def test_admissible_budgets_are_rounded_down():
    assert number(0.0211543, up=True) == "0.02116"
    assert number(0.0211589, down=True) == "0.02115"
    assert number(0.3 - 1e-16, down=True) == "0.3"
    assert spread(np.array([0.021151, 0.021159]), up=True, digits=4) == "0.02116"


def test_infinite_bounds_are_words():
    assert sentences.upper(math.inf) == sentences.nats(math.inf) == "without bound"
    assert sentences.nats(0.66321) == "0.6633 nats"


@pytest.mark.parametrize(
    ("temporal", "certified", "words"),
    [
        (0.7, True, "0.7"),
        (0.7, False, "at most 0.7"),
        (math.inf, True, "without bound"),
        (math.inf, False, "not known to be bounded"),
    ],
)
def test_a_supremum_is_qualified(temporal, certified, words):
    assert sentences.supremum(LeakageSupremum(0.1, 0.1, 0.1, temporal, certified=certified)) == words


def test_levels_are_never_understated():
    assert sentences.satisfied(1.0) == "1-DP_T"
    assert sentences.satisfied(1.0000001) == "1.0001-DP_T"
    assert sentences.satisfied(0.5, 1e-6) == "(0.5, 1e-06)-DP_T"
    assert sentences.guarantee_line(1.0, 0.0) == (
        "at most 1 nat about any step (1-DP_T), for observers who know the correlation"
    )
    assert sentences.guarantee_line(1.0, 1e-6, Guarantee("user")) == (
        "at most 1 nat at delta 1e-06 about all states of a person together (user level), for every correlation"
    )
    assert "at most 1 nat at delta 1e-06 about any step ((1, 1e-06)-DP_T)" in sentences.guarantee_line(1.0, 1e-6)


@pytest.mark.parametrize(
    ("every", "zone", "words"),
    [
        ("steps", None, "every 24 steps; each epoch satisfies 1-DP_T by itself"),
        ("weekly", "Pacific/Auckland", "weekly, by the clock of Pacific/Auckland; each epoch satisfies 1-DP_T"),
        ("weekly", None, "weekly, by the clock that the published times are written with; each epoch satisfies 1-DP_T"),
    ],
)
def test_a_renewed_level_in_one_line(every, zone, words):
    renewal = SimpleNamespace(every=every, n_steps=24, alpha=1.0, promise=1.23456, timezone=zone)
    line = sentences.renewed_line(renewal)
    assert line.startswith(words)
    assert line.endswith("all epochs together satisfy 1.2346-DP_T")


@pytest.mark.parametrize("leakage", [0.1, 1.0, 5.0])
def test_odds_and_posteriors_follow_from_the_leakage(leakage):
    assert sentences.factor(leakage) in sentences.odds(leakage, 0.0)
    assert sentences.percent(1.0 / (1.0 + math.exp(-leakage))) in sentences.posteriors(leakage, 0.0)
    assert "plus a probability of 0.001" in sentences.odds(leakage, 1e-3)
    assert "is correct with probability at most" in sentences.posteriors(leakage, 1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.01])
def test_a_guarantee_states_its_odds_its_number_and_its_condition(delta):
    step, person = sentences.guarantee_sentences(1.0, delta, "an observer who knows much", 4.7, moment="in one day")
    right = (math.e + delta) / (1.0 + math.e)  # of the best test of two hypotheses that are equally likely
    assert float(step.partition(" at most ")[2].partition(" %")[0]) == pytest.approx(100.0 * right, abs=0.11)
    assert float(step.partition(" at most ")[2].partition(" %")[0]) >= 100.0 * right
    assert "about one person's state in one day" in step and step.endswith(", for an observer who knows much.")
    assert "all states of one person in these steps together" in person
    assert person.endswith(", for every observer and every correlation.")
    for sentence, most in ((step, "1 nat"), (person, "4.7 nats")):
        assert f" %: {most}{sentences.at_delta(delta)}, for " in sentence
        assert ("between two equally likely alternatives" in sentence) == (delta > 0.0)


def test_a_guarantee_without_a_bound_says_so():
    step, person = sentences.guarantee_sentences(1.0, 1e-6, "an observer", math.inf)
    assert "not known to be bounded, for every observer" in person and "not known" not in step


@pytest.mark.parametrize("leakage", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_a_guess_is_right_as_often_as_against_the_mechanism_that_reveals_most(leakage, delta):
    """It reveals the state with probability delta, and otherwise says the truth e^leakage times as often as a lie."""
    truth = math.exp(leakage) / (math.exp(leakage) + 1.0)
    assert sentences.best_guess(leakage, delta) == pytest.approx(delta + (1.0 - delta) * truth, rel=1e-12)
    assert sentences.best_guess(math.inf, delta) == 1.0


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.52498, "52.5 %"), (0.65999, "66 %"), (0.50001, "50.1 %"), (0.5, "50 %"), (0.99874, "99.88 %"), (1.0, "100 %")],
)
def test_probabilities_are_rounded_up_with_a_decimal_at_least(value, shown):
    assert sentences.percent(value) == shown


def test_certainty_is_not_excluded_at_extreme_leakage():
    assert sentences.posteriors(40.0, 1e-6).startswith("Certainty is not excluded")


def test_the_cost_of_learning_and_the_total_are_rounded_up():
    words = sentences.learning_cost(2.00001, 3.00001, 1e-6)
    assert (
        words == "2.0001 nats for all states of a person together; with the release, 3.0001 nats at delta 1e-06 in all"
    )


def test_upper_bounds_name_their_method():
    assert sentences.accounting_line(Exact()) == "exact"
    assert sentences.accounting_line(PaperBound()) == "upper bound (accounting method: paper)"


def test_large_noise_is_warned_of():
    assert NoiseBesideCounts(10.0, 100, 5).warning is None
    assert "more than half of an average count: 15, compared with" in NoiseBesideCounts(15.0, 100, 5).warning
    assert "more than an average count: 30, compared with" in NoiseBesideCounts(30.0, 100, 5).warning


def test_the_length_of_a_step_is_in_the_largest_unit():
    lengths = {
        "900 seconds": "15 minutes",
        "3600 seconds": "1 hour",
        "604800 seconds": "7 days",
        "90 seconds": "90 seconds",
    }
    assert {step: sentences.duration(step) for step in lengths} == lengths
    assert [sentences.duration(step) for step in (None, "1 months", "1")] == [None, "1 months", "1"]
