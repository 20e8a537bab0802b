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

Array = TypeVar("Array", bound=NDArray[Any])


def freeze(array: Array) -> Array:
    """Return `array` itself, read-only from now on.

    >>> freeze(np.zeros(2)).flags.writeable
    False
    """
    array.setflags(write=False)
    return array
