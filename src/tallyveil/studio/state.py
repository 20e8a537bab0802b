"""State of the studio while it runs: folder, ledger, drafts of releases, and work in progress."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
import uuid
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.templating import Jinja2Templates

from tallyveil.budget.accounting import Account
from tallyveil.budget.entries import shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tallyveil.release.folder import CHECKSUMS, RECEIPT
from tallyveil.studio.choices import CHOICES, FORM, Place, read_field
from tallyveil.studio.uploads import TABLE_ENDINGS, Uploads
from tallyveil.studio.wording import LOSSES, SENTENCES, TITLES, VALUES, RefusedError
from tallyveil.studio.workers import EndedError, Job, Jobs, Worker, Workers
from tallyveil.tables.text import split_packing
from tallyveil.untrusted import escape_controls, parse_json

MOST_DRAFTS = 60
Confidence = Annotated[float, msgspec.Meta(gt=0, lt=1)]


@dataclass
class Draft:
    """One release in the making.

    `request` is the key under which the ledger is debited: one press of the button or ten,
    reloaded, gone back to or in two tabs, it is the same until a release was made or failed.
    """

    name: str
    table: Path
    private: Path
    invented: bool = False
    kind: str = ""
    rows: int = 0
    columns: list[dict[str, str]] = field(default_factory=list)
    choices: dict[str, Any] = field(default_factory=dict)
    dataset: str | None = None
    out: str = ""
    report: bool = False
    mechanism: Path | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    request: str = field(default_factory=lambda: str(uuid.uuid4()))
    cost: Fraction | None = None
    """The cost of the plan that was previewed last; None before, and once it was paid."""

    job: Job | None = None
    guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the table's columns."""
        return tuple(column["name"] for column in self.columns)

    @property
    def plan(self) -> str:
        """A digest of everything that was chosen: what is released is what the page showed."""
        content = json.dumps([self.choices, self.names, str(self.mechanism)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def place(self, ledger: str | None, folder: Path | None = None) -> Place:
        """Say where everything is, for a preview or, with a folder, for the release."""
        mechanism = None if self.mechanism is None else str(self.mechanism)
        place = Place(str(self.table), str(self.private), self.names, mechanism=mechanism)
        if folder is None:
            return place
        out = str(folder / self.out)
        return replace(
            place,
            out=out,
            ledger=ledger if self.dataset else None,
            dataset=self.dataset,
            report=f"{out} CONFIDENTIAL.html" if self.report else None,
        )

    @property
    def is_running(self) -> bool:
        """True while the release is being made."""
        return self.job is not None and self.job.state == "running"

    def require_idle(self) -> None:
        """Refuse to change a draft whose release is being made."""
        if self.is_running:
            raise RefusedError(409, "A release is being made.")

    def renew(self) -> None:
        """Begin another release of the same table, which is another debit."""
        with self.guard:
            self.require_idle()
            self.job, self.request, self.out, self.cost = None, str(uuid.uuid4()), "", None


class Drafts:
    """The drafts of this run, by their random names; the oldest give way."""

    def __init__(self, uploads: Uploads) -> None:
        self.uploads = uploads
        self._drafts: dict[str, Draft] = {}
        self._guard = threading.Lock()

    def add(self, draft: Draft) -> None:
        """Add a draft."""
        with self._guard:
            idle = [draft for draft in self._drafts.values() if not draft.is_running]
            if len(self._drafts) >= MOST_DRAFTS and idle:
                self._drop(idle[0])
            self._drafts[draft.id] = draft

    def find(self, key: str) -> Draft:
        """Return the draft of this name, or refuse."""
        if key not in self._drafts:
            raise RefusedError(404, "This table is no longer open. Start again from Publish.")
        return self._drafts[key]

    def has(self, draft: Draft) -> bool:
        """Return True if a draft is still here."""
        return draft.id in self._drafts

    def remove(self, key: str) -> None:
        """Forget a draft and delete what was uploaded for it."""
        draft = self.find(key)
        draft.require_idle()
        with self._guard:
            self._drop(draft)

    def _drop(self, draft: Draft) -> None:
        self._drafts.pop(draft.id, None)
        self.uploads.remove(draft.private)


LARGEST_MESSAGE = 1 << 20
PATIENCE = 120.0
"""Seconds after which a question to a worker is given up."""

MOST_LISTED = 200
WATCHED = re.compile("[0-9a-f]{32}")
"""The name under which a browser watches a question."""

Answer = Callable[[Request, dict[str, Any]], Awaitable[Any]]


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
    """Folders with the receipts of the releases that are read."""

    stages: dict[str, str] = field(default_factory=dict)
    """Stages of questions, by the random names under which browsers watch them."""

    current: Draft | None = None
    """The release that was planned last."""

    templates: Jinja2Templates = field(init=False)

    def __post_init__(self) -> None:
        self.jobs, self.drafts = Jobs(self.workers), Drafts(self.uploads)
        self.templates = Jinja2Templates(Path(__file__).with_name("templates"))
        self.templates.env.filters |= {"plain": escape_controls}
        self.templates.env.globals |= {
            **{"titles": TITLES, "words": VALUES, "losses": LOSSES, "sentences": SENTENCES},
            **{"offered": CHOICES, "form": [CHOICES[name] for name in FORM]},
        }
        self._threads = ThreadPoolExecutor(64, thread_name_prefix="studio")

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run something that waits, such as a look at the ledger, outside the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(work, *arguments))

    async def ask(self, request: Request | None, task: str, **arguments: Any) -> Any:
        """Ask a worker; give up after too long, or once nobody waits for the answer."""
        workers: list[Worker] = []
        loop = asyncio.get_running_loop()
        name = "" if request is None else request.headers.get("x-watch", "")

        def say(stage: str) -> None:
            if WATCHED.fullmatch(name):
                self.stages[name] = stage

        say("waiting for its turn")
        call = partial(self.workers.call, task, arguments, workers.append, say)
        answer = asyncio.ensure_future(loop.run_in_executor(self._threads, call))
        try:
            start = loop.time()
            while not (await asyncio.wait({answer}, timeout=0.5))[0]:
                late = loop.time() - start > PATIENCE
                if late or (request is not None and await request.is_disconnected()):
                    for worker in workers:
                        worker.end()
                    answer.add_done_callback(lambda done: done.exception())
                    raise RefusedError(504, "This took too long and was given up.")
            return answer.result()
        except EndedError:
            raise RefusedError(503, "The work ended before it was done. Try again.") from None
        finally:
            self.stages.pop(name, None)

    async def show(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        """Show a page, with the budget on top and what the plan at hand would leave of it."""
        plan = values.get("draft") or self.current
        if plan is not None and (plan.cost is None or not self.drafts.has(plan)):
            plan = None
        values |= {"budget": await self.run(self.read_budget, plan), "folder": str(self.folder)}
        return self.templates.TemplateResponse(request, template, {**values, "planned": plan})

    def read_budget(self, plan: Draft | None = None) -> dict[str, Any]:
        """Return the account of every dataset, and what a plan would leave of it.

        The one that was chosen to pay comes first, and then it is the only one that pays.
        """
        budget: dict[str, Any] = {"open": self.ledger is not None, "accounts": [], "problem": ""}
        if self.ledger is None:
            return budget
        try:
            accounts = Ledger(self.ledger).accounts()
        except LedgerError as problem:
            return budget | {"problem": str(problem)}
        payer = None if plan is None else plan.dataset
        accounts.sort(key=lambda account: account.dataset != payer)
        return budget | {"accounts": [_describe_account(account, plan) for account in accounts]}

    def list_tables(self) -> list[str]:
        """List the tables in the studio's folder."""
        files = (file for file in self.folder.iterdir() if not file.name.startswith("."))
        tables = (file for file in files if "".join(split_packing(file)) in TABLE_ENDINGS)
        return sorted(table.name for table in tables if table.is_file())[:MOST_LISTED]

    def list_releases(self) -> list[str]:
        """List the release folders in the studio's folder, newest first."""
        releases = [
            place
            for place in self.folder.iterdir()
            if place.is_dir()
            and not place.name.startswith(".")
            and ((place / RECEIPT).is_file() or any(place.glob(f"level-1-*/{CHECKSUMS}")))
        ]
        releases.sort(key=lambda place: place.stat().st_mtime, reverse=True)
        return [place.name for place in releases[:MOST_LISTED]]

    def find_in_folder(self, name: Any, names: list[str]) -> Path:
        """Return the path of something in the folder that was listed, or refuse."""
        if not isinstance(name, str) or name not in names:
            raise RefusedError(404, "There is nothing of that name in the folder.")
        return self.folder / name

    def close(self) -> None:
        """End unpaid jobs, wait for paid ones, and delete uploads."""
        self.workers.close()
        self.uploads.close()
        self._threads.shutdown(wait=False, cancel_futures=True)


class Pages:
    """Pages of one topic."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio


def _describe_account(account: Account, plan: Draft | None) -> dict[str, Any]:
    """Describe an account for the pages, with what a plan would leave of it."""
    pays = plan is not None and not account.closed and plan.dataset in (None, account.dataset)
    return account.to_dict() | {
        "total": shown_rational(account.epsilon),
        "spent": shown_rational(account.spent_epsilon),
        "left": shown_rational(account.remaining_epsilon),
        "share": float(account.spent_epsilon / account.epsilon),
        "after": _leave(account, plan.cost) if plan is not None and plan.cost and pays else "",
    }


def _leave(account: Account, cost: Fraction) -> str:
    """Describe what a plan leaves of a budget."""
    rest = account.remaining_epsilon - cost
    if rest < 0:
        return "costs more than is left"
    if account.accounting != "pure":
        return "fits in"  # how much is left then depends on what was released before
    return f"would leave ε {shown_rational(rest)}"


def post(path: str, answer: Answer) -> Route:
    """Route messages: a JSON object comes, and what `answer` returns goes back as JSON."""

    async def respond(request: Request) -> Response:
        return JSONResponse(await answer(request, await read_body(request)))

    return Route(path, respond, methods=["POST"])


async def read_body(request: Request) -> dict[str, Any]:
    """Return the message in a request: a JSON object of moderate size."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != "application/json":
        raise RefusedError(415, "A message must be JSON.")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_MESSAGE:
            raise RefusedError(413, "The message is too long.")
        parts.append(part)
    try:
        message = parse_json(b"".join(parts))
    except (ValueError, RecursionError):
        raise RefusedError(400, "The message is not JSON that can be read.") from None
    if not isinstance(message, dict):
        raise RefusedError(400, "A message must be a JSON object.")
    return message


def read_confidence(message: dict[str, Any]) -> float:
    """Return the confidence in a message, by default 95%."""
    confidence: float = read_field(message, "confidence", Confidence, 0.95)
    return confidence
