"""Sums of true counts from published ones: an estimate and an interval for every method.

Each adder is made from what was certified and published, and adds any rows that public facts
choose. `low` and `high` cover the true sum (of counts cut at the upper bound) at least as often
as their confidence says.

In a release that adds up, a group that is made of whole nodes of a level is the sum of their
estimates; the tree's covariances give its variance and the exact distribution of its noise. Where
the rows' own draws are published as well, rows have estimates too, and any group can be added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.certified.base import Certified
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedGeometric, CertifiedNoise
from tallyveil.errors import ArgumentError, InfeasibleError, UsageError
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import (
    geometric_rate,
    measure_errors,
    noise_variance,
    output_factors,
    sum_both_sides,
)
from tallyveil.reading.posterior import confidence_sets
from tallyveil.reading.unbiased import (
    Estimate,
    UnbiasedEstimator,
    bound_reach,
    measure_tails,
    reach_of_sum,
    unbiased,
)
from tallyveil.release.column import Matching
from tallyveil.sums.combine import (
    Combined,
    Measurement,
    find_half_width,
    find_half_widths,
    join_totals,
)
from tallyveil.sums.grouping import sum_by
from tallyveil.tables.table import Table, read_signed

if TYPE_CHECKING:
    from tallyveil.release.receipt import ColumnRecord, Receipt

FEW_ROWS = 50
"""Below this many rows a sum of unknown errors is bounded, not taken for normal."""

WIDEST = 2 * 10**7
"""Up to this count the errors of matched counts are worked out one by one."""

SMALL_SYSTEM = 300
"""Most draws and counts with which a matched estimate is solved for as one dense system."""

WEIGHTS = (0.001, 0.01, 0.1, 1.0, 100.0)
"""Weights of the variance of a matched estimate against its bias; the best is taken."""


Times: TypeAlias = Integers | None
"""Rows with each of some published counts; None where every row is listed."""


class Adder(Protocol):
    """A way to add published counts into an estimate of the sum of the true ones."""

    def add(self, published: Integers, confidence: float, times: Times = None) -> Estimate:
        """Estimate the sum for rows with these published counts, at least one.

        With `times`, how many rows have each of them.
        """


def make_adder(certified: Certified, upper: int, matching: Matching | None = None) -> Adder:
    """Make the adder of a column that was drawn from `certified` and then, perhaps, matched."""
    if isinstance(certified, (CertifiedGeometric, CertifiedNoise)):
        plain = GeometricAdder(upper, float(certified.exact_epsilon))
    elif isinstance(certified, (CertifiedAnswers, Ladder)):
        rate = geometric_rate(certified.mechanism)
        if rate is None:
            return MatrixAdder(certified.mechanism)
        plain = GeometricAdder(upper, rate)
    else:
        raise ArgumentError("certified", "answer a count", got=repr(certified))
    return plain if matching is None else MatchedAdder(plain, matching)


@dataclass(frozen=True)
class GeometricAdder:
    """Sums of clamped geometric draws: u = draw inside, a/(1-a) further out at the ends.

    u is the mean of the noisy count before it was clamped, given the draw, so its error is no more
    spread out than the noise itself (Jensen): quantiles of sums of plain noise serve as a bound,
    for as many rows as have the same variance, ends counting half (and a little more, because how
    many rows lie at the ends is random).
    """

    upper: int
    rate: float

    @property
    def variance(self) -> float:
        """The variance of the noise of one row, 2a/(1-a)^2."""
        return noise_variance(self.rate)

    def values(self, draws: Integers) -> Floats:
        """Return the unbiased estimate of each row."""
        beyond = math.exp(-self.rate) / -math.expm1(-self.rate)
        values = draws + beyond * ((draws == self.upper).astype(float) - (draws == 0))
        return np.asarray(values, dtype=float)

    def add(self, published: Integers, confidence: float, times: Times = None) -> Estimate:
        """Add unbiased estimates, with an exact quantile around the sum."""
        rows = _count_rows(published, times)
        ends = int(_sum((published == 0) | (published == self.upper), times))
        value = _sum(self.values(published), times)
        alike = rows - ends / 2
        among = min(rows, math.ceil(alike + math.sqrt(ends) / 2))
        reach = reach_of_sum(among, self.rate, confidence)
        error = math.sqrt(self.variance * alike)
        return make_estimate(value, error, (reach, reach), rows, self.upper)


@dataclass(frozen=True, eq=False)
class MatchedAdder:
    """Sums of counts that were matched to ranks, from their evidence of the draws.

    Pr(published j | true d) = sum_k G[d, k] R[k, j], with R known from the matching. Values w with
    R w close to the unbiased u(k) are chosen by least squares; what is left of R w - u is a bias
    that is bounded for every true count that a row's published count allows, and added to the
    interval. The sum over the whole table needs none of this: all draws are known.
    """

    plain: GeometricAdder
    matching: Matching

    def add(self, published: Integers, confidence: float, times: Times = None) -> Estimate:
        """Return the estimate whose interval is the shortest."""
        rows = _count_rows(published, times)
        if rows == int(self.matching.rows.sum()):
            return self.plain.add(self.matching.draws, confidence, self.matching.rows)
        places = np.searchsorted(self._counts, published)
        shape = reach_of_sum(rows, self.plain.rate, confidence)
        shape /= math.sqrt(rows * self.plain.variance)
        estimates = []
        for values, over, under, variance in self._choices:
            error = math.sqrt(_sum(variance[places], times))
            sides = (
                shape * error + _sum(over[places], times),
                shape * error + _sum(under[places], times),
            )
            value = _sum(values[places], times)
            bias = _sum(np.maximum(over, under)[places], times)
            estimates.append(make_estimate(value, error, sides, rows, self.plain.upper, bias=bias))
        return min(estimates, key=lambda estimate: estimate.high - estimate.low)

    @cached_property
    def _counts(self) -> Integers:
        return np.unique(self.matching.counts)

    @cached_property
    def _choices(self) -> list[tuple[Floats, Floats, Floats, Floats]]:
        """For each weight: values by count, bounds of their bias up and down, and variances."""
        if self.plain.upper > WIDEST:
            raise UsageError(
                f"Parts of a table with counts beyond {WIDEST:,} cannot be added up: give 'upper'."
            )
        matching = self.matching
        draws, row = np.unique(matching.draws, return_inverse=True)
        column = np.searchsorted(self._counts, matching.counts)
        weight = np.bincount(row, matching.rows)
        target = self.plain.values(draws)
        had: Floats = np.bincount(column, matching.rows).astype(np.float64)
        right: Floats = np.bincount(column, matching.rows * target[row]).astype(np.float64)
        shares = matching.rows / weight[row]
        solve = _prepare_solving(shares, row, column, matching.rows)
        choices = []
        for cost in WEIGHTS:
            values = solve(cost * had, right * (1 + cost))
            mean = np.bincount(row, shares * values[column])
            spread = np.bincount(row, shares * values[column] ** 2) - mean**2
            bias, variance = self._errors(draws, mean - target, np.maximum(spread, 0.0))
            choices.append((values, *self._bound(bias, variance)))
        return choices

    def _errors(self, draws: Integers, miss: Floats, spread: Floats) -> tuple[Floats, Floats]:
        """Return bias and variance of one row's value, for every true count 0..upper."""
        size, rate = self.plain.upper + 1, self.plain.rate
        factors, every = output_factors(size, rate), np.arange(size)
        misses, spreads = np.interp(every, draws, miss), np.interp(every, draws, spread)

        def expect(values: Floats) -> Floats:
            return sum_both_sides(factors * values, rate)

        ends = ((every == 0) | (every == size - 1)).astype(float)
        drawn = self.plain.variance * (1 - expect(ends) / 2)
        bias = expect(misses)
        shared = expect(self.plain.values(every) * misses) - every * bias
        return bias, drawn + 2 * shared + expect(misses**2 + spreads) - bias**2

    def _bound(self, bias: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
        """Find the largest of each over the true counts that a published count allows."""
        _, _, reach = measure_errors(self.plain.upper, self.plain.rate, 0.999)
        first, last = self.matching.draws_of(self._counts)
        low, high = reach[first, 0].astype(int), reach[last, 1].astype(int) + 1
        parts = [slice(*ends) for ends in zip(low, high, strict=True)]
        over = np.array([max(0.0, bias[part].max()) for part in parts])
        under = np.array([max(0.0, -bias[part].min()) for part in parts])
        return over, under, np.array([max(0.0, variance[part].max()) for part in parts])


def _prepare_solving(
    shares: Floats, row: Integers, column: Integers, rows: Integers
) -> Callable[[Floats, Floats], Floats]:
    """Prepare to solve (R' W R + diag(more)) w = right, with R the shares by row and column.

    Small systems are solved with NumPy alone: SciPy takes longer to load than they to solve.
    """
    size = int(column.max()) + 1, int(row.max()) + 1
    if max(size) <= SMALL_SYSTEM:
        weighted, plain = np.zeros(size), np.zeros(size)
        np.add.at(weighted, (column, row), rows)
        np.add.at(plain, (column, row), shares)
        dense: Floats = weighted @ plain.T
        return lambda more, right: np.asarray(np.linalg.solve(dense + np.diag(more), right))
    from scipy import sparse
    from scipy.sparse.linalg import spsolve

    counts_by_draw = sparse.csr_array((rows.astype(float), (column, row)), shape=size)
    gram: Any = counts_by_draw @ sparse.csr_array((shares, (column, row)), shape=size).T
    return lambda more, right: np.atleast_1d(
        spsolve((gram + sparse.diags_array(more)).tocsc(), right)
    )


@dataclass(frozen=True, eq=False)
class MatrixAdder:
    """Sums of draws from any matrix, by its unbiased estimator if it has one."""

    mechanism: Mechanism

    def add(self, published: Integers, confidence: float, times: Times = None) -> Estimate:
        """Add unbiased estimates, or the true counts that no row contradicts."""
        upper, rows = len(self.mechanism.matrix) - 1, _count_rows(published, times)
        estimator = self._estimator
        if estimator is None:
            sets = confidence_sets(self.mechanism, 1 - (1 - confidence) / rows)
            low, high = _sum(sets.low[published], times), _sum(sets.high[published], times)
            half = (high - low) / 2
            return make_estimate(low + half, math.nan, (half, half), rows, upper, bias=math.nan)
        value = _sum(estimator.values[published], times)
        error = math.sqrt(max(0.0, _sum(estimator.variance_estimates[published], times)))
        normal = Estimate.normal(value, error, confidence, rows)
        reach = value - normal.low
        if rows < FEW_ROWS:
            reach = max(reach, bound_reach(self._tails, rows, confidence))
        return make_estimate(value, error, (reach, reach), rows, upper)

    @cached_property
    def _estimator(self) -> UnbiasedEstimator | None:
        try:
            return unbiased(self.mechanism)
        except InfeasibleError:
            return None

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        true = np.arange(len(self.mechanism.matrix))[:, None]
        values = np.zeros(1) if self._estimator is None else self._estimator.values
        errors: Floats = values[None, :] - true
        return measure_tails(self.mechanism.matrix, errors)


def _count_rows(published: Integers, times: Times) -> int:
    return len(published) if times is None else int(times.sum())


def _sum(values: NDArray[Any], times: Times) -> float:
    """Add values, each as often as `times` says."""
    return float(values.sum() if times is None else (values * times).sum())


def make_estimate(
    value: float,
    error: float,
    sides: tuple[float, float],
    rows: int,
    upper: int,
    *,
    bias: float = 0.0,
) -> Estimate:
    """Make an estimate between 0 and rows * upper, its interval rounded outwards.

    An unbiased estimate may lie beyond that range: its interval then reaches to it.
    """
    low = min(max(math.floor(value - sides[0]), 0), rows * upper, math.floor(value))
    high = max(min(math.ceil(value + sides[1]), rows * upper), 0, math.ceil(value))
    return Estimate(value, error, float(low), float(high), rows, bias)


@dataclass(frozen=True, eq=False)
class MeasuredTree:
    """A tree of measured sums: variances, what was measured, and the levels that have files."""

    combined: Combined
    measured: Sequence[Measurement]
    levels: Sequence[int]


@dataclass(frozen=True, eq=False)
class GroupTotals:
    """Sums of rows of a column that adds up.

    Attributes
    ----------
    trees : sequence of MeasuredTree
        What was measured.
    stated : sequence of array of float
        The estimates of every file's sums, those of structural zeros left out.
    upper : int
        The largest count of a row.
    draws : array of int, shape (rows,), or None
        The rows' noisy counts, where they are published.
    free : array of bool, shape (all rows,)
        The rows that are not structural zeros, which the trees are of.
    """

    trees: Sequence[MeasuredTree]
    stated: Sequence[Floats]
    upper: int
    draws: Integers | None
    free: Mask

    def add_rows(self, confidence: float, every_tree: bool, rows: Integers) -> Estimate:
        """Estimate the total of some rows; with `every_tree` that of all rows from all trees."""
        inside = np.zeros(len(self.free), dtype=bool)
        inside[rows] = True
        if every_tree and inside.all() and self.free.any():
            return replace(self.add_all(confidence), groups=len(rows))
        if not (inside & self.free).any():
            return Estimate(0, 0, 0, 0, len(rows))
        return replace(self.add(inside[self.free], confidence), groups=len(rows))

    @cached_property
    def _known(self) -> list[dict[int, Floats]]:
        """For each tree, the estimates there are, by level."""
        files = iter(self.stated)
        estimates = [{level: next(files) for level in tree.levels} for tree in self.trees]
        if self.draws is not None:
            for tree, levels in zip(self.trees, estimates, strict=True):
                levels[tree.combined.tree.depth] = self._estimate_rows(tree, levels)
        return estimates

    def add_all(self, confidence: float) -> Estimate:
        """Estimate the total of all rows, as accurately as all trees together have it."""
        rows = self.trees[0].combined.tree.sizes[-1]
        if any(len(tree.measured) < 2 for tree in self.trees) or len(self.trees) < 2:
            return self.add(np.ones(rows, dtype=bool), confidence)
        totals = np.array([float(levels[1].sum()) for levels in self._known])
        trees = [(tree.combined, tree.measured) for tree in self.trees]
        value, deviation, half = join_totals(trees, totals, confidence)
        return make_estimate(value, deviation, (half, half), rows, self.upper)

    def add(self, inside: Mask, confidence: float) -> Estimate:
        """Estimate the total of the rows `inside`, as accurately as any of the trees has it."""
        estimates = [self._add(number, inside, confidence) for number in range(len(self.trees))]
        able = [estimate for estimate in estimates if estimate is not None]
        if not able and inside.sum() == 1:
            raise UsageError(
                "A group of one row has no estimate: rows were fitted to measured sums. Up to an "
                "upper bound of 1,000 read rows without 'by' and 'where'; or release the table "
                "with 'unbiased', which also publishes the rows' own draws."
            )
        if not able:
            raise UsageError(
                "Some of these groups cut through measured groups, and single rows were "
                "fitted to measured sums. Release the table with this grouping as a level of its "
                "hierarchy, or with 'unbiased', which also publishes the rows' own draws."
            )
        return min(able, key=lambda estimate: estimate.standard_error)

    def _add(self, number: int, inside: Mask, confidence: float) -> Estimate | None:
        measured_tree = self.trees[number]
        tree, rows = measured_tree.combined.tree, int(inside.sum())
        for level, estimates in sorted(self._known[number].items()):
            nodes = tree.group_rows(level)
            members = np.bincount(nodes, minlength=tree.sizes[level])
            part = np.bincount(nodes[inside], minlength=tree.sizes[level])
            complete = (part == members) & (members > 0)
            if part[~complete].any():
                continue
            value = float(estimates[complete].sum())
            if level < tree.depth and complete.sum() == 1:  # as its file says
                deviation, half = (x[complete][0] for x in self._halves(number, level, confidence))
            else:
                nodes_of = (
                    measured_tree.combined,
                    measured_tree.measured,
                    level,
                    complete.astype(float),
                )
                deviation, half = find_half_width(*nodes_of, confidence)
            return make_estimate(value, float(deviation), (half, half), rows, self.upper)
        return None

    @cached_property
    def _halves(self) -> Callable[[int, int, float], tuple[Floats, Floats]]:
        """Standard deviations and half-widths of every node of a tree's level, found once."""

        @cache
        def find(number: int, level: int, confidence: float) -> tuple[Floats, Floats]:
            tree = self.trees[number]
            deviations = np.sqrt(np.maximum(tree.combined.variances[level], 0))
            return deviations, find_half_widths(tree.combined, tree.measured, level, confidence)

        return find

    def _estimate_rows(self, measured_tree: MeasuredTree, levels: dict[int, Floats]) -> Floats:
        """Correct every row's draw by its share of the known gap of its group."""
        assert self.draws is not None
        tree, combined = measured_tree.combined.tree, measured_tree.combined
        parents, above = tree.parents[-1], levels[tree.depth - 1]
        gap = above - sum_by(parents, self.draws, len(above))
        corrected: Floats = self.draws + combined.share(tree.depth) * gap[parents]
        return corrected


@dataclass(frozen=True, eq=False)
class Readable:
    """A column of a release as its readers have it.

    `adder` adds its published counts, or its draws where they are published as well; `sums` are the
    files of a release that adds up, in the order of its levels.
    """

    table: Table
    receipt: Receipt
    record: ColumnRecord
    adder: Adder
    sums: Sequence[bytes] = ()

    def __post_init__(self) -> None:
        if self.record.unbiased is not None and isinstance(self.adder, MatchedAdder):
            object.__setattr__(self, "adder", self.adder.plain)

    @cached_property
    def free(self) -> Mask:
        """The rows that are not structural zeros."""
        zeros, rows = self.receipt.zeros, self.table.rows
        return np.ones(rows, bool) if zeros is None else zeros.find_free(self.table)

    @cached_property
    def values(self) -> Integers:
        """The number that is added of every row."""
        return read_values(self.table, self.record)

    def add(self, confidence: float, rows: Integers) -> Estimate:
        """Estimate the total of some rows; structural zeros are exactly 0."""
        drawn = rows[self.free[rows]]
        if not len(drawn):
            return Estimate(0, 0, 0, 0, len(rows))
        return replace(self.adder.add(self.values[drawn], confidence), groups=len(rows))


def read_values(table: Table, record: ColumnRecord) -> Integers:
    """Read the numbers that are added of a column: its draws, where it publishes them."""
    if record.unbiased is None:
        return table.counts(record.name)
    return read_signed(table, record.drawn_column).clip(0, record.upper)
