"""`tallyveil privatize` and `tallyveil run`: a release, as flags or a request file ask for it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from tallyveil.cli.common import example, note, out, print_json, progress
from tallyveil.cli.options import make_options, spell_for_command, takes_flags

if TYPE_CHECKING:
    from tallyveil.release.options import ReleaseOptions
    from tallyveil.release.plan import ReleasePlan
    from tallyveil.release.release import Release

__all__ = ["EXAMPLE", "RUN_EXAMPLE", "command", "note_unreleased", "publish_file", "run_request"]

EXAMPLE = example(
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --epsilon 1 --out release",
    more="More options, for --set: tallyveil run --keys",
)
Publish: TypeAlias = Callable[..., "tuple[Release, ...]"]
STEPS = 5


def _show_keys(shown: bool) -> None:
    """Print every key of a request file."""
    if not shown:
        return
    from tallyveil.release.methods.registry import METHODS
    from tallyveil.release.options import SECTIONS, ReleaseOptions
    from tallyveil.structs import describe_fields

    lines = dict(describe_fields(ReleaseOptions))
    for section, kind in (*SECTIONS.items(), *(("method", kind) for kind in METHODS.values())):
        lines.pop(section, None)
        for name, text in describe_fields(kind).items():
            lines.setdefault(f"{section}.{name}", text)
    for key, text in lines.items():
        out.print(f"{key}\n    {text}", markup=False)
    raise typer.Exit


@takes_flags()
def command(
    context: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(metavar="FILE", show_default=False),
    ] = None,
    *,
    request: dict[str, Any],
    settings: list[str],
    dry_run: bool = False,
    save_request: str | None = None,
    json: bool = False,
) -> None:
    """Release a table of counts with differential privacy, as a folder that anyone can check.

    FILE is a CSV, Excel, Parquet, Stata, SPSS or SAS file, or the address of a database
    (postgresql://USER@HOST/NAME or duckdb:FILE); - reads standard input.
    """
    options = make_options(request, settings)
    with _saved_request(save_request, options, file):
        _release(file, options, dry_run, as_json=json, publish=context.obj)


RUN_EXAMPLE = example(
    "tallyveil run release.toml --out release",
    "tallyveil run release.toml --table cases-2026-02.xlsx --set about.period=2026-02 --out new",
)


@takes_flags(["--out", "--set", "--dry-run", "--json"])
def run_request(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(metavar="REQUEST", help="Request file (TOML).", show_default=False),
    ],
    table: Annotated[
        str | None, typer.Option(help="Table to release, instead of the one in the request.")
    ] = None,
    keys: Annotated[
        bool,
        typer.Option("--keys", is_eager=True, callback=_show_keys, help="List every key."),
    ] = False,
    *,
    request: dict[str, Any],
    settings: list[str],
    dry_run: bool = False,
    json: bool = False,
) -> None:
    """Release what a request file asks for; --set changes one of its keys.

    `tallyveil privatize ... --save-request FILE` writes such a file. Paths in it are relative to
    its own folder.
    """
    from tallyveil.errors import UsageError
    from tallyveil.request.request_file import read_request

    named, asked = read_request(file)
    source = table or named
    if source is None and not dry_run:
        raise UsageError("The request names no table: give --table, or the key 'table'.")
    options = make_options(asked | request, settings)
    _release(source, options, dry_run, as_json=json, publish=context.obj)


@contextmanager
def _saved_request(path: str | None, options: ReleaseOptions, table: str | None) -> Iterator[None]:
    """Write the request to a file, if one is named; remove it again if the release is refused."""
    if path is None:
        yield
        return
    from tallyveil.request.request_file import save_request

    save_request(Path(path), options, table)
    try:
        yield
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
    note(f"The request is in {path}: run it again with tallyveil run.")


def _release(
    source: str | None,
    options: ReleaseOptions,
    dry_run: bool,
    *,
    as_json: bool,
    publish: Publish | None,
) -> None:
    """Release a table, or only plan it, and show what was promised, spent and written."""
    from tallyveil.errors import UsageError

    if dry_run:
        from tallyveil.cli.dry_run import show_plan

        like = None if options.dry_run.like is None else Path(options.dry_run.like)
        show_plan(source, options, options.dry_run.rows, like, as_json=as_json)
        return
    if options.dry_run.rows is not None or options.dry_run.like is not None:
        raise UsageError("'dry_run.rows' and 'dry_run.like' go with --dry-run only.")
    if source is None:
        raise UsageError("Name the FILE with the table, or a database's address.")
    releases, unreleased = publish_file(source, options, publish)
    receipts = [release.receipt for release in releases]
    if as_json:
        note_unreleased(unreleased)
        documents = [receipt.to_dict() for receipt in receipts]
        listed = {"receipt": documents[0]} if len(documents) == 1 else {"receipts": documents}
        print_json({"out": str(options.out), **listed})
        return
    from tallyveil.cli.summary import release_lines

    out.print("\n".join(release_lines(receipts, options, unreleased)), markup=False)


def publish_file(
    source: str, options: ReleaseOptions, publish: Publish | None = None
) -> tuple[tuple[Release, ...], Sequence[str]]:
    """Run the library's transaction, with a progress bar and remarks for the publisher.

    `publish` takes the place of `publish_table` for tables that are elsewhere. Returns the
    releases and the columns of the table that are not released.
    """
    from tallyveil.errors import UsageError
    from tallyveil.release.transaction import publish_table
    from tallyveil.release.warnings import list_notes, list_unreleased

    if options.out is None:
        raise UsageError("Name the release folder with --out, or give --dry-run.")
    unreleased: list[str] = []

    def remark(plan: ReleasePlan) -> None:
        unreleased.extend(list_unreleased(plan))
        for text in list_notes(plan):
            note(spell_for_command(text))

    words = shlex.join(sys.argv)
    with progress(STEPS) as say:
        road: dict[str, Any] = {"command": words, "say": say, "remark": remark}
        releases = (publish or publish_table)(source, options, **road)
    if options.output.confidential_report is not None:
        note(f"{options.output.confidential_report} is CONFIDENTIAL: it shows true counts.")
    return releases, unreleased


def note_unreleased(names: Sequence[str]) -> None:
    """List the columns that are not released, out of the way of what is printed."""
    from tallyveil.cli.summary import list_columns

    if names:
        note(f"Not released: {list_columns(names)}.")
