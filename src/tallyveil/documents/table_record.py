"""What a receipt says of the released table as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tallyveil.request.fields import read_text, read_texts, read_whole, refusal
from tallyveil.tables.base import TABLE_KINDS

__all__ = ["TableRecord"]


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

    parts: int = 0
    """How many files a folder of data has; 0 where the data are one file."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; words about missing counts only where codes were declared."""
        facts = asdict(self)
        if not self.missing:
            del facts["missing"], facts["missing_rows"]
        if not self.parts:
            del facts["parts"]
        return {n: list(fact) if isinstance(fact, tuple) else fact for n, fact in facts.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], version: int) -> TableRecord:
        """The record that `to_dict` wrote."""
        return cls(
            read_whole(data["rows"], 1),
            _read_kind(data["kind"]),
            read_text(data["file"]),
            read_text(data["delimiter"]),
            read_text(data["encoding"]),
            read_texts(data["columns"]),
            read_texts(data["published_unchanged"]),
            read_text(data["row_order"]),
            read_texts(data["counted_by"]),
            read_texts(data["where"]),
            read_text(data["other"]) if version > 1 else "",
            read_texts(data.get("missing", [])),
            read_whole(data.get("missing_rows", 0), 0),
            read_whole(data.get("parts", 0), 0),
        )


def _read_kind(value: Any) -> str:
    if value not in TABLE_KINDS:
        raise refusal("a kind of table")
    return str(value)
