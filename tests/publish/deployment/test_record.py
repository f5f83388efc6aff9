"""Records: what is read of them, what is refused, and which have no number, for which reason."""

from __future__ import annotations

import json

import pytest

from places import shared_folder
from registry_records import VISITS, record, with_parameters
from temporaldp import InputError
from temporaldp.base.errors import MissingFileError, StateError
from temporaldp.publish.deployment import Assumptions, Deployment
from temporaldp.publish.deployment.promise import ConcentratedPromise, EpsilonPromise
from temporaldp.publish.deployment.wording import StatedUnit, period_in, stated_neighbours

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.fixture
def load(tmp_path):
    def loaded(text):
        (tmp_path / "r.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        return Deployment.load(tmp_path / "r.yaml")

    return loaded


def test_fields_of_a_record(load):
    found = load(VISITS)
    assert (found.record.slug, found.name, found.record.curators) == (
        "visits-example-2026",
        "Counts of visits",
        ("Example Office",),
    )
    assert found.promise == EpsilonPromise(1.0)
    assert found.stated_period == "day"
    assert found.neighbours == "adding or removing"
    assert found.stated_unit.of_people


@pytest.mark.parametrize(
    ("text", "promise"),
    [
        (with_parameters("epsilon: 1e-1"), EpsilonPromise(0.1)),
        (with_parameters("epsilon: 2"), EpsilonPromise(2.0)),
        (with_parameters("epsilon: 010"), EpsilonPromise(10.0)),
        (with_parameters("epsilon: 1e1"), EpsilonPromise(10.0)),
        (with_parameters("epsilon: 2", "delta: 0.0"), EpsilonPromise(2.0)),
        (with_parameters("epsilon: 2", "delta: 1.0e-9", variant="Approximate DP"), EpsilonPromise(2.0, 1e-9)),
        (with_parameters("epsilon: 2", "delta: '1e-9'", variant="Approximate DP"), EpsilonPromise(2.0, 1e-9)),
        (with_parameters("rho: 0.5", variant="Zero-concentrated DP"), ConcentratedPromise(0.5)),
        (with_parameters("epsilon: 1", "rho: 0.05", variant="''"), ConcentratedPromise(0.05)),
        (
            with_parameters("rho: 0.5", "epsilon: 3", "delta: 1e-9", variant="Zero-concentrated DP"),
            ConcentratedPromise(0.5),
        ),
        (
            with_parameters("rho: 0.5", "epsilon: 3", "delta: 1e-9", variant="Approximate DP"),
            EpsilonPromise(3.0, 1e-9),
        ),
    ],
)
def test_parameters_by_variant(load, text, promise):
    assert load(text).promise == promise


def test_releases_that_are_rarer_than_the_unit_are_not_covered_by_a_delta(load):
    """A sum of a month protects one day of it, but a person who stays in a state is in it on all days."""
    for variant, lines in (("Zero-concentrated DP", ["rho: 0.015"]), ("Approximate DP", ["epsilon: 1", "delta: 1e-9"])):
        monthly = with_parameters(*lines, variant=variant).replace(
            "release_type_details: Daily", "release_type_details: Monthly"
        )
        assert load(monthly).misfit(Assumptions()).brief == "rarer releases"
        assert load(monthly).misfit(Assumptions(every="day")) is None
    pure = record(release_type_details="Monthly")
    assert load(pure).misfit(Assumptions()) is None


def test_scalars_are_read_as_text(load):
    """Not as YAML 1.1 would have it: a number in base 8, 60 minutes, a boolean."""
    assert load(record(name="No")).record.name == "No"
    assert load(record(name="010", release_type="1:30")).record.release_type == "1:30"


def test_no_tag_makes_an_object_and_no_alias_fills_the_memory(load, tmp_path):
    text = record(name=f"!!python/object/apply:os.system ['touch {tmp_path / 'ran'}']")
    with pytest.raises(InputError, match="name"):
        load(text)
    assert not (tmp_path / "ran").exists()
    assert load(BOMB + record()).promise == EpsilonPromise(1.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "got text or an empty file"),
        ("- a\n- b\n", "got a list"),
        ("only words", "got text or an empty file"),
        ("a: [1\nb: {", "in YAML, got something else"),
        (b"\x00\x01\xff\xfe", "in YAML, got something else"),
        (b"a: \xff", "in YAML, got something else"),
        ("a: " + "[" * 1000, "recursion depth"),
        ("{" * 1000, "recursion depth"),
        ("? [1, 2]\n: 3\n", "unhashable key"),
        ("a: 1\n---\nb: 2\n", "in YAML, got something else"),
        ("a: '" + "x" * 300_000 + "'", "at most 256 KiB"),
        ("a: 1\nb: 2\n", "the field 'deployment', got the fields a, b"),
        ("type: object\nproperties: {}\n", "got the registry's schema"),
        ("deployment: 3\n", "deployment to be a mapping of fields, got '3'"),
        (
            "deployment: {basic: {name: x}}\n",
            "deployment.privacy_loss.privacy_unit, such as 'User-day-level', got nothing",
        ),
        ("deployment: {deployment_model: 3}\n", "deployment.deployment_model to be a mapping of fields, got '3'"),
        (record(privacy_unit=None), "privacy_unit, such as 'User-day-level', got nothing"),
        (
            record(privacy_unit="[1, 2]"),
            "deployment.privacy_loss.privacy_unit, such as 'User-day-level', got ['1', '2']",
        ),
        (record(epsilon=None), "epsilon, epsilon and delta, or rho, numbers such as 'epsilon: 0.5', got nothing"),
        (record(epsilon="1:30"), "got '1:30'"),
        (record(epsilon="about one"), "got 'about one'"),
        (record(epsilon="yes"), "got 'yes'"),
        (record(epsilon="true"), "got 'true'"),
        (record(epsilon=".nan"), "got '.nan'"),
        (record(epsilon=".inf"), "got '.inf'"),
        (record(epsilon="-1"), "expected epsilon to be a finite number > 0"),
        (record(epsilon="0"), "expected epsilon to be a finite number > 0"),
        (record(epsilon="1e9"), "<= 10000"),
        (record(epsilon="1" * 400), "epsilon"),
        (with_parameters("sigma: 1"), "privacy_parameters.epsilon, which Pure DP has, got none"),
        (with_parameters("epsilon: 1", variant="Approximate DP"), "privacy_parameters.delta, which Approximate DP has"),
        (with_parameters("epsilon: 1", "delta: small", variant="Approximate DP"), "privacy_parameters.delta with"),
        (
            with_parameters("epsilon: 1", "delta: 2", variant="Approximate DP"),
            "expected delta to be a finite number >= 0 and < 1",
        ),
        (with_parameters("rho: 1e9", variant="Zero-concentrated DP"), "expected rho to be a finite number"),
        (record(data_curators="3").replace("      - Example Office\n", ""), "deployment.basic.data_curators, got '3'"),
    ],
)
def test_invalid_records_are_refused(load, text, says):
    with pytest.raises(InputError) as refused:
        load(text)
    assert says in str(refused.value)
    assert "r.yaml" in str(refused.value)
    assert len(str(refused.value)) < 600


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(MissingFileError):
        Deployment.load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("text", "period", "of_people"),
    [
        ("User-day-level", "day", True),
        ("User-quarter-day-level", "quarter-day", True),
        ("User half-year", "half-year", True),
        ("Device-day-level", "day", True),
        ("user-month", "month", True),
        ("Person-level; housing-unit-level", None, True),
        ("users, weekly", "week", True),
        ("User-month-country-level", "month", False),
        ("Bounded contribution-day", "day", False),
        ("Event-Month-level", "month", False),
        ("Query-day-level", "day", False),
        ("Event-level", None, False),
        ("Birth-level", None, False),
    ],
)
def test_units_in_words(text, period, of_people):
    found = StatedUnit.read(text)
    assert (found.period, found.of_people) == (period, of_people)


OWNERS = ("User", "Device", "Person", "Household", "Account")
EVENTS = (
    "session",
    "query",
    "post",
    "record",
    "contribution",
    "click",
    "trip",
    "visit",
    "message",
    "event",
    "purchase",
)


@pytest.mark.parametrize("event", EVENTS)
def test_events_of_a_person_are_not_a_person(load, event):
    """No number without the number of events in a step; with k of them, the number of a promise k times as large."""
    units = [f"{owner}-{event}{level}" for owner in OWNERS for level in ("", "-level", "-day-level", "s per day")]
    for unit in [*units, f"{event.title()}-level", f"{event.title()}-day-level", f"{event.title()}-Month-level"]:
        found = load(record(privacy_unit=unit))
        for question in (Assumptions(), Assumptions(every="day"), Assumptions(every="day", unit="binary-count")):
            misfit = found.misfit(question)
            assert misfit is not None and misfit.brief == "number of events not stated", unit
    asked = {"states": ("a", "b"), "stays": (0.9, 0.9), "every": "day", "unit": "binary-count"}
    three = load(record(privacy_unit=f"User-{event}-level")).card(contributions=3, **asked)
    assert three.over_time == load(with_parameters("epsilon: 3.0")).card(**asked).over_time
    assert three.leakage.together == 3 * 365
    assert "more than 3 units" in three.explained("limits")[1]


def test_steps_longer_than_the_unit_need_the_number_of_units(load):
    found = load(record())
    assert found.misfit(Assumptions(every="week")).brief == "number of events not stated"
    assert found.misfit(Assumptions(every="hour")) is None
    assert found.card(every="week", contributions=7, stays=(0.5, 0.5)).leakage.alone == 7.0


REPLACING = [
    "The change-one distance.",
    "Bounded neighbors.",
    "Bounded neighbouring data sets.",
    "We use bounded differential privacy, and the number of users is public.",
    "Adjacent datasets differ by the modification of a single person's record.",
    "Adjacent datasets are obtained by replacing one user's data of a day.",
    "Replacing one user's data of a day",
    "Two datasets are neighbours if one record is replaced by another one.",
    "Neighbouring databases: modify the data of one user.",
    "Data sets that differ by the substitution of one row. The number of rows is public.",
    "Neighbours differ by replacing no more than one record.",
    "replace-one neighbours",
    "Neighbours: bounded DP",
    "“Bounded neighbours”",
    "Swap distance of one.",
    "Neighbouring data sets differ in one modified row.",
    "The Hamming distance between adjacent data sets is at most one.",
]
ADDING = [
    "Adjacent datasets are obtained by adding or removing a single user's data in a single day.",
    "Unbounded neighboring data sets: adding or removing a user.",
    "Unbounded neighbors",
    "unbounded DP",
    "Adjacent datasets are those that differ by the addition or removal of one user's contribution for a single day.",
    "Neighbours differ in the presence or absence of one user. Unmodified otherwise.",
    "The symmetric distance between adjacent datasets is one.",
    "Add/remove neighbours",
    "Insert-delete distance",
    "One data set has one more record than the other.",
]
UNCLEAR = [
    "",
    "Adjacent datasets differ by the data of a single device for a single day.",
    "The data are unmodified.",
    "Neighbours are obtained by deleting, not by replacing, the data of a user.",
    "Neighbouring data sets are not obtained by replacing a record.",
    "Neighbours are not bounded.",
    "Un-bounded neighbours",
    "Non-bounded neighbors",
    "Adding, removing or replacing a user's data",
    "Bounded neighbours (replacing), not unbounded ones (adding or removing).",
    "Without replacing records",
    "Rather than replacing records, we change the size.",
    "Neighbours don't differ by replacing a record.",
    "No record is modified.",
    "Each user's contribution is bounded to ten records of adjacent cells.",
    "Sampling with replacement defines neighbouring data sets.",
    "Adjacent datasets differ by the data of a user. Missing values are imputed by replacing them with a mean.",
    "User identifiers are replaced by hashes in adjacent datasets.",
    "Contribution bounded neighbouring data sets.",
    "Size-bounded adjacent datasets",
    "Norm bounded adjacent datasets",
    "Adjacent datasets (bounded or unbounded)",
    "Replace or remove",
    "Adjacent datasets differ by the data of one user, whose device may be replaced.",
    "Adjacent datasets differ by the records of one user, after replacement of identifiers by hashes.",
    "Adjacent datasets are obtained by replacing one user's data with an empty record.",
    "Neighbours: a user's value is replaced by another one, or by nothing.",
    "An irreplaceable record, in neighbouring data sets.",
    "Replacing one user's data with a special symbol \u22a5",
    "Neighbouring data sets differ by replacing one user's data with a fixed value.",
    "Neighbours: replace one user by a ghost",
    "Modifying one user's data to a constant record",
    "Data sets are adjacent if one is obtained by replacing a user's records with missing values.",
    "Replacing one user costs 2 epsilon.",
    "To convert to replace-one neighbours, multiply the parameters by two.",
    "Double epsilon for replacement adjacency.",
]


@pytest.mark.parametrize(
    ("text", "neighbours"),
    [
        *((text, "replacing") for text in REPLACING),
        *((text, "adding or removing") for text in ADDING),
        *((text, None) for text in UNCLEAR),
    ],
)
def test_neighbours_in_words(load, text, neighbours):
    """What is not clearly about replacing has two units between two places, and the card states what was assumed."""
    for written in (text, text.upper(), f"{text}\n"):
        assert stated_neighbours(written) == neighbours
    card = load(record(privacy_unit_details=json.dumps(text))).card(states=("a", "b", "c"), stays=(0.9, 0.9))
    assert card.leakage.units == (1 if neighbours == "replacing" else 2)
    assert card.leakage.together == 365 * card.leakage.units
    assert ("does not state one neighbouring relation" in " ".join(card.explained("assumptions"))) == (
        neighbours is None
    )


@pytest.mark.parametrize("start", ["It is not the case: ", "We do not use the following. ", "Unlike others, no "])
def test_denied_or_mixed_neighbours_are_never_replacing(start):
    for text in REPLACING:
        assert stated_neighbours(start + text) is None
        for adding in ADDING:
            assert stated_neighbours(f"{text} {adding}") != "replacing"
            assert stated_neighbours(f"{adding} {text}") != "replacing"


def test_neighbours_of_the_registry():
    folder = shared_folder() / "deployments"
    if not folder.is_dir():
        pytest.skip(f"no records at {folder}; set TEMPORALDP_SHARED")
    paths = [path for path in sorted(folder.glob("*.yaml")) if path.name != "schema.yaml"]
    found = {path.stem: Deployment.load(path).neighbours for path in paths}
    adding = {
        "apple_popular_emojis",
        "covid19_search_trends_symptoms",
        "google_mobility",
        "wikimedia_current_usage_data",
        "wikimedia_historical_usage_data",
    }
    assert {name for name, relation in found.items() if relation == "replacing"} == {"census_redistricting_data"}
    assert {name for name, relation in found.items() if relation == "adding or removing"} == adding


FREQUENCIES = {
    "hour": ["Hourly", "every hour", "24 times a day"],
    "quarter-day": ["6 hours", "every 6 hours", "Every six hours", "four times a day", "6 Hours"],
    "half-day": ["twice daily", "Twice a day", "Published twice per day.", "every 12 hours", "2 times a day", "semi-daily"],
    "day": ["Daily", "once a day", "once daily", "every day", "published each day", "Every 24 hours", "on a daily basis"],
    "week": ["Weekly", "every week", "once per week", "every 7 days", "the weekly table"],
    "half-month": ["semi-monthly", "Semimonthly", "twice a month", "two times per month", "twice monthly"],
    "month": ["monthly", "once every month", "12 times a year", "Monthly (the budget resets each month)"],
    "quarter": ["Quarterly", "every three months", "every quarter", "four times per year"],
    "half-year": ["semi-annually", "Semi-annual", "semiannually", "half-yearly", "twice a year", "every 6 months"],
    "year": ["yearly", "annually", "Annual", "every 12 months", "once a year"],
    None: [
        "", "now and then", "daily/weekly", "weekly, later daily", "bi-weekly", "biweekly", "bimonthly", "biannually",
        "every other day", "every two weeks", "three times a day", "several times a day", "not daily", "no longer monthly",
        "more often than daily", "half-hourly", "every few hours", "sub-daily", "twice, weekly", "multiple times daily",
        "never published daily", "90 days", "the last 48 hours", "fortnightly", "two-weekly", "semi-weekly",
        "thrice, daily", "6-hourly", "in 12 monthly parts",
        "each quarter of an hour", "every quarter hour", "daily, am and pm", "every day and every night", "monthly x2",
        "2x daily", "daily; two releases a day", "2 releases daily", "a pair of daily releases", "multiple daily releases",
        "daily releases, two each", "morning and evening, daily", "daily at 6:00 and 18:00", "12 months",
        "several weekly tables",
    ],
}  # fmt: skip


@pytest.mark.parametrize("period", FREQUENCIES)
def test_frequencies_in_words(load, period):
    """A frequency that is not one of a known length is asked for."""
    steps = {"hour": 8760, "quarter-day": 1460, "half-day": 730, "day": 365, "week": 52, "half-month": 24, "month": 12}
    steps |= {"quarter": 4, "half-year": 2, "year": 1}
    for text in FREQUENCIES[period]:
        assert period_in(text) == period_in(text.upper()) == period, text
        found = load(record(privacy_unit="Event-level", release_type_details=json.dumps(text)))
        if period is None:
            assert found.misfit(Assumptions(contributions=1)).brief == "frequency not stated"
        else:
            assert found.card(contributions=1, stays=(0.5, 0.5)).horizon == steps[period]


@pytest.mark.parametrize(
    "text",
    [
        "Flock-level",
        "day",
        "level",
        "User-day-month",
        "???",
        "user-fortnight",
        "User-7-day-level",
        "User-semi-month",
        "unit",
    ],
)
def test_unknown_units_are_refused(load, text):
    with pytest.raises(InputError, match="expected a privacy unit such as"):
        StatedUnit.read(text)
    with pytest.raises(InputError, match="privacy_unit: expected a privacy unit"):
        load(record(privacy_unit=f"'{text}'")).card()


@pytest.mark.parametrize(
    ("text", "brief", "asked"),
    [
        (record(release_type="One release"), "one release", {"every": "day"}),
        (record(release_type=None), "frequency not stated", {"every": "day"}),
        (record(privacy_unit="User-level"), "all steps of a person", {"every": "day"}),
        (record(privacy_unit="Event-level"), "number of events not stated", {"contributions": 3}),
        (
            with_parameters("epsilon: 1.0", "delta: 1e-9", variant="Approximate DP").replace("Central", "Local"),
            "noise on the device",
            {"fresh_noise": True},
        ),
        (record(release_type_details="Reports are memoized.", model_name="Local"), "memoised noise", None),
        (
            record(release_type_details="The device samples from its records.", model_name="Local"),
            "sampling on the device",
            None,
        ),
        *(
            (record(variant_name=variant), f"{variant} is not modelled", None)
            for variant in (
                "Renyi DP",
                "Custom",
                "Gaussian DP",
                "f-DP",
                "Metric DP",
                "Label DP",
                "Concentrated DP",
                "Pure-ish DP",
            )
        ),
    ],
)
def test_reason_for_a_missing_number(load, text, brief, asked):
    found = load(text)
    misfit = found.misfit(Assumptions())
    assert misfit is not None
    assert misfit.brief == brief
    card = found.card()
    assert (card.leakage, card.stays, card.over_time, card.explained("assumptions")) == (None, (), (), ())
    assert card.reason == misfit.sentence
    assert card.to_dict()["fits"] is False
    everything = {"every": "day", "fresh_noise": True, "contributions": 3}
    if asked is None:  # nothing that anybody says makes it a number
        assert found.misfit(Assumptions(**everything)) is not None
    else:
        assert found.misfit(Assumptions(**asked)) is None
        assert found.card(stays=(0.9, 0.9), **asked).over_time[0] > 1.0


@pytest.mark.parametrize("model", ["Local", "Varies", "Federated", "local model", None])
def test_a_pure_promise_has_one_number_whatever_its_noise(load, model):
    central, other = (load(record(model_name=name)).card(stays=(0.9, 0.9)) for name in ("Central", model))
    assert (
        other.over_time == central.over_time == pytest.approx((4.49945,), abs=1e-5)
    )  # a fixed point, solved by halving
    assert other.leakage.kind == "exact"
    assert any("also shared between days" in sentence for sentence in other.explained("assumptions"))
    assert not any("fresh" in sentence for sentence in (*other.sentences, *other.explained("assumptions")))


def test_a_record_without_a_variant_is_read_by_its_parameters(load):
    assumed = " ".join(load(record(variant_name=None)).card(stays=(0.9, 0.9)).explained("assumptions"))
    assert "does not name a variant of differential privacy" in assumed
    assert "pure differential privacy with epsilon = 1" in assumed
    assert "does not name a variant" not in " ".join(load(record()).card(stays=(0.9, 0.9)).explained("assumptions"))


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        ("No unprotected quantities mentioned.", False),
        ("None", False),
        ("", False),
        ("No quantities except the number of users.", True),
        ("No noise is added to the total.", True),
    ],
)
def test_unprotected_quantities_are_named_unless_there_are_none(load, text, warned):
    changed = record(variant_name=f"Pure DP\n    unprotected_quantities: {json.dumps(text)}")
    assert (
        any("quantities that the promise does not protect" in one for one in load(changed).card().explained("limits"))
        == warned
    )


def test_control_characters_of_a_record_are_escaped(load):
    assert load(record(name='"\\e[31mred\\e[0m"')).name == "?[31mred?[0m"


WITH_NUMBERS = {
    "audience_engagement",
    "covid19_search_trends_symptoms",
    "google_mobility",
    "movement_ranges_maps",
    "telemetry_collection_windows",
    "wikimedia_current_usage_data",
    "wikimedia_historical_usage_data",
}


def test_every_record_of_the_registry_has_a_number_or_a_reason():
    folder = shared_folder() / "deployments"
    if not folder.is_dir():
        pytest.skip(f"no records at {folder}; set TEMPORALDP_SHARED")
    paths = [path for path in sorted(folder.glob("*.yaml")) if path.name != "schema.yaml"]
    assert len(paths) >= 16
    found = {path.stem: Deployment.load(path).misfit(Assumptions()) for path in paths}
    assert {name for name, misfit in found.items() if misfit is None} == WITH_NUMBERS
    assert all(misfit.sentence.endswith(".") for misfit in found.values() if misfit is not None)


def test_line_breaks_of_a_record_are_replaced(load):
    loaded = load(VISITS.replace("Counts of visits", '"Counts of visits\\n- All is well"'))
    assert loaded.name == "Counts of visits - All is well"
    with pytest.raises(StateError, match="line breaks"):
        Assumptions(correlation_name="a\n- b")
