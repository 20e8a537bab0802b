"""Every feature of the papers is named on one page, and every name and link on it is real."""

import importlib
import re
from pathlib import Path

import pytest

import tallyveil as tv

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


def test_every_paper_has_its_features():
    for paper in ("000", "001", "002", "003"):
        section = TEXT.split(f"## {paper}")[1].split("\n## ")[0]
        assert section.count("\n| ") >= 9


def test_two_clicks_from_the_front_page():
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert "(features.md)" in front


@pytest.mark.parametrize(
    "page", [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link
