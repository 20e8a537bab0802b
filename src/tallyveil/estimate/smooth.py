"""Histograms as tables that stray from a smooth distribution: empirical Bayes.

The model of the true histogram h over cells, with N rows in all::

    h ~ Normal(N z, D),   D = N z (1 + phi N z)
    log z = splines over log(1 + count) or over the count, an atom at either end, and heaps at
            multiples of 2, 5 and 10 or none, with second differences of the splines' coefficients
            ~ Normal(0, tau^2), or third ones, and heaps ~ Student's

phi is how far the table strays from smooth beyond chance. Scale, tau, phi and heaps are those that
explain the draws best; the estimate is the likeliest h given them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import comb
from typing import Any

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.estimate.direct import fit_totals, least_squares_at_total, most_likely_cells
from tallyveil.estimate.draws import Cells
from tallyveil.estimate.information import Information, Observed, invert_root, noise_variance

__all__ = [
    "Fit",
    "Shape",
    "estimate_smooth",
    "fit_shape",
    "make_shape",
    "splines",
    "spread_around",
    "start_coefficients",
]

MOST_SPLINES = 27
PERIODS = (2, 5, 10)
"""People round: multiples of these may be more frequent than their neighbours."""

HEAP, FREEDOM = 0.25, 3.0
"""The logarithm of a heap is HEAP times a Student variable: most heaps are small, some huge."""


def splines(at: Floats, number: int) -> Floats:
    """Cubic B-splines with evenly spaced knots at points of [0, 1], shape (len(at), number).

    Spline j is b((number - 3) at - j + 3) with b(x) = sum_i (-1)^i C(4, i) max(x - i, 0)^3 / 6.
    Together they sum to one.

    >>> splines(np.array([0.0, 1.0]), 4).round(3).tolist()
    [[0.167, 0.667, 0.167, 0.0], [0.0, 0.167, 0.667, 0.167]]
    """
    x = (number - 3) * at[:, None] - np.arange(number) + 3
    powers = [(-1) ** i * comb(4, i) / 6 * np.maximum(x - i, 0.0) ** 3 for i in range(5)]
    b: Floats = np.where((x > 0) & (x < 4), np.sum(powers, axis=0), 0.0)
    return b


@dataclass(frozen=True, eq=False)
class Shape:
    """log share = `offset` + `basis` @ coefficients, up to a constant.

    Attributes
    ----------
    scale : str
        Over what the splines are, "log" or "count"; or "normal", the count with bells smooth.
    offset : array of float, shape (n,)
        The logarithm of how many counts each cell has.
    basis : array of float, shape (n, m)
        Splines first, then the atoms, then the heaps.
    rough : array of float, shape (m, m)
        Squared second (or third) differences of the splines' coefficients; else nothing.
    ridge : array of float, shape (m,)
        The small penalty that makes every coefficient unique.
    freedom : int
        The rank of `rough`.
    heaps : int
        How many of the last columns of `basis` are heaps.
    """

    scale: str
    offset: Floats
    basis: Floats
    rough: Floats
    ridge: Floats
    freedom: int
    heaps: int = 0

    def distribution(self, coefficients: Floats) -> Floats:
        """The shares of the cells, summing to one."""
        level = self.offset + self.basis @ coefficients
        share = np.exp(level - level.max())
        result: Floats = share / share.sum()
        return result

    def release_heaps(self, coefficients: Floats) -> Shape:
        """The same shape with heaps held back as far as their present size calls for."""
        ridge = self.ridge.copy()
        first = len(ridge) - self.heaps
        ridge[first:] = _hold_heaps(coefficients[first:])
        return replace(self, ridge=ridge)

    def leave_out_heaps(self) -> Shape:
        """The same shape without heaps."""
        kept = slice(len(self.ridge) - self.heaps)
        basis, rough = self.basis[:, kept], self.rough[kept, kept]
        return replace(self, basis=basis, rough=rough, ridge=self.ridge[kept], heaps=0)

    @property
    def log_heap_prior(self) -> float:
        """Half the log determinant of the penalty of the heaps: their prior, where they are 0."""
        return 0.5 * float(np.log(self.ridge[len(self.ridge) - self.heaps :]).sum())


def make_shape(cells: Cells, scale: str) -> Shape:
    """Splines over log(1 + count) (`scale` "log") or over the count, atoms and heaps.

    With "count" a shape is smooth whose logarithm is nearly a line; with "normal", a parabola.
    """
    middle = (cells.low + cells.high) / 2
    at = np.log1p(middle) if scale == "log" else middle
    order = 3 if scale == "normal" else 2
    n = len(cells)
    number = min(MOST_SPLINES, max(6, n // 2))
    smooth = splines((at - at[0]) / (at[-1] - at[0]), number)
    ends = np.zeros((n, 2))
    ends[0, 0] = ends[-1, 1] = 1.0
    heaps = _find_heaps(cells)
    basis = np.hstack([smooth, ends, heaps])
    differences = np.diff(np.eye(number), order, axis=0)
    rough = np.zeros((basis.shape[1], basis.shape[1]))
    rough[:number, :number] = differences.T @ differences
    ridge = np.repeat([1e-4, 0.04, _hold_heaps(0.0)], [number, 2, heaps.shape[1]])
    offset = np.log(cells.high - cells.low + 1.0)
    return Shape(scale, offset, basis, rough, ridge, number - order, heaps.shape[1])


def _hold_heaps(size: Any) -> Any:
    """The penalty of heaps of this size: a Student variable is normal with a random variance."""
    return (FREEDOM + 1) / (FREEDOM * HEAP**2 + size**2)


def _find_heaps(cells: Cells) -> Floats:
    """Which cells are one multiple of each period, the first and the last cell aside."""
    multiples = cells.high[:, None] % np.array(PERIODS) == 0
    multiples[[0, -1]] = False
    multiples &= (cells.low == cells.high)[:, None]
    heaps: Floats = multiples[:, multiples.sum(axis=0) >= 2].astype(float)
    return heaps


STEPS = 25
SPREAD_STEPS = (0, 2, 5)
"""At these steps the spread is taken anew; between them it is held."""

SPREAD_FLOOR = 1e-4
LONGEST_STEP = 2.0
"""No step changes the logarithm of a share by more than this."""

SMALL_GAIN = 1e-2
USUAL_TAU = 0.3


@dataclass(frozen=True, eq=False)
class Fit:
    """A smooth distribution found for one (scale, tau, phi); less `surprise` is better."""

    scale: str
    tau: float
    phi: float
    coefficients: Floats
    distribution: Floats
    surprise: float


def spread_around(expected: Floats, phi: float) -> Floats:
    """The variance of a true histogram around what is expected: e (1 + phi e), and a little."""
    return expected * (1 + phi * expected) + SPREAD_FLOOR


def start_coefficients(shape: Shape, distribution: Floats, records: float) -> Floats:
    """Coefficients whose shape is near a given distribution, by weighted least squares."""
    X = shape.basis
    weighted = X * (records * distribution + 0.05)[:, None]
    gram = weighted.T @ X + 0.1 * shape.rough + 1e-4 * np.eye(X.shape[1])
    level = np.log(np.maximum(distribution, 1e-6)) - shape.offset
    found: Floats = np.linalg.solve(gram, weighted.T @ level).astype(float)
    return found


def fit_shape(
    known: Information,
    records: float,
    shape: Shape,
    start: Floats,
    *,
    tau: float,
    phi: float,
) -> Fit:
    """Find the likeliest coefficients with the histogram integrated out.

    With h ~ Normal(N z, D), D = spread_around(N z, phi), and Q, r, s the draws' information::

        V(coefficients) = (s - 2 r·Nz + Nz'Q Nz - u'B^-1 u)/2 + coefficients' P coefficients/2
        u = r - Q Nz,   B = Q + D^-1,   P = rough/tau^2 + ridge

    is minimised by damped Gauss-Newton steps, and Laplace's approximation of the evidence is::

        surprise = V + (log det B + log det D)/2 + log det(Hessian)/2 + freedom log tau
                   + (log10(tau/0.3))^2/4      (a weak prior for tau)
                   - sum(log ridge)/2 over the heaps
    """
    target = _Target(known, records, shape, tau, phi)
    theta, place = start, target.at(start)
    for step in range(STEPS):
        if step in SPREAD_STEPS:
            target.take_spread(place.expected)
            place = target.at(theta)
        move = target.find_step(place)
        length = min(1.0, LONGEST_STEP / max(float(np.abs(shape.basis @ move).max()), 1e-9))
        for _ in range(10):
            tried = target.at(theta - length * move)
            if tried.value <= place.value + 1e-9:
                break
            length /= 2
        theta = theta - length * move
        gain, place = place.value - tried.value, tried
        if step >= SPREAD_STEPS[-1] and abs(gain) < SMALL_GAIN:
            break
    target.take_spread(place.expected)
    surprise = target.at(theta).value + target.log_determinants(place)
    surprise += shape.freedom * np.log(tau) - shape.log_heap_prior
    surprise += 0.25 * np.log10(tau / USUAL_TAU) ** 2
    return Fit(shape.scale, tau, phi, theta, place.expected / records, float(surprise))


@dataclass(frozen=True, eq=False)
class _Place:
    """Coefficients, the histogram they expect, and the target there."""

    theta: Floats
    expected: Floats
    value: float
    rest: Floats
    inner: Floats


class _Target:
    """What `fit_shape` minimises, for a spread that is held between steps."""

    def __init__(
        self, known: Information, records: float, shape: Shape, tau: float, phi: float
    ) -> None:
        self.known, self.records, self.shape, self.phi = known, records, shape, phi
        self.penalty = shape.rough / tau**2 + np.diag(shape.ridge)
        self.spread: Floats = np.ones(len(known.right))
        self.inverse: Floats = np.zeros((0, 0))

    def take_spread(self, expected: Floats) -> None:
        self.spread = spread_around(expected, self.phi)
        B = self.known.gram.copy()
        B[np.diag_indices_from(B)] += 1 / self.spread
        self.inverse = invert_root(B)

    def at(self, theta: Floats) -> _Place:
        expected = self.records * self.shape.distribution(theta)
        if not self.inverse.size:
            self.take_spread(expected)
        pulled = self.known.gram @ expected
        rest = self.known.right - pulled
        inner = self._solve(rest)
        square = self.known.square - 2 * (self.known.right @ expected) + expected @ pulled
        value = 0.5 * (square - rest @ inner + theta @ self.penalty @ theta)
        return _Place(theta, expected, float(value), rest, inner)

    def find_step(self, place: _Place) -> Floats:
        slope = self.penalty @ place.theta
        slope -= self._slopes(place).T @ (place.rest - self.known.gram @ place.inner)
        hessian = self._hessian(place)
        hessian[np.diag_indices_from(hessian)] += 1e-8
        step: Floats = np.linalg.solve(hessian, slope).astype(float)
        return step

    def log_determinants(self, place: _Place) -> float:
        found = 0.5 * np.log(self.spread).sum() - np.log(np.diag(self.inverse)).sum()
        return float(found + 0.5 * np.linalg.slogdet(self._hessian(place))[1])

    def _slopes(self, place: _Place) -> Floats:
        """Derivatives of the expected histogram, shape (n, m)."""
        X, h = self.shape.basis, place.expected
        slopes: Floats = h[:, None] * (X - (h @ X) / self.records)
        return slopes

    def _hessian(self, place: _Place) -> Floats:
        slopes = self._slopes(place)
        pulled = self.known.gram @ slopes
        hessian: Floats = slopes.T @ pulled - pulled.T @ self._solve(pulled) + self.penalty
        return hessian

    def _solve(self, right: Floats) -> Floats:
        solved: Floats = self.inverse.T @ (self.inverse @ right)
        return solved


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
