"""Check and read what somebody released: dropped files, a zip, or a folder of the studio's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallyveil.studio.errors import RefusedError
from tallyveil.studio.pages_publish import read_confidence
from tallyveil.studio.state import Studio, read_body
from tallyveil.studio.uploads import MOST_FILES, check_inner_name, find_ending
from tallyveil.untrusted import escape_controls

__all__ = ["check_routes"]

MOST_BUNDLES = 40


def check_routes(studio: Studio) -> list[Route]:
    """The addresses of the pages that look at releases."""
    pages = _Pages(studio)
    return [
        Route("/check", pages.check_page),
        Route("/read", pages.read_page),
        Route("/bundles", pages.begin, methods=["POST"]),
        Route("/bundles/{bundle}/files", pages.receive, methods=["PUT"]),
        Route("/bundles/{bundle}/check", pages.check, methods=["POST"]),
        Route("/bundles/{bundle}/open", pages.open, methods=["POST"]),
        Route("/bundles/{bundle}/count", pages.count, methods=["POST"]),
        Route("/bundles/{bundle}/totals", pages.totals, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    async def check_page(self, request: Request) -> Response:
        return await self._show(request, "check.html")

    async def read_page(self, request: Request) -> Response:
        return await self._show(request, "read.html")

    async def _show(self, request: Request, name: str) -> Response:
        releases = await self.studio.run(self.studio.list_releases)
        chosen = request.query_params.get("folder", "")
        chosen = chosen if chosen in releases else ""
        return await self.studio.show(request, name, releases=releases, chosen=chosen)

    async def begin(self, request: Request) -> Response:
        """A new bundle: empty, for files to come, or a folder of the studio's own."""
        given = await read_body(request)
        if "folder" in given:
            releases = await self.studio.run(self.studio.list_releases)
            place = self.studio.find_in_folder(given["folder"], releases)
        else:
            place = self.studio.uploads.new_folder()
        bundles = self.studio.bundles
        while len(bundles) >= MOST_BUNDLES:
            oldest = next(iter(bundles))
            self.studio.uploads.remove(bundles.pop(oldest))
            self.studio.opened.pop(oldest, None)
        for other in bundles.values():
            self.studio.uploads.count(other)  # what was unpacked since
        key = self.studio.new_key()
        bundles[key] = place
        return JSONResponse({"bundle": key})

    def _find(self, request: Request) -> Path:
        place = self.studio.bundles.get(request.path_params["bundle"])
        if place is None:
            raise RefusedError(404, "What was dropped is no longer here. Drop it again.")
        return place

    async def receive(self, request: Request) -> Response:
        """One file of a bundle; its name may have folders in it, and stays inside."""
        place = self._find(request)
        if not place.is_relative_to(self.studio.uploads.folder):
            raise RefusedError(409, "A folder of the studio is not changed.")
        if sum(1 for _ in place.rglob("*")) >= MOST_FILES:
            raise RefusedError(413, f"A folder may hold at most {MOST_FILES} files.")
        name = unquote(request.headers.get("x-name", ""))
        parts = check_inner_name(name)
        if name != "SHA256SUMS" and parts[-1] != "SHA256SUMS":
            find_ending(parts[-1])
        target = place.joinpath(*parts)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if target.exists():
            raise RefusedError(409, "A file of this name was dropped already.")
        await self.studio.uploads.receive(request.stream().__aiter__(), target)
        return JSONResponse({"name": escape_controls(parts[-1])})

    async def check(self, request: Request) -> Response:
        given, place = await read_body(request), self._find(request)
        dataset = given.get("dataset")
        if dataset is not None and not isinstance(dataset, str):
            raise RefusedError(400, "The dataset cannot be read.")
        asked = {"folder": str(place), "room": self.studio.uploads.room}
        asked |= {"ledger": self.studio.ledger, "dataset": dataset}
        job = self.studio.jobs.start("check", asked)
        return JSONResponse({"job": job.id})

    async def open(self, request: Request) -> Response:
        level = (await read_body(request)).get("level", "")
        key, place = request.path_params["bundle"], self._find(request)
        asked = {"folder": str(place), "room": self.studio.uploads.room, "level": str(level)}
        seen = await self.studio.ask(request, "read_release", **asked)
        self.studio.opened[key] = seen.pop("folder")
        return JSONResponse(seen)

    def _opened(self, request: Request) -> str:
        self._find(request)
        place = self.studio.opened.get(request.path_params["bundle"])
        if place is None:
            raise RefusedError(409, "Open the release first.")
        return place

    async def count(self, request: Request) -> Response:
        given, folder = await read_body(request), self._opened(request)
        released = given.get("released")
        if isinstance(released, bool) or not isinstance(released, (int, float)):
            raise RefusedError(400, "'released' must be a number.")
        return await self._ask(request, given, "read_count", folder, released=released)

    async def totals(self, request: Request) -> Response:
        given, folder = await read_body(request), self._opened(request)
        by = given.get("by", [])
        if not isinstance(by, list) or not all(isinstance(name, str) for name in by):
            raise RefusedError(400, "'by' must name columns.")
        return await self._ask(request, given, "read_totals", folder, by=by)

    async def _ask(
        self, request: Request, given: dict[str, Any], name: str, folder: str, **more: Any
    ) -> Response:
        column = given.get("column")
        if not isinstance(column, str):
            raise RefusedError(400, "'column' must name a column.")
        confidence = read_confidence(given)
        found = await self.studio.ask(
            request, name, folder=folder, column=column, confidence=confidence, **more
        )
        return JSONResponse(found)
