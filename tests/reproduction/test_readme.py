"""Every feature of the papers is in the folder's README, and every name there is real."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import reproduction
import tallyveil as tv
from reproduction.papers import PAPERS
from tallyveil._lazy import read_stub

FOLDER = Path(reproduction.__file__).parent
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`((?:tv|tallyveil|reproduction)(?:\.\w+)+)`", TEXT)))
MODULES = sorted(m.name for m in pkgutil.walk_packages(reproduction.__path__, "reproduction."))


def find(dotted: str) -> object:
    parts = dotted.split(".")
    if parts[0] == "tv":
        thing: object = tv
        for part in parts[1:]:
            thing = getattr(thing, part)
        return thing
    return getattr(importlib.import_module(".".join(parts[:-1])), parts[-1])


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists_and_is_documented(name):
    assert getattr(find(name), "__doc__", None)


def section(paper: str) -> str:
    """The part of the page under the heading that names the paper's authors and year."""
    heading = PAPERS[paper].citation.split("), ")[0] + ")"
    return TEXT.split(f"\n### {heading}:")[1].split("\n##")[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_public_name_of_a_paper_is_in_its_section(paper):
    homes = read_stub(tv.papers.__file__)
    names = {name for name, home in homes.items() if f"{home}.".split(".")[2] == paper}
    assert names
    for name in names:
        assert re.search(rf"`tv\.papers\.{name}[`.]", section(paper)), name


@pytest.mark.parametrize("paper", PAPERS)
def test_every_feature_names_something_real(paper):
    rows = [row for row in section(paper).splitlines() if row.startswith("| ")][1:]
    assert rows
    for row in rows:
        _, feature, names, _ = (cell.strip() for cell in row.split("|"))
        assert feature
        assert re.search(r"`(tv|tallyveil|reproduction)\.[\w.]+`", names), row


def test_the_numbers_of_verdicts_are_those_of_the_page():
    page = (FOLDER / "verdicts.md").read_text(encoding="utf-8")
    verdicts = re.findall(r"^\| \[.*\| ([^|]+) \|$", page, re.MULTILINE)
    known, open_ones = "differs, with a known reason", "differs, reason not established"
    counts = [sum(v.startswith(word) for v in verdicts) for word in ("matches", known, open_ones)]
    better = sum("we do better" in verdict for verdict in verdicts)
    summary = re.search(
        r"Of (\d+) items,\s+(\d+) match the print, (\d+) differ for a known reason, most often a "
        r"misprint, and (\d+) differ for a reason\s+that is not established\. In (\d+) of them",
        TEXT,
    )
    assert [int(number) for number in summary.groups()] == [len(verdicts), *counts, better]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
