"""Whole numbers that add up: non-negative, bounded, level by level from the top.

`fit_bounds` moves counts inside groups where one lies above the bound of its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import UsageError
from tallyveil.sums.combine import Combined
from tallyveil.sums.grouping import sum_by

__all__ = [
    "fit_bounds",
    "is_rounded",
    "rank_inside",
    "round_down_levels",
    "round_family",
    "round_total",
    "settle_units",
    "weigh_totals",
]

STEPS = 100
"""Most Newton steps for the multipliers of all families."""

NEAR = 1e-9
"""Relative gap at which real numbers count as adding up; whole units settle the rest."""


def round_down_levels(
    combined: Combined,
    uppers: Sequence[Integers],
    order: Integers,
    last: int,
    total: float | None = None,
) -> tuple[Integers, ...]:
    """Round the levels 0 to `last` so that they add up, within their upper bounds.

    Parameters
    ----------
    combined : Combined
        The estimates.
    uppers : sequence of array of int
        The largest value of every node, which add up as well.
    order : array of int
        A permutation of the rows; ties are broken in this order.
    last : int
        The last level to round.
    total : float, optional
        A better estimate of the grand total.

    Returns
    -------
    tuple of array of int
        One array for each level; children add up to their parents.
    """
    tree = combined.tree
    best = combined.upward[0][0] if total is None else total
    top = round_total(best, int(uppers[0][0]))
    levels = [np.array([top], dtype=np.int64)]
    for level in range(1, last + 1):
        levels.append(
            round_family(
                combined.upward[level],
                combined.spread[level],
                tree.parents[level - 1],
                levels[-1],
                uppers=uppers[level],
                order=order[order < tree.sizes[level]],
            )
        )
    return tuple(levels)


def round_total(estimate: float, upper: int) -> int:
    """Round the grand total to a whole number between 0 and `upper`."""
    return int(np.clip(np.floor(estimate + 0.5), 0, upper))


def weigh_totals(totals: Floats, trees: Sequence[Combined]) -> float:
    """Return the mean of estimates of one grand total, weighted by precision."""
    weights = np.array([1 / max(combined.spread[0][0], 1e-12) for combined in trees])
    return float(totals @ weights / weights.sum())


def round_family(
    target: Floats,
    variance: NDArray[Any],
    parents: Integers,
    totals: Integers,
    *,
    uppers: Integers,
    order: Integers,
) -> Integers:
    """Round children near their targets so that they add up to their parents' totals.

    The real numbers that minimise sum (x - target)^2 / variance over 0 <= x <= upper with
    these sums, cut to whole numbers; the remaining units go to the largest remainders. So
    every child is within one of the best real number.

    Parameters
    ----------
    target, variance : array of float, shape (children,)
        The value that each child should have, and its variance.
    parents : array of int, shape (children,)
        Every child's parent.
    totals : array of int
        Every parent's total, between 0 and the sum of its children's upper bounds.
    uppers : array of int, shape (children,)
        The largest value of each child.
    order : array of int
        A permutation of the children that breaks ties.

    Returns
    -------
    array of int, shape (children,)
        Whole numbers in 0..upper that add up.

    Examples
    --------
    >>> target, family = np.array([2.6, -1.0, 1.9]), np.zeros(3, dtype=np.int64)
    >>> bounds = {"uppers": np.array([9, 9, 9]), "order": np.arange(3)}
    >>> round_family(target, np.ones(3), family, np.array([4]), **bounds).tolist()
    [2, 0, 2]
    """
    room = sum_by(parents, uppers, len(totals))
    if bool((totals < 0).any()) or bool((totals > room).any()):
        raise UsageError("A total lies outside what its parts can add up to.")
    real = _fill(target, variance, parents, totals, uppers)
    rounded = np.floor(real + 1e-7).astype(np.int64)
    np.clip(rounded, 0, uppers, out=rounded)
    return settle_units(rounded, real, parents, totals, uppers=uppers, order=order)


def is_rounded(
    rounded: Integers,
    target: Floats,
    variance: NDArray[Any],
    parents: Integers,
    *,
    uppers: Integers,
    off: float,
) -> bool:
    """Return True if `round_family` could have made these children.

    Targets may be wrong by `off`. The best real numbers are worked out again. Targets may all be
    moved along the variances, which changes none of them: what a parent learnt from elsewhere
    does not matter.

    >>> family = np.zeros(3, dtype=np.int64)
    >>> rest = {"uppers": np.array([9, 9, 9]), "off": 0.001}
    >>> target, spread = np.array([2.6, -1.0, 1.9]), np.ones(3)
    >>> [is_rounded(np.array(x), target, spread, family, **rest) for x in ([2, 0, 2], [0, 0, 4])]
    [True, False]
    """
    totals = sum_by(parents, rounded, int(parents.max()) + 1).astype(np.int64)
    real = _fill(target, variance, parents, totals, uppers)
    slack = off * (1 + np.bincount(parents)) + 4 * NEAR * (1 + totals)
    return bool((np.abs(rounded - real) <= 1 + slack[parents]).all())


def settle_units(
    values: Integers,
    target: Floats,
    parents: Integers,
    totals: Integers,
    *,
    uppers: Integers,
    order: Integers,
) -> Integers:
    """Move children by single units, those furthest from their targets first, until sums hold."""
    values = values.copy()
    while True:
        gap = (totals - sum_by(parents, values, len(totals))).astype(np.int64)
        if not gap.any():
            return values
        for sign in (1, -1):
            can = values < uppers if sign > 0 else values > 0
            chosen = order[(can & (sign * gap[parents] > 0))[order]]
            if len(chosen):
                lack = sign * (target[chosen] - values[chosen])
                chosen = chosen[np.lexsort((-lack, parents[chosen]))]
                _move_units(values, chosen, sign * gap, sign=sign, parents=parents, uppers=uppers)


def _move_units(
    values: Integers,
    chosen: Integers,
    gaps: Integers,
    *,
    sign: int,
    parents: Integers,
    uppers: Integers,
) -> None:
    """Move the chosen children, in their order, by a fair part of the gaps of their parents."""
    families = parents[chosen]
    lacking = gaps[families]
    equal_part = np.maximum(lacking // np.bincount(families)[families], 1)
    room = uppers[chosen] - values[chosen] if sign > 0 else values[chosen]
    first = rank_inside(families) < lacking
    values[chosen[first]] += sign * np.minimum(equal_part, room)[first]


def rank_inside(groups: Integers) -> Integers:
    """Return the place of each entry inside its run of equal entries.

    >>> rank_inside(np.array([3, 3, 5, 5, 5])).tolist()
    [0, 1, 0, 1, 2]
    """
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    lengths = np.diff(np.append(starts, len(groups)))
    ranks: Integers = np.arange(len(groups)) - np.repeat(starts, lengths)
    return ranks


def _fill(
    target: Floats, variance: NDArray[Any], parents: Integers, totals: Integers, uppers: Integers
) -> Floats:
    """Find the x = clip(target + m variance, 0, upper) that add up, m for all parents at once.

    Newton steps on the piecewise linear sum, inside a bracket; families that add up are left
    alone. Children that are known exactly do not move while another one can.
    """
    size = len(totals)
    widest = float(np.max(variance))
    moving = np.maximum(variance, 1e-12 * widest) if widest > 0 else np.ones(len(target))
    multiplier = np.zeros(size)
    low, high = _bracket(target, moving, parents, totals, uppers)
    active, children = np.arange(size), np.arange(len(target))
    local = parents
    real = np.clip(target, 0, uppers).astype(float)
    for _ in range(STEPS):
        x = real[children]
        gap = (totals - sum_by(parents, real, size))[active]
        wrong = np.abs(gap) > NEAR * (1 + totals[active])
        if not wrong.any():
            break
        keep = np.zeros(size, dtype=bool)
        keep[active[wrong]] = True
        if not wrong.all():
            inside = keep[local]
            children, local, x = children[inside], local[inside], x[inside]
            active, gap = active[wrong], gap[wrong]
        low[active] = np.where(gap > 0, multiplier[active], low[active])
        high[active] = np.where(gap < 0, multiplier[active], high[active])
        free = (x > 0) & (x < uppers[children])
        slope = np.bincount(local, weights=moving[children] * free, minlength=size)[active]
        with np.errstate(divide="ignore", invalid="ignore"):
            step = multiplier[active] + gap / slope
        middle = (low[active] + high[active]) / 2
        good = np.isfinite(step) & (step > low[active]) & (step < high[active])
        multiplier[active] = np.where(good, step, middle)
        moved = target[children] + multiplier[local] * moving[children]
        real[children] = np.clip(moved, 0, uppers[children])
    return real


def _bracket(
    target: Floats, moving: Floats, parents: Integers, totals: Integers, uppers: Integers
) -> tuple[Floats, Floats]:
    """Return multipliers that put every child at 0, and that put every one at its bound."""
    low, high = np.zeros(len(totals)), np.zeros(len(totals))
    np.minimum.at(low, parents, -target / moving)
    np.maximum.at(high, parents, (np.minimum(uppers, totals[parents]) - target) / moving)
    return low - 1, high + 1


def fit_bounds(
    counts: Integers,
    expected: Floats,
    groups: Integers,
    totals: Integers,
    *,
    bounds: Integers,
    order: Integers,
) -> Integers:
    """Move counts to other rows of their groups so that none lies above its row's bound.

    From the largest count down, each goes to the row that is expected to be largest among the
    rows that can hold it. A count that no row of its group can hold is cut, and the excess goes to
    other rows of the group in single units. Post-processing of private draws.

    Parameters
    ----------
    counts : array of int, shape (rows,)
        The counts, whose groups have their totals.
    expected : array of float, shape (rows,)
        The expected count of each row.
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
    """Match counts of one group to its rows, given in the order of their expected counts.

    Rows that can hold a count can hold every smaller one, so no other matching places more.
    """
    widest = sorted(range(len(bounds)), key=lambda row: -bounds[row])
    fitted, opened = [0] * len(bounds), 0
    able: list[int] = []
    unplaced: list[int] = []
    for count in sorted(counts, reverse=True):
        while opened < len(widest) and bounds[widest[opened]] >= count:
            heappush(able, widest[opened])
            opened += 1
        if able:
            fitted[heappop(able)] = count
        else:
            unplaced.append(count)
    rest = sorted([*able, *widest[opened:]], key=lambda row: -bounds[row])
    for row, count in zip(rest, unplaced, strict=True):
        fitted[row] = min(count, bounds[row])
    return fitted
