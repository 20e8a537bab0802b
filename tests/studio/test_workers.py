"""Worker processes: leave is asked before the debit, what is paid for is finished."""

import signal
import subprocess
import sys
import threading

import pytest

import tallyveil.studio.workers as workers_module
from tallyveil.studio.wording import RefusedError
from tallyveil.studio.workers import EndedError, Job, Worker, Workers, _answer


class Line:
    """The other end of a line: gives an answer to the question, and may break after it."""

    def __init__(self, answer, breaks=False):
        self.answer, self.breaks, self.sent, self.broken = answer, breaks, [], False

    def send(self, message):
        if self.broken:
            raise BrokenPipeError
        self.sent.append(message)

    def recv(self):
        if self.answer is None:
            raise EOFError
        self.broken = self.breaks
        return self.answer


@pytest.fixture
def handled(monkeypatch):
    """The signals that a worker changed, without changing ours."""
    results = {}
    monkeypatch.setattr(workers_module.signal, "signal", results.__setitem__)
    return results


def pay(say, done):
    for stage in ("reading", "debiting the ledger", "drawing", "packing"):
        say(stage)
        done.append(stage)
    return "a release"


def test_with_leave_it_goes_on_even_when_nobody_listens(handled):
    done = []
    assert _answer(pay, {"done": done}, Line("go", breaks=True)) == ("done", "a release")
    assert done[-1] == "packing"
    assert handled == {signal.SIGTERM: signal.SIG_IGN}


@pytest.mark.parametrize("answer", ["stop", None])
def test_without_leave_it_ends_before_the_debit(handled, answer):
    done = []
    with pytest.raises(SystemExit):
        _answer(pay, {"done": done}, Line(answer))
    assert done == ["reading"]


def test_what_is_not_expected_is_named_by_its_kind_alone(handled):
    def fail(say):
        raise KeyError("SECRET 17")

    kind, (status, sentence) = _answer(fail, {}, Line("go"))
    assert (kind, status) == ("refused", 500)
    assert "SECRET" not in sentence


def test_a_job_is_cancelled_before_leave_is_given_and_not_after():
    job = Job("publish")
    assert job._allow()
    assert not job.cancel()
    other = Job("publish")
    assert other.cancel()
    assert not other._allow()


def test_a_process_that_dies_is_replaced():
    pool = Workers(size=1)
    pool.warm()
    message = {"lesson": "epsilon", "epsilon": "1", "count": 3}
    try:
        with pytest.raises(EndedError):
            pool.call("design.learn", message, lambda worker: worker.process.kill())
        assert pool.call("design.learn", message)["factor"] > 2
        with pytest.raises(RefusedError):
            pool.call("design.learn", {**message, "lesson": "none"})
        assert pool.call("design.learn", message)["factor"] > 2
    finally:
        pool.close()


@pytest.mark.parametrize("confirmed", [False, True])
def test_a_process_that_does_not_listen_is_killed_unless_it_is_paid_for(monkeypatch, confirmed):
    class Deaf:
        """A process inside a long call of a library."""

        def __init__(self):
            self.heard, self.killed = [], threading.Event()

        def terminate(self):
            self.heard.append("terminate")

        def is_alive(self):
            return True

        def kill(self):
            self.heard.append("kill")
            self.killed.set()

    monkeypatch.setattr(workers_module, "GRACE", 0.05)
    worker = Worker.__new__(Worker)
    worker.process, worker.confirmed = Deaf(), confirmed
    worker.end()
    assert worker.process.killed.wait(0.3 if confirmed else 10) is not confirmed
    assert worker.process.heard == ([] if confirmed else ["terminate", "kill"])


def test_a_process_runs_out_of_memory_before_the_machine_does():
    script = (
        "import os, resource; from tallyveil.studio.workers import _limit_memory; _limit_memory()\n"
        "most = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')\n"
        "assert 0 < resource.getrlimit(resource.RLIMIT_DATA)[0] < most\n"
        "try: bytearray(most)\n"
        "except MemoryError: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "refused"
