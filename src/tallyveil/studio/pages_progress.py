"""How far work is, as server-sent events, and a way to give it up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tallyveil.studio.state import Studio, read_body

__all__ = ["progress_routes"]


def progress_routes(studio: Studio) -> list[Route]:
    """The addresses under which pages follow jobs and questions."""
    pages = _Pages(studio)
    return [
        Route("/jobs/{job}/events", pages.follow_job),
        Route("/jobs/{job}/cancel", pages.cancel_job, methods=["POST"]),
        Route("/questions/{name}/events", pages.follow_question),
    ]


class _Pages:
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
