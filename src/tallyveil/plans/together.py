"""Columns of the same rows that are ranked by each other's draws, where that helps both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tallyveil.arrays import Integers, Mask, freeze
from tallyveil.estimate.together import DrawnColumn, expect_together, find_partners
from tallyveil.plans.methods import PublishedCounts
from tallyveil.plans.tallies import Matching
from tallyveil.sampling.entropy import Entropy

__all__ = ["rank_together"]


def rank_together(
    published: Mapping[str, tuple[PublishedCounts, ...]],
    epsilons: Mapping[str, float],
    free: Mask | None,
    entropy: Entropy,
) -> dict[str, tuple[PublishedCounts, ...]]:
    """The columns, their counts handed out anew by what the draws of two of them say of each row.

    Looks at published things and draws only. Every distribution stays as it is. Columns whose
    draws do not help each other are left alone, and so are rows that are not `free`.
    """
    names = list(published)
    rows = np.arange(len(published[names[0]][0].values)) if free is None else np.flatnonzero(free)
    columns = [_take(published[name][0], rows, epsilons[name]) for name in names]
    partners = find_partners(columns, entropy.permutation(len(rows)))
    found = dict(published)
    for name, own, at in zip(names, columns, partners, strict=True):
        if at is not None:
            told = expect_together(own, columns[at])
            ranked = np.lexsort((entropy.permutation(len(rows)), told))
            made = np.empty_like(own.counts)
            made[ranked] = np.sort(own.counts)
            found[name] = (_hand_out(published[name][0], rows, own.draws, made, names[at]),)
    return found


def _take(column: PublishedCounts, rows: Integers, epsilon: float) -> DrawnColumn:
    drawn = column.counts if column.drawn is None else column.drawn
    return DrawnColumn(drawn[rows].astype(np.int64), column.counts[rows], epsilon)


def _hand_out(
    column: PublishedCounts, rows: Integers, draws: Integers, made: Integers, told_by: str
) -> PublishedCounts:
    values = np.zeros_like(column.values)
    values[rows] = made
    matching = Matching.of(draws, made)
    return replace(column, values=freeze(values), matching=matching, told_by=told_by)
