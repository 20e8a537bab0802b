"""The comparison with the truth, for the data holder's eyes only.

It is the one document that holds confidential values, so it says CONFIDENTIAL on every page,
is readable by its owner only, and never lies inside a release folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.documents.page import svg
from tallyveil.documents.page.html import figure, page, paragraph, section, table
from tallyveil.documents.receipt import Receipt
from tallyveil.documents.records import ColumnRecord
from tallyveil.release.column import Histogram
from tallyveil.request.ranges import WIDE

__all__ = ["confidential_report"]


def confidential_report(
    receipt: Receipt,
    true: Mapping[str, Integers],
    released: Mapping[str, Integers],
    intervals: Mapping[str, Floats],
    *,
    left_out: tuple[int, int] | None = None,
    bounds: Integers | None = None,
) -> str:
    """True against released counts of every column, in row order; shapes (rows,).

    `intervals` are those of `Accuracy`, for every true count up to the upper bound. `left_out`
    says how many rows were not counted, to bound each person's, of how many; `bounds` what each
    row can hold at most.
    """
    body = [
        "<h1>True against released counts</h1>",
        paragraph(f"Release {receipt.release}, {receipt.created[:10]}.", "lead"),
        paragraph(
            "CONFIDENTIAL. This document compares the release with the confidential table. "
            "Anyone who sees it learns true counts. Do not publish it, and do not store it "
            "beside the release.",
            "warning",
        ),
    ]
    if left_out is not None:
        dropped, rows = left_out
        body.append(
            paragraph(
                f"{dropped:,} of {rows:,} rows ({dropped / max(rows, 1):.1%}) were left out at "
                "random, because their persons have more rows than are counted. True counts "
                "below are those of all rows."
            )
        )
    for column in receipt.columns:
        name = column.name
        body.append(_column(column, true[name], released[name], intervals[name], bounds))
    body.append(f"<footer>CONFIDENTIAL. Release {escape(receipt.release)}.</footer>")
    return page("CONFIDENTIAL: true against released counts", "\n".join(body), confidential=True)


def _column(
    column: ColumnRecord,
    true: Integers,
    released: Integers,
    interval: Floats,
    bounds: Integers | None,
) -> str:
    upper = column.upper if bounds is None else np.minimum(bounds, column.upper)
    at = np.minimum(true, len(interval) - 1)
    beyond = true - at if column.upper > WIDE else 0
    low, high = interval[at].T + beyond
    inside = ((released >= low) & (released <= high)).mean()
    error = released - true.astype(float)
    ordered = np.sort(true), np.sort(released)
    lost = int(np.maximum(true - upper, 0).sum())
    rows = [
        ("mean absolute error", f"{np.abs(error).mean():.4f}"),
        ("root mean squared error", f"{np.sqrt((error**2).mean()):.4f}"),
        ("mean error", f"{error.mean():+.4f}".replace("-", "−")),
        ("rows reported exactly", f"{(error == 0).mean():.1%}"),
        (f"rows inside their {column.accuracy['confidence']:.0%} interval", f"{inside:.1%}"),
        ("rows top-coded", f"{(true > upper).sum():,} ({(true > upper).mean():.1%})"),
        ("lost by top-coding", f"{lost:,} of {true.sum():,} ({lost / max(true.sum(), 1):.1%})"),
        ("true total, released total", f"{true.sum():,}, {released.sum():,}"),
        ("distance of the distributions (W1)", f"{np.abs(np.subtract(*ordered)).mean():.4f}"),
        ("largest gap of the cumulative shares (KS)", f"{_largest_gap(*ordered):.4f}"),
    ]
    parts = [table([], rows, numbers=(1,))]
    if lost:
        words = _top_coding_words(column, true, int((true > upper).sum()), lost)
        parts.insert(0, paragraph(words, "warning"))
    return section(
        column.name,
        *parts,
        figure(
            svg.scatter(true, released, "true count", "released count", "True against released"),
            "All rows; darker where many coincide. The dashed line is no error.",
            narrow=True,
        ),
        figure(
            svg.compare_chart(Histogram.count(true), Histogram.count(released)),
            "Rows with each count: true (outlined) and released (filled). Where the range is wide, "
            "bars beyond 20 gather several counts.",
        ),
    )


def _top_coding_words(column: ColumnRecord, true: Integers, cut: int, lost: int) -> str:
    own = "" if cut == int((true > column.upper).sum()) else ", or more than their own bound"
    bound = f"the upper bound of {column.name}" if column.bounded else "the largest published"
    return (
        f"{cut:,} rows have more than {column.upper:,}, {bound}{own}. "
        f"Top-coding took {lost / true.sum():.1%} of the true total out of the "
        "release before any noise was added."
        + (" A larger bound would lose less." if column.bounded else "")
    )


def _largest_gap(true: Integers, released: Integers) -> float:
    """The largest difference of the cumulative shares of two sorted columns."""
    at = np.union1d(true, released)
    shares = [np.searchsorted(x, at, side="right") / len(x) for x in (true, released)]
    return float(np.abs(np.subtract(*shares)).max())
