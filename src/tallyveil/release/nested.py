"""Nested columns: each counts some of those whom the next one counts, in every row."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tallyveil.arrays import Floats, Integers, Mask, freeze
from tallyveil.estimate.ranks import DrawnColumn, expect_jointly
from tallyveil.release.column import Histogram, Matching, PublishedColumn

if TYPE_CHECKING:
    from tallyveil.sampling.entropy import Entropy


def describe_limit(at_most: str, by_rank: bool) -> str:
    """How a nested column was kept below the column `at_most`, as a sentence."""
    below = f"no row exceeds what is published for {at_most}"
    if by_rank:
        return (
            f"Counts were assigned again so that {below}, with the same distribution if "
            "possible. Rows were ranked by their draws of both columns, where there were enough."
        )
    return f"Noisy counts were lowered so that {below}."


def hand_out_below(
    drawn: Integers | Floats, counts: Integers, limits: Integers, order: Integers
) -> Integers:
    """Hand `counts` out anew by rank of `drawn`, no row above its limit; ties stand in `order`.

    From the largest count down, each goes to the row of the highest rank that may have it. One
    that no row may have any more is lowered until one may, so the distribution changes only as
    far as the limits make it.

    >>> hand_out_below(*map(np.array, ([9, 5, 1], [7, 4, 0], [3, 9, 9], [0, 1, 2]))).tolist()
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
    """Nested columns but the largest, none above what the next one publishes in the same row.

    `nested` has the epsilon of the rows' draws by column, from the smallest to the largest.
    """
    columns = dict(published)
    for small, large in reversed(list(pairwise(nested))):
        ((column,), (above,)) = columns[small], columns[large]
        epsilons = nested[small], nested[large]
        columns[small] = (_limit_to(column, above, epsilons, free, entropy),)
    return {name: columns[name] for name in list(nested)[:-1]}


def _limit_to(
    column: PublishedColumn,
    above: PublishedColumn,
    epsilons: tuple[float, float],
    free: Mask | None,
    entropy: Entropy,
) -> PublishedColumn:
    """The column with no row above another one; looks at published things and draws only.

    Where counts were matched to ranks they are assigned again, by what the draws of both
    columns say of each row, so that the distribution stays; others are lowered. Rows that are
    not `free` stay 0, and are no part of the figures.
    """
    rows = np.arange(len(column.counts)) if free is None else np.flatnonzero(free)
    counts, limits = column.counts[rows], above.counts[rows]
    drawn = counts if column.drawn is None else column.drawn[rows].astype(np.int64)
    if column.matching is None:
        lowered = np.minimum(counts, limits)
    else:
        other = above.counts if above.drawn is None else above.drawn.astype(np.int64)
        below = DrawnColumn(drawn, counts, epsilons[0])
        expected = expect_jointly(below, DrawnColumn(other[rows], limits, epsilons[1]))
        lowered = hand_out_below(expected, counts, limits, entropy.permutation(len(rows)))
    full = np.zeros_like(column.counts)
    full[rows] = lowered
    figures = Histogram.count(lowered), Matching.of(drawn, lowered)
    return replace(column, values=freeze(full), histogram=figures[0], matching=figures[1])
