"""Array types of the package, read-only arrays and tallies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COMPARISON_ROUNDING",
    "MOST_COUNTED",
    "BigIntegers",
    "Floats",
    "Fractions",
    "Integers",
    "Mask",
    "Tally",
    "count_values",
    "freeze",
    "tally_values",
]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
BigIntegers: TypeAlias = NDArray[np.object_]
"""Arrays of Python integers, for numbers of more than 63 bits."""

Fractions: TypeAlias = NDArray[np.object_]
"""Arrays of `fractions.Fraction`."""

COMPARISON_ROUNDING = 1e-12
"""Relative difference between two computed doubles that counts as rounding, not as more."""

COUNTED_AT_ONCE = 1 << 18
"""Values that are counted at once, so that narrow types are not widened all together."""

MOST_COUNTED = 4001
"""Largest range that is counted densely; wider ones are tallied by the values that occur."""

Array = TypeVar("Array", bound=NDArray[Any])


def freeze(array: Array) -> Array:
    """Return `array` itself, read-only from now on.

    >>> freeze(np.zeros(2)).flags.writeable
    False
    """
    array.setflags(write=False)
    return array


def count_values(values: NDArray[Any], size: int) -> Integers:
    """Count how often each of 0..size-1 occurs in whole numbers of any type, shape (size,).

    >>> count_values(np.array([2, 0, 2], np.uint8), 4).tolist()
    [1, 0, 2, 0]
    """
    total, step = np.zeros(size, dtype=np.int64), max(COUNTED_AT_ONCE, size)
    for start in range(0, len(values), step):
        total += np.bincount(values[start : start + step], minlength=size)
    return total


@dataclass(frozen=True, eq=False)
class Tally:
    """Distinct whole numbers in rising order, and the count of each.

    >>> tally = Tally.of(np.array([7, 7])) + Tally.of(np.array([10**9, 7]))
    >>> tally.values.tolist(), tally.rows.tolist()
    ([7, 1000000000], [3, 1])
    """

    values: Integers
    rows: Integers

    @classmethod
    def of(cls, values: NDArray[np.integer[Any]]) -> Tally:
        """Count numbers of any size."""
        present, rows = np.unique(values, return_counts=True)
        return cls(present.astype(np.int64), rows)

    @classmethod
    def add_up(cls, values: Integers, rows: Integers) -> Tally:
        """Build a tally from numbers that may repeat, and their counts."""
        present, place = np.unique(values, return_inverse=True)
        added = np.zeros(len(present), np.int64)
        np.add.at(added, place, rows)
        return cls(present[added > 0], added[added > 0])

    def __add__(self, other: Tally) -> Tally:
        values, rows = np.append(self.values, other.values), np.append(self.rows, other.rows)
        return Tally.add_up(values, rows)

    def spread_out(self, size: int) -> Integers:
        """Return the count of each of 0..size-1, shape (size,)."""
        dense = np.zeros(size, np.int64)
        dense[self.values] = self.rows
        return dense


def tally_values(values: NDArray[np.integer[Any]], size: int) -> Integers | Tally:
    """Count each of 0..size-1: as an array, or as a tally if size is large. Both can be added.

    >>> tally_values(np.array([1, 1]), 3)
    array([0, 2, 0])
    """
    return count_values(values, size) if size <= MOST_COUNTED else Tally.of(values)
