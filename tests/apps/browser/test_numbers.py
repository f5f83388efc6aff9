"""Numbers and links of the page in Chromium."""

from __future__ import annotations

import numpy as np
import pytest

from browsing import Visit, browsing
from temporaldp.publish.report import sentences

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def compute():
    """Runs a line of JavaScript that has the page's modules in `m`, with the argument `x`."""
    names = ("words", "setting")
    loaded = "".join(f"...await import('/page/{name}.js')," for name in names)
    with browsing() as (browser, address):
        visit = Visit(browser, address).open("#from=sample")
        yield lambda line, x=None: visit.page.evaluate(f"async (x) => {{ const m = {{{loaded}}}; return {line}; }}", x)
        visit.close()


def test_numbers_are_rounded_as_in_reports(compute):
    rng = np.random.default_rng(6)
    values = [*(10.0 ** rng.uniform(-8, 4, size=2_000)), 0.0, 1.0, 0.1, 9999.5, 0.00012345, 12345.678, 0.6632]
    values = [float(value) for value in values]
    here = compute("x.map((v) => [m.up(v), m.down(v)])", values)
    for value, (up, down) in zip(values, here, strict=True):
        assert [up, down] == [sentences.number(value, up=True), sentences.number(value, down=True)], value
        assert value * (1.0 - 1e-12) <= float(up) <= max(1.001 * value, value + 1e-12)
    assert compute("[m.up(1.03324988), m.up(0.66317619), m.up(null), m.level(null)]") == [
        "1.0333",
        "0.6632",
        "inf",
        "no bound",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "#from=sticky&values=7&stays=0.91&knows=past&noise=any&epsilon=0.3&delta=0&horizon=12&alpha=0.7",
        "#from=sample&noise=gaussian&scale=12.5&delta=1e-7&horizon=30&alpha=2&b.from=sticky&b.values=2",
        "#from=matrix&names=a%2Cb,%3Cscript%3E&forward=0.25,0.75;0.5,0.5&horizon=3",
    ],
)
def test_link_carries_a_setting(compute, text):
    first = compute("m.settingsOf(x)", text)
    assert first["problems"] == []
    again = compute("m.settingsOf('#' + m.fragment(m.settingsOf(x).settings).text)", text)
    assert again == first


@pytest.mark.parametrize(
    "text",
    ["#epsilon=-1", "#horizon=1e9", "#from=nowhere", "#delta=2", "#from=matrix&names=a&forward=1", "#values=2.5"],
)
def test_invalid_link_is_reported_and_the_rest_is_shown(compute, text):
    found = compute("m.settingsOf(x)", text)
    assert len(found["problems"]) == 1
    assert found["settings"] == [compute("({...m.DEFAULT})")]
