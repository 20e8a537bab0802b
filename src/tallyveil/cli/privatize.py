"""`tallyveil privatize`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tallyveil.cli.common import JsonOption, example, note, out, print_json, progress
from tallyveil.cli.options import takes_release_options
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.panels import OUTPUT, TABLE

if TYPE_CHECKING:
    from tallyveil.release.plan import ReleasePlan
    from tallyveil.release.release import Release

__all__ = [
    "EXAMPLE",
    "FromOption",
    "Trial",
    "choose_source",
    "command",
    "publish_and_show",
    "publish_file",
    "require_trial",
]

EXAMPLE = example(
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --epsilon 1 --out release/",
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --within 3 --dry-run",
    "tallyveil privatize people.csv --by county --categories counties.txt "
    "--where 'age >= 65' --upper 200 --epsilon 0.5 --out release/",
    "tallyveil privatize --from duckdb:health.db --query 'SELECT county, cases FROM c' "
    "--count cases --keep all --upper 60 --epsilon 1 --out release/",
)
STEPS = 5
DryRunOption = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show what it would cost and give, tried on invented counts, and what other methods "
        "would. Of the FILE, names, types and public labels are checked; no budget is touched.",
        rich_help_panel=OUTPUT,
    ),
]
RowsOption = Annotated[
    int | None,
    typer.Option(
        help="For --dry-run: plan for so many rows without opening the FILE.",
        rich_help_panel=OUTPUT,
    ),
]
LikeOption = Annotated[
    Path | None,
    typer.Option(
        help="For --dry-run: a public table with the same columns, such as last year's release, "
        "to try it on.",
        rich_help_panel=OUTPUT,
    ),
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
    dry_run: DryRunOption = False,
    rows: RowsOption = None,
    like: LikeOption = None,
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
    nothing = dry_run and file is None and database is None
    source: Any = None if nothing else choose_source(file, database)
    words = shlex.join(sys.argv)
    require_trial(dry_run, rows, like)
    trial = Trial(rows, like) if dry_run else None
    with _saved_request(save_request, options, file, database):
        publish_and_show(source, options, words, trial, as_json=as_json)


@contextmanager
def _saved_request(
    path: Path | None, options: ReleaseOptions, file: Path | None, database: str | None
) -> Iterator[None]:
    """The request as a file, if one is wanted; removed again if what it asks for is refused."""
    if path is None:
        yield
        return
    from tallyveil.errors import UsageError
    from tallyveil.request.request_file import save_request

    if database is not None:
        raise UsageError("--save-request is for files: an address may hold a password.")
    save_request(path, options, None if file is None else str(file))
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    note(f"The request is in {path}: run it again with tallyveil run.")


class Trial(NamedTuple):
    """A dry run: how many rows to plan for without opening the table, and what to try it on."""

    rows: int | None
    like: Path | None


def require_trial(dry_run: bool, rows: int | None, like: Path | None) -> None:
    """Refuse options of a dry run without one."""
    from tallyveil.errors import UsageError

    if not dry_run and rows is not None:
        raise UsageError("--rows goes with --dry-run: otherwise the table's rows are counted.")
    if not dry_run and like is not None:
        raise UsageError("--like goes with --dry-run: a release is made from the table itself.")


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
    trial: Trial | None,
    *,
    as_json: bool,
) -> None:
    """Publish a table, or only plan it, and show what was promised, spent and written."""
    if trial is not None or source is None:
        from tallyveil.cli.dry_run import show_plan

        show_plan(source, options, *(trial or Trial(None, None)), as_json=as_json)
        return
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
    from tallyveil.release.transaction import publish_table

    if options.out is None:
        raise UsageError("Name the release folder with --out, or give --dry-run.")
    with progress(STEPS) as say:
        releases = publish_table(source, options, command=words, say=say, remark=_show_remark)
    if options.confidential_report is not None:
        note(f"{options.confidential_report} is CONFIDENTIAL: it shows true counts.")
    return releases


def _show_remark(plan: ReleasePlan) -> None:
    """What the publisher should know and an error would be too much for."""
    from tallyveil.release.warnings import list_notes

    for remark in list_notes(plan):
        note(remark)
