"""`tallyveil interpret FOLDER --by COLUMN`: totals of groups with intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tallyveil.cli.common import out, print_json, write_data

__all__ = ["describe_total", "print_totals"]

LARGE = 1000
"""Numbers from here on are shown whole."""


def print_totals(
    folder: Path,
    column: str | None,
    choice: tuple[Sequence[str], Sequence[str]],
    confidence: float,
    target: Path | None,
    *,
    as_json: bool,
) -> None:
    """One line per group: rows, total, standard error, interval; `choice` is (by, where)."""
    from tallyveil.release.groups import estimate_total

    by, where = choice
    found = estimate_total(folder, confidence=confidence, column=column, by=by, where=where)
    groups = found if by else {(): found}
    rows = [
        {
            **dict(zip(by, key if len(by) > 1 else (key,), strict=False)),
            "rows": one.groups,
            "total": round(one.value, 2),
            "standard_error": round(one.standard_error, 4),
            "low": int(one.low),
            "high": int(one.high),
            "bias_bound": round(one.bias_bound, 4),
        }
        for key, one in groups.items()
    ]
    if as_json:
        print_json({"confidence": confidence, "groups": rows})
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    if target is None:
        write_data(text.getvalue())
        return
    target.write_text(text.getvalue(), encoding="utf-8", newline="\n")
    out.print(f"Written to {target}: {len(rows)} totals with intervals.", markup=False)


def describe_total(total: Mapping[str, Any] | None, confidence: float) -> str:
    """The total of a column in words."""
    if total is None:
        return "This mechanism has no unbiased estimate, so none of the total either."
    value, low, high = (_show(total[part]) for part in ("value", "low", "high"))
    error = _show(total["standard_error"], 4)
    return (
        f"The total of the true answers is about {value}, standard error {error}; "
        f"{confidence:.0%} interval {low} to {high}."
    )


def _show(value: float, digits: int = 6) -> str:
    """A number, whole and with separators where it is large, never with a power of ten.

    >>> [_show(x) for x in (270812345.6, -1234.0, 0.5, 999.99)]
    ['270,812,346', '-1,234', '0.5', '999.99']
    """
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.{digits}g}"
