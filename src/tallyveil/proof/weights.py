"""Turn a private matrix of doubles into integer weights that are private as integers.

Rounding a private matrix to integers breaks ratios by a unit here and there. The closure that
repairs doubles repairs the integers too (`tallyveil.proof.repair.close_ratios`), and what is left
of each row's total is shared so evenly that the shares are themselves private; a sum of private
arrays is private.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.errors import CertificationError
from tallyveil.neighbours import Neighbours
from tallyveil.proof.exponent import Growth
from tallyveil.proof.ratios import find_broken_cell, hockey_stick
from tallyveil.proof.repair import close_ratios, label_components
from tallyveil.proof.rounding import TOTAL, TOTAL_BITS, round_rows, round_rows_down, share_evenly
from tallyveil.query import Query

__all__ = ["approximate_weights", "pure_weights"]

LARGEST_RESERVE = 1e-3
"""Largest part of a row that may be shared evenly to make the integers private."""

MIXING_ROUNDS = 4
"""How often `approximate_weights` mixes in the mean output distribution before it gives up."""

MIXING_MARGIN = 2.0**-40
"""Mixed in beyond what the excess asks for, against the rounding of the mixed doubles."""


def pure_weights(matrix: Floats, query: Query, epsilon: Fraction) -> Integers:
    """Return integer weights for a (nearly) epsilon-private matrix, rows totalling 2^62.

    Every output that any row of a connected part of the neighbour graph reports gets at least
    weight 1 in all rows of that part; every other output gets 0. For every neighbour pair and
    every output, weight <= e^epsilon * neighbour's weight, exactly. Symmetric matrices give
    symmetric weights.
    """
    growth = Growth.of(epsilon)
    support = _find_support(matrix, query.neighbours)
    rest_at = _choose_rest_outputs(matrix, support, query)
    most = support.sum(axis=1).max()
    # The shares are private if they differ by at most (ratio - 1) shares. They differ by the
    # `most` units of a remainder at the worst, so `most / (ratio - 1)` per output suffices.
    surplus = growth.ratio - 1
    reserve = int(most**2 / surplus) + int(most)
    while reserve <= LARGEST_RESERVE * TOTAL:
        units = np.maximum(round_rows_down(matrix, reserve), support)
        units = close_ratios(units, query.neighbours, growth.need)
        left = TOTAL - units.sum(axis=1)
        if left.min() >= 0:
            shares = share_evenly(left, support, rest_at)
            if (
                left.max() == 0
                or find_broken_cell(shares, growth.cap(shares), query.neighbours) is None
            ):
                return units + shares
        reserve += max(reserve, int(int(np.ptp(left)) / surplus))
    raise CertificationError(
        f"Epsilon {float(epsilon):g} is too small for {query.shape[1]} outputs in "
        f"{TOTAL_BITS} bits: rounding to integers would move more than {LARGEST_RESERVE:g} of "
        "a row. Use a larger epsilon or fewer outputs."
    )


def approximate_weights(
    matrix: Floats, query: Query, epsilon: Fraction, delta: Fraction
) -> Integers:
    """Return integer weights of an (epsilon, delta)-private matrix, rows totalling 2^62.

    Entries are rounded down, with the rest on each row's likeliest output. If that leaves the
    hockey-stick sum above delta, rows are mixed with the mean output distribution by just as much
    as brings it below; mixing by t scales the sum by 1 - t. `check_weights` decides in the end.
    """
    allowed = int(delta * TOTAL)
    mean = matrix.mean(axis=0) / matrix.mean(axis=0).sum()
    mixing = 0.0
    for _ in range(MIXING_ROUNDS):
        mixed = (1 - mixing) * matrix + mixing * mean
        units = round_rows(mixed, matrix.argmax(axis=1))
        excess = hockey_stick(units, Growth.of(epsilon).cap(units), query.neighbours)[0]
        if excess <= allowed:
            return units
        mixing = min(1.0, mixing + (excess - allowed) / excess + MIXING_MARGIN)
    return units


def _find_support(matrix: Floats, neighbours: Neighbours) -> Mask:
    """Outputs that some row in the same connected part reports, shape (n, m)."""
    label = label_components(neighbours)
    support = np.zeros(matrix.shape, dtype=bool)
    for part in np.unique(label):
        support[label == part] = (matrix[label == part] > 0).any(axis=0)
    return support


def _choose_rest_outputs(matrix: Floats, support: Mask, query: Query) -> Integers:
    """The output of each row that takes the last units: the truth's own, or the likeliest."""
    own = support[np.arange(len(matrix)), query.home]
    return np.where(own, query.home, matrix.argmax(axis=1))
