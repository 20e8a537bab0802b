"""`tallyveil privatize`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallyveil.cli.common import JsonOption, example, note, out, print_json, progress

if TYPE_CHECKING:
    from tallyveil.publish.prepare import Prepared
    from tallyveil.publish.release import Release

__all__ = ["EXAMPLE", "command", "publish"]

EXAMPLE = example(
    "tallyveil privatize cases.csv --count cases --upper 60 --epsilon 1.0 --out release/",
    "tallyveil privatize cases.csv --count cases --upper 60 --within 3 --dry-run",
    "tallyveil privatize people.csv --by county --categories counties.txt "
    "--where 'age >= 65' --upper 200 --epsilon 0.5 --out release/",
)
TABLE, PRIVACY, OUTPUT = "The table", "Privacy and method", "Output"


def command(
    file: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet or Arrow file.", show_default=False)
    ],
    *,
    upper: Annotated[
        list[str],
        typer.Option(
            help="Largest count that can be published, from public knowledge; or 'auto' with "
            "--upper-epsilon. Once, or once per --count.",
            rich_help_panel=PRIVACY,
            show_default=False,
        ),
    ],
    count: Annotated[
        list[str] | None,
        typer.Option(help="Column of counts; repeat for more.", rich_help_panel=TABLE),
    ] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            help="Privacy loss of each count column; smaller is more private. Once, or once per "
            "--count.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            help="Instead of --epsilon: released counts lie within this many of the truth ...",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="... with this probability.", rich_help_panel=PRIVACY)
    ] = 0.95,
    method: Annotated[
        str,
        typer.Option(
            help="auto, preserve, geometric, fair, design, or a mechanism file.",
            rich_help_panel=PRIVACY,
        ),
    ] = "auto",
    loss: Annotated[
        str,
        typer.Option(
            help="For design: absolute, squared, zero_one, beyond:D or power:P.",
            rich_help_panel=PRIVACY,
        ),
    ] = "absolute",
    property_: Annotated[
        list[str] | None,
        typer.Option(
            "--property",
            help="For design: a property to keep; repeat for more.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    neighbours: Annotated[
        str,
        typer.Option(
            help="add_remove one person, or change_one record (two cells move: costs twice).",
            rich_help_panel=PRIVACY,
        ),
    ] = "add_remove",
    contributions: Annotated[
        int,
        typer.Option(
            help="In how many cells one person may be counted (costs that many times).",
            rich_help_panel=PRIVACY,
        ),
    ] = 1,
    above: Annotated[
        str,
        typer.Option(
            help="Counts above --upper: top_code them, or refuse the table.",
            rich_help_panel=PRIVACY,
        ),
    ] = "top_code",
    upper_epsilon: Annotated[
        str | None,
        typer.Option(help="What finding the upper bound may cost.", rich_help_panel=PRIVACY),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Category column; without --count, rows are counted by it (microdata).",
            rich_help_panel=TABLE,
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            help="Count only rows with, for example, 'age >= 18'; repeat for more.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    categories: Annotated[
        str | None,
        typer.Option(
            help="The public list of categories: a file, or values with commas.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    order: Annotated[
        str,
        typer.Option(
            help="Row order: input, or sorted by the other columns.", rich_help_panel=TABLE
        ),
    ] = "input",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Publish only these other columns; repeat for more.", rich_help_panel=TABLE
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Do not publish this column; repeat for more.", rich_help_panel=TABLE),
    ] = None,
    allow_duplicates: Annotated[
        bool,
        typer.Option(
            "--allow-duplicates", help="Rows may repeat a category.", rich_help_panel=TABLE
        ),
    ] = False,
    delimiter: Annotated[
        str | None,
        typer.Option(help="What separates cells: one character, or 'tab'.", rich_help_panel=TABLE),
    ] = None,
    encoding: Annotated[
        str, typer.Option(help="The encoding of a text file.", rich_help_panel=TABLE)
    ] = "utf-8",
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="The release folder; must not exist.", rich_help_panel=OUTPUT),
    ] = None,
    ledger: Annotated[
        str | None, typer.Option(help="The budget ledger to debit.", rich_help_panel=OUTPUT)
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="The dataset's name in the ledger.", rich_help_panel=OUTPUT)
    ] = None,
    confidential_report: Annotated[
        Path | None,
        typer.Option(
            help="Also write the comparison with the truth, for your eyes only.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show cost and accuracy; touch neither data nor budget.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(help="For --dry-run: how many rows the table has.", rich_help_panel=OUTPUT),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Publish a private version of a table of counts, as a folder that a stranger can check."""
    options = {
        "count": count, "upper": upper, "epsilon": epsilon, "within": within,
        "confidence": confidence, "method": method, "loss": _loss(loss),
        "properties": property_ or (), "neighbours": neighbours.replace("-", "_"),
        "contributions": contributions, "above": above, "upper_epsilon": upper_epsilon, "by": by,
        "where": where or (), "categories": categories, "order": order, "keep": keep,
        "drop": drop or (), "allow_duplicates": allow_duplicates,
    }  # fmt: skip
    from tallyveil.publish.prepare import prepare

    if dry_run:
        from tallyveil.cli.dry_run import show_plan

        show_plan(options, rows, as_json)
        return
    target = _targets(folder, confidential_report)
    with progress(5) as say:
        say("reading and checking the table")
        prepared = prepare(file, options, "\t" if delimiter == "tab" else delimiter, encoding)
        _remarks(prepared)
        say("reserving room")
        release = publish(prepared, target, (ledger, dataset), confidential_report, say)
    if confidential_report is not None:
        note(f"{confidential_report} is CONFIDENTIAL: it shows true counts.")
    if as_json:
        print_json({"out": str(folder), "receipt": release.receipt})
        return
    from tallyveil.cli.summary import receipt_lines

    out.print("\n".join(receipt_lines(release.receipt)), markup=False)
    out.print(
        f"\nWritten to {folder}: {len(release.files) + 1} files. "
        f"Check it with: tallyveil check {folder}",
        markup=False,
    )


def publish(
    prepared: Prepared,
    target: Path,
    account: tuple[str | None, str | None] = (None, None),
    confidential: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Release:
    """Reserve room, debit, draw, write: in this order; then the confidential comparison."""
    from tallyveil.publish.folder import staging

    with staging(target, prepared.room()) as place:
        release = prepared.release(*account, command=shlex.join(sys.argv), say=say)
        place.commit(release.files)
    if confidential is not None:
        _write_confidential(confidential, prepared, release)
    return release


def _remarks(prepared: Prepared) -> None:
    """What the publisher should know and an error would be too much for."""
    from tallyveil.publish.prepare import order_remark

    remark = order_remark(prepared)
    if remark:
        note(remark)


def _targets(folder: Path | None, confidential: Path | None) -> Path:
    from tallyveil.errors import ArgumentError

    if folder is None:
        raise ArgumentError("--out", "name the release folder", None, "Or give --dry-run.")
    if confidential is not None:
        if folder.absolute() in (confidential.absolute(), *confidential.absolute().parents):
            raise ArgumentError("--confidential-report", "lie outside the release folder")
        if confidential.exists() or not confidential.absolute().parent.is_dir():
            rule = "be a new file in a folder that exists"
            raise ArgumentError("--confidential-report", rule, str(confidential))
    return folder


def _write_confidential(path: Path, prepared: Prepared, release: Release) -> None:
    """Write the comparison with the truth, readable by its owner only."""
    from tallyveil.publish.page.confidential import confidential_report

    released = {plan.name: drawn.counts for plan, drawn in release.columns}
    page = confidential_report(release.receipt, prepared.counts, released)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(page)


def _loss(text: str) -> Any:
    """A loss as `design` takes it: a name, or a name and a number such as beyond:2."""
    name, colon, value = text.partition(":")
    if not colon:
        return text
    try:
        return name, float(value)
    except ValueError:
        return text
