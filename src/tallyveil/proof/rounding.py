"""Round rows of probabilities to integers that total exactly 2^62.

2^62 is the total of every row of certified weights and the number of words of the exact
sampler: output j comes up for exactly weights[j] of them. Nothing here decides about privacy.
"""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats, Integers, Mask

__all__ = ["TOTAL", "TOTAL_BITS", "round_rows", "round_rows_down", "round_segments", "share_evenly"]

TOTAL_BITS = 62
TOTAL = 1 << TOTAL_BITS
"""What the integer weights of one row add up to."""


def round_rows(
    matrix: Floats, rest_at: Integers, *, reserve: int = 0, shared_by: Mask | None = None
) -> Integers:
    """Round the rows of a stochastic matrix, shape (n, m), to integers that total 2^62.

    Entries are rounded down after `reserve` units of each row are kept back. Outputs in
    `shared_by` take equal parts of what a row then lacks; output `rest_at[i]` takes the rest.

    >>> round_rows(np.array([[0.5, 0.5]]), np.array([0])).tolist() == [[2**61, 2**61]]
    True
    """
    units = round_rows_down(matrix, reserve)
    left = TOTAL - units.sum(axis=1)
    if shared_by is not None:
        return units + share_evenly(left, shared_by, rest_at)
    units[np.arange(len(units)), rest_at] += left
    return units


def round_rows_down(matrix: Floats, reserve: int = 0) -> Integers:
    """Return floor(matrix * (2^62 - reserve)), shape (n, m)."""
    return np.floor(matrix * float(TOTAL - reserve)).astype(np.int64)


def share_evenly(units: Integers, shared_by: Mask, rest_at: Integers) -> Integers:
    """Spread `units[i]` over the marked outputs of row i; the remainder goes to `rest_at[i]`.

    >>> share_evenly(np.array([7]), np.array([[True, False, True]]), np.array([2])).tolist()
    [[3, 0, 4]]
    """
    share, rest = np.divmod(units, shared_by.sum(axis=1))
    spread: Integers = np.where(shared_by, share[:, None], 0)
    spread[np.arange(len(spread)), rest_at] += rest
    return spread


def round_segments(shares: Floats, start: Integers) -> Integers:
    """Round rows that are stored one after another to integers that total 2^62 each.

    Row k is ``shares[start[k]:start[k + 1]]``, not empty. Entries are rounded down; the first
    of each row's largest entries takes the rest, which may be a few units below zero because
    shares carry a rounding of their own.

    >>> round_segments(np.array([1.0, 0.25, 0.75]), np.array([0, 1, 3])).tolist() == [
    ...     2**62, 2**60, 3 * 2**60]
    True
    """
    units: Integers = np.floor(shares * float(TOTAL)).astype(np.int64)
    lost = TOTAL - np.add.reduceat(units, start[:-1])
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    largest = np.flatnonzero(np.maximum.reduceat(shares, start[:-1])[row] == shares)
    first = largest[np.searchsorted(row[largest], np.arange(len(start) - 1))]
    units[first] += lost
    return units
