"""The comparison with the truth, for the data holder's eyes only.

It is the one document that holds confidential values, so it says CONFIDENTIAL on every page,
is readable by its owner only, and never lies inside a release folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.evaluate.distances import kolmogorov_smirnov, wasserstein
from tallyveil.publish.page import svg
from tallyveil.publish.page.html import figure, page, paragraph, section, table
from tallyveil.publish.receipt import Receipt
from tallyveil.publish.records import ColumnRecord

__all__ = ["confidential_report"]


def confidential_report(
    receipt: Receipt,
    true: Mapping[str, Integers],
    released: Mapping[str, Integers],
    left_out: tuple[int, int] | None = None,
) -> str:
    """True against released counts of every column, in row order; shapes (rows,).

    `left_out` says how many rows were not counted, to bound each person's, of how many.
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
    body += [
        _column(column, true[column.name], released[column.name]) for column in receipt.columns
    ]
    body.append(f"<footer>CONFIDENTIAL. Release {escape(receipt.release)}.</footer>")
    return page("CONFIDENTIAL: true against released counts", "\n".join(body), confidential=True)


def _column(column: ColumnRecord, true: Integers, released: Integers) -> str:
    upper = column.upper
    kept = np.minimum(true, upper)
    error = (released - kept).astype(float)
    inside = np.mean(
        (released >= np.array(column.accuracy["interval_low"])[kept])
        & (released <= np.array(column.accuracy["interval_high"])[kept])
    )
    shares = [np.bincount(x, minlength=upper + 1) / len(x) for x in (kept, released)]
    rows = [
        ("mean absolute error", f"{np.abs(error).mean():.4f}"),
        ("root mean squared error", f"{np.sqrt((error**2).mean()):.4f}"),
        ("mean error", f"{error.mean():+.4f}".replace("-", "−")),
        ("rows reported exactly", f"{(error == 0).mean():.1%}"),
        (f"rows inside their {column.accuracy['confidence']:.0%} interval", f"{inside:.1%}"),
        ("rows top-coded", f"{(true > upper).sum():,}"),
        ("true total, released total", f"{true.sum():,}, {released.sum():,}"),
        ("distance of the distributions (W1)", f"{wasserstein(*shares):.4f}"),
        ("largest gap of the cumulative shares (KS)", f"{kolmogorov_smirnov(*shares):.4f}"),
    ]
    return section(
        column.name,
        table([], rows, numbers=(1,)),
        figure(
            svg.scatter(kept, released, "true count", "released count", "True against released"),
            "Every row once; darker where many rows coincide. The dashed line is no error.",
            narrow=True,
        ),
        figure(
            svg.compare_chart(shares[0] * len(true), shares[1] * len(true)),
            "Rows with each count: true (outlined) and released (filled).",
        ),
    )
