"""`tallyveil privatize`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallyveil.cli.common import JsonOption, example, note, out, print_json, progress
from tallyveil.cli.options import takes_release_options
from tallyveil.publish.options import OUTPUT, ReleaseOptions

if TYPE_CHECKING:
    from tallyveil.publish.prepare import Prepared
    from tallyveil.publish.release import Release

__all__ = ["EXAMPLE", "command", "publish_file"]

EXAMPLE = example(
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --epsilon 1 --out release/",
    "tallyveil privatize cases.csv --count cases --keep all --upper 60 --within 3 --dry-run",
    "tallyveil privatize people.csv --by county --categories counties.txt "
    "--where 'age >= 65' --upper 200 --epsilon 0.5 --out release/",
)
STEPS = 5


@takes_release_options(leave_out=["levels"])
def command(
    file: Annotated[
        Path, typer.Argument(help="CSV, TSV, Parquet or Arrow file.", show_default=False)
    ],
    *,
    options: ReleaseOptions,
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
    from tallyveil.errors import UsageError

    if dry_run:
        from tallyveil.cli.dry_run import show_plan

        show_plan(options, rows, as_json)
        return
    if rows is not None:
        raise UsageError("--rows goes with --dry-run: otherwise the table's rows are counted.")
    (release,) = publish_file(file, options, shlex.join(sys.argv))
    if as_json:
        print_json({"out": str(options.out), "receipt": release.receipt.to_dict()})
        return
    from tallyveil.cli.summary import receipt_lines

    out.print("\n".join(receipt_lines(release.receipt)), markup=False)
    out.print(
        f"\nWritten to {options.out}: {len(release.files) + 1} files. "
        f"Check it with: tallyveil check {options.out}",
        markup=False,
    )


def publish_file(file: Path, options: ReleaseOptions, words: str) -> tuple[Release, ...]:
    """The library's transaction, with a progress bar and remarks for the publisher."""
    from tallyveil.errors import UsageError
    from tallyveil.publish.transaction import publish_table

    if options.out is None:
        raise UsageError("Name the release folder with --out, or give --dry-run.")
    with progress(STEPS) as say:
        releases = publish_table(file, options, command=words, say=say, remark=_show_remark)
    if options.confidential_report is not None:
        note(f"{options.confidential_report} is CONFIDENTIAL: it shows true counts.")
    return releases


def _show_remark(prepared: Prepared) -> None:
    """What the publisher should know and an error would be too much for."""
    from tallyveil.publish.prepare import find_order_remark
    from tallyveil.publish.receipt import WEAK_EPSILON

    remark = find_order_remark(prepared)
    if remark:
        note(remark)
    cost = sum(epsilon for _, epsilon in prepared.stages)
    if cost > WEAK_EPSILON:
        note(f"Epsilon {float(cost):g} protects little: most releases use 1 or less in total.")
