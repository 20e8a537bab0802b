"""The histogram of the true counts as both private draws together tell it.

Everything here is post-processing. Its only input is a `PrivateDraws`, which holds no true
count, so no function of this module can touch the confidential table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tallyveil._threads import one_blas_thread
from tallyveil.arrays import Floats
from tallyveil.estimate.cells import MOST_CELLS, Cells, choose_cells
from tallyveil.estimate.direct import (
    average_totals,
    fit_totals,
    most_likely,
    most_likely_cells,
)
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.information import Observed, noise_variance
from tallyveil.estimate.smooth import estimate_smooth

__all__ = ["Estimate", "count_near", "estimate_directly", "estimate_histogram", "observe"]

LARGEST_JOINT = 1500
"""Up to this many counts `estimate_directly` uses their joint covariance; beyond, one by one."""

FEWEST_CELLS, ROWS_PER_CELL, ROWS_WITHOUT_TOTALS = 8, 5, 100
"""The smooth model needs so many cells and rows for each; more rows where there are no totals."""

LEAST_CELLS, DRAWS_PER_CELL = 32, 10
"""A wide range has at least so many cells, and more if there are so many draws for each."""

FAR_WIDTH, FAR_DENSITY = 4.0, 0.1
"""Rows stay as drawn in cells this many noise scales wide, with so few rows for each scale."""

SURE = 1e-6
"""The chance that a true count lies beyond the cells."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """How many rows have a count of each cell; not whole numbers. See `round_histogram`."""

    cells: Cells
    histogram: Floats
    smooth: bool

    def spread_out(self, size: int) -> Floats:
        """How many rows have each of `size` counts, alike inside a cell."""
        width = self.cells.widths
        spread = np.repeat(self.histogram / width, width)[:size]
        filled: Floats = np.pad(spread, (0, size - len(spread)))
        return filled


def estimate_histogram(draws: PrivateDraws) -> Estimate:
    """Estimate the histogram from both draws: smooth where that helps, else directly.

    The smooth model (`tallyveil.estimate.smooth`) is used where there are at least 8 cells and at
    least 5 rows for each, or 100 where there are no totals, and where the draws say that it fits.
    Otherwise, and where a double runs out of digits, `estimate_directly`; in cells where a wide
    range has no totals. A few rows far above all others stay where they were drawn. Floating
    point; no privacy depends on it. Runs on one thread.
    """
    with one_blas_thread():
        return _estimate(draws)


def _estimate(draws: PrivateDraws) -> Estimate:
    observed = observe(draws)
    near = observed.take_first(count_near(observed))
    n = len(near.cells)
    if not near.records:
        return Estimate(observed.cells, observed.drawn, False)
    found = None
    suits = _suits_model(near)
    if suits:
        try:
            found = estimate_smooth(near)
        except (np.linalg.LinAlgError, ArithmeticError, ValueError):
            found = None
    if found is not None and np.isfinite(found).all():
        return Estimate(observed.cells, np.append(found, observed.drawn[n:]), True)
    mostly_near = suits or 2 * near.records >= observed.records
    is_told = (draws.totals is not None and mostly_near) or draws.size <= LARGEST_JOINT
    if draws.thresholds is None and is_told:
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
        found = average_totals(totals, noise_variance(epsilon1), drawn, epsilon2)
    else:
        found = fit_totals(Observed(cells, drawn, epsilon2, totals, epsilon1))
    return Estimate(cells, found, False)


def observe(draws: PrivateDraws, cells: Cells | None = None) -> Observed:
    """Both draws counted into cells: those given, or some that surely hold all true counts.

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
    """How many cells there are before those where rows stay as they were drawn.

    From there on every cell is so wide that noise seldom leaves it, and rows are so few that no
    model would say more than the draws: at most f + 3 sqrt(f) + 1 in a cell of 10 f noise scales,
    as many as chance puts there. Those of the last cell, where counts may have been cut to the
    upper bound, are not counted, up to sqrt(N).
    """
    rows, scales = observed.drawn.copy(), observed.epsilon2 * observed.cells.widths
    last = int(np.flatnonzero(rows)[-1])
    rows[last] -= min(float(rows[last]), math.sqrt(observed.records))
    expected = FAR_DENSITY * scales
    far = (rows <= expected + 3 * np.sqrt(expected) + 1) & (scales >= FAR_WIDTH)
    return max(len(far) - int(np.logical_and.accumulate(far[::-1]).sum()), 2)


def _suits_model(near: Observed) -> bool:
    """Whether there are cells enough for the smooth model, and rows for them."""
    n, fewest = len(near.cells), ROWS_PER_CELL if len(near.totals) else ROWS_WITHOUT_TOTALS
    return n >= FEWEST_CELLS and near.records >= fewest * n
