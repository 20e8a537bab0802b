"""Release a column whose rows meet several margins: each is measured, and rows are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.certified.certify import certify_noise
from tallyveil.certified.mechanism import CertifiedNoise
from tallyveil.errors import ArgumentError
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_histogram
from tallyveil.plans.methods import Counts, require_range
from tallyveil.plans.sums import PublishedSums, SumDraws
from tallyveil.plans.tallies import Histogram, Matching
from tallyveil.request.hierarchy import HierarchyRequest, LevelBudget, list_measured, split_levels
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.combine import Combined, combine
from tallyveil.sums.grouping import Margins, rake, round_to_margins
from tallyveil.sums.rounding import expect_alone, round_family, round_total, weigh_totals

__all__ = ["MarginSums", "make_margins"]


@dataclass(frozen=True, eq=False)
class MarginSums:
    """Rows are measured, and margins that are worth it; published rows meet the first two.

    One person is in one row, hence in one group of each margin: the cost is the sum of the
    epsilons of all noises.
    """

    margins: Margins
    upper: int
    noises: tuple[CertifiedNoise | None, ...]
    distribution: None = None

    @property
    def budget(self) -> LevelBudget:
        """The epsilon of each margin and of the rows."""
        levels = (Fraction(0) if n is None else n.exact_epsilon for n in self.noises)
        return LevelBudget(tuple(levels), Fraction(0))

    def draw(self, counts: Counts, entropy: Entropy) -> SumDraws:
        """Noisy sums of every margin that is measured, and noisy rows."""
        require_range(counts, self.upper + 1)
        entropy.rekey()
        sums = self.margins.sum_up(counts.astype(np.int64))
        pairs = zip(self.noises, sums, strict=True)
        drawn = (None if noise is None else noise.release(part, entropy) for noise, part in pairs)
        return SumDraws(tuple(None if part is None else freeze(part) for part in drawn), None)

    def publish(self, draws: SumDraws, entropy: Entropy) -> tuple[PublishedSums, ...]:
        """Margins as whole numbers with one total, and rows that meet them."""
        rows: Any = draws.levels[-1]
        order = entropy.permutation(len(rows))
        found = [self._combine(draws, at) for at in range(self.margins.depth)]
        targets = self._round(found, order)
        values = np.clip(rows, 0, self.upper)
        expected = rake(self._expect(values), self.margins, targets, self.upper)
        counts = round_to_margins(expected, self.margins, targets, self.upper)
        sums = self.margins.sum_up(counts)[:-1]
        return (
            PublishedSums(
                freeze(counts),
                Histogram.count(counts),
                Matching.of(values, counts),
                sums=tuple(freeze(part) for part in sums),
                estimates=tuple(one.estimates[1] for one in found),
                missed=tuple(freeze(s - t) for s, t in zip(sums, targets, strict=True)),
            ),
        )

    def _combine(self, draws: SumDraws, margin: int) -> Combined:
        """A margin's own measurement, if any, and the sums of its rows, weighted by precision."""
        values = [None, draws.levels[margin], draws.levels[-1]]
        known = list_measured(values, self.budget.of_margin(margin), self.upper, -1)
        return combine(self.margins.tree(margin), *known)

    def _round(self, found: Sequence[Combined], order: Integers) -> list[Integers]:
        """Whole numbers of at least 0 for every margin, all with the same total."""
        totals = np.array([one.estimates[0][0] for one in found])
        most = len(order) * self.upper
        total = np.array([round_total(weigh_totals(totals, found), most)])
        rounded = []
        for one, groups in zip(found, self.margins.groups, strict=True):
            size = one.tree.sizes[1]
            uppers = np.bincount(groups, minlength=size) * self.upper
            free = order[order < size]
            parts = one.upward[1], one.spread[1], one.tree.parents[0], total
            rounded.append(round_family(*parts, uppers=uppers, order=free))
        return rounded

    def _expect(self, values: Integers) -> Floats:
        """What each row is expected to be, given its draw and the distribution of all draws."""
        size, epsilon = self.upper + 1, self.budget.levels[-1]
        found = estimate_histogram(PrivateDraws(values, epsilon, None, Fraction(0), size))
        return expect_alone(values, found.spread_out(size) / len(values), float(epsilon))


def make_margins(
    request: HierarchyRequest, margins: Margins, epsilon: Fraction, upper: int
) -> MarginSums:
    """The method with every noise certified, or an `ArgumentError` if margins cannot be met."""
    if (apart := margins.find_apart()) is not None:
        names = " and ".join("+".join(request.margins[margin]) for margin in apart)
        raise ArgumentError(
            "margins",
            "cross, so that noisy sums of both can be met",
            got=f"{names}, where some groups of both share no row with any other group",
            hint="For groups inside groups name a hierarchy.",
        )
    budget = split_levels(request, margins.sizes, epsilon, upper)
    noises = tuple(certify_noise(part) if part else None for part in budget.levels)
    return MarginSums(margins, upper, noises)
