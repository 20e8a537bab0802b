"""Where tables come in: a path, a table of some library, or an array of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tallyveil.errors import TableError
from tallyveil.tables.array import wrap_array
from tallyveil.tables.base import Table
from tallyveil.tables.delimited import read_delimited
from tallyveil.untrusted import read_file

__all__ = ["read_released", "read_table"]

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")
PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")


def read_table(source: Any, delimiter: str | None = None, encoding: str = "utf-8") -> Table:
    """Read a table from a path, or wrap one that is in memory without copying it.

    Takes a path, an Arrow, pandas or Polars table, or an array of counts; a text file may name
    its delimiter (see `read_delimited`) and encoding. Two columns or index levels of one name are
    refused: one could be published as it is in place of the other.
    """
    if isinstance(source, (str, Path)):
        table = _read_file(Path(source), delimiter, encoding)
    else:
        table = _wrap(source)
    names = (*table.names, *table.index_names)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise TableError(
            f"Two columns are called {repeated[0]!r}. Every column needs its own name."
        )
    return table


def read_released(
    path: Path,
    delimiter: str,
    encoding: str,
    *,
    rows: int,
    counts: Sequence[str],
    labels: Sequence[str],
) -> Table:
    """Read a table of so many rows that somebody else released, or only the columns named.

    Nothing the file says of itself makes this cost much more than its size suggests.
    """
    content = read_file(path)
    ending = path.suffix.lower()
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        from tallyveil.tables.arrow import read_released_arrow

        kind = "parquet" if ending in PARQUET_ENDINGS else "arrow"
        return read_released_arrow(content, kind, counts, labels)
    if ending not in TEXT_ENDINGS:
        raise TableError(f"{path.name!r} is not a kind of table that is released.")
    return read_delimited(content, delimiter, encoding, rows)


def _wrap(source: Any) -> Table:
    """Wrap a table in memory by the library that its type belongs to."""
    library = type(source).__module__.partition(".")[0]
    shape = type(source).__name__
    if library == "pandas" and shape == "DataFrame":
        from tallyveil.tables.pandas import PandasTable

        return PandasTable(source)
    if library == "polars" and shape in ("DataFrame", "LazyFrame"):
        from tallyveil.tables.polars import PolarsTable

        return PolarsTable(source if shape == "DataFrame" else source.collect())
    if library == "pyarrow" and shape in ("Table", "RecordBatch"):
        from tallyveil.tables.arrow import wrap_arrow

        return wrap_arrow(source)
    return wrap_array(source)


def _read_file(path: Path, delimiter: str | None, encoding: str) -> Table:
    """Read a file by its ending."""
    ending = path.suffix.lower()
    if not path.exists():
        raise TableError(f"There is no file {str(path)!r}.")
    if not path.is_file():
        raise TableError(f"{str(path)!r} is not a plain file; a table is one file.")
    if ending in TEXT_ENDINGS:
        return read_delimited(path, delimiter, encoding)
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        from tallyveil.tables.arrow import read_arrow

        return read_arrow(path, "parquet" if ending in PARQUET_ENDINGS else "arrow")
    known = ", ".join(TEXT_ENDINGS + PARQUET_ENDINGS + ARROW_ENDINGS)
    raise TableError(f"{path.name!r} is not a kind of table that is read. Known endings: {known}.")
