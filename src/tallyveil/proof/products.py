"""Products of weight tables in exact integers, and whether such products are private.

A level of a ladder is drawn in steps, each from integer weights. Its own distribution is the
product of those tables, with entries of hundreds of bits; here it is computed and judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import BigIntegers, Integers
from tallyveil.neighbours import Neighbours
from tallyveil.proof.exponent import Growth
from tallyveil.proof.ratios import find_row_fault
from tallyveil.query import Query

__all__ = ["exact_product", "find_broken_level", "ratio_holds"]


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


def find_broken_level(
    tables: Sequence[Integers], query: Query, epsilons: Sequence[Fraction]
) -> str | None:
    """Why the levels of a ladder are not private at their epsilons, or None if they are.

    The first table is drawn from given the true answer, every further one given what the
    level before released. Level k on its own is epsilon_k-private if the exact product of the
    first k tables is; all levels together are as private as the first, because the others
    never look at the true answer again (Gupte and Sundararajan 2010, Lemma 4).
    """
    size = len(query.inputs)
    if not query.is_square or not epsilons or len(tables) != len(epsilons):
        return "A ladder needs a table and an epsilon for every level, and answers as outputs."
    if any(after >= before for before, after in pairwise(epsilons)):
        return "The epsilons of a ladder must fall from level to level."
    for level, weights in enumerate(tables, start=1):
        if weights.shape != (size, size):
            return f"The weights of level {level} do not have the shape of the query's answers."
    product: BigIntegers = np.eye(size, dtype=np.int64).astype(object)
    for level, (weights, epsilon) in enumerate(zip(tables, epsilons, strict=True), start=1):
        fault = find_row_fault(weights)
        if fault is not None:
            return f"Level {level}: {fault}"
        product = exact_product(product, weights)
        if not ratio_holds(product, query.neighbours, epsilon):
            return f"Level {level} is not private at epsilon {epsilon}."
    return None
