"""How a column is released: private draws first, then post-processing that sees only them.

Each method holds the very certified objects that it draws from. `draw` is the only step that
sees true counts; `publish` gets its draws and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask, count_values, freeze
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedGeometric, CertifiedNoise
from tallyveil.errors import CertificationError
from tallyveil.estimate.draws import PrivateDraws, growing_thresholds
from tallyveil.estimate.histogram import estimate_histogram
from tallyveil.estimate.ranks import (
    DrawnColumn,
    expect_jointly,
    find_row_limits,
    hand_out_ranks,
    keep_error,
    round_histogram,
)
from tallyveil.plans.tallies import Histogram, Matching
from tallyveil.request.budget_split import Tradeoff
from tallyveil.request.nested import hand_out_below
from tallyveil.request.ranges import NO_UPPER, WIDE
from tallyveil.request.tradeoff import moves_counts
from tallyveil.sampling.entropy import Entropy

__all__ = [
    "Counts",
    "Independent",
    "Levels",
    "Method",
    "Preserve",
    "PublishedCounts",
    "count_cells",
    "draw_rows",
    "keep_order",
    "name_unbiased",
    "noisy_cumulative",
    "require_range",
]

Counts: TypeAlias = NDArray[Any]
"""True counts of one column, in 0..upper, in any integer type."""


@dataclass(frozen=True, eq=False)
class PublishedCounts:
    """A column as it is published, and how many rows have each count.

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
        """By how much each margin is missed at most; None where there are no margins."""
        return None

    @cached_property
    def counts(self) -> Integers:
        """The published counts as 64-bit numbers, shape (rows,)."""
        return freeze(self.values.astype(np.int64))

    def name_columns(self, name: str) -> dict[str, NDArray[np.integer[Any]]]:
        """The columns that the released table gets for the count column `name`."""
        if self.unbiased is None:
            return {name: self.values}
        if self.signed:
            return {name: self.unbiased}
        return {name: self.values, name_unbiased(name): self.unbiased}

    def limit_to(
        self,
        above: PublishedCounts,
        epsilons: tuple[float, float],
        free: Mask | None,
        entropy: Entropy,
    ) -> PublishedCounts:
        """The column with no row above another one; looks at published things and draws only.

        Where counts were handed out by rank they are handed out again, by what the draws of both
        columns say of each row, so that the distribution stays; others are lowered. Rows that are
        not `free` stay 0, and are no part of the figures.
        """
        rows = np.arange(len(self.counts)) if free is None else np.flatnonzero(free)
        counts, limits = self.counts[rows], above.counts[rows]
        drawn = counts if self.drawn is None else self.drawn[rows].astype(np.int64)
        if self.matching is None:
            made = np.minimum(counts, limits)
        else:
            other = above.counts if above.drawn is None else above.drawn.astype(np.int64)
            own = DrawnColumn(drawn, counts, epsilons[0])
            expected = expect_jointly(own, DrawnColumn(other[rows], limits, epsilons[1]))
            made = hand_out_below(expected, counts, limits, entropy.permutation(len(rows)))
        full = np.zeros_like(self.counts)
        full[rows] = made
        figures = Histogram.count(made), Matching.of(drawn, made)
        return replace(self, values=freeze(full), histogram=figures[0], matching=figures[1])


def keep_order(
    nested: Mapping[str, float],
    published: Mapping[str, tuple[PublishedCounts, ...]],
    free: Mask | None,
    entropy: Entropy,
) -> dict[str, tuple[PublishedCounts, ...]]:
    """Nested columns but the largest, none above what the next one publishes in the same row.

    `nested` has the epsilon of the rows' draws by column, from the smallest to the largest.
    """
    found = dict(published)
    for small, large in reversed(list(pairwise(nested))):
        ((column,), (above,)) = found[small], found[large]
        epsilons = nested[small], nested[large]
        found[small] = (column.limit_to(above, epsilons, free, entropy),)
    return {name: found[name] for name in list(nested)[:-1]}


class Method(Protocol):
    """A way to release a column; the two steps cannot be mixed up."""

    def draw(self, counts: Counts, entropy: Entropy) -> Any:
        """Private draws: the only step that sees `counts`, which lie in 0..upper."""

    def publish(self, draws: Any, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """The published column, or one for each level; post-processing of the draws."""


@dataclass(frozen=True, eq=False)
class Independent:
    """Every row is drawn by itself from a certified mechanism, and published as drawn.

    Noise without bounds is cut to 0..upper after the draw.
    """

    certified: CertifiedAnswers | CertifiedNoise
    upper: int = NO_UPPER

    def draw(self, counts: Counts, entropy: Entropy) -> NDArray[Any]:
        """One certified draw per row; each row is one person's only row."""
        require_range(counts, _range_of(self.certified, self.upper)[0])
        entropy.rekey()
        return draw_rows(self.certified, counts, entropy, self.upper)

    def publish(self, draws: NDArray[Any], entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """The draws themselves."""
        return (_count_published(draws),)


@dataclass(frozen=True, eq=False)
class Preserve:
    """Noisy rows are ranked, and counts with the estimated distribution handed out in order.

    Costs the epsilon of `distribution` for the cumulative histogram and that of `certified`
    for the rows, once for all of them: each row is one person's only row. With a `tradeoff` below
    1 no row gets a count outside the central part of its posterior.
    """

    certified: CertifiedGeometric | CertifiedNoise
    distribution: CertifiedNoise | None
    tradeoff: Tradeoff | None = None
    upper: int = NO_UPPER

    @property
    def epsilon(self) -> Fraction:
        """What both stages cost together, for one move of one count by one."""
        first = self.distribution
        return self.certified.exact_epsilon + (
            Fraction(0) if first is None else first.exact_epsilon
        )

    def draw(self, counts: Counts, entropy: Entropy) -> PrivateDraws:
        """A geometric draw per row, and a noisy cumulative histogram."""
        size = _range_of(self.certified, self.upper)[1]
        require_range(counts, size)
        entropy.rekey()
        values = freeze(draw_rows(self.certified, counts, entropy, self.upper))
        is_open = isinstance(self.certified, CertifiedNoise)
        thresholds = growing_thresholds(self.upper) if is_open else None
        epsilon2, noise = self.certified.exact_epsilon, self.distribution
        if noise is None:
            return PrivateDraws(values, epsilon2, None, Fraction(0), size, thresholds)
        if thresholds is None:
            totals = noisy_cumulative(count_values(counts, size), noise, entropy)
        else:
            below = np.searchsorted(np.sort(counts), thresholds, side="right")
            totals = freeze(noise.release(below, entropy))
        return PrivateDraws(values, epsilon2, totals, noise.exact_epsilon, size, thresholds)

    def publish(self, draws: PrivateDraws, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """Estimate the histogram, round it, and match ranks."""
        found = estimate_histogram(draws)
        histogram = round_histogram(found.histogram, draws.records)
        counts = hand_out_ranks(draws, found.cells, histogram, entropy)
        exact = found.cells.single and not moves_counts(self.tradeoff)
        if isinstance(self.tradeoff, str):
            counts = keep_error(draws, found, counts, self.epsilon, entropy)
        elif self.tradeoff is not None and moves_counts(self.tradeoff):
            counts = counts.clip(*find_row_limits(draws, found, float(self.tradeoff)))
        counts = freeze(counts)
        matching = Matching.of(draws.values, counts)
        published = Histogram.of(histogram) if exact else Histogram.count(counts)
        return (PublishedCounts(counts, published, matching, drawn=draws.values),)


@dataclass(frozen=True, eq=False)
class Levels:
    """Several privacy levels, each drawn from the one before."""

    ladder: Ladder

    def draw(self, counts: Counts, entropy: Entropy) -> list[NDArray[Any]]:
        """One draw per row and level; only the first looks at the counts."""
        require_range(counts, self.ladder.query.shape[0])
        entropy.rekey()
        return self.ladder.draw_positions(counts, entropy)

    def publish(self, draws: list[NDArray[Any]], entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """The draws themselves, one column per level."""
        return tuple(_count_published(level) for level in draws)


def name_unbiased(column: str) -> str:
    """Return the name of the column that holds the unbiased draws of a count column."""
    return f"{column}_unbiased"


def count_cells(upper: int) -> int:
    """How many cells the distribution has: one per count, or those of the public thresholds.

    >>> count_cells(20), count_cells(NO_UPPER)
    (21, 256)
    """
    return len(growing_thresholds(upper)) + 1 if upper > WIDE else upper + 1


def noisy_cumulative(histogram: Integers, noise: CertifiedNoise, entropy: Entropy) -> Integers:
    """Certified noise on the cumulative histogram C_j = #{rows with count <= j}, j = 0..n-2.

    A count that goes from i to i+1 lowers C_i by one and leaves every other C_j as it was. So
    one person moves one entry by one, which is what the noise is certified for. So it is
    with any other set of public thresholds: a count that moves by one crosses one at most.
    """
    totals = np.cumsum(histogram)[:-1]
    return freeze(np.asarray(noise.release(totals, entropy))) if len(totals) else totals


def _range_of(certified: CertifiedAnswers | CertifiedNoise, upper: int) -> tuple[int, int]:
    """How many true and published counts there can be; noise is cut to `upper` after the draw."""
    if isinstance(certified, CertifiedNoise):
        return upper + 1, upper + 1
    return certified.query.shape


def draw_rows(
    certified: CertifiedAnswers | CertifiedNoise, counts: Counts, entropy: Entropy, upper: int
) -> NDArray[Any]:
    """One certified draw per row; noise is cut to 0..upper, which looks at the draw alone."""
    if isinstance(certified, CertifiedNoise):
        noisy: NDArray[Any] = certified.release(counts, entropy)
        return noisy.clip(0, upper)
    return certified.draw_positions(counts, entropy)


def require_range(counts: Counts, size: int) -> None:
    """Refuse counts that were not clamped: a draw for one would not be the certified one."""
    if len(counts) and int(counts.max()) >= size:
        raise CertificationError("Counts must be clamped to their range before they are drawn.")


def _count_published(drawn: NDArray[Any]) -> PublishedCounts:
    return PublishedCounts(freeze(drawn), Histogram.count(drawn))
