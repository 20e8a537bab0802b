"""Tables that are the answer of a query to PostgreSQL or DuckDB, read as Arrow record batches.

The home of the database drivers. The query may only read. What a database says of an error is
shown where it speaks of the address or of the query's own words, without passwords; what it says
while it works through the data may quote them, and is not shown.

An answer comes only once: a query asked twice may give other rows, or the same in another order. So
it goes into a file that only its owner can read, and is read from there as often as needed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
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
from tallyveil.tables.spool import make_private, open_new
from tallyveil.tables.table import BATCH_ROWS, Table, plain_type

__all__ = ["is_database", "read_database", "require_file"]

DUCKDB = "duckdb:"
QUIETLY = "SET enable_progress_bar = false"
"""Nothing is written to the terminal while a query runs."""

ABOUT_THE_QUERY = "42"
"""The class of PostgreSQL's codes for errors in the words of a query."""

READ_ONLY = "25006"
QUIET = "The database stopped while it worked on the query. Its message may quote data and is not "
QUIET += "shown; run the query there to see it."


def is_database(source: object) -> bool:
    """Whether a source is the address of a database.

    >>> is_database("postgresql://db.example/health"), is_database("duckdb:health.db")
    (True, True)
    >>> is_database("cases.csv")
    False
    """
    return isinstance(source, str) and (is_address(source) or source.startswith(DUCKDB))


def require_file(source: str | Path) -> None:
    """Refuse an address in the place of a file, without quoting it."""
    is_duckdb = is_database(str(source)) and not is_database(source)
    if is_unknown_address(source) or (is_duckdb and not os.path.exists(source)):
        raise UsageError(
            "The table must be a file, or a database's address with the query in 'source.sql'. "
            f"Got an address or a connection string without one. {NOT_SHOWN} Write the address as "
            f"postgresql://USER@HOST/NAME or duckdb:FILE. {KEEP_PASSWORDS}"
        )


def read_database(address: str, query: str) -> Table:
    """Read what `query` gives, once and batch by batch."""
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
    except (duckdb.Error, OSError, ValueError) as problem:
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
        said = remove_secrets(str(problem), secrets).partition("Failed to connect: ")[2]
        raise TableError(f"The database cannot be reached: {_first_line(said)}") from None
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
    except (OSError, ValueError) as problem:
        _refuse_data(problem)


class _Keeper:
    """What a private file goes with: all tables that read from it hold it."""


def read_answer(reader: Any) -> Table:
    """Keep a stream of record batches in a private file, which goes with the table that reads it.

    Types that only the database knows are kept as what stores them: PostgreSQL's numeric is text.
    """
    import pyarrow as pa

    keeper, place = _Keeper(), Path(tempfile.gettempdir())
    with reader:  # one that stays open keeps DuckDB from opening the file again
        schema = pa.schema([(f.name, _store(f.type)) for f in reader.schema])
        try:
            path = make_private(place, keeper) / "answer.arrow"
            handle = open_new(path)
        except OSError:
            raise _no_room(place) from None
        with os.fdopen(handle, "wb") as file:
            _write_answer(file, schema, iter(reader), place)
    return Table(FeatherRows.open(path, keeper), "database")


def _write_answer(file: Any, schema: Any, batches: Iterator[Any], place: Path) -> None:
    import pyarrow as pa

    writer = pa.ipc.new_file(file, schema)
    for batch in batches:  # what the database says of an error is for the caller
        columns = [
            column.cast(f.type) if column.type != f.type else column
            for column, f in zip(batch.columns, schema, strict=True)
        ]
        table = pa.Table.from_batches([pa.RecordBatch.from_arrays(columns, schema=schema)])
        try:
            writer.write_table(table, BATCH_ROWS)
        except OSError:
            raise _no_room(place) from None
    try:
        writer.close()
        file.flush()
    except OSError:
        raise _no_room(place) from None


def _store(kind: Any) -> Any:
    """The type in which a column of an answer is kept."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _store(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return plain_type(kind) or kind
    return kind


def _no_room(place: Path) -> TableError:
    return TableError(
        f"The rows that were read need room in {str(place)!r}, which has none or cannot be "
        "written: set TMPDIR to a folder on a larger disk."
    )


def _refuse_query(said: str) -> NoReturn:
    raise TableError(f"The database does not understand the query: {_first_line(said)}") from None


def _refuse_data(problem: Exception) -> NoReturn:
    """An error of our own goes on as it is; any other may quote data."""
    if isinstance(problem, TableError):
        raise problem
    raise TableError(QUIET) from None


def _first_line(text: str) -> str:
    """The first line of a message, one space between its words."""
    line = text.strip().partition("\n")[0]
    return " ".join(line.split()).rstrip(".!") + "."
