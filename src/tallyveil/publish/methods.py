"""How a column is released: private draws first, then post-processing that sees only them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.certified.certify import certify_geometric
from tallyveil.publish.budget_split import Split
from tallyveil.publish.estimate import (
    PrivateDraws,
    estimate_histogram,
    match_ranks,
    round_histogram,
)
from tallyveil.query import Query
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.noise import geometric_noise

__all__ = ["draw_privately", "match_counts", "noisy_cumulative"]


def draw_privately(table: Integers, upper: int, budget: Split, entropy: Entropy) -> PrivateDraws:
    """The only step that sees the table: every random choice here has a certified law.

    Costs epsilon1 for the cumulative histogram and epsilon2 for the rows' clamped geometric
    draws; each row is one person's only row, so all rows together cost epsilon2 once.
    """
    values = certify_geometric(Query.count(upper), budget.epsilon2).release(table, entropy)
    totals = None
    if budget.epsilon1:
        histogram = np.bincount(table, minlength=int(upper) + 1)
        totals = noisy_cumulative(histogram, budget.epsilon1, entropy)
    drawn = np.asarray(values, dtype=np.int64)
    drawn.setflags(write=False)
    return PrivateDraws(drawn, budget.epsilon2, totals, budget.epsilon1, int(upper) + 1)


def noisy_cumulative(histogram: Integers, epsilon: Fraction, entropy: Any) -> Integers:
    """Geometric noise on the cumulative histogram C_j = #{rows with count <= j}, j = 0..n-2.

    Sensitivity: a count that goes from i to i+1 lowers C_i by one and leaves every other C_j
    as it was. So noise with Pr(k) ~ e^(-epsilon |k|) on each entry is epsilon-private.
    """
    totals = np.cumsum(histogram)[:-1]
    if not len(totals):
        return totals
    noise = np.asarray(geometric_noise(len(totals), epsilon, entropy=entropy), dtype=np.int64)
    draws: Integers = totals + noise
    draws.setflags(write=False)
    return draws


def match_counts(draws: PrivateDraws, entropy: Entropy) -> tuple[Integers, Integers]:
    """Released counts and their histogram: estimate, round, match ranks; sees `draws` only."""
    histogram = round_histogram(estimate_histogram(draws), draws.records)
    return match_ranks(draws, histogram, entropy.permutation(draws.records)), histogram
