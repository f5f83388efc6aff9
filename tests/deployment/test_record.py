"""Records: what is read of them, what is refused, and which have no number, for which reason."""

from __future__ import annotations

import pytest

import temporaldp as tdp
from conftest import shared_folder
from registry_records import VISITS, record, with_parameters
from temporaldp import InputError
from temporaldp.deployment import Deployment, Question
from temporaldp.deployment.promise import ConcentratedPromise, EpsilonPromise
from temporaldp.deployment.stated_unit import StatedUnit
from temporaldp.errors import MissingFileError, StateError

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
    assert found.repeats
    assert found.stated_period == "day"
    assert not found.about_replacing
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


def test_words_that_an_older_yaml_takes_for_booleans_are_text(load):
    assert load(record(name="No")).record.name == "No"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "got an empty file"),
        ("- a\n- b\n", "got a list"),
        ("only words", "got a str"),
        ("a: [1\nb: {", "in plain YAML, got something else"),
        (b"\x00\x01\xff\xfe", "in plain YAML, got something else"),
        (b"a: \xff", "in plain YAML, got something else"),
        (
            "a: !!python/object/apply:os.system ['true']",
            "the tag 'tag:yaml.org,2002:python/object/apply:os.system'",
        ),
        ("a: !mine 3", "the tag '!mine': leave it out"),
        ("a: !!int ''", "the tag 'tag:yaml.org,2002:int': leave it out"),
        ("!!set {a, b}", "the tag 'tag:yaml.org,2002:set': leave it out"),
        (BOMB, "an anchor or alias"),
        ("a: &a\n  b: *a\n", "an anchor or alias"),
        ("a: " + "[" * 1000, "recursion depth"),
        ("{" * 1000, "recursion depth"),
        ("a: 1\nb: 1\nb: 2\n", "the field 'b' more than once"),
        ("? [1, 2]\n: 3\n", "unhashable key"),
        ("a: 1\n---\nb: 2\n", "in plain YAML, got something else"),
        ("a: '" + "x" * 300_000 + "'", "at most 256 KiB"),
        ("a: 1\nb: 2\n", "the field 'deployment', got the fields a, b"),
        ("type: object\nproperties: {}\n", "got the registry's schema"),
        ("deployment: 3\n", "deployment to be a mapping of fields, got 3"),
        (
            "deployment: {basic: {name: x}}\n",
            "deployment.privacy_loss.privacy_unit, such as 'User-day-level', got nothing",
        ),
        ("deployment: {deployment_model: 3}\n", "deployment.deployment_model to be a mapping of fields, got 3"),
        (record(privacy_unit=None), "privacy_unit, such as 'User-day-level', got nothing"),
        (record(privacy_unit="[1, 2]"), "deployment.privacy_loss.privacy_unit, such as 'User-day-level', got [1, 2]"),
        (record(release_type="3"), "deployment.deployment_model.release_type, got 3"),
        (record(epsilon=None), "epsilon, epsilon and delta, or rho, numbers such as 'epsilon: 0.5', got nothing"),
        (record(epsilon="'1.0'"), "numbers such as 'epsilon: 0.5', got '1.0'"),
        (record(epsilon="1:30"), "got '1:30'"),
        (record(epsilon="about one"), "got 'about one'"),
        (record(epsilon="yes"), "got 'yes'"),
        (record(epsilon="true"), "got True"),
        (record(epsilon=".nan"), "got nan"),
        (record(epsilon=".inf"), "got inf"),
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
        (record(data_curators="3").replace("      - Example Office\n", ""), "deployment.basic.data_curators, got 3"),
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
        ("Device-day-level", "day", True),
        ("user-month", "month", True),
        ("User-month-country-level", "month", True),
        ("Person-level; housing-unit-level", None, True),
        ("Bounded contribution-day", "day", False),
        ("Event-Month-level", "month", False),
        ("Event-level", None, False),
        ("User-trip-level", None, False),
        ("Birth-level", None, False),
        ("users, weekly", "week", True),
    ],
)
def test_units_in_words(text, period, of_people):
    found = StatedUnit.read(text)
    assert (found.period, found.of_people) == (period, of_people)


@pytest.mark.parametrize("text", ["Flock-level", "day", "level", "User-day-month", "???", "user-fortnight"])
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
        (record(variant_name="Renyi DP"), "Renyi DP is not modelled", None),
        (record(variant_name="Custom"), "Custom is not modelled", None),
    ],
)
def test_reason_for_a_missing_number(load, text, brief, asked):
    found = load(text)
    misfit = found.misfit(Question())
    assert misfit is not None
    assert misfit.brief == brief
    card = found.card()
    assert (card.leakage, card.stays, card.over_time, card.assumptions) == (None, (), (), ())
    assert card.reason == misfit.sentence
    assert card.to_dict()["fits"] is False
    everything = {"every": "day", "fresh_noise": True, "contributions": 3}
    if asked is None:  # nothing that anybody says makes it a number
        assert found.misfit(Question(**everything)) is not None
    else:
        assert found.misfit(Question(**asked)) is None
        assert found.card(stays=(0.9, 0.9), **asked).over_time[0] > 1.0


def test_unknown_noise_is_bounded_by_quilts(load):
    """Where noise is drawn on a device, and the record does not state that it is fresh; elsewhere the bound stands beside."""
    central, local = load(record()).card(stays=(0.9, 0.9)), load(record(model_name="Local")).card(stays=(0.9, 0.9))
    chain = tdp.TransitionMatrix([[0.9, 0.1], [0.1, 0.9]])
    alone = central.leakage.alone
    bound = tdp.leakage_supremum(tdp.Adversary(chain, chain), alone, accounting=tdp.MarkovQuilt()).temporal
    assert local.over_time == pytest.approx((bound,))
    assert local.remark == "upper bound"
    assert local.leakage.any_noise == central.leakage.any_noise == pytest.approx(bound)
    assert bound > central.over_time[0]
    assert any("Noise may be shared between days" in sentence for sentence in local.assumptions)
    assert any("does not state that noise is fresh" in sentence for sentence in central.sentences)
    assert not any("does not state that noise is fresh" in sentence for sentence in local.sentences)
    assert local.leakage.within <= local.over_time[0]
    fresh = load(record(model_name="Local")).card(stays=(0.9, 0.9), fresh_noise=True)
    assert fresh.over_time == central.over_time
    many = load(record(model_name="Local")).card(stays=(0.9, 0.9), states=("a", "b", "c"))
    assert many.over_time[0] > 0.0
    assert many.leakage.held is not None


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
    found = {path.stem: Deployment.load(path).misfit(Question()) for path in paths}
    assert {name for name, misfit in found.items() if misfit is None} == WITH_NUMBERS
    assert all(misfit.sentence.endswith(".") for misfit in found.values() if misfit is not None)


def test_line_breaks_of_a_record_are_replaced(load):
    loaded = load(VISITS.replace("Counts of visits", '"Counts of visits\\n- All is well"'))
    assert loaded.name == "Counts of visits - All is well"
    with pytest.raises(StateError, match="line breaks"):
        Question(correlation_name="a\n- b")
