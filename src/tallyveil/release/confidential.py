"""The comparison with the truth, for the data holder's eyes only.

It is the one document that holds confidential values, so it says CONFIDENTIAL on every page,
is readable by its owner only, and never lies inside a release folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.release import svg
from tallyveil.release.column import WIDE, Histogram
from tallyveil.release.page import render
from tallyveil.release.receipt import ColumnRecord, Receipt


def confidential_report(
    receipt: Receipt,
    true: Mapping[str, Integers],
    released: Mapping[str, Integers],
    intervals: Mapping[str, Floats],
    *,
    left_out: tuple[int, int] | None = None,
    bounds: Integers | None = None,
) -> str:
    """Compare true and released counts of every column, in row order; shapes (rows,).

    Parameters
    ----------
    receipt : Receipt
        The receipt of the release.
    true, released : dict of str to array
        Counts by column.
    intervals : dict of str to array
        Those of `Accuracy`, for every true count up to the upper bound.
    left_out : tuple of int, optional
        How many rows were not counted, to bound each person's, of how many.
    bounds : array, optional
        The largest count of each row.
    """
    columns = [
        _compare(column, true[column.name], released[column.name], intervals[column.name], bounds)
        for column in receipt.columns
    ]
    return render("confidential.html", receipt=receipt, columns=columns, left_out=left_out)


def _compare(
    column: ColumnRecord,
    true: Integers,
    released: Integers,
    interval: Floats,
    bounds: Integers | None,
) -> dict[str, Any]:
    upper = column.upper if bounds is None else np.minimum(bounds, column.upper)
    nearest = np.minimum(true, len(interval) - 1)
    beyond = true - nearest if column.upper > WIDE else 0
    low, high = interval[nearest].T + beyond
    inside = ((released >= low) & (released <= high)).mean()
    error = released - true.astype(float)
    ordered = np.sort(true), np.sort(released)
    lost, cut, total = int(np.maximum(true - upper, 0).sum()), true > upper, true.sum()
    return {
        "name": column.name,
        "upper": column.upper,
        "bounded": column.bounded,
        "cut": int(cut.sum()),
        "own_bounds": int(cut.sum()) != int((true > column.upper).sum()),
        "lost": lost,
        "lost_share": f"{lost / max(total, 1):.1%}",
        "figures": [
            ("mean absolute error", f"{np.abs(error).mean():.4f}"),
            ("root mean squared error", f"{np.sqrt((error**2).mean()):.4f}"),
            ("mean error", f"{error.mean():+.4f}".replace("-", "−")),
            ("rows reported exactly", f"{(error == 0).mean():.1%}"),
            (f"rows inside their {column.accuracy.confidence:.0%} interval", f"{inside:.1%}"),
            ("rows top-coded", f"{cut.sum():,} ({cut.mean():.1%})"),
            ("lost by top-coding", f"{lost:,} of {total:,} ({lost / max(total, 1):.1%})"),
            ("true total, released total", f"{total:,}, {released.sum():,}"),
            ("distance of the distributions (W1)", f"{np.abs(np.subtract(*ordered)).mean():.4f}"),
            ("largest gap of the cumulative shares (KS)", f"{_largest_gap(*ordered):.4f}"),
        ],
        "scatter": svg.scatter(
            true, released, "true count", "released count", "True against released"
        ),
        "bars": svg.compare_chart(Histogram.count(true), Histogram.count(released)),
    }


def _largest_gap(true: Integers, released: Integers) -> float:
    """Return the largest difference of the cumulative shares of two sorted columns."""
    counts = np.union1d(true, released)
    shares = [np.searchsorted(x, counts, side="right") / len(x) for x in (true, released)]
    return float(np.abs(np.subtract(*shares)).max())
