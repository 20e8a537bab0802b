"""Every file in examples/ runs as its first lines say, from a folder that is not the project's."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    file.name: file.read_text(encoding="utf-8") for file in (ROOT / "examples").glob("*.py")
}
RUN = re.compile(r"^Run: python (examples/\w+\.py)(.*)$", re.MULTILINE)
LIST = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


def wanted_words(text):
    """The words of the Run line without optional ones in brackets, pictures by name only."""
    words = shlex.split(re.sub(r"\[[^]]*\]", "", RUN.search(text)[2]))
    return [Path(word).name for word in words]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_example_runs(name, tmp_path):
    assert RUN.search(EXAMPLES[name])[1] == f"examples/{name}"
    words = wanted_words(EXAMPLES[name])
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(words)
    for word in words:
        assert (tmp_path / word).read_bytes().startswith(b"\x89PNG")


def test_every_picture_of_the_documentation_has_its_script():
    made = {word for text in EXAMPLES.values() if RUN.search(text) for word in wanted_words(text)}
    pictures = {file.name for file in (ROOT / "docs" / "images").glob("*.png")}
    assert {name for name in pictures if not name.startswith("studio_")} == made & pictures
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    assert all(f"images/{name})" in pages for name in pictures)


def test_every_example_is_listed():
    for name in EXAMPLES:
        assert f"`{name}`" in LIST
