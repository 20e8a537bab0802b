"""The histogram of true counts, of a whole table or of its strata, estimated from private draws.

Everything here is post-processing. Its only input is a `PrivateDraws`, which holds no true
count, so no function of this module can touch the confidential table.

Strata are drawn towards the whole table by empirical Bayes. The histogram of stratum g over cells,
with N_g rows, is modelled as::

    h_g ~ Normal(N_g z_g, N_g z_g (1 + phi N_g z_g)),   log z_g = log z + splines of log(1 + count)

with z the distribution of the whole table. The splines' coefficients are ~ Normal(0, tau^2) in
size and in second differences: tau near 0 means that strata are alike. One tau serves every
stratum: the one that explains the draws of all strata best. At last the strata are reconciled with
the whole, by moving their rows no farther than it takes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tallyveil._threads import one_blas_thread
from tallyveil.arrays import Floats
from tallyveil.estimate.direct import (
    average_totals,
    fit_totals,
    least_squares_at_total,
    most_likely,
    most_likely_cells,
)
from tallyveil.estimate.draws import (
    MOST_CELLS,
    Cells,
    Information,
    Observed,
    PrivateDraws,
    choose_cells,
)
from tallyveil.estimate.smooth import Fit, Shape, estimate_smooth, fit_shape, splines, spread_around
from tallyveil.mechanisms.geometric import noise_variance

LARGEST_JOINT = 1500
"""Up to this many counts `estimate_directly` uses their joint covariance; beyond, one by one."""

FEWEST_CELLS, ROWS_PER_CELL, ROWS_WITHOUT_TOTALS = 8, 5, 100
"""Fewest cells of the smooth model, and fewest rows for each: with totals, and without them."""

LEAST_CELLS, DRAWS_PER_CELL = 32, 10
"""Fewest cells of a wide range; it has more if there are this many draws for each."""

FAR_WIDTH, FAR_DENSITY = 4.0, 0.1
"""Rows stay as drawn in cells this many noise scales wide, with at most this density of rows."""

SURE = 1e-6
"""The chance that a true count lies beyond the cells."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimated number of rows with a count of each cell, not a whole one.

    `round_histogram` makes whole numbers of it.
    """

    cells: Cells
    histogram: Floats
    smooth: bool

    def spread_out(self, size: int) -> Floats:
        """Spread the rows of each cell evenly over its counts, shape (size,)."""
        width = self.cells.widths
        spread = np.repeat(self.histogram / width, width)[:size]
        filled: Floats = np.pad(spread, (0, size - len(spread)))
        return filled


@one_blas_thread()
def estimate_histogram(draws: PrivateDraws) -> Estimate:
    """Estimate the histogram from both draws: smooth where that helps, else directly.

    The smooth model (`tallyveil.estimate.smooth`) is used where there are at least 8 cells and at
    least 5 rows for each, or 100 where there are no totals, and where the draws say that it fits.
    Otherwise, and where a double runs out of digits, `estimate_directly`; in cells where a wide
    range has no totals. A few rows far above all others stay where they were drawn. Floating
    point; no privacy depends on it. Runs on one thread.
    """
    observed = observe(draws)
    near = observed.take_first(count_near(observed))
    n = len(near.cells)
    if not near.records:
        return Estimate(observed.cells, observed.drawn, False)
    smooth, fewest = None, ROWS_PER_CELL if len(near.totals) else ROWS_WITHOUT_TOTALS
    suits = n >= FEWEST_CELLS and near.records >= fewest * n
    if suits:
        try:
            smooth = estimate_smooth(near)
        except (np.linalg.LinAlgError, ArithmeticError, ValueError):
            smooth = None
    if smooth is not None and np.isfinite(smooth).all():
        return Estimate(observed.cells, np.append(smooth, observed.drawn[n:]), True)
    mostly_near = suits or 2 * near.records >= observed.records
    is_informed = (draws.totals is not None and mostly_near) or draws.size <= LARGEST_JOINT
    if draws.thresholds is None and is_informed:
        return estimate_directly(draws)
    direct = most_likely_cells(near) if draws.totals is None else fit_totals(near)
    return Estimate(observed.cells, np.append(direct, observed.drawn[n:]), False)


def estimate_directly(draws: PrivateDraws) -> Estimate:
    """Estimate the histogram of a bounded range without assuming that it is smooth.

    Least squares over both draws (`fit_totals`); without totals the maximum-likelihood
    estimate from the draws alone; beyond 1,500 counts both are averaged count by count.
    """
    cells = Cells.ending_at(np.arange(draws.size))
    drawn = draws.histogram.astype(float)
    epsilon1, epsilon2 = float(draws.epsilon1), float(draws.epsilon2)
    if draws.totals is None:
        return Estimate(cells, most_likely(drawn, epsilon2), False)
    totals = draws.totals.astype(float)
    if draws.size > LARGEST_JOINT:
        histogram = average_totals(totals, noise_variance(epsilon1), drawn, epsilon2)
    else:
        histogram = fit_totals(Observed(cells, drawn, epsilon2, totals, epsilon1))
    return Estimate(cells, histogram, False)


def observe(draws: PrivateDraws, cells: Cells | None = None) -> Observed:
    """Count both draws into cells, by default into some that surely hold all true counts.

    A wide range has fewer cells where there are few rows, so that the smooth model has its five
    for each, and draws alone have ten. A true count is farther than t above its draw with
    probability less than a^t; over all N rows less than `SURE` for t = log(N/SURE)/epsilon2.
    """
    epsilon2 = float(draws.epsilon2)
    if cells is None:
        reach = math.log(draws.records / SURE) / epsilon2
        rows = DRAWS_PER_CELL if draws.totals is None else ROWS_PER_CELL
        most = min(max(draws.records // rows, LEAST_CELLS), MOST_CELLS)
        cells = choose_cells(draws.thresholds, draws.size, draws.largest + reach, most)
    if draws.thresholds is None:
        drawn, thresholds = cells.collect(draws.histogram), np.arange(cells.high[-1])
    else:
        place = cells.locate(draws.values.astype(np.int64))
        drawn = np.bincount(place, draws.weights, len(cells)).astype(float)
        thresholds = cells.high[:-1]
    if draws.totals is None:
        return Observed(cells, drawn, epsilon2, np.zeros(0), 0.0)
    totals = draws.totals[: len(thresholds)].astype(float)
    place = cells.locate(thresholds)
    part = (thresholds - cells.low[place] + 1) / (cells.high[place] - cells.low[place] + 1)
    return Observed(cells, drawn, epsilon2, totals, float(draws.epsilon1), place, part)


def count_near(observed: Observed) -> int:
    """Count the cells before those where rows stay as they were drawn.

    From there on every cell is so wide that noise seldom leaves it, and rows are so few that no
    model could add to the draws: at most f + 3 sqrt(f) + 1 in a cell of 10 f noise scales,
    as many as chance puts there. Rows of the last cell, where counts may have been cut to the
    upper bound, are not counted, up to sqrt(N).
    """
    rows, scales = observed.drawn.copy(), observed.epsilon2 * observed.cells.widths
    last = int(np.flatnonzero(rows)[-1])
    rows[last] -= min(float(rows[last]), math.sqrt(observed.records))
    expected = FAR_DENSITY * scales
    far = (rows <= expected + 3 * np.sqrt(expected) + 1) & (scales >= FAR_WIDTH)
    return max(len(far) - int(np.logical_and.accumulate(far[::-1]).sum()), 2)


TAUS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""How much strata differ: the choices."""

PHI = 0.003
"""How far strata stray from smooth."""

SPLINES = 8

LEVEL = 0.05
"""The penalty of coefficients themselves, added to that of their second differences."""

REFITS = 1


def pool_strata(strata: Sequence[PrivateDraws]) -> PrivateDraws:
    """Pool all strata into one table.

    Their noisy totals add up, and so do the variances of the noise; the table has the epsilon at
    which geometric noise has that variance.
    """
    first = strata[0]
    pooled = replace(first, values=np.concatenate([stratum.values for stratum in strata]))
    if first.totals is None:
        return pooled
    totals = np.sum([stratum.totals for stratum in strata if stratum.totals is not None], axis=0)
    variance = len(strata) * noise_variance(first.epsilon1)
    epsilon = Fraction(2 * float(np.arcsinh(np.sqrt(0.5 / variance))))
    return replace(pooled, totals=totals, epsilon1=epsilon)


def estimate_strata(strata: Sequence[PrivateDraws]) -> tuple[Cells, tuple[Floats, ...]]:
    """Estimate every stratum's histogram over common cells; not whole numbers.

    A few rows far above all others stay where they were drawn; so do all, where noise is so small
    that no estimate could be better. Floating point; no privacy depends on it.
    """
    pooled = pool_strata(strata)
    observed = observe(pooled)
    cells, number = observed.cells, count_near(observed)
    each = [observe(stratum, cells) for stratum in strata]
    near = [stratum.take_first(number) for stratum in each]
    rows = np.array([stratum.records for stratum in near])
    if not rows.any():
        return cells, tuple(stratum.drawn for stratum in each)
    pooled_estimate = estimate_histogram(pooled)
    placed = np.bincount(
        cells.locate(pooled_estimate.cells.low), pooled_estimate.histogram, len(cells)
    )
    national: Floats = placed[:number].astype(float)
    if not national.any():  # rows were drawn here, though the totals say that there are none
        national = observed.drawn[:number]
    shares = national / national.sum()
    reconciled = _reconcile(_fit_near(near, shares), rows.sum() * shares)
    return cells, tuple(
        np.append(histogram, stratum.drawn[number:])
        for histogram, stratum in zip(reconciled, each, strict=True)
    )


def _fit_near(near: Sequence[Observed], shares: Floats) -> Floats:
    """Fit every stratum's histogram, shape (G, n); as drawn where a double runs out of digits."""
    try:
        fitted = np.array(_fit_all(near, shares))
    except (np.linalg.LinAlgError, ArithmeticError, ValueError):
        fitted = np.full((1, 1), np.nan)
    return fitted if np.isfinite(fitted).all() else np.array([stratum.drawn for stratum in near])


def _fit_all(near: Sequence[Observed], distribution: Floats) -> list[Floats]:
    """Return every stratum's likeliest histogram at the tau that explains all of them best."""
    shape = _make_shape(near[0].cells, distribution)
    start = np.zeros(shape.basis.shape[1])
    information = [_inform(stratum, distribution) for stratum in near]
    candidates = [_fit_each(near, information, shape, [start] * len(near), tau) for tau in TAUS]
    best = min(candidates, key=lambda fits: sum(fit.surprise for fit in fits))
    for _ in range(REFITS):
        information = [
            _inform(stratum, fit.distribution) for stratum, fit in zip(near, best, strict=True)
        ]
        best = _fit_each(near, information, shape, [fit.coefficients for fit in best], best[0].tau)
    return [_settle(*parts) for parts in zip(near, information, best, strict=True)]


def _fit_each(
    near: Sequence[Observed],
    information: Sequence[Information],
    shape: Shape,
    starts: Sequence[Floats],
    tau: float,
) -> list[Fit]:
    """Fit every stratum at one tau."""
    return [
        fit_shape(form, max(stratum.records, 1.0), shape, start, tau=tau, phi=PHI)
        for stratum, form, start in zip(near, information, starts, strict=True)
    ]


def _settle(stratum: Observed, information: Information, fit: Fit) -> Floats:
    """Return the likeliest histogram, given the smooth one that is expected."""
    if not stratum.records:
        return np.zeros(len(stratum.cells))
    expected = stratum.records * fit.distribution
    spread = spread_around(expected, PHI)
    gram, right = information.gram + np.diag(1 / spread), information.right + expected / spread
    return least_squares_at_total(gram, right, stratum.records)


def _inform(stratum: Observed, distribution: Floats) -> Information:
    """Return the information of both draws of a stratum, at a distribution."""
    pilot = max(stratum.records, 1.0) * distribution + 1e-3
    return stratum.of_draws(pilot) + stratum.of_totals(stratum.precision)


def _make_shape(cells: Cells, distribution: Floats) -> Shape:
    """Build splines around the whole table's distribution, which coefficients of 0 give."""
    points = np.log1p((cells.low + cells.high) / 2)
    number = min(SPLINES, max(4, len(cells)))
    smooth = splines((points - points[0]) / max(points[-1] - points[0], 1e-9), number)
    zero = np.zeros((len(cells), 1))
    zero[0] = 1.0
    second = np.diff(np.eye(number), 2, axis=0)
    rough = LEVEL * np.eye(number + 1)
    rough[:number, :number] += second.T @ second
    floor = np.maximum(distribution, 1e-9)
    ridge = np.full(number + 1, 1e-4)
    return Shape("log", np.log(floor), np.hstack([smooth, zero]), rough, ridge, number + 1)


def _reconcile(fitted: Floats, table: Floats) -> Floats:
    """Move histograms so that they add up to the whole table: optimal transport.

    Strata keep their numbers of rows. Their sum is moved to the table in the order of ranks, the
    shortest way: cell i gives cell j as many rows as both have ranks in common, the same part from
    every stratum.
    """
    added = fitted.sum(axis=0)
    start, end = np.cumsum(added), np.cumsum(table)
    end = np.minimum(end * (start[-1] / end[-1]), start[-1])
    upper = np.minimum.outer(start, end)
    lower = np.maximum.outer(np.append(0.0, start[:-1]), np.append(0.0, end[:-1]))
    moved = np.maximum(upper - lower, 0.0)
    sources = moved.sum(axis=1, keepdims=True)
    reconciled: Floats = fitted @ np.divide(
        moved, sources, out=np.eye(len(added)), where=sources > 0
    )
    return reconciled
