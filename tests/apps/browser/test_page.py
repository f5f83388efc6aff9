"""The page in Chromium, as somebody uses it."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import temporaldp as tdp
from browsing import Visit, browsing
from command import SAMPLE
from places import REPOSITORY

pytestmark = pytest.mark.browser

STICKY = "#from=sticky&values=4&stays=0.85&epsilon=0.2&horizon=12&alpha=1"
PHONE = {"viewport": {"width": 380, "height": 760}}
CLOSE = 1e-9
PLANNED = (
    "[...document.querySelectorAll('.plan')].every(({ textContent }) => "
    "/Budgets (of|that vary)/.test(textContent) && !/being computed/.test(textContent))"
)


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture
def visit(browser):
    opened = []

    def begin(fragment="#from=sample", **how):
        opened.append(Visit(*browser, **how).open(fragment))
        return opened[-1]

    yield begin
    for one in opened:
        one.close()


def sticky(n, stays):
    matrix = np.full((n, n), (1.0 - stays) / (n - 1))
    np.fill_diagonal(matrix, stays)
    known = tdp.TransitionMatrix(matrix)
    return tdp.Adversary(known, known)


def steps_of(path):
    """Columns of a saved CSV."""
    with Path(path).open() as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def same_as_library(columns, series, paper=None):
    for name in ("backward", "forward", "temporal"):
        assert np.abs(columns[f"{name}_nats"] - getattr(series, name)).max() < CLOSE
    if paper is not None:
        assert np.abs(columns["paper_nats"] - paper.temporal).max() < CLOSE


def test_the_page_opens_with_what_an_observer_believes_about_one_person(visit):
    page = visit("")
    story = page.page.locator(".story")
    said = [float(cell.removesuffix(" %")) for cell in story.locator(".share").all_inner_texts()]
    leakage = tdp.temporal_leakage(sticky(2, 0.9), [1.0] * 52)
    step = leakage.worst_time
    true = [0.0, 1.0, leakage.backward[step], leakage.worst]
    assert said == pytest.approx([100.0 / (1.0 + np.exp(-one)) for one in true], abs=0.1)
    assert "from 94 to 106" in story.inner_text()
    page.set("stays", 0.5)
    page.settle()
    assert story.locator(".share").all_inner_texts()[-1] == "73.2 %"


def test_a_guarantee_is_chosen_and_the_belief_is_within_its_level(visit):
    page = visit("")
    page.wait("!document.querySelector('.choices button:nth-of-type(2)').disabled")
    page.page.get_by_role("button", name="a state, against all tables").click()
    page.settle()
    epsilon = float(page.field("epsilon").input_value())
    assert epsilon == pytest.approx(tdp.sustainable_budget(sticky(2, 0.9), 1.0, 52), rel=1e-3)
    assert page.page.locator(".share").all_inner_texts()[-1] in {"73.1 %", "73.2 %"}
    assert page.page.locator('.choices [aria-pressed="true"]').count() == 1


def test_axe_finds_nothing_while_the_page_waits_for_its_first_answer(visit):
    page = visit()
    page.page.route("**/v1/view/leakage", lambda route: None)
    page.page.goto("about:blank")
    page.page.goto(page.address)
    page.page.locator(".story").wait_for()
    assert page.page.locator(".story").inner_text().startswith("An observer who knows how people move")
    assert violations(page) == []


def test_page_shows_the_sample_and_loads_nothing_external(visit):
    page = visit()
    assert page.worst == 0.6632
    assert all(url.startswith(page.address) for url in page.requests)
    assert page.page.locator(".pair strong").nth(0).inner_text() == "W"


@pytest.mark.parametrize(
    ("name", "label", "position", "more"),
    [("epsilon", "ε", 700, True), ("horizon", "Horizon", 900, True), ("horizon", "Horizon", 100, False)],
)
def test_sliders_move_curves(visit, name, label, position, more):
    page = visit(STICKY)
    before, drawn = page.worst, page.page.locator(".curves .plot").screenshot()
    page.page.locator(f'[aria-label^="{label}"]').evaluate(
        "(range, at) => { range.value = at; range.dispatchEvent(new Event('input', { bubbles: true })); }", position
    )
    page.settle()
    assert (page.worst > before) == more
    assert page.worst != before
    assert page.page.locator(".curves .plot").screenshot() != drawn
    moved = float(page.field(name).input_value())
    assert f"{name}={moved:g}" in page.page.url
    epsilon, horizon = (float(page.field(one).input_value()) for one in ("epsilon", "horizon"))
    there = tdp.temporal_leakage(sticky(4, 0.85), [epsilon] * int(horizon)).worst
    assert page.worst >= there * (1.0 - 1e-12)
    assert page.worst == pytest.approx(there, rel=1e-3)


def test_link_restores_the_state_in_another_browser(visit):
    page = visit()
    page.choose("Stickiness")
    for name, value in (("values", 3), ("stays", 0.93), ("epsilon", 0.25), ("horizon", 30), ("alpha", 2)):
        page.set(name, value)
    page.page.get_by_label("The adversary knows").select_option("past")
    page.settle()
    other = visit(page.page.url.removeprefix(page.address))
    assert other.worst == page.worst
    for name in ("values", "stays", "epsilon", "horizon", "alpha"):
        assert other.field(name).input_value() == page.field(name).input_value()
    assert other.page.get_by_label("The adversary knows").input_value() == "past"


def test_moving_alpha_moves_the_plan_and_the_verdict(visit):
    page = visit(STICKY)
    page.set("alpha", 0.3)
    assert "exceeds α = 0.3" in page.page.locator(".verdict").inner_text()
    page.page.get_by_role("button", name="Use this ε").click()
    page.settle()
    assert "satisfies α = 0.3" in page.page.locator(".verdict").inner_text()
    used = float(page.field("epsilon").input_value())
    assert tdp.temporal_leakage(sticky(4, 0.85), [used] * 12).worst <= 0.3
    page.page.wait_for_function(
        "() => /Budgets (of|that vary)/.test(document.querySelector('.plan').textContent)", timeout=60_000
    )


def test_the_supremum_is_shown(visit):
    page = visit("#from=sticky&values=2&stays=0.7&epsilon=0.3&horizon=8")
    there = tdp.leakage_supremum(sticky(2, 0.7), 0.3).temporal
    fact = page.page.locator(".fact", has_text="infinite horizon").locator("dd").first
    shown = float(fact.inner_text().split()[0])
    assert there <= shown <= there * 1.001


def test_the_sample_has_the_numbers_of_the_readme(visit):
    page = visit()
    fact = page.page.locator(".fact", has_text="bound of the paper")
    paper = tdp.temporal_leakage(
        next(iter(tdp.estimate_adversaries(tdp.load_sample()))), [0.1] * 47, accounting=tdp.PaperBound()
    )
    shown = float(fact.locator("dd").first.inner_text().split()[0])
    assert shown == 1.0333
    assert paper.worst <= shown < paper.worst + 1e-4
    assert "rounded up" in fact.inner_text()
    assert "a leakage of a nats changes the odds" in page.page.locator("footer").inner_text()


def test_two_settings_are_compared_side_by_side(visit):
    page = visit(STICKY)
    page.page.get_by_role("button", name="Compare two settings").click()
    page.set("stays", 0.97)
    numbers = [float(one) for one in page.page.locator(".figure strong").all_inner_texts()]
    assert len(numbers) == 2
    assert numbers[1] > numbers[0]
    boxes = [page.page.locator(".panel").nth(k).bounding_box() for k in range(2)]
    assert boxes[0]["y"] == boxes[1]["y"]
    page.choose("Setting A")
    assert page.field("stays").input_value() == "0.85"
    other = visit(page.page.url.removeprefix(page.address))
    assert [float(one) for one in other.page.locator(".figure strong").all_inner_texts()] == numbers


def test_matrix_can_be_edited_and_invalid_entries_are_reported(visit):
    page = visit()
    page.choose("Matrix")
    assert page.worst == 0.6632  # still the sample's two matrices
    page.page.get_by_label("probability of R one step after W").fill("0.5")
    page.settle()
    assert "'W' (row 0) sums to" in page.page.locator("#matrix .problem").inner_text()
    assert page.page.locator(".headline .problem").is_visible()
    page.page.get_by_role("button", name="Rescale").click()
    page.settle()
    text = page.page.locator("details code").nth(0).text_content()
    scope = {}
    exec(text, scope)
    assert page.worst == pytest.approx(scope["series"].worst, rel=1e-3)
    forward = scope["forward"]
    assert np.allclose(
        forward.reversed(forward.stationary_distribution()).dense(), scope["backward"].dense(), rtol=1e-12
    )


def test_traces_are_uploaded_and_stay_in_memory(visit, capfd):
    page = visit()
    page.choose("Upload")
    page.page.locator("#upload-file").set_input_files(SAMPLE)
    page.page.wait_for_function(
        "() => document.querySelector('#upload-note').textContent.startsWith('Read:')", timeout=60_000
    )
    page.settle()
    assert page.worst == 0.6632
    assert "from=matrix" in page.page.url
    assert not any("forward=" in url for url in page.requests)  # what is behind the # is sent nowhere
    told = capfd.readouterr()
    assert "W" not in told.out + told.err


@pytest.mark.parametrize(
    ("kind", "content", "said"),
    [
        ("matrix", "state,a,b\na,0.5,0.6\nb,0.5,0.5\n", "sum"),
        ("traces", "user,time,state\nu,1,a\n", "expected"),
        ("traces", "", "expected traces as CSV"),
        ("matrix", "\x00\x01", "expected"),
    ],
)
def test_uploads_that_cannot_be_used_are_explained(browser, kind, content, said):
    page = Visit(*browser).open("#from=sample")
    page.choose("Upload")
    page.page.get_by_label("The file contains").select_option(kind)
    page.page.locator("#upload-file").set_input_files(
        {"name": "x.csv", "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.wait("document.querySelector('#upload-problem').textContent")
    page.settle()
    assert said in page.page.locator("#upload-problem").inner_text()
    assert page.page.locator(".figure, .verdict").count() == 0  # the number of what was shown before is gone
    assert "could not be read" in page.page.locator(".headline").inner_text()
    assert "sample" not in page.page.locator("main").inner_text()
    page.set("epsilon", 0.2)
    assert page.page.locator(".figure").count() == 0
    page.choose("Sample")
    page.set("epsilon", 0.1)
    assert page.worst == 0.6632
    page.complaints.clear()  # the browser writes down every answer 422
    page.close()


def test_columns_of_an_upload_can_be_chosen(visit):
    page = visit()
    page.choose("Upload")
    rows = "".join(f"u{k},{t},{'ab'[(t + k) % 2]}\n" for k in range(3) for t in range(5))
    page.page.locator("#upload-file").set_input_files(
        {"name": "x.csv", "mimeType": "text/csv", "buffer": f"person,time,zone\n{rows}".encode()}
    )
    page.page.get_by_label("Column with the user").select_option("person")
    assert "=..." not in page.page.locator(".layout").inner_text()
    assert page.page.get_by_label("Column with the time").input_value() == "time"
    page.page.get_by_label("Column with the state").select_option("zone")
    assert violations(page) == []
    page.page.get_by_role("button", name="Read with these columns").click()
    page.wait("document.querySelector('#upload-note').textContent.startsWith('Read: 2 states')")
    page.settle()
    assert page.page.locator(".figure").count() == 1
    assert not page.page.locator("#upload-columns").is_visible()


def test_no_column_of_a_matrix_is_cut_off(visit):
    fragment = "#from=matrix&names=a,b,c,d,e&forward=" + ";".join([",".join(["0.2"] * 5)] * 5)
    for how in ({"viewport": {"width": 1280, "height": 900}}, PHONE):
        page = visit(fragment, **how)
        assert page.page.evaluate(
            "(() => { const it = document.querySelector('.matrix-scroll'); return it.scrollWidth <= it.clientWidth })()"
        )


def test_upload_stays_in_view_while_results_arrive(visit):
    page = visit()
    computed = "!document.querySelector('.plan').textContent.includes('being computed')"
    page.wait(computed)
    held, answering = [], False

    def hold(route):
        if answering:
            route.continue_()
        else:
            held.append(route)

    page.page.route("**/v1/view/plan", hold)
    with page.page.expect_request("**/v1/view/plan"):
        page.set("alpha", 0.7)
    page.choose("Upload")
    assert not page.page.evaluate(computed)
    # Choosing asks anew: besides a request that was aborted another may be held, or not have come to `hold` yet.
    answering = True
    for route in held:
        route.continue_()
    page.wait(computed)
    assert page.page.get_by_label("The file contains").is_visible()
    page.set("epsilon", 0.2)
    assert page.page.get_by_label("The file contains").is_visible()


def test_matrix_too_large_for_a_link_is_reported(visit):
    n = 24
    rng = np.random.default_rng(1)
    drawn = rng.dirichlet(np.ones(n), size=n)
    names = [f"s{k}" for k in range(n)]
    lines = [
        ",".join(["", *names]),
        *(",".join([name, *map(repr, row)]) for name, row in zip(names, drawn.tolist(), strict=True)),
    ]
    page = visit()
    page.choose("Upload")
    page.page.get_by_label("The file contains").select_option("matrix")
    page.page.locator("#upload-file").set_input_files(
        {"name": "m.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()}
    )
    page.wait("document.querySelector('#link-note').textContent")
    assert "too large for a link" in page.page.locator("#link-note").inner_text()
    other = visit(page.page.url.removeprefix(page.address))
    assert "too large for a link" in other.page.locator("#problems").inner_text()


@pytest.mark.parametrize(
    "fragment", ["", STICKY, STICKY + "&knows=future", "#from=matrix&names=a,b%22c&forward=0.9,0.1;0.4,0.6&horizon=6"]
)
def test_python_and_the_command_line_give_the_numbers_of_the_page(visit, tmp_path, fragment):
    page = visit(fragment)
    columns = steps_of(page.saved("csv"))
    python, shell = (page.page.locator("details code").nth(k).text_content() for k in range(2))
    scope = {}
    exec(python, scope)
    same_as_library(columns, scope["series"], scope["paper"])
    assert scope["plan"].leakage.worst <= scope["plan"].alpha
    audit = shell[: shell.rindex("temporaldp plan")]
    assert shell.count("temporaldp plan") == 1
    for name in ("backward", "forward"):
        if f"correlation.{name}={name}.csv" in audit:
            (tmp_path / f"{name}.csv").write_bytes(Path(page.saved(name)).read_bytes())
    places = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(["bash", "-ec", audit], cwd=tmp_path, capture_output=True, text=True, check=True, env=places)
    found = json.loads(done.stdout)
    for name in ("backward", "forward", "temporal"):
        assert np.abs(columns[f"{name}_nats"] - found[name]).max() < CLOSE
    assert np.abs(columns["paper_nats"] - found["paper"]["temporal"]).max() < CLOSE


@pytest.mark.parametrize(
    "name", ["b%0ATOUCHED%0AEND_OF_MATRIX%0ATOUCHED", "b%22%3B$(TOUCHED)%60TOUCHED%60", "b%E2%80%A8TOUCHED"]
)
def test_names_from_a_link_never_enter_a_command(visit, name):
    page = visit(f"#from=matrix&names=a,{name}&forward=0.9,0.1;0.4,0.6&horizon=6")
    shell = page.page.locator("details code").nth(1).text_content()
    assert "TOUCHED" not in shell
    assert ("control characters" in page.page.locator("main").inner_text()) == ("%0A" in name or "%80" in name)


@pytest.mark.parametrize("fragment", ["", STICKY + "&b.from=sticky&b.values=4&b.stays=0.6&b.horizon=12"])
def test_the_saved_page_shows_the_same_without_a_server(visit, tmp_path, fragment):
    page = visit(fragment)
    page.wait(PLANNED)
    target = tmp_path / "view.html"
    target.write_bytes(Path(page.saved("html")).read_bytes())
    alone = visit()
    alone.page.goto("about:blank")  # aborts the questions of the served page
    alone.requests.clear()
    alone.open(address=target.as_uri())
    for part in (".figure strong", ".facts", ".where", ".plan p:not(:has(button))", ".witness p", "details code"):
        assert alone.page.locator(part).all_text_contents() == page.page.locator(part).all_text_contents()
    for panel in range(page.page.locator(".panel").count()):
        same_as_page, there = (steps_of(one.saved("csv", panel)) for one in (alone, page))
        assert all((same_as_page[name] == there[name]).all() for name in there)
    for kind in ("svg", "backward"):
        assert Path(alone.saved(kind)).read_bytes() == Path(page.saved(kind)).read_bytes()
    assert "need the server" in alone.page.locator("#saved-note").inner_text()
    assert alone.field("epsilon").is_disabled()
    assert violations(alone) == []
    alone.page.locator(".steplabel input").first.press("Home")
    assert alone.page.locator(".steplabel output").first.inner_text().startswith("1 of")
    assert "This file has the observation about step" in alone.page.locator(".witness").first.inner_text()
    assert {url.split(":")[0] for url in alone.requests} <= {"file", "blob", "data", "about"}


def test_rapid_slider_changes_show_the_latest_result_with_few_requests(visit):
    page = visit(STICKY)
    page.requests.clear()
    page.page.evaluate(
        """() => {
            const field = document.querySelector("#control-epsilon");
            for (let k = 1; k <= 60; k++) {
                field.value = k / 100;
                field.dispatchEvent(new Event("input", { bubbles: true }));
            }
        }"""
    )
    page.settle()
    assert page.worst == pytest.approx(tdp.temporal_leakage(sticky(4, 0.85), [0.6] * 12).worst, rel=1e-3)
    assert sum(url.endswith("/v1/view/leakage") for url in page.requests) <= 3


def test_superseded_request_is_aborted(visit):
    page = visit(STICKY)
    page.page.route("**/v1/view/leakage", lambda route: held.append(route) if not held else route.continue_())
    held = []
    page.field("epsilon").fill("0.3")
    with page.page.expect_event("requestfailed", lambda request: request.url.endswith("leakage")):
        page.field("epsilon").fill("0.4")
    page.settle()
    assert page.worst == pytest.approx(tdp.temporal_leakage(sticky(4, 0.85), [0.4] * 12).worst, rel=1e-3)


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_pictures_are_saved(visit, kind, begins):
    page = visit()
    content = Path(page.saved(kind)).read_bytes()
    assert content.startswith(begins)
    if kind == "svg":
        from xml.etree import ElementTree as Xml

        words = "".join(Xml.fromstring(content).itertext())
        assert "At most 0.6632 nats leak about one step" in words
        assert "W rather than N3" in words


def test_page_can_be_used_by_keyboard_alone(visit):
    page = visit(STICKY)
    keyboard = page.page.keyboard
    focused = "document.activeElement"

    def tab_to(condition, most=80):
        for _ in range(most):
            keyboard.press("Tab")
            if page.page.evaluate(f"(() => {{ const it = {focused}; return Boolean({condition}); }})()"):
                return
        raise AssertionError(f"the keyboard does not reach {condition}")

    keyboard.press("Tab")
    assert "Skip" in page.page.evaluate(f"{focused}.textContent")
    tab_to("it.id === 'source-sticky'")
    keyboard.press("ArrowLeft")  # to the sample
    page.settle()
    assert "from=sample" in page.page.url
    keyboard.press("ArrowRight")
    page.settle()
    tab_to("it.type === 'range' && it.ariaLabel.startsWith('Probability')")
    before = page.worst
    for _ in range(40):
        keyboard.press("ArrowRight")
    page.settle()
    assert page.worst > before
    tab_to("it.id === 'control-horizon'")
    tab_to("it.type === 'range'")
    keyboard.press("ArrowRight")
    page.settle()
    assert page.field("horizon").input_value() == "13"
    tab_to("it.closest('.steplabel')")
    keyboard.press("Home")
    page.settle()
    assert page.page.locator(".steplabel output").inner_text() == "1 of 13"
    tab_to("it.dataset.file === 'csv'")
    with page.page.expect_download():
        keyboard.press("Enter")
    tab_to("it.tagName === 'SUMMARY'")
    keyboard.press("Enter")
    assert page.page.locator("details").first.evaluate("it => it.open")
    outline = page.page.evaluate(f"getComputedStyle({focused}).outlineStyle")
    assert outline != "none"


def violations(page):
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    found = page.page.evaluate(axe + "; axe.run(document, {resultTypes: ['violations']})")
    return [(one["id"], [node["html"][:120] for node in one["nodes"]][:3]) for one in found["violations"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("how", [{}, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize(
    "fragment",
    [
        "",
        STICKY + "&b.from=sample&b.alpha=0.1",
        "#from=matrix&names=a,b&forward=0.9,0.2;0.4,0.6",
        "#from=matrix&names=a,b&forward=0.9,0.1;0.4,0.6&epsilon=7",
        "#epsilon=wrong",
    ],
    ids=["sample", "two", "bad-matrix", "matrix", "problem"],
)
def test_labels_and_contrast_pass_axe_and_nothing_scrolls_sideways(visit, scheme, how, fragment):
    page = visit(fragment, color_scheme=scheme, **how)
    for summary in page.page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    assert violations(page) == []
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dark_and_light_follow_the_system_or_the_user(visit):
    ground = "getComputedStyle(document.body).backgroundColor"

    def brightness(page):
        return sum(map(int, re.findall(r"\d+", page.page.evaluate(ground))[:3]))

    dark, light = visit(color_scheme="dark"), visit(color_scheme="light")
    assert brightness(dark) < 100 < 600 < brightness(light)
    chart = light.page.locator(".curves .plot")
    before = chart.screenshot()
    light.page.get_by_role("button", name="Light or dark").click()
    light.settle()
    assert brightness(light) < 100
    assert chart.screenshot() != before


def test_gaussian_noise_at_a_delta_is_computed_by_the_server_and_saved(visit, tmp_path):
    page = visit("#from=sticky&values=2&stays=0.7&noise=gaussian&scale=10&delta=1e-5&horizon=4&alpha=2")
    page.page.wait_for_function(
        "() => /one curve for each pair/.test(document.querySelector('.headline').textContent)", timeout=120_000
    )
    scope = {}
    exec(page.page.locator("details code").nth(0).text_content(), scope)
    columns = steps_of(page.saved("csv"))
    same_as_library(columns, scope["series"])
    assert page.worst >= scope["series"].worst * (1.0 - 1e-12)
    target = tmp_path / "view.html"
    target.write_bytes(Path(page.saved("html")).read_bytes())
    alone = visit()
    alone.open(address=target.as_uri())
    assert alone.worst == page.worst
    assert alone.field("scale").is_disabled()


HOSTILE = "%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"


def test_names_of_states_are_rendered_as_text(visit, tmp_path):
    page = visit(f"#from=matrix&names={HOSTILE},b&forward=0.9,0.1;0.4,0.6&horizon=6")
    assert "<img" in page.page.locator(".where").inner_text()
    assert page.page.locator("img").count() == 0
    target = tmp_path / "view.html"
    target.write_bytes(Path(page.saved("html")).read_bytes())
    alone = visit()
    alone.open(address=target.as_uri())
    assert "<img" in alone.page.locator(".where").inner_text()
    assert alone.page.locator("img").count() == 0
    assert b"<img" not in Path(page.saved("svg")).read_bytes()


# Linear RGB as people see it who lack one kind of cone: Machado, Oliveira, Fernandes (2009), severity 1.
LACKING = {
    "nothing": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour, lacking):
    """CIE Lab of a colour as somebody sees it."""
    encoded = np.array([int(colour[k : k + 2], 16) / 255.0 for k in (1, 3, 5)])
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(LACKING[lacking]) @ linear, 0.0, 1.0)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt((np.array(to_xyz) @ seen) / [0.9505, 1.0, 1.089])
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


@pytest.mark.parametrize("lacking", LACKING)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_curves_of_the_three_leakages_are_distinguishable_without_colour(visit, theme, lacking):
    look = visit().page.evaluate(f"import('/page/look.js').then((m) => m.colours('{theme}'))")
    seen = [lab(look[name], lacking) for name in ("temporal", "backward", "forward", "card")]
    distances = [np.linalg.norm(one - other) for k, one in enumerate(seen) for other in seen[:k]]
    assert min(distances) > 20.0  # a difference of 2 is just noticed
