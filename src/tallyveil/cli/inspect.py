"""`tallyveil inspect`: the columns of a table and their types, never a value."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from tallyveil.cli.common import answer, example, one_line, text_table
from tallyveil.cli.options import SOURCE_KEYS, make_options, takes_flags
from tallyveil.errors import numbered

EXAMPLE = example(
    "tallyveil inspect cases.csv",
    "tallyveil inspect duckdb:health.db --set source.sql='SELECT county, cases FROM c'",
)
MOST_SHOWN = 60
"""Most columns that are listed."""


@takes_flags(["--sheet", "--delimiter", "--set", "--json"], keys=SOURCE_KEYS)
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
    from tallyveil.passwords import hide_passwords
    from tallyveil.tables.read import read_table

    source = make_options(request, settings).source
    table = read_table(file, source)
    words, title, rows, types = [file], file, table.rows, table.list_types()
    if source.sql is not None:
        words, title = [file, "--set", f"source.sql={source.sql}"], source.sql
    more = f"... and {len(types) - MOST_SHOWN:,} more" if len(types) > MOST_SHOWN else ""
    size = f"{numbered(rows, 'row')}, {numbered(len(types), 'column')}"
    parts = (
        f"{one_line(hide_passwords(title))}: {table.kind}, {size}",
        text_table(("column", "type"), list(types.items())[:MOST_SHOWN]),
        more,
        "\n" + _say_what_next(words, types),
    )
    columns = [{"name": name, "type": kind} for name, kind in types.items()]
    data = {"kind": table.kind, "rows": rows, "columns": columns}
    answer(data, "\n".join(filter(None, parts)), as_json=json)


def _say_what_next(source: list[str], types: Mapping[str, str]) -> str:
    """Return what the publisher has to know; a command only if one column alone can hold counts.

    `source` is how the command names the table.
    """
    from tallyveil.passwords import hide_in_command

    integers = [name for name, kind in types.items() if kind == "integer"]
    questions = (
        "Next, from public knowledge and not from this table: is a row one person, or a count of "
        "people? Which columns are public? What is the largest count that could occur?"
    )
    people = (
        "If every row is one person, rows are counted: --by COLUMN, with the public list of its "
        "--categories."
    )
    if not integers:
        return f"{questions}\nNo column holds whole numbers, so none holds counts. {people}"
    if len(integers) > 1:
        return (
            f"{questions}\nSeveral columns hold whole numbers. Name the counts with "
            f"--count, and every public column with --keep. {people}"
        )
    (name,) = integers
    command = shlex.join(["tallyveil", "privatize", *source, "--count", name])
    keep = " --keep COLUMN" if len(types) > 1 else ""
    command = f"{one_line(hide_in_command(command))}{keep} --upper N --epsilon 1 --out release"
    lines = [questions, f"If {one_line(name)} holds counts of people:", f"  {command}"]
    if keep:
        lines.append("Name each public column with --keep; no other column is released.")
    return "\n".join([*lines, people])
