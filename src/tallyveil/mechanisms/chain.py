"""The chain of geometric mechanisms: the inverse of one, and the step to a more private one.

Everything exists twice: in floats for any epsilon, and in exact fractions for a rational
``ratio`` = exp(-epsilon), the papers' alpha. Indices are 0..n, the papers' own (003,
section 2; errata 003.4).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_rational
from tallyveil.mechanism import Mechanism

__all__ = [
    "exact_geometric",
    "exact_step",
    "geometric_rate",
    "remove_geometric",
    "step",
]

Fractions = NDArray[np.object_]
"""Arrays of `fractions.Fraction`."""


def exact_geometric(size: int, ratio: Epsilon) -> Fractions:
    """The geometric mechanism on `size` answers in fractions, shape (size, size).

    >>> exact_geometric(2, Fraction(1, 4)).tolist()
    [[Fraction(4, 5), Fraction(1, 5)], [Fraction(1, 5), Fraction(4, 5)]]
    """
    a = checked_ratio(ratio)
    rows = [[a ** abs(i - r) * _end_factor(r, size, a) for r in range(size)] for i in range(size)]
    return np.array(rows, dtype=object)


def remove_geometric(matrix: ArrayLike, ratio: float | Fraction) -> NDArray[Any]:
    """``G^-1 @ matrix`` for the geometric mechanism G with exp(-epsilon) = `ratio`.

    The inverse is tridiagonal (003, Lemma 1 and Table 2)::

        (1 - a) G^-1[0] = [1, -a, 0, ...],   (1 - a)^2 G^-1[i] = [..., -a, 1 + a^2, -a, ...]

    so it costs O(n m). With Fractions in `matrix` and `ratio` the result is exact.

    Parameters
    ----------
    matrix : shape (n, m), one row per true answer, n >= 2
    ratio : strictly between 0 and 1
    """
    table = np.asarray(matrix)
    a = ratio
    result = (1 + a * a) * table
    result[1:] = result[1:] - a * table[:-1]
    result[:-1] = result[:-1] - a * table[1:]
    result = result / ((1 - a) * (1 - a))
    result[0] = (table[0] - a * table[1]) / (1 - a)
    result[-1] = (table[-1] - a * table[-2]) / (1 - a)
    return result


def step(size: int, less_private: float, more_private: float) -> Floats:
    """The remap T with G(less_private) T = G(more_private), shape (size, size).

    Both are epsilons per grid step, less_private >= more_private > 0. With a, b their
    ratios exp(-epsilon), a <= b (003, Lemma 3; errata 003.6)::

        off the diagonal   T[i, r] = w_i G_b[i, r],    w_i = (b - a)(1 - a b) / (b (1 - a)^2)
                                                       w_i = (b - a) / (b (1 - a)) at the ends

    and the diagonal takes the rest: keep the released value, or draw from the more private
    mechanism as if it were the truth. Every term is a product of positive numbers, so
    entries are right to about 1e-13 relative. Costs O(size^2).

    >>> import math
    >>> np.round(step(2, math.log(4), math.log(2)) * 9, 9).tolist()
    [[7.0, 2.0], [2.0, 7.0]]
    """
    a, b = np.exp(-less_private), np.exp(-more_private)
    one_minus_a, one_minus_b = -np.expm1(-less_private), -np.expm1(-more_private)
    spread = -np.expm1(more_private - less_private)  # (b - a) / b without cancellation
    redraw = np.full(size, spread * -np.expm1(-(less_private + more_private)) / one_minus_a**2)
    redraw[[0, -1]] = spread / one_minus_a
    factor = np.full(size, one_minus_b / (1 + b))
    factor[[0, -1]] = 1 / (1 + b)
    index = np.arange(size)
    decay = np.exp(-more_private * index)[np.abs(index[:, None] - index[None, :])]
    T: Floats = redraw[:, None] * decay * factor[None, :]
    stay = (one_minus_a**2 + 2 * a * one_minus_b) / one_minus_a**2
    T[index, index] = factor * stay
    T[[0, -1], [0, -1]] = factor[0] * -np.expm1(-(less_private + more_private)) / one_minus_a
    return T


def exact_step(size: int, less_private: Epsilon, more_private: Epsilon) -> Fractions:
    """`step` in fractions; both arguments are ratios exp(-epsilon), less_private <= more_private.

    >>> exact_step(2, Fraction(1, 4), Fraction(1, 2)).tolist()
    [[Fraction(7, 9), Fraction(2, 9)], [Fraction(2, 9), Fraction(7, 9)]]
    """
    a, b = checked_ratio(less_private), checked_ratio(more_private)
    if a > b:
        raise ArgumentError("more_private", "be at least the less private ratio", str(b))
    return np.array(
        [[_exact_entry(i, r, size, a, b) for r in range(size)] for i in range(size)], dtype=object
    )


def _exact_entry(i: int, r: int, size: int, a: Fraction, b: Fraction) -> Fraction:
    away = abs(i - r)
    if i in (0, size - 1):
        shape = (1 - a * b if away == 0 else b ** (away - 1) * (b - a)) / (1 - a)
    elif away == 0:
        shape = (1 + a * a - 2 * a * b) / (1 - a) ** 2
    else:
        shape = b ** (away - 1) * (b - a) * (1 - a * b) / (1 - a) ** 2
    return _end_factor(r, size, b) * shape


def _end_factor(r: int, size: int, ratio: Fraction) -> Fraction:
    return (1 if r in (0, size - 1) else 1 - ratio) / (1 + ratio)


def geometric_rate(mechanism: Mechanism, tolerance: float = 1e-9) -> float | None:
    """Epsilon per grid step if the matrix is a truncated geometric mechanism, else None.

    Judged on the matrix itself, not on its name: square, and within `tolerance` (relative)
    of the closed form for the ratio of its first two rows.

    >>> from tallyveil import Query, geometric
    >>> round(geometric_rate(geometric(Query.count(5), 0.5)), 9)
    0.5
    """
    matrix, size = mechanism.matrix, len(mechanism.matrix)
    if not mechanism.query.is_square or not 0 < matrix[1, 0] < matrix[0, 0]:
        return None
    rate = float(np.log(matrix[0, 0]) - np.log(matrix[1, 0]))
    index = np.arange(size)
    expected = np.exp(-rate * index)[np.abs(index[:, None] - index[None, :])]
    expected = expected * (-np.expm1(-rate) / (1 + np.exp(-rate)))
    expected[:, [0, -1]] /= -np.expm1(-rate)
    floor = 1e-290  # beside it doubles lose their digits
    near = np.abs(matrix - expected) <= tolerance * expected + floor
    return rate if bool(near.all()) else None


def checked_ratio(value: Epsilon) -> Fraction:
    """exp(-epsilon) as a fraction strictly between 0 and 1."""
    ratio = exact_rational(value, "ratio")
    if not 0 < ratio < 1:
        raise ArgumentError("ratio", "lie strictly between 0 and 1", value)
    return ratio
