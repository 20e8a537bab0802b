"""Whole numbers that add up, and counts with a given distribution that meet the groups' totals.

`round_down_levels` rounds sums to whole numbers, non-negative and bounded, level by level from the
top. `fit_bounds` moves counts inside groups where one lies above the bound of its row. `hand_out`
assigns counts with a given distribution so that every group has its total.

All of it is post-processing of private draws. Rows are ranked by what they are expected to be,
shifted by one number for each group, and get the distribution's counts in that order; the shifts
are found so that groups add up to their totals. Among all tables with this distribution and these
totals none is nearer to the expectations in squared error.

Scores are cut at given ranks without sorting them all. They fall into narrow buckets in the order
of the scores. A bucket that holds no cut lies between two cuts as a whole; only what is in the
others is sorted and compared. The result is that of a stable sort, to the last bit, in linear time
unless most scores are nearly alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import UsageError
from tallyveil.mechanisms.geometric import sum_both_sides
from tallyveil.sums.combine import Combined
from tallyveil.sums.grouping import sum_by

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


FEWEST_BITS, MOST_BITS = 2, 12
"""Buckets between a number and its double, as a power of two; more where there are more scores."""


class Cuts:
    """Scores in rising order, equal ones by row, cut into runs at given ranks.

    Parameters
    ----------
    scores : array of float, shape (rows,)
        Finite numbers.
    ends : array of int
        The number of scores before each cut, rising strictly, in 1..rows-1.

    Examples
    --------
    >>> cuts = Cuts(np.array([5.0, 1.0, 2.0, 2.0]), np.array([1, 2]))
    >>> cuts.limits.tolist(), cuts.runs.tolist()
    ([1.0, 2.0], [2, 0, 1, 2])
    >>> cuts.count_below(np.array([0.5, 2.0, 2.5])).tolist()
    [0, 1, 2]
    """

    limits: Floats
    """The last score before each cut."""

    def __init__(self, scores: Floats, ends: Integers) -> None:
        self._scores, self._ends, self._least = scores, ends, scores.min()
        self._bits = min(max(len(scores).bit_length() - 6, FEWEST_BITS), MOST_BITS)
        self._buckets = self._find_buckets(scores)
        held = np.bincount(self._buckets)
        cut = np.searchsorted(np.cumsum(held), ends - 1, side="right")
        self._is_cut = np.zeros(len(held), dtype=bool)
        self._is_cut[cut] = True
        self._cuts_below = np.cumsum(np.bincount(cut + 1, minlength=len(held)))
        left_out = np.cumsum(np.where(self._is_cut, 0, held))
        near = np.sort(scores[self._is_cut[self._buckets]])
        self.limits = near[ends - 1 - left_out[cut]]

    def _find_buckets(self, values: Floats) -> Integers:
        """Return the bucket of each value: exponent and leading bits above the least."""
        shifted = np.maximum(values - self._least, 0.0)
        shifted += 1.0  # all of one sign, so that their bits are in their order
        bits: Integers = shifted.view(np.int64)
        bits >>= 52 - self._bits
        bits -= 1023 << self._bits
        return bits

    def count_below(self, values: Floats) -> Integers:
        """Return the number of limits below each value."""
        return self._count(values, self._find_buckets(values))

    def _count(self, values: Floats, buckets: Integers) -> Integers:
        """Return the number of limits below each value, whose bucket is known."""
        counts: Integers = np.take(self._cuts_below, buckets, mode="clip")
        near = np.flatnonzero(np.take(self._is_cut, buckets, mode="clip"))
        counts[near] = np.searchsorted(self.limits, values[near])
        return counts

    @cached_property
    def below(self) -> Integers:
        """The number of limits below each score: its run, unless it equals a limit."""
        return self._count(self._scores, self._buckets)

    @cached_property
    def runs(self) -> Integers:
        """The run of each score."""
        below, ends = self.below, self._ends
        reached = np.cumsum(np.bincount(below, minlength=len(ends) + 1))[:-1]
        split = reached > ends
        if not split.any():
            return below
        next_limit = np.minimum(below, len(ends) - 1)
        rows = np.flatnonzero(split[next_limit] & (self._scores == self.limits[next_limit]))
        rows = rows[np.argsort(below[rows], kind="stable")]
        limit = below[rows]
        first = reached - np.bincount(limit, minlength=len(ends))
        runs = below.copy()
        runs[rows] = np.searchsorted(ends, first[limit] + rank_inside(limit), side="right")
        return runs


TILTS = np.concatenate([-np.geomspace(12, 0.05, 20), [0.0], np.geomspace(0.05, 8, 20)])
"""How strongly a group's counts may lie below or above those of the whole table: (1 + j)^tilt."""

LARGEST_TILTED = 20_000
"""Up to this many possible counts each group has its tilt; beyond, they share one expectation."""

TIE_WIDTH = 0.01
"""How far rows with equal expectations are spread, in standard deviations of their counts."""

ROUNDS = 24
"""Most steps of the groups' shifts."""


def tilt_to_total(distribution: Floats, records: int, total: int) -> Integers:
    """Return a histogram near `records` times the distribution with counts that sum to `total`.

    Weights (1 + j)^b with the right b, rounded; single rows settle what rounding left.

    >>> tilt_to_total(np.array([0.5, 0.25, 0.25]), 8, 8).tolist()
    [3, 2, 3]
    """
    size = len(distribution)
    counts = np.arange(size)
    low, high = -60.0, 60.0
    for _ in range(90):
        middle = (low + high) / 2
        shares = _tilt(distribution, middle)
        low, high = (middle, high) if records * (shares @ counts) < total else (low, middle)
    steps = np.floor(records * np.cumsum(shares)[:-1] + 0.5).astype(np.int64)
    values = np.searchsorted(np.clip(steps, 0, records), np.arange(records), side="right")
    return np.bincount(_settle_total(values, total, size - 1), minlength=size)


def _settle_total(values: Integers, total: int, upper: int) -> Integers:
    """Move rows, evenly spread over the distribution, by units until they sum to `total`."""
    values = values.copy()
    while gap := total - int(values.sum()):
        can = np.flatnonzero(values < upper if gap > 0 else values > 0)
        some = min(abs(gap), len(can))
        chosen = can[(np.arange(some) * len(can) + len(can) // 2) // some]
        values[chosen] += 1 if gap > 0 else -1
    return values


def expect_counts(
    draws: Integers,
    distribution: Floats,
    epsilon: float,
    groups: Integers,
    totals: Integers,
    *,
    ties: Integers,
) -> Floats:
    """Return the expected count of each row, from its draw and its group's total.

    In every group the distribution of the table is tilted by (1 + j)^b so that expectations add up
    to the total; E[count | draw] follows from the geometric noise. Rows with equal draws are spread
    between their neighbours' expectations in the order `ties`, so that none share a score.

    Parameters
    ----------
    draws : array of int, shape (rows,)
        Noisy counts, clamped to 0..size-1.
    distribution : array of float, shape (size,)
        The share of each count in the whole table.
    epsilon : float
        The epsilon of the draws.
    groups : array of int, shape (rows,)
        Every row's group.
    totals : array of int
        Every group's total.
    ties : array of int, shape (rows,)
        A random permutation of the rows.

    Returns
    -------
    array of float, shape (rows,)
        The expectations.
    """
    size = len(distribution)
    tilts = TILTS if size <= LARGEST_TILTED else np.zeros(1)
    tables = np.array([_expect(_tilt(distribution, tilt), epsilon) for tilt in tilts])
    sums = (sum_by(groups, table[draws], len(totals)) for table in tables)
    after, part = _locate(sums, totals)
    place = _spread_ties(draws, ties, size)
    cell = np.minimum(place.astype(np.int64), max(size - 2, 0))
    rest = place - cell
    next_cell = np.minimum(cell + 1, size - 1)
    expected = np.zeros(len(draws))
    for which, weight in ((after - 1, 1 - part), (after, part)):
        row, share = np.maximum(which, 0)[groups], weight[groups]
        expected += share * (tables[row, cell] * (1 - rest) + tables[row, next_cell] * rest)
    apart = TIE_WIDTH * _expect_spread(_tilt(distribution, 0.0), epsilon)
    return expected + apart[draws] * ties / len(draws)


def expect_alone(draws: Integers, distribution: Floats, epsilon: float) -> Floats:
    """Return the expected count of each row, from its draw and the distribution alone."""
    expected: Floats = _expect(_tilt(distribution, 0.0), epsilon)[draws]
    return expected


def _spread_ties(draws: Integers, ties: Integers, size: int) -> Floats:
    """Return places within half a count of the draws, no two alike, in 0..size-1."""
    along = (ties + 0.5) / len(draws)
    low = np.maximum(draws - 0.5, 0)
    high = np.minimum(draws + 0.5, size - 1)
    places: Floats = low + along * (high - low)
    return places


def hand_out(
    expected: Floats,
    histogram: Integers,
    groups: Integers,
    totals: Integers,
    order: Integers,
) -> Integers:
    """Assign counts with this histogram to rows, each group adding up to its total.

    Parameters
    ----------
    expected : array of float, shape (rows,)
        What each row is expected to be.
    histogram : array of int, shape (size,)
        The number of rows that get each count; its counts sum to the totals' sum.
    groups : array of int, shape (rows,)
        Every row's group.
    totals : array of int
        Every group's total, reachable with counts of 0..size-1.
    order : array of int, shape (rows,)
        A random permutation; breaks ties.

    Returns
    -------
    array of int, shape (rows,)
        Group sums are exact; the histogram is met but for the few units that no shift could place.

    Examples
    --------
    >>> expected, groups = np.array([0.1, 2.2, 1.9, 3.0]), np.array([0, 0, 1, 1])
    >>> hand_out(expected, np.array([1, 1, 1, 1]), groups, np.array([3, 3]), np.arange(4)).tolist()
    [0, 3, 1, 2]
    """
    present = np.flatnonzero(histogram)
    ends, worth = np.cumsum(histogram[present])[:-1], present.astype(float)
    size = len(totals)
    shift, damping, last = np.zeros(size), np.ones(size), np.zeros(size)
    best, best_runs, best_shift = np.inf, groups, shift
    for _ in range(ROUNDS):
        score = expected + shift[groups]
        cuts = Cuts(score, ends)
        gap = totals - sum_by(groups, worth[cuts.runs], size)
        miss = float(np.abs(gap).sum())
        if miss < best:
            best, best_runs, best_shift = miss, cuts.runs, shift
        if miss == 0:
            break
        damping = np.where(gap * last < 0, damping / 2, np.minimum(1.2 * damping, 1))
        last = gap
        slope = _measure_slope(score, cuts, worth, groups, gap)
        shift = shift + damping * 0.8 * gap / slope
    uppers = np.full(len(groups), len(histogram) - 1)
    target = expected + best_shift[groups]
    return settle_units(present[best_runs], target, groups, totals, uppers=uppers, order=order)


def _measure_slope(
    score: Floats, cuts: Cuts, worth: Floats, groups: Integers, gap: Floats
) -> Floats:
    """Return the change of a group's sum when its scores move, ranks of the others fixed.

    `worth` is the count of every run of the scores.
    """
    members = np.maximum(np.bincount(groups, minlength=len(gap)), 1)
    step = np.sign(gap) * np.maximum(np.abs(gap) / members, 0.05)
    step[gap == 0] = 0.05
    moved = worth[cuts.count_below(score + step[groups])]
    moved -= worth[cuts.below]
    slope: Floats = np.maximum(sum_by(groups, moved, len(gap)) / step, 0.3 * members)
    return slope


def _tilt(distribution: Floats, tilt: float) -> Floats:
    """Return the distribution times (1 + j)^tilt, summing to one."""
    small = np.maximum(distribution, 1e-12 / len(distribution))
    log = np.log(small) + tilt * np.log1p(np.arange(len(small)))
    weights = np.exp(log - log.max())
    shares: Floats = weights / weights.sum()
    return shares


def _expect(distribution: Floats, epsilon: float) -> Floats:
    """Return E[count | draw] for every clamped draw, shape (size,); it never falls."""
    counts = np.arange(len(distribution))
    weight = np.maximum(sum_both_sides(distribution, epsilon), 1e-300)
    mean = sum_both_sides(distribution * counts, epsilon) / weight
    risen: Floats = np.maximum.accumulate(mean)
    return risen


def _expect_spread(distribution: Floats, epsilon: float) -> Floats:
    """Return the standard deviation of a count given its draw, shape (size,)."""
    counts = np.arange(len(distribution))
    weight = np.maximum(sum_both_sides(distribution, epsilon), 1e-300)
    square = sum_both_sides(distribution * counts**2.0, epsilon) / weight
    spread: Floats = np.sqrt(np.maximum(square - _expect(distribution, epsilon) ** 2, 0))
    return spread


def _locate(sums: Iterable[Floats], totals: Integers) -> tuple[Integers, Floats]:
    """Find the two tilts that each group's total lies between, and how far along.

    `sums` are those of the groups, tilt by tilt; where they fall they count as level. Only two are
    in memory at a time: there may be many groups.
    """
    after = np.zeros(len(totals), dtype=np.int64)
    risen = low = high = np.empty(0)
    for tilt, tilted in enumerate(sums):
        if tilt == 0:
            risen = low = high = tilted
            continue
        before, risen = risen, np.maximum(risen, tilted)
        passed = (before < totals) | (tilt == 1)
        after[passed] = tilt
        low, high = np.where(passed, before, low), np.where(passed, risen, high)
    part = np.clip((totals - low) / np.maximum(high - low, 1e-12), 0, 1)
    return after, part
