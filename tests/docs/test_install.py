"""The page on installing names everything that can be installed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_extra_and_the_oldest_python_are_named():
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| `.*?\|", PAGE))))
    assert named == set(PROJECT["optional-dependencies"]) - {"docs", "dev"}
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {oldest} or newer" in PAGE


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
