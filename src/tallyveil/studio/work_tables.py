"""Tables as the publisher sees them: names and types of columns; values only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tallyveil.publish.demo_table import demo_csv
from tallyveil.request.forms import check_form
from tallyveil.request.options import ReleaseOptions
from tallyveil.studio.workers import Say
from tallyveil.tables.form import Form
from tallyveil.tables.source import read_table

__all__ = ["look_at_table", "show_values", "write_demo"]

SHOWN_ROWS, SHOWN_COLUMNS = 12, 200
LONGEST_CELL = 80


def look_at_table(say: Say, *, table: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a table and their types, and how many rows it has; never a value."""
    say("reading the table")
    found = read_table(Path(table), _read_form(form))
    columns = [{"name": name, "type": found.type_of(name)} for name in found.names]
    return {"kind": found.kind, "rows": found.rows, "columns": columns}


def show_values(say: Say, *, table: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The first rows, which are confidential: for the publisher who asked to see them."""
    say("reading the table")
    found = read_table(Path(table), _read_form(form)).slice(0, SHOWN_ROWS)
    names = found.names[:SHOWN_COLUMNS]
    columns = [[text[:LONGEST_CELL] for text in found.labels(name)] for name in names]
    return {"columns": list(names), "rows": [list(row) for row in zip(*columns, strict=True)]}


def write_demo(say: Say, *, table: str) -> None:
    """Write the demo's invented table."""
    Path(table).write_text(demo_csv(), encoding="utf-8", newline="\n")


def _read_form(form: Mapping[str, Any]) -> Form:
    return check_form(ReleaseOptions(**form), False)[0]
