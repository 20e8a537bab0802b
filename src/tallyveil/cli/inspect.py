"""`tallyveil inspect`: the columns of a table and their types, never a value."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import answer, example, one_line, text_table
from tallyveil.cli.options import FLAGS, SOURCE_KEYS, make_options, spell_message, takes_flags
from tallyveil.errors import TableError, numbered

if TYPE_CHECKING:
    from tallyveil.tables.table import Table

EXAMPLE = example(
    "tallyveil inspect cases.csv",
    "tallyveil inspect duckdb:health.db --set source.sql='SELECT county, cases FROM c'",
)
MOST_SHOWN = 60
"""Most columns that are listed."""


@takes_flags(["--sheet", "--delimiter", "--missing", "--set", "--json"], keys=SOURCE_KEYS)
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
    from tallyveil.tables.text import delimiter_hint

    source = make_options(request, settings).source
    table = replace(read_table(file, source), options=source)
    title, rows, types = source.sql or file, table.rows, table.list_types()
    hint = spell_message(delimiter_hint(table.names).strip())
    counts = [name for name, kind in types.items() if kind == "integer" or _are_counts(table, name)]
    more = f"... and {len(types) - MOST_SHOWN:,} more" if len(types) > MOST_SHOWN else ""
    size = f"{numbered(rows, 'row')}, {numbered(len(types), 'column')}"
    parts = (
        f"{one_line(hide_passwords(title))}: {table.kind}, {size}",
        text_table(("column", "type"), list(types.items())[:MOST_SHOWN]),
        more,
        "\n" + (hint or _say_what_next(_repeat(file, request, settings), counts, len(types))),
    )
    columns = [{"name": name, "type": kind} for name, kind in types.items()]
    data = {"kind": table.kind, "rows": rows, "columns": columns}
    answer(data, "\n".join(filter(None, parts)), as_json=json)


def _are_counts(table: Table, name: str) -> bool:
    """Return whether text holds counts as they are declared to be written, and no other way."""
    from tallyveil.tables.counts import leave_out_missing
    from tallyveil.tables.source import Source

    def fits(table: Table) -> bool:
        try:
            return len(table.counts(name)) > 0
        except TableError:
            return False

    declared = table.options
    if not declared.writes_numbers or name not in table.readable_names:
        return False
    rows, _ = leave_out_missing(table, [name], declared.na_values)
    return fits(rows) and not fits(replace(table, options=Source()))


def _repeat(file: str, request: dict[str, Any], settings: list[str]) -> list[str]:
    """Return the words that name the table and say how it is read."""
    words, typed = [file], request.get("source", {})
    for flag in FLAGS:
        values = typed.get(flag.key.removeprefix("source."), ())
        for value in [values] if isinstance(values, str) else values:
            words += [flag.name, value]
    for setting in settings:
        words += ["--set", setting]
    return words


def _say_what_next(source: list[str], integers: list[str], columns: int) -> str:
    """Return what the publisher has to know; a command only if one column alone can hold counts.

    `source` is how the command names the table.
    """
    from tallyveil.passwords import hide_in_command

    questions = (
        "Next, from public knowledge and not from this table: is a row one person, or a count of "
        "people? Which columns are public? What is the largest count that could occur?"
    )
    people = (
        "If every row is one record of a person, records are counted: --by COLUMN, with the public "
        "list of its --categories, and --id-column COLUMN if a person may have several records."
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
    keep = " --keep COLUMN" if columns > 1 else ""
    command = f"{one_line(hide_in_command(command))}{keep} --upper N --epsilon 1 --out release"
    lines = [questions, f"If {one_line(name)} holds counts of people:", f"  {command}"]
    if keep:
        lines.append("Name each public column with --keep; no other column is released.")
    return "\n".join([*lines, people])
