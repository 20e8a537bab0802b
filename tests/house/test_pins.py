"""What is installed is pinned: versions in constraints.txt, their hashes in requirements.txt."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
HASHED = (ROOT / "requirements.txt").read_text(encoding="utf-8")


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text):
    return {normal(name): version for name, version in re.findall(r"(?m)^([\w.-]+)==(\S+)", text)}


def test_every_pin_has_hashes_and_the_same_version():
    needed, _, _ = PINS.partition("# Only for the peers")
    assert pins(HASHED) == pins(needed)
    for block in re.split(r"(?m)^(?=\w)", HASHED)[1:]:
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
