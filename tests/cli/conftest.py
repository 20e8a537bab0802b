"""The installed program, run as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("tallyveil"))


def call(*words, check=None, **options):
    """Run the program with its output piped; `check` is the exit code it must have."""
    environment = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    done = subprocess.run(
        [PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=120,
        env=environment, check=False, **options,
    )  # fmt: skip
    if check is not None:
        assert done.returncode == check, done.stdout + done.stderr
    return done


@pytest.fixture(name="tallyveil")
def tallyveil_fixture():
    return call


@pytest.fixture
def cases(tmp_path):
    """A table of 300 counties with counts from 0 to 9, public columns around them."""
    path = tmp_path / "cases.csv"
    lines = ["county,fips,cases,rate"]
    lines += [f'"County {i}, ""X""",{i:05d},{(i * i) % 7 + i % 4},{i / 8}' for i in range(300)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def ledger(tmp_path):
    """A ledger with a budget of 2 for the dataset 'cases'."""
    path = tmp_path / "budget.db"
    call("ledger", "init", "--ledger", path, "--dataset", "cases", "--epsilon", "2", check=0)
    return path


@pytest.fixture
def history(ledger):
    def entries():
        words = ("ledger", "history", "--ledger", ledger, "--dataset", "cases", "--json")
        return json.loads(call(*words, check=0).stdout)

    return entries
