"""A database's answer, which comes only once: long ones are kept in a private file.

A query asked twice may give other rows, or the same in another order. So the answer goes into a
file that only its owner can read, and is read from there as often as needed, batch by batch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tallyveil.errors import TableError
from tallyveil.tables.arrow import ArrowTable
from tallyveil.tables.arrow_file import ArrowFile, is_plain
from tallyveil.tables.arrow_rebuild import read_storage
from tallyveil.tables.arrow_values import import_pyarrow
from tallyveil.tables.base import BATCH_ROWS, Table
from tallyveil.tables.identity import FileIdentity
from tallyveil.tables.spool import make_private, open_new

__all__ = ["read_answer"]


class _Keeper:
    """What a private file goes with: all tables that read from it hold it."""


def read_answer(reader: Any) -> Table:
    """Read a stream of record batches once; what does not fit into one batch goes into a file.

    An answer with columns that cannot be published batch by batch is read into memory.
    """
    pa = import_pyarrow()
    with reader:
        for field in reader.schema:
            if pa.types.is_union(field.type):
                raise TableError(
                    f"Column {field.name!r} of the answer holds values of several types, which no "
                    "file of tables has: convert it in the query, or leave it out."
                )
        pieces = (read_storage(pa.Table.from_batches([batch])) for batch in reader)
        schema = read_storage(reader.schema.empty_table()).schema
        first, rows = [], 0
        for piece in pieces:
            first.append(piece)
            rows += piece.num_rows
            if rows > BATCH_ROWS and all(map(is_plain, schema.types)):
                return _keep(schema, chain(first, pieces))
    whole = pa.concat_tables([schema.empty_table(), *first])
    return ArrowTable(whole, "parquet", from_file=True)


def _keep(schema: Any, pieces: Iterator[Any]) -> ArrowFile:
    """Write an answer to a private file, which is removed with the table that reads it."""
    keeper = _Keeper()
    place = Path(tempfile.gettempdir())
    try:
        path = make_private(place, keeper) / "answer.arrow"
        handle = open_new(path)
    except OSError:
        raise _no_room(place) from None
    with os.fdopen(handle, "wb") as file:
        rows = _write(file, schema, pieces, place)
    identity, names = FileIdentity.of(path), tuple(schema.names)
    return ArrowFile(identity, schema, names, "parquet", rows, stored="arrow", keeper=keeper)


def _write(file: Any, schema: Any, pieces: Iterator[Any], place: Path) -> int:
    """Write tables as batches of a Feather file, and give the number of rows."""
    import pyarrow as pa

    rows = 0
    writer = pa.ipc.new_file(file, schema)
    for piece in pieces:  # what the database says of an error is for the caller
        rows += piece.num_rows
        try:
            writer.write_table(piece, BATCH_ROWS)
        except OSError:
            raise _no_room(place) from None
    try:
        writer.close()
        file.flush()
    except OSError:
        raise _no_room(place) from None
    return rows


def _no_room(place: Path) -> TableError:
    return TableError(
        f"The rows that were read need room in {str(place)!r}, which has none or cannot be "
        "written: set TMPDIR to a folder on a larger disk."
    )
