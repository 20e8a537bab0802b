"""Server of the studio: its pages, the guard around them, progress of work, start and end."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from xstatic.pkg.d3 import BASE_DIR as CHARTS

from tallyveil.budget.ledger import Ledger
from tallyveil.errors import TallyveilError, UsageError
from tallyveil.studio.errors import RefusedError, describe_problem
from tallyveil.studio.guard import Guard
from tallyveil.studio.pages_check import check_routes
from tallyveil.studio.pages_design import design_routes
from tallyveil.studio.pages_ledger import ledger_routes
from tallyveil.studio.pages_publish import publish_routes
from tallyveil.studio.state import Studio, read_body
from tallyveil.studio.uploads import Uploads
from tallyveil.studio.workers import EndedError, Workers

__all__ = ["build_app", "make_studio", "run_studio"]

TASKS = "tallyveil.studio.tasks"
SILENCE = 10.0
"""Seconds that somebody may take to ask for something."""


def make_studio(folder: Path, ledger: str | None, uploads: Uploads | None = None) -> Studio:
    """The state of a new run; what it needs must be there."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r}.")
    if ledger is not None:
        Ledger(ledger).accounts()  # one that cannot be read is refused before anything starts
    uploads = uploads or Uploads()
    return Studio(folder.resolve(), uploads, Workers(TASKS, private=uploads.folder), ledger)


def build_app(studio: Studio, port: int) -> Guard:
    """The whole application; the guard stands around everything."""

    async def start(request: Request) -> Response:
        releases = await studio.run(studio.list_releases)
        return await studio.show(request, "start.html", releases=releases)

    async def budget(request: Request) -> Response:
        return JSONResponse(await studio.run(studio.read_budget))

    async def charts(request: Request) -> Response:
        return FileResponse(Path(CHARTS, "d3.js"), media_type="text/javascript")

    async def refuse(request: Request, problem: Exception) -> Response:
        status = problem.status if isinstance(problem, RefusedError) else 500
        if isinstance(problem, HTTPException):
            status, sentence = problem.status_code, "There is no such page."
        elif isinstance(problem, TallyveilError):
            status, sentence = 422, describe_problem(problem)
        else:
            sentence = describe_problem(problem)
        if "text/html" in request.headers.get("accept", ""):
            page = await studio.show(request, "error.html", sentence=sentence)
            page.status_code = status
            return page
        return JSONResponse({"error": sentence}, status)

    @asynccontextmanager
    async def live(app: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=_warm, args=(studio,), daemon=True).start()
        yield
        studio.close()

    static = Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")))
    app = Starlette(
        routes=[
            Route("/", start),
            Route("/budget", budget),
            Route("/library/d3.js", charts),
            *publish_routes(studio),
            *_progress_routes(studio),
            *check_routes(studio),
            *design_routes(studio),
            *ledger_routes(studio),
            static,
        ],
        exception_handlers={RefusedError: refuse, TallyveilError: refuse, HTTPException: refuse},
        lifespan=live,
    )
    app.add_exception_handler(Exception, _break)
    return Guard(app, port)


def _warm(studio: Studio) -> None:
    """What the first pages need, while the browser opens."""
    with suppress(EndedError):  # closed before it was open
        studio.workers.warm()
        studio.list_releases()


async def _break(request: Request, problem: Exception) -> Response:
    """What was not expected: only its kind is named, since its text may hold anything."""
    return PlainTextResponse(describe_problem(problem), 500)


class _Server(uvicorn.Server):
    """A server that says when it listens, and hangs up on those who say nothing."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._silent: dict[Any, float] = {}

    async def on_tick(self, counter: int) -> bool:
        self._hang_up()
        return await super().on_tick(counter)

    def _hang_up(self) -> None:
        """Close connections on which nothing was asked in time, so that they keep nobody out."""
        now = time.monotonic()
        known = cast("set[Any]", self.server_state.connections)
        idle = [one for one in known if one.cycle is None or one.cycle.response_complete]
        self._silent = {one: self._silent.get(one, now) for one in idle}
        for one, since in self._silent.items():
            if now - since > SILENCE:
                one.transport.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()


def run_studio(
    folder: Path,
    ledger: str | None,
    port: int,
    say: Callable[[str], None],
    *,
    browser: bool = True,
) -> None:
    """Serve the studio on this machine alone until it is interrupted."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as problem:
        raise UsageError(f"Port {port} cannot be used: {problem.strerror}.") from None
    with listener:
        port = int(listener.getsockname()[1])
        studio = make_studio(folder, ledger)
        app = build_app(studio, port)
        address = f"http://127.0.0.1:{port}/open?token={app.token}"

        def ready() -> None:
            say(address)
            if browser:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

        logging.getLogger("uvicorn").handlers = [logging.NullHandler()]
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="on",
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=32 << 10,
            limit_concurrency=400,
            ws="none",
            http="h11",
        )
        server = _Server(config, ready)
        if hasattr(signal, "SIGHUP"):  # the terminal's window was closed
            signal.signal(signal.SIGHUP, server.handle_exit)
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass
        finally:
            studio.close()
            with suppress(OSError):
                sys.stdout.flush()


def _progress_routes(studio: Studio) -> list[Route]:
    """The addresses under which pages follow jobs and questions."""
    pages = _Progress(studio)
    return [
        Route("/jobs/{job}/events", pages.follow_job),
        Route("/jobs/{job}/cancel", pages.cancel_job, methods=["POST"]),
        Route("/questions/{name}/events", pages.follow_question),
    ]


class _Progress:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    async def follow_job(self, request: Request) -> Response:
        job = self.studio.jobs.find(request.path_params["job"])
        return _tell(job.to_dict, lambda now: now["state"] != "running")

    async def cancel_job(self, request: Request) -> Response:
        await read_body(request)
        job = self.studio.jobs.find(request.path_params["job"])
        return JSONResponse({"cancelled": job.cancel()})

    async def follow_question(self, request: Request) -> Response:
        """The stages of a question, until it is answered; giving it up is hanging up."""
        name = request.path_params["name"]
        return _tell(
            lambda: {"stage": self.studio.stages.get(name, "")}, lambda now: not now["stage"]
        )


def _tell(
    look: Callable[[], dict[str, Any]], is_last: Callable[[dict[str, Any]], bool]
) -> StreamingResponse:
    """Send what is seen whenever it changes, and the last of it; then the line is closed."""

    async def stream() -> AsyncIterator[str]:
        last = None
        while True:
            now = look()  # one look: what is told last is the state it ended in
            if now != last:
                last = now
                yield f"data: {json.dumps(now, allow_nan=False)}\n\n"
            if is_last(now):
                return
            await asyncio.sleep(0.1)

    return StreamingResponse(stream(), media_type="text/event-stream")
