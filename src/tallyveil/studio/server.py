"""Server of the studio: its pages, the guard around them, progress of work, start and end."""

from __future__ import annotations

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
    JSONResponse,
    PlainTextResponse,
    Response,
)
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from tallyveil.budget.ledger import Ledger
from tallyveil.errors import TallyveilError, UsageError
from tallyveil.studio.guard import Guard
from tallyveil.studio.pages import list_routes
from tallyveil.studio.pages_publish import publish_routes
from tallyveil.studio.state import Studio
from tallyveil.studio.uploads import Uploads
from tallyveil.studio.wording import RefusedError, describe_problem
from tallyveil.studio.workers import EndedError, Workers

SILENCE = 10.0
"""Seconds that somebody may take to ask for something."""


def make_studio(folder: Path, ledger: str | None, uploads: Uploads | None = None) -> Studio:
    """Make the state of a new run; what it needs must be there."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {str(folder)!r}.")
    if ledger is not None:
        Ledger(ledger).accounts()  # one that cannot be read is refused before anything starts
    uploads = uploads or Uploads()
    return Studio(folder.resolve(), uploads, Workers(private=uploads.folder), ledger)


def build_app(studio: Studio, port: int) -> Guard:
    """Build the whole application, with the guard around everything."""

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
        routes=[*list_routes(studio), *publish_routes(studio), static],
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
        """Close idle connections, so that they keep nobody out."""
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
