"""Matrices and plans on disk: bit by bit, or a clear refusal, and never half a file."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given
from hypothesis import strategies as st

from matrices import matrices
from temporaldp import (
    Adversary,
    InputError,
    TransitionMatrix,
    load_correlation,
    load_matrix,
    load_plan,
    plan_budget,
    save_correlation,
    save_matrix,
    save_plan,
)
from temporaldp.errors import MatrixError, MissingFileError, OutputError, StateError
from temporaldp.files.atomic import replacing

SUFFIXES = (".csv", ".json", ".npz")
CHAIN = TransitionMatrix([[0.1, 0.9], [1 / 3, 2 / 3]], ["caf\u00e9, bar", 'the "shop"'])


@given(matrices(), st.sampled_from(SUFFIXES))
def test_matrices_come_back_bit_by_bit(tmp_path_factory, matrix, suffix):
    path = tmp_path_factory.mktemp("matrix") / f"m{suffix}"
    save_matrix(matrix, path)
    assert load_matrix(path) == matrix


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_state_names_with_separators_come_back(tmp_path, suffix):
    save_matrix(CHAIN, tmp_path / f"m{suffix}")
    assert load_matrix(tmp_path / f"m{suffix}") == CHAIN
    assert [path.name for path in tmp_path.iterdir()] == [f"m{suffix}"]


def test_sparse_matrices_stay_sparse_in_npz(tmp_path):
    matrix = TransitionMatrix(sparse.eye_array(100, format="csr"))
    save_matrix(matrix, tmp_path / "m.npz")
    again = load_matrix(tmp_path / "m.npz")
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
        ("m.json", "[1, 2]", MatrixError, "save_matrix writes"),
        ("m.npz", "not a zip", MatrixError, "save_matrix writes"),
        ("m.txt", "", InputError, ".csv or .json or .npz"),
    ],
)
def test_files_that_hold_no_matrix_are_refused(tmp_path, name, content, error, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        load_matrix(tmp_path / name)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(MissingFileError, match=r"absent\.csv does not exist"):
        load_matrix(tmp_path / "absent.csv")
    with pytest.raises(MissingFileError, match="is a folder"):
        load_plan(tmp_path)


def test_an_interrupted_write_leaves_what_was_there(tmp_path):
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


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "m.csv"
    save_matrix(CHAIN, path)
    before = path.read_bytes()

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(OutputError, match=r"No space left on device; .*nothing was written"):
        save_matrix(TransitionMatrix([[0.5, 0.5], [0.5, 0.5]]), path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("place", ["no/such/folder/m.csv", "folder.csv"])
def test_places_that_cannot_be_written_are_named(tmp_path, place):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OutputError, match="cannot write"):
        save_matrix(CHAIN, tmp_path / place)


def test_a_name_that_a_spreadsheet_would_run_is_quoted_and_comes_back(tmp_path):
    matrix = TransitionMatrix(np.full((4, 4), 0.25), ['=HYPERLINK("http://x")', "-2+3", "'=x", "-5"])
    save_matrix(matrix, tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0][1:] == [row[0] for row in rows[1:]] == ['\'=HYPERLINK("http://x")', "'-2+3", "''=x", "-5"]
    assert load_matrix(tmp_path / "m.csv") == matrix


@pytest.mark.parametrize("horizon", [None, 1, 5])
def test_plans_come_back_whole(tmp_path, horizon):
    matrix = TransitionMatrix([[0.8, 0.2], [0.1, 0.9]], ["a", "b"])
    plan = plan_budget(Adversary(matrix, matrix), alpha=1.5, horizon=horizon)
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.epsilons.tolist() == plan.epsilons.tolist()
    assert again.leakage.worst == plan.leakage.worst
    for field in ("alpha", "horizon", "method", "source", "optimality", "accounting", "delta"):
        assert getattr(again, field) == getattr(plan, field)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other/9"}, "expected format"),
        ({"epsilons": [10.0, 10.0, 10.0]}, "was changed after it was made"),
        ({"alpha": 0.5}, "was changed after it was made"),
        ({"alpha": float("inf")}, "content does not fit"),
        ({"leakage": {}}, "was changed after it was made"),
        ({"neighboring_relation": "add_remove"}, "was changed after it was made"),
        ({"digest": 5}, "was changed after it was made"),
    ],
)
def test_plans_that_were_changed_are_refused(tmp_path, change, message):
    path = tmp_path / "plan.json"
    save_plan(plan_budget(Adversary(), alpha=1.0, horizon=3), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError, match=message):
        load_plan(path)


@pytest.mark.parametrize(
    "source",
    [
        {"states": ["a\nb; touch x", "c"]},
        {"step": "1\x1b[31m"},
        {"provenance": "a history\r"},
        {"warning": "nothing\u202e"},
    ],
)
def test_plans_with_control_characters_are_refused(tmp_path, source):
    path = tmp_path / "plan.json"
    save_plan(plan_budget(Adversary(), alpha=1.0, horizon=3), path)
    document = json.loads(path.read_text())
    document["source"] |= source
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
    with pytest.raises(OutputError, match="no regular file"):
        save_matrix(CHAIN, pipe)
    assert pipe.is_fifo()


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_is_not_followed(tmp_path, exists):
    """Whoever may write to a folder of outputs could lead a job to any file of its user."""
    real = tmp_path / "real.csv"
    if exists:
        real.write_text("precious")
    (tmp_path / "link.csv").symlink_to(real)
    with pytest.raises(OutputError, match="symbolic link"):
        save_matrix(CHAIN, tmp_path / "link.csv")
    assert (real.read_text() if real.exists() else None) == ("precious" if exists else None)


@pytest.mark.parametrize("save", [save_matrix, lambda matrix, path: save_correlation(Adversary(matrix), path)])
def test_a_small_archive_that_grows_is_refused(save, tmp_path):
    path = tmp_path / "m.npz"
    save(CHAIN, path)
    load = load_matrix if save is save_matrix else load_correlation
    assert load(path) in (CHAIN, Adversary(CHAIN))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("more.npy", "w") as part:
        for _ in range(65):
            part.write(bytes(16 << 20))
    assert path.stat().st_size < 2 << 20
    with pytest.raises(MatrixError, match="at most 1024 MiB"):
        load(path)


@pytest.mark.parametrize("damage", ["truncated", "empty", "index out of range", "negative index"])
def test_damaged_archives_are_refused(tmp_path, damage):
    path = tmp_path / "m.npz"
    if damage in ("truncated", "empty"):
        save_matrix(CHAIN, path)
        path.write_bytes(path.read_bytes()[: 60 if damage == "truncated" else 0])
    else:
        indices = np.array([0, 5 if "range" in damage else -1])
        np.savez(path, states=np.array(["a", "b"]), data=np.ones(2), indices=indices, indptr=np.array([0, 1, 2]))
    with pytest.raises(MatrixError, match="save_matrix writes"):
        load_matrix(path)
