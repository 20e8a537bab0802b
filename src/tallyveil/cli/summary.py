"""A release in a few lines of text, for the terminal."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tallyveil.cli.common import one_line, text_table

if TYPE_CHECKING:
    from tallyveil.release.options import ReleaseOptions
    from tallyveil.release.receipt import ColumnRecord, Receipt

__all__ = ["accuracy_text", "list_columns", "receipt_lines", "release_lines"]

WIDTH = 98
NO_LEDGER = "no ledger: other releases of this data are not tracked"
MOST_SHOWN = 12
"""Columns that are listed by name."""

SHOWN_COUNTS = (0, 10)
"""True counts of which the summary says how they are released."""


def list_columns(names: Sequence[str]) -> str:
    """Name the first columns, and say how many more there are."""
    more = f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else ""
    return one_line(", ".join(names[:MOST_SHOWN])) + more


def release_lines(
    receipts: Sequence[Receipt], options: ReleaseOptions, unreleased: Sequence[str]
) -> list[str]:
    """What was released, what it cost, how accurate it is, and what to do next."""
    first, out = receipts[0], str(options.out)
    files = sum(len(names) for _, _, names in os.walk(out))
    lines = [] if first.private else [first.warning, ""]
    lines += [
        f"Released {first.table.rows:,} rows to {out.rstrip(os.sep)}{os.sep} ({files} files).",
        "",
    ]
    slack = f", delta {float(first.delta):.6g}," if first.delta else ""
    unit = first.unit_name.replace(", counted", " counted", 1)
    lines += _line("Privacy", f"epsilon {float(first.epsilon):.6g}{slack} in total, for {unit}")
    lines += _line("Budget", _describe_budget(first, options))
    columns = first.columns
    lines += _line("Method", *(f"{one_line(c.name)}: {c.method.brief}" for c in columns))
    lines += _line("Accuracy", *(f"{one_line(c.name)}: {_describe_accuracy(c)}" for c in columns))
    public = first.table.published_unchanged
    lines += _line("Public", f"{list_columns(public)} (unchanged)" if public else "no other column")
    if unreleased:
        lines += [f"Not released  {list_columns(unreleased)}"]
    folder = shlex.quote(out)
    page = f"Read {os.path.join(out, 'METHODOLOGY.html')} before you publish."
    if len(receipts) > 1:
        page = "Hand the folder of each level to its readers."
    return [*lines, "", f"{'Next':<11}tallyveil check {folder}", " " * 11 + page]


def _line(label: str, *parts: str) -> list[str]:
    """Write a label and its parts, each on lines of its own below one another."""
    indent = " " * 11
    lines = [line for part in parts for line in textwrap.wrap(part, WIDTH - len(indent))]
    return [f"{label:<11}{lines[0]}", *(indent + line for line in lines[1:])]


def _describe_budget(receipt: Receipt, options: ReleaseOptions) -> str:
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
    accuracy = column.accuracy
    lows, highs = accuracy.interval_low, accuracy.interval_high
    true = accuracy.true_count
    intervals = " and ".join(
        f"a true {count:,} {'is released ' if not place else ''}as "
        f"{lows[true.index(count)]:,} to {highs[true.index(count)]:,}"
        for place, count in enumerate(count for count in SHOWN_COUNTS if count in true)
    ).replace(" and a", ", a")
    sure = f"at least {accuracy.confidence:.0%} of the time"
    error = column.optimality and column.optimality["expected_error"]
    average = "" if error is None else f"off by {error:.2g} on average; "
    return f"{average}{sure} {intervals}"


def receipt_lines(receipt: Receipt) -> list[str]:
    """The promise, the cost, and how accurate each column is."""
    lines = [] if receipt.private else [receipt.warning, ""]
    lines += [*textwrap.wrap(receipt.promise, 88), ""]
    stages = ", ".join(
        f"{one_line(stage.name)} {float(stage.epsilon):.6g}" for stage in receipt.stages
    )
    unit = receipt.unit
    slack = f", delta {float(receipt.delta):.6g}," if receipt.delta else ""
    cost = f"epsilon {float(receipt.epsilon):.6g}{slack}"
    lines.append(f"cost       {cost} for one {unit.kind} ({stages})")
    if unit.multiplier > 1:
        how = "draws of a cell composed" if unit.delta else "times the epsilon of a cell"
        lines.append(
            f"           {unit.multiplier} {how}: "
            f"{unit.neighbours}, contributions {unit.contributions}"
        )
    lines += [
        f"           {one_line(' and '.join(group))} are disjoint: charged once"
        for group in receipt.disjoint
    ]
    lines.append(f"unit       {receipt.unit_name}")
    entry = receipt.ledger
    lines.append(
        f"ledger     entry {entry.entry} of {entry.dataset!r}, debited before the draw"
        if entry
        else f"ledger     {NO_LEDGER}"
    )
    kept = receipt.table.published_unchanged
    lines.append(f"unchanged  {one_line(', '.join(kept)) or 'no other column'}")
    from tallyveil.release.records import to_plain

    for column in receipt.columns:
        lines += [
            "",
            f"{one_line(column.name)}: {column.method.name} ({one_line(column.why)}), counts "
            + column.range_words
            + ", larger ones top-coded" * column.bounded,
            textwrap.indent(accuracy_text(to_plain(column.accuracy)), "  "),
        ]
    return lines


def accuracy_text(accuracy: Mapping[str, Any]) -> str:
    """Bias, error and interval for a handful of true counts."""
    true = accuracy["true_count"]
    wanted = {0, 1, 2, 5, 10, true[len(true) // 2], *true[-2:]}
    return text_table(
        ("true count", "bias", "rmse", f"{accuracy['confidence']:.0%} interval"),
        [_accuracy_row(accuracy, at) for at, count in enumerate(true) if count in wanted],
    )


def _accuracy_row(accuracy: Mapping[str, Any], at: int) -> Sequence[str]:
    return (
        str(accuracy["true_count"][at]),
        f"{accuracy['bias'][at]:+.2f}",
        f"{accuracy['rmse'][at]:.2f}",
        f"{accuracy['interval_low'][at]} to {accuracy['interval_high'][at]}",
    )
