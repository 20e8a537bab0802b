"""The ledger: what each dataset may spend, what it has spent, and whether the chain holds."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tallyveil.budget.entries import shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tallyveil.passwords import hide_passwords
from tallyveil.studio.choices import check_folder_name
from tallyveil.studio.errors import RefusedError
from tallyveil.studio.state import Studio, read_body

__all__ = ["ledger_routes"]

MOST_ENTRIES = 300


def ledger_routes(studio: Studio) -> list[Route]:
    """The addresses of the ledger's page."""
    pages = _Pages(studio)
    return [
        Route("/ledger", pages.show),
        Route("/ledger/create", pages.create, methods=["POST"]),
        Route("/ledger/open", pages.open, methods=["POST"]),
        Route("/ledger/verify", pages.verify, methods=["POST"]),
    ]


class _Pages:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    async def show(self, request: Request) -> Response:
        entries = await self.studio.run(self._history)
        name = hide_passwords(self.studio.ledger or "")
        return await self.studio.show(request, "ledger.html", entries=entries, ledger=name)

    def _history(self) -> list[dict[str, Any]]:
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

    async def create(self, request: Request) -> Response:
        """A new ledger in the studio's folder, where none is open."""
        given = await read_body(request)
        if self.studio.ledger is not None:
            raise RefusedError(409, "A ledger is open already.")
        name = check_folder_name(given.get("name"))
        place = self.studio.folder / (name if name.endswith(".db") else f"{name}.db")
        await self.studio.run(Ledger.create, place)
        self.studio.ledger = str(place)
        return JSONResponse({"next": "/ledger"})

    async def open(self, request: Request) -> Response:
        """Give a dataset its total budget, once."""
        given = await read_body(request)
        dataset, epsilon = given.get("dataset"), given.get("epsilon")
        if not isinstance(dataset, str) or not dataset or len(dataset) > 200:
            raise RefusedError(400, "Name the dataset.")
        if not isinstance(epsilon, str):
            raise RefusedError(400, "'epsilon' must be a number.")
        await self.studio.run(self._book().open, dataset, epsilon)
        return JSONResponse({"next": "/ledger"})

    async def verify(self, request: Request) -> Response:
        await read_body(request)
        try:
            length, digest = await self.studio.run(self._book().verify)
        except LedgerError as problem:
            return JSONResponse({"ok": False, "detail": str(problem)})
        detail = f"{length:,} entries, every one as it was written. Last digest {digest}"
        return JSONResponse({"ok": True, "detail": detail})

    def _book(self) -> Ledger:
        if self.studio.ledger is None:
            raise RefusedError(409, "No ledger is open.")
        return Ledger(self.studio.ledger)
