"""Killed, interrupted, crowded: never an output without a debit, never half a release."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tallyveil.budget.ledger import Ledger
from tallyveil.check.package import check_package


@pytest.fixture(name="program")
def program_fixture():
    import sys
    from pathlib import Path

    return str(Path(sys.executable).with_name("tallyveil"))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("county,cases\n" + "".join(f"c{i},{i % 7}\n" for i in range(500)))
    return path


@pytest.fixture
def book(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.open("cases", 500)
    return ledger


def words(program, table, out):
    return [
        program,
        "privatize",
        str(table),
        "--keep",
        "all",
        "--count",
        "cases",
        "--upper",
        "9",
        "--epsilon",
        "1",
        "--ledger",
        str(table.parent / "budget.db"),
        "--dataset",
        "cases",
        "--out",
        str(out),
    ]


STEPS = (
    "reading and checking the table",
    "reserving room",
    "debiting the ledger",
    "drawing",
    "packing",
)
PAUSING = """
import sys, time
from contextlib import contextmanager
from tallyveil.cli import main, privatize

stop = sys.argv.pop(1)

@contextmanager
def progress(steps):
    def say(step):
        if step == stop:
            print("paused", flush=True)
            time.sleep(60)
    yield say

privatize.progress = progress
main()
"""


def end_at(step, command, number):
    """Run the command until it is about to begin `step`, then send it a signal.

    Returns its exit code and what it said on standard error.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSING, step, *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "paused\n"
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    return process.returncode, said


def killed(command, seconds, number):
    """Run the command and send it a signal after `seconds`; its exit code."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, number)
    return process.wait(timeout=60)


def survey(tmp_path, book, debits, code):
    """What must hold after every run; the number of debits from now on."""
    out = tmp_path / "release"
    book.verify()
    now = len(book.history("cases"))
    assert now - debits in (0, 1)
    if out.exists():
        assert now == debits + 1, "an output without a debit"
        assert all(finding.ok for finding in check_package(out)), "a half-written release"
        (entry,) = book.history("cases")[-1:]
        assert json.loads((out / "receipt.json").read_text())["ledger"]["digest"] == entry.digest
        out.rename(tmp_path / f"kept{now}")
    else:
        assert code != 0
    return now


def kill_at_random_moments(program, table, book, tmp_path, moments):
    began = time.monotonic()
    assert (
        subprocess.run(
            words(program, table, tmp_path / "release"), check=False, capture_output=True
        ).returncode
        == 0
    )
    usual = time.monotonic() - began
    debits = survey(tmp_path, book, 0, 0)
    chance = random.Random(7)
    ends = set()
    for at in range(moments):
        # half of the moments lie in the last third, where debit, draw and writing happen
        share = chance.uniform(0.6, 1.1) if at % 2 else chance.uniform(0.0, 1.1)
        code = killed(words(program, table, tmp_path / "release"), share * usual, signal.SIGKILL)
        debits = survey(tmp_path, book, debits, code)
        ends.add(code)
    assert -signal.SIGKILL in ends, "no run was killed: the test shows nothing"
    assert (
        subprocess.run(
            words(program, table, tmp_path / "release"), check=False, capture_output=True
        ).returncode
        == 0
    )
    survey(tmp_path, book, debits, 0)
    left = [path.name for path in tmp_path.iterdir() if "partial" in path.name]
    assert left == [], "the next run removes what a killed one left"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_end_before_every_step(program, table, book, tmp_path, number):
    """Whatever step it is stopped before: no output without a debit, nothing half written."""
    debits = 0
    for step in STEPS:
        code, said = end_at(step, words(program, table, tmp_path / "release"), number)
        assert code != 0
        assert not (tmp_path / "release").exists()
        debits = survey(tmp_path, book, debits, code)
        assert debits == {"drawing": 1, "packing": 2}.get(step, 0)
        if number == signal.SIGINT:
            assert (code, said.count("\n")) == (130, 1)
            assert said.startswith("error: Interrupted")
        if number != signal.SIGKILL:
            assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    done = subprocess.run(
        words(program, table, tmp_path / "release"), check=False, capture_output=True
    )
    assert done.returncode == 0
    survey(tmp_path, book, debits, 0)
    left = [path.name for path in tmp_path.iterdir() if "partial" in path.name]
    assert left == [], "the next run removes what a killed one left"


@pytest.mark.slow
def test_kill_at_200_moments(program, table, book, tmp_path):
    kill_at_random_moments(program, table, book, tmp_path, 200)


def test_sixteen_processes_that_want_twice_the_budget(program, table, tmp_path):
    book = Ledger.create(tmp_path / "budget.db")
    book.open("cases", 8)
    runs = [
        subprocess.Popen(
            words(program, table, tmp_path / f"out{at}"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for at in range(16)
    ]
    said = [run.communicate(timeout=240)[1] for run in runs]
    codes = [run.returncode for run in runs]
    assert codes.count(0) == 8
    assert book.account("cases").remaining_epsilon == 0
    for at, (code, text) in enumerate(zip(codes, said, strict=True)):
        assert (tmp_path / f"out{at}").exists() == (code == 0)
        if code:
            assert code == 1
            assert "has 0 of 8 left" in text
    book.verify()
