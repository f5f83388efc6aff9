"""What Figure 5 compares with: the paper's algorithm and general solvers, against exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from making import random_correlation
from oracles import exact_loss, highs_loss
from reproduction import peers
from reproduction.peers import algorithm_1, drawn_rows, exact, survey


@pytest.mark.long
@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_algorithm_1_is_exact_at_moderate_levels(alpha):
    for n in (2, 5, 9):
        rows = random_correlation(n, rng=n).dense()
        assert algorithm_1(rows, alpha).losses.max() == pytest.approx(exact_loss(rows, alpha), rel=1e-11)


@pytest.mark.parametrize("name", peers.installed())
@pytest.mark.parametrize("form", ["bounds", "paper"])
def test_solvers_solve_the_paper_s_program_at_moderate_levels(name, form):
    rows = drawn_rows(6, 1, seed=3)
    for alpha in (0.5, 5.0):
        found = peers.SOLVERS[name](rows[0], rows[1], alpha, form=form)
        assert found.status == peers.OPTIMAL
        assert found.value == pytest.approx(float(exact(rows[0], rows[1], alpha)), rel=1e-6)


def test_exact_solution_agrees_with_all_prefixes_and_a_solver():
    rows = np.asarray(random_correlation(4, rng=5).dense())
    pairs = [(q, d) for a, q in enumerate(rows) for b, d in enumerate(rows) if a != b]
    assert float(max(exact(q, d, 2.0) for q, d in pairs)) == pytest.approx(exact_loss(rows, 2.0), rel=1e-13)
    assert float(max(exact(q, d, 2.0) for q, d in pairs)) == pytest.approx(highs_loss(rows, 2.0), rel=1e-9)


def test_survey_counts_right_wrong_and_refused_results():
    def liar(q, d, alpha, form="bounds"):
        return peers.Answer(1.0, peers.OPTIMAL) if alpha < 2 else peers.Answer(math.nan, "infeasible")

    lied, gave_up = survey(4, [1.0, 3.0], seed=0, forms=["bounds"], solvers={"liar": liar}, pairs=3)
    assert (lied.wrong, lied.right, lied.pairs) == (3, 0, 3)
    assert (gave_up.wrong, gave_up.right, gave_up.status) == (0, 0, "3 infeasible")


def test_rounds_agree_with_a_pair_solved_by_hand():
    """q = (.6, .3, .1), d = (.1, .3, .6): the first column alone, deleted never: one round; and the other way round."""
    matrix = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.1, 0.3, 0.6]])
    assert algorithm_1(matrix, 1.0).rounds.tolist() == [1, 1, 1, 1, 1, 1]
    # ratios 10 and 1.25 against (.9 k + 1) / (.45 k + 1) at k = e^10 - 1, which is nearly 2: the second column goes, then none
    matrix = np.array([[0.4, 0.5, 0.1], [0.04, 0.4, 0.56], [0.04, 0.4, 0.56]])
    assert algorithm_1(matrix, 10.0).rounds[0] == 2
