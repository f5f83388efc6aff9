"""`make docs`: the site is built without a warning or a network, its notebooks run, and every link in it leads somewhere."""

from __future__ import annotations

import inspect
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

import temporaldp
from places import REPOSITORY

pytest.importorskip("sphinx", reason="the extra 'docs' is not installed")
pytestmark = pytest.mark.long
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """What a page links to, what it loads, and the anchors that it has."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors, self.formulas, self.text = [], [], set(), 0, ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if given.get(LOADED.get(tag)):
            self.loads.append(given[LOADED[tag]])
        self.formulas += tag == "math"

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "-d", folder / "trees"]
    done = subprocess.run(
        [*command, "docs", folder / "html"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.relative_to(folder / "html").as_posix(): Page(path) for path in (folder / "html").rglob("*.html")}


def is_outside(address):
    return bool(urlsplit(address).scheme or address.startswith("//"))


def test_internal_links_of_the_site_exist(site, tmp_path_factory):
    for name, page in site.items():
        for link in page.links:
            if is_outside(link):
                continue
            parts = urlsplit(link)
            target = (REPOSITORY / name).parent / unquote(parts.path) if parts.path else REPOSITORY / name
            at = target.resolve().relative_to(REPOSITORY).as_posix()
            if not at.endswith(".html"):  # a file to download
                continue
            assert at in site, f"{name} links to {link}"
            assert not parts.fragment or unquote(parts.fragment) in site[at].anchors, f"{name} links to {link}"


def test_no_page_loads_external_resources(site):
    assert not {
        load for page in site.values() for load in page.loads if is_outside(load) and not load.startswith("data:")
    }


def test_every_public_name_has_a_page_and_every_document_is_on_the_site(site):
    names = {name for name in temporaldp.__all__ if not inspect.ismodule(getattr(temporaldp, name))}
    names |= {f"studies.{name}" for name in temporaldp.studies.__all__}
    assert {f"api/temporaldp.{name}.html" for name in names} <= set(site)
    docs = REPOSITORY / "docs"
    documents = {path.relative_to(docs).with_suffix(".html").as_posix() for path in docs.rglob("*.md")}
    assert {name for name in documents if not name.startswith("_build")} <= set(site)


def test_all_formulas_are_rendered(site):
    chapters = [page for name, page in site.items() if name.startswith("theory/")]
    assert sum(chapter.formulas for chapter in chapters) > 500
    for chapter in chapters:
        assert r"\mathrm" not in chapter.text
        assert "$$" not in chapter.text


def test_notebooks_show_the_outputs_of_their_cells(site):
    assert "0.663176" in site["notebooks/people.html"].text
    assert sum("_images" in load for load in site["notebooks/people.html"].loads) >= 1
