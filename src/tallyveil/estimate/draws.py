"""What an estimate is made from: private draws and public facts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Tally, count_values

__all__ = ["PrivateDraws"]


@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """All that was drawn from the confidential table, and nothing else.

    Attributes
    ----------
    values : every row's geometric draw, of any integer type, shape (N,); clamped to 0..size-1, or
        not clamped where `thresholds` are given
    epsilon2 : the exact privacy cost of `values`
    totals : the noisy number of true counts of at most each threshold, or None
    epsilon1 : the exact privacy cost of `totals`, 0 without them
    size : the number of possible counts, public
    thresholds : the public thresholds of `totals`, rising; None: every count 0..size-2
    weights : how many rows drew each of `values`, which are then different and rising; None: one
    """

    values: NDArray[np.integer[Any]]
    epsilon2: Fraction
    totals: Integers | None
    epsilon1: Fraction
    size: int
    thresholds: Integers | None = None
    weights: Integers | None = None

    @property
    def records(self) -> int:
        """The number of rows, public."""
        return len(self.values) if self.weights is None else int(self.weights.sum())

    @property
    def largest(self) -> int:
        """The largest draw."""
        return int(self.values.max())

    @cached_property
    def histogram(self) -> Integers:
        """How many draws there are of each count, where they are clamped, shape (size,)."""
        if self.weights is None:
            return count_values(self.values, self.size)
        return self.tally.spread_out(self.size)

    @property
    def tally(self) -> Tally:
        """How many rows have each draw that occurs."""
        if self.weights is None:
            return Tally.of(self.values)
        return Tally(self.values.astype(np.int64), self.weights)
