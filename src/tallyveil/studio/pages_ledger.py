"""The ledger: what each dataset may spend, what it has spent, and whether the chain holds."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tallyveil.budget.entries import shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tallyveil.passwords import hide_passwords
from tallyveil.studio.choices import check_folder_name, read_field
from tallyveil.studio.state import Pages, Studio, post
from tallyveil.studio.wording import RefusedError

MOST_ENTRIES = 300
Dataset = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


def ledger_routes(studio: Studio) -> list[Route]:
    """Return the addresses of the ledger's page."""
    pages = _Pages(studio)
    return [
        Route("/ledger", pages.show),
        post("/ledger/create", pages.create),
        post("/ledger/open", pages.open),
        post("/ledger/verify", pages.verify),
    ]


class _Pages(Pages):
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
