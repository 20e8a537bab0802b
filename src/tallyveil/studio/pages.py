"""Pages besides those of a publisher: start, check and read releases, design, learn, ledger."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import msgspec
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from xstatic.pkg.d3 import BASE_DIR as CHARTS

from tallyveil.budget.entries import shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tallyveil.passwords import hide_passwords
from tallyveil.release.folder import CHECKSUMS
from tallyveil.studio.choices import check_folder_name, read_field
from tallyveil.studio.state import Answer, Pages, Studio, post, read_confidence
from tallyveil.studio.uploads import MOST_FILES, check_inner_name, find_ending
from tallyveil.studio.wording import RefusedError
from tallyveil.untrusted import escape_controls

MOST_BUNDLES = 40
MOST_ENTRIES = 300
Dataset = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
LESSONS = {
    "epsilon": (
        "What epsilon means to one person",
        "Two tables differ by one person. How alike are their releases?",
    ),
    "bias": (
        "Why clamped noise is biased",
        "Noise that is cut off at 0 can only push upwards there.",
    ),
    "solvers": (
        "Why solvers' matrices are not private",
        "A zero next to a positive probability can reveal a person with certainty.",
    ),
    "distribution": (
        "Keeping a distribution",
        "Plain noise blurs the histogram of a table. It can be kept.",
    ),
    "levels": (
        "Several levels and collusion",
        "Readers who are trusted differently combine their copies. What do they learn?",
    ),
    "composition": (
        "Releases add up",
        "Every release of the same data costs. Together they cost less than their sum.",
    ),
}


def list_routes(studio: Studio) -> list[Route]:
    """List the addresses of these pages and of what they ask for."""
    work, bundles, designs = _Work(studio), _Bundles(studio), _Designs(studio)
    book = _Book(studio)
    return [
        Route("/", work.show_start),
        Route("/library/d3.js", work.send_charts),
        Route("/jobs/{job}/events", work.follow_job),
        post("/jobs/{job}/cancel", work.cancel_job),
        Route("/questions/{name}/events", work.follow_question),
        Route("/check", bundles.show_check),
        Route("/read", bundles.show_read),
        post("/bundles", bundles.begin),
        Route("/bundles/{bundle}/files", bundles.receive, methods=["PUT"]),
        post("/bundles/{bundle}/check", bundles.check),
        post("/bundles/{bundle}/open", bundles.open),
        post("/bundles/{bundle}/count", bundles.read_count),
        post("/bundles/{bundle}/totals", bundles.read_totals),
        Route("/design", designs.show_design),
        post("/design/solve", designs.ask("design.solve")),
        post("/design/prices", designs.ask("design.find_prices")),
        post("/design/certify", designs.ask("design.certify_design")),
        Route("/learn", designs.show_lessons),
        Route("/learn/{lesson}", designs.show_lesson),
        post("/learn/{lesson}/answer", designs.answer),
        Route("/budget", book.read_budget),
        Route("/ledger", book.show),
        post("/ledger/create", book.create),
        post("/ledger/open", book.open),
        post("/ledger/verify", book.verify),
    ]


class _Work(Pages):
    """The start, and the progress of jobs and questions."""

    async def show_start(self, request: Request) -> Response:
        releases = await self.studio.run(self.studio.list_releases)
        return await self.studio.show(request, "start.html", releases=releases)

    async def send_charts(self, request: Request) -> Response:
        return FileResponse(Path(CHARTS, "d3.js"), media_type="text/javascript")

    async def follow_job(self, request: Request) -> Response:
        job = self.studio.jobs.find(request.path_params["job"])
        return _send_changes(job.to_dict, lambda state: state["state"] != "running")

    async def cancel_job(self, request: Request, message: dict[str, Any]) -> Any:
        return {"cancelled": self.studio.jobs.find(request.path_params["job"]).cancel()}

    async def follow_question(self, request: Request) -> Response:
        """Send the stages of a question until it is answered; hanging up cancels it."""
        name = request.path_params["name"]
        return _send_changes(
            lambda: {"stage": self.studio.stages.get(name, "")}, lambda state: not state["stage"]
        )


def _send_changes(
    look: Callable[[], dict[str, Any]], is_last: Callable[[dict[str, Any]], bool]
) -> StreamingResponse:
    """Send a state whenever it changes, and the last one; then close the stream."""

    async def stream() -> AsyncIterator[str]:
        before = None
        while True:
            state = look()  # one look, so that the last state sent is the one it ended in
            if state != before:
                before = state
                yield f"data: {json.dumps(state, allow_nan=False)}\n\n"
            if is_last(state):
                return
            await asyncio.sleep(0.1)

    return StreamingResponse(stream(), media_type="text/event-stream")


class _Bundles(Pages):
    """Releases that are being read: dropped files, a zip, or a folder of the studio's own."""

    async def show_check(self, request: Request) -> Response:
        return await self._show(request, "check.html")

    async def show_read(self, request: Request) -> Response:
        return await self._show(request, "read.html")

    async def _show(self, request: Request, template: str) -> Response:
        releases = await self.studio.run(self.studio.list_releases)
        chosen = request.query_params.get("folder", "")
        return await self.studio.show(request, template, releases=releases, chosen=chosen)

    async def begin(self, request: Request, message: dict[str, Any]) -> Any:
        """Begin a bundle: empty, for files to come, or a folder of the studio's own."""
        if "folder" in message:
            releases = await self.studio.run(self.studio.list_releases)
            place = self.studio.find_in_folder(message["folder"], releases)
        else:
            place = self.studio.uploads.new_folder()
        bundles = self.studio.bundles
        while len(bundles) >= MOST_BUNDLES:
            oldest = next(iter(bundles))
            self.studio.uploads.remove(bundles.pop(oldest))
            self.studio.opened.pop(oldest, None)
        for other in bundles.values():
            self.studio.uploads.count(other)  # what was unpacked since
        key = uuid.uuid4().hex
        bundles[key] = place
        return {"bundle": key}

    def _find(self, request: Request) -> Path:
        place = self.studio.bundles.get(request.path_params["bundle"])
        if place is None:
            raise RefusedError(404, "These files are no longer here. Drop them again.")
        return place

    async def receive(self, request: Request) -> Response:
        """Receive one file of a bundle; its name may have folders in it, and stays inside."""
        place, uploads = self._find(request), self.studio.uploads
        if not place.is_relative_to(uploads.folder):
            raise RefusedError(409, "This folder is not changed here.")
        if sum(1 for _ in place.rglob("*")) >= MOST_FILES:
            raise RefusedError(413, f"A folder may hold at most {MOST_FILES} files.")
        parts = check_inner_name(unquote(request.headers.get("x-name", "")))
        if parts[-1] != CHECKSUMS:
            find_ending(parts[-1])
        target = place.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if target.exists():
            raise RefusedError(409, "A file of this name was dropped already.")
        await uploads.receive(request.stream(), target)
        return JSONResponse({"name": escape_controls(parts[-1])})

    async def check(self, request: Request, message: dict[str, Any]) -> Any:
        place = self._find(request)
        dataset = read_field(message, "dataset", str | None)
        arguments = {"folder": str(place), "room": self.studio.uploads.room}
        arguments |= {"ledger": self.studio.ledger, "dataset": dataset}
        return {"job": self.studio.jobs.start("check.check", arguments).id}

    async def open(self, request: Request, message: dict[str, Any]) -> Any:
        facts = await self.studio.ask(
            request,
            "check.read_release",
            folder=str(self._find(request)),
            room=self.studio.uploads.room,
            level=read_field(message, "level", str, ""),
        )
        self.studio.opened[request.path_params["bundle"]] = facts.pop("folder")
        return facts

    async def read_count(self, request: Request, message: dict[str, Any]) -> Any:
        released = read_field(message, "released", float)
        return await self._ask(request, message, "check.read_count", released=released)

    async def read_totals(self, request: Request, message: dict[str, Any]) -> Any:
        by = read_field(message, "by", list[str], [])
        return await self._ask(request, message, "check.read_totals", by=by)

    async def _ask(
        self, request: Request, message: dict[str, Any], task: str, **arguments: Any
    ) -> Any:
        """Ask something about a column of a release that was opened."""
        self._find(request)
        folder = self.studio.opened.get(request.path_params["bundle"])
        if folder is None:
            raise RefusedError(409, "Open the release first.")
        arguments |= {"column": read_field(message, "column", str), "folder": folder}
        return await self.studio.ask(
            request, task, confidence=read_confidence(message), **arguments
        )


class _Designs(Pages):
    """Mechanisms to explore, and six small experiments to learn from."""

    async def show_design(self, request: Request) -> Response:
        return await self.studio.show(request, "design.html")

    def ask(self, task: str) -> Answer:
        """Return a function that answers a question about a design by a worker's task."""

        async def answer(request: Request, message: dict[str, Any]) -> Any:
            return await self.studio.ask(request, task, message=message)

        return answer

    async def show_lessons(self, request: Request) -> Response:
        return await self.studio.show(request, "learn.html", lessons=LESSONS)

    async def show_lesson(self, request: Request) -> Response:
        lesson, names = request.path_params["lesson"], [*LESSONS, None]
        if lesson not in LESSONS:
            raise RefusedError(404, "There is no such page.")
        number = names.index(lesson) + 1
        return await self.studio.show(
            request,
            "lesson.html",
            lesson=lesson,
            lessons=LESSONS,
            following=names[number],
            number=number,
        )

    async def answer(self, request: Request, message: dict[str, Any]) -> Any:
        return await self.studio.ask(
            request,
            "design.learn",
            lesson=request.path_params["lesson"],
            epsilon=read_field(message, "epsilon", str, "1"),
            count=read_field(message, "at", int, 0),
        )


class _Book(Pages):
    """The ledger: what datasets may spend and have spent, and whether the chain holds."""

    async def read_budget(self, request: Request) -> Response:
        return JSONResponse(await self.studio.run(self.studio.read_budget))

    async def show(self, request: Request) -> Response:
        entries = await self.studio.run(self._list_entries)
        name = hide_passwords(self.studio.ledger or "")
        return await self.studio.show(request, "ledger.html", entries=entries, ledger=name)

    def _list_entries(self) -> list[dict[str, Any]]:
        if self.studio.ledger is None:
            return []
        try:
            entries = Ledger(self.studio.ledger).history(kind=None)
        except LedgerError:
            return []  # the bar on top says what is wrong
        return [
            {
                "entry": entry.sequence,
                "dataset": entry.dataset,
                "kind": entry.kind,
                "epsilon": shown_rational(entry.epsilon) if entry.epsilon else "",
                "time": str(entry.body.get("time", ""))[:16].replace("T", " "),
                "columns": ", ".join(map(str, entry.body.get("columns", ()))),
                "digest": entry.digest[:12],
            }
            for entry in reversed(entries[-MOST_ENTRIES:])
        ]

    async def create(self, request: Request, message: dict[str, Any]) -> Any:
        """Create a ledger in the studio's folder, where none is open."""
        if self.studio.ledger is not None:
            raise RefusedError(409, "A ledger is open already.")
        name = check_folder_name(message.get("name"))
        file = self.studio.folder / (name if name.endswith(".db") else f"{name}.db")
        await self.studio.run(Ledger.create, file)
        self.studio.ledger = str(file)
        return {"next": "/ledger"}

    async def open(self, request: Request, message: dict[str, Any]) -> Any:
        """Set a dataset's total budget, once."""
        dataset = read_field(message, "dataset", Dataset)
        await self.studio.run(self._find().open, dataset, read_field(message, "epsilon", str))
        return {"next": "/ledger"}

    async def verify(self, request: Request, message: dict[str, Any]) -> Any:
        try:
            length, digest = await self.studio.run(self._find().verify)
        except LedgerError as problem:
            return {"ok": False, "detail": str(problem)}
        detail = f"{length:,} entries, all of them unchanged. Last digest {digest}"
        return {"ok": True, "detail": detail}

    def _find(self) -> Ledger:
        if self.studio.ledger is None:
            raise RefusedError(409, "No ledger is open.")
        return Ledger(self.studio.ledger)
