"""What an estimate is made from: private draws and public facts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from tallyveil.arrays import Integers

__all__ = ["PrivateDraws"]


@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """All that was drawn from the confidential table, and nothing else.

    Attributes
    ----------
    values : every row's geometric draw, shape (N,); clamped to 0..size-1, or not clamped where
        `thresholds` are given
    epsilon2 : the exact privacy cost of `values`
    totals : the noisy number of true counts of at most each threshold, or None
    epsilon1 : the exact privacy cost of `totals`, 0 without them
    size : the number of possible counts, public
    thresholds : the public thresholds of `totals`, rising; None: every count 0..size-2
    """

    values: Integers
    epsilon2: Fraction
    totals: Integers | None
    epsilon1: Fraction
    size: int
    thresholds: Integers | None = None

    @property
    def records(self) -> int:
        """The number of rows, public."""
        return len(self.values)

    @cached_property
    def histogram(self) -> Integers:
        """How many draws there are of each count, where they are clamped, shape (size,)."""
        return np.bincount(self.values, minlength=self.size)
