"""Check estimates before rounding: the published sums are the whole numbers that follow from them.

What a level was measured to be is not published, so its estimates cannot be worked out again. But
rounding can: it leaves a forger of estimates no more room than it takes itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.documents.records import ColumnRecord
from tallyveil.plans.group_totals import MeasuredTree, list_trees
from tallyveil.publish.reopen import require
from tallyveil.request.hierarchy import HierarchyRequest, split_levels
from tallyveil.sums.grouping import Grouping, Margins
from tallyveil.sums.rounding import is_rounded, weigh_totals

__all__ = ["FARTHEST", "ROUND_OFF", "require_rounded"]

ROUND_OFF = 0.0006
"""How far a printed estimate may be from the sum of printed ones, for each that is added."""

FARTHEST = 60
"""So many standard deviations and as many units: farther goes less than one of 10^25 draws."""


def require_rounded(
    asked: HierarchyRequest,
    grouping: Grouping,
    column: ColumnRecord,
    *,
    stated: Sequence[Floats],
    fitted: Sequence[Integers],
    bounds: Integers,
) -> None:
    """Raise a `PackageError` unless sums follow from the estimates that are stated beside them.

    Parameters
    ----------
    asked, grouping, column : HierarchyRequest, Grouping, ColumnRecord
        The sums, the groups of the data, and the column.
    stated, fitted : sequence of array
        For each file the estimates, and the whole numbers that rows were fitted to.
    bounds : array of int, shape (rows,)
        The largest count of every row.
    """
    part, trees = grouping.part, list_trees(asked, grouping, column.epsilon, column.upper)
    known = [grouping.take(*one) for one in enumerate(stated)]
    whole = [grouping.take(*one) for one in enumerate(fitted)]
    most = part.sum_up(grouping.take(len(part.sizes) - 1, bounds))
    levels = [(one.combined, at) for one in trees for at in one.levels]
    for (one, at), own, sums, uppers in zip(levels, known, whole, most, strict=False):
        far = FARTHEST * (1 + np.sqrt(np.maximum(one.variances[at], 0)))
        inside = bool(((-far <= own) & (own <= uppers + far)).all())
        require(inside, f"an estimate of {column.name} is one that no noise gives")
        if at:
            parents = one.tree.parents[at - 1]
            fits = is_rounded(sums, own, one.spread[at], parents, uppers=uppers, off=ROUND_OFF)
            require(fits, f"sums of {column.name} do not follow from the stated estimates")
    tops = whole if isinstance(part, Margins) else whole[:1]
    require(len({int(top.sum()) for top in tops}) == 1, "the margins have different totals")
    total, best = int(tops[0].sum()), _find_total(asked, grouping, column, trees, known)
    if best is not None:
        slack = 0.5 + ROUND_OFF * (1 + max(map(len, tops))) + 1e-14 * total
        near = abs(total - min(max(best, 0), int(most[0].sum()))) <= slack
        require(near, f"the total of {column.name} does not follow from the stated estimates")


def _find_total(
    asked: HierarchyRequest,
    grouping: Grouping,
    column: ColumnRecord,
    trees: Sequence[MeasuredTree],
    known: Sequence[Floats],
) -> float | None:
    """The estimated grand total, or None where the rows' distribution gave a better one."""
    if isinstance(grouping.part, Margins):
        totals = np.array([own.sum() for own in known])
        return weigh_totals(totals, [one.combined for one in trees])
    budget = split_levels(asked, grouping.part.sizes, column.epsilon, column.upper)
    if asked.exact_level < 0 and budget.only_rows:
        return None
    return float(known[0][0])
