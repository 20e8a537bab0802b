"""Rows that are drawn and published one by one on the machines that hold them.

`RowDraws` runs there and is the only one that sees counts. What comes here are tallies of draws;
`DrawnApart` makes of them, as the methods of `tallyveil.plans.methods` do on one machine, what
hands out every row's count by its draw and its random word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias, cast

import numpy as np

from tallyveil.arrays import MOST_COUNTED, Integers, Tally, count_values, freeze, tally_values
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedNoise
from tallyveil.estimate.draws import PrivateDraws, growing_thresholds
from tallyveil.estimate.histogram import Estimate, estimate_histogram
from tallyveil.estimate.ranks import find_row_limits, round_histogram
from tallyveil.estimate.steps import FIRST_BITS, Steps, find_bins, find_steps
from tallyveil.plans.methods import (
    Independent,
    Levels,
    Method,
    Preserve,
    PublishedCounts,
    draw_rows,
    noisy_cumulative,
)
from tallyveil.plans.tallies import Histogram, Matching
from tallyveil.plans.unbiased import UNBIASED, KeptDraws
from tallyveil.request.ranges import WIDE
from tallyveil.request.tradeoff import BEST, moves_counts
from tallyveil.sampling.entropy import Entropy
from tallyveil.tables.base import CountArray
from tallyveil.tables.distributed import (
    CountRange,
    DistributedCounts,
    Drawn,
    HandedOut,
    StagedRows,
    Words,
    choose_kind,
)

__all__ = ["DrawnApart", "RowDraws", "choose_range"]

COUNTS, KEPT = 0, 1
"""Levels of a column whose draws are kept: draws cut to the range, and those before the cut."""

Found: TypeAlias = tuple[CountArray, Words | None, Any]


def choose_range(upper: int) -> CountRange:
    """Up to where counts are taken as they are, and how the true ones are tallied."""
    return CountRange(upper, growing_thresholds(upper) if upper > WIDE else None)


@dataclass(frozen=True)
class _Column:
    """Draws the rows of one column, whose counts are cut to `upper`."""

    method: Independent | Preserve | Levels
    upper: int
    keeps: bool = False

    @classmethod
    def of(cls, method: Method, upper: int) -> _Column:
        """How rows are drawn for a method."""
        if isinstance(method, KeptDraws):
            return cls(cast("Any", method.inner), upper, keeps=True)
        return cls(cast("Any", method), upper)

    @property
    def kinds(self) -> tuple[np.dtype[Any], ...]:
        """The types of the draws of every level."""
        own = choose_kind([self.upper])
        if isinstance(self.method, Levels):
            return (own,) * len(self.method.ladder.rungs)
        return (own, np.dtype(np.int64)) if self.keeps else (own,)

    def draw(self, counts: CountArray, entropy: Entropy) -> list[Found]:
        """The draws of every level."""
        size = self.upper + 1
        cut = np.minimum(counts, self.upper)  # a private bound is found after they were read
        if isinstance(self.method, Levels):
            levels = self.method.ladder.draw_positions(cut, entropy)
            return [(drawn, None, tally_values(drawn, size)) for drawn in levels]
        certified = self.method.certified
        if not self.keeps:
            drawn = draw_rows(certified, cut, entropy, self.upper)
            return [self._rank(drawn, entropy)]
        noisy = _draw_unbounded(cast("Any", certified), cut, entropy)
        kept = noisy, None, Tally.of(noisy[:0])
        return [self._rank(noisy.clip(0, self.upper), entropy), kept]

    def _rank(self, drawn: CountArray, entropy: Entropy) -> Found:
        size = self.upper + 1
        if not isinstance(self.method, Preserve):
            return drawn, None, tally_values(drawn, size)
        words = entropy.words(len(drawn))
        if size > MOST_COUNTED:
            return drawn, words, Tally.of(drawn)
        return drawn, words, count_values(find_bins(drawn, words), size << FIRST_BITS)


def _draw_unbounded(
    certified: CertifiedGeometric | CertifiedNoise, counts: CountArray, entropy: Entropy
) -> Integers:
    """The draws before they are cut to the range, which are as private."""
    if isinstance(certified, CertifiedNoise):
        return np.asarray(certified.release(counts, entropy), np.int64)
    return certified.draw_unbounded(counts, entropy)


@dataclass(frozen=True)
class RowDraws:
    """Draws the rows of a batch on the machine that holds them, under a key of its own."""

    columns: Mapping[str, _Column]

    @classmethod
    def of(cls, methods: Mapping[str, tuple[Method, int]]) -> RowDraws:
        """How rows are drawn for these methods and upper bounds."""
        return cls({name: _Column.of(*own) for name, own in methods.items()})

    @property
    def kinds(self) -> Mapping[Drawn, np.dtype[Any]]:
        """The columns of draws in order, and the types that they are kept in."""
        return {
            (name, level): kind
            for name, column in self.columns.items()
            for level, kind in enumerate(column.kinds)
        }

    def __call__(self, counts: Mapping[str, CountArray]) -> dict[Drawn, Found]:
        """Every row's draw, its random word if it is ranked, and rows in each bin."""
        entropy, found = Entropy(), {}
        for name, column in self.columns.items():
            for level, own in enumerate(column.draw(counts[name], entropy)):
                found[name, level] = own
        return found


@dataclass(frozen=True, eq=False)
class _Tallied:
    """The private draws of a column, counted; the rows that hold them are staged."""

    staged: StagedRows
    bins: tuple[Integers | Tally, ...]
    draws: PrivateDraws | None


@dataclass(frozen=True, eq=False)
class DrawnApart:
    """A method whose rows are drawn, and given their counts, on other machines."""

    name: str
    upper: int
    method: Method
    stage: Callable[[], StagedRows]

    def draw(self, counts: Any, entropy: Entropy) -> _Tallied:
        """Draw all columns where they are, and the noise of the distribution here."""
        known: DistributedCounts = counts
        staged, column = self.stage(), _Column.of(self.method, self.upper)
        bins = tuple(staged.bins[self.name, level] for level in range(len(column.kinds)))
        if not isinstance(column.method, Preserve):
            return _Tallied(staged, bins, None)
        method, size = column.method, self.upper + 1
        noise = method.distribution
        totals = None if noise is None else noisy_cumulative(known.histogram, noise, entropy)
        epsilon1 = Fraction(0) if noise is None else noise.exact_epsilon
        drawn = _count_draws(bins[COUNTS])
        thresholds = choose_range(self.upper).thresholds
        epsilon2 = method.certified.exact_epsilon
        draws = PrivateDraws(drawn.values, epsilon2, totals, epsilon1, size, thresholds, drawn.rows)
        return _Tallied(staged, bins, draws)

    def publish(self, drawn: _Tallied, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """The draws themselves, or counts handed out by rank; nothing but draws is looked at."""
        column = _Column.of(self.method, self.upper)
        if isinstance(column.method, Preserve):
            published = [self._hand_out(column.method, drawn)]
        else:
            levels = drawn.bins[: 1 if column.keeps else None]
            published = [
                self._publish_draws(drawn.staged, level, Tally.of_any(own))
                for level, own in enumerate(levels)
            ]
        if not isinstance(self.method, KeptDraws):
            return tuple(published)
        kept: Any = HandedOut(drawn.staged, (self.name, KEPT), _take_draws)
        signed = self.method.signed
        return tuple(
            replace(own, beside={UNBIASED: kept, **own.beside}, signed=signed) for own in published
        )

    def _publish_draws(self, staged: StagedRows, level: int, rows: Tally) -> PublishedCounts:
        column: Any = HandedOut(staged, (self.name, level), _take_draws, rows)
        return PublishedCounts(column, Histogram.of_tally(rows))

    def _hand_out(self, method: Preserve, drawn: _Tallied) -> PublishedCounts:
        """Counts by rank, in the limits of a tradeoff, and the best guesses beside them."""
        draws, staged, source = drawn.draws, drawn.staged, (self.name, COUNTS)
        assert draws is not None
        found = estimate_histogram(draws)
        steps = self._find_steps(draws, found, drawn)
        if method.tradeoff is not None and moves_counts(method.tradeoff):
            low, high = find_row_limits(draws, found, float(cast("Any", method.tradeoff)))
            at = np.searchsorted(draws.values, steps.draws)
            steps = replace(steps, counts=steps.counts.clip(low[at], high[at]))
        rows = Tally.add_up(steps.counts, steps.rows)
        column: Any = HandedOut(staged, source, steps.hand_out, rows)
        published = PublishedCounts(column, Histogram.of_tally(rows), _match(steps, self.upper + 1))
        if not method.best:
            return published
        known = draws.tally
        best = freeze(known.values.clip(*find_row_limits(draws, found, 0.0)))
        beside: Any = HandedOut(staged, source, _Guess(known.values, best))
        guesses = Matching(known.values, best, known.rows)
        return replace(published, beside={BEST: beside}, guesses=guesses)

    def _find_steps(self, draws: PrivateDraws, found: Estimate, drawn: _Tallied) -> Steps:
        def count_digits(prefixes: Any) -> list[tuple[Integers, Integers]]:
            return drawn.staged.count_digits((self.name, COUNTS), prefixes)

        histogram = round_histogram(found.histogram, draws.records)
        bins = drawn.bins[COUNTS]
        return find_steps(
            draws.tally,
            None if isinstance(bins, Tally) else bins,
            found.cells,
            histogram,
            count_digits,
        )


@dataclass(frozen=True, eq=False)
class _Guess:
    """The best guess for every row, by its draw."""

    draws: Integers
    best: Integers

    def __call__(self, drawn: CountArray, _: Words | None) -> CountArray:
        return self.best[np.searchsorted(self.draws, drawn)]


def _take_draws(drawn: CountArray, _: Words | None) -> CountArray:
    return drawn


def _count_draws(bins: Integers | Tally) -> Tally:
    """How many rows have each draw, from bins of draws and first digits of words."""
    if isinstance(bins, Tally):
        return bins
    return Tally.of_any(bins.reshape(-1, 1 << FIRST_BITS).sum(axis=1))


def _match(steps: Steps, size: int) -> Matching:
    """Which draws became which counts, from how many rows each step has."""
    pairs = Tally.add_up(steps.draws * size + steps.counts, steps.rows)
    return Matching(freeze(pairs.values // size), freeze(pairs.values % size), freeze(pairs.rows))
