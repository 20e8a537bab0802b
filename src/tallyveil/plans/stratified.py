"""Release a column so that every stratum keeps its own distribution of counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Integers, freeze
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.ranks import match_ranks, round_histogram
from tallyveil.estimate.strata import estimate_strata
from tallyveil.plans.methods import Counts, Preserve, PublishedCounts
from tallyveil.plans.tallies import Histogram, Matching
from tallyveil.sampling.entropy import Entropy

__all__ = ["Stratified"]


@dataclass(frozen=True, eq=False)
class Stratified:
    """The draws of `preserve` for each stratum by itself, estimated together.

    Each row is in one stratum, so all strata together cost one person what one of them costs.
    """

    method: Preserve
    strata: Integers

    def draw(self, counts: Counts, entropy: Entropy) -> tuple[PrivateDraws, ...]:
        """Noisy rows and a noisy cumulative histogram of every stratum."""
        parts = range(int(self.strata.max()) + 1)
        return tuple(self.method.draw(counts[self.strata == part], entropy) for part in parts)

    def publish(
        self, draws: tuple[PrivateDraws, ...], entropy: Entropy
    ) -> tuple[PublishedCounts, ...]:
        """Estimate the histograms, round them, and match ranks within every stratum."""
        cells, histograms = estimate_strata(draws)
        counts = np.empty(len(self.strata), dtype=np.int64)
        values = np.empty_like(counts)
        for part, (own, histogram) in enumerate(zip(draws, histograms, strict=True)):
            rows = self.strata == part
            order = entropy.permutation(own.records)
            whole = round_histogram(histogram, own.records)
            counts[rows], values[rows] = match_ranks(own, cells, whole, order), own.values
        matching = Matching.of(values, counts)
        drawn = freeze(values)
        made = PublishedCounts(freeze(counts), Histogram.count(counts), matching, drawn=drawn)
        return (made,)
