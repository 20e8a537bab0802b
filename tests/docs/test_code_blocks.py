"""Every code block in the documentation runs, in the order of its page, in a clean folder.

```python blocks share one namespace per page; lines of a ```console block that start with
``$ tallyveil`` are run as a user would, and so is the demo of ``make demo`` before a page that asks
for it. A block of another language is only text.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    return [(kind, code) for kind, code in BLOCK.findall(text) if kind in ("python", "console")]


WITH_CODE = [page for page in PAGES if blocks(page)]


def run_console(text: str, folder: Path) -> None:
    program = Path(sys.executable).with_name("tallyveil")
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ tallyveil "):
            words = shlex.split(line[2:])
            done = subprocess.run(
                [str(program), *words[1:]], cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{line}\n{done.stderr}"


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__docs__"}
    if "make demo" in page.read_text(encoding="utf-8"):
        run_console("$ tallyveil demo --out out/demo", tmp_path)
    for kind, text in blocks(page):
        if kind == "console":
            run_console(text, Path(os.getcwd()))
        else:
            exec(compile(text, str(page), "exec"), names)


def test_the_pages_have_code():
    assert len(WITH_CODE) >= 10


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: str(page.relative_to(ROOT))
)
def test_code_fits_the_column(page):
    """80 characters are shown beside the two menus of the site; drawings in text may scroll."""
    for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        wide = [line for line in text.splitlines() if len(line) > 80 and "──" not in text]
        assert kind == "text" or not wide, wide
