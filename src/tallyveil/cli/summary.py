"""A release or a plan in a few lines of text, for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tallyveil.cli.common import one_line, text_table

if TYPE_CHECKING:
    from tallyveil.release.receipt import Receipt

__all__ = ["accuracy_text", "receipt_lines"]


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
        else "ledger     none: nothing keeps count of further releases of these data"
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
