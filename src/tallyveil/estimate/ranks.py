"""From an estimate to released counts: whole numbers, handed out in the order of the draws."""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.estimate.cells import Cells
from tallyveil.estimate.draws import PrivateDraws

__all__ = ["match_ranks", "round_histogram"]


def round_histogram(histogram: Floats, records: int) -> Integers:
    """Whole numbers with the histogram's cumulative sums, rounded; they sum to `records`.

    Rounding the cumulative sums keeps every one within 1/2; rounding bins would not.

    >>> round_histogram(np.array([0.6, 0.6, 0.6, 1.2]), 3).tolist()
    [1, 0, 1, 1]
    """
    totals = np.floor(np.cumsum(histogram) + 0.5).astype(np.int64)
    totals = np.clip(totals, 0, records)
    totals[-1] = records
    return np.diff(totals, prepend=0)


def match_ranks(
    draws: PrivateDraws, cells: Cells, histogram: Integers, order: Integers
) -> Integers:
    """Released counts with exactly this histogram, handed out in the order of the draws.

    The row with the smallest draw gets the smallest cell, and so on, and in it the count
    nearest to its draw. `order` breaks ties: a fresh random permutation of the rows, so that
    row order says nothing. Where cells are single counts, no table with this histogram has a
    smaller expected absolute or squared error, as a larger draw never makes a smaller count
    likelier (docs/theory.md). Shape (N,).

    >>> from fractions import Fraction
    >>> draws = PrivateDraws(np.array([4, 0, 2]), Fraction(1), None, Fraction(0), 5)
    >>> cells = Cells.ending_at(np.arange(5))
    >>> match_ranks(draws, cells, np.array([1, 1, 0, 1, 0]), np.arange(3)).tolist()
    [3, 0, 1]
    """
    ranking = order[np.argsort(draws.values[order], kind="stable")]
    low, high = np.repeat(cells.low, histogram), np.repeat(cells.high, histogram)
    released = np.empty(draws.records, dtype=np.int64)
    released[ranking] = np.clip(draws.values[ranking], low, high)
    return released
