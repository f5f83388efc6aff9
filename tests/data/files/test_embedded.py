"""Files of any size: which they are, what is wrong with them, and what is left behind."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from temporaldp import InputError, load_sample, read_traces
from temporaldp.base.errors import MissingFileError, OutputError, StateError, TraceError
from temporaldp.data.files.embedded import Embedded
from temporaldp.data.files.spilled import remove_folder, temporary_folder

LONG = "user,time,state\n"


@pytest.fixture(autouse=True)
def own_temporary_files(tmp_path_factory, monkeypatch):
    """Apart from those of tests that run at the same time."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


def temporary():
    return set(Path(tempfile.gettempdir()).glob("temporaldp-*"))


def write(folder, **files):
    for name, rows in files.items():
        (folder / f"{name}.csv").write_text(LONG + rows)
    return folder


def test_patterns_and_folders_are_read_in_order_of_names(tmp_path):
    write(tmp_path, b="1,1,b\n2,1,a\n", a="1,0,a\n2,0,b\n", c="1,2,a\n2,2,a\n")
    (tmp_path / "_notes.csv").write_text("nothing of it")
    for source in (tmp_path, tmp_path / "[a-c].csv", str(tmp_path / "*[abc].csv")):
        found = read_traces(source)
        assert found.times == ("0", "1", "2")
        assert found.codes.tolist() == [[0, 1, 0], [1, 0, 0]]
    with pytest.raises(MissingFileError, match=r"none at .*d\*\.csv; of a folder"):
        read_traces(tmp_path / "d*.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingFileError, match=r"none at .*; of a folder, \.parquet, \.csv, \.tsv are read"):
        read_traces(tmp_path / "empty")


def test_folder_with_new_files(tmp_path):
    write(tmp_path, a="1,0,a\n2,0,b\n")
    write(tmp_path, b="1,1,b\n2,1,a\n")
    assert read_traces(tmp_path).n_times == 2
    write(tmp_path, c="1,2,b\n")
    assert read_traces(tmp_path).n_times == 3
    (tmp_path / "d.csv").write_text((tmp_path / "b.csv").read_text())  # a file that came twice
    with pytest.raises(TraceError, match=r"data row 1 of d\.csv"):
        read_traces(tmp_path)
    with pytest.raises(
        TraceError, match=r"two states at time '1' \(data row 1 of b\.csv and data row 1 of d\.csv: 'b', 'b'\)"
    ):
        read_traces(tmp_path, sort=True)


def test_inconsistent_files_are_refused(tmp_path):
    write(tmp_path, a="1,0,a\n")
    (tmp_path / "b.csv").write_text("user,time,where\n1,1,b\n")
    with pytest.raises(TraceError, match=r"different columns: a\.csv has .*'state', b\.csv has .*'where'"):
        read_traces(tmp_path)
    (tmp_path / "b.csv").unlink()
    parquet.write_table(pa.table({"user": [1], "time": [1], "state": ["b"]}), tmp_path / "b.parquet")
    with pytest.raises(TraceError, match="several kinds"):
        read_traces(tmp_path)


def test_columns_of_one_name_agree_in_all_files(tmp_path):
    """DuckDB alone would take the type of the first file for all, and round the others' entries to it."""
    ids, states = np.array([1, 1]), np.array(["a", "b"])
    parquet.write_table(
        pa.table({"user": ids, "time": [0, 1], "state": [1, 2], "note": [0, 0]}), tmp_path / "a.parquet"
    )
    for column, entries, found in [
        ("user", [1.5, 1.5], "holds whole numbers in a.parquet and numbers with fractions in b.parquet"),
        ("state", [1.5, 2.5], "holds whole numbers in a.parquet and numbers with fractions in b.parquet"),
        ("state", states, "holds whole numbers in a.parquet and text in b.parquet"),
        (
            "time",
            np.array(["2024-01-01", "2024-01-02"], "M8[s]"),
            "holds whole numbers in a.parquet and times without a zone in b.parquet",
        ),
    ]:
        other = {"user": ids + 1, "time": [0, 1], "state": [2, 1], "note": [0, 1]} | {column: entries}
        parquet.write_table(pa.table(other), tmp_path / "b.parquet")
        with pytest.raises(TraceError, match=rf"column '{column}' {found}; write it with one type"):
            read_traces(tmp_path)
    # A column that is not asked for may hold what it likes; whole numbers may take fewer bytes.
    other = {"user": (ids + 1).astype(np.int8), "time": pa.array([0, 1], pa.int16()), "state": [2, 1], "note": states}
    parquet.write_table(pa.table(other), tmp_path / "b.parquet")
    found = read_traces(tmp_path)
    assert found.users == ("1", "2") and found.transition_counts().tolist() == [[0, 1], [1, 0]]


def test_quoted_cells_with_windows_line_endings(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"user,time,state\r\na,1,x\r\na,2,y\r\nb,1,x,9\r\n")
    with pytest.raises(TraceError, match=r"record 4 of t\.csv has 4 columns, .* has 3; mend it"):
        read_traces(tmp_path / "t.csv")


def test_column_names_that_differ_in_blanks_are_found(tmp_path):
    """DuckDB would not find the second file's column, and take all its entries for missing."""
    for name, column, users in (("a", "2", ["a", "b"]), ("b", " 2", ["c", "d"])):
        table = pa.table({"user": users, "1": ["x", "y"], column: ["x", "x"]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    for gaps in (False, True):
        with pytest.raises(TraceError, match=r"different columns: a\.parquet has .*'2', b\.parquet has .*' 2'"):
            read_traces(tmp_path, gaps=gaps)
    parquet.write_table(pa.table({"user": ["a", "b"], "1": ["x", "y"], " 2": ["x", "x"]}), tmp_path / "a.parquet")
    assert read_traces(tmp_path).times == ("1", "2")


def test_users_with_fractional_numbers_can_be_selected(tmp_path):
    users = [1.0, 1.0, 1.5, 1.5, 2.0, 2.0]
    table = pa.table({"user": users, "time": [0, 1] * 3, "state": list("abbaab")})
    parquet.write_table(table, tmp_path / "t.parquet")
    assert read_traces(tmp_path / "t.parquet", where='"user" > 1').users == ("1.5", "2")
    twice = table.set_column(1, "time", pa.array([0, 1, 0, 0, 0, 1]))
    parquet.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(TraceError, match=r"user '1\.5' has two states"):
        read_traces(tmp_path / "t.parquet")


def test_files_are_read_without_file_locks(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOSYS, "no locks here")

    monkeypatch.setattr("temporaldp.data.files.atomic.fcntl.flock", no_locks)
    folder = temporary_folder(tmp_path)
    assert not list(folder.iterdir())
    remove_folder(folder)
    assert not list(tmp_path.iterdir())


def test_foreign_temporary_folders_are_kept(tmp_path):
    """Opening a pipe would block."""
    first = temporary_folder(tmp_path)
    other = tmp_path / first.name.replace("temporaldp-", "temporaldp-of-another-machine-")
    other.mkdir()
    (other / "in-use").touch()
    planted = Path(f"{first}planted")
    planted.mkdir()
    os.mkfifo(planted / "in-use")
    second = temporary_folder(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in (first, other, planted, second)}
    for folder in (first, second):
        remove_folder(folder)


@pytest.mark.parametrize("name", ["row", "Row", "c0", "filename"])
def test_any_other_column_may_have_any_name(name, tmp_path):
    columns = {name: [7, 7, 7, 7], "user": [1, 1, 2, 2], "time": [0, 1, 1, 0], "state": ["a", "b", "b", "a"]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match=r"'2' has '0' \(data row 4\) after '1' \(data row 3\)"):
        read_traces(tmp_path / "t.parquet")


@pytest.mark.parametrize("name", ["file_row_number", "File_Index"])
def test_column_names_reserved_by_duckdb_are_refused(name, tmp_path):
    parquet.write_table(pa.table({name: [7], "user": [1], "time": [0], "state": ["a"]}), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match=f"column '{name}' has a name that DuckDB reserves .* rename it"):
        read_traces(tmp_path / "t.parquet")


def test_times_with_and_without_a_zone_in_two_files(tmp_path):
    times = np.array(["2024-01-01", "2024-01-02"], "M8[us]")
    for name, zone in (("a", None), ("b", "UTC")):
        table = pa.table({"user": [name] * 2, "time": pa.array(times, pa.timestamp("us", zone)), "state": ["x", "y"]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(TraceError, match=r"times without a zone in a\.parquet and times with a zone in b\.parquet"):
        read_traces(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,0,x\na,1\n", r"record 3 of t\.csv has 2 columns, .* record 1, has 3; .*traces.delimiter"),
        ("a,0,x\na,1,y,z\n", r"record 3 of t\.csv has 4 columns, .* has 3; mend it"),
        ('a,0,"x\na,1,y\n', r"a quote is opened in record 2 of t\.csv and not closed, or .* separator$"),
    ],
)
def test_unreadable_line_is_named(tmp_path, content, message):
    (tmp_path / "t.csv").write_text(LONG + content)
    with pytest.raises(TraceError, match=message):
        read_traces(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "line", ["b,2,SECRETZONE,extra", "b,2", 'b,2,"SECRETZONE" x', 'b,2,"SECRETZONE', f"b,2,{'SECRETZONE' * 250_000}"]
)
def test_messages_never_contain_cells_of_records(tmp_path, line):
    (tmp_path / "t.csv").write_text(f"{LONG}{line}\n")
    with pytest.raises(TraceError, match=r"record 2 of t\.csv") as refusal:
        read_traces(tmp_path / "t.csv")
    assert "SECRET" not in str(refusal.value) and "b,2" not in str(refusal.value)


def test_a_condition_may_name_people_and_is_not_in_messages(tmp_path):
    (tmp_path / "t.csv").write_text(LONG + "a,0,x\na,1,y\n")
    with pytest.raises(
        TraceError, match=r"t\.csv \(rows chosen by where\): the file has a header but no rows"
    ) as refusal:
        read_traces(tmp_path / "t.csv", where="\"user\" = 'Alice'")
    assert "Alice" not in str(refusal.value)
    with pytest.raises(InputError, match=r'where to be an SQL condition .*column "usr" not found') as refusal:
        read_traces(tmp_path / "t.csv", where="usr = 'Alice'")
    assert "Alice" not in str(refusal.value)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
@pytest.mark.parametrize("n", [1, 100_000])  # the first lines are read by Python, the others by DuckDB
def test_file_in_another_encoding_is_refused_with_advice(tmp_path, encoding, n):
    lines = "".join(f"u,{k},a\n" for k in range(n))
    (tmp_path / "t.csv").write_text(f"{LONG}{lines}u,{n},München\n", encoding=encoding)
    with pytest.raises(
        TraceError,
        match=r'is not encoded in UTF-8; name its encoding .*, or save it again, in a spreadsheet as "CSV UTF-8"$',
    ):
        read_traces(tmp_path / "t.csv")


def test_separator_line_of_excel_is_refused_with_advice(tmp_path):
    (tmp_path / "t.csv").write_text("sep=;\nuser;time;state\na;0;x\na;1;y\n")
    with pytest.raises(TraceError, match=r'its first line, "sep=", is for Excel only: remove the line'):
        read_traces(tmp_path / "t.csv")


@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_in_quoted_names_are_ignored(tmp_path, separator, start):
    odd = "state, zone; or place| roughly,,;;||"
    header = separator.join(f'"{name}"' for name in ("user", "time", odd))
    rows = "".join(f"{separator.join(row)}\n" for row in ("a0x", "a1y", "b0y", "b1x"))
    (tmp_path / "t.csv").write_text(f"{start}{header}\n{rows}")
    assert read_traces(tmp_path / "t.csv", time="time", state=odd).histogram().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("name", ["two\nlines", "mirrored\u202e", "\x7f"])
def test_column_name_with_control_characters_is_refused(tmp_path, name):
    (tmp_path / "t.csv").write_text(f'user,time,state,"{name}"\na,0,x,1\na,1,y,1\n')
    with pytest.raises(StateError, match=r"name of column .* control characters"):
        read_traces(tmp_path / "t.csv")


def test_truncated_parquet_file_is_refused(tmp_path):
    parquet.write_table(pa.table({"user": [1, 1], "time": [0, 1], "state": ["a", "b"]}), tmp_path / "t.parquet")
    whole = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(whole[: len(whole) // 2])
    parquet.write_table(pa.table({"user": [2, 2], "time": [0, 1], "state": ["a", "b"]}), tmp_path / "s.parquet")
    for source in (tmp_path / "t.parquet", tmp_path):
        with pytest.raises(
            TraceError, match=r"expected a Parquet table, but t\.parquet cannot be read .*write it again"
        ):
            read_traces(source)


def test_damaged_parquet_file_is_refused(tmp_path):
    table = pa.table(
        {"user": np.arange(20_000), "time": np.zeros(20_000, int), "state": np.random.default_rng(0).random(20_000)}
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    whole = bytearray((tmp_path / "t.parquet").read_bytes())
    whole[1000:40_000] = os.urandom(39_000)
    (tmp_path / "t.parquet").write_bytes(whole)
    before = temporary()
    with pytest.raises(TraceError, match=r"the table cannot be read: .*damaged, write it again"):
        read_traces(tmp_path / "t.parquet")
    assert temporary() == before


@pytest.mark.long
def test_full_disk_while_spilling_is_reported(tmp_path, monkeypatch):
    spill, path = tmp_path / "spill", tmp_path / "t.seq"
    spill.mkdir()
    np.savetxt(path, np.random.default_rng(1).integers(1 << 60, size=(100_000, 30)), fmt="%d")
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    reading = Embedded("40MB")
    reading._connection.execute("SET max_temp_directory_size = '1MB'")
    with pytest.raises(OutputError, match=r"not enough room .*traces.memory=4GiB"):
        reading.sequences(path, None)
    assert list(spill.iterdir())
    del reading
    gc.collect()  # the refusal knew where it came from
    assert not list(spill.iterdir())


def test_temporary_files_are_removed(tmp_path):
    before = temporary()
    found = read_traces(write(tmp_path, a="1,0,a\n1,1,b\n") / "a.csv")
    assert len(temporary() - before) == 1
    del found
    assert temporary() == before


@pytest.mark.long
def test_stopped_process_leaves_no_temporary_files(tmp_path):
    path = tmp_path / "t.parquet"
    duckdb.sql(
        "SELECT (hash(i) % 300000)::INT AS user, (i // 300000)::INT AS time, 's' || (i % 7)::VARCHAR AS state "
        "FROM range(20000000) r(i)"
    ).write_parquet(str(path))
    code = "from temporaldp.apps.cli import main; main()"
    command = [sys.executable, "-c", code, "audit", str(path), "--epsilon", "0.1", "--set", "traces.sort=true"]
    environment = os.environ | {"TMPDIR": str(tmp_path / "spilled")}
    (tmp_path / "spilled").mkdir()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    while process.poll() is None and not list((tmp_path / "spilled").glob("temporaldp-*")):
        pass
    time.sleep(0.1)  # the folder has just been made, and its end not yet been arranged for
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 143, said
    assert not list((tmp_path / "spilled").iterdir())


@pytest.mark.long
def test_leftovers_of_a_killed_process_are_removed_by_the_next(tmp_path):
    """Folders of processes that still read are kept."""
    path = write(tmp_path, a="1,0,a\n1,1,b\n") / "a.csv"
    code = "import sys, temporaldp as tdp; traces = tdp.read_traces(sys.argv[1]); print('read', flush=True); input()"
    place = tmp_path / "spilled"
    place.mkdir()
    environment = os.environ | {"TMPDIR": str(place)}
    reading = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        for _ in range(2)
    ]
    for process in reading:
        assert process.stdout.readline() == b"read\n"
    of_both = set(place.iterdir())
    assert len(of_both) == 2
    reading[0].kill()
    reading[0].communicate(timeout=30)
    assert set(place.iterdir()) == of_both
    folder = temporary_folder(place)
    left = set(place.iterdir()) - {folder}
    assert len(left) == 1 and left < of_both
    reading[1].communicate(b"\n", timeout=30)
    remove_folder(folder)
    assert not list(place.iterdir())


@pytest.mark.parametrize("memory", ["a lot", "-1", ""])
def test_invalid_memory_limits_are_refused(memory, tmp_path):
    before = temporary()
    with pytest.raises(ValueError, match="expected memory such as '4GiB'"):
        read_traces(write(tmp_path, a="1,0,a\n1,1,b\n") / "a.csv", memory=memory)
    assert temporary() == before


@pytest.mark.long
def test_script_that_reads_traces_exits_without_messages(tmp_path):
    """Libraries that are still held when the interpreter ends may complain on standard error."""
    path = tmp_path / "traces.csv"
    path.write_text("user,time,state\na,1,x\na,2,y\nb,1,y\nb,2,x\n")
    code = (
        "import sys; import temporaldp as tdp; traces = tdp.read_traces(sys.argv[1]); print(traces.histogram().sum())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("4\n", "")


def test_notebook_without_widgets_reads_files(tmp_path, monkeypatch):
    """DuckDB refuses to report its progress where it assumes that it has to draw a progress bar."""

    class InANotebook:
        def __init__(self):
            self.inner = connect()

        def execute(self, query, *others):
            if "enable_progress_bar = true" in query:
                raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
            return self.inner.execute(query, *others)

        def __getattr__(self, name):
            return getattr(self.inner, name)

    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", InANotebook)
    path = tmp_path / "traces.csv"
    path.write_text(LONG + "x,1,a\nx,2,b\ny,1,a\ny,2,a\n")
    assert read_traces(path).transition_counts().tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("value", ["0", "two"])
def test_invalid_numbers_of_threads_are_refused(monkeypatch, value):
    monkeypatch.setenv("TEMPORALDP_THREADS", value)
    with pytest.raises(InputError, match=f"expected TEMPORALDP_THREADS to be a whole number from 1, got '{value}'"):
        load_sample()
