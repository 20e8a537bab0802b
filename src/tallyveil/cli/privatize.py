"""`tallyveil privatize` and `tallyveil run`: a release, as flags or a request file ask for it."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

import tallyveil as tv
from tallyveil.cli.common import NO_LEDGER, example, note, one_line, out, print_json, progress
from tallyveil.cli.dry_run import show_plan
from tallyveil.cli.options import make_options, spell_message, takes_flags
from tallyveil.errors import numbered

if TYPE_CHECKING:
    from tallyveil.release.plan import ReleasePlan
    from tallyveil.release.receipt import ColumnRecord, Receipt

WIDTH, INDENT = 98, " " * 11
MOST_SHOWN = 12
"""Columns that are listed by name."""

SHOWN_COUNTS = (0, 10)
"""True counts whose intervals the summary states."""

EXAMPLE = example(
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --epsilon 1 --out release",
    more="More options, for --set: tallyveil run --keys",
)
Publish: TypeAlias = Callable[..., "tuple[tv.Release, ...]"]
STEPS = 5


def _show_keys(shown: bool) -> None:
    """Print every key of a request file."""
    if not shown:
        return
    from tallyveil.release.methods.registry import METHODS
    from tallyveil.release.options import SECTIONS
    from tallyveil.structs import describe_fields

    lines = dict(describe_fields(tv.ReleaseOptions))
    for section, kind in (*SECTIONS.items(), *(("method", kind) for kind in METHODS.values())):
        lines.pop(section, None)
        for name, text in describe_fields(kind).items():
            key = f"{section}.{name}"
            if lines.setdefault(key, text) != text:  # methods may share the name of a key
                lines[key] += f" For {kind.__name__.lower()}: {text}"
    for key, text in lines.items():
        out.print(f"{key}\n    {text}")
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
    if save_request is None:
        _release(file, options, dry_run, as_json=json, publish=context.obj)
        return
    from tallyveil.release import request_file

    saved = Path(save_request)
    request_file.save_request(saved, options, file)
    try:
        _release(file, options, dry_run, as_json=json, publish=context.obj)
    except BaseException:
        saved.unlink(missing_ok=True)
        raise
    note(f"The request is in {saved}: run it again with tallyveil run.")


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
        str | None,
        typer.Option(metavar="FILE", help="Table to release, instead of the one in the request."),
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
    """Release a table as a request file says; --set changes one of its keys.

    `tallyveil privatize ... --save-request FILE` writes such a file. Paths in it are relative to
    its own folder.
    """
    from tallyveil.release.request_file import read_request

    listed, keys_of_file = read_request(file)
    source = table or listed
    if source is None and not dry_run:
        raise tv.UsageError("The request names no table: give --table, or the key 'table'.")
    options = make_options(keys_of_file | request, settings)
    _release(source, options, dry_run, as_json=json, publish=context.obj)


def _release(
    source: str | None,
    options: tv.ReleaseOptions,
    dry_run: bool,
    *,
    as_json: bool,
    publish: Publish | None,
) -> None:
    """Release a table, or only plan it, and show guarantee, cost and files."""
    if dry_run:
        show_plan(source, options, as_json=as_json)
        return
    if options.dry_run.rows is not None or options.dry_run.like is not None:
        raise tv.UsageError("'dry_run.rows' and 'dry_run.like' go with --dry-run only.")
    if source is None:
        raise tv.UsageError("Name the FILE with the table, or a database's address.")
    releases, unreleased = publish_file(source, options, publish)
    receipts = [release.receipt for release in releases]
    if not as_json:
        out.print("\n".join(_summarize(receipts, options, unreleased)))
        return
    note_unreleased(unreleased)
    documents = [receipt.to_dict() for receipt in receipts]
    listed = {"receipt": documents[0]} if len(documents) == 1 else {"receipts": documents}
    print_json({"out": options.out, **listed})


def publish_file(
    source: str, options: tv.ReleaseOptions, publish: Publish | None = None
) -> tuple[tuple[tv.Release, ...], Sequence[str]]:
    """Run the library's transaction, with a progress bar and remarks for the publisher.

    `publish` takes the place of `publish_table` for tables that are elsewhere. Returns the
    releases and the columns of the table that are not released.
    """
    from tallyveil.release.transaction import publish_table
    from tallyveil.release.warnings import list_unreleased, list_warnings

    if options.out is None:
        raise tv.UsageError("Name the release folder with --out, or give --dry-run.")
    unreleased: list[str] = []

    def remark(plan: ReleasePlan) -> None:
        unreleased.extend(list_unreleased(plan))
        for text in list_warnings(plan):
            note(spell_message(text))

    words = shlex.join(sys.argv)
    with progress(STEPS) as say:
        road: dict[str, Any] = {"command": words, "progress": say, "show_plan": remark}
        releases = (publish or publish_table)(source, options, **road)
    if options.output.confidential_report is not None:
        note(f"{options.output.confidential_report} is CONFIDENTIAL: it shows true counts.")
    return releases, unreleased


def note_unreleased(names: Sequence[str]) -> None:
    """List the columns that are not released, on standard error."""
    if names:
        note(f"Not released: {_list_columns(names)}.")


def _list_columns(names: Sequence[str]) -> str:
    """Name the first columns, and say how many more there are."""
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return one_line(", ".join(names[:MOST_SHOWN])) + more


def _summarize(
    receipts: Sequence[Receipt], options: tv.ReleaseOptions, unreleased: Sequence[str]
) -> list[str]:
    """Say what was released, what it cost, how accurate it is, and what to do next."""
    first, folder, columns = receipts[0], str(options.out), receipts[0].columns
    files = sum(len(names) for _, _, names in os.walk(folder))
    slack = f", delta {float(first.delta):.6g}," if first.delta else ""
    unit = first.unit_name.replace(", counted", " counted", 1)
    public = first.table.published_unchanged
    facts = {
        "Privacy": [f"epsilon {float(first.epsilon):.6g}{slack} in total, for {unit}"],
        "Budget": [_describe_budget(first, options)],
        "Method": [f"{one_line(c.name)}: {c.brief}" for c in columns],
        "Accuracy": [f"{one_line(c.name)}: {_describe_accuracy(c)}" for c in columns],
        "Public": [f"{_list_columns(public)} (unchanged)" if public else "no other column"],
    }
    lines = [] if first.private else [first.warning, ""]
    place = f"{folder.rstrip(os.sep)}{os.sep} ({numbered(files, 'file')})"
    lines += [f"Released {numbered(first.table.rows, 'row')} to {place}.", ""]
    for label, texts in facts.items():
        wrapped = [line for text in texts for line in textwrap.wrap(text, WIDTH - len(INDENT))]
        lines.append(f"{label:<{len(INDENT)}}" + f"\n{INDENT}".join(wrapped))
    if unreleased:
        lines.append(f"Not released  {_list_columns(unreleased)}")
    page = f"Read {os.path.join(folder, 'METHODOLOGY.html')} before you publish."
    if len(receipts) > 1:
        page = "Hand the folder of each level to its readers."
    return [*lines, "", f"Next       tallyveil check {shlex.quote(folder)}", INDENT + page]


def _describe_budget(receipt: Receipt, options: tv.ReleaseOptions) -> str:
    from tallyveil.budget.entries import shown_rational
    from tallyveil.release.transaction import open_account

    account = open_account(options) if receipt.ledger else None
    if account is None:
        return NO_LEDGER
    ledger, dataset = account
    state = ledger.account(dataset)
    spent, total = shown_rational(state.spent_epsilon), shown_rational(state.epsilon)
    return f"dataset {dataset!r}: {spent} of {total} spent"


def _describe_accuracy(column: ColumnRecord) -> str:
    accuracy, error = column.accuracy, column.optimality and column.optimality.expected_error
    names = ("true_count", "interval_low", "interval_high")
    intervals = [
        f"a true {count:,} as {low:,} to {high:,}"
        for count, low, high in zip(*(getattr(accuracy, name) for name in names), strict=True)
        if count in SHOWN_COUNTS
    ]
    average = "" if error is None else f"off by {error:.2g} on average; "
    shown = ", ".join(intervals).replace(" as ", " is released as ", 1)
    return f"{average}at least {accuracy.confidence:.0%} of the time {shown}"
