"""The pages as they are typeset: every formula is set, nothing is garbled or badly broken."""

import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import markdown
import pytest
from mkdocs.config import load_config

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
WITH_MATHEMATICS = [
    page for page in sorted(DOCS.rglob("*.md")) if "$" in FENCE.sub("", page.read_text("utf-8"))
]


@pytest.fixture(scope="module")
def typeset():
    spec = importlib.util.spec_from_file_location("typeset", DOCS / "typeset.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def render(typeset):
    """A page as the site shows it, without what other plugins add."""
    config = load_config(str(ROOT / "mkdocs.yml"))
    extensions = [name for name in config.markdown_extensions if name != "pymdownx.snippets"]

    def read(page):
        reader = markdown.Markdown(extensions=extensions, extension_configs=config.mdx_configs)
        return typeset.on_page_content(reader.convert(page.read_text("utf-8")))

    return read


@pytest.mark.parametrize("page", WITH_MATHEMATICS, ids=lambda page: page.stem)
def test_every_formula_is_set_and_no_mark_is_left_over(render, page):
    shown = render(page)
    formulas = re.findall(r"<math.*?</math>", shown, re.DOTALL)
    assert formulas
    for formula in formulas:
        assert "".join(ElementTree.fromstring(formula).itertext()).strip()
    text = re.sub(r"<math.*?</math>|<code.*?</code>|<[^>]*>", "", shown, flags=re.DOTALL)
    for mark in ("$", "_(", "^", "*", "\\", "_i", "_j"):
        assert mark not in text, text[max(0, text.index(mark) - 60) :][:120]


def test_a_star_and_an_index_survive(render):
    assert DOCS / "theory.md" in WITH_MATHEMATICS
    shown = render(DOCS / "theory.md")
    index = r"<mrow><mi>i</mi><mo>&#x0002B;</mo><mn>1</mn></mrow>"
    assert f"<msubsup><mi>f</mi>{index}<mo>&#x0002A;</mo></msubsup>" in shown


def test_theorems_have_headings_that_links_reach(render):
    text = (DOCS / "theory.md").read_text("utf-8")
    identifiers = set(re.findall(r'<h2 id="([^"]+)"', render(DOCS / "theory.md")))
    inside = set(re.findall(r"\]\(#([^)]+)\)", text))
    for page in DOCS.rglob("*.md"):
        inside |= set(re.findall(r"theory\.md#([^)]+)\)", page.read_text("utf-8")))
    assert inside <= identifiers


@pytest.mark.parametrize("latex", [r"\unheard{x}", r"a & b"])
def test_what_cannot_be_set_stops_the_build(typeset, latex):
    with pytest.raises(ValueError, match="cannot be set"):
        typeset.set_formula(latex, display=False)


def test_options_and_formulas_with_their_marks_are_not_broken(typeset):
    shown = typeset.on_page_content("<code>tallyveil interpret f --by-state x</code> and a--b")
    assert '<span class="unbroken">--by-state</span>' in shown
    assert "a--b" in shown
    shown = typeset.on_page_content('<span class="arithmatex">\\(x\\)</span>, so')
    assert re.fullmatch(r'<span class="unbroken"><math.*</math>,</span> so', shown)
