"""The errata of the papers: every reference to an entry finds it."""

import re
from pathlib import Path

import pytest

import reproduction
import tallyveil
from reproduction.papers import PAPERS

FOLDER = Path(reproduction.__file__).parent
ERRATA = (FOLDER / "ERRATA.md").read_text(encoding="utf-8")
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
        for folder in (PACKAGE, FOLDER)
        for path in folder.rglob("*.py")
        for reference in REFERENCE.findall(path.read_text(encoding="utf-8"))
    }
    assert len(cited) >= 8
    assert cited <= set(ENTRIES)
