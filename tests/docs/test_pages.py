"""Pages name what there is: links, headings, extras, commands and public names."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

import tallyveil as tv

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "reproduction").glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
GENERATED = {"docs/reference.md", "docs/command-line.md", "docs/request.schema.json"}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


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


def test_every_extra_and_the_oldest_python_are_named():
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| `.*?\|", INSTALL))))
    assert named == set(PROJECT["optional-dependencies"]) - {"docs", "dev"}
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {oldest} or newer" in INSTALL


def test_no_page_installs_a_name_that_anybody_may_register():
    """A wheel from a file, or a folder of wheels: never `pip install` and the bare name."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*")]
    pages += [*(ROOT / "src").rglob("*.py")]
    bare_names = []
    for page in pages:
        if page.is_file() and page.suffix in (".md", ".py", ".ipynb"):
            for line in page.read_text(encoding="utf-8").splitlines():
                fetched = re.search(r"(?:pip|pipx|uv|conda)\b.*\binstall\b[^`]*\btallyveil\b", line)
                if fetched and ".whl" not in line and "--no-index" not in line:
                    bare_names.append(f"{page.name}: {line.strip()}")
    assert bare_names == []


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_option_is_on_the_page(generate):
    page = generate.build_command_line()
    group = generate.typer.main.get_command(generate.app)
    commands = list(generate.list_commands(group))
    assert ("ledger", "init") in commands
    for words in commands:
        section = page.split(f"\n## tallyveil {' '.join(words)}\n")[1].split("\n## ")[0]
        command = group
        for word in words:
            command = command.commands[word]
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert parameter.opts[0] in section, words


def test_every_public_name_and_key_is_on_its_page(generate):
    page = generate.build_reference()
    for space, module in {"tv": tv, "tv.results": tv.results, "tv.papers": tv.papers}.items():
        for name in set(module.__all__) - {"__version__", "results", "papers"}:
            home = getattr(module, name)
            assert f"heading: {space}.{name}," in page or isinstance(home, type(tv))
    assert "epsilon" in json.loads(generate.build_schema())["properties"]
