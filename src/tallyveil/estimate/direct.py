"""The histogram as the draws alone tell it, with no assumption about its shape.

The estimate for few rows, for draws without totals, and for tables that are not smooth.
"""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.estimate.information import Observed, noise_variance
from tallyveil.estimate.isotonic import monotone
from tallyveil.estimate.least_squares import least_squares_at_total
from tallyveil.mechanisms.geometric import inverse_diagonals, output_factors, sum_both_sides

__all__ = ["average_totals", "fit_totals", "most_likely", "most_likely_cells"]

EM_STEPS = 200
PASSES = 2
DRAWS_FLOOR = 0.1
"""Added to the variance of every cumulative count of draws."""


def fit_totals(observed: Observed) -> Floats:
    """The histogram nearest to both draws by least squares, shape (n,).

    Over h >= 0 with sum h = N, minimises::

        |c - L h|^2 / s^2  +  (Y - F'h)' S^-1 (Y - F'h)

    c the noisy cumulative histogram with noise variance s^2, L the cumulative sum; Y_j the
    number of draws <= j, F[d, j] = Pr(draw <= j | d), and S the covariance of Y at a pilot h.
    Two passes, the second with the first as its pilot.
    """
    n, records = len(observed.cells), observed.records
    precision = np.full(len(observed.totals), 1 / noise_variance(observed.epsilon1))
    totals = observed.of_totals(precision)
    pilot = np.diff(monotone(observed.at_ends, records), prepend=0.0, append=records)
    for _ in range(PASSES):
        smooth = np.convolve(np.pad(pilot, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        known = observed.of_draws(smooth + 1e-4 * records / n + 0.02, DRAWS_FLOOR) + totals
        gram = known.gram
        gram[np.diag_indices(n)] += 1e-11 * gram.max()  # far below any information
        pilot = least_squares_at_total(gram, known.right, records, start=pilot > 0)
    return pilot


def average_totals(totals: Floats, variance: float, drawn: Floats, epsilon: float) -> Floats:
    """The weighted mean of both cumulative histograms at each count, then monotone: O(n).

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


def most_likely(drawn: Floats, epsilon: float) -> Floats:
    """The histogram that makes the draws likeliest, by expectation maximisation, O(n) a step.

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


def most_likely_cells(observed: Observed, steps: int = EM_STEPS) -> Floats:
    """The same over cells of any width, O(n^2) a step."""
    n, records, drawn = len(observed.cells), observed.records, observed.drawn
    cumulative = observed.cells.draw_cumulative(observed.epsilon2)
    G = np.diff(cumulative, axis=1, prepend=0.0, append=1.0)
    h = np.full(n, records / n)
    for _ in range(steps):
        h = h * (G @ (drawn / np.maximum(h @ G, 1e-300)))
        h *= records / h.sum()
    return h
