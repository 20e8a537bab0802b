"""Which store keeps the ledger at a place: a SQLite file, or a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from tallyveil.budget.addresses import (
    KEEP_PASSWORDS,
    NOT_SHOWN,
    is_address,
    is_unknown_address,
)
from tallyveil.budget.chain import LedgerStore
from tallyveil.errors import LedgerError

__all__ = ["open_store"]


def open_store(location: str | Path) -> LedgerStore:
    """The store at `location`: the path of a file, or ``postgresql://USER@HOST/DATABASE``."""
    text = str(location)
    if isinstance(location, str) and is_address(text):
        from tallyveil.budget.postgresql import PostgresqlStore

        return PostgresqlStore(text)
    is_postgres = text.partition(":")[0].lower().startswith("postgres") and ":" in text
    if "://" in text or is_postgres or is_unknown_address(location):
        raise LedgerError(
            "A ledger is the path of a file, or an address: write postgresql://USER@HOST/DATABASE, "
            "as text. What was given is an address of another kind, or a connection string. "
            f"{NOT_SHOWN} {KEEP_PASSWORDS}"
        )
    from tallyveil.budget.sqlite import SqliteStore

    return SqliteStore(location)
