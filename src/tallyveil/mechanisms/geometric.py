"""The truncated geometric mechanism in closed form, and canonical noise, its kin with a delta.

With a = exp(-epsilon), true answer i and output r among 0..n, the matrix is::

    G[i, r] = (1 - a)/(1 + a) a^|i-r|   for 0 < r < n,      a^|i-r| / (1 + a)   for r = 0, n

This module is its only home: the matrix in doubles and in fractions, the tridiagonal inverse,
the output distribution, the step to a smaller epsilon, the test that a matrix is geometric, and
bias, error and interval without a matrix. `epsilon` is here the privacy loss per grid step;
``ratio`` = exp(-epsilon) is the papers' alpha.

Canonical noise N for (epsilon, delta)-privacy has density 0 outside [-L, L] and the cumulative
distribution F with::

    F(-1/2) = (1 - delta) / (1 + e^epsilon),        F linear from -1/2 to 1/2,
    F(x - 1) = e^-epsilon (F(x) - delta)   for x <= 1/2, until it reaches 0,
    F(-x) = 1 - F(x)

so that F(x - 1) is, for every x, the smallest value that (epsilon, delta)-privacy allows next to
F(x). That alone makes every private mechanism of a count no better than a remap of true answer
plus N (docs/theory.md, canonical noise). With delta = 0, rounded, it is geometric noise.

References
----------
Awan and Vadhan (2023), Canonical noise distributions; Awan and Slavkovic (2018), the Tulap
distribution.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Fractions, Integers
from tallyveil.errors import ArgumentError, QueryError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon, exact_ratio
from tallyveil.mechanism import Mechanism
from tallyveil.query import GRID_TOLERANCE, Query, require_query

RATE_TOLERANCE = 1e-9
"""Largest relative difference from the closed form at which a matrix counts as geometric."""

REACH_TOLERANCE = 1e-9
"""Steps by which the reach of an interval may miss a whole number before it is rounded up."""

SMALLEST_EXACT_DOUBLE = 1e-290
"""Entries below this are compared absolutely: near underflow doubles lose their digits."""


def geometric(query: Query, epsilon: Epsilon) -> Mechanism:
    """Build the mechanism that adds two-sided geometric noise and clamps it to the range.

    With a = exp(-epsilon / w), w the widest step between neighbours in grid steps (1 for a
    count), true answer i and output r::

        Pr(r | i) = (1 - a)/(1 + a) a^|i-r|   inside,      a^|i-r| / (1 + a)   at the ends

    It minimises the zero-one loss under a uniform prior, and every minimax or Bayesian consumer
    of a count can derive their own optimum from it. Entries are right to about 1e-13 relative.
    Beyond epsilon * n of about 700 far tails underflow to zero, which `certify` repairs and
    `realised_epsilon` reports. Costs O(n m).

    Parameters
    ----------
    query : Query
        Evenly spaced inputs, and outputs on the same grid (``categories=1``); `extend` is allowed.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss, between 1e-12 and 700.

    Returns
    -------
    Mechanism
        The matrix, shape (n, m).

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Theorem 3.
    Cormode, Kulkarni and Srivastava (2018), Definition 4 (errata, Cormode 1) and Theorem 5.
    Gupte and Sundararajan (2010), Definition 4 and Theorem 1.

    Examples
    --------
    >>> np.round(geometric(Query.count(2), "0.6931471805599453").matrix, 6).tolist()
    [[0.666667, 0.166667, 0.166667], [0.333333, 0.333333, 0.333333], [0.166667, 0.166667, 0.666667]]
    """
    exact = exact_epsilon(epsilon)
    require_grid(query, "geometric noise")
    matrix = _build_matrix(float(exact) / query.neighbours.width, query.home, len(query.outputs))
    return Mechanism(matrix, query, exact, name="geometric")


def _build_matrix(epsilon: float, home: Integers, outputs: int) -> Floats:
    """Build G for inputs whose outputs are `home`, successive indices."""
    decay = np.exp(-epsilon * np.arange(outputs))
    both_sides = np.concatenate([decay[:0:-1], decay])
    # Each row is the one before, shifted by one: windows of one array.
    windows = np.lib.stride_tricks.sliding_window_view(both_sides, outputs)
    matrix: Floats = windows[outputs - 1 - home[0] :: -1][: len(home)] * (
        -np.expm1(-epsilon) / (1 + decay[1])
    )
    matrix[:, 0] = decay[home] / (1 + decay[1])
    matrix[:, -1] = decay[outputs - 1 - home] / (1 + decay[1])
    return matrix


def require_grid(query: Query, what: str) -> None:
    """Raise a `QueryError` unless inputs and outputs lie on one evenly spaced grid."""
    require_query(query)
    steps = np.diff(query.outputs.astype(float))
    spacing = np.diff(query.inputs.astype(float))
    slack = GRID_TOLERANCE * spacing[0]
    even = np.ptp(spacing) <= slack and len(steps) > 0
    even = even and bool(np.abs(steps - spacing[0]).max() <= slack)
    on_grid = np.abs(query.outputs[query.home] - query.inputs).max() <= slack
    if not (even and on_grid):
        rule = f"have evenly spaced inputs, and outputs on the same grid, for {what}"
        hint = "Use laplace or exponential, or categories=1."
        raise QueryError("query", rule, hint=hint, got=repr(query))


def geometric_rate(mechanism: Mechanism, tolerance: float = RATE_TOLERANCE) -> float | None:
    """Return epsilon per grid step if the matrix is a geometric mechanism, else None.

    The matrix decides, not its name: it must be square and agree with the closed form whose
    ratio is that of its first two rows.

    >>> round(geometric_rate(geometric(Query.count(5), 0.5)), 9)
    0.5
    """
    matrix, size = mechanism.matrix, len(mechanism.matrix)
    if not mechanism.query.is_square or not 0 < matrix[1, 0] < matrix[0, 0]:
        return None
    rate = float(np.log(matrix[0, 0]) - np.log(matrix[1, 0]))
    expected = _build_matrix(rate, np.arange(size), size)
    near = np.abs(matrix - expected) <= tolerance * expected + SMALLEST_EXACT_DOUBLE
    return rate if bool(near.all()) else None


# -- factors, sums and the inverse ---------------------------------------------------------------


def absolute_errors(counts: ArrayLike, upper: int, epsilon: float) -> Floats:
    """Return E|draw - d| for true counts d, the draws clamped to 0..upper.

    It is a (2 - a^d - a^(upper-d)) / (1 - a^2).

    >>> absolute_errors([0, 1, 2], 2, math.log(2)).round(12).tolist()
    [0.5, 0.666666666667, 0.5]
    """
    d = np.asarray(counts, dtype=float)
    inside = 2 - np.exp(-epsilon * d) - np.exp(-epsilon * (upper - d))
    errors: Floats = inside * math.exp(-epsilon) / -math.expm1(-2 * epsilon)
    return errors


def noise_variance(epsilon: Fraction | float) -> float:
    """Return the variance 2a/(1-a)^2 of two-sided geometric noise, a = exp(-epsilon).

    >>> round(noise_variance(math.log(2)), 12)
    4.0
    """
    rate = float(epsilon)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def output_factors(size: int, epsilon: float) -> Floats:
    """Return f with G[i, r] = a^|i-r| f[r]: (1 - a)/(1 + a) inside, 1/(1 + a) at both ends.

    >>> (output_factors(3, math.log(2)) * 3).round(12).tolist()
    [2.0, 1.0, 2.0]
    """
    a = math.exp(-epsilon)
    factors = np.full(size, -math.expm1(-epsilon) / (1 + a))
    factors[[0, -1]] = 1 / (1 + a)
    return factors


def sum_both_sides(values: ArrayLike, epsilon: float) -> Floats:
    """Return sum_j a^|i-j| values_j for every i; nothing cancels.

    >>> sum_both_sides([1.0, 0.0, 4.0], math.log(2)).tolist()
    [2.0, 2.5, 4.25]
    """
    array = np.asarray(values, dtype=float)
    below, above = decaying_sums(array, math.exp(-epsilon))
    both: Floats = below + above - array
    return both


def decaying_sums(values: Floats, ratio: float) -> tuple[Floats, Floats]:
    """Return s_i = values_i + ratio s_(i-1), from the left and from the right.

    Every round doubles how many terms each sum holds: O(n log n), fewer rounds once powers vanish.

    >>> [side.tolist() for side in decaying_sums(np.array([1.0, 0.0, 4.0]), 0.5)]
    [[1.0, 0.5, 4.25], [2.0, 2.0, 4.0]]
    """
    sums = np.column_stack([values, values[::-1]])
    length = 1
    while length < len(sums) and ratio:
        sums[length:] += ratio * sums[:-length]
        length, ratio = 2 * length, ratio * ratio
    return sums[:, 0], sums[::-1, 1]


def geometric_output_distribution(source: ArrayLike, epsilon: float) -> Floats:
    """Return source·G, the distribution of the draw when the true count has `source`.

    Two exponential running sums of positive terms instead of a matrix product: every entry is
    right to about 1e-13 relative until it underflows.

    >>> np.round(geometric_output_distribution([0.0, 1.0, 0.0], np.log(2)), 12).tolist()
    [0.333333333333, 0.333333333333, 0.333333333333]
    """
    a = math.exp(-epsilon)
    below, above = decaying_sums(np.asarray(source, dtype=float), a)
    inside = below + a * np.append(above[1:], 0.0)
    drawn: Floats = inside * (-math.expm1(-epsilon) / (1 + a))
    drawn[0], drawn[-1] = above[0] / (1 + a), below[-1] / (1 + a)
    drawn /= drawn.sum()
    return drawn


def inverse_diagonals(size: int, epsilon: float) -> tuple[Floats, Floats]:
    """Return d and b with G^-1[i, i] = d[i] and G^-1[i, i-1] = G^-1[i, i+1] = -b[i].

    (1 - a)^2 (d, b) = (1 + a^2, a) inside and (1 - a)(d, b) = (1, a) at the ends; everything
    else in the inverse is zero (Gupte and Sundararajan 2010, Lemma 1 and Table 2).

    >>> [part.round(12).tolist() for part in inverse_diagonals(3, math.log(2))]
    [[2.0, 5.0, 2.0], [1.0, 2.0, 1.0]]
    """
    a, gap = math.exp(-epsilon), -math.expm1(-epsilon)
    diagonal, off_diagonal = np.full(size, (1 + a * a) / gap**2), np.full(size, a / gap**2)
    diagonal[[0, -1]], off_diagonal[[0, -1]] = 1 / gap, a / gap
    return diagonal, off_diagonal


def remove_geometric(matrix: ArrayLike, ratio: float | Fraction) -> NDArray[Any]:
    """Return ``G^-1 @ matrix``, exp(-epsilon) = `ratio`: the remap that turns G into `matrix`.

    It has negative entries if there is none. Exact with Fractions in `matrix` and `ratio`; costs
    O(n m) (Gupte and Sundararajan 2010, Lemma 1 and Table 2).
    """
    gap = 1 - ratio
    result = _apply_scaled_inverse(np.asarray(matrix), ratio)
    result[1:-1] = result[1:-1] / (gap * gap)
    result[[0, -1]] = result[[0, -1]] / gap
    return result


def remove_geometric_transposed(values: Floats, epsilon: float) -> Floats:
    """Return ``G^-T @ values`` in O(n): what prices of outputs say about true answers."""
    gap = -math.expm1(-epsilon)
    scaled = values / gap**2
    scaled[[0, -1]] *= gap
    return _apply_scaled_inverse(scaled, math.exp(-epsilon))


def _apply_scaled_inverse(table: NDArray[Any], a: float | Fraction) -> NDArray[Any]:
    """Return K @ table, K = diag(1 - a, (1 - a)^2, ..., (1 - a)^2, 1 - a) G^-1, symmetric."""
    result = (1 + a * a) * table
    result[[0, -1]] = table[[0, -1]]
    result[1:] = result[1:] - a * table[:-1]
    result[:-1] = result[:-1] - a * table[1:]
    return result


# -- the step to a smaller epsilon ---------------------------------------------------------------


def geometric_step(size: int, epsilon: float, smaller: float) -> Floats:
    """Return the remap T with G(epsilon) T = G(smaller), epsilon >= smaller > 0, in O(size^2).

    With a and b the ratios exp(-epsilon) and exp(-smaller), a <= b::

        off the diagonal   T[i, r] = w_i G_b[i, r],    w_i = (b - a)(1 - a b) / (b (1 - a)^2)
                                                       w_i = (b - a) / (b (1 - a)) at the ends

    and the diagonal takes the rest: keep the released value, or draw from the more private
    mechanism as if it were the truth. Every term is a product of positive numbers, so entries
    are right to about 1e-13 relative (Gupte and Sundararajan 2010, Lemma 3; errata, Gupte 6).

    >>> np.round(geometric_step(2, math.log(4), math.log(2)) * 9, 9).tolist()
    [[7.0, 2.0], [2.0, 7.0]]
    """
    a, one_minus_a, one_minus_b = np.exp(-epsilon), -np.expm1(-epsilon), -np.expm1(-smaller)
    spread = -np.expm1(smaller - epsilon)  # (b - a) / b without cancellation
    redraw = np.full(size, spread * -np.expm1(-(epsilon + smaller)) / one_minus_a**2)
    redraw[[0, -1]] = spread / one_minus_a
    factor = output_factors(size, smaller)
    index = np.arange(size)
    decay = np.exp(-smaller * index)[np.abs(index[:, None] - index[None, :])]
    T: Floats = redraw[:, None] * decay * factor[None, :]
    keep = (one_minus_a**2 + 2 * a * one_minus_b) / one_minus_a**2
    T[index, index] = factor * keep
    T[[0, -1], [0, -1]] = factor[0] * -np.expm1(-(epsilon + smaller)) / one_minus_a
    return T


# -- in fractions --------------------------------------------------------------------------------


def exact_geometric(size: int, ratio: Epsilon) -> Fractions:
    """Build the geometric mechanism on `size` answers in fractions, shape (size, size).

    >>> exact_geometric(2, Fraction(1, 4)).tolist()
    [[Fraction(4, 5), Fraction(1, 5)], [Fraction(1, 5), Fraction(4, 5)]]
    """
    a = exact_ratio(ratio)
    factors = [(1 if r in (0, size - 1) else 1 - a) / (1 + a) for r in range(size)]
    rows = [[a ** abs(i - r) * factors[r] for r in range(size)] for i in range(size)]
    return np.array(rows, dtype=object)


# -- errors without a matrix ---------------------------------------------------------------------


def measure_errors(upper: int, epsilon: float, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return `Mechanism.bias`, `rmse` and `interval` of every count 0..upper, in O(upper).

    With Z the noise and Pr(Z >= k) = a^k / (1 + a) for k >= 1, the part of Z beyond m is
    E[(Z - m)+] = a^(m+1) / ((1 + a)(1 - a)), and E[min(Z+, m)^2] = sum_{k<=m} (2k - 1) Pr(Z >= k).

    >>> bias, rmse, interval = measure_errors(5, 1.0, 0.95)
    >>> bool(np.allclose(bias, geometric(Query.count(5), 1).bias())), interval[2].tolist()
    (True, [0.0, 5.0])
    """
    a, gap = math.exp(-epsilon), -math.expm1(-epsilon)
    true = np.arange(upper + 1)
    power = a ** np.arange(1, upper + 2)
    bias = (power - power[::-1]) / ((1 + a) * gap)
    steps = (2 * np.arange(1, upper + 1) - 1) * power[:-1] / (1 + a)
    one_side = np.concatenate([[0.0], np.cumsum(steps)])
    rmse = np.sqrt(one_side + one_side[::-1])
    tail = (1 - confidence) / 2
    # Pr(Z > k) = a^(k+1) / (1 + a) is at most the tail from this k on
    reach = max(0, math.ceil(math.log(tail * (1 + a)) / -epsilon - 1 - REACH_TOLERANCE))
    interval = np.column_stack([np.maximum(true - reach, 0), np.minimum(true + reach, upper)])
    return bias, rmse, interval.astype(float)


MOST_CELLS = 1 << 26
"""The most entries that the matrix of canonical noise may have."""


def canonical(query: Query, epsilon: Epsilon, delta: Epsilon) -> Mechanism:
    """Build the mechanism that adds canonical (epsilon, delta) noise, rounds, and clamps.

    The counterpart of `geometric`, which it is for a delta of 0. A small delta cuts off the far
    tails, so that no error is larger than L + 1/2, about ln(1/delta) / epsilon.

    Parameters
    ----------
    query : Query
        A count, or another query with adjacent neighbours on an evenly spaced grid.
    epsilon, delta : int, float, str, Decimal or Fraction
        The privacy parameters; delta is at least 0 and below 1.

    Returns
    -------
    Mechanism
        The matrix, shape (n, n).

    References
    ----------
    Awan and Vadhan (2023); Awan and Slavkovic (2018).

    Examples
    --------
    For two answers it is randomized response with p = (e^epsilon + delta) / (1 + e^epsilon):

    >>> np.round(canonical(Query.count(1), "0.6931471805599453", 0.1).matrix, 6).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    require_grid(query, "canonical noise")
    if not slack:
        return geometric(query, exact)
    query.require_square("canonical noise")
    query.require_path()
    n = len(query.inputs)
    knots, totals = _tabulate(float(exact), float(slack))
    cuts = np.concatenate([[-math.inf], np.arange(n - 1) + 0.5, [math.inf]])
    matrix = _measure_cells(cuts[None, :] - np.arange(n)[:, None], knots, totals)
    return Mechanism(matrix, query, exact, delta=slack, name="canonical")


def canonical_cells(size: int, epsilon: float, delta: float) -> Floats:
    """Return the probabilities of true answer plus canonical noise, by cells of the line.

    In the order of the cells. They are cut where the noise of some true answer begins, bends or
    ends, so within a cell the likelihoods of any two true answers have a constant ratio, and a
    remap loses nothing.

    Parameters
    ----------
    size : int
        True answers are 0..size-1.
    epsilon, delta : float
        The privacy parameters, both above 0.

    Returns
    -------
    array of float, shape (size, cells)
        Every row sums to one.
    """
    knots, totals = _tabulate(epsilon, delta)
    reach = -knots[0]
    if 3 * size * (size + 2 * reach) > MOST_CELLS:
        raise ArgumentError("delta", "be larger, or the range smaller, for the cells to fit")
    answers = np.arange(size)
    bends = np.arange(math.floor(-reach), math.ceil(size + reach)) + 0.5
    cuts = np.unique(np.concatenate([answers - reach, bends, answers + reach]))
    cells = _measure_cells(cuts[None, :] - answers[:, None], knots, totals)
    reached: Floats = cells[:, cells.any(axis=0)]
    return reached


def _tabulate(epsilon: float, delta: float) -> tuple[Floats, Floats]:
    """Return the points where F bends, from -L to 0, and its values there."""
    shrink = math.exp(-epsilon)
    values = [shrink * (1 - delta) / (1 + shrink)]
    while values[-1] > delta:
        values.append(shrink * (values[-1] - delta))
    last, beyond = values[-1], shrink * (values[-1] - delta)
    reach = len(values) - 0.5 + last / (last - beyond)
    knots = np.concatenate([[-reach], np.arange(len(values) - 1, -1, -1) * -1.0 - 0.5, [0.0]])
    return knots, np.concatenate([[0.0], values[::-1], [0.5]])


def _measure_cells(edges: Floats, knots: Floats, totals: Floats) -> Floats:
    """Return the probabilities of the noise between neighbouring edges.

    Tails are computed without cancellation.
    """
    below = np.interp(-np.abs(edges), knots, totals, left=0.0)
    lower, upper = edges[:, :-1], edges[:, 1:]
    inside: Floats = np.where(
        upper <= 0,
        below[:, 1:] - below[:, :-1],
        np.where(lower >= 0, below[:, :-1] - below[:, 1:], 1 - below[:, :-1] - below[:, 1:]),
    )
    return inside
