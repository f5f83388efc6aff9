"""Reading traces: every layout gives the same trajectories, and what cannot be read says why."""

from __future__ import annotations

import datetime as dt
import gzip
import os

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from temporaldp import InputError, estimate_adversary, load_sample, read_traces
from temporaldp.base.errors import EstimationError, StateError, TraceError
from temporaldp.data.tables import estimate_transition_matrix

CODES = [[0, 1, 1], [1, 0, 1]]
LONG = "user,time,state\n1,0,a\n1,1,b\n1,2,b\n2,0,b\n2,1,a\n2,2,b\n"
WIDE = "user,t0,t1,t2\n1,a,b,b\n2,b,a,b\n"


def write(folder, name, content):
    path = folder / name
    path.write_text(content)
    return path


def read(folder, name, content, **options):
    return read_traces(write(folder, name, content), **options)


@pytest.mark.long
def test_all_layouts_and_formats_agree(tmp_path):
    table = pa.table({"user": [1, 1, 1, 2, 2, 2], "time": [0, 1, 2] * 2, "state": list("abbbab")})
    parquet.write_table(table, tmp_path / "long.parquet")
    dictionary = table.set_column(2, "state", table.column("state").dictionary_encode())
    parquet.write_table(dictionary, tmp_path / "coded.parquet")
    parquet.write_table(
        pa.table({"user": [1, 2], "t0": ["a", "b"], "t1": ["b", "a"], "t2": ["b", "b"]}), tmp_path / "w.parquet"
    )
    with gzip.open(tmp_path / "long.csv.gz", "wt") as file:
        file.write(LONG)
    found = [
        read(tmp_path, "long.csv", LONG),
        read(tmp_path, "wide.csv", WIDE),
        read(tmp_path, "long.tsv", LONG.replace(",", "\t")),
        read(tmp_path, "semicolon.csv", LONG.replace(",", ";"), delimiter=";"),
        read(tmp_path, "crlf.csv", "\ufeff" + LONG.replace("\n", "\r\n")),
        read(tmp_path, "quoted.csv", LONG.replace("a\n", '"a"\n')),
        read(tmp_path, "named.csv", LONG.replace("user,time,state", "id,t,s"), user="id", time="t", state="s"),
        read(tmp_path, "lines.seq", "a b b\nb a b\n"),
        read(tmp_path, "lines.txt", "a, b, b\n\nb, a, b\n", delimiter=","),
        *(read_traces(tmp_path / name) for name in ("long.parquet", "coded.parquet", "w.parquet", "long.csv.gz")),
    ]
    for data in found:
        assert data.states == ("a", "b")
        assert data.users == ("1", "2")
        assert data.codes.tolist() == CODES


def test_interleaved_users_are_accepted(tmp_path):
    rows = LONG.splitlines()
    data = read(tmp_path, "t.csv", "\n".join([rows[0], *rows[1::3], *rows[2::3], *rows[3::3]]))
    assert data.codes.tolist() == CODES


def test_order_of_states_is_as_given(tmp_path):
    data = read(tmp_path, "t.csv", LONG, states=["c", "b", "a"])
    assert data.states == ("c", "b", "a")
    assert data.codes.tolist() == [[2, 1, 1], [1, 2, 1]]


def test_numeric_states_and_users_are_sorted_by_size(tmp_path):
    people, values = ["10", "9", "1", "Ann"], ["2", "10", "1", "home"]
    rows = "".join(f"{person},{t},{values[(k + t) % 4]}\n" for k, person in enumerate(people) for t in (0, 1))
    data = read(tmp_path, "t.csv", "user,time,state\n" + rows)
    assert data.states == ("1", "2", "10", "home") and data.users == ("1", "9", "10", "Ann")
    assert [data.states[code] for code in data.codes[2]] == ["2", "10"]  # of the person named 10, who stood first
    assert [data.states[code] for code in data.codes[3]] == ["home", "2"]


@pytest.mark.parametrize(
    ("times", "labels"),
    [
        (["0", "1", "2"], ("0", "1", "2")),
        (["9", "10", "11"], ("9", "10", "11")),
        (["-1.5", "-1.0", "-0.5"], ("-1.5", "-1.0", "-0.5")),
        (
            ["2024-01-30T23:00", "2024-01-31T00:00", "2024-01-31T01:00"],
            ("2024-01-30T23:00", "2024-01-31T00:00", "2024-01-31T01:00"),
        ),
        (["2024-01", "2024-02", "2024-03"], ("2024-01", "2024-02", "2024-03")),
        (["2023-11-01", "2023-12-01", "2024-01-01"], ("2023-11", "2023-12", "2024-01")),
        (["2024-01-30", "2024-01-31", "2024-02-01"], ("2024-01-30", "2024-01-31", "2024-02-01")),
        (
            ["2024-01-01T08:00Z", "2024-01-01T09:00Z", "2024-01-01 10:00Z"],
            ("2024-01-01T08:00Z", "2024-01-01T09:00Z", "2024-01-01T10:00Z"),
        ),
    ],
)
def test_times_are_ordered_by_their_type(tmp_path, times, labels):
    rows = [
        f"{user},{time},{state}"
        for user, states in ((1, "abb"), (2, "bab"))
        for time, state in zip(times, states, strict=True)
    ]
    data = read(tmp_path, "t.csv", "user,time,state\n" + "\n".join(rows))
    assert data.times == labels
    assert data.codes.tolist() == CODES
    assert data.consecutive.all()


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.timestamp("us", tz="Europe/Amsterdam"), pa.date32()])
def test_times_of_parquet_types(tmp_path, kind):
    days = [dt.datetime(2024, 1, day) for day in (1, 2, 3)]
    table = pa.table({"user": [1, 1, 1], "time": pa.array(days).cast(kind), "state": ["a", "b", "a"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    data = read_traces(tmp_path / "t.parquet")
    assert data.n_times == 3
    assert data.codes.tolist() == [[0, 1, 0]]
    assert data.consecutive.all()


def test_gaps_are_kept_as_gaps(tmp_path):
    data = read(tmp_path, "t.csv", "user,time,state\n1,0,a\n1,1,b\n1,2,a\n1,9,b\n1,10,a\n2,1,a\n")
    assert data.times == ("0", "1", "2", "9", "10")
    assert data.consecutive.tolist() == [True, True, False, True]
    assert data.codes.tolist() == [[0, 1, 0, 1, 0], [-1, 0, -1, -1, -1]]
    wide = read(tmp_path, "w.csv", "user,t0,t1,t2\n1,a,,b\n2,b,a,\n", gaps=True)
    assert wide.codes.tolist() == [[0, -1, 1], [1, 0, -1]]


@pytest.mark.long
def test_time_columns_of_wide_tables_have_gaps(tmp_path):
    header = "user,2024-01-01,2024-01-02,2024-01-03,2024-01-09,2024-01-10"
    data = read(tmp_path, "w.csv", f"{header}\n1,a,b,a,b,a\n")
    assert data.consecutive.tolist() == [True, True, False, True]
    # Only a -> b, b -> a and b -> a were seen: a -> b across the six missing days is no transition.
    matrix = estimate_transition_matrix(data, direction="forward", prior=1.0)
    assert matrix.dense() == pytest.approx(np.array([[1 / 3, 2 / 3], [3 / 4, 1 / 4]]))
    numbered = read(tmp_path, "n.csv", "user,s1,s2,s3,s7\n1,a,b,a,b\n")
    assert numbered.consecutive.tolist() == [True, True, False]
    named = read(tmp_path, "m.csv", "user,mon,tue,fri\n1,a,b,a\n")
    assert named.consecutive.all()
    assert named.step is None


@pytest.mark.parametrize(
    ("times", "step"),
    [
        (["0", "1"], "1"),
        (["0.0", "0.5"], "0.5"),
        (["2024-01-01T08:00", "2024-01-01T08:05"], "300 seconds"),
        (["2024-01-01", "2024-01-02"], "86400 seconds"),
        (["2024-01", "2024-04"], "3 months"),
    ],
)
def test_length_of_a_step_is_inferred(tmp_path, times, step):
    assert read(tmp_path, "t.csv", f"user,time,state\n1,{times[0]},a\n1,{times[1]},b\n").step == step
    assert read(tmp_path, "w.csv", f"user,{times[0]},{times[1]}\n1,a,b\n").step == step


@pytest.mark.long
def test_unsorted_rows_require_sort(tmp_path):
    shuffled = "user,time,state\n1,1,b\n1,0,a\n1,2,b\n"
    with pytest.raises(TraceError, match=r"user '1' has '0' \(data row 2\) after '1' \(data row 1\).*traces.sort=true"):
        read(tmp_path, "t.csv", shuffled)
    assert read(tmp_path, "t.csv", shuffled, sort=True).codes.tolist() == [[0, 1, 1]]
    columns = "user,10,9,11\n1,b,a,b\n"
    with pytest.raises(TraceError, match=r"columns are not in order of time.*traces.sort=true"):
        read(tmp_path, "w.csv", columns)
    assert read(tmp_path, "w.csv", columns, sort=True).codes.tolist() == [[0, 1, 1]]
    assert read(tmp_path, "w.csv", columns, sort=True).times == ("9", "10", "11")


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("t.csv", "", {}, "cannot be read as one"),
        ("t.csv", "user,time,state\n", {}, "header but no rows"),
        (
            "t.csv",
            "who,time,state\n1,0,a\n",
            {},
            r"no column 'user' \(the file has 'who', 'time', 'state'\).*traces.user",
        ),
        ("t.csv", "user,when,state\n1,0,a\n", {}, r"a column 'state' but no column 'time'.*traces.time"),
        ("t.csv", "user,time,what\n1,0,a\n", {}, r"a column 'time' but no column 'state'.*traces.state"),
        ("t.csv", LONG.replace(",", ";"), {"delimiter": ","}, "no column 'user'.*traces.delimiter"),
        ("t.csv", "user,time,user\n1,0,a\n", {}, "repeated: 'user'"),
        ("t.csv", "user\n1\n", {}, "one column per step"),
        (
            "t.csv",
            "user,time,state\n1,0,a\n1,0,b\n",
            {},
            r"'1' has two states at time '0' \(data rows 1 and 2: 'a', 'b'\)",
        ),
        ("t.csv", "user,time,state\n1,0,a\n1,1,\n", {}, r"'state' has no value in data row 2 .*or drop the row"),
        ("t.csv", "user,time,state\n1,0,a\n1,1,NaN\n", {}, r"'state' has no value in data row 2 \(got 'NaN'"),
        ("t.csv", "user,time,state\n,0,a\n1,1,b\n", {}, r"'user' has no value in data row 1"),
        ("t.csv", "user,time,state\n1,,a\n1,1,b\n", {}, r"'time' has no value in data row 1"),
        ("t.csv", "user,t0,t1\n1,a,\n", {}, r"'t1' has no value in data row 1.*traces.gaps=true"),
        ("t.csv", "user,t0,t1\n1,,\n", {"gaps": True}, "every cell is empty"),
        (
            "t.csv",
            "user,t0,t1\n1,a,b\n1,b,a\n",
            {},
            r"user '1' has 2 rows.*\(--set traces.time=NAME\) and .*\(--set traces.state=NAME\)",
        ),
        ("t.csv", "user,t0,t1,t2,age\n1,a,b,a,9\n", {}, r"column 'age' is named unlike the others \('t0'\)"),
        ("t.csv", "user,note,2024-01-01,2024-01-02\n1,,a,b\n", {"gaps": True}, r"'note' is named unlike.*'2024-01-01'"),
        ("t.csv", "user,time,state\n1,0,a\n1,1,a\n", {}, "at least 2 different states, got only 'a'"),
        (
            "t.csv",
            "user,time,state\n1,0,a\n1,2024-01-01,b\n",
            {},
            "mixed types: '0' is a number, '2024-01-01' is a date",
        ),
        ("t.csv", "user,time,state\n1,0,a\n1,soon,b\n", {}, r"time 'soon' in data row 2 .*like the others \('0'\)"),
        ("t.csv", "user,time,state\n1,0,a\n1,inf,b\n", {}, "time 'inf' in data row 2"),
        (
            "t.csv",
            "user,time,state\n1,0,a\n1,1,b\n1,7,a\n1,19,b\n1,40,a\n",
            {},
            "no regular step: '0' and '1' are closest",
        ),
        ("t.csv", "user,time,state\n1,0,a,9\n1,1,b\n", {}, "record 2 of t.csv has 4 columns"),
        ("t.csv", "user,s0,s1,s10,s2\n1,a,b,a,b\n", {}, r"not in order of time \('s0', 's1', 's10', 's2'\)"),
        ("t.csv", "user,9,10,x\n1,a,b,a\n", {"sort": True}, "cannot be sorted by time"),
        ("t.csv", ",user,t0,t1\n0,1,a,b\n", {}, r"column '' looks like the row index"),
        ("t.csv", "user,Unnamed: 0,t0,t1\n1,0,a,b\n", {}, "looks like the row index"),
        ("t.csv", 'user,time,state\n1,0,a\n1,1,"b\n1,2,a\n', {}, "a quote is opened in record 3"),
        ("t.txt", "user,time,state\n1,0,a\n1,1,b\n", {}, "looks like a CSV table.*traces.layout=long"),
        ("t.seq", "", {}, "is empty"),
        ("t.seq", "a b\na nan b\n", {}, r"'state' has no value in sequence 2, value 2 \(got 'nan'"),
        ("t.seq", "a a a\n", {}, "at least 2 different states"),
        ("t.parquet", "not parquet", {}, "Parquet table, but"),
    ],
)
def test_unreadable_files_are_refused_with_the_reason(tmp_path, name, content, options, message):
    path = write(tmp_path, name, content)
    with pytest.raises((TraceError, StateError), match=message) as caught:
        read_traces(path, **options)
    assert str(caught.value).startswith(str(path))


def test_nulls_and_mixed_types_in_parquet(tmp_path):
    for state in (["a", None], [float("nan"), 1.0]):
        parquet.write_table(pa.table({"user": [1, 1], "time": [0, 1], "state": state}), tmp_path / "t.parquet")
        with pytest.raises(TraceError, match="'state' has no value in data row"):
            read_traces(tmp_path / "t.parquet")
    times = pa.array([dt.datetime(2024, 1, 1), None])
    parquet.write_table(pa.table({"user": [1, 1], "time": times, "state": ["a", "b"]}), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="'time' has no value in data row 2"):
        read_traces(tmp_path / "t.parquet")


def test_parquet_file_with_non_text_names_is_refused(tmp_path):
    parquet.write_table(pa.table({"user": [1], "time": [0], "state": ["a"]}), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    (tmp_path / "t.parquet").write_bytes(content.replace(b"user", b"us\xffr"))
    with pytest.raises(TraceError, match=r"t\.parquet cannot be read as one"):
        read_traces(tmp_path / "t.parquet")


def test_whole_floats_are_read_as_integers(tmp_path):
    parquet.write_table(pa.table({"user": [1.0, 1.0], "time": [0, 1], "state": [3.0, 4.0]}), tmp_path / "t.parquet")
    data = read_traces(tmp_path / "t.parquet")
    assert data.states == ("3", "4")
    assert data.users == ("1",)


@pytest.mark.parametrize("where", ["long", "wide"])
def test_a_null_category_is_missing_and_not_the_last_category(tmp_path, where):
    states = pa.array(["A", None, "B"]).dictionary_encode()
    table = pa.table({"user": [1, 1, 1], "time": [0, 1, 2], "state": states})
    if where == "wide":
        table = pa.table({"user": [1, 2, 3], "t0": states, "t1": ["A", "B", "A"]})
        parquet.write_table(table, tmp_path / "t.parquet")
        assert read_traces(tmp_path / "t.parquet", gaps=True).codes.tolist() == [[0, 0], [-1, 1], [1, 0]]
    parquet.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(TraceError, match="no value in data row 2"):
        read_traces(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1], [2]]), "values of type list"),
        (pa.array([b"a", b"b"]), "values of type binary"),
    ],
)
def test_columns_without_names_are_refused(tmp_path, column, message):
    parquet.write_table(pa.table({"user": [1, 1], "time": [0, 1], "state": column}), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match=message):
        read_traces(tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (pa.array([0.0, float("inf")]), "float64, such as inf, which are not times"),
        (pa.array([False, True]), "bool, such as (True|False), which are not times"),
    ],
)
def test_invalid_times_are_refused(tmp_path, times, message):
    parquet.write_table(pa.table({"user": [1, 1], "time": times, "state": ["a", "b"]}), tmp_path / "t.parquet")
    with pytest.raises(TraceError, match=message):
        read_traces(tmp_path / "t.parquet")


def test_small_integer_types_do_not_wrap(tmp_path):
    times = pa.array([-128, -127, -126, 127], type=pa.int8())
    parquet.write_table(pa.table({"user": [1] * 4, "time": times, "state": list("abab")}), tmp_path / "t.parquet")
    assert read_traces(tmp_path / "t.parquet").consecutive.tolist() == [True, True, False]


def test_parquet_is_detected_by_its_content(tmp_path):
    parquet.write_table(pa.table({"user": [1, 1], "time": [0, 1], "state": ["a", "b"]}), tmp_path / "t.pq")
    assert read_traces(tmp_path / "t.pq").codes.tolist() == [[0, 1]]


def test_headers_with_blanks_and_columns_in_numbered_order(tmp_path):
    data = read(tmp_path, "t.csv", "user, time, state\n1,0,a\n1,1,b\n")
    assert data.codes.tolist() == [[0, 1]]
    wide = read(tmp_path, "w.csv", "user,s0,s10,s2\n1,a,b,b\n", sort=True)
    assert wide.times == ("s0", "s2", "s10")
    assert wide.codes.tolist() == [[0, 1, 1]]


def test_timestamps_with_offsets_are_converted_to_utc(tmp_path):
    rows = "1,2024-03-31T00:30+01:00,a\n1,2024-03-31T01:30+01:00,b\n1,2024-03-31T03:30+02:00,a\n"
    data = read(tmp_path, "t.csv", "user,time,state\n" + rows)
    assert data.times == ("2024-03-30T23:30Z", "2024-03-31T00:30Z", "2024-03-31T01:30Z")
    assert data.consecutive.all()


def test_word_for_missing_values_may_name_a_state(tmp_path):
    content = "user,time,state\n1,0,none\n1,1,NA\n"
    with pytest.raises(TraceError, match="no value in data row 1"):
        read(tmp_path, "t.csv", content)
    assert read(tmp_path, "t.csv", content, states=["none", "NA"]).codes.tolist() == [[0, 1]]


def test_damaged_archives_are_refused(tmp_path):
    whole = gzip.compress(b"a b a\n" * 1000)
    for damaged in (whole[:-20], whole[:12] + b"xxxx" + whole[16:], b"a b a"):
        (tmp_path / "t.txt.gz").write_bytes(damaged)
        with pytest.raises(TraceError, match="cannot be read"):
            read_traces(tmp_path / "t.txt.gz")


@pytest.mark.parametrize("delimiter", ["", ";;", "\u00e9"])
def test_invalid_delimiters_are_refused(tmp_path, delimiter):
    with pytest.raises(InputError, match="one ASCII character"):
        read(tmp_path, "t.csv", LONG, delimiter=delimiter)


def test_column_cannot_have_two_roles(tmp_path):
    with pytest.raises(
        InputError, match="different columns for user, time, state, got user 'state', time 'time', state 'state'"
    ):
        read(tmp_path, "t.csv", LONG, user="state")


def test_unknown_states_are_named(tmp_path):
    with pytest.raises(StateError, match="state 'b' is not among the expected states 'a', 'c'"):
        read(tmp_path, "t.csv", LONG, states=["a", "c"])
    with pytest.raises(StateError, match=r"state 'b' is not among .* \(sequence 1, value 2\)"):
        read(tmp_path, "t.seq", "a b\n", states=["a", "c"])


def test_a_column_of_identifiers_is_named(tmp_path):
    rows = [f"{user},{t},{user}-{t}" for user in range(60) for t in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,visit", *rows]) + "\n")
    with pytest.raises(
        TraceError, match=r"column 'visit' has 1200 different states in 1200 observations, as identifiers"
    ):
        read_traces(tmp_path / "t.csv", state="visit")
    assert (
        read_traces(tmp_path / "t.csv", state="visit", states=[row.rpartition(",")[2] for row in rows]).n_states == 1200
    )
    twice = [row.replace(f",{t}-", f",{t % 30}-") for row in rows for t in [int(row.split(",")[0])]]
    (tmp_path / "t.csv").write_text("\n".join(["user,time,visit", *twice]) + "\n")
    assert read_traces(tmp_path / "t.csv", state="visit").n_states == 600


def test_too_many_states_for_a_matrix_are_counted():
    rows = {"user": [*range(10_001)] * 2, "time": [0] * 10_001 + [1] * 10_001, "state": [*range(10_001)] * 2}
    with pytest.raises(
        EstimationError, match=r"column 'state' has 10001 different states .* GB each \(at most 10000 states"
    ):
        estimate_adversary(read_traces(pa.table(rows)))


def test_a_name_that_is_not_utf_8_is_the_problem(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    path.write_text("user,time,state\n1,0,a\n1,1,b\n")
    for source in (path, tmp_path, tmp_path / "*.csv"):
        with pytest.raises(InputError, match=r"name of the file is not encoded in UTF-8 \(.*caf\\xe9\.csv\): rename"):
            read_traces(source)


@pytest.mark.long
def test_the_bundled_sample():
    sample = load_sample()
    assert (sample.n_users, sample.n_times, sample.states) == (151, 47, ("W", "R", "N1", "N2", "N3"))
    counts = sample.histogram()
    assert (counts.sum(axis=1) == 151).all()
    assert counts[0].tolist() == [147, 0, 4, 0, 0]


@pytest.mark.long
def test_bundled_sample_equals_the_collected_data(data_folder):
    path = data_folder / "sleep_hmc" / "quickstart_sleep_5min.csv"
    assert np.array_equal(read_traces(path, states=["W", "R", "N1", "N2", "N3"]).codes, load_sample().codes)


def test_rows_of_delimiters_alone_are_no_rows(tmp_path):
    """Spreadsheets write them below the last row."""
    (tmp_path / "t.csv").write_text("user;time;state\n1;0;a\n1;1;b\n;;\n2;0;b\n2;1;a\n;;\n;;\n")
    found = read_traces(tmp_path / "t.csv")
    assert found.n_users == 2 and found.histogram().tolist() == [[1, 1], [1, 1]]
    (tmp_path / "t.csv").write_text("user;time;state\n1;0;a\n;;\n1;1;b\n2;;\n")
    with pytest.raises(TraceError, match="'time' has no value in data row 4"):
        read_traces(tmp_path / "t.csv")
