"""Tables that are the answer of a query to PostgreSQL or DuckDB, read as Arrow record batches.

The home of the database drivers. The query may only read. What a database says of an error is
shown where it is about the address or the query, without passwords; its messages while it works
through the data may quote them, and are not shown.

An answer comes only once: a repeated query may give other rows, or the same in another order. So
it goes into a private folder, and is read from there as often as needed. Only its owner can look
inside. The folder goes with the table that reads it, at exit at the latest; what a killed process
leaves is removed by the next that needs one: its lock died with it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from tallyveil.budget.postgresql import (
    KEEP_PASSWORDS,
    NOT_SHOWN,
    find_secrets,
    is_address,
    is_unknown_address,
    remove_secrets,
)
from tallyveil.errors import LedgerError, MissingExtraError, TableError, UsageError
from tallyveil.tables.columnar import FeatherRows
from tallyveil.tables.table import BATCH_ROWS, Table, make_plain, plain_schema

try:
    import fcntl
except ImportError:  # not on Windows, where folders of a killed process are not removed
    fcntl = None  # type: ignore[assignment]

PREFIX = ".tallyveil-rows-"
DUCKDB = "duckdb:"
QUIETLY = "SET enable_progress_bar = false"
"""Nothing is written to the terminal while a query runs."""

ABOUT_THE_QUERY = "42"
"""The class of PostgreSQL's codes for errors in the words of a query."""

READ_ONLY = "25006"
QUIET = "The database stopped while it worked on the query. Its message may quote data and is not "
QUIET += "shown; run the query there to see it."


def is_database(source: object) -> bool:
    """Return whether a source is the address of a database.

    >>> is_database("postgresql://db.example/health"), is_database("duckdb:health.db")
    (True, True)
    >>> is_database("cases.csv")
    False
    """
    return isinstance(source, str) and (is_address(source) or source.startswith(DUCKDB))


def require_file(source: str | Path) -> None:
    """Refuse an address instead of a file, without quoting it."""
    is_duckdb = is_database(str(source)) and not is_database(source)
    if is_unknown_address(source) or (is_duckdb and not os.path.exists(source)):
        raise UsageError(
            "The table must be a file, or a database's address with the query in 'source.sql'. "
            f"Got an address or a connection string without one. {NOT_SHOWN} Write the address as "
            f"postgresql://USER@HOST/NAME or duckdb:FILE. {KEEP_PASSWORDS}"
        )


def read_database(address: str, query: str) -> Table:
    """Read the answer of `query`, once and batch by batch."""
    if address.startswith(DUCKDB):
        return _read_duckdb(Path(address.removeprefix(DUCKDB)), query)
    return _read_postgresql(address, query)


def _read_duckdb(path: Path, query: str) -> Table:
    try:
        import duckdb
    except ImportError as missing:
        raise MissingExtraError("duckdb", "databases") from missing
    if not path.is_file():
        raise TableError(f"There is no database file {str(path)!r}.")
    try:
        opened = duckdb.connect(path, read_only=True, config={"enable_external_access": "false"})
    except (duckdb.Error, OSError, ValueError):
        raise TableError(
            f"{path.name!r} cannot be read as a DuckDB database, or is open elsewhere."
        ) from None
    try:
        with opened as database:
            database.execute(QUIETLY)
            try:
                if len(duckdb.extract_statements(query)) > 1:
                    raise TableError("The query must be a single statement.")
                answer = database.sql(query)  # read, but not yet worked out
            except (duckdb.ParserException, duckdb.CatalogException, duckdb.BinderException) as no:
                _refuse_query(str(no))
            if answer is None:
                raise TableError("The query gives no table.")
            return read_answer(answer.to_arrow_reader(BATCH_ROWS))
    except duckdb.InvalidInputException as problem:
        if "read-only" in str(problem):
            raise TableError("The query must only read.") from None
        _refuse_data(problem)
    except duckdb.PermissionException:
        raise TableError(
            "The query must only read, and tables of this database alone: no other file is touched."
        ) from None
    except Exception as problem:
        _refuse_data(problem)


def _read_postgresql(address: str, query: str) -> Table:
    try:
        import adbc_driver_manager
        import adbc_driver_postgresql.dbapi as postgresql
    except ImportError as missing:
        raise MissingExtraError("adbc-driver-postgresql", "databases") from missing
    try:
        secrets = find_secrets(address)
    except LedgerError as problem:
        raise TableError(str(problem).replace("ledger's", "database's")) from None
    try:
        connection = postgresql.connect(address)
    except (adbc_driver_manager.Error, ValueError) as problem:
        reason = remove_secrets(str(problem), secrets).partition("Failed to connect: ")[2]
        raise TableError(f"The database cannot be reached: {_first_line(reason)}") from None
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION READ ONLY")
            try:
                cursor.adbc_prepare(query)  # read, but not yet worked out
            except adbc_driver_manager.Error as no:
                if str(no.sqlstate or "").startswith(ABOUT_THE_QUERY):
                    _refuse_query(remove_secrets(str(no).partition("ERROR:")[2], secrets))
                raise
            cursor.execute(query)
            if cursor.description is None:
                raise TableError("The query gives no table.")
            return read_answer(cursor.fetch_record_batch())
    except adbc_driver_manager.Error as problem:
        if problem.sqlstate == READ_ONLY:
            raise TableError("The query must only read.") from None
        raise TableError(QUIET) from None
    except Exception as problem:
        _refuse_data(problem)


class _Keeper:
    """An owner of a private file, held by all tables that read from it."""


def read_answer(reader: Any) -> Table:
    """Store a stream of record batches in a private file, removed with the table that reads it.

    Types of the database are stored as plain ones: PostgreSQL's numeric is text.
    """
    import pyarrow as pa

    keeper = _Keeper()
    with reader:  # one that stays open keeps DuckDB from opening the file again
        schema = plain_schema(reader.schema)
        with _needing_room():
            path = make_private(Path(tempfile.gettempdir()), keeper) / "answer.arrow"
            handle = open_new(path)
        with os.fdopen(handle, "wb") as file:
            writer = pa.ipc.new_file(file, schema)
            for batch in reader:  # what the database says of an error is for the caller
                table = pa.Table.from_batches([make_plain(batch)])
                with _needing_room():
                    writer.write_table(table, BATCH_ROWS)
            with _needing_room():
                writer.close()
                file.flush()
    return Table(FeatherRows.open(path, keeper), "database")


@contextmanager
def _needing_room() -> Iterator[None]:
    """Refuse an answer that the disk does not take."""
    try:
        yield
    except OSError:
        raise TableError(
            f"The rows that were read need room in {tempfile.gettempdir()!r}, which has none or "
            "cannot be written: set TMPDIR to a folder on a larger disk."
        ) from None


def _refuse_query(message: str) -> NoReturn:
    """Refuse a query with the database's message, which is about the query."""
    line = _first_line(message)
    raise TableError(f"The database does not understand the query: {line}") from None


def _refuse_data(problem: Exception) -> NoReturn:
    """Refuse an answer; another error than a `TableError` may quote data."""
    if isinstance(problem, TableError):
        raise problem
    raise TableError(QUIET) from None


def _first_line(text: str) -> str:
    """Return the first line of a message, one space between its words."""
    line = text.strip().partition("\n")[0]
    return " ".join(line.split()).rstrip(".!") + "."


def make_private(parent: Path, owner: object) -> Path:
    """Make a folder that only this user can read, for as long as `owner` lives."""
    _remove_abandoned(parent)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # mode 0700
        lock = _lock(folder)
        if lock is not None:
            weakref.finalize(owner, _remove, folder, lock, os.getpid())
            return folder


def open_new(path: Path) -> int:
    """Open a file that does not exist, for its owner only."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _lock(folder: Path) -> int | None:
    """Lock a folder; return None if another process has the lock, or has removed the folder."""
    if fcntl is None:
        return -1
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.lstat(folder)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _remove_abandoned(parent: Path) -> None:
    """Remove this user's folders that no process holds."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and (lock := _lock(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _remove(folder: Path, lock: int, process: int) -> None:
    """Remove a folder of this process."""
    if os.getpid() != process:  # a fork has the folder of another
        return
    shutil.rmtree(folder, ignore_errors=True)
    if lock >= 0:
        os.close(lock)
