"""Release a column so that every stratum keeps its own distribution of counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Integers, freeze
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_strata
from tallyveil.estimate.ranks import match_ranks, round_histogram
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

    def join(self, parts: Sequence[Counts]) -> Integers:
        """What every stratum's rows have, in the order of the table."""
        rows = np.empty(len(self.strata), dtype=np.int64)
        for part, values in enumerate(parts):
            rows[self.strata == part] = values
        return freeze(rows)

    def publish(
        self, draws: tuple[PrivateDraws, ...], entropy: Entropy
    ) -> tuple[PublishedCounts, ...]:
        """Estimate the histograms, round them, and match ranks within every stratum."""
        cells, histograms = estimate_strata(draws)
        matched = []
        for own, histogram in zip(draws, histograms, strict=True):
            order = entropy.permutation(own.records)
            whole = round_histogram(histogram, own.records)
            matched.append(match_ranks(own, cells, whole, order))
        counts, values = self.join(matched), self.join([own.values for own in draws])
        matching = Matching.of(values, counts)
        return (PublishedCounts(counts, Histogram.count(counts), matching, drawn=values),)
