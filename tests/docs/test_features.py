"""Every feature of the papers is named on one page, and every name and link on it is real."""

import importlib
import re
from pathlib import Path

import pytest

import tallyveil as tv
from tallyveil._lazy import read_stub
from tallyveil.papers.harness.bibliography import PAPERS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`((?:tv|tallyveil)\.[\w.]+)`", TEXT)))
FILES = sorted(set(re.findall(r"`(examples/[\w.]+)`", TEXT)))


def found(dotted: str) -> object:
    parts = dotted.split(".")
    if parts[0] == "tv":
        thing: object = tv
        for part in parts[1:]:
            thing = getattr(thing, part)
        return thing
    return getattr(importlib.import_module(".".join(parts[:-1])), parts[-1])


@pytest.mark.parametrize("name", NAMES)
def test_the_name_exists_and_is_documented(name):
    assert getattr(found(name), "__doc__", None)


@pytest.mark.parametrize("path", FILES)
def test_the_example_exists(path):
    assert (ROOT / path).is_file()


def section(paper: str) -> str:
    """The part of the page under the heading that names the paper's authors and year."""
    heading = PAPERS[paper].citation.split("), ")[0] + ")"
    return TEXT.split(f"\n## {heading}:")[1].split("\n## ")[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_public_name_of_a_paper_is_in_its_section(paper):
    homes = read_stub(tv.papers.__file__)
    names = {name for name, home in homes.items() if f"{home}.".split(".")[2] == paper}
    assert names
    told = section(paper)
    for name in names:
        assert re.search(rf"`tv\.papers\.{name}[`.]", told), name


@pytest.mark.parametrize("paper", PAPERS)
def test_every_feature_names_something_real(paper):
    rows = [row for row in section(paper).splitlines() if row.startswith("| ")][1:]
    assert rows
    for row in rows:
        _, feature, names, page, _ = (cell.strip() for cell in row.split("|"))
        assert feature
        assert re.search(r"`(tv|tallyveil)\.[\w.]+`|`examples/[\w.]+`", names), row
        assert re.fullmatch(r"\[.+\]\([\w/-]+\.md\)", page), row
