"""Tables as people have them: intervals, sequences in cells, times in any format, other encodings, mappings and absence.

The oracle looks at what a person does minute by minute; it shares no code with the queries.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta

import duckdb
import pandas as pd
import polars as pl
import pytest

from temporaldp import InputError, read_traces
from temporaldp.base.errors import StateError, TraceError

START = datetime(2024, 3, 4)
GONE = "absent"
SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))]


def places_of(frame, folder):
    """A table as a file of each kind, and as a frame of each library."""
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_parquet(folder / "t.parquet")
    return [folder / "t.csv", folder / "t.parquet", frame, pl.from_pandas(frame), duckdb.connect().from_df(frame)]


def stays_of(seed, n_people=4, hours=40):
    """Intervals of some people in minutes, in order of time, without overlaps; some without a gap, some without an end."""
    rng, rows = random.Random(seed), []
    for user in "abcd"[:n_people]:
        minute = rng.randrange(0, 600)
        while minute < hours * 60:
            end = minute + rng.randrange(1, 500)
            is_open = rng.random() < 0.1
            rows.append((user, minute, None if is_open else end, rng.choice("xyz"), rng.choice("xyz")))
            minute = end + rng.choice([0, 0, rng.randrange(1, 400)])
    return rows


def of_minutes(events, last):
    """The state of each minute up to the last one, None before the first event; of events at one minute, the last counts."""
    state, found, changes = None, [], {}
    for minute, one in events:
        changes[minute] = one
    for minute in range(last + 1):
        state = changes.get(minute, state)
        found.append(state)
    return found


def table_of(rows, fmt="%Y-%m-%dT%H:%M"):
    def shown(minute):
        return None if minute is None else (START + timedelta(minutes=minute)).strftime(fmt)

    columns = ["who", "began", "ended", "here", "there"]
    return pd.DataFrame([(who, shown(a), shown(b), s, e) for who, a, b, s, e in rows], columns=columns)


def events_of(rows, user, *, to_end_state):
    mine, events = [row for row in rows if row[0] == user], []
    for k, (_, begin, end, state, after) in enumerate(mine):
        events.append((begin, state))
        following = mine[k + 1][1] if k + 1 < len(mine) else None
        if end is not None and (following is None or following > end):
            events.append((end, after if to_end_state else GONE))
    return events


def cells_of(found):
    return {
        (user, time): None if code < 0 else found.states[code]
        for user, row in zip(found.users, found.codes, strict=True)
        for time, code in zip(found.times, row, strict=True)
    }


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("to_end_state", [True, False])
def test_a_row_of_a_stay_or_trip_is_what_somebody_did_minute_by_minute(seed, to_end_state):
    rows = stays_of(seed)
    frame = table_of(rows)
    shuffled = frame.sample(frac=1.0, random_state=seed)  # rows of intervals may have any order
    how = {"user": "who", "time": "began", "end": "ended", "state": "here", "every": "1h"}
    how |= {"end_state": "there"} if to_end_state else {}
    last = max(max(filter(None, row[1:3])) for row in rows)
    for table in (frame, shuffled):
        found = read_traces(table, **how)
        cells = cells_of(found)
        for user in found.users:
            states = of_minutes(events_of(rows, user, to_end_state=to_end_state), last + 60)
            for time in found.times:
                minute = int((datetime.fromisoformat(time) - START).total_seconds() / 60)
                expected = states[minute] or (None if to_end_state else GONE)
                assert cells[user, time] == expected, (user, time)
    assert found.states == (("x", "y", "z") if to_end_state else (GONE, "x", "y", "z"))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("limit", [None, "1h", "90min", "5h"])
def test_a_state_is_kept_up_to_its_limit_and_people_are_absent_before_their_first_event(seed, limit):
    rows = [(who, at, state) for who, at, _, state, _ in stays_of(seed)]
    frame = pd.DataFrame(
        [(w, (START + timedelta(minutes=m)).isoformat(), s) for w, m, s in rows], columns=["user", "time", "state"]
    )
    found = read_traces(frame, every="1h", fill="last", absent="away", fill_limit=limit)
    steps = {None: 10**6, "1h": 1, "90min": 2, "5h": 5}[limit]
    first = datetime.fromisoformat(found.times[0])
    for (user, time), state in cells_of(found).items():
        now = (datetime.fromisoformat(time) - START).total_seconds() / 60
        past = [(at, one) for who, at, one in rows if who == user and at <= now]
        expected = "away"
        if past:
            at, one = past[-1]
            own = -(-(START + timedelta(minutes=at) - first).total_seconds() // 3600)
            here = (datetime.fromisoformat(time) - first).total_seconds() // 3600
            expected = one if here - own <= steps else "away"
        assert state == expected, (user, time)
    assert "away" in found.states


@pytest.mark.parametrize("seed", SEEDS)
def test_the_longest_state_of_a_step_is_that_of_most_minutes(seed):
    rows = [(who, at, state) for who, at, _, state, _ in stays_of(seed, hours=100)]
    frame = pd.DataFrame(
        [(w, (START + timedelta(minutes=m)).isoformat(), s) for w, m, s in rows], columns=["user", "time", "state"]
    )
    found = read_traces(frame, every="6h", fill="last", ties="longest")
    cells, checked = cells_of(found), 0
    for user in found.users:
        events = [(at, state) for who, at, state in rows if who == user]
        states = of_minutes(events, 200 * 60)
        for time in found.times:
            end = int((datetime.fromisoformat(time) - START).total_seconds() / 60)
            counted = Counter(one for one in states[max(end - 360, 0) : end] if one is not None)
            best = counted.most_common(2)
            if not best:
                assert cells[user, time] is None or any(at == end for at, _ in events)
            elif len(best) == 1 or best[0][1] > best[1][1]:
                assert cells[user, time] == best[0][0], (user, time)
                checked += 1
    assert checked > 30


@pytest.mark.long
def test_faulty_intervals_are_refused_and_overlaps_end_where_that_is_asked():
    how = {"user": "who", "time": "began", "end": "ended", "state": "here", "end_state": "there", "every": "1h"}
    backwards = table_of([("a", 100, 50, "x", "y"), ("b", 0, 10, "y", "x")])
    with pytest.raises(
        TraceError, match="user 'a' in data row 1: the interval in columns 'began' and 'ended' ends before it begins"
    ):
        read_traces(backwards, **how)
    overlapping = table_of([("a", 0, 200, "x", "y"), ("a", 100, 300, "z", "x"), ("b", 0, 10, "y", "x")])
    with pytest.raises(TraceError, match=r"data row 1: .* ends after the next one of this person has begun; .*ties"):
        read_traces(overlapping, **how)
    found = cells_of(read_traces(overlapping, **how, ties="last"))
    assert [found["a", f"2024-03-04T0{hour}:00"] for hour in range(6)] == ["x", "x", "z", "z", "z", "x"]
    with pytest.raises(InputError, match="a person is absent between them"):
        read_traces(overlapping, **how, fill="absent")
    with pytest.raises(TraceError, match="no column 'ended'"):
        read_traces(overlapping.rename(columns={"ended": "until"}), **how)


@pytest.mark.long
@pytest.mark.parametrize(
    "fmt",
    ["%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%a %b %d %H:%M:%S %Y", "%d-%b-%y %H:%M", "%Y%m%d%H%M", "unix", "unix_ms"],
)
def test_times_of_any_format_are_those_of_iso(tmp_path, fmt):
    rows = stays_of(1)
    iso = pd.DataFrame(
        [(w, (START + timedelta(minutes=m)).isoformat(), s) for w, m, _, s, _ in rows],
        columns=["user", "time", "state"],
    )
    expected = read_traces(iso, every="1h", fill="last")
    other, moments = iso.copy(), pd.to_datetime(iso["time"])
    if fmt.startswith("unix"):
        other["time"] = [int(one.timestamp() * (1000 if fmt == "unix_ms" else 1)) for one in moments]
    else:
        other["time"] = [one.strftime(fmt) for one in moments]
    for table in places_of(other, tmp_path):
        found = read_traces(table, every="1h", fill="last", time_format=fmt)
        assert (found.codes == expected.codes).all()
        assert [one.removesuffix("Z") for one in found.times] == list(expected.times)
    other.loc[3, "time"] = "soon" if not fmt.startswith("unix") else None
    if not fmt.startswith("unix"):
        with pytest.raises(TraceError, match="time 'soon' in data row 4 of column 'time' does not have the format"):
            read_traces(other, every="1h", fill="last", time_format=fmt)


def test_a_format_with_an_offset_gives_instants_and_a_format_without_a_year_is_refused():
    rows = [("a", "Tue Apr 03 18:00:09 +0000 2012", "x"), ("a", "Tue Apr 03 22:00:09 +0200 2012", "y")]
    frame = pd.DataFrame([*rows, ("b", "Tue Apr 03 19:00:09 +0000 2012", "y")], columns=["user", "time", "state"])
    found = read_traces(frame, every="1h", fill="last", time_format="%a %b %d %H:%M:%S %z %Y", timezone="Europe/Paris")
    assert found.times == ("2012-04-03T19:00Z", "2012-04-03T20:00Z", "2012-04-03T21:00Z")
    for wrong in ("%d.%m. %H:%M", "%Q %Y", "soon"):
        with pytest.raises(InputError, match="expected time_format to be unix, unix_ms, or a format with the year"):
            read_traces(frame, every="1h", fill="last", time_format=wrong)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".txt"])
def test_text_of_any_encoding_is_read_alike(tmp_path, encoding, ending):
    path = tmp_path / f"t{ending}"
    if ending == ".txt":
        text, how = "café bar\nbar bar\n", {}
    else:
        text, how = "user;time;state\na;1,5;café\na;2,5;bar\nb;1,5;bar\nb;2,5;bar\n", {"decimal": ","}
    data = text.encode(encoding)
    if ending.endswith("gz"):
        import gzip

        data = gzip.compress(data)
    path.write_bytes(data)
    found = read_traces(path, encoding=encoding, **how)
    assert (found.states, found.codes.tolist()) == (("bar", "café"), [[1, 0], [0, 0]])
    if ending != ".txt":
        assert found.times == ("1.5", "2.5")
    if encoding == "utf-16":
        with pytest.raises(TraceError, match=r"not encoded in UTF-8|not encoded in ascii"):
            read_traces(path, encoding="ascii", **how)


def test_letters_at_the_ends_of_sequences_are_kept(tmp_path):
    """A line was once trimmed of the letters r and t as well as of blanks."""
    (tmp_path / "s.txt").write_bytes(b"tart bar\r\n  bar tart \t\r\n")
    found = read_traces(tmp_path / "s.txt")
    assert (found.states, found.codes.tolist()) == (("bar", "tart"), [[1, 0], [0, 1]])
    frame = pd.DataFrame({"user": ["a", "b"], "state": ["tart bar", " bar tart\t"]})
    assert read_traces(frame, layout="sequences").codes.tolist() == [[1, 0], [0, 1]]


def test_unknown_encodings_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("user,time,state\na,1,x\n")
    with pytest.raises(InputError, match="expected an encoding such as latin-1"):
        read_traces(tmp_path / "t.csv", encoding="klingon")


@pytest.mark.long
def test_a_mapping_gives_entries_their_states(tmp_path):
    frame = pd.DataFrame(
        [("a", 1, "12"), ("a", 2, "13"), ("b", 1, "14"), ("b", 2, "12")], columns=["user", "time", "state"]
    )
    (tmp_path / "zones.csv").write_text("name,station,city\nP,12,North\nQ,13,South\nR,14,North\n")
    by_name = {"12": "North", "13": "South", "14": "North"}
    for source in (by_name, f"{tmp_path / 'zones.csv'}:station,city"):
        for table in places_of(frame, tmp_path):
            found = read_traces(table, states_from=source)
            assert (found.states, found.codes.tolist()) == (("North", "South"), [[0, 1], [0, 0]])
    with pytest.raises(StateError, match="state '14' is not among the expected states 'North', 'South'"):
        read_traces(frame, states_from={"12": "North", "13": "South"})
    found = read_traces(frame, states_from={"12": "North", "13": "South"}, other="elsewhere")
    assert (found.states, found.codes.tolist()) == (("North", "South", "elsewhere"), [[0, 1], [2, 0]])
    found = read_traces(frame, states=["12", "13"], other="elsewhere")
    assert (found.states, found.codes.tolist()) == (("12", "13", "elsewhere"), [[0, 1], [2, 0]])
    (tmp_path / "twice.csv").write_text("station,city\n12,North\n12,South\n")
    with pytest.raises(TraceError, match="'12' in column 'station' has two states in column 'city'"):
        read_traces(frame, states_from=tmp_path / "twice.csv")
    with pytest.raises(TraceError, match="expected two columns, entry and state"):
        read_traces(frame, states_from=f"{tmp_path / 'zones.csv'}:station,town")


def test_what_is_missing_may_be_said():
    frame = pd.DataFrame(
        [("NA", 1, "x"), ("NA", 2, "-1"), ("b", 1, "none"), ("b", 2, "x")], columns=["user", "time", "state"]
    )
    with pytest.raises(TraceError, match="has no value"):
        read_traces(frame)
    found = read_traces(frame, missing=["-1"], gaps=True)
    assert (found.users, found.states, found.codes.tolist()) == (("NA", "b"), ("none", "x"), [[1, -1], [0, 1]])
    with pytest.raises(TraceError, match=r"no value in data row 2 \(got '-1'"):
        read_traces(frame, missing=["-1"])


@pytest.mark.long
def test_sequences_may_be_in_cells(tmp_path):
    frame = pd.DataFrame({"record": ["b", "a"], "note": ["p", "q"], "stages": ["0 0 1 -1", "['1', '1', '0']"]})
    for table in places_of(frame, tmp_path):
        how = {"layout": "sequences", "user": "record", "state": "stages", "missing": ["-1"], "gaps": True}
        found = read_traces(table, **how)
        assert (found.users, found.times) == (("a", "b"), ("1", "2", "3", "4"))
        assert found.codes.tolist() == [[1, 1, 0, -1], [0, 0, 1, -1]]
    with pytest.raises(TraceError, match="user 'a' has 2 rows, where each person has one sequence"):
        read_traces(pd.concat([frame, frame.iloc[1:]]), **how)


def test_files_of_other_programs_are_refused_by_name(tmp_path):
    for name, advice in (("log.xes", "pm4py"), ("book.xlsx", "CSV"), ("data.sav", "CSV"), ("a.json", "CSV")):
        (tmp_path / name).write_text("x")
        with pytest.raises(TraceError, match=advice):
            read_traces(tmp_path / name)


def frame_of(*rows):
    return pd.DataFrame(rows, columns=["user", "time", "state", "end", "then"][: len(rows[0])])


def states_of(user, source, **how):
    found = read_traces(source, **how)
    row = found.codes[found.users.index(user)]
    return "".join("." if code < 0 else found.states[code][0] for code in row)


def test_a_mapping_that_exchanges_names_holds_also_where_the_states_are_known():
    frame, swap = frame_of(("a", 0, "1"), ("a", 1, "1"), ("b", 0, "1"), ("b", 1, "2")), {"1": "2", "2": "1"}
    for states in (None, ("2", "1"), ("1", "2")):
        found = read_traces(frame, states_from=swap, states=states)
        assert cells_of(found) == {("a", "0"): "2", ("a", "1"): "2", ("b", "0"): "2", ("b", "1"): "1"}


@pytest.mark.long
def test_a_row_without_a_state_ends_the_state_before():
    """A discharged patient does not stay in the ward; without a state of absence, such a row is refused."""
    rows = [("a", 0, "x"), ("a", 2, ""), ("b", 0, "y"), ("b", 9, "y")]
    how = {"every": "1", "fill": "last", "fill_limit": "3", "gaps": True}
    assert states_of("a", frame_of(*rows), **how) == "xxaaaaaaaa"
    for refused in (how | {"gaps": False}, {"absent": "gone"}):  # an empty cell is no absence unless that is said
        with pytest.raises(TraceError, match="has no value in data row 2"):
            read_traces(frame_of(*rows), **refused)
    with pytest.raises(TraceError, match=r"has no value in data row 2 .*absent='away'"):
        read_traces(frame_of(*rows), **how | {"fill_limit": None})
    first = [("a", 0, "NA"), ("a", 5, "x"), ("b", 0, "y"), ("b", 9, "y")]
    assert states_of("a", frame_of(*first), **how | {"fill_limit": None, "absent": "gone"}) == "gggggxxxxx"


@pytest.mark.long
def test_a_sequence_that_is_missing_is_no_person_less(tmp_path):
    frame = pd.DataFrame({"user": ["a", "b", "c"], "state": ["x y", None, "y x"]})
    for table in places_of(frame, tmp_path):
        with pytest.raises(TraceError, match="has no value"):
            read_traces(table, layout="sequences")
        assert read_traces(table, layout="sequences", gaps=True).n_users == 3


def test_after_the_first_state_of_a_step_the_last_one_is_kept():
    rows = [("a", 0, "x"), ("a", 0.3, "x"), ("a", 0.6, "y"), ("a", 5, "x"), ("b", 0, "x"), ("b", 5, "y")]
    assert states_of("a", frame_of(*rows), every="1", fill="last", ties="first") == "xxyyyx"
    limited = {"every": "1", "fill": "last", "ties": "first", "fill_limit": "2"}
    assert states_of("a", frame_of(*rows), **limited) == "xxyyax"  # y of step 1 is kept for two steps
    with pytest.raises(TraceError, match="no value in data row 2"):
        read_traces(frame_of(("a", 0, "x"), ("a", None, "y"), ("b", 0, "y")), ties="first")


@pytest.mark.long
def test_the_longest_state_is_measured_in_elapsed_time_and_of_equal_ones_the_last_counts():
    rows = [("a", "2024-10-26T22:00Z", "y"), ("a", "2024-10-27T00:30Z", "x"), ("a", "2024-10-27T13:10Z", "y")]
    frame = frame_of(*rows, ("b", "2024-10-26T22:00Z", "x"), ("b", "2024-10-28T23:00Z", "y"))
    how = {"every": "1d", "fill": "last", "ties": "longest"}
    assert states_of("a", frame, timezone="Europe/Amsterdam", **how)[1] == "x"  # 12:40 h of 25
    apia = [("a", "2011-12-31T10:00Z", "x"), ("a", "2011-12-31T11:00Z", "y"), ("a", "2012-01-01T06:00Z", "x")]
    apia += [("b", "2011-12-28T11:00Z", "x"), ("b", "2012-01-02T11:00Z", "y")]
    assert "y" in states_of("a", frame_of(*apia), timezone="Pacific/Apia", **how)
    for one, other in ("za", "az"):
        equal = frame_of(("u", 0, one), ("u", 0.5, other), ("v", 0, "a"), ("v", 1, "z"))
        assert states_of("u", equal, every="1", fill="last", ties="longest")[1] == other
    with pytest.raises(InputError, match="about states that are kept"):
        read_traces(frame, every="1d", fill="absent", ties="longest")


@pytest.mark.long
def test_limits_leave_known_intervals_whole_and_ends_need_their_state():
    rows = [("a", 10, "x", 18, "y"), ("b", 10, "y", None, "x"), ("b", 24, "x", 25, "y")]
    how = {"end": "end", "every": "1", "end_state": "then"}
    assert states_of("a", frame_of(*rows), **how, fill_limit="3") == "xxxxxxxxyyyyaaaa"
    assert states_of("b", frame_of(*rows), **how, fill_limit="3") == "yyyyaaaaaaaaaaxy"
    lacking = frame_of(("a", 10, "x", 12, ""), ("b", 10, "y", 12, "x"))
    with pytest.raises(TraceError, match="no state in column 'then'"):
        read_traces(lacking, **how, gaps=True)
    for first, second in ((12, 11), (11, 12)):
        twice = frame_of(("a", 10, "x", first, "z"), ("a", 10, "y", second, "z"), ("b", 10, "x", 14, "z"))
        assert states_of("a", twice, **how, ties="last")[0] == "y"  # the last row begins last


def test_blanks_around_names_make_no_other_person():
    rows = [(" a", 0, "x"), ("a", 2, "y"), ("b", 0, "x"), ("b", 3, "y")]
    assert states_of("a", frame_of(*rows), every="1", fill="last", absent="gone") == "xxyy"


def test_entries_and_states_of_a_mapping_are_checked(tmp_path):
    frame = frame_of(("a", 0, "NA"), ("a", 1, "2"), ("b", 0, "2"), ("b", 1, "NA"))
    assert read_traces(frame, states_from={"NA": "v", "2": "w"}).codes.tolist() == [[0, 1], [1, 0]]
    for wrong in ({"NA": "", "2": "w"}, {"NA": "u", "2": "u\x1b[31m"}):
        with pytest.raises((StateError, InputError)):
            read_traces(frame, states_from=wrong)
    pd.DataFrame({"code": [1.0, 2.0], "zone": ["p", "q"]}).to_parquet(tmp_path / "m.parquet")
    numbers = frame_of(("a", 0, 1), ("a", 1, 2), ("b", 0, 2), ("b", 1, 1))
    assert read_traces(numbers, states_from=tmp_path / "m.parquet").states == ("p", "q")
    (tmp_path / "m.csv").write_text("code,zone\n1,café\n2,q\n")
    (tmp_path / "t.csv").write_bytes("user,time,state,note\na,0,1,é\na,1,2,é\n".encode("latin-1"))
    assert read_traces(tmp_path / "t.csv", states_from=tmp_path / "m.csv", encoding="latin-1").states == ("café", "q")


@pytest.mark.parametrize("encoding", ["latin-1", "a\0b"])
def test_damaged_archives_and_encodings_are_refused(tmp_path, encoding):
    (tmp_path / "t.csv.gz").write_bytes(b"\x1f\x8b\x08\x00broken")
    with pytest.raises(InputError):
        read_traces(tmp_path / "t.csv.gz", encoding=encoding)


@pytest.mark.long
def test_a_state_beyond_its_limit_is_not_the_longest_of_a_later_step():
    rows = [("a", 0.5, "x"), ("a", 5.8, "y"), ("b", 0.2, "x"), ("b", 7, "x")]
    how = {"every": "1", "fill": "last", "ties": "longest", "fill_limit": "1"}
    assert states_of("a", frame_of(*rows), **how) == "xxaaaay"
    assert states_of("b", frame_of(*rows), **how) == "xxaaaaa"


def test_one_person_under_two_spellings_of_a_number_is_refused(tmp_path):
    (tmp_path / "1.csv").write_text("user,time,state\n17,0,x\n2,0,y\n")
    (tmp_path / "2.csv").write_text("user,time,state\n17.0,1,y\n3.0,1,x\n")
    with pytest.raises(TraceError, match=r"both '17' and '17.0', which would be two people"):
        read_traces(tmp_path / "*.csv")
    assert read_traces(tmp_path / "2.csv").users == ("3.0", "17.0")
