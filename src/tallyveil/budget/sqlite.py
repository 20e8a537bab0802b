"""A ledger in one SQLite file. Only this module imports sqlite3."""

from __future__ import annotations

import getpass
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from tallyveil.budget.entries import FIRST, StoreTransaction
from tallyveil.errors import LedgerError
from tallyveil.passwords import hide_passwords

APPLICATION_ID = 0x544C5656  # marks the SQLite file as a Tallyveil ledger
PATIENCE = 120.0  # seconds a process waits for its turn before it gives up, spending nothing

FORMAT = 1

SCHEMA = """
CREATE TABLE entries (
    sequence INTEGER PRIMARY KEY,
    dataset TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE
);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), length INTEGER NOT NULL,
                   digest TEXT NOT NULL);
CREATE TRIGGER entries_keep BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never removed'); END;
CREATE TRIGGER head_grows BEFORE UPDATE ON head
    WHEN NEW.length <> OLD.length + 1 OR NEW.digest IS NOT
        (SELECT digest FROM entries WHERE sequence = NEW.length)
    BEGIN SELECT RAISE(ABORT, 'the head of a ledger names its last entry'); END;
CREATE TRIGGER head_stays BEFORE DELETE ON head
    BEGIN SELECT RAISE(ABORT, 'the head of a ledger is never removed'); END;
"""
"""The tables of a ledger and their guards; a file that holds anything else is refused."""

Result = TypeVar("Result")


class SqliteStore:
    """A chain in one SQLite file, safe for many processes on one machine.

    Every write takes the file's write lock before it reads (``BEGIN IMMEDIATE``) and is
    forced to disk before it counts (``synchronous = EXTRA``), so what a process decided on
    cannot have changed meanwhile and what it wrote survives a crash. A new file can be read
    and written by its owner alone, under any umask.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = hide_passwords(str(path))

    def create(self) -> None:
        """Create the file, or accept an existing ledger."""
        self._make_file()
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                connection.execute("ROLLBACK")
                self._require_ledger(connection)
                return
            for statement in _split_statements(SCHEMA):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("INSERT INTO head VALUES (1, 0, ?)", (FIRST,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")

    def read(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` on a consistent read-only view."""
        with self._opened() as connection:
            connection.execute("BEGIN")
            self._require_ledger(connection)
            return work(StoreTransaction(connection, _name_account))

    def write(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` with the exclusive right to append, durable once this returns."""
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._require_ledger(connection)
                done = work(StoreTransaction(connection, _name_account))
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            return done

    def _make_file(self) -> None:
        if not self.path.parent.is_dir():
            raise LedgerError(f"The folder of the ledger {self.name} does not exist.")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        try:
            handle = os.open(self.path, flags, 0o600)
        except FileExistsError:
            return
        except OSError as problem:
            raise LedgerError(
                f"The ledger {self.name} cannot be made: {problem.strerror}."
            ) from problem
        with os.fdopen(handle):
            if hasattr(os, "fchmod"):  # not on Windows before Python 3.13
                os.fchmod(handle, 0o600)  # the umask can only have taken rights away

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        if not self.path.is_file():
            raise LedgerError(
                f"There is no ledger at {self.name}. Make one with: tallyveil ledger init "
                "--ledger FILE --dataset NAME --epsilon TOTAL"
            )
        with self._connected() as connection:
            yield connection

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Open a connection whose database errors become `LedgerError`."""
        connection = None
        try:
            address = f"file:{quote(str(self.path.absolute()))}?mode=rw"
            connection = sqlite3.connect(address, PATIENCE, isolation_level=None, uri=True)
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA trusted_schema = OFF")
            yield connection
        except sqlite3.Error as problem:
            raise LedgerError(self._in_words(problem)) from problem
        finally:
            if connection is not None:
                connection.close()

    def _require_ledger(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is no ledger, has another format, or whose tables were altered."""
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if mark != APPLICATION_ID:
            raise LedgerError(f"{self.name} is not a Tallyveil ledger. Nothing was spent.")
        if version != FORMAT:
            raise LedgerError(
                f"{self.name} is a ledger of format {version}; this program uses format {FORMAT}. "
                "Nothing was spent."
            )
        altered = _read_schema(connection) ^ _expected_schema()
        if altered:
            name = ascii(min(str(row[1]) for row in altered))
            raise LedgerError(
                f"The tables of the ledger {self.name} were altered: {name} does not belong "
                "there, is missing, or was changed. Nothing was spent."
            )

    def _in_words(self, problem: sqlite3.Error) -> str:
        text = str(problem)
        if "not a database" in text or "malformed" in text:
            return f"{self.name} is not a Tallyveil ledger, or is damaged. Nothing was spent."
        if "locked" in text or "busy" in text:
            return f"The ledger {self.name} stayed busy for {PATIENCE:.0f} s. Nothing was spent."
        return f"The ledger {self.name} cannot be used: {text}. Nothing was spent."


def _name_account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return "unknown"


def _read_schema(connection: sqlite3.Connection) -> frozenset[tuple[Any, ...]]:
    """Return every table, index, trigger and view, with its statement."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
    return frozenset(tuple(row) for row in rows)


@cache
def _expected_schema() -> frozenset[tuple[Any, ...]]:
    """Return the tables and guards as SQLite itself writes them."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        connection.executescript(SCHEMA)
        return _read_schema(connection)
    finally:
        connection.close()


def _split_statements(script: str) -> list[str]:
    """Return the statements of `script`, which then share the caller's transaction."""
    statements, pending = [], ""
    for line in script.strip().splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
