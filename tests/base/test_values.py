"""Public values compare by value: equal to their copies, unequal once anything differs; nobody can write to their arrays."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sparse

import temporaldp
from making import from_sequences, laplace_counts, random_correlation
from temporaldp import (
    Adversary,
    ApproximateDP,
    BudgetError,
    DiscreteGaussianNoise,
    DiscreteLaplaceHistogram,
    DiscreteLaplaceNoise,
    Exact,
    GaussianNoise,
    InputError,
    IntervalMatrix,
    LaplaceNoise,
    MetricPrivacy,
    OutputTable,
    PaperBound,
    Periodic,
    PrivacyGuarantee,
    Project,
    PublicCorrelation,
    RandomizedResponse,
    TransitionMatrix,
    compare_plans,
    leakage_supremum,
    plan_budget,
    plan_noise,
    release_histograms,
    smooth,
    temporal_leakage,
)
from temporaldp.base.values import (
    REPLACE_ONE,
    checked_relation,
    compared_by_value,
    positive,
    real_array,
    real_number,
    whole_number,
)
from temporaldp.core.mechanisms import ConcentratedGuarantee
from temporaldp.core.planning import plan_for_share
from temporaldp.data.counts import ClampedMean, ClampedSum, NoisyHistogram, SharedBudget
from temporaldp.data.smoothing import CountEstimate
from temporaldp.publish.deployment import Deployment
from temporaldp.publish.release import Release

ONE_WAY = [[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
"""A metric that is no box."""


def values(budget):
    """Values of every public kind, most of them made by the product itself; another budget, another value."""
    matrix = TransitionMatrix(random_correlation(3, rng=1).dense() * (1.0 - budget) + budget / 3.0, ["a", "b", "c"])
    somebody = Adversary(matrix, matrix, name="Ann")
    two = {"Ann": somebody, "Bo": Adversary(TransitionMatrix(random_correlation(3, rng=3), ["a", "b", "c"]))}
    epsilons = [budget, 0.0, 2.0 * budget]
    exact = temporal_leakage(somebody, epsilons)
    paper = temporal_leakage(two, epsilons, accounting=PaperBound())
    metric = temporal_leakage(somebody, epsilons, accounting=MetricPrivacy(ONE_WAY))
    noise = [GaussianNoise(1.0 / budget, sensitivity=1.0)] * 3
    pairs, curves = (
        temporal_leakage(somebody, noise, accounting=ApproximateDP(1e-3, pairwise=pairwise))
        for pairwise in (True, False)
    )
    walks = from_sequences([["a", "b", "c"], ["b", None, "c"]], users=["Ann", f"user {budget}"])
    still = Adversary(TransitionMatrix(np.eye(3)))
    plan = plan_budget(somebody, alpha=budget, horizon=3, accounting=PaperBound())
    noisy = plan_noise(somebody, alpha=budget, horizon=1, accounting=ApproximateDP(1e-2))
    pure, held, at_delta = (
        leakage_supremum(somebody, budget, accounting=method)
        for method in (Exact(), MetricPrivacy(ONE_WAY), ApproximateDP(1e-3))
    )
    sparse_one = TransitionMatrix(sparse.csr_array(matrix.dense()), matrix.states)
    return [
        matrix, sparse_one, somebody, Adversary([sparse_one, matrix]), walks, matrix.leakage_profile(),
        matrix.leakage_profile().witnesses[0],
        exact, exact.attained, exact.evidence, exact.witness(), paper, *paper.members, metric, metric.evidence,
        curves, curves.evidence, curves.evidence.curve(2), plan, noisy,
        pairs, pairs.evidence, attacked(budget),
        compare_plans(somebody, budget, 3), compare_plans(still, budget, 3),
        plan.optimality, dataclasses.replace(plan.provenance, step=f"{budget} hours"),
        pure, held, at_delta, pure.lower,
        GaussianNoise(1.0 / budget, sensitivity=1.0), LaplaceNoise(1.0 / budget, sensitivity=1.0),
        DiscreteGaussianNoise(1.0 / budget), DiscreteLaplaceNoise(1.0 / budget), RandomizedResponse(budget),
        PrivacyGuarantee(budget), OutputTable([[0.5 + budget / 10, 0.5 - budget / 10], [0.5, 0.5]]),
        laplace_counts([1.0 / budget, 4.0]),
        temporaldp.MatrixMechanism.tree(4, GaussianNoise(1.0 / budget, sensitivity=1.0)), temporaldp.Windows(7, budget),
        DiscreteLaplaceHistogram(int(100 * budget)), NoisyHistogram(int(100 * budget), "gaussian"),
        Release(([1, 2], None), np.array([budget, 0.0])),
        released(walks, plan), *uncertain(matrix, budget), *for_counts(matrix, plan, walks, budget), *published(budget),
    ]  # fmt: skip


def uncertain(matrix, budget):
    """What is known of a correlation that nobody knows exactly, and of people who differ."""
    walks = from_sequences([list("abcabcaabb"), list("bcabbacbca"), list("ccabaabcab")])
    chain = temporaldp.tables.estimate_words(walks, order=2, prior=budget)
    near = IntervalMatrix(matrix.dense() * 0.9, np.minimum(matrix.dense() * 1.1, 1.0), matrix.states)
    people = [Adversary(matrix, matrix, name=name) for name in ("Ann", "Bo")]
    epsilons = [budget] * 4
    found = temporaldp.studies.leakage_uncertainty(walks, epsilons=epsilons, n_draws=8)
    diagnosis = temporaldp.studies.diagnose(walks, epsilon=budget)
    return [
        near, dataclasses.replace(near.provenance, source="learnt", spends=(("one", budget),)), Periodic([near, matrix]),
        chain, temporaldp.temporal_leakage(chain, epsilons),
        found, temporaldp.studies.worst_member(Adversary(near), epsilons=epsilons), diagnosis,
        *diagnosis.models,
        temporaldp.studies.leakage_distribution(people, epsilon=budget), plan_for_share(people, alpha=budget, share=0.5),
    ]  # fmt: skip


def for_counts(matrix, plan, walks, budget):
    """Mechanisms of other tables than one histogram, and what public knowledge makes of released counts."""
    known = PublicCorrelation(matrix, provenance="a test")
    tables = {"counts": DiscreteLaplaceHistogram(int(8 * budget)), "sum": ClampedSum(0.0, budget, 2)}
    found = temporaldp.compare_guarantees(Adversary(matrix), correlation=known, n_people=50, horizon=4, alphas=[budget])
    counts = np.full((4, 3), budget)
    return [
        known, *tables.values(), ClampedMean(0.0, budget, 2), DiscreteLaplaceHistogram(3, int(8 * budget)),
        SharedBudget(tables),
        CountEstimate(counts, counts - 1.0, counts + 1.0), smooth(released(walks, plan), known, total=9),
        found, *found.rows,
    ]  # fmt: skip


def published(budget):
    """A published system, and what is asked of it."""
    loss = {"privacy_unit": "User-day-level", "privacy_parameters": {"epsilon": budget}}
    model = {"release_type": "Many releases"}
    record = {"deployment": {"basic": {"name": "x"}, "privacy_loss": loss, "deployment_model": model}}
    card = Deployment.from_record(record).card(stays=(0.5, 0.5 + budget / 10.0), tables={"all": budget})
    return [card, card.deployment, card.asked, card.unit, card.leakage, ConcentratedGuarantee(budget)]


def attacked(budget):
    """Rates that were made up: those of a release are of noise that is drawn."""
    return temporaldp.studies.ReleaseAttack(
        budget, 0.0, 3, 3, np.array([1.0, 0.0]), np.array([1.0, 0.0]), [], [], 0, 1.0
    )


def released(walks, plan):
    """Released histograms whose noise is replaced, so that they are the same every time."""
    return dataclasses.replace(release_histograms(walks, plan), counts=np.arange(9).reshape(3, 3))


@pytest.fixture(scope="module", name="kinds")
def _kinds():
    return values(0.25), values(0.25), values(0.5)


@pytest.mark.long
def test_all_public_value_types_are_covered(kinds):
    public = {
        thing
        for folder in (temporaldp, temporaldp.release)
        for thing in map(vars(folder).get, folder.__all__)
        if inspect.isclass(thing) and (dataclasses.is_dataclass(thing) or hasattr(thing, "_fields"))
    }
    # What was converted from another mechanism is reached through these; states of a computation are no values.
    assert public - {type(value) for value in kinds[0]} == {Project}


def test_values_equal_only_their_copies(kinds):
    for value, again, other in zip(*kinds, strict=True):
        pickled = pickle.loads(pickle.dumps(value))
        for same in (pickled, copy.deepcopy(value), copy.copy(value), again):
            assert same == value and not same != value, value  # noqa: SIM202  both operators are asked
            assert hash(same) == hash(value), value
        assert value != other and not value == other, value  # noqa: SIM201  both operators are asked
        assert value != 1 and value != "value"
        assert pickled == again and repr(pickled) == repr(value)


def arrays_of(value, depth=0):
    """All arrays that one reaches through public fields, tuples and sparse matrices."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        for one in value:
            yield from arrays_of(one, depth + 1)
    elif sparse.issparse(value):
        yield from (value.data, value.indices, value.indptr)
    elif dataclasses.is_dataclass(value) and depth < 4 and not type(value).__name__.startswith(("Run", "Exact")):
        for field in dataclasses.fields(value):
            yield from arrays_of(getattr(value, field.name), depth + 1)


def test_copies_are_read_only(kinds):
    seen = 0
    for value in kinds[0]:
        pickled = pickle.loads(pickle.dumps(value))
        for array, original in zip(arrays_of(pickled), arrays_of(value), strict=True):
            assert not array.flags.writeable or original.flags.writeable, value
            seen += 1
    assert seen > 50


def test_copy_behaves_like_the_original(kinds):
    for value in kinds[0]:
        if isinstance(value, temporaldp.LeakageSeries):
            pickled = pickle.loads(pickle.dumps(value))
            assert pickled.window(0, 3) == value.window(0, 3) and pickled.worst_pair() == value.worst_pair()
        if isinstance(value, temporaldp.accounting.LeakageCurves):
            # What it had computed was kept by the identity of objects: in another process others have that identity.
            assert not pickle.loads(pickle.dumps(value)).upper.curves._thetas
            assert pickle.loads(pickle.dumps(value)).curve(1) == value.curve(1)


def test_arrays_compare_by_value_and_hashes_agree():
    @compared_by_value
    @dataclasses.dataclass(frozen=True, slots=True, eq=False)
    class Pair:
        first: np.ndarray
        parts: tuple[np.ndarray, ...] = ()
        note: int = dataclasses.field(default=0, compare=False)

    same = Pair(np.array([0.0, np.nan])), Pair(np.array([-0.0, np.nan]), note=1)
    assert same[0] == same[1] and hash(same[0]) == hash(same[1])
    assert Pair(np.array([1, 2], np.int8)) == Pair(np.array([1, 2], np.int64))
    for other in (
        Pair(np.array([0.0, 1.0])),
        Pair(np.array([[0.0, np.nan]])),
        Pair(np.array([0.0])),
        Pair(np.array([0.0, np.nan]), (np.ones(1),)),
    ):
        assert same[0] != other


def test_sparse_and_dense_matrices_of_the_same_probabilities_are_equal():
    dense = TransitionMatrix([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.0, 0.75]])
    stored = TransitionMatrix(sparse.coo_array(dense.dense()))
    assert dense == stored and hash(dense) == hash(stored)
    assert stored != TransitionMatrix(sparse.csr_array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.25, 0.75, 0.0]]))


@pytest.mark.parametrize("value", [1, 3, np.int64(7)])
def test_integers_are_accepted_unchanged(value):
    found = whole_number(value, "k", least=1)
    assert found == value and type(found) is int


@pytest.mark.parametrize(
    ("value", "least", "message"),
    [
        (0, 1, "expected k to be a whole number of at least 1, got 0"),
        (True, 1, "expected k to be a whole number of at least 1, got True"),
        (1.0, None, "expected k to be a whole number, got 1.0"),
        ("3", 1, "expected k to be a whole number of at least 1, got '3'"),
        (None, None, "expected k to be a whole number, got None"),
        (-1, 0, "of at least 0, got -1"),
    ],
)
def test_invalid_integers_are_refused(value, least, message):
    for error in (InputError, BudgetError):
        with pytest.raises(error, match=message):
            whole_number(value, "k", least=least, error=error)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(0.5), np.int64(1), Fraction(1, 2), Decimal("0.5"), np.array(0.5)])
def test_real_numbers_become_floats(value):
    assert real_number(value, "x", gt=0.0, le=1.0) == float(value)
    assert type(real_number(value, "x")) is float


@pytest.mark.parametrize(
    "value",
    ["1", b"1", True, np.True_, np.array(True), np.array("1"), np.array("abc"), None, [1.0], np.nan, Decimal("sNaN"),
     10**400, Decimal("1.00000000000000000001"), 1.0],
)  # fmt: skip
def test_invalid_or_out_of_range_numbers_are_refused(value):
    with pytest.raises(BudgetError, match="expected x to be a finite number > 0 and < 1, got"):
        real_number(value, "x", gt=0.0, lt=1.0, error=BudgetError)


def test_arrays_of_real_numbers_are_refused_without_their_entries():
    assert real_array([1, 2], "x", shape=(2,), ge=0.0).tolist() == [1.0, 2.0]
    for values, message in (
        ([1.0, 7777.0], "x to be finite numbers <= 10, got 1 others, the first at (1,)"),
        ([[1.0]], "x of shape (2,), got shape (1, 1)"),
        (["a", "b"], "x to be numbers"),
        ([10**400, 1], "x to be numbers"),
    ):
        with pytest.raises(InputError) as refused:
            real_array(values, "x", shape=(2,), le=10.0)
        assert message in str(refused.value)
        assert "7777" not in str(refused.value)
    with pytest.raises(InputError, match=r"finite numbers, got others$"):
        real_array([1.0, np.nan], "x", is_protected=True)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-101, 1e101])
def test_invalid_levels_are_refused(value):
    with pytest.raises(BudgetError, match="expected alpha"):
        positive(value, "alpha")


def test_relations_other_than_replacement_are_refused():
    assert checked_relation("REPLACE_ONE") == REPLACE_ONE == "replace_one"
    with pytest.raises(InputError, match="restate sensitivities under replacement"):
        checked_relation("add_or_remove_one")


@pytest.mark.parametrize(
    "error",
    [
        temporaldp.errors.RequestRefusedError("refused", status=409, remaining=0.2),
        temporaldp.errors.LedgerChangedError("release.db", "a row is gone"),
        temporaldp.errors.MissingExtraError("tables", "traces in files", "no module"),
        temporaldp.errors.MissingFileError("no such file"),
        InputError("no such state"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_survives_pickling_with_its_message_and_fields(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args, vars(again)) == (type(error), str(error), error.args, vars(error))
