"""Releases in the making: the table, what was chosen so far, and the key that is paid for once."""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from tallyveil.studio.choices import Place
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.jobs import Job
from tallyveil.studio.uploads import Uploads

__all__ = ["Draft", "Drafts"]

MOST_DRAFTS = 60


@dataclass
class Draft:
    """One release in the making.

    `request` is the key under which the ledger is debited: one press of the button or ten,
    reloaded, gone back to or in two tabs, it is the same until a release was made or failed.
    """

    shown: str
    table: Path
    private: Path
    kind: str
    rows: int
    columns: list[dict[str, str]]
    invented: bool = False
    choices: dict[str, Any] = field(default_factory=dict)
    dataset: str | None = None
    out: str = ""
    report: bool = False
    mechanism: Path | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    request: str = field(default_factory=lambda: str(uuid.uuid4()))
    cost: Fraction | None = None
    """What the plan that was looked at last would cost; None before, and once it was paid."""

    job: Job | None = None
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(column["name"] for column in self.columns)

    @property
    def plan(self) -> str:
        """A digest of everything that was chosen: what is released is what the page showed."""
        content = json.dumps([self.choices, self.names, str(self.mechanism)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def place(self, ledger: str | None, folder: Path | None = None) -> Place:
        """Where everything is, for a preview or, with a folder, for the release."""
        dataset = self.dataset if folder is not None else None
        out = None if folder is None else str(folder / self.out)
        report = f"{out} CONFIDENTIAL.html" if out and self.report else None
        paid = ledger if dataset else None
        made = None if self.mechanism is None else str(self.mechanism)
        private = str(self.private)
        return Place(str(self.table), private, self.names, out, paid, dataset, made, report)

    def renew(self) -> None:
        """Begin another release of the same table, which is another debit."""
        with self.guard:
            if self.job is not None and self.job.state == "running":
                raise RefusedError(409, "A release is being made.")
            self.job, self.request, self.out, self.cost = None, str(uuid.uuid4()), "", None


class Drafts:
    """The drafts of this run, by their random names; the oldest give way."""

    def __init__(self, uploads: Uploads) -> None:
        self.uploads = uploads
        self._known: dict[str, Draft] = {}
        self._guard = threading.Lock()

    def add(self, draft: Draft) -> Draft:
        """Keep a draft."""
        with self._guard:
            idle = [d for d in self._known.values() if d.job is None or d.job.state != "running"]
            if len(self._known) >= MOST_DRAFTS and idle:
                self._drop(idle[0])
            self._known[draft.id] = draft
        return draft

    def find(self, key: str) -> Draft:
        """The draft of this name, or a refusal."""
        draft = self._known.get(key)
        if draft is None:
            raise RefusedError(
                404, "There is no such table here any more. Start again from Publish."
            )
        return draft

    def knows(self, draft: Draft) -> bool:
        """Whether a draft is still here."""
        return self._known.get(draft.id) is draft

    def remove(self, key: str) -> None:
        """Forget a draft and delete what was uploaded for it."""
        draft = self.find(key)
        if draft.job is not None and draft.job.state == "running":
            raise RefusedError(409, "A release is being made.")
        with self._guard:
            self._drop(draft)

    def _drop(self, draft: Draft) -> None:
        self._known.pop(draft.id, None)
        self.uploads.remove(draft.private)
