"""Which store keeps the ledger at a place: a SQLite file, or a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from tallyveil.budget.addresses import is_address
from tallyveil.budget.chain import LedgerStore
from tallyveil.errors import LedgerError

__all__ = ["open_store"]


def open_store(location: str | Path) -> LedgerStore:
    """The store at `location`: the path of a file, or ``postgresql://USER@HOST/DATABASE``."""
    text = str(location)
    if isinstance(location, str) and is_address(text):
        from tallyveil.budget.postgresql import PostgresqlStore

        return PostgresqlStore(text)
    scheme, separator, _ = text.partition("://")
    if separator or text.partition(":")[0].lower().startswith("postgres"):
        raise LedgerError(
            "A ledger is the path of a file, or an address that starts with postgresql://. "
            f"{scheme.partition(':')[0]!r} is neither."
        )
    from tallyveil.budget.sqlite import SqliteStore

    return SqliteStore(location)
