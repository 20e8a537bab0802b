"""What is installed is pinned: versions in constraints.txt, hashes in the two files for pip."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
PROGRAM, DEVELOPMENT = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("requirements.txt", "requirements-dev.txt")
)
HASHED = PROGRAM + DEVELOPMENT


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text):
    return {normal(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+)", text)}


def test_every_pin_has_hashes_and_the_same_version():
    assert pins(HASHED) == pins(PINS)
    assert not set(pins(PROGRAM)) & set(pins(DEVELOPMENT))
    for block in re.split(r"(?m)^(?=[\w#])", HASHED):
        if block.startswith("#") or not block:
            continue
        assert re.fullmatch(r"[\w.-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+\n", block)


def test_neither_file_names_an_address():
    assert "://" not in PINS + HASHED


def test_everything_the_project_asks_for_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lists = (
        project["build-system"]["requires"],
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
    )
    asked = {normal(re.match(r"[\w.-]+", line)[0]) for lines in lists for line in lines}
    assert {"numpy", "hatchling", "pytest"} <= asked
    assert asked - {"tallyveil"} <= set(pins(HASHED))


def test_the_program_is_installed_without_tools_for_tests():
    core = set(pins(PROGRAM))
    needed = {"numpy", "scipy", "clarabel", "cryptography", "typer", "pyarrow", "msgspec", "jinja2"}
    assert needed | {"hatchling", "editables"} <= core
    assert not core & {
        "pytest",
        "mypy",
        "ruff",
        "mkdocs",
        "pandas",
        "polars",
        "matplotlib",
    }
