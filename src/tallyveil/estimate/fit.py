"""One fit of the smooth model, and how well it explains the draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.estimate.information import Information
from tallyveil.estimate.shape import Shape
from tallyveil.estimate.triangular import invert_root

__all__ = ["Fit", "fit_shape", "spread_around", "start_coefficients"]

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
