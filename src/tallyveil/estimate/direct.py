"""Histograms estimated from the draws alone, without an assumption about their shape.

The estimates for few rows, for draws without totals, and for tables that are not smooth; with the
isotonic regression and the least squares over non-negative numbers that they rest on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Mask
from tallyveil.estimate.draws import Observed
from tallyveil.mechanisms.geometric import inverse_diagonals, output_factors, sum_both_sides


def monotone(cumulative: ArrayLike, top: float, weights: ArrayLike | None = None) -> Floats:
    """Return the non-decreasing sequence nearest to `cumulative`, clipped to [0, top].

    Weighted isotonic regression by pooling adjacent violators, O(n); clipping its result is
    the projection on both constraints. Written out here because importing SciPy's costs more
    than a whole release.

    >>> monotone([2.0, 1.0, 7.0], 5.0).tolist()
    [1.5, 1.5, 5.0]
    """
    values = np.asarray(cumulative, dtype=float)
    weight = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=float)
    pools: list[tuple[float, float, int]] = []  # mean, weight and length of each level stretch
    for mean, mass in zip(values.tolist(), weight.tolist(), strict=True):
        length = 1
        while pools and pools[-1][0] >= mean:
            before, heavy, count = pools.pop()
            mean = (before * heavy + mean * mass) / (heavy + mass)  # noqa: PLW2901
            mass, length = mass + heavy, length + count  # noqa: PLW2901
        pools.append((mean, mass, length))
    means, lengths = [pool[0] for pool in pools], [pool[2] for pool in pools]
    fitted: Floats = np.clip(np.repeat(np.array(means, dtype=float), lengths), 0.0, top)
    return fitted


ROUNDS = 40
"""Exchanges before giving up on blocks; three or four are usual."""


def least_squares_at_total(
    gram: Floats, right: Floats, total: float, start: Mask | None = None
) -> Floats:
    """Minimise h' gram h / 2 - right·h over h >= 0 with sum h = total, shape (n,).

    Block principal pivoting (Kim and Park 2011): guess which entries are positive, solve for
    them, and exchange all that break the optimality conditions at once: a few factorisations
    instead of one per entry. Where the blocks go round in circles, Lawson and Hanson's method
    finishes. `gram` must be positive definite.

    >>> least_squares_at_total(np.eye(2), np.array([3.0, -1.0]), 2.0).tolist()
    [2.0, 0.0]
    """
    n = len(right)
    passive = np.ones(n, dtype=bool) if start is None or not start.any() else start.copy()
    scale = max(float(np.abs(right).max()), 1e-300)
    for _ in range(ROUNDS):
        h, gradient = _on_support(gram, right, total, passive)
        wrong = np.where(passive, h < -1e-9 * total, gradient < -1e-10 * scale)
        if not wrong.any():
            return _at_total(h, total)
        passive = passive ^ wrong
        if not passive.any():
            passive[int(right.argmax())] = True
    return _at_total(_one_by_one(gram, right, total), total)


def _one_by_one(gram: Floats, right: Floats, total: float) -> Floats:
    """Solve by Lawson and Hanson's method, with the sum as one heavy equation."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import nnls

    root = cholesky(gram, lower=True)
    heavy = 1e3 * float(np.sqrt(np.diag(gram).max()))
    rows = np.vstack([root.T, np.full(len(right), heavy)])
    right_sides = np.append(solve_triangular(root, right, lower=True), heavy * total)
    h: Floats = nnls(rows, right_sides, maxiter=50 * len(right))[0]
    return h


def _at_total(h: Floats, total: float) -> Floats:
    """Clip at 0 and scale to the total."""
    clipped = np.maximum(h, 0.0)
    result: Floats = clipped * (total / clipped.sum())
    return result


def _on_support(gram: Floats, right: Floats, total: float, passive: Mask) -> tuple[Floats, Floats]:
    """Return the minimiser with h = 0 off the support, and its Lagrangian's gradient."""
    support = np.flatnonzero(passive)
    sides = np.column_stack([right[support], np.ones(len(support))])
    solved = np.linalg.solve(gram[np.ix_(support, support)], sides)
    shift = (total - solved[:, 0].sum()) / solved[:, 1].sum()
    h = np.zeros(len(right))
    h[support] = solved[:, 0] + shift * solved[:, 1]
    gradient = gram @ h - right - shift
    return h, gradient


EM_STEPS = 200
"""Steps of expectation maximisation."""

PASSES = 2
"""Least-squares fits of `fit_totals`; each but the first has the one before as its pilot."""

DRAWS_FLOOR = 0.1
"""Added to the variance of every cumulative count of draws."""


def fit_totals(observed: Observed) -> Floats:
    """Fit the histogram nearest to both draws by least squares, shape (n,).

    Over h >= 0 with sum h = N, minimises::

        |c - L h|^2 / s^2  +  (Y - F'h)' S^-1 (Y - F'h)

    c the noisy cumulative histogram with noise variance s^2, L the cumulative sum; Y_j the
    number of draws <= j, F[d, j] = Pr(draw <= j | d), and S the covariance of Y at a pilot h.
    Two passes, the second with the first as its pilot.
    """
    n, records = len(observed.cells), observed.records
    totals = observed.of_totals(observed.precision)
    pilot = np.diff(monotone(observed.at_ends, records), prepend=0.0, append=records)
    for _ in range(PASSES):
        smooth = np.convolve(np.pad(pilot, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        information = observed.of_draws(smooth + 1e-4 * records / n + 0.02, DRAWS_FLOOR) + totals
        gram = information.gram
        gram[np.diag_indices(n)] += 1e-11 * gram.max()  # far below any information
        pilot = least_squares_at_total(gram, information.right, records, start=pilot > 0)
    return pilot


def average_totals(totals: Floats, variance: float, drawn: Floats, epsilon: float) -> Floats:
    """Average both cumulative histograms by precision at each count, in O(n).

    Made monotone at last. The inverse of the geometric matrix is tridiagonal, so the unbiased
    cumulative histogram from the draws is Y_j + b_j K_j - b_(j+1) K_(j+1), b = a/(1-a)^2 inside
    and a/(1-a) at the ends, with variance b_j (1 + b_j) K_j + b_(j+1) (1 + b_(j+1)) K_(j+1).
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
    """Return the histogram that makes the draws likeliest.

    By expectation maximisation from an even start, O(n) a step: h_d <- h_d sum_j K_j G[d, j] / (h
    G)_j.
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
    """Return the likeliest histogram over cells of any width, O(n^2) a step."""
    n, records, drawn = len(observed.cells), observed.records, observed.drawn
    cumulative = observed.cells.draw_cumulative(observed.epsilon2)
    G = np.diff(cumulative, axis=1, prepend=0.0, append=1.0)
    h = np.full(n, records / n)
    for _ in range(steps):
        h = h * (G @ (drawn / np.maximum(h @ G, 1e-300)))
        h *= records / h.sum()
    return h
