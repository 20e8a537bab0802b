"""The errata of the papers: every reference to an entry finds it, and the site shows the page."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

import tallyveil
from tallyveil.papers.harness.bibliography import PAPERS

ERRATA = (files("tallyveil.papers") / "ERRATA.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^- \*\*(\w+) (\d+)\*\* \(", ERRATA, re.MULTILINE)
REFERENCE = re.compile(r"errata,\s+(Cormode|Croft|Kohli|Gupte)\s+(\d+)")
PACKAGE = Path(tallyveil.__file__).parent


@pytest.mark.parametrize("paper", PAPERS)
def test_entries_are_numbered_from_one_without_gaps(paper):
    numbers = sorted(int(number) for author, number in ENTRIES if author.lower() == paper)
    assert numbers == list(range(1, len(numbers) + 1))
    assert f"## {PAPERS[paper].citation.partition('),')[0]})" in ERRATA


def test_every_reference_in_the_package_finds_its_entry():
    cited = {
        reference
        for path in PACKAGE.rglob("*.py")
        for reference in REFERENCE.findall(path.read_text(encoding="utf-8"))
    }
    assert len(cited) >= 8
    assert cited <= set(ENTRIES)


def test_the_site_includes_the_page_itself():
    docs = Path(__file__).parents[2] / "docs" / "errata.md"
    assert docs.read_text(encoding="utf-8").strip() == '--8<-- "ERRATA.md"'
