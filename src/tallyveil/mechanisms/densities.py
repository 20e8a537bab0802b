"""Noise laws as exact interval masses: Laplace, staircase, Cauchy, discrete Gaussian.

Each law answers ``mass(lower, upper)``, the probability that noise centred at zero falls in
an interval. Masses are built from positive terms only, never as a difference of two CDF
values near one, so a tail of 1e-300 keeps twelve digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats

__all__ = ["CauchyNoise", "LaplaceNoise", "NoiseLaw", "StaircaseNoise", "discrete_gaussian_law"]


class NoiseLaw(Protocol):
    """A symmetric law on the real line."""

    def mass(self, lower: Floats, upper: Floats) -> Floats:
        """Probability of each interval [lower, upper]; the ends may be infinite."""
        ...


def _fold(lower: Floats, upper: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Intervals on one side of zero moved to the positive side, and which straddle zero."""
    straddles = (lower < 0) & (upper > 0)
    negative = upper <= 0
    near = np.where(negative, -upper, np.where(straddles, 0.0, lower))
    far = np.where(negative, -lower, upper)
    return near, far, straddles


@dataclass(frozen=True)
class LaplaceNoise:
    """Density exp(-|x|/scale) / (2 scale) (001, equation 19)."""

    scale: float

    def mass(self, lower: Floats, upper: Floats) -> Floats:
        """See `NoiseLaw`."""
        near, far, straddles = _fold(lower, upper)
        left = np.where(straddles, -lower, 0.0)
        tail = np.exp(-near / self.scale) * -np.expm1((near - far) / self.scale) / 2
        return tail + -np.expm1(-left / self.scale) / 2


@dataclass(frozen=True)
class StaircaseNoise:
    """Steps of length `step` falling by e^epsilon, each high for a fraction gamma of it.

    (001, equations 20 and 21, with half-open steps and the recursion on |x|, errata 001.4.)
    gamma = 1/(1 + e^(epsilon/2)) minimises the absolute error, 1/2 gives geometric noise on
    the grid.
    """

    step: float
    epsilon: float
    gamma: float

    def mass(self, lower: Floats, upper: Floats) -> Floats:
        """See `NoiseLaw`."""
        near, far, straddles = _fold(lower, upper)
        left = np.where(straddles, -lower, 0.0)
        return self._positive(near, far) + self._positive(np.zeros_like(left), left)

    def _positive(self, near: Floats, far: Floats) -> Floats:
        first, start = self._split(near)
        last, stop = self._split(far)
        same = first == last
        head = self._within(first, start, np.where(same, stop, 1.0))
        tail = np.where(same, 0.0, self._within(last, np.zeros_like(stop), stop))
        with np.errstate(invalid="ignore"):
            whole = np.where(same, 0.0, last - first - 1)
        between = np.exp(-self.epsilon * (first + 1)) * -np.expm1(-self.epsilon * whole) / 2
        return head + tail + between

    def _split(self, x: Floats) -> tuple[Floats, Floats]:
        steps = np.floor(x / self.step)
        with np.errstate(invalid="ignore"):
            part = np.where(np.isinf(x), 0.0, x / self.step - steps)
        return steps, part

    def _within(self, k: Floats, start: Floats, stop: Floats) -> Floats:
        """Mass between two fractions of step k."""
        fall = math.exp(-self.epsilon)
        top = -math.expm1(-self.epsilon) / (2 * (self.gamma + fall * (1 - self.gamma)))
        high = np.minimum(stop, self.gamma) - np.minimum(start, self.gamma)
        low = np.maximum(stop, self.gamma) - np.maximum(start, self.gamma)
        return top * np.exp(-self.epsilon * k) * (high + fall * low)


@dataclass(frozen=True)
class CauchyNoise:
    """Density scale / (pi (scale^2 + x^2))."""

    scale: float

    def mass(self, lower: Floats, upper: Floats) -> Floats:
        """See `NoiseLaw`."""
        near, far, straddles = _fold(lower, upper)
        left = np.where(straddles, -lower, 0.0)
        a, b = near / self.scale, far / self.scale
        with np.errstate(invalid="ignore", over="ignore"):
            # arctan(b) - arctan(a) as one arctangent: no cancellation for a, b >= 0
            tail = np.where(np.isinf(b), np.arctan2(1.0, a), np.arctan2(b - a, 1 + a * b))
        return (tail + np.arctan(left / self.scale)) / math.pi


def discrete_gaussian_law(sigma: float, reach: int) -> tuple[Floats, Floats]:
    """Probabilities of the discrete Gaussian at 0..reach, and of reaching at least that far.

    Pr(k) is proportional to exp(-k^2 / (2 sigma^2)) on all integers; both arrays have shape
    (reach + 1,). Sums run from the far tail inwards.
    """
    far = max(reach, math.ceil(40 * sigma)) + 2
    k = np.arange(far + 1, dtype=float)
    weights = np.exp(-(k * k) / (2 * sigma * sigma))
    tails = np.cumsum(weights[::-1])[::-1]
    total = 2 * tails[1] + weights[0]
    return weights[: reach + 1] / total, tails[: reach + 1] / total
