"""From two private draws to a released table whose histogram is the released distribution.

Everything here is post-processing. Its only input is a `PrivateDraws`, which holds no true
count, so no function of this module can touch the confidential table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.mechanisms.geometric import inverse_diagonals, output_factors, sum_both_sides
from tallyveil.publish.isotonic import monotone
from tallyveil.publish.least_squares import least_squares_at_total

__all__ = ["PrivateDraws", "estimate_histogram", "match_ranks", "round_histogram"]


LARGEST_JOINT = 1500
"""Up to this many bins the joint covariance is used; beyond it, bin by bin weights."""

EM_STEPS = 200
PASSES = 2


@dataclass(frozen=True, eq=False)
class PrivateDraws:
    """All that was drawn from the confidential table, and nothing else.

    Attributes
    ----------
    values : every row's clamped geometric draw, shape (N,), integers in 0..size-1
    epsilon2 : the exact privacy cost of `values`
    totals : the noisy cumulative histogram of the true counts, shape (size-1,), or None
    epsilon1 : the exact privacy cost of `totals`, 0 without them
    size : the number of possible counts, public
    """

    values: Integers
    epsilon2: Fraction
    totals: Integers | None
    epsilon1: Fraction
    size: int

    @property
    def records(self) -> int:
        """The number of rows, public."""
        return len(self.values)


def estimate_histogram(draws: PrivateDraws) -> Floats:
    """The histogram of the true counts as both releases together tell it, shape (size,).

    Over h >= 0 with sum h = N, minimises::

        |c - L h|^2 / s^2  +  (Y - F'h)' S^-1 (Y - F'h)

    c the noisy cumulative histogram with noise variance s^2, L the cumulative sum; Y_j the
    number of draws <= j, F[d, j] = Pr(draw <= j | d), and S the covariance of Y at a pilot h.
    Two passes, the second with the first as its pilot. Without c, the maximum-likelihood
    estimate from the draws alone (200 steps of expectation maximisation). Beyond 1,500 bins,
    c and the unbiased deconvolution of Y are averaged bin by bin, weighted by their
    precisions, and made monotone: O(size).

    Entries are not whole numbers; see `round_histogram`. Floating point; no privacy depends
    on it.
    """
    drawn = np.bincount(draws.values, minlength=draws.size).astype(float)
    a = float(np.exp(-float(draws.epsilon2)))
    if draws.totals is None:
        return _most_likely(drawn, float(draws.epsilon2))
    noise = float(np.exp(-float(draws.epsilon1)))
    variance = 2 * noise / (1 - noise) ** 2
    totals = draws.totals.astype(float)
    if draws.size > LARGEST_JOINT:
        return _bin_by_bin(totals, variance, drawn, float(draws.epsilon2))
    pilot = np.diff(monotone(totals, draws.records), prepend=0.0, append=draws.records)
    for _ in range(PASSES):
        pilot = _joint(totals, variance, drawn, a, pilot)
    return pilot


def round_histogram(histogram: Floats, records: int) -> Integers:
    """Whole numbers with the histogram's cumulative sums, rounded; they sum to `records`.

    Rounding the cumulative sums keeps every one within 1/2; rounding bins would not.

    >>> round_histogram(np.array([0.6, 0.6, 0.6, 1.2]), 3).tolist()
    [1, 0, 1, 1]
    """
    totals = np.floor(np.cumsum(histogram) + 0.5).astype(np.int64)
    totals = np.clip(totals, 0, records)
    totals[-1] = records
    return np.diff(totals, prepend=0)


def match_ranks(draws: PrivateDraws, histogram: Integers, order: Integers) -> Integers:
    """Released counts with exactly this histogram, handed out in the order of the draws.

    The row with the smallest draw gets the smallest count, and so on. `order` breaks ties: a
    fresh random permutation of the rows, so that row order says nothing. Among all tables
    with this histogram none has a smaller expected absolute or squared error, as a larger
    draw never makes a smaller count likelier (docs/theory.md). Shape (N,).

    >>> draws = PrivateDraws(np.array([4, 0, 2]), Fraction(1), None, Fraction(0), 5)
    >>> match_ranks(draws, np.array([1, 1, 0, 1, 0]), np.arange(3)).tolist()
    [3, 0, 1]
    """
    ranking = order[np.argsort(draws.values[order], kind="stable")]
    released = np.empty(draws.records, dtype=np.int64)
    released[ranking] = np.repeat(np.arange(draws.size), histogram)
    return released


# -- estimates ---------------------------------------------------------------------------------


def _joint(totals: Floats, variance: float, drawn: Floats, a: float, pilot: Floats) -> Floats:
    """One pass of the joint estimate, with the covariance taken at a smoothed pilot."""
    from scipy.linalg import cholesky, solve_triangular

    n, records = len(drawn), float(drawn.sum())
    smooth = np.convolve(np.pad(pilot, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    smooth = smooth + 1e-4 * records / n + 0.02
    F = _draw_cumulative(n, a)
    index = np.arange(n - 1)
    S = (smooth @ F)[np.minimum.outer(index, index)] - (F * smooth[:, None]).T @ F
    S[index, index] += 0.1
    root = cholesky(S, lower=True)
    both = np.column_stack([F.T, np.cumsum(drawn)[:-1]])
    whitened = solve_triangular(root, both, lower=True)
    X, y = whitened[:, :n], whitened[:, n]
    each = np.arange(n)
    gram = X.T @ X + (n - 1 - np.maximum.outer(each, each)) / variance
    gram[each, each] += 1e-11 * gram.max()  # far above rounding, far below any information
    right = X.T @ y + np.append(np.cumsum(totals[::-1])[::-1], 0.0) / variance
    return least_squares_at_total(gram, right, records, start=pilot > 0)


def _draw_cumulative(n: int, a: float) -> Floats:
    """F[d, j] = Pr(clamped geometric draw <= j | true count d), shape (n, n-1)."""
    gap = np.arange(n - 1)[None, :] - np.arange(n)[:, None]
    power = a ** np.where(gap >= 0, gap + 1, -gap)
    F: Floats = np.where(gap >= 0, 1 - power / (1 + a), power / (1 + a))
    return F


def _bin_by_bin(totals: Floats, variance: float, drawn: Floats, epsilon: float) -> Floats:
    """The weighted mean of both cumulative histograms at each bin, then monotone.

    The inverse of the geometric matrix is tridiagonal, so the unbiased cumulative histogram
    from the draws is Y_j + b_j K_j - b_(j+1) K_(j+1), b = a/(1-a)^2 inside and a/(1-a) at the
    ends, with variance b_j (1 + b_j) K_j + b_(j+1) (1 + b_(j+1)) K_(j+1).
    """
    records = float(drawn.sum())
    _, b = inverse_diagonals(len(drawn), epsilon)
    unbiased = np.cumsum(drawn)[:-1] + b[:-1] * drawn[:-1] - b[1:] * drawn[1:]
    smooth = np.convolve(np.pad(drawn, 2, mode="edge"), np.full(5, 0.2), mode="valid")
    spread = b * (1 + b) * (smooth + 0.02)
    precision = 1 / (spread[:-1] + spread[1:])
    weight = precision + 1 / variance
    mean = (totals / variance + unbiased * precision) / weight
    fitted = monotone(mean, records, weight)
    histogram: Floats = np.diff(fitted, prepend=0.0, append=records)
    return histogram


def _most_likely(drawn: Floats, epsilon: float) -> Floats:
    """The histogram that makes the draws likeliest, by expectation maximisation, O(size) each.

    h_d <- h_d sum_j K_j G[d, j] / (h G)_j, from an even start.
    """
    n, records = len(drawn), float(drawn.sum())
    column = output_factors(n, epsilon)
    h = np.full(n, records / n)
    for _ in range(EM_STEPS):
        expected = np.maximum(sum_both_sides(h, epsilon) * column, 1e-300)
        h = h * sum_both_sides(column * drawn / expected, epsilon)
        h *= records / h.sum()
    return h
