"""The installed program, run as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tallyveil.budget.ledger import Ledger

PROGRAM = str(Path(sys.executable).with_name("tallyveil"))


def call(command, *words, check=None, **options):
    """Run the program with its output piped; `check` is the exit code it must have.

    `command` may be several words, with blanks between them.
    """
    environment = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    done = subprocess.run(
        [PROGRAM, *command.split(), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
        **options,
    )
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
    Ledger.create(path).open("cases", 2)
    return path


@pytest.fixture
def history(ledger):
    """The debits of the dataset 'cases', as `ledger history --json` lists them."""
    return lambda: [entry.to_dict() for entry in Ledger(ledger).history("cases")]
