"""`tallyveil inspect`: the columns of a table and their types, never a value."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import example, one_line, out, print_json, text_table
from tallyveil.cli.options import make_options, takes_flags

if TYPE_CHECKING:
    from tallyveil.tables.form import Form
    from tallyveil.tables.table import Table

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example(
    "tallyveil inspect cases.csv",
    "tallyveil inspect duckdb:health.db --set source.sql='SELECT county, cases FROM c'",
)
MOST_SHOWN = 60
"""Columns listed at the most."""


@takes_flags(["--sheet", "--delimiter", "--set", "--json"])
def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The table.", show_default=False)],
    *,
    request: dict[str, Any],
    settings: list[str],
    json: bool = False,
) -> None:
    """Show a table's columns and types; never a value.

    The largest count is not shown either: a range that is taken from the data reveals it.
    Choose one that is publicly known.
    """
    source = make_options(request, settings).source
    table, count = _open(file, source.form)
    words = title = [file]
    if source.sql is not None:
        words, title = [file, "--set", f"source.sql={source.sql}"], [file, source.sql]
    columns = [{"name": name, "type": kind} for name, kind in table.list_types().items()]
    if json:
        print_json({"kind": table.kind, "rows": count, "columns": columns})
        return
    from tallyveil.passwords import hide_passwords

    named = one_line(hide_passwords(title[-1]))
    out.print(
        f"{named}: {table.kind}, {count:,} rows, {len(columns):,} columns",
        markup=False,
    )
    rows = [(column["name"], column["type"]) for column in columns[:MOST_SHOWN]]
    out.print(text_table(("column", "type"), rows), markup=False)
    if len(columns) > MOST_SHOWN:
        out.print(f"... and {len(columns) - MOST_SHOWN:,} more")
    out.print("\n" + _say_what_next(words, columns), markup=False)


def _open(source: str, form: Form) -> tuple[Table, int]:
    """Open a table and count its rows."""
    from tallyveil.tables.read import read_table

    table = read_table(source, form)
    return table, table.rows


def _say_what_next(source: list[str], columns: list[dict[str, str]]) -> str:
    """What the publisher has to know; a command only if one column alone can hold counts.

    `source` is how the command names the table.
    """
    from tallyveil.passwords import hide_in_command

    integers = [column["name"] for column in columns if column["type"] == "integer"]
    asked = (
        "Next, from public knowledge and not from this table: is a row one person, or a count of "
        "people? Which columns are public? What is the largest count that could occur?"
    )
    people = (
        "If every row is one person, rows are counted: --by COLUMN, with the public list of its "
        "--categories."
    )
    if not integers:
        return f"{asked}\nNo column holds whole numbers, so none holds counts. {people}"
    if len(integers) > 1:
        return (
            f"{asked}\nSeveral columns hold whole numbers. Name those that are counts with "
            f"--count, and every public column with --keep. {people}"
        )
    others = [column["name"] for column in columns if column["name"] != integers[0]]
    words = ["tallyveil", "privatize", *source, "--count", integers[0]]
    keep = " --keep COLUMN" if others else ""
    shown = one_line(hide_in_command(shlex.join(words)))
    shown += f"{keep} --upper N --epsilon 1 --out release"
    lines = [asked, f"If {one_line(integers[0])} holds counts of people:", f"  {shown}"]
    if others:
        lines.append("Name each public column with --keep; no other column is released.")
    return "\n".join([*lines, people])
