"""A long table whose release is killed, or whose disk is full: nothing torn, nothing left."""

import os
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
from tallyveil.release.transaction import publish_table

WORDS = ["--keep", "all", "--count", "cases", "--upper", "20", "--epsilon", "1"]
ASKED = {"count": "cases", "upper": 20, "epsilon": 1, "keep": "all"}
TALLYVEIL = [sys.executable, "-m", "tallyveil"]
SLOW = """
import random, sys, time
from pathlib import Path
from tallyveil.tables.columnar import ParquetRows
from tallyveil.cli import main

moment = float(sys.argv.pop(1))
passes = [0]
real = ParquetRows.scan

def batches(self, *given):
    passes[0] += 1
    seen = 0
    for batch in real(self, *given):
        seen += batch.num_rows
        if passes[0] + seen / self.count >= moment:
            print("now", flush=True)
            time.sleep(600)
        yield batch

ParquetRows.scan = batches
main()
"""


def write_table(path, rows):
    at = np.arange(rows)
    pq.write_table(pa.table({"id": at * 7919 % 1_000_000_007, "cases": at * at % 23}), path)
    return path


@pytest.fixture
def book(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db")
    ledger.open("cases", 500)
    return ledger


def command(table, out):
    ledger = ["--ledger", str(table.parent / "budget.db"), "--dataset", "cases"]
    return ["privatize", str(table), *WORDS, *ledger, "--out", str(out)]


def survey(out, book, debits):
    """What must hold after every end; the debits so far."""
    book.verify()
    now = len(book.history("cases"))
    assert now - debits in (0, 1)
    for left in out.parent.glob(".*partial"):
        assert stat.S_IMODE(left.stat().st_mode) == 0o700
        assert all(not path.name.startswith("SHA256SUMS") for path in left.iterdir())
    if out.exists():
        assert now == debits + 1, "an output without a debit"
        assert all(found.ok for found in check_package(out))
        out.rename(out.with_name(f"kept{now}"))
    return now


def kill_often(table, out, book, ends):
    """Kill a release while it waits in a batch; 2.3: the second pass has seen 30 % of the rows."""
    debits = 0
    for end in ends:
        running = subprocess.Popen(
            [sys.executable, "-c", SLOW, str(end), *command(table, out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        line = running.stdout.readline()
        assert line == "now\n", "the pass was never reached"
        os.kill(running.pid, signal.SIGKILL)
        running.communicate(timeout=60)
        assert not out.exists()
        debits = survey(out, book, debits)
    done = subprocess.run([*TALLYVEIL, *command(table, out)], capture_output=True, check=False)
    assert done.returncode == 0
    assert list(out.parent.glob(".*partial")) == [], "the next run removes what was left"
    assert survey(out, book, debits) == debits + 1
    return debits


def test_killed_in_every_pass(tmp_path, book):
    """Counts, hashes, two looks, sizes, and the last pass, which writes after the debit."""
    table = write_table(tmp_path / "cases.parquet", 2_200_000)  # three groups of rows are written
    debits = kill_often(table, tmp_path / "release", book, [1.2, 2.5, 6.1, 6.6])
    assert debits == 2


@pytest.mark.slow
def test_killed_at_50_random_moments(tmp_path, book):
    """Half of them in some batch of some pass, half at any time, packing and renaming included."""
    chance = np.random.default_rng(5)
    table = write_table(tmp_path / "cases.parquet", 5_000_000)
    out = tmp_path / "release"
    ends = chance.integers(1, 7, 25) + chance.uniform(0.01, 1, 25)
    debits = kill_often(table, out, book, ends.tolist()) + 1
    start = time.perf_counter()
    subprocess.run([*TALLYVEIL, *command(table, out)], capture_output=True, check=True)
    seconds, debits = time.perf_counter() - start, survey(out, book, debits)
    for share in chance.random(25).tolist():
        running = subprocess.Popen([*TALLYVEIL, *command(table, out)], stdout=subprocess.DEVNULL)
        time.sleep(share * seconds)
        running.kill()
        running.wait(timeout=60)
        debits = survey(out, book, debits)
    subprocess.run([*TALLYVEIL, *command(table, out)], capture_output=True, check=True)
    assert list(tmp_path.glob(".*partial")) == []
    assert survey(out, book, debits) == debits + 1


def test_no_room_before_the_debit_costs_nothing(tmp_path, book, monkeypatch):
    table = write_table(tmp_path / "cases.parquet", 100_000)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    asked = ReleaseOptions(**ASKED, out=tmp_path / "out", ledger=book, dataset="cases")
    with pytest.raises(tv.errors.PackageError, match="no room"):
        publish_table(table, asked, command="")
    assert book.history("cases") == []
    assert list(tmp_path.glob("*out*")) == []


def test_no_room_after_the_debit_leaves_nothing(tmp_path, book, monkeypatch):
    """Somebody else takes the room that was reserved: the budget is spent, and nothing is left."""
    from tallyveil.release import folder

    table = write_table(tmp_path / "cases.parquet", 100_000)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder._HashingFile, "write", full)
    asked = ReleaseOptions(**ASKED, out=tmp_path / "out", ledger=book, dataset="cases")
    with pytest.raises(tv.errors.PackageError, match="no room"):
        publish_table(table, asked, command="")
    assert len(book.history("cases")) == 1
    assert list(tmp_path.glob("*out*")) == []


def test_the_room_that_is_reserved_is_enough(tmp_path):
    """Labels that nothing compresses: the file is not larger than what was reserved."""
    from tallyveil.release.plan import open_table, plan_release

    chance = np.random.default_rng(1)
    words = [bytes(row).hex() for row in chance.integers(0, 256, (100_000, 12), dtype=np.uint8)]
    columns = {"word": words, "id": chance.integers(0, 2**62, 100_000), "cases": [80] * 100_000}
    table = tmp_path / "cases.parquet"
    pq.write_table(pa.table(columns), table, compression="zstd")
    asked = {**ASKED, "upper": 80, "method": "geometric"}
    room = plan_release(open_table(table, ReleaseOptions(**asked))).count_bytes()
    release = tv.privatize(table, **asked)
    assert sum(map(len, release.files.values())) < room
