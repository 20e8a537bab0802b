"""Hand counts out again inside groups where one lies above its row's own bound."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.sums.rounding import settle_units

__all__ = ["fit_bounds"]


def fit_bounds(
    counts: Integers,
    expected: Floats,
    groups: Integers,
    totals: Integers,
    *,
    bounds: Integers,
    order: Integers,
) -> Integers:
    """The same counts in other rows of their groups, so that none lies above its row's bound.

    From the largest count down, each goes to the row that is expected to be largest among those
    that can hold it. A count that no row of its group can hold is cut, and what is cut off goes to
    other rows of the group in single units. Post-processing of private draws.

    Parameters
    ----------
    counts : array of int, shape (rows,)
        What was handed out; groups have their totals.
    expected : array of float, shape (rows,)
        What each row is expected to be.
    groups : array of int, shape (rows,)
        Every row's group.
    totals : array of int
        Every group's total, at most the sum of its rows' bounds.
    bounds : array of int, shape (rows,)
        The largest count of each row.
    order : array of int
        A permutation of the rows; breaks ties.

    Returns
    -------
    array of int, shape (rows,)
        Group sums are exact.

    Examples
    --------
    >>> counts, group = np.array([5, 1, 0]), np.zeros(3, dtype=np.int64)
    >>> rest = {"bounds": np.array([2, 9, 9]), "order": np.arange(3)}
    >>> fit_bounds(counts, np.array([4.0, 1.5, 0.2]), group, np.array([6]), **rest).tolist()
    [1, 5, 0]
    """
    above = counts > bounds
    if not above.any():
        return counts
    concerned = np.zeros(len(totals), dtype=bool)
    concerned[groups[above]] = True
    rows = order[concerned[groups[order]]]
    rows = rows[np.lexsort((-expected[rows], groups[rows]))]
    fitted = counts.copy()
    for part in np.split(rows, np.flatnonzero(np.diff(groups[rows])) + 1):
        fitted[part] = _match(counts[part].tolist(), bounds[part].tolist())
    target = np.minimum(expected, bounds)
    return settle_units(fitted, target, groups, totals, uppers=bounds, order=order)


def _match(counts: list[int], bounds: list[int]) -> list[int]:
    """Counts of one group for its rows, which stand in the order of what they are expected to be.

    Rows that can hold a count can hold every smaller one, so no other matching places more.
    """
    widest = sorted(range(len(bounds)), key=lambda row: -bounds[row])
    fitted, at = [0] * len(bounds), 0
    able: list[int] = []
    left: list[int] = []
    for count in sorted(counts, reverse=True):
        while at < len(widest) and bounds[widest[at]] >= count:
            heappush(able, widest[at])
            at += 1
        if able:
            fitted[heappop(able)] = count
        else:
            left.append(count)
    rest = sorted([*able, *widest[at:]], key=lambda row: -bounds[row])
    for row, count in zip(rest, left, strict=True):
        fitted[row] = min(count, bounds[row])
    return fitted
