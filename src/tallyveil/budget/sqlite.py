"""Where a ledger's entries are kept: an append-only chain behind one small interface.

A store knows nothing of budgets. It hands out transactions in which nobody else can append,
lists entries, and appends one. `SqliteStore` is the embedded default and the only place that
imports sqlite3; another database is one more class with the same three methods.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from tallyveil.errors import LedgerError

__all__ = ["FIRST", "LedgerStore", "Link", "SqliteStore", "StoreTransaction", "open_store"]

FIRST = "0" * 64
"""What the first entry names as its predecessor."""

APPLICATION_ID = 0x544C5656  # marks the SQLite file as a Tallyveil ledger
FORMAT_VERSION = 1
PATIENCE = 120.0  # seconds a process waits for its turn before it gives up, spending nothing

SCHEMA = """
CREATE TABLE entries (
    sequence INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE
);
CREATE INDEX entries_of_dataset ON entries (dataset, sequence);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), length INTEGER NOT NULL,
                   digest TEXT NOT NULL);
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never removed'); END;
"""


@dataclass(frozen=True)
class Link:
    """One entry as stored: its text, and the digests that tie it to the entry before."""

    sequence: int
    dataset: str
    kind: str
    body: str
    previous: str
    digest: str

    @classmethod
    def after(cls, length: int, previous: str, dataset: str, kind: str, body: str) -> Link:
        """The link that follows a chain of `length` links ending in digest `previous`."""
        bare = cls(length + 1, dataset, kind, body, previous, "")
        return cls(bare.sequence, dataset, kind, body, previous, bare.expected_digest())

    def expected_digest(self) -> str:
        """SHA-256 over everything else in this link, in one unambiguous writing."""
        parts = [self.sequence, self.dataset, self.kind, self.body, self.previous]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).hexdigest()


class StoreTransaction(Protocol):
    """A view of the chain during which nobody else appends."""

    def head(self) -> tuple[int, str]:
        """How many entries there are, and the digest of the last."""

    def links(self, dataset: str | None = None) -> list[Link]:
        """The entries in order: all, or those of one dataset."""

    def append(self, link: Link) -> None:
        """Add one entry at the end; kept only if the transaction ends well."""


class LedgerStore(Protocol):
    """What a ledger needs of a database."""

    name: str

    def create(self) -> None:
        """Make an empty chain unless there is one already."""

    def reading(self) -> AbstractContextManager[StoreTransaction]:
        """A consistent view, for looking only."""

    def writing(self) -> AbstractContextManager[StoreTransaction]:
        """The exclusive right to append, durable once the block ends without an error."""


class SqliteStore:
    """A chain in one SQLite file, safe for many processes on one machine.

    Every write takes the file's write lock before it reads (``BEGIN IMMEDIATE``) and is
    forced to disk before it counts (``synchronous = EXTRA``), so what a process decided on
    cannot have changed meanwhile and what it wrote survives a crash.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = str(path)

    def create(self) -> None:
        """Make the file, or accept the ledger that is already there."""
        if not self.path.parent.is_dir():
            raise LedgerError(f"The folder of the ledger {self.name} does not exist.")
        with self._connected("rwc") as connection:
            connection.execute("BEGIN IMMEDIATE")
            blank = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
            if not blank:
                connection.execute("ROLLBACK")
                self._require_ledger(connection)
                return
            for statement in _statements(SCHEMA):
                connection.execute(statement)
            connection.execute("INSERT INTO head VALUES (1, 0, ?)", (FIRST,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[StoreTransaction]:
        """A consistent view, for looking only."""
        with self._existing() as connection:
            connection.execute("BEGIN")
            yield _SqliteTransaction(connection)
            connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[StoreTransaction]:
        """The exclusive right to append, durable once the block ends without an error."""
        with self._existing() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield _SqliteTransaction(connection)
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    @contextmanager
    def _existing(self) -> Iterator[sqlite3.Connection]:
        if not self.path.is_file():
            raise LedgerError(
                f"There is no ledger at {self.name}. Make one with: tallyveil ledger init "
                "--ledger FILE --dataset NAME --epsilon TOTAL"
            )
        with self._connected("rw") as connection:
            self._require_ledger(connection)
            yield connection

    @contextmanager
    def _connected(self, mode: str) -> Iterator[sqlite3.Connection]:
        """A connection whose database errors become `LedgerError` in words."""
        connection = None
        try:
            address = f"file:{quote(str(self.path.absolute()))}?mode={mode}"
            connection = sqlite3.connect(address, PATIENCE, isolation_level=None, uri=True)
            connection.execute("PRAGMA synchronous = EXTRA")
            yield connection
        except sqlite3.Error as problem:
            raise LedgerError(self._in_words(problem)) from problem
        finally:
            if connection is not None:
                connection.close()

    def _require_ledger(self, connection: sqlite3.Connection) -> None:
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if mark != APPLICATION_ID:
            raise LedgerError(f"{self.name} is not a Tallyveil ledger. Nothing was spent.")
        if version != FORMAT_VERSION:
            raise LedgerError(
                f"{self.name} is a ledger of format {version}; this program reads format "
                f"{FORMAT_VERSION}. Nothing was spent."
            )

    def _in_words(self, problem: sqlite3.Error) -> str:
        text = str(problem)
        if "not a database" in text or "malformed" in text:
            return f"{self.name} is not a Tallyveil ledger, or is damaged. Nothing was spent."
        if "locked" in text or "busy" in text:
            return f"The ledger {self.name} stayed busy for {PATIENCE:.0f} s. Nothing was spent."
        return f"The ledger {self.name} cannot be used: {text}. Nothing was spent."


class _SqliteTransaction:
    """The rows of one open SQLite transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def head(self) -> tuple[int, str]:
        found = self.connection.execute("SELECT length, digest FROM head WHERE one = 1").fetchone()
        if found is None:
            raise LedgerError("The ledger has lost its head record: it was tampered with.")
        return int(found[0]), str(found[1])

    def links(self, dataset: str | None = None) -> list[Link]:
        columns = "SELECT sequence, dataset, kind, body, previous, digest FROM entries"
        if dataset is None:
            rows = self.connection.execute(f"{columns} ORDER BY sequence")
        else:
            rows = self.connection.execute(
                f"{columns} WHERE dataset = ? ORDER BY sequence", (dataset,)
            )
        return [Link(*row) for row in rows]

    def append(self, link: Link) -> None:
        values = (link.sequence, link.dataset, link.kind, link.body, link.previous, link.digest)
        self.connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", values)
        self.connection.execute(
            "UPDATE head SET length = ?, digest = ? WHERE one = 1", (link.sequence, link.digest)
        )


def _statements(script: str) -> list[str]:
    """The statements of `script` one by one, so that all of them share one transaction."""
    found, pending = [], ""
    for line in script.strip().splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found


def open_store(location: str | Path) -> LedgerStore:
    """The store at `location`: the path of a SQLite file."""
    scheme, separator, _ = str(location).partition("://")
    if separator:
        raise LedgerError(
            f"A ledger is the path of a file. Addresses that start with {scheme}:// are not known."
        )
    return SqliteStore(location)
