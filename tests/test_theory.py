"""docs/theory: section numbers are unique, cited sections exist, each section names an oracle, chapters are short."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from places import REPOSITORY

CHAPTERS = sorted((REPOSITORY / "docs" / "theory").glob("*.md"))
SECTION = re.compile(r"^## (\d+)\. ", re.MULTILINE)
CITED = re.compile(r"[Tt]heory, sections? (\d+)(?:(?:,| and) (\d+))*")
NUMBERS = Counter(number for chapter in CHAPTERS for number in SECTION.findall(chapter.read_text()))


def cited():
    """Each file of code or prose that cites sections of the theory, with their numbers."""
    for folder in ("src", "tests", "benchmarks", "reproduction", "docs"):
        for path in (REPOSITORY / folder).rglob("*"):
            if path.suffix in {".py", ".md", ".j2"} and "_build" not in path.parts:
                text = " ".join(path.read_text(encoding="utf-8").split())
                for citation in CITED.finditer(text):
                    yield str(path.relative_to(REPOSITORY)), re.findall(r"\d+", citation[0])


def test_section_numbers_are_unique_and_complete():
    assert Counter(str(number) for number in range(1, len(NUMBERS) + 1)) == NUMBERS


def test_every_cited_section_exists():
    found = list(cited())
    assert len(found) > 30
    assert not [(path, numbers) for path, numbers in found if not set(numbers) <= set(NUMBERS)]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.stem)
def test_a_chapter_is_short_and_its_sections_name_their_oracles(chapter):
    text = chapter.read_text()
    assert len(text.split()) <= 4000
    for section in re.split(r"^(?=## \d)", text, flags=re.MULTILINE)[1:]:
        tests = re.findall(r"`(tests/[\w/]+\.py)`", re.split(r"\*Oracle:\*", section, maxsplit=1)[-1])
        assert tests, section.partition("\n")[0]
        assert all((REPOSITORY / test).exists() for test in tests), tests
