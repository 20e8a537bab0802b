"""What a receipt says of the released table as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tallyveil.errors import ArgumentError
from tallyveil.request.fields import read_text, read_texts, read_whole, refusal
from tallyveil.tables.microdata import Bins, read_bins

__all__ = ["TableRecord"]

TABLE_KINDS = (
    "csv",
    "tsv",
    "parquet",
    "arrow",
    "xlsx",
    "dta",
    "sav",
    "xpt",
    "sas7bdat",
    "database",
    "pandas",
    "polars",
    "array",
)
"""What a table can be."""


@dataclass(frozen=True)
class TableRecord:
    """What the receipt says of the released table as a whole."""

    rows: int
    kind: str
    file: str
    delimiter: str
    encoding: str
    columns: tuple[str, ...]
    published_unchanged: tuple[str, ...]
    row_order: str
    counted_by: tuple[str, ...]
    where: tuple[str, ...]
    other: str = ""
    """The label of the cell for all categories that are not listed; empty if there is none."""

    missing: tuple[str, ...] = ()
    """Codes for missing counts; rows with one were left out."""

    missing_rows: int = 0
    bins: tuple[tuple[str, Bins], ...] = ()
    """The public ranges of every column that was counted by ranges."""

    def list_ranges(self, name: str) -> tuple[str, ...]:
        """The labels that a column counted by ranges can have; none for any other column."""
        bins = dict(self.bins).get(name)
        if bins is None:
            return ()
        return bins.labels + ((self.other,) if self.other not in ("", *bins.labels) else ())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; words about missing counts and ranges only where they were declared."""
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.missing:
            del facts["missing"], facts["missing_rows"]
        del facts["bins"]
        if self.bins:
            facts["bins"] = {name: bins.write() for name, bins in self.bins}
        return {n: list(fact) if isinstance(fact, tuple) else fact for n, fact in facts.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableRecord:
        """The record that `to_dict` wrote."""
        counted_by = read_texts(data["counted_by"])
        return cls(
            read_whole(data["rows"], 1),
            _read_kind(data["kind"]),
            read_text(data["file"]),
            read_text(data["delimiter"]),
            read_text(data["encoding"]),
            read_texts(data["columns"]),
            read_texts(data["published_unchanged"]),
            read_text(data["row_order"]),
            counted_by,
            read_texts(data["where"]),
            read_text(data["other"]),
            read_texts(data.get("missing", [])),
            read_whole(data.get("missing_rows", 0), 0),
            _read_bins(data.get("bins", {}), counted_by),
        )


def _read_kind(value: Any) -> str:
    if value not in TABLE_KINDS:
        raise refusal("a kind of table")
    return str(value)


def _read_bins(data: Any, counted_by: tuple[str, ...]) -> tuple[tuple[str, Bins], ...]:
    """The ranges that `to_dict` wrote, of columns that were counted by."""
    try:
        found = read_bins(data if isinstance(data, Mapping) else None)
    except ArgumentError:
        raise refusal("rising limits of ranges") from None
    if not set(found) <= set(counted_by) or {n: b.write() for n, b in found.items()} != data:
        raise refusal("ranges of columns that were counted by")
    return tuple(found.items())
