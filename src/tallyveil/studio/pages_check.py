"""Check and read what somebody released: dropped files, a zip, or a folder of the studio's own."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallyveil.release.folder import CHECKSUMS
from tallyveil.studio.choices import read_field
from tallyveil.studio.state import Pages, Studio, post, read_confidence
from tallyveil.studio.uploads import MOST_FILES, check_inner_name, find_ending
from tallyveil.studio.wording import RefusedError
from tallyveil.untrusted import escape_controls

MOST_BUNDLES = 40


def check_routes(studio: Studio) -> list[Route]:
    """Return the addresses of the pages that look at releases."""
    pages = _Pages(studio)
    return [
        Route("/check", pages.show_check),
        Route("/read", pages.show_read),
        post("/bundles", pages.begin),
        Route("/bundles/{bundle}/files", pages.receive, methods=["PUT"]),
        post("/bundles/{bundle}/check", pages.check),
        post("/bundles/{bundle}/open", pages.open),
        post("/bundles/{bundle}/count", pages.read_count),
        post("/bundles/{bundle}/totals", pages.read_totals),
    ]


class _Pages(Pages):
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
        await uploads.receive(request.stream().__aiter__(), target)
        return JSONResponse({"name": escape_controls(parts[-1])})

    async def check(self, request: Request, message: dict[str, Any]) -> Any:
        place = self._find(request)
        dataset = read_field(message, "dataset", str | None)
        arguments = {"folder": str(place), "room": self.studio.uploads.room}
        arguments |= {"ledger": self.studio.ledger, "dataset": dataset}
        return {"job": self.studio.jobs.start("check", arguments).id}

    async def open(self, request: Request, message: dict[str, Any]) -> Any:
        facts = await self.studio.ask(
            request,
            "read_release",
            folder=str(self._find(request)),
            room=self.studio.uploads.room,
            level=read_field(message, "level", str, ""),
        )
        self.studio.opened[request.path_params["bundle"]] = facts.pop("folder")
        return facts

    async def read_count(self, request: Request, message: dict[str, Any]) -> Any:
        released = read_field(message, "released", float)
        return await self._ask(request, message, "read_count", released=released)

    async def read_totals(self, request: Request, message: dict[str, Any]) -> Any:
        by = read_field(message, "by", list[str], [])
        return await self._ask(request, message, "read_totals", by=by)

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
