"""Release a column so that it adds up: every level measured, one estimate, whole numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.certified.certify import certify_noise
from tallyveil.certified.mechanism import CertifiedNoise
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_directly, estimate_histogram
from tallyveil.plans.methods import Counts, PublishedCounts, noisy_cumulative, require_range
from tallyveil.plans.sum_files import LevelAccuracy, format_numbers
from tallyveil.plans.tallies import Histogram, Matching
from tallyveil.request.hierarchy import (
    HierarchyRequest,
    LevelBudget,
    list_measured,
    split_levels,
)
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.combine import Combined, combine
from tallyveil.sums.grouping import Tree, measure_missed
from tallyveil.sums.matching import expect_counts, hand_out, tilt_to_total
from tallyveil.sums.rounding import fit_bounds, round_down_levels

__all__ = ["PublishedSums", "SumDraws", "Sums", "make_sums"]


@dataclass(frozen=True, eq=False)
class SumDraws:
    """All that was drawn from the confidential table, and sums that are public.

    `levels` holds the noisy sums of every measured level, exact ones where they are public,
    None elsewhere; `totals` the noisy cumulative histogram, or None.
    """

    levels: tuple[Integers | None, ...]
    totals: Integers | None


@dataclass(frozen=True, eq=False)
class PublishedSums(PublishedCounts):
    """A published column with the sums of every level above the rows, and their estimates.

    `missed` says by how much the rows of each margin lie above the whole number they were
    fitted to.
    """

    sums: tuple[Integers, ...] = ()
    estimates: tuple[Floats, ...] = field(default=(), repr=False)
    missed: tuple[Integers, ...] = ()

    @property
    def largest_missed(self) -> tuple[int, ...] | None:
        """By how much each margin is missed at most; None where there are no margins."""
        return measure_missed(self.missed) if self.missed else None

    def describe_level(
        self, level: int, accuracy: LevelAccuracy
    ) -> tuple[Integers, list[str], LevelAccuracy, Integers | None]:
        """What the file of a level says of the column."""
        missed = self.missed[level] if self.missed else None
        return self.sums[level], format_numbers(self.estimates[level]), accuracy, missed


@dataclass(frozen=True, eq=False)
class Sums:
    """Every level of a hierarchy is measured, and the published counts add up to all of them.

    One person is in one row, hence in one node of each level, and moves one entry of the
    cumulative histogram: the cost is the sum of the epsilons of all noises.
    """

    tree: Tree
    upper: int
    noises: tuple[CertifiedNoise | None, ...]
    distribution: CertifiedNoise | None
    exact_level: int
    bounds: Integers
    """The largest count of every row."""

    @property
    def budget(self) -> LevelBudget:
        """The epsilon of each level and of the distribution."""
        levels = (Fraction(0) if n is None else n.exact_epsilon for n in self.noises)
        first = self.distribution
        return LevelBudget(tuple(levels), Fraction(0) if first is None else first.exact_epsilon)

    def draw(self, counts: Counts, entropy: Entropy) -> SumDraws:
        """Noisy sums of every level and a noisy cumulative histogram."""
        require_range(counts, self.upper + 1)
        entropy.rekey()
        sums = self.tree.sum_up(counts.astype(np.int64))
        levels: list[Integers | None] = []
        for level, noise in enumerate(self.noises):
            if noise is not None:
                levels.append(freeze(noise.release(sums[level], entropy)))
            else:
                levels.append(sums[level] if level == self.exact_level else None)
        totals = None
        if self.distribution is not None:
            histogram = np.bincount(counts, minlength=self.upper + 1)
            totals = noisy_cumulative(histogram, self.distribution, entropy)
        return SumDraws(tuple(levels), totals)

    def publish(self, draws: SumDraws, entropy: Entropy) -> tuple[PublishedSums, ...]:
        """Combine what was drawn, and round it so that everything adds up."""
        tree = self.tree
        combined = self._combine(draws)
        order = entropy.permutation(tree.sizes[-1])
        uppers = tree.sum_up(self.bounds)
        found = self._estimate(draws)
        levels = round_down_levels(combined, uppers, order, tree.depth - 1, self._total(found))
        counts = self._match(draws, found, levels[-1], order)
        return (
            PublishedSums(
                freeze(counts),
                Histogram.count(counts),
                Matching.of(self._clamp(draws), counts),
                sums=tuple(freeze(level) for level in levels[: tree.depth]),
                estimates=combined.estimates[: tree.depth],
            ),
        )

    def _combine(self, draws: SumDraws) -> Combined:
        rows = self.tree.sizes[-1]
        total = 0.0 if draws.totals is None else float(rows * self.upper - draws.totals.sum())
        known = list_measured(draws.levels, self.budget, self.upper, self.exact_level, total)
        return combine(self.tree, *known)

    def _clamp(self, draws: SumDraws) -> Integers:
        """The rows' draws inside the range; sums use them as they were drawn."""
        noisy: Any = draws.levels[-1]
        clamped: Integers = np.clip(noisy, 0, self.upper)
        return clamped

    def _estimate(self, draws: SumDraws) -> Floats:
        """The share of rows that have each count, as the rows and the histogram tell it.

        Rows without a histogram are so near the truth that a smooth model would only blur them.
        """
        budget, size, values = self.budget, self.upper + 1, self._clamp(draws)
        private = PrivateDraws(values, budget.levels[-1], draws.totals, budget.distribution, size)
        estimate = estimate_directly if draws.totals is None else estimate_histogram
        distribution: Floats = estimate(private).spread_out(size) / len(values)
        return distribution

    def _total(self, distribution: Floats) -> float | None:
        """The grand total of the distribution, where rows alone were measured.

        It is then nearer to the truth than the sum of all draws, noise at 0 being told apart.
        """
        if self.exact_level >= 0 or not self.budget.only_rows:
            return None
        return float(self.tree.sizes[-1] * (distribution @ np.arange(len(distribution))))

    def _match(
        self, draws: SumDraws, distribution: Floats, totals: Integers, order: Integers
    ) -> Integers:
        """Counts with the estimated distribution, handed out so that groups add up."""
        groups, values = self.tree.parents[-1], self._clamp(draws)
        histogram = tilt_to_total(distribution, len(values), int(totals.sum()))
        epsilon = float(self.budget.levels[-1])
        expected = expect_counts(values, distribution, epsilon, groups, totals, ties=order)
        expected = np.minimum(expected, self.bounds)
        counts = hand_out(expected, histogram, groups, totals, order)
        return fit_bounds(counts, expected, groups, totals, bounds=self.bounds, order=order)


def make_sums(
    request: HierarchyRequest,
    tree: Tree,
    epsilon: Fraction,
    upper: int,
    bounds: Integers | None = None,
) -> Sums:
    """The method with every noise certified; `bounds` hold the largest count of every row."""
    budget = split_levels(request, tree.sizes, epsilon, upper)
    noises = tuple(certify_noise(part) if part else None for part in budget.levels)
    first = certify_noise(budget.distribution) if budget.distribution else None
    most = np.full(tree.sizes[-1], upper)
    bounds = freeze(most if bounds is None else np.minimum(bounds, most))
    exact = request.exact_level
    return Sums(tree, upper, noises, first, exact, bounds)
