"""Doubles to integers: weights with row totals of exactly 2^62 that are private as integers.

Rounding a private matrix to integers breaks ratios by a unit here and there. The same sweep
that repairs doubles mends it, this time in integers, and what is left of each row's total
is spread so evenly that the spread is itself private; a sum of private arrays is private.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import CertificationError
from tallyveil.neighbours import Neighbours
from tallyveil.proof.exponent import Growth
from tallyveil.proof.ratios import TOTAL, TOTAL_BITS, find_broken_cell, hockey_stick
from tallyveil.proof.repair import closure, components
from tallyveil.query import Query

__all__ = ["approximate_weights", "pure_weights"]

LARGEST_RESERVE = 1e-3  # of a row's mass may be spread to make the integers fit


def pure_weights(matrix: Floats, query: Query, epsilon: Fraction) -> Integers:
    """Integer weights for a (nearly) epsilon-private matrix, shape (n, m), rows total 2^62.

    Every output that any row of a connected part of the neighbour graph reports gets at
    least weight 1 in all its rows; every other output gets 0. For every neighbour pair and
    every output, weight <= e^epsilon * neighbour's weight, exactly. Symmetric matrices give
    symmetric weights.

    >>> pure_weights(np.full((2, 2), 0.5), Query.count(1), Fraction(1)).tolist() == [
    ...     [2**61, 2**61], [2**61, 2**61]]
    True
    """
    growth = Growth.of(epsilon)
    support = _support(matrix, query.neighbours)
    outputs = support.sum(axis=1)
    # The even spread holds if its range, at most `rest` units, is below (ratio - 1) shares.
    surplus = growth.ratio - 1
    reserve = int(outputs.max() ** 2 / surplus) + int(outputs.max())
    while reserve <= LARGEST_RESERVE * TOTAL:
        units = np.floor(matrix * float(TOTAL - reserve)).astype(np.int64)
        units = closure(np.maximum(units, support), query.neighbours, growth.need)
        left = TOTAL - units.sum(axis=1)
        if left.min() >= 0:
            share, rest = np.divmod(left, outputs)
            spread = np.where(support, share[:, None], 0)
            spread[np.arange(len(spread)), _seat(matrix, support, query)] += rest
            if (
                left.max() == 0
                or find_broken_cell(spread, growth.cap(spread), query.neighbours) is None
            ):
                return units + spread
        reserve += max(reserve, int(int(np.ptp(left)) / surplus))
    raise CertificationError(
        f"Epsilon {float(epsilon):g} is too small for {query.shape[1]} outputs in "
        f"{TOTAL_BITS} bits: rounding to integers would move more than {LARGEST_RESERVE:g} of "
        "a row. Use a larger epsilon or fewer outputs."
    )


def approximate_weights(
    matrix: Floats, query: Query, epsilon: Fraction, delta: Fraction
) -> Integers:
    """Integer weights of an (epsilon, delta)-private matrix, shape (n, m), rows total 2^62.

    Rounded down, with the rest on each row's likeliest output. If that leaves the
    hockey-stick sum above delta, rows are mixed with the mean output law by just as much as
    brings it below; mixing by t scales the sum by 1 - t. Impossible entries stay impossible
    unless mixing is needed.
    """
    allowed = int(delta * TOTAL)
    mean = matrix.mean(axis=0) / matrix.mean(axis=0).sum()
    mixing = 0.0
    for _ in range(4):
        mixed = (1 - mixing) * matrix + mixing * mean
        units: Integers = np.floor(mixed * float(TOTAL)).astype(np.int64)
        rows = np.arange(len(units))
        units[rows, matrix.argmax(axis=1)] += TOTAL - units.sum(axis=1)
        excess = hockey_stick(units, Growth.of(epsilon).cap(units), query.neighbours)[0]
        if excess <= allowed:
            return units
        mixing = min(1.0, mixing + (excess - allowed) / excess + 2.0**-40)
    return units


def _support(matrix: Floats, neighbours: Neighbours) -> NDArray[np.bool_]:
    label = components(neighbours)
    support = np.zeros(matrix.shape, dtype=bool)
    for part in np.unique(label):
        support[label == part] = (matrix[label == part] > 0).any(axis=0)
    return support


def _seat(matrix: Floats, support: NDArray[np.bool_], query: Query) -> Integers:
    """The output of each row that takes the last few units: its own, or else the likeliest."""
    own = support[np.arange(len(matrix)), query.home]
    return np.where(own, query.home, matrix.argmax(axis=1))
