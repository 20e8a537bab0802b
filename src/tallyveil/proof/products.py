"""Products of weight tables in Python's integers, and whether such products are private."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import BigIntegers, Integers
from tallyveil.neighbours import Neighbours
from tallyveil.proof.exponent import Growth

__all__ = ["exact_product", "ratio_holds"]


def exact_product(left: BigIntegers | Integers, right: Integers) -> BigIntegers:
    """``left @ right`` in exact integers, for non-negative tables of any size of entry.

    Both are cut into limbs so short that a double holds every sum of products exactly
    (2 limb bits + log2 of the inner length <= 53), so matrix products at machine speed are
    exact whatever order they add in. Costs (limbs of left)(limbs of right) products.

    >>> exact_product(np.array([[2**40, 1]]), np.array([[2**40], [3]])).tolist() == [[2**80 + 3]]
    True
    """
    inner = max(2, right.shape[0])
    bits = (53 - (inner - 1).bit_length()) // 2
    rows = list(_split_limbs(left, bits))
    columns = list(_split_limbs(right, bits))
    total = np.zeros((left.shape[0], right.shape[1]), dtype=object)
    for power in range(len(rows) + len(columns) - 1):
        # Sums of several exact products may pass 2^53, so they are added as integers.
        part = np.zeros(total.shape, dtype=np.int64)
        for low, first in enumerate(rows):
            if 0 <= power - low < len(columns):
                part += (first @ columns[power - low]).astype(np.int64)
        total += part.astype(object) << (bits * power)
    return total


def _split_limbs(table: BigIntegers | Integers, bits: int) -> Iterator[NDArray[np.float64]]:
    rest = table
    while rest.any():
        yield (rest & ((1 << bits) - 1)).astype(np.float64)
        rest = rest >> bits


def ratio_holds(table: BigIntegers, neighbours: Neighbours, epsilon: Fraction) -> bool:
    """Whether table[i, j] <= e^epsilon table[k, j] for all neighbours i, k, exactly.

    The factor is `Growth.of(epsilon)`, a rational proved not to exceed e^epsilon, the same
    that certificates use. Rows must have one common total.

    >>> even = np.array([[1, 1], [1, 1]], dtype=object)
    >>> ratio_holds(even, Neighbours.path(2), Fraction(1, 10))
    True
    """
    growth = Growth.of(epsilon)
    caps = (table * growth.numerator) >> growth.shift
    if neighbours.kind == "complete":
        return bool((table.max(axis=0) <= caps.min(axis=0)).all())
    return all(
        bool((table[first] <= caps[second]).all()) for first, second in neighbours.ordered_blocks()
    )
