"""Work outside the event loop: processes that answer, tell how far they are, and can be ended.

A few warm processes wait for calls. A call that is given up ends its process, and another takes
its place. Before the point of no return a call asks for leave: until it is given, ending the
process costs nothing; from then on it is left to finish, even if the studio is stopped.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from tallyveil.errors import TallyveilError
from tallyveil.studio.uploads import hold_folder
from tallyveil.studio.wording import RefusedError, describe_problem

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

Say = Callable[[str], None]
TASKS = "tallyveil.studio.work_"
"""What the names of tasks, such as `publish.preview`, begin with."""

CONFIRMED = "debiting the ledger"
"""The stage that the library's transaction cannot go back from."""

MOST_MEMORY = 0.75
"""Share of this machine's memory that one process may take; what needs more is refused."""

GRACE = 5.0
"""Seconds for a process that is ended to give back what it reserved, before it is killed."""

LONGEST_TEMPORARY = 60
"""Bytes of the path of temporary files that leave room for a socket's name."""


class EndedError(Exception):
    """The process was ended before its work was done."""


def serve_calls(connection: Connection, warm: bool, private: Path | None) -> None:
    """Answer calls until the other end is closed: the main function of a worker process.

    Its temporary files are in the folder `private`, which is held as long as the process lives.
    """
    for name in {"SIGINT", "SIGHUP"} & set(dir(signal)):
        signal.signal(getattr(signal, name), signal.SIG_IGN)  # the studio decides what is given up
    signal.signal(signal.SIGTERM, _leave)
    _limit_memory()
    if private is not None:
        hold_folder(private)
        tempfile.tempdir = os.environ["TMPDIR"] = str(private)
    if warm:
        _find_task("design.warm_up")()
    with suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            task, arguments = connection.recv()
            connection.send(_answer(_find_task(task), arguments, connection))


def _find_task(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(".")
    task: Callable[..., Any] = getattr(import_module(TASKS + module), function)
    return task


def _limit_memory() -> None:
    """Let this process run out of memory before the machine does, where a limit can be set."""
    if resource is not None and "SC_PHYS_PAGES" in os.sysconf_names:
        most = int(MOST_MEMORY * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        with suppress(ValueError, OSError):  # a stricter limit stays
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _leave(number: int, frame: object) -> NoReturn:
    """Exit by an exception, so that reserved room is given back."""
    sys.exit(128 + number)


def _answer(
    task: Callable[..., Any], arguments: Mapping[str, Any], connection: Connection
) -> tuple[str, Any]:
    paid = False

    def say(stage: str) -> None:
        nonlocal paid
        if paid:
            with suppress(OSError):  # nobody listens any more, but this is paid for
                connection.send(("stage", stage))
            return
        connection.send(("stage", stage))
        if stage == CONFIRMED:
            connection.send(("ask", stage))
            if connection.recv() != "go":
                sys.exit(0)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            paid = True

    try:
        return "done", task(say, **arguments)
    except RefusedError as refusal:
        return "refused", (refusal.status, refusal.sentence)
    except (EOFError, BrokenPipeError):
        sys.exit(0)
    except Exception as problem:
        status = 422 if isinstance(problem, TallyveilError) else 500
        return "refused", (status, describe_problem(problem))


def _find_context() -> Any:
    """Return how processes start: from a server that has loaded the tasks, or from scratch.

    Such a server is reached by a socket among the temporary files, whose path must not be long.
    """
    if (
        "forkserver" not in multiprocessing.get_all_start_methods()
        or len(os.fsencode(tempfile.gettempdir())) > LONGEST_TEMPORARY
    ):
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"{TASKS}{name}" for name in ("check", "design", "publish")])
    return context


class Worker:
    """One process and the line to it."""

    def __init__(self, warm: bool, private: Path | None) -> None:
        context = _find_context()
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve_calls, args=(other, warm, private))
        self.process.start()
        other.close()
        self.confirmed = False

    def call(
        self,
        task: str,
        arguments: Mapping[str, Any],
        say: Say = lambda _: None,
        may_go: Callable[[], bool] = lambda: True,
    ) -> Any:
        """Run a task; raises what it refused, or `EndedError` if the process came to its end."""
        try:
            self.connection.send((task, dict(arguments)))
            while True:
                kind, content = self.connection.recv()
                if kind == "stage":
                    say(content)
                elif kind == "ask":
                    self.confirmed = may_go()
                    self.connection.send("go" if self.confirmed else "stop")
                elif kind == "refused":
                    raise RefusedError(*content)
                else:
                    return content
        except (EOFError, OSError):
            raise EndedError from None

    def end(self) -> None:
        """End the process, unless it has passed the point of no return."""
        if not self.confirmed:
            self.process.terminate()
            late = threading.Timer(GRACE, self._kill)
            late.daemon = True
            late.start()

    def _kill(self) -> None:
        """End a process that did not listen, such as one inside a long call of a library."""
        if not self.confirmed and self.process.is_alive():
            self.process.kill()

    def close(self) -> None:
        """Let the process go: it ends when its line is closed."""
        self.connection.close()


class Workers:
    """A few warm processes, and as many more as there are confidential jobs."""

    def __init__(self, size: int = 2, private: Path | None = None) -> None:
        self.size, self.private = size, private
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        self._all: set[Worker] = set()
        self._guard = threading.Lock()
        self._closed = False

    def warm(self) -> None:
        """Start the processes that answer quick calls."""
        for _ in range(self.size):
            self._idle.put(self.start(warm=True))

    def start(self, *, warm: bool = False) -> Worker:
        """Start a process; a warm one has loaded what quick answers need."""
        with self._guard:
            if self._closed:
                raise EndedError
            worker = Worker(warm, self.private)
            self._all.add(worker)
        return worker

    def call(
        self,
        task: str,
        arguments: Mapping[str, Any],
        hold: Callable[[Worker], None] = lambda _: None,
        say: Say = lambda _: None,
    ) -> Any:
        """Answer a quick call in one of the warm processes; `hold` is shown which."""
        worker = self._idle.get()
        try:
            if not worker.process.is_alive():
                raise EndedError
            hold(worker)
            answer = worker.call(task, arguments, say)
        except EndedError:
            self.drop(worker)
            with suppress(EndedError):
                self._idle.put(self.start(warm=True))
            raise
        except BaseException:
            self._idle.put(worker)
            raise
        self._idle.put(worker)
        return answer

    def drop(self, worker: Worker) -> None:
        """Close a process that is not used again."""
        worker.close()
        with self._guard:
            self._all.discard(worker)

    def close(self) -> None:
        """End all jobs but paid ones, and wait for those."""
        with self._guard:
            self._closed = True
            everything = list(self._all)
        for worker in everything:
            worker.end()
        for worker in everything:
            worker.process.join(None if worker.confirmed else 5)
            if worker.process.is_alive():
                worker.process.kill()


MOST_ENDED = 200
"""Jobs that are remembered after they ended."""

MOST_RUNNING = 8


class Job:
    """One piece of work; `state` is running, done, refused or cancelled.

    `firm` says that the point of no return was passed: cancelling is then refused.
    """

    def __init__(self, task: str) -> None:
        self.id = uuid.uuid4().hex
        self.task = task
        self.state, self.stage, self.sentence = "running", "starting", ""
        self.result: Any = None
        self.firm = False
        self._wanted = True
        self._guard = threading.Lock()
        self._worker: Worker | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        names = ("id", "state", "stage", "sentence", "firm", "result")
        return {name: getattr(self, name) for name in names}

    def cancel(self) -> bool:
        """Cancel the job if it has not been paid for; return whether it was cancelled."""
        with self._guard:
            if self.firm or self.state != "running":
                return False
            self._wanted = False
            if self._worker is not None:
                self._worker.end()
            return True

    def _allow(self) -> bool:
        with self._guard:
            self.firm = self._wanted
            return self._wanted

    def _say(self, stage: str) -> None:
        self.stage = stage

    def run(self, workers: Workers, arguments: Mapping[str, Any]) -> None:
        """Carry the job out; the function of its thread."""
        worker = None
        try:
            with self._guard:
                if not self._wanted:
                    raise EndedError
                worker = self._worker = workers.start()
            self.result = worker.call(self.task, arguments, self._say, self._allow)
            self.state = "done"
        except RefusedError as refusal:
            self.sentence, self.state = refusal.sentence, "refused"
        except EndedError:
            if self._wanted:
                spent = " What was debited stays spent: look at the ledger." if self.firm else ""
                self.sentence = f"The work ended before it was done.{spent}"
                self.state = "refused"
            else:
                self.sentence, self.state = "Cancelled. Nothing was spent.", "cancelled"
        finally:
            if worker is not None:
                workers.drop(worker)


class Jobs:
    """The jobs of this run, by their random names."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._jobs: dict[str, Job] = {}
        self._guard = threading.Lock()

    def start(self, task: str, arguments: Mapping[str, Any]) -> Job:
        """Begin a job; refused while too many are running."""
        with self._guard:
            running = sum(job.state == "running" for job in self._jobs.values())
            if running >= MOST_RUNNING:
                raise RefusedError(429, "Too many jobs are running: wait until one ends.")
            for key in [k for k, job in self._jobs.items() if job.state != "running"]:
                if len(self._jobs) < MOST_ENDED:
                    break
                del self._jobs[key]
            job = Job(task)
            self._jobs[job.id] = job
        threading.Thread(target=job.run, args=(self.workers, arguments), daemon=True).start()
        return job

    def find(self, key: str) -> Job:
        """Return the job of this name, or refuse."""
        if key not in self._jobs:
            raise RefusedError(404, "There is no such job.")
        return self._jobs[key]
