"""What was released: the folder as a zip, the methodology page, the comparison with the truth."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tallyveil.studio.errors import RefusedError
from tallyveil.studio.guard import RELEASE_POLICY
from tallyveil.studio.state import Studio

__all__ = ["released_routes"]

GONE = "The release is no longer in its folder."


def released_routes(studio: Studio) -> list[Route]:
    """The addresses of what a release left; they come before those of the steps."""
    pages = _Released(studio)
    return [
        Route("/publish/{draft}/zip", pages.download),
        Route("/publish/{draft}/page", pages.show_page),
        Route("/publish/{draft}/report", pages.show_report),
    ]


class _Released:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def _released(self, request: Request) -> Path:
        draft = self.studio.drafts.find(request.path_params["draft"])
        if draft.job is None or draft.job.state != "done":
            raise RefusedError(404, "Nothing was released here yet.")
        return Path(draft.job.result["folder"])

    async def download(self, request: Request) -> Response:
        folder = self._released(request)
        content = await self.studio.run(_pack, folder)
        headers = {"content-disposition": f'attachment; filename="{_plain(folder.name)}.zip"'}
        return Response(content, media_type="application/zip", headers=headers)

    async def show_page(self, request: Request) -> Response:
        from tallyveil.documents.files import METHODOLOGY

        folder = self._released(request)
        if not (folder / METHODOLOGY).is_file():  # of several levels, the least private one's
            folder = min(folder.glob("level-1-*"), default=folder)
        return await self._show_file(folder / METHODOLOGY)

    async def show_report(self, request: Request) -> Response:
        """The comparison with the truth, for the publisher who asked for it."""
        folder = self._released(request)
        return await self._show_file(folder.with_name(f"{folder.name} CONFIDENTIAL.html"))

    async def _show_file(self, place: Path) -> Response:
        try:
            content = await self.studio.run(place.read_bytes)
        except OSError:
            raise RefusedError(404, GONE) from None
        headers = {"content-security-policy": RELEASE_POLICY}
        return Response(content, media_type="text/html", headers=headers)


def _plain(name: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in " .()-_") else "_" for c in name)


def _pack(folder: Path) -> bytes:
    """The files of a release as a zip."""
    packed = io.BytesIO()
    try:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    archive.write(path, Path(folder.name, path.relative_to(folder)))
    except OSError:
        raise RefusedError(404, GONE) from None
    return packed.getvalue()
