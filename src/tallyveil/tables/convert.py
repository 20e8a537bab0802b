"""A table as a file of another format than it came in."""

from __future__ import annotations

from typing import Any

from tallyveil.tables.base import Table
from tallyveil.tables.delimited import DelimitedTable
from tallyveil.tables.packed import PACKINGS, PackedTable

__all__ = ["FORMATS", "convert_table"]

TEXT = {"csv": ",", "tsv": "\t"}
PACKED = tuple(f"{text}{packing}" for text in TEXT for packing in PACKINGS)
STATISTICS = ("dta", "sav", "xpt")
FORMATS = (*TEXT, "xlsx", "parquet", "arrow", *STATISTICS, *PACKED)
"""What a table can be written as, by the ending of the file."""

READ = {"integer": int, "number": float}


def convert_table(table: Table, wanted: str | None) -> Table:
    """Give a table that is written in the wanted format, one of `FORMATS`; None keeps its own.

    Labels that name rows come first. Dates become text, unless both formats know them.
    """
    if wanted is None or wanted == table.extension:
        return table
    inner, _, packing = wanted.partition(".")
    names = (*table.index_names, *table.names)
    if inner in TEXT:
        columns = tuple(_list_texts(table, name) for name in names)
        text = DelimitedTable(names, columns, TEXT[inner])
        return PackedTable(text, f".{packing}") if packing else text
    types = {name: "string" if name in table.index_names else table.type_of(name) for name in names}
    if inner == "xlsx" or inner in STATISTICS:
        cells = [_list_cells(table, name, types[name]) for name in names]
        if inner == "xlsx":
            from tallyveil.tables.excel import build_excel

            return build_excel(names, cells)
        from tallyveil.tables.statistics import build_statistics

        return build_statistics(names, cells, inner)
    from tallyveil.tables.arrow import ArrowTable, build_arrow

    known = {name: kind if kind in READ else "string" for name, kind in types.items()}
    content = build_arrow({name: _list_texts(table, name) for name in names}, known)
    return ArrowTable(content, inner, from_file=True)


def _list_texts(table: Table, name: str) -> tuple[str, ...]:
    """Give a column as a text file writes it, equal texts once: whichever way they were read."""
    texts, known = getattr(table, "texts", None), dict[str, str]()
    found = table.labels(name) if texts is None else texts(name)
    return tuple(known.setdefault(str(text), str(text)) for text in found)


def _list_cells(table: Table, name: str, kind: str) -> list[Any]:
    """Give a column as cells of its type; None for no value."""
    own = getattr(table, "cells", None)
    if own is not None:
        return list(own(name))
    read = READ.get(kind, str)
    return [read(label) if label else None for label in table.labels(name)]
