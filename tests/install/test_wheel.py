"""What a user installs: the wheel holds the whole program, and runs where only it is installed."""

import os
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CLEAN = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env=CLEAN,
        **options,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    quiet = ("--quiet", "--no-deps", "--no-build-isolation")
    run(sys.executable, "-m", "pip", "wheel", *quiet, "--wheel-dir", folder, ROOT)
    (made,) = folder.glob("tallyveil-*.whl")
    return made


def test_the_wheel_holds_every_file_of_the_source_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if not re.match(r"[^/]+\.dist-info/", name)}
    source = ROOT / "src"
    ours = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".pyo")
    }
    assert packed == ours


@pytest.mark.slow
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_the_wheel_runs_in_a_clean_environment(wheel, which, tmp_path):
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    python, program = home / "bin" / "python", home / "bin" / "tallyveil"
    pins = []
    if which == "oldest":
        pins = [line.replace(">=", "==") for line in PROJECT["dependencies"]]
    run(python, "-m", "pip", "install", "--quiet", wheel, *pins)
    demo = run(program, "demo", "--out", tmp_path / "demo", cwd=tmp_path)
    assert "A stranger checks the folder" in demo
    for command in (
        ("check", "demo/release"),
        ("interpret", "demo/release", "--by", "region"),
        ("design", "count:12", "--epsilon", "1", "--property", "fair"),
        ("privatize", "--help"),
    ):
        run(program, *command, cwd=tmp_path)
