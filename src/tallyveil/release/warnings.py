"""Warnings for the publisher before anything is spent, of faults that need no error.

Warnings are for the publisher's eyes: some depend on confidential values.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from tallyveil.errors import TableError, numbered
from tallyveil.release.column import NO_UPPER
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.release.methods.sums import describe_alone
from tallyveil.release.page import list_names
from tallyveil.release.plan import ReleasePlan
from tallyveil.release.receipt import LARGE_DELTA, WEAK_EPSILON
from tallyveil.tables.labels import find_formulas
from tallyveil.tables.microdata import sorted_order
from tallyveil.tables.subtotals import find_totals
from tallyveil.tables.table import Table

MOST_SHOWN = 6

MOST_SEARCHED = 100_000
"""Rows of a table whose unreleased labels are searched for a total."""


def list_warnings(plan: ReleasePlan) -> list[str]:
    """List everything a publisher should know, in sentences."""
    warnings = (
        _warn_of_missing(plan),
        _warn_of_total(plan),
        _warn_of_order(plan),
        _warn_of_nested(plan),
        _warn_of_exact_rows(plan),
        _warn_of_kept_counts(plan),
        _warn_of_formulas(plan),
        warn_of_cost(sum((epsilon for _, epsilon in plan.charges), Fraction(0)), plan.delta),
        _warn_of_cut(plan),
        plan.columns[0].method.note(plan.columns),
        _warn_of_idle_delta(plan),
    )
    return [warning for warning in warnings if warning]


def list_unreleased(plan: ReleasePlan) -> list[str]:
    """List the columns of the table that are not released: neither counted nor public."""
    released = {*plan.layout.keep, *plan.counts}
    return [name for name in plan.source.names if name not in released]


def warn_of_cost(cost: Fraction, delta: Fraction = Fraction(0)) -> str | None:
    """Warn of a cost, or a delta, that protects little; None for any other."""
    if delta > LARGE_DELTA:
        return (
            f"Delta {float(delta):g} protects little: with that chance the promise may fail. A "
            "usual choice is far below one in the number of people, such as 1e-6."
        )
    if cost <= WEAK_EPSILON:
        return None
    return f"Epsilon {float(cost):g} protects little: most releases use 1 or less in total."


def _warn_of_cut(plan: ReleasePlan) -> str:
    """Warn of counts above the upper bound, without saying how many."""
    bounds = " or 'upper_column'" if plan.method.upper_column else ""
    cut: dict[str, list[str]] = {}
    for column in plan.request.columns:
        if plan.counts[column.name].above:
            none = column.upper == NO_UPPER
            bound = f"{NO_UPPER:,}, the largest released count," if none else f"'upper'{bounds}"
            cut.setdefault(bound, []).append(column.name)
    notes = (
        f"Some values of {', '.join(names)} exceed {bound} and are top-coded."
        for bound, names in cut.items()
    )
    return " ".join([*notes, "Use 'confidential_report' to see how much."]) if cut else ""


def _warn_of_idle_delta(plan: ReleasePlan) -> str:
    """Warn of a delta that was given and is not spent."""
    unit = plan.request.unit
    if not unit.separate or unit.delta:
        return ""
    return (
        f"'budget.delta' is not spent: composing {unit.multiplier} rows with it would gain less "
        "than a hundredth of epsilon. Their epsilons are added up."
    )


def _warn_of_missing(plan: ReleasePlan) -> str:
    """Warn of rows that are left out because one of their counts is missing."""
    if not plan.missing:
        return ""
    rows = f"{numbered(plan.missing, 'row')} {'has' if plan.missing == 1 else 'have'}"
    others = ""
    if len(plan.counts) > 1:
        others = (
            " They are left out whole, their other counts too: to publish those, release each "
            "column by itself."
        )
    return (
        f"{rows} a code for a missing count and will not be published. Anybody can see which they "
        f"are, so that must be public already.{others}"
    )


def _warn_of_total(plan: ReleasePlan) -> str:
    """Warn of a row that an unreleased column, or the lack of labels, shows to be a total."""
    allowed = plan.layout.grouped or plan.request.options.counts.allow_totals
    if allowed or not 2 < plan.rows <= MOST_SEARCHED:
        return ""
    name = _find_private_total(plan)
    if not name and not _ends_bare(plan):
        return ""
    what = (
        f"A label of {name!r} looks like that of a total" if name else "The last row has no label"
    )
    return (
        f"{what}, and this row is released. If it counts others again, remove it: everybody in it "
        "is protected less than the guarantee says."
    )


def _find_private_total(plan: ReleasePlan) -> str:
    """Return a column that is not released and has a label like a total's; that is not quoted."""
    try:
        totals = find_totals(plan.source, list_unreleased(plan))
    except TableError:  # it may hold anything, such as formulas
        return ""
    return next((name for name, (total, _) in totals.items() if total is not None), "")


def _ends_bare(plan: ReleasePlan) -> bool:
    """Return whether the last row, and no other, has no public label."""
    public = [name for name in plan.layout.keep if name not in plan.counts]
    last = plan.source.slice(plan.rows - 1, plan.rows)
    if not public or any(text.strip() for name in public for text in last.labels(name)):
        return False
    labels = zip(*(plan.source.labels(name) for name in public), strict=True)
    return sum(not "".join(row).strip() for row in labels) == 1


def _warn_of_order(plan: ReleasePlan) -> str:
    """Warn of rows sorted by a confidential count, unless a public column explains the order."""
    layout = plan.layout
    if layout.grouped or layout.order is not None or plan.rows < 3:
        return ""
    for name, column in plan.counts.items():
        before, after = column.values[:-1], column.values[1:]
        is_ordered = bool((after >= before).all() or (after <= before).all())
        if is_ordered and (after != before).any() and not _is_explained(plan):
            return (
                f"The rows are in the order of {name!r}, and row order is published. Unless "
                "that order is public, sort the file by public columns first."
            )
    return ""


def _warn_of_nested(plan: ReleasePlan) -> str:
    """Warn of nested columns in the wrong order in most rows where they differ."""
    names, counts = plan.request.nested, plan.counts
    for small, large in pairwise(names):
        few, many = counts[small].values, counts[large].values
        if (few > many).sum() > (few < many).sum():
            return (
                f"More rows have a {small!r} above {large!r} than below it, but 'counts.nested' "
                "says that none has: name the smallest column first, or most counts are changed. "
                "This is shown only to you; it tells something of confidential counts."
            )
    return ""


def _is_explained(plan: ReleasePlan) -> bool:
    public = [name for name in plan.layout.keep if name not in plan.counts]
    return any((np.diff(sorted_order(plan.source, [name])) == 1).all() for name in public)


def _warn_of_exact_rows(plan: ReleasePlan) -> str:
    """Warn of rows whose true counts an invariant gives away."""
    sums, method = plan.sums, plan.method
    if sums is None or not isinstance(method, Hierarchy) or not sums.exact_rows:
        return ""
    alone = describe_alone(sums.exact_rows)
    return (
        f"The exact sums by {method.invariant!r} publish {alone}. Unless these "
        "counts are public as well, name a coarser level."
    )


def _warn_of_kept_counts(plan: ReleasePlan) -> str:
    """Warn of whole numbers that are released because all other columns are."""
    request, source = plan.request, _look_at(plan)
    if not request.keep_all or plan.layout.grouped:
        return ""
    keys = {*request.by, *request.method.public_columns, *source.index_names}
    names = [name for name in plan.layout.keep if name not in {*keys, *plan.counts}]
    numbers = [name for name in names if source.type_of(name) == "integer"]
    if not numbers:
        return ""
    it = "it counts" if len(numbers) == 1 else "one of them counts"
    return (
        f"keep='all' releases {list_names(numbers, MOST_SHOWN)} unchanged. If {it} people, use "
        "'count', or name the others with 'keep'."
    )


def _warn_of_formulas(plan: ReleasePlan) -> str:
    """Warn of cells that a spreadsheet would run as formulas."""
    if plan.layout.grouped:
        return ""
    names = [name for name in plan.layout.keep if name not in plan.counts]
    formulas = find_formulas(_look_at(plan), names)
    if not formulas:
        return ""
    return (
        f"Cells of {_list(formulas)} begin with =, +, - or @, which a spreadsheet runs as a "
        "formula. They are published as they are."
    )


def _look_at(plan: ReleasePlan) -> Table:
    """Take the first rows of the public columns: enough to tell what they hold."""
    names = [name for name in plan.layout.keep if name not in plan.counts]
    return next(iter(plan.source.batches(names)), plan.source) if names else plan.source


def _list(names: list[str]) -> str:
    return list_names([repr(name) for name in names], MOST_SHOWN)
