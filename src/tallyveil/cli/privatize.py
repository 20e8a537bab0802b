"""`tallyveil privatize`."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, example, note, out, print_json, progress
from tallyveil.cli.options import takes_release_options
from tallyveil.request.options import OUTPUT, TABLE, ReleaseOptions

if TYPE_CHECKING:
    from tallyveil.plans.prepare import Prepared
    from tallyveil.publish.release import Release

__all__ = ["EXAMPLE", "FromOption", "choose_source", "command", "publish_and_show", "publish_file"]

EXAMPLE = example(
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --epsilon 1 --out release/",
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --within 3 --dry-run",
    "tallyveil privatize people.csv --by county --categories counties.txt "
    "--where 'age >= 65' --upper 200 --epsilon 0.5 --out release/",
    "tallyveil privatize --from duckdb:health.db --query 'SELECT county, cases FROM c' "
    "--count cases --keep all --upper 60 --epsilon 1 --out release/",
)
STEPS = 5
LOCAL, SPARK = "local", "spark"
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show cost and accuracy; touch neither data nor budget.",
        rich_help_panel=OUTPUT,
    ),
]
RowsOption = Annotated[
    int | None,
    typer.Option(help="For --dry-run: how many rows the table has.", rich_help_panel=OUTPUT),
]
FromOption = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Instead of a FILE: a database, postgresql://USER@HOST/NAME or duckdb:FILE. Keep "
        "passwords out of it, in PGPASSWORD or a pgpass file.",
        rich_help_panel=TABLE,
    ),
]

EngineOption = Annotated[
    str,
    typer.Option(
        help="Where the table is worked on: local, or spark, on the machines of a Spark cluster; "
        "FILE, or --from, is then a Parquet path or the name of a table.",
        rich_help_panel=TABLE,
    ),
]


@takes_release_options(leave_out=["levels"])
def command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="CSV, Excel, Parquet or Arrow file; - for standard input.", show_default=False
        ),
    ] = None,
    *,
    options: ReleaseOptions,
    database: FromOption = None,
    engine: EngineOption = LOCAL,
    dry_run: DryRunOption = False,
    rows: RowsOption = None,
    save_request: Annotated[
        Path | None,
        typer.Option(
            help="Also write these options as a request file for tallyveil run.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a private version of a table of counts, as a folder that a stranger can check."""
    from tallyveil.errors import ArgumentError, UsageError

    source = choose_source(file, database)
    if engine not in (LOCAL, SPARK):
        raise ArgumentError("engine", f"be {LOCAL} or {SPARK}", engine)
    if save_request is not None:
        from tallyveil.request.request_file import save_request as write

        if database is not None:
            raise UsageError("--save-request is for files: an address may hold a password.")
        if engine == SPARK:
            raise UsageError("--save-request is for tables on one machine: leave --engine out.")
        write(save_request, options, str(file))
        note(f"The request is in {save_request}: run it again with tallyveil run.")
    table: Any = source
    if engine == SPARK:
        from tallyveil.plans.distributed import require_taken
        from tallyveil.spark import open_table

        require_taken(options)
        table = source if dry_run else open_table(source, options)
    publish_and_show(
        table, options, shlex.join(sys.argv), dry_run=dry_run, rows=rows, as_json=as_json
    )


def choose_source(file: Path | None, database: str | None) -> Path | str:
    """The one of a file and a database that was given."""
    from tallyveil.errors import UsageError

    source = file if database is None else database
    if source is None or (file is not None and database is not None):
        raise UsageError("Give either a FILE or --from, a database's address, with --query.")
    return source


def publish_and_show(
    source: Any,
    options: ReleaseOptions,
    words: str,
    *,
    dry_run: bool,
    rows: int | None,
    as_json: bool,
) -> None:
    """Publish a table, or only plan it, and show what was promised, spent and written."""
    from tallyveil.errors import UsageError

    if dry_run:
        from tallyveil.cli.dry_run import show_plan

        show_plan(options, rows, as_json)
        return
    if rows is not None:
        raise UsageError("--rows goes with --dry-run: otherwise the table's rows are counted.")
    releases = publish_file(source, options, words)
    if as_json:
        documents = [release.receipt.to_dict() for release in releases]
        found = {"receipt": documents[0]} if len(documents) == 1 else {"receipts": documents}
        print_json({"out": str(options.out), **found})
        return
    from tallyveil.cli.summary import receipt_lines

    for release in releases:
        out.print("\n".join(receipt_lines(release.receipt)), markup=False)
    files = sum(len(names) for _, _, names in os.walk(str(options.out)))
    out.print(
        f"\nWritten to {options.out}: {files} files. Check it with: tallyveil check {options.out}",
        markup=False,
    )


def publish_file(source: Any, options: ReleaseOptions, words: str) -> tuple[Release, ...]:
    """The library's transaction, with a progress bar and remarks for the publisher."""
    from tallyveil.errors import UsageError
    from tallyveil.publish.transaction import publish_table

    if options.out is None:
        raise UsageError("Name the release folder with --out, or give --dry-run.")
    with progress(STEPS) as say:
        releases = publish_table(source, options, command=words, say=say, remark=_show_remark)
    if options.confidential_report is not None:
        note(f"{options.confidential_report} is CONFIDENTIAL: it shows true counts.")
    return releases


def _show_remark(prepared: Prepared) -> None:
    """What the publisher should know and an error would be too much for."""
    from tallyveil.publish.remarks import list_notes

    for remark in list_notes(prepared):
        note(remark)
