"""What Figure 5 compares with: the paper's algorithm in three forms, and general solvers, against exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oracles import exact_loss, highs_loss
from temporaldp import random_correlation
from temporaldp.paper import solvers
from temporaldp.paper.claims.calculation import rounds_of_deletion
from temporaldp.paper.compiled import algorithm1
from temporaldp.paper.survey import drawn_rows, exact, survey


@pytest.mark.long
@pytest.mark.parametrize("form", [algorithm1.literal, algorithm1.compacted, algorithm1.in_numpy])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_the_three_forms_of_algorithm_1_are_exact_at_moderate_levels(form, alpha):
    for n in (2, 5, 9):
        rows = np.ascontiguousarray(random_correlation(n, rng=n).dense())
        assert form(rows, alpha) == pytest.approx(exact_loss(rows, alpha), rel=1e-11)


@pytest.mark.parametrize("name", solvers.installed())
@pytest.mark.parametrize("form", ["bounds", "paper"])
def test_solvers_solve_the_paper_s_program_at_moderate_levels(name, form):
    rows = drawn_rows(6, 1, seed=3)
    for alpha in (0.5, 5.0):
        found = solvers.SOLVERS[name](rows[0], rows[1], alpha, form=form)
        assert found.status == solvers.OPTIMAL
        assert found.value == pytest.approx(float(exact(rows[0], rows[1], alpha)), rel=1e-6)


def test_the_exact_answer_is_that_of_every_prefix_and_of_a_solver():
    rows = np.asarray(random_correlation(4, rng=5).dense())
    pairs = [(q, d) for a, q in enumerate(rows) for b, d in enumerate(rows) if a != b]
    assert float(max(exact(q, d, 2.0) for q, d in pairs)) == pytest.approx(exact_loss(rows, 2.0), rel=1e-13)
    assert float(max(exact(q, d, 2.0) for q, d in pairs)) == pytest.approx(highs_loss(rows, 2.0), rel=1e-9)


def test_a_survey_counts_what_is_right_wrong_and_refused():
    def liar(q, d, alpha, form="bounds"):
        return solvers.Answer(1.0, solvers.OPTIMAL) if alpha < 2 else solvers.Answer(math.nan, "infeasible")

    lied, gave_up = survey(4, [1.0, 3.0], seed=0, forms=["bounds"], solvers={"liar": liar}, pairs=3)
    assert (lied.wrong, lied.right, lied.pairs) == (3, 0, 3)
    assert (gave_up.wrong, gave_up.right, gave_up.status) == (0, 0, "3 infeasible")


def test_rounds_are_those_of_a_pair_done_by_hand():
    """q = (.6, .3, .1), d = (.1, .3, .6): the first column alone, deleted never: one round; and the other way round."""
    from temporaldp import TransitionMatrix

    matrix = TransitionMatrix([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.1, 0.3, 0.6]])
    assert rounds_of_deletion(matrix, 1.0).tolist() == [1, 1, 1, 1, 1, 1]
    # ratios 10 and 1.25 against (.9 k + 1) / (.45 k + 1) at k = e^10 - 1, which is nearly 2: the second column goes, then none
    matrix = TransitionMatrix([[0.4, 0.5, 0.1], [0.04, 0.4, 0.56], [0.04, 0.4, 0.56]])
    assert rounds_of_deletion(matrix, 10.0)[0] == 2
