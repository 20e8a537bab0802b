"""Work that takes a while: each job in a process of its own, with stages, a cancel and an end."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from typing import Any

from tallyveil.studio.errors import RefusedError
from tallyveil.studio.workers import EndedError, Worker, Workers

__all__ = ["Job", "Jobs"]

MOST_KEPT = 200
"""Jobs that are remembered after they ended."""

MOST_RUNNING = 8


class Job:
    """One piece of work; `state` is running, done, refused or cancelled.

    `firm` says that the point of no return was passed: cancelling is then refused.
    """

    def __init__(self, name: str) -> None:
        self.id = uuid.uuid4().hex
        self.name = name
        self.state, self.stage, self.sentence = "running", "starting", ""
        self.status = 200
        self.result: Any = None
        self.firm = False
        self._wanted = True
        self._guard = threading.Lock()
        self._worker: Worker | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        names = ("id", "state", "stage", "sentence", "firm", "result")
        return {name: getattr(self, name) for name in names}

    def cancel(self) -> bool:
        """Give the job up, if that still costs nothing; say whether it was."""
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

    def run(self, workers: Workers, given: Mapping[str, Any]) -> None:
        """Carry the job out; the function of its thread."""
        worker = None
        try:
            with self._guard:
                if not self._wanted:
                    raise EndedError
                worker = self._worker = workers.start()
            self.result = worker.call(self.name, given, self._say, self._allow)
            self.state = "done"
        except RefusedError as refusal:
            self.status, self.sentence, self.state = refusal.status, refusal.sentence, "refused"
        except EndedError:
            if self._wanted:
                self.sentence = "The work ended before it was done."
                self.sentence += (
                    " What was debited stays spent: look at the ledger." if self.firm else ""
                )
                self.status, self.state = 500, "refused"
            else:
                self.sentence, self.state = "Cancelled. Nothing was spent.", "cancelled"
        finally:
            if worker is not None:
                workers.drop(worker)


class Jobs:
    """The jobs of this run, by their random names."""

    def __init__(self, workers: Workers) -> None:
        self.workers = workers
        self._known: dict[str, Job] = {}
        self._guard = threading.Lock()

    def start(self, name: str, given: Mapping[str, Any]) -> Job:
        """Begin a job; refused while too many are running."""
        with self._guard:
            running = sum(job.state == "running" for job in self._known.values())
            if running >= MOST_RUNNING:
                raise RefusedError(429, "Too much is going on at once: wait for something to end.")
            for key in [k for k, job in self._known.items() if job.state != "running"]:
                if len(self._known) < MOST_KEPT:
                    break
                del self._known[key]
            job = Job(name)
            self._known[job.id] = job
        threading.Thread(target=job.run, args=(self.workers, given), daemon=True).start()
        return job

    def find(self, key: str) -> Job:
        """The job of this name, or a refusal."""
        job = self._known.get(key)
        if job is None:
            raise RefusedError(404, "There is no such job.")
        return job
