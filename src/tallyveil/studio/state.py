"""State of the studio while it runs: folder, ledger, drafts of releases, and work in progress."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.templating import Jinja2Templates

from tallyveil.budget.accounting import Account
from tallyveil.budget.entries import shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tallyveil.studio.choices import Place
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.uploads import TABLE_ENDINGS, Uploads
from tallyveil.studio.workers import EndedError, Job, Jobs, Worker, Workers
from tallyveil.untrusted import escape_controls, parse_json

__all__ = ["Draft", "Drafts", "Studio", "read_body"]

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


LARGEST_MESSAGE = 1 << 20
PATIENCE = 120.0
"""Seconds after which a question to a worker is given up."""

MOST_LISTED = 200
WATCHED = re.compile("[0-9a-f]{32}")
"""The name under which a browser watches a question."""


@dataclass
class Studio:
    """The state of one run."""

    folder: Path
    uploads: Uploads
    workers: Workers
    ledger: str | None = None
    jobs: Jobs = field(init=False)
    drafts: Drafts = field(init=False)
    bundles: dict[str, Path] = field(default_factory=dict)
    """Releases that are looked at, by their random names."""

    opened: dict[str, str] = field(default_factory=dict)
    """Where each of those that are read has its receipt."""

    stages: dict[str, str] = field(default_factory=dict)
    """How far questions are, by the random names under which their browsers watch them."""

    current: Draft | None = None
    """The release in the making that was planned last."""

    templates: Jinja2Templates = field(init=False)

    def __post_init__(self) -> None:
        self.jobs, self.drafts = Jobs(self.workers), Drafts(self.uploads)
        self.templates = Jinja2Templates(Path(__file__).with_name("templates"))
        self.templates.env.filters |= {"plain": escape_controls}
        self._threads = ThreadPoolExecutor(64, thread_name_prefix="studio")

    async def run(self, work: Any, *given: Any) -> Any:
        """Run something that waits, such as a look at the ledger, beside the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(work, *given))

    async def ask(self, request: Request | None, name: str, **given: Any) -> Any:
        """Put a question to a worker; given up when it takes too long or nobody waits for it."""
        held: list[Worker] = []
        loop = asyncio.get_running_loop()
        watched = "" if request is None else request.headers.get("x-watch", "")

        def say(stage: str) -> None:
            if WATCHED.fullmatch(watched):
                self.stages[watched] = stage

        say("waiting for its turn")
        call = partial(self.workers.call, name, given, held.append, say)
        task = asyncio.ensure_future(loop.run_in_executor(self._threads, call))
        try:
            start = loop.time()
            while not (await asyncio.wait({task}, timeout=0.5))[0]:
                late = loop.time() - start > PATIENCE
                if late or (request is not None and await request.is_disconnected()):
                    for worker in held:
                        worker.end()
                    task.add_done_callback(lambda done: done.exception())
                    raise RefusedError(504, "This took too long and was given up.")
            return task.result()
        except EndedError:
            raise RefusedError(503, "The work ended before it was done. Try again.") from None
        finally:
            self.stages.pop(watched, None)

    async def show(self, request: Request, name: str, **known: Any) -> HTMLResponse:
        """A page, with the budget on top and what the plan at hand would leave of it."""
        plan = known.get("draft") or self.current
        if plan is not None and (plan.cost is None or not self.drafts.knows(plan)):
            plan = None
        known |= {"budget": await self.run(self.read_budget, plan), "folder": str(self.folder)}
        known["planned"] = plan
        return self.templates.TemplateResponse(request, name, known)

    def read_budget(self, plan: Draft | None = None) -> dict[str, Any]:
        """Where every dataset of the ledger stands, and what a plan would leave of it.

        The one that was chosen to pay comes first, and then it is the only one that pays.
        """
        if self.ledger is None:
            return {"open": False, "accounts": [], "problem": ""}
        try:
            accounts = Ledger(self.ledger).accounts()
        except LedgerError as problem:
            return {"open": True, "accounts": [], "problem": str(problem)}
        cost, payer = (None, None) if plan is None else (plan.cost, plan.dataset)
        shown = [
            account.to_dict()
            | {
                "total": shown_rational(account.epsilon),
                "spent": shown_rational(account.spent_epsilon),
                "left": shown_rational(account.remaining_epsilon),
                "share": float(account.spent_epsilon / account.epsilon),
                "after": ""
                if cost is None or account.closed or payer not in (None, account.dataset)
                else _leave(account, cost),
            }
            for account in sorted(accounts, key=lambda account: account.dataset != payer)
        ]
        return {"open": True, "accounts": shown, "problem": ""}

    def new_key(self) -> str:
        """A random name."""
        return uuid.uuid4().hex

    def list_tables(self) -> list[str]:
        """Names of the tables in the studio's folder."""
        found = (p for p in self.folder.iterdir() if p.suffix.lower() in TABLE_ENDINGS)
        plain = sorted(p.name for p in found if p.is_file() and not p.name.startswith("."))
        return plain[:MOST_LISTED]

    def list_releases(self) -> list[str]:
        """Names of the release folders in the studio's folder, newest first."""
        from tallyveil.release.datapackage import RECEIPT
        from tallyveil.release.folder import CHECKSUMS

        found = [
            place
            for place in self.folder.iterdir()
            if place.is_dir()
            and not place.name.startswith(".")
            and ((place / RECEIPT).is_file() or any(place.glob(f"level-1-*/{CHECKSUMS}")))
        ]
        found.sort(key=lambda place: place.stat().st_mtime, reverse=True)
        return [place.name for place in found[:MOST_LISTED]]

    def find_in_folder(self, name: Any, among: list[str]) -> Path:
        """A thing of the folder by a name that was listed, or a refusal."""
        if not isinstance(name, str) or name not in among:
            raise RefusedError(404, "There is nothing of that name in the folder.")
        return self.folder / name

    def close(self) -> None:
        """End what may be ended, wait for what was paid for, delete what was handed over."""
        self.workers.close()
        self.uploads.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


def _leave(account: Account, cost: Fraction) -> str:
    """What a plan leaves of a budget, in words."""
    rest = account.remaining_epsilon - cost
    if rest < 0:
        return "costs more than is left"
    if account.accounting != "pure":
        return "fits in"  # how much is left then depends on what was released before
    return f"would leave ε {shown_rational(rest)}"


async def read_body(request: Request) -> dict[str, Any]:
    """The message in a request: a JSON object of moderate size, or a refusal."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise RefusedError(415, "A message is JSON.")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_MESSAGE:
            raise RefusedError(413, "The message is too long.")
        parts.append(part)
    try:
        found = parse_json(b"".join(parts))
    except (ValueError, RecursionError):
        raise RefusedError(400, "The message is not JSON that can be read.") from None
    if not isinstance(found, dict):
        raise RefusedError(400, "A message is a JSON object.")
    return found
