"""Array types of the package, read-only arrays and tallies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

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

    >>> tally = Tally.of(np.array([7, 10**9, 7]))
    >>> tally.values.tolist(), tally.rows.tolist()
    ([7, 1000000000], [2, 1])
    """

    values: Integers
    rows: Integers

    @classmethod
    def of(cls, values: NDArray[np.integer[Any]]) -> Tally:
        """Count numbers of any size."""
        present, rows = np.unique(values, return_counts=True)
        return cls(present.astype(np.int64), rows)

    def spread_out(self, size: int) -> Integers:
        """Return the count of each of 0..size-1, shape (size,)."""
        dense = np.zeros(size, np.int64)
        dense[self.values] = self.rows
        return dense
