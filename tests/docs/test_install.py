"""The page on installing names everything that can be installed."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_extra_is_explained():
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"(?m)^\| `.*?\|", PAGE))))
    assert named == set(PROJECT["optional-dependencies"]) - {"docs", "dev"}


def test_the_page_names_the_oldest_python():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {oldest} or newer" in PAGE
