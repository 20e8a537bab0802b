"""Histograms as tables that stray from a smooth distribution: empirical Bayes.

The model of the true histogram h over cells, with N rows in all::

    h ~ Normal(N z, D),   D = N z (1 + phi N z)
    log z = splines over log(1 + count) or over the count, an atom at either end, and heaps at
            multiples of 2, 5 and 10 or none, with second differences of the splines' coefficients
            ~ Normal(0, tau^2), or third ones, and heaps ~ Student's

phi is how far the table strays from smooth beyond chance. Scale, tau, phi and heaps are chosen to
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
from tallyveil.estimate.draws import Cells, Information, Observed, invert_root
from tallyveil.mechanisms.geometric import noise_variance

MOST_SPLINES = 27

PERIODS = (2, 5, 10)
"""People round: multiples of these may be more frequent than their neighbours."""

HEAP, FREEDOM = 0.25, 3.0
"""The logarithm of a heap is HEAP times a Student variable: most heaps are small, some huge."""


def splines(points: Floats, number: int) -> Floats:
    """Evaluate cubic B-splines with evenly spaced knots at points of [0, 1].

    Shape (len(points), number). Spline j at t is b((number - 3) t - j + 3) with b(x) = sum_i (-1)^i
    C(4, i) max(x - i, 0)^3 / 6. Together they sum to one.

    >>> splines(np.array([0.0, 1.0]), 4).round(3).tolist()
    [[0.167, 0.667, 0.167, 0.0], [0.0, 0.167, 0.667, 0.167]]
    """
    x = (number - 3) * points[:, None] - np.arange(number) + 3
    powers = [(-1) ** i * comb(4, i) / 6 * np.maximum(x - i, 0.0) ** 3 for i in range(5)]
    b: Floats = np.where((x > 0) & (x < 4), np.sum(powers, axis=0), 0.0)
    return b


@dataclass(frozen=True, eq=False)
class Shape:
    """A model of the shares of cells: log share = `offset` + `basis` @ coefficients + constant.

    Attributes
    ----------
    scale : str
        The axis of the splines, "log" or "count"; or "normal", the count with bells smooth.
    offset : array of float, shape (n,)
        The logarithm of the number of counts in each cell.
    basis : array of float, shape (n, m)
        Splines first, then the atoms, then the heaps.
    rough : array of float, shape (m, m)
        Squared second (or third) differences of the splines' coefficients; else nothing.
    ridge : array of float, shape (m,)
        The small penalty that makes every coefficient unique.
    freedom : int
        The rank of `rough`.
    heaps : int
        The number of heaps, the last columns of `basis`.
    """

    scale: str
    offset: Floats
    basis: Floats
    rough: Floats
    ridge: Floats
    freedom: int
    heaps: int = 0

    def distribution(self, coefficients: Floats) -> Floats:
        """Return the shares of the cells, summing to one."""
        level = self.offset + self.basis @ coefficients
        share = np.exp(level - level.max())
        result: Floats = share / share.sum()
        return result

    def release_heaps(self, coefficients: Floats) -> Shape:
        """Return the shape with heaps penalised as their present size calls for."""
        ridge = self.ridge.copy()
        first = len(ridge) - self.heaps
        ridge[first:] = _hold_heaps(coefficients[first:])
        return replace(self, ridge=ridge)

    def leave_out_heaps(self) -> Shape:
        """Return the same shape without heaps."""
        others = slice(len(self.ridge) - self.heaps)
        basis, rough = self.basis[:, others], self.rough[others, others]
        return replace(self, basis=basis, rough=rough, ridge=self.ridge[others], heaps=0)

    @property
    def log_heap_prior(self) -> float:
        """Half the log determinant of the penalty of the heaps: their prior, where they are 0."""
        return 0.5 * float(np.log(self.ridge[len(self.ridge) - self.heaps :]).sum())


def make_shape(cells: Cells, scale: str) -> Shape:
    """Build splines over log(1 + count) (`scale` "log") or over the count, atoms and heaps.

    With "count" a shape is smooth whose logarithm is nearly a line; with "normal", a parabola.
    """
    middle = (cells.low + cells.high) / 2
    points = np.log1p(middle) if scale == "log" else middle
    order = 3 if scale == "normal" else 2
    n = len(cells)
    number = min(MOST_SPLINES, max(6, n // 2))
    smooth = splines((points - points[0]) / (points[-1] - points[0]), number)
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
    """Return the penalty of heaps of this size.

    A Student variable is a normal one with a random variance.
    """
    return (FREEDOM + 1) / (FREEDOM * HEAP**2 + size**2)


def _find_heaps(cells: Cells) -> Floats:
    """Mark the cells that are one multiple of each period, but the first and the last."""
    multiples = cells.high[:, None] % np.array(PERIODS) == 0
    multiples[[0, -1]] = False
    multiples &= (cells.low == cells.high)[:, None]
    heaps: Floats = multiples[:, multiples.sum(axis=0) >= 2].astype(float)
    return heaps


STEPS = 25
"""Most Gauss-Newton steps of a fit."""

SPREAD_STEPS = (0, 2, 5)
"""The spread is worked out at these steps and held between them."""

SPREAD_FLOOR = 1e-4
"""Added to the variance of every cell, so that an empty one has some."""

LONGEST_STEP = 2.0
"""No step changes the logarithm of a share by more than this."""

SMALL_GAIN = 1e-2
"""A fit ends at a step that gains less than this."""

USUAL_TAU = 0.3
"""The mode of the prior for tau."""


@dataclass(frozen=True, eq=False)
class Fit:
    """A smooth distribution for one (scale, tau, phi); less `surprise` is better."""

    scale: str
    tau: float
    phi: float
    coefficients: Floats
    distribution: Floats
    surprise: float


def spread_around(expected: Floats, phi: float) -> Floats:
    """Return the variance of a true histogram around an expected one, e: e (1 + phi e)."""
    return expected * (1 + phi * expected) + SPREAD_FLOOR


def start_coefficients(shape: Shape, distribution: Floats, records: float) -> Floats:
    """Find coefficients whose shape is near a distribution, by weighted least squares."""
    X = shape.basis
    weighted = X * (records * distribution + 0.05)[:, None]
    gram = weighted.T @ X + 0.1 * shape.rough + 1e-4 * np.eye(X.shape[1])
    level = np.log(np.maximum(distribution, 1e-6)) - shape.offset
    coefficients: Floats = np.linalg.solve(gram, weighted.T @ level).astype(float)
    return coefficients


def fit_shape(
    information: Information,
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
    target = _Target(information, records, shape, tau, phi)
    theta, place = start, target.at(start)
    for step in range(STEPS):
        if step in SPREAD_STEPS:
            target.take_spread(place.expected)
            place = target.at(theta)
        move = target.find_step(place)
        length = min(1.0, LONGEST_STEP / max(float(np.abs(shape.basis @ move).max()), 1e-9))
        for _ in range(10):
            trial = target.at(theta - length * move)
            if trial.value <= place.value + 1e-9:
                break
            length /= 2
        theta = theta - length * move
        gain, place = place.value - trial.value, trial
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
    """The function that `fit_shape` minimises, for a spread that is held between steps."""

    def __init__(
        self, information: Information, records: float, shape: Shape, tau: float, phi: float
    ) -> None:
        self.information, self.records, self.shape, self.phi = information, records, shape, phi
        self.penalty = shape.rough / tau**2 + np.diag(shape.ridge)
        self.spread: Floats = np.ones(len(information.right))
        self.inverse: Floats = np.zeros((0, 0))

    def take_spread(self, expected: Floats) -> None:
        """Set the spread to that around an expected histogram."""
        self.spread = spread_around(expected, self.phi)
        B = self.information.gram.copy()
        B[np.diag_indices_from(B)] += 1 / self.spread
        self.inverse = invert_root(B)

    def at(self, theta: Floats) -> _Place:
        """Evaluate the function at coefficients."""
        expected = self.records * self.shape.distribution(theta)
        if not self.inverse.size:
            self.take_spread(expected)
        pulled = self.information.gram @ expected
        rest = self.information.right - pulled
        inner = self._solve(rest)
        square = (
            self.information.square - 2 * (self.information.right @ expected) + expected @ pulled
        )
        value = 0.5 * (square - rest @ inner + theta @ self.penalty @ theta)
        return _Place(theta, expected, float(value), rest, inner)

    def find_step(self, place: _Place) -> Floats:
        """Return the Gauss-Newton step."""
        slope = self.penalty @ place.theta
        slope -= self._slopes(place).T @ (place.rest - self.information.gram @ place.inner)
        hessian = self._hessian(place)
        hessian[np.diag_indices_from(hessian)] += 1e-8
        step: Floats = np.linalg.solve(hessian, slope).astype(float)
        return step

    def log_determinants(self, place: _Place) -> float:
        """Return the terms of the surprise that are log determinants."""
        log_spread = 0.5 * np.log(self.spread).sum() - np.log(np.diag(self.inverse)).sum()
        return float(log_spread + 0.5 * np.linalg.slogdet(self._hessian(place))[1])

    def _slopes(self, place: _Place) -> Floats:
        """Return the derivatives of the expected histogram, shape (n, m)."""
        X, h = self.shape.basis, place.expected
        slopes: Floats = h[:, None] * (X - (h @ X) / self.records)
        return slopes

    def _hessian(self, place: _Place) -> Floats:
        """Return the Gauss-Newton approximation of the Hessian, shape (m, m)."""
        slopes = self._slopes(place)
        pulled = self.information.gram @ slopes
        hessian: Floats = slopes.T @ pulled - pulled.T @ self._solve(pulled) + self.penalty
        return hessian

    def _solve(self, right: Floats) -> Floats:
        """Solve with B = Q + D^-1."""
        solved: Floats = self.inverse.T @ (self.inverse @ right)
        return solved


PILOT_STEPS = 60
"""Steps of expectation maximisation for a first distribution."""

TAUS = tuple(10.0 ** (step / 2) for step in range(-4, 2))
"""The first choices of tau."""

FINER = 10**0.25
"""Around the best tau its multiples by this factor are tried."""

PHIS = (0.0, 0.003, 0.01, 0.03, 0.3)
"""The choices of phi."""

USUAL_PHI = 0.003
"""The phi with which scale and tau are chosen."""


ROUGHEST_TAU = 3.0
ROUGHEST_PHI = 0.1
"""A table that needs a larger tau or phi than these is not smooth."""

POOLED = 0.75
"""The misfit allowed for each cell, where totals inside cells show what cells cannot follow."""

REACH = 4.0
"""Standard deviations of a total that must lie outside the fullest cell."""


def estimate_smooth(observed: Observed) -> Floats | None:
    """Estimate the histogram over cells by the smooth model; None where it does not fit.

    Shape (n,). It does not fit where the draws call for a very rough shape, or for a table that
    strays far from any shape: a few counts, or gaps of another kind. Nor where it explains the
    draws worse than the direct estimate by more than chance: n + sqrt(2n) for n cells. Nor where
    nearly all rows have one count, so that the rest is lost in the noise or is less than a row for
    each cell. The decision is made from the draws, so it is post-processing.
    """
    records = observed.records
    has_totals = len(observed.totals) > 0
    deviation = float(np.sqrt(noise_variance(observed.epsilon1))) if has_totals else 1.0
    scales = ("log", "count", "normal") if observed.cells.single else ("log",)
    shapes = {scale: make_shape(observed.cells, scale) for scale in scales}
    pilot = _smoothed(most_likely_cells(observed, PILOT_STEPS) / records)
    weight = even = observed.precision
    coarse = list(product(shapes, TAUS[2::2], (USUAL_PHI,)))
    information = _inform(observed, pilot, weight)
    best = _try_all(information, records, shapes, coarse, pilot)
    information = _inform(observed, best.distribution, weight)
    fine = list(product(shapes, TAUS, (USUAL_PHI,)))
    best = _try_all(information, records, shapes, fine, pilot)
    for _ in range(2):
        information = _inform(observed, best.distribution, weight)
        best = _refine(information, records, _release_heaps(shapes, best), best)
        shapes, best = _question_heaps(information, records, shapes, best)
        for _ in range(2):
            weight = _laplace_weights(observed, information, best) if has_totals else weight
            information = _inform(observed, best.distribution, weight)
            shapes = _release_heaps(shapes, best)
            settled = [(best.scale, best.tau, best.phi)]
            best = _try_all(information, records, shapes, settled, best.distribution)
    if best.tau > ROUGHEST_TAU or best.phi > ROUGHEST_PHI:
        return None
    expected = records * best.distribution
    spread = spread_around(expected, best.phi)
    gram, right = information.gram + np.diag(1 / spread), information.right + expected / spread
    smooth = least_squares_at_total(gram, right, records)
    direct = fit_totals(observed) if has_totals else most_likely_cells(observed)
    plain = _inform(observed, direct / records, even)
    pooled = len(observed.totals) >= len(smooth)
    n = len(smooth)
    allowed = POOLED * n if pooled else n + np.sqrt(2 * n)
    misses = plain.compare(smooth, direct) > allowed
    fewest = max(REACH * deviation, len(smooth))
    return None if misses or records - smooth.max() < fewest else smooth


def _release_heaps(shapes: dict[str, Shape], best: Fit) -> dict[str, Shape]:
    """Return the shapes with the heaps of the best fit penalised anew."""
    return {**shapes, best.scale: shapes[best.scale].release_heaps(best.coefficients)}


def _question_heaps(
    information: Information, records: float, shapes: dict[str, Shape], best: Fit
) -> tuple[dict[str, Shape], Fit]:
    """Drop the heaps where the draws are explained better without them."""
    bare = {**shapes, best.scale: shapes[best.scale].leave_out_heaps()}
    settled = [(best.scale, best.tau, best.phi)]
    without = _try_all(information, records, bare, settled, best.distribution)
    return (bare, without) if without.surprise < best.surprise else (shapes, best)


def _smoothed(distribution: Floats) -> Floats:
    """Average each share with its neighbours, and mix in an even distribution."""
    spread = np.convolve(np.pad(distribution, 1, mode="edge"), [0.25, 0.5, 0.25], "valid")
    mixed: Floats = (spread / spread.sum() + 0.05 / len(spread)) / 1.05
    return mixed


def _inform(observed: Observed, distribution: Floats, weight: Floats) -> Information:
    """Return the information of both draws, at a distribution."""
    pilot = observed.records * distribution + 1e-3
    return observed.of_draws(pilot) + observed.of_totals(weight)


def _try_all(
    information: Information,
    records: float,
    shapes: dict[str, Shape],
    candidates: list[tuple[str, float, float]],
    start: Floats,
) -> Fit:
    """Return the fit with the least surprise; each starts where the one before it ended."""
    warm = {scale: start_coefficients(shape, start, records) for scale, shape in shapes.items()}
    fits = []
    for scale, tau, phi in candidates:
        fits.append(fit_shape(information, records, shapes[scale], warm[scale], tau=tau, phi=phi))
        warm[scale] = fits[-1].coefficients
    return min(fits, key=lambda fit: fit.surprise)


def _refine(information: Information, records: float, shapes: dict[str, Shape], best: Fit) -> Fit:
    """Return the fit with the best phi, and then the best tau next to the present one."""
    start = best.distribution
    phis = [(best.scale, best.tau, phi) for phi in PHIS]
    best_phi = _try_all(information, records, shapes, phis, start)
    taus = [(best.scale, best.tau * factor, best_phi.phi) for factor in (1 / FINER, FINER)]
    best_tau = _try_all(information, records, shapes, taus, start)
    return min(best_phi, best_tau, key=lambda fit: fit.surprise)


def _laplace_weights(observed: Observed, information: Information, fit: Fit) -> Floats:
    """Weigh the totals as if their noise were Laplace's, with scale b = 1/epsilon1.

    Laplace noise is normal with a random variance; the mean of 1/variance given the remainder
    R of a total is 1/(b |R|). R^2 is replaced by its mean given the draws.
    """
    expected = observed.records * fit.distribution
    spread = spread_around(expected, fit.phi)
    inverse = np.linalg.inv(information.gram + np.diag(1 / spread))
    mean = inverse @ (information.right + expected / spread)
    variance = np.diag(np.cumsum(np.cumsum(inverse, axis=0), axis=1))
    place, part = observed.thresholds
    expected_totals = np.cumsum(mean)[place] - (1 - part) * mean[place]
    variances = part * variance[place] + (1 - part) * np.append(0.0, variance)[place]
    b = 1 / observed.epsilon1
    squared_rest = (observed.totals - expected_totals) ** 2 + variances + (0.05 * b) ** 2
    weights: Floats = 1 / (b * np.sqrt(squared_rest))
    return weights
