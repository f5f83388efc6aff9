"""The ledger of a learned correlation: one spend about people, apart from accounts of states."""

from __future__ import annotations

import pytest

from data_sets import sleep_sample
from temporaldp import Adversary, Ledger, TemporalAccountant, learn_correlation


@pytest.mark.parametrize("epsilon", [0.4, 1e4])
def test_enclosing_accountant_does_not_count_the_cost_of_learning(tmp_path, epsilon):
    with TemporalAccountant(Adversary(), alpha=1.0) as accountant:
        learn_correlation(sleep_sample(), epsilon=epsilon, ledger=tmp_path / "learned.db")
        accountant.spend(0.05)
    assert accountant.spent.tolist() == [0.05]
    with Ledger(tmp_path / "learned.db") as ledger:
        assert ledger.epsilons.tolist() == [epsilon] and ledger[0].last
        assert ledger.configuration["neighboring_relation"] == "replace_person"
