"""Name the array types of the package, and make arrays read-only."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "COMPARISON_ROUNDING",
    "BigIntegers",
    "Floats",
    "Fractions",
    "Integers",
    "Mask",
    "count_values",
    "freeze",
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
