"""The histogram as a table that strays from a smooth distribution: empirical Bayes.

The model of the true histogram h over cells, with N rows in all::

    h ~ Normal(N z, D),   D = N z (1 + phi N z)
    log z = splines over log(1 + count) or over the count, an atom at either end, and heaps at
            multiples of 2, 5 and 10 or none, with second differences of the splines' coefficients
            ~ Normal(0, tau^2), or third ones, and heaps ~ Student's

phi is how far the table strays from smooth beyond chance. Scale, tau, phi and heaps are those that
explain the draws best; the estimate is the likeliest h given them.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.estimate.cells import Cells
from tallyveil.estimate.direct import fit_totals, most_likely_cells
from tallyveil.estimate.fit import Fit, fit_shape, spread_around, start_coefficients
from tallyveil.estimate.information import Information, Observed, noise_variance
from tallyveil.estimate.least_squares import least_squares_at_total
from tallyveil.estimate.shape import Shape, make_shape

__all__ = ["estimate_smooth"]

PILOT_STEPS = 60
TAUS = tuple(10.0 ** (step / 2) for step in range(-4, 2))
FINER = 10**0.25
PHIS = (0.0, 0.003, 0.01, 0.03, 0.3)
USUAL_PHI = 0.003

ROUGHEST_TAU = 3.0
ROUGHEST_PHI = 0.1
"""A table that needs a larger tau or phi than these is not smooth."""

POOLED = 0.75
"""The misfit allowed for each cell, where totals inside of cells tell what cells cannot follow."""

REACH = 4.0
"""So many standard deviations of a total must lie outside the fullest cell."""


def estimate_smooth(observed: Observed) -> Floats | None:
    """The histogram over cells by the smooth model, shape (n,); None where it does not fit.

    It does not fit where the draws call for a very rough shape, or for a table that strays
    far from any shape: a few counts, or gaps of another kind. Nor where it explains the draws
    worse than the direct estimate by more than chance: n + sqrt(2n) for n cells. Nor where nearly
    all rows have one count, so that the rest is lost in the noise or is less than a row for each
    cell. The decision is made from the draws, so it is post-processing.
    """
    records = observed.records
    has_totals = len(observed.totals) > 0
    deviation = float(np.sqrt(noise_variance(observed.epsilon1))) if has_totals else 1.0
    shapes = _make_shapes(observed.cells)
    z = _smoothed(most_likely_cells(observed, PILOT_STEPS) / records)
    weight = even = np.full(len(observed.totals), deviation**-2)
    coarse = list(product(shapes, TAUS[2::2], (USUAL_PHI,)))
    known = _inform(observed, z, weight)
    best = _try_all(known, records, shapes, coarse, z)
    known = _inform(observed, best.distribution, weight)
    best = _try_all(known, records, shapes, list(product(shapes, TAUS, (USUAL_PHI,))), z)
    for _ in range(2):
        known = _inform(observed, best.distribution, weight)
        best = _refine(known, records, _release_heaps(shapes, best), best)
        shapes, best = _question_heaps(known, records, shapes, best)
        for _ in range(2):
            weight = _laplace_weights(observed, known, best) if has_totals else weight
            known = _inform(observed, best.distribution, weight)
            shapes = _release_heaps(shapes, best)
            settled = [(best.scale, best.tau, best.phi)]
            best = _try_all(known, records, shapes, settled, best.distribution)
    if best.tau > ROUGHEST_TAU or best.phi > ROUGHEST_PHI:
        return None
    expected = records * best.distribution
    spread = spread_around(expected, best.phi)
    gram, right = known.gram + np.diag(1 / spread), known.right + expected / spread
    found = least_squares_at_total(gram, right, records)
    direct = fit_totals(observed) if has_totals else most_likely_cells(observed)
    plain = _inform(observed, direct / records, even)
    pooled = len(observed.totals) >= len(found)
    n = len(found)
    allowed = POOLED * n if pooled else n + np.sqrt(2 * n)
    misses = plain.compare(found, direct) > allowed
    fewest = max(REACH * deviation, len(found))
    return None if misses or records - found.max() < fewest else found


def _make_shapes(cells: Cells) -> dict[str, Shape]:
    scales = ("log", "count", "normal") if cells.single else ("log",)
    return {scale: make_shape(cells, scale) for scale in scales}


def _release_heaps(shapes: dict[str, Shape], best: Fit) -> dict[str, Shape]:
    return {**shapes, best.scale: shapes[best.scale].release_heaps(best.coefficients)}


def _question_heaps(
    known: Information, records: float, shapes: dict[str, Shape], best: Fit
) -> tuple[dict[str, Shape], Fit]:
    """The shapes and the fit without heaps, where that explains the draws better."""
    bare = {**shapes, best.scale: shapes[best.scale].leave_out_heaps()}
    settled = [(best.scale, best.tau, best.phi)]
    found = _try_all(known, records, bare, settled, best.distribution)
    return (bare, found) if found.surprise < best.surprise else (shapes, best)


def _smoothed(distribution: Floats) -> Floats:
    spread = np.convolve(np.pad(distribution, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
    mixed: Floats = (spread / spread.sum() + 0.05 / len(spread)) / 1.05
    return mixed


def _inform(observed: Observed, distribution: Floats, weight: Floats) -> Information:
    pilot = observed.records * distribution + 1e-3
    return observed.of_draws(pilot) + observed.of_totals(weight)


def _try_all(
    known: Information,
    records: float,
    shapes: dict[str, Shape],
    tried: list[tuple[str, float, float]],
    start: Floats,
) -> Fit:
    """The fit with the least surprise; each starts where the one before it ended."""
    warm = {scale: start_coefficients(shape, start, records) for scale, shape in shapes.items()}
    fits = []
    for scale, tau, phi in tried:
        fits.append(fit_shape(known, records, shapes[scale], warm[scale], tau=tau, phi=phi))
        warm[scale] = fits[-1].coefficients
    return min(fits, key=lambda fit: fit.surprise)


def _refine(known: Information, records: float, shapes: dict[str, Shape], best: Fit) -> Fit:
    """The best phi, and then the best tau beside the present one."""
    start = best.distribution
    phis = [(best.scale, best.tau, phi) for phi in PHIS]
    found = _try_all(known, records, shapes, phis, start)
    taus = [(best.scale, best.tau * factor, found.phi) for factor in (1 / FINER, FINER)]
    beside = _try_all(known, records, shapes, taus, start)
    return min(found, beside, key=lambda fit: fit.surprise)


def _laplace_weights(observed: Observed, known: Information, fit: Fit) -> Floats:
    """Weights of the totals as if their noise were Laplace's, with scale b = 1/epsilon1.

    Laplace noise is normal with a random variance; the mean of 1/variance given what is left
    of a total, R, is 1/(b |R|). R^2 is replaced by its mean given the draws.
    """
    expected = observed.records * fit.distribution
    spread = spread_around(expected, fit.phi)
    inverse = np.linalg.inv(known.gram + np.diag(1 / spread))
    mean = inverse @ (known.right + expected / spread)
    variance = np.diag(np.cumsum(np.cumsum(inverse, axis=0), axis=1))
    place, part = observed.thresholds
    told = np.cumsum(mean)[place] - (1 - part) * mean[place]
    unsure = part * variance[place] + (1 - part) * np.append(0.0, variance)[place]
    b = 1 / observed.epsilon1
    left = (observed.totals - told) ** 2 + unsure + (0.05 * b) ** 2
    weights: Floats = 1 / (b * np.sqrt(left))
    return weights
