"""What the documents tell a reader to type runs as it stands, and shows what they say; their Python lines run as doctests."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from places import REPOSITORY
from registry_records import VISITS
from temporaldp import __version__
from transport_agency import write_table

DOCS = REPOSITORY / "docs"
DOCUMENTS = [REPOSITORY / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
SAMPLE = REPOSITORY / "src" / "temporaldp" / "data" / "sample" / "sleep_5min.csv"
BLOCK = re.compile(r"^```(\w+)( fails)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

OWN_DATA = "docs/tutorials/own-data.md"

# Documents whose lines run in a folder of their own, from the first block to the last.
RUN = [
    "README.md",
    "docs/how-to/alpha.md",
    "docs/how-to/epsilon.md",
    "docs/how-to/shell.md",
    "docs/tutorials/deployment.md",
    "docs/tutorials/own-data.md",
    "docs/tutorials/stream.md",
]
# Documents with lines that cannot, and why.
NOT_RUN = {
    "docs/how-to/operation.md": "jobs of a server, under paths of its own; tests/apps/cli/test_operation.py runs the commands",
    "docs/how-to/shapes.md": "needs trips that are not bundled; tests/publish/project/test_raw_tables.py runs the commands",
    "docs/how-to/page.md": "starts a server that runs until it is stopped; tests/apps/browser and tests/apps/serve do",
    "docs/how-to/service.md": "the same; tests/apps/serve/test_documents.py runs its requests",
    "docs/how-to/smoothing.md": "goes on from a plan of another page; tests/apps/cli/test_smoothing.py runs the commands",
    "docs/how-to/upgrading.md": "paths of a server; tests/apps/cli/test_operation.py runs the commands",
    "docs/measured/published-systems.md": "tests/apps/cli/test_deployment.py compares what the line prints with the page",
}


def shell_blocks(document):
    """The blocks of a document that are for the shell, whether they are to fail, and what they show: the text after them."""
    found = BLOCK.findall((REPOSITORY / document).read_text())
    for k, (language, fails, lines) in enumerate(found):
        if language == "sh":
            shown = found[k + 1][2] if k + 1 < len(found) and found[k + 1][0] == "text" else ""
            yield lines, bool(fails), shown
    script = "".join(lines for language, _, lines in found if language == "python")
    if document == OWN_DATA:  # the doctests run the Python lines of other documents
        yield f"python - <<'END'\n{script}END\n", False, ""


def in_a_shell(lines, folder):
    """The lines as they stand, in a shell that stops at the first that fails."""
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": binaries, "COLUMNS": "120"}
    return subprocess.run(
        ["bash", "-ec", lines], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )  # fmt: skip


def squeezed(text):
    """Without the spaces that fill up columns."""
    return " ".join(text.split())


@pytest.mark.long
@pytest.mark.parametrize("document", RUN)
def test_shell_commands_of_a_document_run_and_print_what_it_shows(document, tmp_path):
    shutil.copy(SAMPLE, tmp_path / "traces.csv")
    head, *rows = SAMPLE.read_text().splitlines()
    (tmp_path / "past.csv").write_text("\n".join([head, *("other " + row for row in rows)]) + "\n")  # of other people
    (tmp_path / "record.yaml").write_text(VISITS)
    if document == OWN_DATA:
        write_table(tmp_path / "visits.csv", n_people=3000, days=5, seed=1)
        write_table(tmp_path / "past.csv", n_people=3000, days=5, seed=2, start="2024-02-26")
    for lines, fails, shown in shell_blocks(document):
        if lines.startswith("make "):  # of a checkout, not of this folder
            continue
        result = in_a_shell(lines, tmp_path)
        assert (result.returncode != 0) == fails, (lines, result.stderr)
        told = squeezed(result.stdout + result.stderr)
        for line in shown.splitlines():
            assert squeezed(line) in told, (lines, line, told)


def test_every_shell_command_is_run_or_exempted():
    with_lines = {str(path.relative_to(REPOSITORY)) for path in DOCUMENTS if list(shell_blocks(path))}
    assert with_lines == set(RUN) | set(NOT_RUN)


def test_record_of_the_tutorial_is_the_one_that_is_run():
    blocks = BLOCK.findall((DOCS / "tutorials" / "deployment.md").read_text())
    assert [text for language, _, text in blocks if language == "yaml"] == [VISITS]


def test_readme_is_short():
    words = (REPOSITORY / "README.md").read_text().split()
    assert sum(bool(re.search(r"\w", word)) for word in words) <= 500  # without bars of tables


@pytest.mark.parametrize(
    "path", sorted({*DOCUMENTS, *REPOSITORY.glob("*.md")}), ids=lambda path: str(path.relative_to(REPOSITORY))
)
def test_links_of_a_document_exist(path):
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", BLOCK.sub("", path.read_text())):
        if link.startswith(("http:", "https:")):
            continue
        target = path.parent / link if link else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), f"{link}#{anchor}"


def test_citation_and_changelog_have_the_current_version():
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    changelog = (REPOSITORY / "CHANGELOG.md").read_text()
    assert f"## [{__version__}] - {citation['date-released']}" in changelog
    assert f"version = {{{__version__}}}" in (REPOSITORY / "docs" / "readers" / "cite.md").read_text()


def test_makefile_targets_of_the_contributing_guide_exist():
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)`", (REPOSITORY / "CONTRIBUTING.md").read_text())) <= targets


def anchors(path):
    """The names under which the headings of a document can be linked to, as GitHub makes them, and those it sets itself."""
    text = path.read_text()
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(
        re.findall(r'(?:id|name)="([^"]+)"', text)
    )


@pytest.mark.long
@pytest.mark.parametrize("path", sorted((REPOSITORY / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(path, tmp_path):
    if "diffprivlib" in path.name:
        pytest.importorskip("diffprivlib", reason="the extra 'diffprivlib' is not installed")
    result = subprocess.run([sys.executable, path], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    told = re.findall(r"worst leakage ([0-9.]+)", result.stdout)
    assert told, result.stdout
    assert all(float(leakage) > 0.0 for leakage in told)


def test_the_mean_of_the_example_has_the_sensitivity_that_it_claims():
    """At a budget at which there is no noise, one person's level moves the sum by at most 9, whatever it is."""
    names = runpy.run_path(str(REPOSITORY / "examples" / "opendp_mean.py"))
    levels = np.full(names["PEOPLE"], 4)
    sums = []
    for level in (-1000, 0, 9, 1000):
        levels[0] = level
        sums.append(round(names["BoundedSum"]()(levels, epsilon=1e4) * names["PEOPLE"]))
    assert sums == [sums[0], sums[0], sums[0] + 9, sums[0] + 9]
