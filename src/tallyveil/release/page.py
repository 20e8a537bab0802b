"""Pages of a release: METHODOLOGY.html for its readers, and the comparison with the truth.

The methodology is a pure function of the receipt and the certified mechanisms, so anyone who has
the release folder can rebuild it byte for byte, and nothing confidential can be in it. Sentences
are in `templates`; here are the numbers and charts that they need.

The comparison is the one document that holds confidential values. It is for the data holder's eyes
only, so it says CONFIDENTIAL on every page, is readable by its owner only, and never lies inside a
release folder.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.budget.entries import shown_rational
from tallyveil.errors import numbered
from tallyveil.release import svg
from tallyveil.release.accuracy import WIDEST_PICTURE
from tallyveil.release.column import WIDE, Histogram
from tallyveil.release.methods.preserve import show_tradeoff
from tallyveil.release.receipt import ColumnRecord, Receipt
from tallyveil.release.records import AccuracyRecord, GroupRecord

if TYPE_CHECKING:
    from jinja2 import Environment

WIDEST_HEATMAP = 60
"""The mechanism is drawn up to this largest released count."""

SHOWN = [0, 3, *(m * 10**e for e in range(7) for m in (1, 2, 5))]
"""True counts in the table of accuracy, with the largest released and the largest possible one."""

LONGEST_LIST = 12
MONTHS = ["January", "February", "March", "April", "May", "June", "July"]
MONTHS += ["August", "September", "October", "November", "December"]


def methodology(receipt: Receipt, matrices: Sequence[Floats | None]) -> str:
    """Write the page of `receipt`; `matrices` are each column's probabilities, for a heatmap."""
    pairs = zip(receipt.columns, matrices, strict=True)
    sums = receipt.sums
    is_tabulated = bool(receipt.table.counted_by)
    names = [column.name for column in receipt.columns]
    return render(
        "methodology.html",
        receipt=receipt,
        row="cell" if is_tabulated else "row",
        shown={name: "records" if is_tabulated else name for name in names},
        certainty=_bound_certainty(receipt),
        sum_files=() if sums is None else sums.levels,
        tables_of_groups=[
            _describe_groups(column, groups)
            for column in receipt.columns
            for groups in column.groups
        ],
        accuracy=[_describe_accuracy(column, matrix) for column, matrix in pairs],
        multiplied=_describe_multiplier(receipt),
        wide=WIDE,
        widest_picture=WIDEST_PICTURE,
    )


def render(template: str, **values: Any) -> str:
    """Fill in one of the templates; text is escaped, and a missing name is an error."""
    return _load_templates().get_template(template).render(values)


@cache
def _load_templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("tallyveil.release"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {
        "amount": lambda value: f"{float(value):.6g}",
        "day": _show_day,
        "exact": shown_rational,
        "kinds_of_groups": lambda column: list_names(
            [f"by {' and '.join(g.by)}" for g in column.groups]
        ),
        "listed": list_names,
        "number": _show_number,
        "numbered": numbered,
        "percent": lambda share: f"{share:.0%}",
        "quoted": lambda code: f"“{code}”" if code else "an empty cell",
        "shell": shlex.quote,
        "short": lambda value: f"{float(value):.4g}",
        "tradeoff": show_tradeoff,
    }
    return templates


def list_names(names: Sequence[str], most: int = LONGEST_LIST) -> str:
    """Join names with commas and a last "and"; of many only the first, and how many more.

    >>> list_names(["a", "b", "c"]), list_names(["a", "b", "c"], most=1)
    ('a, b and c', 'a and 2 more')
    """
    shown = [str(name) for name in names[:most]]
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def _show_number(value: float) -> str:
    return f"{round(value):,}".replace("-", "−")


def _show_day(created: str) -> str:
    try:
        day = datetime.fromisoformat(created)
    except ValueError:  # a receipt that was not written by Tallyveil
        return created[:10]
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def _bound_certainty(receipt: Receipt) -> str:
    """Bound how sure anyone at 50% can become; empty where the guarantee has exceptions.

    Epsilon bounds the odds: they grow by a factor of at most e^epsilon.
    """
    if receipt.delta or receipt.outside or not receipt.private:
        return ""
    tenths = math.ceil(1000 / (1 + math.exp(-float(receipt.epsilon))))
    return f"{tenths / 10:.1f}%" if tenths < 1000 else ""


def _describe_multiplier(receipt: Receipt) -> str:
    """Describe how contributions enter the cost."""
    times = receipt.unit.multiplier
    if all(column.method.together for column in receipt.columns):
        return f"Every epsilon is for a change of a count by up to {times}"
    if receipt.unit.separate and receipt.unit.delta:
        return f"Every epsilon is that of {times} draws composed, which the delta is for"
    if receipt.unit.separate:
        return (
            "Contributions are in different rows, but composing them with a delta would gain less "
            f"than a hundredth. Every epsilon is multiplied by {times}, and delta is 0"
        )
    return f"Every epsilon is multiplied by {times}"


def _describe_groups(column: ColumnRecord, groups: GroupRecord) -> dict[str, Any]:
    """Describe one table of totals, with an interval drawn in every line."""
    low, high = min(0.0, *groups.low, *groups.estimate), max(1.0, *groups.high, *groups.estimate)
    published = groups.published or [0] * len(groups.rows)
    parts = {"group": groups.groups, "rows": groups.rows, "published": published}
    parts |= {"estimate": groups.estimate, "low": groups.low, "high": groups.high}
    return {
        "column": column.name,
        "by": " and ".join(groups.by),
        "published": groups.published is not None,
        "axis": svg.interval_axis((low, high)),
        "lines": [
            dict(zip(parts, line, strict=True))
            | {"mark": svg.interval_mark(line[4], line[3], line[5], (low, high))}
            for line in zip(*parts.values(), strict=True)
        ],
    }


def _describe_accuracy(column: ColumnRecord, matrix: Floats | None) -> dict[str, Any]:
    """Describe the table and the charts of one column."""
    accuracy, last = column.accuracy, column.histogram.largest
    true = np.array(accuracy.true_count)
    within = true <= last
    interval = np.column_stack([accuracy.interval_low, accuracy.interval_high])
    heatmap = ""
    if matrix is not None and last <= WIDEST_HEATMAP:
        counts = list(range(last + 1))
        heatmap = svg.heatmap(matrix[: last + 1, : last + 1], counts, counts)
    return {
        "name": column.name,
        "record": column,
        "share": f"{accuracy.confidence:.0%}",
        "last": last,
        "lines": list(_list_lines(column, accuracy)),
        "errors": svg.error_chart(true[within], np.array(accuracy.bias)[within], interval[within]),
        "bars": svg.bar_chart(column.histogram, column.spread, "Distribution of released counts"),
        "combined": last > svg.WIDEST_LINEAR,
        "heatmap": heatmap,
    }


def _list_lines(column: ColumnRecord, accuracy: AccuracyRecord) -> Iterator[dict[str, Any]]:
    """Yield a few lines of the table of accuracy, by true count."""
    places = {true: place for place, true in enumerate(accuracy.true_count)}
    for true in sorted({*SHOWN, column.histogram.largest, column.upper} & set(places)):
        place = places[true]
        open_end = true == column.upper
        bias = round(accuracy.bias[place], 2) or 0.0  # never minus zero
        yield {
            "true": true,
            "open_end": open_end,
            "bias": "" if open_end else f"{bias:+,.2f}".replace("-", "−"),
            "rmse": "" if open_end else f"{accuracy.rmse[place]:,.2f}",
            "low": accuracy.interval_low[place],
            "high": accuracy.interval_high[place],
        }


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
