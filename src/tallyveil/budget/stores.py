"""Which store keeps the ledger at a place: the path of a file names a SQLite file."""

from __future__ import annotations

from pathlib import Path

from tallyveil.budget.chain import LedgerStore
from tallyveil.budget.sqlite import SqliteStore
from tallyveil.errors import LedgerError

__all__ = ["open_store"]


def open_store(location: str | Path) -> LedgerStore:
    """The store at `location`: the path of a SQLite file."""
    scheme, separator, _ = str(location).partition("://")
    if separator:
        raise LedgerError(
            f"A ledger is the path of a file. Addresses that start with {scheme}:// are not known."
        )
    return SqliteStore(location)
