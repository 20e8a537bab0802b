"""How a column is released: private draws first, then post-processing that sees only them.

Each method holds the very certified objects that it draws from. `draw` is the only step that
sees true counts; `publish` gets its draws and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, freeze
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedGeometric, CertifiedNoise
from tallyveil.errors import CertificationError
from tallyveil.publish.estimate import (
    PrivateDraws,
    estimate_histogram,
    match_ranks,
    round_histogram,
)
from tallyveil.publish.tallies import Matching
from tallyveil.sampling.entropy import Entropy

__all__ = [
    "Counts",
    "Independent",
    "Levels",
    "Method",
    "Preserve",
    "PublishedCounts",
    "noisy_cumulative",
    "require_range",
]

Counts: TypeAlias = NDArray[Any]
"""True counts of one column, in 0..upper, in any integer type."""


@dataclass(frozen=True, eq=False)
class PublishedCounts:
    """A column as it is published, and how many rows have each count.

    `matching` says which draws became which counts, where they are not the draws themselves.
    `beside` holds further columns of whole numbers, one value per row, by the word that is put
    after the column's name.
    """

    counts: Integers
    histogram: Integers
    matching: Matching | None = None
    beside: Mapping[str, Integers] = field(default_factory=dict)

    def name_columns(self, name: str) -> dict[str, Integers]:
        """The columns that the released table gets for the count column `name`."""
        return {name: self.counts} | {f"{name}_{word}": c for word, c in self.beside.items()}


class Method(Protocol):
    """A way to release a column; the two steps cannot be mixed up."""

    def draw(self, counts: Counts, entropy: Entropy) -> Any:
        """Private draws: the only step that sees `counts`, which lie in 0..upper."""

    def publish(self, draws: Any, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """The published column, or one for each level; post-processing of the draws."""


@dataclass(frozen=True, eq=False)
class Independent:
    """Every row is drawn by itself from a certified mechanism, and published as drawn."""

    certified: CertifiedAnswers

    def draw(self, counts: Counts, entropy: Entropy) -> NDArray[Any]:
        """One certified draw per row; each row is one person's only row."""
        require_range(counts, self.certified.query.shape[0])
        entropy.rekey()
        return self.certified.draw_positions(counts, entropy)

    def publish(self, draws: NDArray[Any], entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """The draws themselves."""
        return (_count_published(draws, self.certified.query.shape[1]),)


@dataclass(frozen=True, eq=False)
class Preserve:
    """Noisy rows are ranked, and counts with the estimated distribution handed out in order.

    Costs the epsilon of `distribution` for the cumulative histogram and that of `certified`
    for the rows, once for all of them: each row is one person's only row.
    """

    certified: CertifiedGeometric
    distribution: CertifiedNoise | None

    def draw(self, counts: Counts, entropy: Entropy) -> PrivateDraws:
        """A clamped geometric draw per row, and a noisy cumulative histogram."""
        size = self.certified.query.shape[1]
        require_range(counts, size)
        entropy.rekey()
        values = freeze(np.asarray(self.certified.draw_positions(counts, entropy), np.int64))
        if self.distribution is None:
            return PrivateDraws(values, self.certified.exact_epsilon, None, Fraction(0), size)
        totals = noisy_cumulative(np.bincount(counts, minlength=size), self.distribution, entropy)
        epsilon1 = self.distribution.exact_epsilon
        return PrivateDraws(values, self.certified.exact_epsilon, totals, epsilon1, size)

    def publish(self, draws: PrivateDraws, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """Estimate the histogram, round it, and match ranks."""
        histogram = round_histogram(estimate_histogram(draws), draws.records)
        counts = match_ranks(draws, histogram, entropy.permutation(draws.records))
        matching = Matching.of(draws.values, counts)
        return (PublishedCounts(freeze(counts), freeze(histogram), matching),)


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
        return tuple(_count_published(level, self.ladder.query.shape[1]) for level in draws)


def noisy_cumulative(histogram: Integers, noise: CertifiedNoise, entropy: Entropy) -> Integers:
    """Certified noise on the cumulative histogram C_j = #{rows with count <= j}, j = 0..n-2.

    A count that goes from i to i+1 lowers C_i by one and leaves every other C_j as it was. So
    one person moves one entry by one, which is what the noise is certified for.
    """
    totals = np.cumsum(histogram)[:-1]
    return freeze(np.asarray(noise.release(totals, entropy))) if len(totals) else totals


def require_range(counts: Counts, size: int) -> None:
    """Refuse counts that were not clamped: a draw for one would not be the certified one."""
    if len(counts) and int(counts.max()) >= size:
        raise CertificationError("Counts must be clamped to their range before they are drawn.")


def _count_published(drawn: NDArray[Any], size: int) -> PublishedCounts:
    counts = freeze(drawn.astype(np.int64))
    return PublishedCounts(counts, freeze(np.bincount(counts, minlength=size)))
