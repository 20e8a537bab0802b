"""The part of METHODOLOGY.html that says how accurate one column is."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.budget.entries import shown_rational
from tallyveil.documents.page import svg
from tallyveil.documents.page.html import figure, paragraph, section, table
from tallyveil.documents.page.totals import name_groups
from tallyveil.documents.records import ColumnRecord

__all__ = [
    "adding_words",
    "ask_for_groups",
    "column_section",
    "limits_of",
    "unbiased_words",
]

WIDEST_HEATMAP = 60
"""Up to this largest published count the mechanism is shown as a picture."""

SHOWN = [0, 3, *(m * 10**e for e in range(7) for m in (1, 2, 5))]
"""The true counts of the table on the page, beside the last ones."""

EXACT = "These figures are exact properties of the certified mechanism."
IN_PART = " in part only, because some were moved towards the best guess for their row"
SIGNED = (
    "Values are published with their sign, so none is pushed away from 0: they are unbiased, and "
    "the error is the same for every true count. Pictures show values below 0 as 0."
)
BLURRED = (
    " Published values of this column do not have the distribution of the true ones, so all three "
    "figures differ for the table itself: compare them with each other."
)
SUMS_HOLD = (
    "The sums in files of their own are not. But none of them is below 0, so a group that is truly "
    "near 0 is published too large on average; its estimate is not."
)
MATCHED = (
    "Bias and error are estimates: averages over the noise, for the ranking of rows as it came "
    "out. The intervals are no estimates: they follow from the certified noise and from which "
    "noisy counts became which published ones, which the receipt states."
)


def column_section(column: ColumnRecord, matrix: Floats | None) -> str:
    """How far published values lie from true ones, in a table and pictures."""
    accuracy = column.accuracy
    share = f"{accuracy['confidence']:.0%}"
    last = column.histogram.largest
    within = np.array(accuracy["true_count"]) <= last
    true = np.array(accuracy["true_count"])[within]
    interval = np.column_stack([accuracy["interval_low"], accuracy["interval_high"]])[within]
    words = (
        f"How far published values of {column.name} lie from true ones, by true count. A row with "
        f"that true count is published inside the interval with a chance of at least {share}. "
        f"{EXACT if accuracy['exact'] else MATCHED} "
        + (
            SIGNED
            if column.signed
            else "No method that stays inside a range can be unbiased at both its ends."
        )
    )
    parts = [
        paragraph(words),
        _accuracy_table(column, share),
        figure(
            svg.error_chart(true, np.array(accuracy["bias"])[within], interval),
            f"Error by true count, up to {last:,}, the largest published count. Band: the {share} "
            "interval. Line: the average error (bias).",
        ),
        figure(
            svg.bar_chart(column.histogram, column.spread, "Distribution of published counts"),
            _histogram_words(column),
        ),
    ]
    if column.optimality is not None:
        parts.append(paragraph(_optimality_words(column, column.optimality)))
    if matrix is not None and last <= WIDEST_HEATMAP:
        shown = list(range(last + 1))
        parts.append(
            figure(
                svg.heatmap(matrix[: last + 1, : last + 1], shown, shown),
                "The mechanism: each row shows where a true count ends up. Shades grow with the "
                "square root of the probability.",
                narrow=True,
            )
        )
    return section(f"Accuracy of {column.name}", *parts)


def _optimality_words(column: ColumnRecord, known: Mapping[str, Any]) -> str:
    """How far the column is from the best there is."""
    own, least = known["expected_error"], known["least_error"]
    kept, delta = known["least_error_same_distribution"], column.counts_stage.delta
    beside = f" and delta {shown_rational(delta)}" if delta else ""
    return (
        "How far this is from the best there is: for true counts distributed as the published "
        f"ones, a published value is off by {own:.3g} on average. No release that is private at "
        f"epsilon {shown_rational(column.epsilon)}{beside} for one count that moves by one is "
        f"below {least:.3g}, and none that keeps the distribution below {kept:.3g}."
    ) + ("" if column.kind.keeps_distribution and not column.moved else BLURRED)


def _histogram_words(column: ColumnRecord) -> str:
    words = "How many rows have each published count."
    if column.histogram.largest > svg.WIDEST_LINEAR:
        words += " Bars beyond 20 gather several counts."
    if column.spread is not None:
        words += " Whiskers: twice the standard error that the protection causes" + (
            ", or less." if column.kind.keeps_distribution else "."
        )
    return words


def _accuracy_table(column: ColumnRecord, share: str) -> str:
    accuracy = column.accuracy
    stated = {true: at for at, true in enumerate(accuracy["true_count"])}
    wanted = sorted({*SHOWN, column.histogram.largest, column.upper} & set(stated))
    header = ["true count", "bias", "root mean squared error", f"{share} interval"]
    rows = [_accuracy_row(column, accuracy, true, stated[true]) for true in wanted]
    absent = [at for at, true in enumerate(wanted) if true > column.histogram.largest]
    note = f"In grey: true counts above {column.histogram.largest:,}, the largest published count."
    made = table(header, rows, numbers=(0, 1, 2, 3), absent=absent)
    return made + (paragraph(note, "note") if absent else "")


def _accuracy_row(
    column: ColumnRecord, accuracy: Mapping[str, Any], true: int, at: int
) -> tuple[str, ...]:
    inside = f"{accuracy['interval_low'][at]:,} to {accuracy['interval_high'][at]:,}"
    if true == column.upper:
        return f"{true:,} or more", "", "", inside
    bias = f"{accuracy['bias'][at]:+,.2f}".replace("-", "−")
    return f"{true:,}", bias, f"{accuracy['rmse'][at]:,.2f}", inside


def adding_words(column: ColumnRecord) -> list[str]:
    """How published values are added, and what all of them come to."""
    name, histogram = column.name, column.histogram
    added = sum(count * rows for count, rows in zip(histogram.counts, histogram.rows, strict=True))
    words = "" if column.signed else f"The published values of {name} add up to {added:,}. "
    if column.total is None:
        words += "No estimate of the true total can be made from them."
    else:
        total = column.total
        cut = f", with counts above {column.upper:,} taken as {column.upper:,},"
        words += (
            f"The true total{cut} is estimated as "
            f"{round(total['value']):,}; {total['confidence']:.0%} interval "
            f"{round(total['low']):,} to {round(total['high']):,}."
        )
    if column.signed:
        return [
            paragraph(
                f"{words} Values of {name} may be added: they can be negative, each is right on "
                f"average, and each has the variance {column.drawn_variance:.6g}, whatever the "
                "true count is. A sum of n of them has n times that variance. Do not set negative "
                "ones to 0 before adding: that makes sums too large."
            )
        ]
    if column.unbiased is not None:
        words += f" {unbiased_words(column)}"
    if column.is_best:
        words += f" {_guess_words(name)}"
    if column.hides_parts:
        return [
            paragraph(words),
            paragraph(
                f"Do not add published values of {name} group by group: {column.hides_parts}."
            ),
        ]
    shown = name_groups(column)
    return [
        paragraph(words),
        paragraph(
            f"Do not add published values of {name} group by group. "
            + (
                f"Totals {shown} with intervals that hold stand below. Those of groups that any "
                "other column published unchanged makes, or several columns together:"
                if shown
                else "Estimates with intervals that hold, for the groups that any column published "
                "unchanged makes:"
            )
        ),
        ask_for_groups(column),
    ]


def _guess_words(name: str) -> str:
    """What a column of best guesses is good for, and what not."""
    return (
        f"The column {name} holds the best guess for every single row: the middle of what its "
        "noisy count and the estimated distribution say of it. It errs least row by row. It is not "
        "to be summed, averaged or tabulated: its distribution is not that of the table, and sums "
        "of it can be far off."
    )


def unbiased_words(column: ColumnRecord) -> str:
    """What the column of draws holds, where there is one."""
    return (
        f"The column {column.columns[1]} holds every row's noisy count before it was cut to "
        "the range or ranked. It can be negative. It is right on average, and its variance is "
        f"{column.drawn_variance:.6g} for every true count: values of it may be added."
    )


def ask_for_groups(column: ColumnRecord) -> str:
    """The command that adds groups of a column."""
    name = escape(shlex.quote(column.name))
    return f"<pre>tallyveil interpret . --column {name} --by COLUMN</pre>"


def limits_of(column: ColumnRecord) -> list[str]:
    """What a reader of this column must not do, in sentences."""
    name = column.name
    if column.signed:
        return [
            f"Values of {name} below 0 are noise: read one as a small count, and keep its sign."
        ]
    found = [
        f"Published values of {name} follow the distribution of "
        f"{'their stratum' if column.kind.by_group else 'the whole table'}"
        f"{IN_PART if column.moved and not column.at_most else ''}. Groups that "
        "differ from it, such as a state with few cases, are pulled towards it, and so are "
        + (
            f"single values of theirs. {SUMS_HOLD}"
            if column.kind.adds_up
            else "their sums and the differences between them."
        )
        if column.kind.keeps_distribution
        else f"Values of {name} near 0 and near the upper end are pushed inwards"
        + (
            f". {SUMS_HOLD}"
            if column.kind.adds_up
            else ", so that sums of many small ones come out too large."
        )
    ]
    if column.bounded:
        found.append(
            f"Counts of {name} above {column.upper:,} were cut to it before the draw. What lies "
            "above is missing from all sums, and nothing published tells how much it is."
        )
    return found
