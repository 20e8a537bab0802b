"""Counts of rows: assigned in the order of their draws, or expected from two columns' draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.estimate.draws import Cells, PrivateDraws
from tallyveil.estimate.histogram import Estimate
from tallyveil.mechanisms.frontier import Posterior
from tallyveil.mechanisms.geometric import absolute_errors

MOST_SORTED = 1 << 18
"""The largest number of rows that are ranked by sorting them."""

MOST_BINNED = 1 << 15
"""The widest range of counts whose draws are ranked in bins."""

TIE_BITS = 8
"""Random bits of the bin of each row; `RandomBits.octets` gives this many at a time."""


class RandomBits(Protocol):
    """A source of uniform bits that break ties."""

    def octets(self, count: int) -> NDArray[np.uint8]:
        """Return uniform bytes."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform 64-bit words."""

    def permutation(self, size: int) -> Integers:
        """Return a uniform permutation of 0..size-1."""


def round_histogram(histogram: Floats, records: int) -> Integers:
    """Return whole numbers with the histogram's cumulative sums, rounded.

    They sum to `records`. Rounding the cumulative sums keeps every one within 1/2; rounding bins
    would not.

    >>> round_histogram(np.array([0.6, 0.6, 0.6, 1.2]), 3).tolist()
    [1, 0, 1, 1]
    """
    totals = np.floor(np.cumsum(histogram) + 0.5).astype(np.int64)
    totals = np.clip(totals, 0, records)
    totals[-1] = records
    return np.diff(totals, prepend=0)


def match_ranks(
    draws: PrivateDraws, cells: Cells, histogram: Integers, order: Integers
) -> Integers:
    """Return counts with exactly this histogram, in the order of the draws.

    The row with the smallest draw gets the smallest cell, and so on, and in it the count
    nearest to its draw. `order` breaks ties: a fresh random permutation of the rows, so that
    row order says nothing. Where cells are single counts, no table with this histogram has a
    smaller expected absolute or squared error, as a larger draw never makes a smaller count
    likelier (docs/theory.md). Shape (N,).

    >>> from fractions import Fraction
    >>> draws = PrivateDraws(np.array([4, 0, 2]), Fraction(1), None, Fraction(0), 5)
    >>> cells = Cells.ending_at(np.arange(5))
    >>> match_ranks(draws, cells, np.array([1, 1, 0, 1, 0]), np.arange(3)).tolist()
    [3, 0, 1]
    """
    ranking = order[np.argsort(draws.values[order], kind="stable")]
    low, high = np.repeat(cells.low, histogram), np.repeat(cells.high, histogram)
    released = np.empty(draws.records, dtype=np.int64)
    released[ranking] = np.clip(draws.values[ranking], low, high)
    return released


def hand_out_ranks(
    draws: PrivateDraws, cells: Cells, histogram: Integers, bits: RandomBits
) -> NDArray[np.integer[Any]]:
    """Assign counts as `match_ranks` does with a fresh random order, in O(N) for many rows.

    Ranks are those of (draw, random word). One random byte of each row's word puts it into a bin
    (draw, byte), and the sizes of the bins say which ranks each of them holds. Nearly every bin
    holds ranks of a single cell. Only the rows of the others, at most one bin for each cell, need
    further bits of their words. So draws and counts need one more byte for each row, and the
    distribution of the result is that of sorting (tests/estimate/test_ranks.py).
    """
    if draws.records <= MOST_SORTED or draws.thresholds is not None or draws.size > MOST_BINNED:
        return match_ranks(draws, cells, histogram, bits.permutation(draws.records))
    records, parts = draws.records, range(0, draws.records, MOST_SORTED)
    ties, sizes = np.empty(records, np.uint8), np.zeros(draws.size << TIE_BITS, np.int64)
    for start in parts:
        part = slice(start, start + MOST_SORTED)
        ties[part] = bits.octets(len(ties[part]))
        sizes += np.bincount(_find_bins(draws.values[part], ties[part]), minlength=len(sizes))
    ends, tops = np.cumsum(sizes), np.cumsum(histogram)
    first = np.searchsorted(tops, ends - sizes, side="right")
    last = np.searchsorted(tops, np.maximum(ends - 1, ends - sizes), side="right")
    values = np.arange(len(sizes)) >> TIE_BITS
    is_open = (first != last) & (sizes > 0)
    cell = np.minimum(first, len(cells) - 1)  # where a bin is empty
    kind = np.min_scalar_type(int(cells.high[-1]))
    decided = np.clip(values, cells.low[cell], cells.high[cell]).astype(kind)
    released, open_rows, open_bins = np.empty(records, kind), [], []
    for start in parts:
        part = slice(start, start + MOST_SORTED)
        bins = _find_bins(draws.values[part], ties[part])
        released[part] = decided.take(bins)
        undecided = np.flatnonzero(is_open.take(bins))
        open_rows.append(undecided + start)
        open_bins.append(bins[undecided])
    undecided_rows, bins = np.concatenate(open_rows), np.concatenate(open_bins)
    order, place = _rank_in_bins(bins, bits)
    where = bins[order]
    cell = np.searchsorted(tops, (ends - sizes)[where] + place, side="right")
    released[undecided_rows[order]] = np.clip(values[where], cells.low[cell], cells.high[cell])
    return released


def _find_bins(values: NDArray[np.integer[Any]], ties: NDArray[np.uint8]) -> NDArray[np.int32]:
    """Return the bin of each row: its draw, then its random byte."""
    bins = values.astype(np.int32)
    bins <<= TIE_BITS
    bins |= ties
    return bins


def _rank_in_bins(bins: NDArray[np.int32], bits: RandomBits) -> tuple[Integers, Integers]:
    """Order rows by bin, uniformly at random in each, and return the places in their bins."""
    while True:
        words = bits.words(len(bins))
        order = np.lexsort((words, bins))
        where, ranked = bins[order], words[order]
        same_bin = where[1:] == where[:-1]
        if not (same_bin & (ranked[1:] == ranked[:-1])).any():  # else drawn again
            break
    start = np.flatnonzero(np.append(True, ~same_bin)) if len(bins) else np.zeros(0, np.int64)
    lengths = np.diff(np.append(start, len(bins)))
    return order, np.arange(len(bins)) - np.repeat(start, lengths)


FARTHEST = 2**18
"""Draws above this need no estimate: cells there are far wider than any noise of practical use."""

STEPS = 6
"""The tradeoff of `keep_error` is found to a part in 2^STEPS; between two, rows are split."""

OCTETS = 256
"""Values of a random byte."""

SPARSE = 30.0
"""Counts with fewer rows are judged together with their neighbours."""

ALLOWED = 1.0015
"""`keep_error` allows this many times the error of plain noise, which is known no better."""


def find_row_limits(
    draws: PrivateDraws, estimate: Estimate, tradeoff: float
) -> tuple[Integers, Integers]:
    """Return the lowest and the highest count that each row may get, shapes (N,).

    The ends of the central part of the row's posterior with probability `tradeoff`, under the
    estimated distribution, even inside cells (`mechanisms.frontier.Posterior`). A
    row drawn above `FARTHEST` may get any count; with a tradeoff of 0, what it drew.
    """
    values, shares = draws.values, _spread_near(estimate)
    if not shares.sum() > 0:
        return np.zeros_like(values), np.full_like(values, draws.size - 1)
    clipped = np.minimum(values, len(shares) - 1).astype(np.int64)
    low, high = Posterior(shares, float(draws.epsilon2)).find_limits(tradeoff, clipped)
    far = values > FARTHEST
    low[far], high[far] = (values[far], values[far]) if tradeoff == 0 else (0, draws.size - 1)
    return low, high


def keep_error(
    draws: PrivateDraws,
    estimate: Estimate,
    counts: NDArray[np.integer[Any]],
    epsilon: Fraction,
    bits: RandomBits,
) -> NDArray[np.integer[Any]]:
    """Return counts that are expected to err no more than plain noise at `epsilon` would.

    Shape (N,). Both errors are those expected under the estimated distribution, even inside its
    sparse parts, up to `ALLOWED`. Where counts by rank err more, they are moved along the frontier,
    to the largest tradeoff at which they do not, and at a corner of it only some rows, at random:
    no private release that errs so little has its distribution nearer to the estimated one
    (docs/theory.md, the frontier theorem). Rows drawn above `FARTHEST` stay.
    """
    shares = _spread_near(estimate)
    near = draws.values <= FARTHEST
    if not shares.sum() > 0 or not near.any():
        return counts
    rows = _Rows(shares, float(draws.epsilon2), draws.values[near], counts[near])
    plain = absolute_errors(np.arange(len(shares)), draws.size - 1, float(epsilon))
    most = ALLOWED * float(shares @ plain)
    if rows.expect(1.0) <= most:
        return counts
    low, high = 0, 1 << STEPS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rows.expect(middle / 2**STEPS) <= most else (low, middle)
    less, more = low / 2**STEPS, high / 2**STEPS
    errors = rows.expect(less), rows.expect(more)
    gain = errors[1] - errors[0]
    part = min(1.0, (errors[1] - most) / gain) if gain > 0 else 1.0
    chosen = bits.octets(len(rows.counts)) < math.ceil(OCTETS * part)
    result = counts.copy()
    result[near] = np.where(chosen, rows.move(less), rows.move(more))
    return result


def _spread_near(estimate: Estimate) -> Floats:
    """Return the distribution that rows are judged by, up to `FARTHEST`.

    Even inside sparse parts: an estimated histogram has learnt from the very rows that are to be
    judged. With few rows for each count it repeats their draws, and would find their noise too
    small. So neighbouring cells with fewer than `SPARSE` rows each are taken together, about
    `SPARSE` rows at a time.
    """
    cells = estimate.cells
    near = cells.low <= FARTHEST
    width, rows = (cells.high - cells.low + 1)[near], estimate.histogram[near]
    sparse = rows < SPARSE
    runs = np.flatnonzero(np.append(True, ~(sparse[1:] & sparse[:-1])))
    before = np.cumsum(rows) - rows
    since = before - np.repeat(before[runs], np.diff(np.append(runs, len(rows))))
    first = np.union1d(runs, np.flatnonzero(np.diff(since // SPARSE, prepend=0.0)))
    widths = np.add.reduceat(width, first)
    shares: Floats = np.repeat(np.add.reduceat(rows, first) / widths, widths)
    total = shares.sum()
    return shares / total if total > 0 else shares


class _Rows:
    """Rows, their ranked counts, and the posteriors of their draws."""

    def __init__(
        self,
        shares: Floats,
        epsilon: float,
        draws: NDArray[np.integer[Any]],
        counts: NDArray[np.integer[Any]],
    ) -> None:
        self.top, self.counts = len(shares) - 1, counts
        self.draws = np.minimum(draws.astype(np.int64), self.top)
        self.posterior = Posterior(shares, epsilon)

    def move(self, tradeoff: float) -> NDArray[np.integer[Any]]:
        """Move the counts into the central part of each row's posterior."""
        return self.counts.clip(*self.posterior.find_limits(tradeoff, self.draws))

    def expect(self, tradeoff: float) -> float:
        """Return the mean over rows of E[|true - moved count| | draw]."""
        moved = np.minimum(self.move(tradeoff), self.top)
        return float(self.posterior.expect_errors(self.draws, moved).mean())


FEWEST_ROWS = 100
"""With fewer rows the joint distribution of two columns is not estimated."""

MOST_PAIRS = 1 << 16
"""Up to this many pairs of counts both columns are deconvolved; beyond it draws are classed."""

MOST_CLASSES, FEWEST_IN_CLASS = 32, 50
"""Most classes of draws of a wide column, and the fewest rows of a class."""

MOST_CELLS = 1 << 20
"""Most pairs of a count and a class; wider columns have fewer classes, or none."""

PRIOR_ROWS = 20
"""Pseudo-rows of every class, distributed as the whole table."""

ROUNDS = 40
SMALL = 1e-300


@dataclass(frozen=True, eq=False)
class DrawnColumn:
    """A column: geometric draws cut at 0, the counts assigned to them, and the epsilon."""

    draws: Integers
    counts: Integers
    epsilon: float

    @property
    def size(self) -> int:
        """One more than the largest count or draw."""
        return int(max(self.draws.max(), self.counts.max())) + 1


@dataclass(frozen=True, eq=False)
class _Axis:
    """Every row's cell of a column, the shares of cells, the ratio of the noise and pseudo-rows."""

    places: Integers
    shares: Floats
    ratio: float
    prior: float = 0.0


def expect_jointly(column: DrawnColumn, other: DrawnColumn) -> Floats:
    """Return E[count | both draws] of every row for the first of two columns, shape (N,).

    The joint distribution is estimated by expectation maximisation from all pairs of draws,
    starting from independent columns; after every step its two margins are set to the
    distributions of the published counts. Of a wide column only the class of a draw is used.
    Post-processing of private draws.

    Parameters
    ----------
    column, other : DrawnColumn
        The two columns. Of their counts the distributions are used, not their order.

    Examples
    --------
    >>> small, large = np.array([0, 1] * 60), np.array([0, 9] * 60)
    >>> drawn = np.array([1, 1] + [0, 1] * 59)
    >>> expected = expect_jointly(DrawnColumn(drawn, small, 1.0), DrawnColumn(large, large, 1.0))
    >>> bool(expected[0] < expected[1])
    True
    """
    axes = _find_axes(column, other)
    if axes is None:
        return np.asarray(column.draws, dtype=float)
    means: Floats = _expect(*axes, _count_pairs(*axes))[axes[0].places, axes[1].places]
    return means


def _find_axes(column: DrawnColumn, other: DrawnColumn) -> tuple[_Axis, _Axis] | None:
    """Return both columns' axes; None with too few rows or too wide a range."""
    if len(column.draws) < FEWEST_ROWS or column.size > MOST_CELLS // 2:
        return None
    if column.size * other.size <= MOST_PAIRS:
        return _undo_noise(column), _undo_noise(other)
    most = min(MOST_CLASSES, len(column.draws) // FEWEST_IN_CLASS, MOST_CELLS // column.size)
    _, places, rows = np.unique(other.draws, return_inverse=True, return_counts=True)
    place = ((np.cumsum(rows) - rows / 2) * most / len(places)).astype(int)
    classes = np.unique(place, return_inverse=True)[1][places]
    shares = np.bincount(classes) / len(classes)
    return _undo_noise(column), _Axis(classes, shares, 0.0, PRIOR_ROWS * len(shares))


def _undo_noise(column: DrawnColumn) -> _Axis:
    """Return the axis of a column of noisy counts; no cell has a share of exactly 0."""
    shares = np.bincount(column.counts, minlength=column.size) + 1e-6
    return _Axis(column.draws, shares / shares.sum(), math.exp(-column.epsilon))


def _count_pairs(first: _Axis, second: _Axis) -> Floats:
    """Return the number of rows of each pair of cells."""
    shape = len(first.shares), len(second.shares)
    pairs = np.bincount(first.places * shape[1] + second.places, minlength=math.prod(shape))
    return pairs.reshape(shape).astype(float)


def _expect(first: _Axis, second: _Axis, pairs: Floats) -> Floats:
    """Return E[count of the first | both cells] for every pair of cells."""
    ratios = first.ratio, second.ratio
    joint = np.outer(first.shares, second.shares)
    prior = second.prior * joint
    for _ in range(ROUNDS):
        joint = joint * _blur(pairs / np.maximum(_blur(joint, ratios), SMALL), ratios) + prior
        joint *= (first.shares / np.maximum(joint.sum(axis=1), SMALL))[:, None]
        joint *= second.shares / np.maximum(joint.sum(axis=0), SMALL)
    weights = np.maximum(_blur(joint, ratios), SMALL)
    means: Floats = _blur(joint * np.arange(len(joint))[:, None], ratios) / weights
    return means


def _blur(values: Floats, ratios: tuple[float, float]) -> Floats:
    """Return sum_ij a^|i-k| b^|j-l| values_ij for every (k, l)."""
    for ratio in ratios:
        values = (_blur_columns(values, ratio) if ratio else values).T
    return values


def _blur_columns(values: Floats, ratio: float) -> Floats:
    from scipy.linalg import solve_banded

    size, columns = values.shape
    bands: Any = np.vstack([np.ones(size), np.full(size, -ratio)])
    both = np.hstack([values, values[::-1]])
    sums = solve_banded((1, 0), bands, both, check_finite=False)
    blurred: Floats = sums[:, :columns] + sums[::-1, columns:] - values
    return blurred
