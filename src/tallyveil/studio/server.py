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
from tallyveil.studio.guard import Guard
from tallyveil.studio.pages_check import check_routes
from tallyveil.studio.pages_design import design_routes
from tallyveil.studio.pages_ledger import ledger_routes
from tallyveil.studio.pages_publish import publish_routes
from tallyveil.studio.state import Studio, post
from tallyveil.studio.uploads import Uploads
from tallyveil.studio.wording import RefusedError, describe_problem
from tallyveil.studio.workers import EndedError, Workers

TASKS = "tallyveil.studio.tasks"
SILENCE = 10.0
"""Seconds that somebody may take to ask for something."""


def make_studio(folder: Path, ledger: str | None, uploads: Uploads | None = None) -> Studio:
    """Make the state of a new run; what it needs must be there."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r}.")
    if ledger is not None:
        Ledger(ledger).accounts()  # one that cannot be read is refused before anything starts
    uploads = uploads or Uploads()
    return Studio(folder.resolve(), uploads, Workers(TASKS, private=uploads.folder), ledger)


def build_app(studio: Studio, port: int) -> Guard:
    """Build the whole application, with the guard around everything."""

    async def show_start(request: Request) -> Response:
        releases = await studio.run(studio.list_releases)
        return await studio.show(request, "start.html", releases=releases)

    async def read_budget(request: Request) -> Response:
        return JSONResponse(await studio.run(studio.read_budget))

    async def send_charts(request: Request) -> Response:
        return FileResponse(Path(CHARTS, "d3.js"), media_type="text/javascript")

    async def refuse(request: Request, problem: Exception) -> Response:
        status, sentence = 422, describe_problem(problem)
        if isinstance(problem, RefusedError):
            status = problem.status
        elif isinstance(problem, HTTPException):
            status, sentence = problem.status_code, "There is no such page."
        if "text/html" in request.headers.get("accept", ""):
            page = await studio.show(request, "error.html", sentence=sentence)
            page.status_code = status
            return page
        return JSONResponse({"error": sentence}, status)

    @asynccontextmanager
    async def live(app: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=_warm_up, args=(studio,), daemon=True).start()
        yield
        studio.close()

    static = Mount("/static", StaticFiles(directory=Path(__file__).with_name("static")))
    app = Starlette(
        routes=[
            Route("/", show_start),
            Route("/budget", read_budget),
            Route("/library/d3.js", send_charts),
            *publish_routes(studio),
            *_progress_routes(studio),
            *check_routes(studio),
            *design_routes(studio),
            *ledger_routes(studio),
            static,
        ],
        exception_handlers={
            RefusedError: refuse,
            TallyveilError: refuse,
            HTTPException: refuse,
            Exception: _fail,
        },
        lifespan=live,
    )
    return Guard(app, port)


def _warm_up(studio: Studio) -> None:
    """Load what the first pages need, while the browser opens."""
    with suppress(EndedError):  # closed before it was open
        studio.workers.warm()
        studio.list_releases()


async def _fail(request: Request, problem: Exception) -> Response:
    """Name only the kind of an unexpected error, since its text may hold anything."""
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
        lines = cast("set[Any]", self.server_state.connections)
        idle = [line for line in lines if line.cycle is None or line.cycle.response_complete]
        self._silent = {line: self._silent.get(line, now) for line in idle}
        for line, since in self._silent.items():
            if now - since > SILENCE:
                line.transport.close()

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
    """Return the addresses under which pages follow jobs and questions."""

    async def follow_job(request: Request) -> Response:
        job = studio.jobs.find(request.path_params["job"])
        return _send_changes(job.to_dict, lambda state: state["state"] != "running")

    async def cancel_job(request: Request, message: dict[str, Any]) -> Any:
        return {"cancelled": studio.jobs.find(request.path_params["job"]).cancel()}

    async def follow_question(request: Request) -> Response:
        """Send the stages of a question, until it is answered; to give it up is to hang up."""
        name = request.path_params["name"]
        return _send_changes(
            lambda: {"stage": studio.stages.get(name, "")}, lambda state: not state["stage"]
        )

    return [
        Route("/jobs/{job}/events", follow_job),
        post("/jobs/{job}/cancel", cancel_job),
        Route("/questions/{name}/events", follow_question),
    ]


def _send_changes(
    look: Callable[[], dict[str, Any]], is_last: Callable[[dict[str, Any]], bool]
) -> StreamingResponse:
    """Send a state whenever it changes, and the last one; then the line is closed."""

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
