"""The part of METHODOLOGY.html that says what was done to the table."""

from __future__ import annotations

from tallyveil.documents.page.html import list_words, notes, paragraph, section, table
from tallyveil.documents.receipt import Receipt
from tallyveil.documents.records import ColumnRecord
from tallyveil.release.methods.preserve import moves_counts
from tallyveil.request.ranges import WIDE

__all__ = ["what_was_done"]

MOVED = (
    " Some counts were then moved towards the best guess for their row, so that single counts err "
    "less and the table follows the distribution in part only."
)


def what_was_done(receipt: Receipt) -> list[str]:
    """The section on what was done to the table, step by step."""
    parts = []
    facts = receipt.table
    if facts.counted_by:
        where = f" of those with {list_words(facts.where)}" if facts.where else ""
        parts.append(
            paragraph(
                f"Rows of the confidential table{where} were counted by "
                f"{list_words(facts.counted_by)}, for a public list of {facts.rows:,} "
                "categories. Categories that nobody is in are published too."
            )
        )
    for name, bins in facts.bins:
        many = len(bins.labels)
        parts.append(
            paragraph(f"Ranges of {name}, which are public: {list_words(bins.labels, many)}.")
        )
    if facts.other:
        parts.append(
            paragraph(f"Every category that is not listed was counted as “{facts.other}”.")
        )
    if facts.missing:
        parts.append(paragraph(_missing_words(receipt)))
    for column in receipt.columns:
        words = column.words + (MOVED if moves_counts(column.tradeoff) else "")
        parts.append(section(f"Column {column.name}", paragraph(words), level=3))
        steps = [_range_step(column), *column.steps]
        parts.append(notes(steps, ordered=True))
    parts += _sums(receipt)
    if receipt.zeros is not None:
        parts.append(
            paragraph(
                f"{receipt.zeros.rows:,} rows are 0 whatever the data say, which is public: those "
                f"with {'; or '.join(receipt.zeros.rules)}. They received nothing, and figures "
                "and distribution are about the other rows."
            )
        )
    kept = facts.published_unchanged
    parts.append(
        paragraph(
            f"The publisher declared these columns public, and they are published unchanged: "
            f"{list_words(kept, len(kept))}."
            if kept
            else "No other column is published."
        )
    )
    parts.append(paragraph(f"Row order: {facts.row_order}."))
    return parts


def _missing_words(receipt: Receipt) -> str:
    """Which rows are not here, and that the promise does not cover which they are."""
    codes = ", ".join(f"“{code}”" if code else "an empty cell" for code in receipt.table.missing)
    return (
        f"{receipt.table.missing_rows:,} rows of the confidential table had a code in place of a "
        f"count ({codes}). They are left out whole. The publisher declared public which rows those "
        "are: the promise does not cover it."
    )


def _sums(receipt: Receipt) -> list[str]:
    """The levels of a hierarchy and where their sums are, where there is one."""
    sums = receipt.sums
    if sums is None:
        return []
    level = sums.method.nothing_measured
    rows = [(n, f"{s:,}", f) for n, f, s in zip(sums.names, sums.files, sums.sizes, strict=False)]
    parts = [
        table(["sums by", "how many", "file"], rows, numbers=(1,)),
        paragraph(
            f"Counts add up to the sums of every {level} exactly. Each file also has the unbiased "
            "estimate of every sum before it was rounded, its standard deviation, and an interval "
            "that holds the true sum with a probability of 95%."
        ),
    ]
    if sums.bounds:
        parts.append(
            paragraph(
                f"No count lies above what its row has in the column {sums.bounds}, which "
                "is public. Larger counts, if there were any, were cut to it before anything was "
                "drawn."
            )
        )
    if sums.outside:
        parts.append(paragraph(f"Outside the promise: {sums.outside}.", "warning"))
    return parts


def _range_step(column: ColumnRecord) -> str:
    upper = column.upper
    measured = (
        " The distribution was measured at public thresholds: every count up to 63, then steps "
        f"that grow with the count, up to {upper:,}."
        if column.kind.keeps_distribution and upper > WIDE and column.measures_distribution
        else ""
    )
    if not column.bounded:
        ceiling = f"counts above {upper:,}, if there were any, count as that"
        return f"No upper bound was set; {ceiling}.{measured}"
    return (
        f"The range 0 to {upper} was set from public knowledge; larger counts, if there were any, "
        f"count as {upper} (top-coding).{measured}"
    )
