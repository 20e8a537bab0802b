"""Links of the documentation lead to files and headings that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "reproduction").glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
GENERATED = {"docs/reference.md", "docs/command-line.md", "docs/request.schema.json"}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def headings(page: Path) -> set[str]:
    """The anchors that the site and GitHub give to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).lower()) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for path, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        target = (page.parent / path).resolve() if path else page
        if "://" in path or str(target.relative_to(ROOT)) in GENERATED:
            continue
        assert target.exists(), path
        if anchor:
            assert anchor in headings(target), f"{path}#{anchor}"


def test_the_menu_has_every_page_once():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    listed = re.findall(r": ([\w/-]+\.md)$", menu, re.MULTILINE)
    pages = (ROOT / "docs").rglob("*.md")
    written = [page.relative_to(ROOT / "docs").as_posix() for page in pages]
    generated = [name.removeprefix("docs/") for name in GENERATED if name.endswith(".md")]
    assert sorted(listed) == sorted(written + generated)
