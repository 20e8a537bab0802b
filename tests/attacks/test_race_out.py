"""Several processes want the same folder: exactly one of them pays, and it gets the folder."""

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from tallyveil.budget.ledger import Ledger
from tallyveil.check.package import check_package
from tallyveil.errors import PackageError, TableError, UsageError
from tallyveil.release import transaction
from tests.asking import privatize

FORK = multiprocessing.get_context("fork")
COUNTS = [0, 3, 9, 1] * 25


@pytest.fixture
def ledger(tmp_path):
    book = Ledger.create(tmp_path / "budget.db")
    book.open("cases", 100)
    return book


def publish(folder, **options):
    account = {"ledger": folder / "budget.db", "dataset": "cases"}
    return privatize(COUNTS, out=folder / "out", **account, **{"upper": 9, "epsilon": 1, **options})


def _race(folder, ready, start, answers):
    ready.release()
    start.wait()
    try:
        publish(folder)
        answers.put("published")
    except PackageError as refusal:
        answers.put(str(refusal))


@pytest.mark.parametrize("attempt", range(3))
def test_exactly_one_of_many_processes_pays(tmp_path, ledger, attempt):
    ready, start, answers = FORK.Semaphore(0), FORK.Event(), FORK.Queue()
    workers = [FORK.Process(target=_race, args=(tmp_path, ready, start, answers)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire()
    start.set()
    outcomes = [answers.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert outcomes.count("published") == 1
    others = [text for text in outcomes if text != "published"]
    assert all("Another process" in text or "exists already" in text for text in others)
    (entry,) = ledger.history("cases")
    assert all(finding.ok for finding in check_package(tmp_path / "out"))
    assert entry.digest in (tmp_path / "out" / "receipt.json").read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["budget.db", "out"]


def test_two_command_lines(tmp_path, ledger):
    (tmp_path / "cases.csv").write_text("cases\n" + "\n".join(map(str, COUNTS)) + "\n")
    words = ["privatize", "cases.csv", "--count", "cases", "--upper", "9", "--epsilon", "1",
             "--ledger", "budget.db", "--dataset", "cases", "--out", "out"]  # fmt: skip
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tallyveil", *words],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ends = [(process.communicate(timeout=240)[1], process.returncode) for process in running]
    assert sorted(code for _, code in ends) == [0, 1], ends
    assert len(ledger.history("cases")) == 1


def _hold(folder, held):
    def wait(*_):
        held.release()
        signal.pause()

    transaction._debit = wait
    publish(folder)


def test_a_killed_process_frees_the_name_and_nothing_is_paid_meanwhile(tmp_path, ledger):
    held = FORK.Semaphore(0)
    holder = FORK.Process(target=_hold, args=(tmp_path, held))
    holder.start()
    held.acquire()
    with pytest.raises(PackageError, match="Another process is writing"):
        publish(tmp_path)
    assert ledger.history("cases") == []
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    publish(tmp_path)
    assert len(ledger.history("cases")) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["budget.db", "out"]


def test_the_confidential_report_is_reserved_before_anything_is_spent(
    tmp_path, ledger, monkeypatch
):
    report = tmp_path / "report.html"
    before = transaction._reserve

    def somebody_takes_the_name(*arguments):
        report.write_text("mine")
        return before(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "_reserve", somebody_takes_the_name)
        with pytest.raises(UsageError, match="confidential report must be a new file"):
            publish(tmp_path, confidential_report=report)
    assert report.read_text() == "mine"
    assert ledger.history("cases") == []
    report.unlink()

    def fail(*_):
        raise TableError("Something is wrong.")

    with monkeypatch.context() as patch:
        patch.setattr(transaction, "_debit", fail)
        with pytest.raises(TableError):
            publish(tmp_path, confidential_report=report)
    assert not report.exists()
    mask = os.umask(0)
    try:
        publish(tmp_path, confidential_report=report)
    finally:
        os.umask(mask)
    assert report.stat().st_mode & 0o777 == 0o600
    assert "true" in report.read_text()
