"""Matrices and plans on disk: bit by bit, or a clear refusal, and never half a file."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

from making import around
from matrices import matrices
from temporaldp import (
    Adversary,
    ApproximateDP,
    Exact,
    GaussianNoise,
    InputError,
    IntervalMatrix,
    LeakageSeries,
    MetricPrivacy,
    PaperBound,
    Periodic,
    TransitionMatrix,
    leakage_supremum,
    load_correlation,
    load_leakage,
    load_matrix,
    load_plan,
    plan_budget,
    save_correlation,
    save_leakage,
    save_matrix,
    save_plan,
    temporal_leakage,
)
from temporaldp.base.errors import MatrixError, MissingFileError, OutputError, StateError
from temporaldp.core.correlation import Correlation
from temporaldp.data.files.atomic import replacing
from temporaldp.publish.release.resuming import correlations_of

SUFFIXES = (".csv", ".json")
CHAIN = TransitionMatrix([[0.1, 0.9], [1 / 3, 2 / 3]], ["caf\u00e9, bar", 'the "shop"'])


@given(matrices(), st.sampled_from(SUFFIXES))
def test_matrices_round_trip_exactly(tmp_path_factory, matrix, suffix):
    path = tmp_path_factory.mktemp("matrix") / f"m{suffix}"
    save_matrix(matrix, path)
    assert load_matrix(path) == matrix


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_state_names_with_separators_round_trip(tmp_path, suffix):
    save_matrix(CHAIN, tmp_path / f"m{suffix}")
    assert load_matrix(tmp_path / f"m{suffix}") == CHAIN
    assert [path.name for path in tmp_path.iterdir()] == [f"m{suffix}"]


def test_sparse_matrices_stay_sparse_in_json(tmp_path):
    matrix = TransitionMatrix(sparse.eye_array(100, format="csr"))
    save_matrix(matrix, tmp_path / "m.json")
    again = load_matrix(tmp_path / "m.json")
    assert again.is_sparse
    assert again == matrix


@pytest.mark.parametrize(
    ("name", "content", "error", "message"),
    [
        ("m.csv", "", MatrixError, "header row"),
        ("m.csv", ",a,b\na,0.5,0.5\n", MatrixError, "first column"),
        ("m.csv", ",a,b\nb,0.5,0.5\na,0.5,0.5\n", MatrixError, "first column"),
        ("m.csv", ",a,b\na,0.5\nb,0.5,0.5\n", MatrixError, "2 numbers in row 'a', got 1"),
        ("m.csv", ",a,b\na,half,0.5\nb,0.5,0.5\n", MatrixError, "number in row 'a', got 'half'"),
        ("m.csv", ",a,b\na,0.5,0.4\nb,0.5,0.5\n", MatrixError, "row 'a' .row 0. sums to 0.9"),
        ("m.csv", ",a,a\na,0.5,0.5\na,0.5,0.5\n", StateError, "given twice"),
        ("m.json", "{", MatrixError, "save_matrix writes"),
        ("m.json", '{"states": ["a", "b"]}', MatrixError, "probabilities"),
        ("m.json", "[1, 2]", MatrixError, "an object of 'states' and 'probabilities', .*got list"),
        ("m.json", '{"states": ["a"], "x": 1}', MatrixError, "got one of 'states', 'x'"),
        ("m.json", '{"each": [], "phase": 0}', InputError, "at least 2 phases"),
        ("m.json", '{"backward": null, "forward": null}', MatrixError, "got one of 'backward', 'forward'"),
        ("m.txt", "", InputError, ".csv or .json"),
    ],
)
def test_files_without_a_matrix_are_refused(tmp_path, name, content, error, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        load_matrix(tmp_path / name)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(MissingFileError, match=r"absent\.csv does not exist"):
        load_matrix(tmp_path / "absent.csv")
    with pytest.raises(MissingFileError, match="is a folder"):
        load_plan(tmp_path)


def test_interrupted_write_keeps_the_previous_file(tmp_path):
    path = tmp_path / "kept.txt"
    path.write_text("before")

    def interrupted():
        with replacing(path) as temporary:
            temporary.write_text("half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.txt"]


def test_full_disk_keeps_the_previous_file(tmp_path, monkeypatch):
    path = tmp_path / "m.csv"
    save_matrix(CHAIN, path)
    before = path.read_bytes()

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OutputError, match=r"No space left on device; .*the file was not written"):
        save_matrix(TransitionMatrix([[0.5, 0.5], [0.5, 0.5]]), path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("place", ["no/such/folder/m.csv", "folder.csv"])
def test_unwritable_paths_are_named(tmp_path, place):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputError, match="cannot write"):
        save_matrix(CHAIN, tmp_path / place)


def test_names_that_look_like_formulas_are_quoted_and_round_trip(tmp_path):
    matrix = TransitionMatrix(np.full((4, 4), 0.25), ['=HYPERLINK("http://x")', "-2+3", "'=x", "-5"])
    save_matrix(matrix, tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][1:] == [row[0] for row in rows[1:]] == ['\'=HYPERLINK("http://x")', "'-2+3", "''=x", "-5"]
    assert load_matrix(tmp_path / "m.csv") == matrix


@pytest.mark.parametrize("horizon", [None, 1, 5])
def test_plans_round_trip(tmp_path, horizon):
    matrix = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], ["a", "b"])
    plan = plan_budget(Adversary(matrix, matrix), alpha=1.5, horizon=horizon)
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.epsilons.tolist() == plan.epsilons.tolist()
    assert again.leakage.worst == plan.leakage.worst
    for field in (
        "alpha",
        "horizon",
        "method",
        "states",
        "has_phases",
        "provenance",
        "optimality",
        "accounting",
        "delta",
    ):
        assert getattr(again, field) == getattr(plan, field)


WALK = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], ["a", "b"])
ONE = Adversary(WALK, WALK)


@pytest.mark.parametrize(
    "found",
    [
        temporal_leakage(ONE, [0.1, 0.0, 0.3]),
        temporal_leakage({"Ann": ONE, "Bo": Adversary(WALK)}, [0.1] * 4, accounting=PaperBound()),
        temporal_leakage(ONE, [GaussianNoise(10.0, 1.0)] * 3, accounting=ApproximateDP(1e-6)),
        temporal_leakage(ONE, [0.1] * 3, accounting=MetricPrivacy([[0.0, 2.0], [2.0, 0.0]])),
        temporal_leakage(ONE, [0.1] * 9, accounting=Exact(effort=0.0)),
        leakage_supremum(ONE, 0.1),
        leakage_supremum({"Ann": ONE}, 0.1, accounting=PaperBound()),
        leakage_supremum(Adversary(TransitionMatrix(np.eye(2))), 0.1),
        leakage_supremum(ONE, 0.1, accounting=Exact(effort=0.0)),
    ],
    ids=repr,
)
def test_leakage_round_trips(tmp_path, found):
    save_leakage(found, tmp_path / "leakage.json")
    again = load_leakage(tmp_path / "leakage.json")
    assert type(again) is type(found)
    for name in ("backward", "forward", "temporal", "label", "delta", "accounting", "worst"):
        assert np.array_equal(getattr(again, name), getattr(found, name)), name
    if isinstance(found, LeakageSeries):
        assert [one.name for one in again.members] == [one.name for one in found.members]
        assert again.worst_user == found.worst_user and again.gap == pytest.approx(found.gap, abs=1e-12)
        assert np.array_equal(again.epsilons, found.epsilons)
    else:
        assert (again.worst_user, again.certified) == (found.worst_user, found.certified)
        assert again.attained() == found.attained()


def test_edited_leakage_is_refused(tmp_path):
    path = tmp_path / "leakage.json"
    save_leakage(temporal_leakage(ONE, [0.1] * 3), path)
    path.write_text(path.read_text().replace('"horizon": 3', '"horizon": 4'))
    with pytest.raises(InputError, match=r"was changed after it was made.*compute it again"):
        load_leakage(path)
    save_plan(plan_budget(ONE, alpha=1.0, horizon=3), path)
    with pytest.raises(InputError, match=r"expected format 'temporaldp\.leakage/1'"):
        load_leakage(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other/9"}, "expected format"),
        ({"epsilons": [10.0, 10.0, 10.0]}, "was changed after it was made"),
        ({"alpha": 0.5}, "was changed after it was made"),
        ({"alpha": float("inf")}, "expected a plan as `temporaldp plan` writes it, got something else"),
        ({"leakage": {}}, "was changed after it was made"),
        ({"neighboring_relation": "add_remove"}, "was changed after it was made"),
        ({"digest": 5}, "was changed after it was made"),
    ],
)
def test_edited_plans_are_refused(tmp_path, change, message):
    path = tmp_path / "plan.json"
    save_plan(plan_budget(Adversary(), alpha=1.0, horizon=3), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        load_plan(path)


@pytest.mark.parametrize(
    "change",
    [
        {"states": ["a\nb; touch x", "c"]},
        {"provenance": {"source": "history", "step": "1\x1b[31m"}},
        {"provenance": {"source": "history", "sentence": "a history\r"}},
        {"provenance": {"source": "history", "warning": "nothing\u202e"}},
    ],
)
def test_plans_with_control_characters_are_refused(tmp_path, change):
    path = tmp_path / "plan.json"
    save_plan(plan_budget(Adversary(), alpha=1.0, horizon=3), path)
    document = json.loads(path.read_text()) | change
    del document["digest"]
    spelled = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps(document | {"digest": hashlib.sha256(spelled.encode()).hexdigest()}))
    with pytest.raises(InputError, match="control characters"):
        load_plan(path)


def test_a_truncated_plan_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    save_plan(plan_budget(Adversary(), alpha=1.0, horizon=3), path)
    path.write_text(path.read_text()[:100])
    with pytest.raises(InputError, match="expected a plan"):
        load_plan(path)
    path.write_text("[" * 100_000)
    with pytest.raises(InputError, match="expected a plan"):
        load_plan(path)
    path.write_bytes(bytes(np.arange(255, dtype=np.uint8)))
    with pytest.raises(InputError, match="expected a plan"):
        load_plan(path)


def test_devices_and_pipes_are_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(OutputError, match="not a regular file"):
        save_matrix(CHAIN, pipe)
    assert pipe.is_fifo()


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_is_not_followed(tmp_path, exists):
    """A user with write access to an output folder could otherwise redirect a job to any file of its owner."""
    real = tmp_path / "real.csv"
    if exists:
        real.write_text("precious")
    (tmp_path / "link.csv").symlink_to(real)
    with pytest.raises(OutputError, match="symbolic link"):
        save_matrix(CHAIN, tmp_path / "link.csv")
    assert (real.read_text() if real.exists() else None) == ("precious" if exists else None)


@pytest.mark.parametrize("damage", ["truncated", "empty", "index out of range", "negative index", "too few"])
def test_damaged_sparse_matrices_are_refused(tmp_path, damage):
    path = tmp_path / "m.json"
    save_matrix(CHAIN, path)
    if damage in ("truncated", "empty"):
        path.write_bytes(path.read_bytes()[: 30 if damage == "truncated" else 0])
    else:
        columns = {"index out of range": [0, 5], "negative index": [0, -1], "too few": [0]}[damage]
        path.write_text(
            json.dumps({"states": ["a", "b"], "rows": [0, 1, 2], "columns": columns, "probabilities": [1, 1]})
        )
    with pytest.raises(MatrixError, match=r"m\.json: expected a transition matrix as save_matrix writes it"):
        load_matrix(path)


BOX = IntervalMatrix([[0.7, 0.1], [0.0, 0.8]], [[0.9, 0.3], [0.2, 1.0]], CHAIN.states)
SPARSE = TransitionMatrix(sparse.csr_array([[0.0, 1.0], [0.5, 0.5]]), CHAIN.states)
KNOWN = {
    "constant": Adversary(CHAIN, SPARSE),
    "one direction": Adversary(forward=CHAIN),
    "intervals": Adversary(BOX, around(CHAIN, width=0.1)),
    "each step": Adversary.from_forward([CHAIN, CHAIN, SPARSE], initial=[0.5, 0.5]),
    "clock": Adversary(Periodic([CHAIN, SPARSE], phase=1), Periodic([SPARSE, CHAIN], phase=1)),
    "clock of intervals": Adversary(forward=Periodic([CHAIN, BOX])),
}


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_correlations_round_trip_with_their_digest(tmp_path, known):
    save_correlation(known, tmp_path / "c.json")
    again = load_correlation(tmp_path / "c.json")
    assert again == known
    assert [one.kind for one in again.directions] == [one.kind for one in known.directions]
    assert correlations_of([again], salt="s") == correlations_of([known], salt="s")


def test_the_digest_of_a_chain_does_not_depend_on_how_it_is_stored(tmp_path):
    dense = TransitionMatrix(SPARSE.dense(), SPARSE.states)
    stored = []
    for k, matrix in enumerate((dense, SPARSE)):
        save_matrix(matrix, tmp_path / f"{k}.csv")
        save_matrix(matrix, tmp_path / f"{k}.json")
        stored += [load_matrix(tmp_path / f"{k}.csv"), load_matrix(tmp_path / f"{k}.json"), matrix]
    assert len({str(correlations_of([Adversary(one)], salt="s")) for one in stored}) == 1


def test_the_digest_of_a_sequence_is_that_of_equal_matrices_in_its_order():
    def made(*order):
        known = [CHAIN, TransitionMatrix([[0.5, 0.5], [0.5, 0.5]], CHAIN.states)]
        return str(correlations_of([Adversary(forward=[known[k] for k in order])], salt="s"))

    again = Adversary(forward=[TransitionMatrix(CHAIN.dense(), CHAIN.states) for _ in range(3)])
    assert made(0, 0, 0) == str(correlations_of([again], salt="s"))
    assert len({made(0, 0, 1), made(0, 1, 0), made(1, 0, 0), made(0, 0, 0), made(0, 0)}) == 5


def test_repeated_matrix_is_written_once(tmp_path):
    save_correlation(Adversary(forward=[CHAIN] * 10_000), tmp_path / "c.json")
    assert (tmp_path / "c.json").stat().st_size < 100_000
    assert len(load_correlation(tmp_path / "c.json").forward.matrices) == 10_000


class Own(Correlation):
    matrices, kind = (CHAIN,), "own"

    def at(self, transition):
        return CHAIN

    def mapped(self, change):
        return self


def test_custom_correlation_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match="class Own cannot be written"):
        save_correlation(Adversary(forward=Own()), tmp_path / "c.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ([1], "an object of 'backward' and 'forward'"),
        ({"backward": None}, "an object of 'backward' and 'forward'"),
        ({"backward": None, "forward": 5}, "expected a matrix: .*got int"),
        ({"backward": None, "forward": {"each": [CHAIN.document()], "order": [0, 1]}}, "expected a correlation"),
        ({"backward": None, "forward": BOX.document() | {"provenance": {"source": "x"}}}, "source 'x' is not accepted"),
        ({"backward": None, "forward": BOX.document() | {"upper": [[1.0]]}}, "expected"),
    ],
)
def test_damaged_correlations_are_refused_with_the_location(tmp_path, change, message):
    (tmp_path / "c.json").write_text(json.dumps(change))
    with pytest.raises(InputError, match=rf"c\.json: .*{message}"):
        load_correlation(tmp_path / "c.json")


def test_files_of_killed_processes_are_removed_and_those_of_living_ones_kept(tmp_path):
    """Two processes are stopped while they write; one of them is killed."""
    target = tmp_path / "out[1].csv"
    program = (
        "import sys; from temporaldp.data.files.atomic import replacing\n"
        "with replacing(sys.argv[1]) as temporary:\n"
        "    print(temporary.write_text('half'), flush=True)\n"
        "    sys.stdin.read()\n"
    )
    kept = [tmp_path / name for name in (".out[1].csv.12345678.txt", ".out[1].csv.mine.csv", "out[1].csv.12345678.csv")]
    for path in kept:
        path.write_text("of somebody else")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    killed, living = (subprocess.Popen([sys.executable, "-c", program, target], **pipes) for _ in range(2))
    assert killed.stdout.readline() == living.stdout.readline() == "4\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert len(list(tmp_path.iterdir())) == len(kept) + 2
    with replacing(target) as temporary:
        temporary.write_text("whole")
    assert len(list(tmp_path.iterdir())) == len(kept) + 2 and target.read_text() == "whole"
    living.communicate("")
    assert living.returncode == 0 and target.read_text() == "half"
    assert sorted(tmp_path.iterdir()) == sorted([*kept, target])
