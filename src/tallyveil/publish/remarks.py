"""What a publisher should know before anything is spent, and an error would be too much for.

Remarks are for the publisher's eyes: some depend on confidential values.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from tallyveil.plans.plan import WIDEST_STAIRCASE
from tallyveil.plans.prepared import Prepared
from tallyveil.plans.sum_files import describe_alone
from tallyveil.publish.preview import remark_on_cost
from tallyveil.request.hierarchy import count_alone
from tallyveil.request.ranges import NO_UPPER
from tallyveil.tables.labels import find_formulas
from tallyveil.tables.microdata import sorted_order
from tallyveil.tables.table import Table

__all__ = ["list_notes", "list_remarks", "list_unreleased"]

MOST_SHOWN = 6


def list_remarks(prepared: Prepared) -> list[str]:
    """Everything the publisher is told, in sentences."""
    found = (
        _remark_on_missing(prepared),
        _remark_on_order(prepared),
        _remark_on_nested(prepared),
        _remark_on_exact_rows(prepared),
        _remark_on_kept_counts(prepared),
        _remark_on_formulas(prepared),
        _remark_on_epsilon(prepared),
    )
    return [remark for remark in found if remark]


def list_unreleased(prepared: Prepared) -> list[str]:
    """List the columns of the table that stay at home: neither counted nor named as public."""
    released = {*prepared.layout.keep, *prepared.counts}
    return [name for name in prepared.source.names if name not in released]


def list_notes(prepared: Prepared) -> list[str]:
    """All remarks and, for somebody at a screen, what was cut at a bound or is not measured."""
    notes = (
        _note_on_cut(prepared),
        _note_on_sums(prepared),
        _note_on_one_row(prepared),
        _note_on_delta(prepared),
    )
    return [*list_remarks(prepared), *filter(None, notes)]


def _note_on_cut(prepared: Prepared) -> str:
    """Counts above the upper bound, without saying how many."""
    asked = prepared.request.hierarchy
    own = " or 'upper_column'" if asked is not None and asked.bounds else ""
    cut: dict[str, list[str]] = {}
    for column in prepared.request.columns:
        if prepared.counts[column.name].above:
            none = column.upper == NO_UPPER
            bound = f"{NO_UPPER:,}, the largest that is published," if none else f"'upper'{own}"
            cut.setdefault(bound, []).append(column.name)
    said = (
        f"Some counts of {', '.join(names)} lie above {bound} and are cut to it: that part is lost."
        for bound, names in cut.items()
    )
    return " ".join([*said, "How much it is, 'confidential_report' says."]) if cut else ""


def _note_on_one_row(prepared: Prepared) -> str:
    """Columns whose range is too wide for the noise that contributions in one row allow."""
    plans = prepared.plans if prepared.request.unit.one_row else ()
    wide = [plan.name for plan in plans if plan.upper > WIDEST_STAIRCASE]
    if not wide:
        return ""
    return (
        f"unit.spread='one_row' gains nothing for {', '.join(wide)}: the noise that it allows, "
        f"which errs less, needs an 'upper' of at most {WIDEST_STAIRCASE:,}. Plain noise is used."
    )


def _note_on_delta(prepared: Prepared) -> str:
    """A delta that was given and is not spent."""
    unit = prepared.request.unit
    if not unit.separate or unit.delta:
        return ""
    return (
        f"'budget.delta' is not spent: composing {unit.multiplier} rows with it would gain less "
        "than a hundredth of epsilon. Their epsilons are added up."
    )


def _note_on_sums(prepared: Prepared) -> str:
    """Sums that were asked for and get no share of epsilon."""
    asked = prepared.request.hierarchy
    if asked is None or any(len(plan.stages) > 1 for plan in prepared.plans):
        return ""
    sums = "margin" if asked.margins else "level"
    return (
        f"No {sums} is measured by itself: at this epsilon rows that have all of it give sums as "
        "accurately. They are added up, and everything still adds up."
    )


def _remark_on_missing(prepared: Prepared) -> str:
    """Rows that are left out whole because one of their counts is missing."""
    if not prepared.missing:
        return ""
    rows = "1 row has" if prepared.missing == 1 else f"{prepared.missing:,} rows have"
    others = ""
    if len(prepared.counts) > 1:
        others = (
            " They are left out whole, their other counts too: to publish those, release each "
            "column by itself."
        )
    return (
        f"{rows} a code for a missing count and will not be published. Anybody can see which they "
        f"are, so that must be public already.{others}"
    )


def _remark_on_order(prepared: Prepared) -> str:
    """Rows sorted by a confidential count, unless a public column explains the order."""
    layout = prepared.layout
    if layout.grouped or layout.order is not None or prepared.rows < 3:
        return ""
    for name, column in prepared.counts.items():
        before, after = column.values[:-1], column.values[1:]
        is_ordered = bool((after >= before).all() or (after <= before).all())
        if is_ordered and (after != before).any() and not _is_explained(prepared):
            return (
                f"The rows stand in the order of {name!r}, and row order is published. Unless "
                "that order is public, sort the file by public columns first."
            )
    return ""


def _remark_on_nested(prepared: Prepared) -> str:
    """Nested columns that stand the other way round in most rows where they differ."""
    names, counts = prepared.request.nested, prepared.counts
    for small, large in pairwise(names):
        few, many = counts[small].values, counts[large].values
        if (few > many).sum() > (few < many).sum():
            return (
                f"More rows have a {small!r} above {large!r} than below it, but 'counts.nested' "
                "says that none has: name the smallest column first, or most counts are changed. "
                "This is shown only to you; it tells something of confidential counts."
            )
    return ""


def _is_explained(prepared: Prepared) -> bool:
    public = [name for name in prepared.layout.keep if name not in prepared.counts]
    return any((np.diff(sorted_order(prepared.source, [name])) == 1).all() for name in public)


def _remark_on_exact_rows(prepared: Prepared) -> str:
    """Rows whose true counts an invariant gives away."""
    asked, grouping = prepared.request.hierarchy, prepared.request.grouping
    if asked is None or grouping is None:
        return ""
    if not (alone := count_alone(asked, grouping, prepared.request.bounds)):
        return ""
    return (
        f"The exact sums by {asked.exact!r} publish {describe_alone(alone)}. Unless these counts "
        "are public as well, name a coarser level."
    )


def _remark_on_kept_counts(prepared: Prepared) -> str:
    """Whole numbers that go out because all other columns do; running numbers apart."""
    request, source = prepared.request, _look_at(prepared)
    named = {*(request.keep or ()), *request.by, *prepared.counts, *prepared.source.index_names}
    if not request.keep_all or prepared.layout.grouped:
        return ""
    rest = [name for name in prepared.layout.keep if name not in named]
    numbers = [
        name
        for name in rest
        if source.type_of(name) == "integer" and len(source.codes(name).values) < source.rows
    ]
    if not numbers:
        return ""
    return (
        f"Published unchanged, because all other columns are: {_list(numbers)}. They hold whole "
        "numbers: if these count people, protect them with 'count', or name the others in 'keep'."
    )


def _remark_on_formulas(prepared: Prepared) -> str:
    """Cells that a spreadsheet would run as formulas."""
    if prepared.layout.grouped:
        return ""
    kept = [name for name in prepared.layout.keep if name not in prepared.counts]
    found = find_formulas(_look_at(prepared), kept)
    if not found:
        return ""
    return (
        f"Cells of {_list(found)} begin with =, +, - or @, which a spreadsheet runs as a formula. "
        "They are published as they are."
    )


def _remark_on_epsilon(prepared: Prepared) -> str:
    """A cost that protects little."""
    cost = sum((epsilon for _, epsilon in prepared.stages), Fraction(0))
    return remark_on_cost(cost, prepared.delta) or ""


def _look_at(prepared: Prepared) -> Table:
    """The first rows of the table: enough to say what a column holds."""
    return next(iter(prepared.source.batches()), prepared.source)


def _list(names: list[str]) -> str:
    shown = ", ".join(map(repr, names[:MOST_SHOWN]))
    return shown + (f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else "")
