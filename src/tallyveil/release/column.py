"""A published column: its range, how many rows have each count, which draws became which counts.

What does not occur takes no room, so a wide range costs no more than the rows that are in it.
Everything here is published, and follows from private draws alone. Nested columns are kept below
one another, as each counts some of those whom the next one counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers, Mask, count_values, freeze
from tallyveil.errors import ArgumentError
from tallyveil.estimate.ranks import DrawnColumn, expect_jointly

if TYPE_CHECKING:
    from tallyveil.sampling.entropy import Entropy

WIDE = 10**6
"""Above this upper bound noise is certified on all whole numbers, and public thresholds replace
single counts: nothing takes room for counts that do not occur."""

WIDEST_MATRIX = 5_000
"""The largest upper bound where every count has a row of a table of probabilities."""

NO_UPPER = 10**9
"""The upper bound where none was given: the ceiling, which is public. Larger counts
count as this."""

LARGEST_UPPER = NO_UPPER - 1

STEPS = (10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90)
"""The round counts of a decade."""

MOST_SORTED, MOST_PAIRS = 1 << 20, 1 << 20
"""Most rows sorted to count pairs, and most kinds of pairs counted in an array."""

WIDEST_DENSE = 10**7
"""Up to this count rows are counted in an array, and beyond it by sorting."""


def check_upper(value: Any, argument: str) -> int:
    """Return a public upper bound, `NO_UPPER` for none."""
    if value is None:
        return NO_UPPER
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        hint = "It is the largest count that can be published, and it must be publicly known."
        raise ArgumentError(argument, "be a whole number of at least 1", value, hint)
    if int(value) > LARGEST_UPPER:
        hint = f"Left out, counts up to {NO_UPPER:,} are published, and larger ones count as that."
        raise ArgumentError(argument, f"be at most {LARGEST_UPPER:,}", value, hint)
    return int(value)


def round_counts(last: int, every: int) -> list[int]:
    """List all counts up to `every`, then round ones, sixteen a decade, and `last`.

    >>> round_counts(33, 10)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 25, 30, 33]
    """
    counts, scale = {*range(min(last, every) + 1), last}, 1
    while scale * STEPS[0] <= last:
        counts |= {step * scale for step in STEPS if every < step * scale <= last}
        scale *= 10
    return sorted(counts)


@dataclass(frozen=True)
class Histogram:
    """The published counts that occur, in order, and how many rows have each.

    >>> Histogram.of([2, 0, 0, 1])
    Histogram(counts=(0, 3), rows=(2, 1))
    """

    counts: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def of(cls, rows: ArrayLike) -> Histogram:
        """Read an array that holds the rows of every count 0, 1, 2, ..."""
        dense = np.asarray(rows)
        present = np.flatnonzero(dense)
        return cls(tuple(present.tolist()), tuple(dense[present].tolist()))

    @classmethod
    def count(cls, counts: NDArray[np.integer[Any]]) -> Histogram:
        """Tally a column of counts, however large they are, shape (rows,)."""
        largest = int(counts.max())
        if largest < WIDEST_DENSE:
            return cls.of(count_values(counts, largest + 1))
        present, rows = np.unique(counts, return_counts=True)
        return cls(tuple(present.tolist()), tuple(rows.tolist()))

    @property
    def largest(self) -> int:
        """The largest published count."""
        return self.counts[-1]

    @property
    def total(self) -> int:
        """The sum of all published counts."""
        return sum(count * rows for count, rows in zip(self.counts, self.rows, strict=True))

    def spread_out(self, size: int) -> Integers:
        """Return the rows of every count 0..size-1, shape (size,)."""
        dense = np.zeros(size, dtype=np.int64)
        dense[list(self.counts)] = self.rows
        return dense


@dataclass(frozen=True, eq=False)
class Matching:
    """Draws and the published counts they became, where counts were assigned after the draw.

    `rows[e]` rows drew `draws[e]` and were given the count `counts[e]`; entries are in order
    of draws, then counts. A cross table of two released things: it costs no privacy, and it
    says exactly what a published count tells of the draw behind it.

    >>> Matching.of(np.array([3, 0, 1, 0]), np.array([2, 0, 1, 0])).rows.tolist()
    [2, 1, 1]
    """

    draws: Integers
    counts: Integers
    rows: Integers

    @classmethod
    def of(cls, draws: NDArray[np.integer[Any]], counts: NDArray[np.integer[Any]]) -> Matching:
        """Tally rows that drew `draws` and were given `counts`, shapes (rows,)."""
        width, height = int(counts.max()) + 1, int(draws.max()) + 1
        if len(counts) < MOST_SORTED or int(draws.min()) < 0 or width * height > MOST_PAIRS:
            pairs, rows = np.unique(draws.astype(np.int64) * width + counts, return_counts=True)
        else:
            every = np.zeros(width * height, dtype=np.int64)
            for start in range(0, len(counts), MOST_SORTED):
                part = slice(start, start + MOST_SORTED)
                keys = draws[part].astype(np.int64) * width + counts[part]
                every += np.bincount(keys, minlength=len(every))
            pairs = np.flatnonzero(every)
            rows = every[pairs]
        return cls(freeze(pairs // width), freeze(pairs % width), freeze(rows))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Matching) and all(
            np.array_equal(getattr(self, part), getattr(other, part))
            for part in ("draws", "counts", "rows")
        )

    def __hash__(self) -> int:
        return hash(tuple(self.rows.tolist()))

    def is_of(self, histogram: Histogram) -> bool:
        """Return whether entries are in order, each once, and give this histogram of counts."""
        step = np.diff(self.draws), np.diff(self.counts)
        rises = (step[0] > 0) | ((step[0] == 0) & (step[1] > 0))
        if not (len(self.draws) == len(self.counts) == len(self.rows) and bool(rises.all())):
            return False
        present, places = np.unique(self.counts, return_inverse=True)
        rows = np.zeros(len(present), dtype=np.int64)
        np.add.at(rows, places, self.rows)
        counted = Histogram(tuple(present.tolist()), tuple(rows.tolist()))
        return bool((self.rows > 0).all()) and counted == histogram

    def up_to(self, last: int) -> Matching:
        """Return the entries whose draws are at most `last`."""
        near = self.draws <= last
        return Matching(self.draws[near], self.counts[near], self.rows[near])

    def find_range(self, low: ArrayLike, high: ArrayLike) -> tuple[Integers, Integers]:
        """Find the lowest and highest count given to any draw from `low` to `high`, inclusive.

        Where no such draw occurs, the lowest given further up and the highest further down.
        """
        first = np.searchsorted(self.draws, low, side="left")
        last = np.searchsorted(self.draws, high, side="right") - 1
        falling = np.minimum.accumulate(self.counts[::-1])[::-1]
        rising = np.maximum.accumulate(self.counts)
        return falling[np.minimum(first, len(falling) - 1)], rising[np.maximum(last, 0)]

    def draws_of(self, counts: ArrayLike) -> tuple[Integers, Integers]:
        """Find the smallest and largest draw that was given each of `counts`, which occur."""
        order = np.argsort(self.counts, kind="stable")
        held = self.counts[order]
        first = np.searchsorted(held, counts, side="left")
        last = np.searchsorted(held, counts, side="right") - 1
        return self.draws[order[first]], self.draws[order[last]]

    def describe_moves(self, size: int) -> tuple[Floats, Floats]:
        """Return mean and variance of count minus draw, for each draw 0..size-1, shapes (size,).

        A draw that did not occur is moved as far as those around it, in between evenly; where none
        occurred, nothing is moved.
        """
        if not len(self.draws):
            return np.zeros(size), np.zeros(size)
        present, places = np.unique(self.draws, return_inverse=True)
        rows = np.bincount(places, self.rows)
        move = (self.counts - self.draws).astype(float)
        mean = np.bincount(places, self.rows * move) / rows
        spread = np.bincount(places, self.rows * (move - mean[places]) ** 2) / rows
        every = np.arange(size)
        means = np.interp(every, present, mean)
        variances = np.zeros(size)
        variances[present] = spread
        return np.clip(means, -every, size - 1 - every), variances


@dataclass(frozen=True, eq=False)
class PublishedColumn:
    """A published column, and how many rows have each count.

    `values` are the counts in a type that may be narrow, `counts` the same in 64 bits.
    `matching` says which draws became which counts, where they are not the draws themselves.
    `drawn` is every row's draw, where it is not the count. `unbiased` holds every row's draw
    before the clamp, if it is published: as a further column or, with `signed`, instead of the
    counts.
    """

    values: NDArray[np.integer[Any]]
    histogram: Histogram
    matching: Matching | None = None
    unbiased: Integers | None = None
    drawn: NDArray[np.integer[Any]] | None = field(default=None, repr=False)
    signed: bool = False

    @property
    def largest_missed(self) -> tuple[int, ...] | None:
        """The largest miss of each margin; None where there are no margins."""
        return None

    @cached_property
    def counts(self) -> Integers:
        """The published counts as 64-bit numbers, shape (rows,)."""
        return freeze(self.values.astype(np.int64))

    def name_columns(self, name: str) -> dict[str, NDArray[np.integer[Any]]]:
        """Return the columns that the released table gets for the count column `name`."""
        if self.unbiased is None:
            return {name: self.values}
        if self.signed:
            return {name: self.unbiased}
        return {name: self.values, name_unbiased(name): self.unbiased}


def name_unbiased(column: str) -> str:
    """Return the name of the column that holds the unbiased draws of a count column."""
    return f"{column}_unbiased"


def spread_out(column: PublishedColumn, free: Mask) -> PublishedColumn:
    """Insert 0 for structural zeros into a column of the free rows; histograms leave them out."""

    def spread(values: Any) -> Any:
        full = np.zeros(len(free), dtype=values.dtype)
        full[free] = values
        return freeze(full)

    unbiased = None if column.unbiased is None else spread(column.unbiased)
    drawn = None if column.drawn is None else spread(column.drawn)
    return replace(column, values=spread(column.values), unbiased=unbiased, drawn=drawn)


def assign_below(
    drawn: Integers | Floats, counts: Integers, limits: Integers, order: Integers
) -> Integers:
    """Assign `counts` again by rank of `drawn`, no row above its limit; `order` breaks ties.

    From the largest count down, each goes to the row of the highest rank that may have it. One
    that no row may have any more is lowered until one may, so the distribution changes only as
    far as the limits make it.

    >>> assign_below(*map(np.array, ([9, 5, 1], [7, 4, 0], [3, 9, 9], [0, 1, 2]))).tolist()
    [0, 7, 4]
    """
    by_rank = np.lexsort((order, counts, drawn))[::-1]
    rank = np.empty(len(counts), dtype=np.int64)
    rank[by_rank] = np.arange(len(counts))
    entering = np.argsort(-limits, kind="stable")
    ranks, ends = rank[entering].tolist(), -limits[entering]
    values, held = np.unique(counts, return_counts=True)
    rows_of = dict(zip(values.tolist(), held.tolist(), strict=True))
    lowered, waiting, entered, carried = np.zeros_like(counts), list[int](), 0, 0
    for value in np.union1d(values, limits)[::-1].tolist():
        last = int(np.searchsorted(ends, -value, side="right"))
        for row in ranks[entered:last]:
            heapq.heappush(waiting, row)
        due, entered = carried + rows_of.get(value, 0), last
        carried = max(0, due - len(waiting))
        best = [heapq.heappop(waiting) for _ in range(due - carried)]
        lowered[by_rank[best]] = value
    return lowered


def keep_order(
    nested: Mapping[str, float],
    published: Mapping[str, tuple[PublishedColumn, ...]],
    free: Mask | None,
    entropy: Entropy,
) -> dict[str, tuple[PublishedColumn, ...]]:
    """Keep nested columns but the largest below the next one in every row.

    `nested` has the epsilon of the rows' draws by column, from the smallest to the largest. Only
    published counts and draws are read. Where counts were matched to ranks they are assigned again,
    by what the draws of both columns tell of each row, so that the distribution stays; others are
    lowered. Rows that are not `free` stay 0, and are no part of the figures.
    """
    columns = dict(published)
    for small, large in reversed(list(pairwise(nested))):
        ((column,), (above,)) = columns[small], columns[large]
        rows = np.arange(len(column.counts)) if free is None else np.flatnonzero(free)
        counts, limits = column.counts[rows], above.counts[rows]
        drawn = counts if column.drawn is None else column.drawn[rows].astype(np.int64)
        if column.matching is None:
            lowered = np.minimum(counts, limits)
        else:
            other = above.counts if above.drawn is None else above.drawn.astype(np.int64)
            below = DrawnColumn(drawn, counts, nested[small])
            expected = expect_jointly(below, DrawnColumn(other[rows], limits, nested[large]))
            lowered = assign_below(expected, counts, limits, entropy.permutation(len(rows)))
        full = np.zeros_like(column.counts)
        full[rows] = lowered
        histogram, matching = Histogram.count(lowered), Matching.of(drawn, lowered)
        limited = replace(column, values=freeze(full), histogram=histogram, matching=matching)
        columns[small] = (limited,)
    return {name: columns[name] for name in list(nested)[:-1]}
