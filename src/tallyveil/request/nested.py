"""Nested columns: each counts some of those whom the next one counts, in every row."""

from __future__ import annotations

import heapq

import numpy as np

from tallyveil.arrays import Floats, Integers

__all__ = [
    "NESTED_METHODS",
    "describe_limit",
    "hand_out_below",
]

NESTED_METHODS = ("auto", "preserve", "geometric")
"""What nested columns can be released with: geometric noise on every row, at one level."""


def describe_limit(at_most: str, by_rank: bool) -> str:
    """How a nested column was kept below the column `at_most`, as a sentence."""
    below = f"no row exceeds what is published for {at_most}"
    if by_rank:
        return (
            f"Counts were handed out again so that {below}, with the same distribution if "
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
    found, waiting, entered, carried = np.zeros_like(counts), list[int](), 0, 0
    for value in np.union1d(values, limits)[::-1].tolist():
        last = int(np.searchsorted(ends, -value, side="right"))
        for one in ranks[entered:last]:
            heapq.heappush(waiting, one)
        wanted, entered = carried + rows_of.get(value, 0), last
        carried = max(0, wanted - len(waiting))
        best = [heapq.heappop(waiting) for _ in range(wanted - carried)]
        found[by_rank[best]] = value
    return found
