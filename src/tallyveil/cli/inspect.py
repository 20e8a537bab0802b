"""`tallyveil inspect`: the columns of a table and their types, never a value."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallyveil.cli.common import JsonOption, example, one_line, out, print_json, text_table

__all__ = ["EXAMPLE", "command"]

EXAMPLE = example("tallyveil inspect cases.csv")
MOST_SHOWN = 60
"""Columns listed at the most."""


def command(
    file: Annotated[Path, typer.Argument(help="The table.", show_default=False)],
    delimiter: Annotated[
        str | None, typer.Option(help="What separates cells: one character, or 'tab'.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="The encoding of a text file.")] = "utf-8",
    as_json: JsonOption = False,
) -> None:
    """Show a table's columns and types; never a value.

    The largest count is not shown either: a range that is taken from the data reveals it.
    Choose one that is publicly known.
    """
    from tallyveil.tables.source import read_table

    table = read_table(file, "\t" if delimiter == "tab" else delimiter, encoding)
    columns = [{"name": name, "type": table.type_of(name)} for name in table.names]
    if as_json:
        print_json({"kind": table.kind, "rows": table.rows, "columns": columns})
        return
    out.print(
        f"{one_line(file)}: {table.kind}, {table.rows:,} rows, {len(columns):,} columns",
        markup=False,
    )
    rows = [(column["name"], column["type"]) for column in columns[:MOST_SHOWN]]
    out.print(text_table(("column", "type"), rows), markup=False)
    if len(columns) > MOST_SHOWN:
        out.print(f"... and {len(columns) - MOST_SHOWN:,} more")
    integers = [column["name"] for column in columns if column["type"] == "integer"]
    count = integers[0] if len(integers) == 1 else "COLUMN"
    others = [column["name"] for column in columns if column["name"] != count]
    named = "" if not others else " --keep ... --drop ..."
    out.print(
        "\nNext: which column holds the counts, which others are public, and what is the largest "
        "count that could occur, from public knowledge and not from this file? Then:\n"
        f"  tallyveil privatize {one_line(file)} --count {one_line(count)} --upper N "
        f"--epsilon 1.0{named} --out release/",
        markup=False,
    )
