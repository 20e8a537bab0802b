"""Killed, interrupted, crowded, out of room: no output without a debit, never half a release."""

import json
import random
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil.budget.ledger import Ledger
from tallyveil.check.package import check_package
from tallyveil.release.options import ReleaseOptions
from tallyveil.release.plan import open_table, plan_release
from tallyveil.release.transaction import publish_table

OPTIONS = {"count": "cases", "upper": 9, "epsilon": 1, "keep": "all"}
TALLYVEIL = [sys.executable, "-m", "tallyveil"]
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
SLOW = """
import sys, time
from tallyveil.tables.columnar import ParquetRows
from tallyveil.cli import main

moment = float(sys.argv.pop(1))
passes = [0]
real = ParquetRows.scan

def batches(self, *words):
    passes[0] += 1
    seen = 0
    for batch in real(self, *words):
        seen += batch.num_rows
        if passes[0] + seen / self.count >= moment:
            print("paused", flush=True)
            time.sleep(600)
        yield batch

ParquetRows.scan = batches
main()
"""


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


def write_long(path, rows):
    number = np.arange(rows)
    columns = {"id": number * 7919 % 1_000_000_007, "cases": number * number % 23}
    pq.write_table(pa.table(columns), path)
    return path


def words(table, out):
    options = "--keep all --count cases --upper 9 --epsilon 1 --dataset cases --ledger"
    return ["privatize", table, *options.split(), table.parent / "budget.db", "--out", out]


def finish(table, out):
    """Run a release to its end, after which nothing is left of those that were stopped."""
    subprocess.run([*TALLYVEIL, *words(table, out)], check=True, capture_output=True)
    assert list(out.parent.glob(".*partial")) == []


def stop(program, moment, command, number):
    """Run a command until it pauses, then send it a signal; its exit code and message."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(moment), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "paused\n", "the moment was never reached"
    process.send_signal(number)
    message = process.communicate(timeout=60)[1]
    return process.returncode, message


def kill_after(command, seconds):
    """Run a command and kill it after a while; its exit code."""
    command = [*TALLYVEIL, *command]
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return -signal.SIGKILL
    return done.returncode


def survey(out, book, debits, code):
    """What must hold after every end; the number of debits so far."""
    book.verify()
    now = len(book.history("cases"))
    assert now - debits in (0, 1)
    for partial in out.parent.glob(".*partial"):
        assert stat.S_IMODE(partial.stat().st_mode) == 0o700
        assert all(not path.name.startswith("SHA256SUMS") for path in partial.iterdir())
    if out.exists():
        assert now == debits + 1, "an output without a debit"
        assert all(finding.ok for finding in check_package(out)), "a half-written release"
        entry = book.history("cases")[-1]
        assert json.loads((out / "receipt.json").read_text())["ledger"]["digest"] == entry.digest
        out.rename(out.with_name(f"done{now}"))
    else:
        assert code != 0
    return now


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_an_end_before_every_step(table, book, tmp_path, number):
    """Whatever step it is stopped before: no output without a debit, nothing half written."""
    debits, out = 0, tmp_path / "release"
    for step in STEPS:
        code, message = stop(PAUSING, step, words(table, out), number)
        assert code != 0
        assert not out.exists()
        debits = survey(out, book, debits, code)
        assert debits == {"drawing": 1, "packing": 2}.get(step, 0)
        if number == signal.SIGINT:
            assert (code, message.count("\n")) == (130, 1)
            assert message.startswith("error: Interrupted")
        if number != signal.SIGKILL:
            assert list(tmp_path.glob("*partial*")) == []
    finish(table, out)
    survey(out, book, debits, 0)


def kill_in_passes(table, out, book, moments):
    """Kill a release while it waits in a batch; 2.3: the second pass has seen 30 % of the rows."""
    debits = 0
    for moment in moments:
        code, _ = stop(SLOW, moment, words(table, out), signal.SIGKILL)
        assert not out.exists()
        debits = survey(out, book, debits, code)
    finish(table, out)
    assert survey(out, book, debits, 0) == debits + 1
    return debits


def kill_any_time(table, out, book, debits, shares):
    """Kill releases after a share of the time that one takes."""
    start = time.perf_counter()
    finish(table, out)
    seconds = time.perf_counter() - start
    debits, ends = survey(out, book, debits, 0), set()
    for share in shares:
        code = kill_after(words(table, out), share * seconds)
        debits = survey(out, book, debits, code)
        ends.add(code)
    assert -signal.SIGKILL in ends, "no run was killed: the test shows nothing"
    finish(table, out)
    assert survey(out, book, debits, 0) == debits + 1


def test_killed_in_every_pass(tmp_path, book):
    """Counts, hashes, two looks, sizes, and the last pass, which writes after the debit."""
    table = write_long(tmp_path / "cases.parquet", 2_200_000)  # three groups of rows are written
    assert kill_in_passes(table, tmp_path / "release", book, [1.2, 2.5, 6.1, 6.6]) == 2


@pytest.mark.slow
def test_kill_at_200_moments(table, book, tmp_path):
    """Half of the moments lie in the last third, where debit, draw and writing happen."""
    chance = random.Random(7)
    shares = [chance.uniform(0.6 if turn % 2 else 0.0, 1.1) for turn in range(200)]
    kill_any_time(table, tmp_path / "release", book, 0, shares)


@pytest.mark.slow
def test_killed_at_50_random_moments(tmp_path, book):
    """Half of them in some batch of some pass, half at any time, packing and renaming included."""
    chance = np.random.default_rng(5)
    table, out = write_long(tmp_path / "cases.parquet", 5_000_000), tmp_path / "release"
    moments = chance.integers(1, 7, 25) + chance.uniform(0.01, 1, 25)
    debits = kill_in_passes(table, out, book, moments.tolist()) + 1
    kill_any_time(table, out, book, debits, chance.random(25).tolist())


@pytest.mark.parametrize(
    ("function", "debits"),
    [("os.posix_fallocate", 0), ("tallyveil.release.folder._HashingFile.write", 1)],
    ids=["before the debit", "after it"],
)
def test_no_room_leaves_nothing(tmp_path, book, monkeypatch, function, debits):
    """It costs nothing, unless somebody else takes the room that was reserved."""
    table = write_long(tmp_path / "cases.parquet", 100_000)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(function, full)
    options = ReleaseOptions(**OPTIONS, out=tmp_path / "out", ledger=book, dataset="cases")
    with pytest.raises(tv.errors.PackageError, match="no room"):
        publish_table(table, options, command="")
    assert len(book.history("cases")) == debits
    assert list(tmp_path.glob("*out*")) == []


def test_the_room_that_is_reserved_is_enough(tmp_path):
    """Labels that nothing compresses: the file is not larger than what was reserved."""
    chance = np.random.default_rng(1)
    labels = [bytes(row).hex() for row in chance.integers(0, 256, (100_000, 12), dtype=np.uint8)]
    columns = {"word": labels, "id": chance.integers(0, 2**62, 100_000), "cases": [80] * 100_000}
    table = tmp_path / "cases.parquet"
    pq.write_table(pa.table(columns), table, compression="zstd")
    options = {**OPTIONS, "upper": 80, "method": "geometric"}
    room = plan_release(open_table(table, ReleaseOptions(**options))).count_bytes()
    release = tv.privatize(table, **options)
    assert sum(map(len, release.files.values())) < room
