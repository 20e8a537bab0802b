"""What an estimate is made from: private draws and public facts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, count_values

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
    counted : how many rows have each draw, where `values` are not held here, shape (size,)
    """

    values: NDArray[np.integer[Any]]
    epsilon2: Fraction
    totals: Integers | None
    epsilon1: Fraction
    size: int
    thresholds: Integers | None = None
    counted: Integers | None = None

    @classmethod
    def count(
        cls, counted: Integers, epsilon2: Fraction, totals: Integers | None, epsilon1: Fraction
    ) -> PrivateDraws:
        """Draws of which only their histogram is here."""
        size = len(counted)
        return cls(np.zeros(0, np.int64), epsilon2, totals, epsilon1, size, None, counted)

    @property
    def records(self) -> int:
        """The number of rows, public."""
        return len(self.values) if self.counted is None else int(self.counted.sum())

    @property
    def largest(self) -> int:
        """The largest draw."""
        if self.counted is None:
            return int(self.values.max())
        return int(np.flatnonzero(self.counted)[-1])

    @cached_property
    def histogram(self) -> Integers:
        """How many draws there are of each count, where they are clamped, shape (size,)."""
        return count_values(self.values, self.size) if self.counted is None else self.counted
