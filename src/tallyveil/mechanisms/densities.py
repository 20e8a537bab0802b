"""Noise distributions as probabilities of intervals: Laplace, staircase, Cauchy, Gaussian.

Probabilities are built from positive terms only, never as a difference of two cumulative
values near one, so a tail of 1e-300 keeps twelve digits.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Floats

__all__ = [
    "CauchyNoise",
    "LaplaceNoise",
    "Noise",
    "StaircaseNoise",
    "discrete_gaussian_probabilities",
]

GAUSSIAN_REACH = 40
"""Beyond this many sigmas the weights of the discrete Gaussian are below any double."""


class Noise(ABC):
    """Noise on the real line with a density that is symmetric around zero."""

    def mass(self, lower: Floats, upper: Floats) -> Floats:
        """Return the probability of each interval [lower, upper]; the ends may be infinite."""
        # The parts above and below zero; the second is mirrored, an absent part is [0, 0].
        above = self._mass_above(np.maximum(lower, 0.0), np.maximum(upper, 0.0))
        below = self._mass_above(np.maximum(-upper, 0.0), np.maximum(-lower, 0.0))
        return above + below

    @abstractmethod
    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        """The probability of each interval with 0 <= near <= far."""


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """Density exp(-|x|/scale) / (2 scale) (Croft, Sack and Shi 2020, equation 19)."""

    scale: float

    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        return np.exp(-near / self.scale) * -np.expm1((near - far) / self.scale) / 2


@dataclass(frozen=True)
class StaircaseNoise(Noise):
    """A density of stairs: step k, from k to k+1 times `step`, has two heights.

    With b = e^(-epsilon), the first `gamma` of step k has height h b^k and the rest h b^(k+1).
    gamma = 1/(1 + e^(epsilon/2)) minimises the absolute error, 1/2 gives geometric noise on
    the grid (Croft, Sack and Shi 2020, equations 20 and 21; half-open steps and the recursion
    on |x|: errata, Croft 4).
    """

    step: float
    epsilon: float
    gamma: float

    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        first, start = self._locate(near)
        last, stop = self._locate(far)
        same = first == last
        head = self._mass_within(first, start, np.where(same, stop, 1.0))
        tail = np.where(same, 0.0, self._mass_within(last, np.zeros_like(stop), stop))
        with np.errstate(invalid="ignore"):
            whole = np.where(same, 0.0, last - first - 1)
        # step k as a whole has mass b^k (1 - b) / 2, so whole steps are a geometric sum
        between = np.exp(-self.epsilon * (first + 1)) * -np.expm1(-self.epsilon * whole) / 2
        return head + tail + between

    def _locate(self, x: Floats) -> tuple[Floats, Floats]:
        """The step that x >= 0 lies on, and the fraction of it that lies before x."""
        steps = np.floor(x / self.step)
        with np.errstate(invalid="ignore"):
            fraction = np.where(np.isinf(x), 0.0, x / self.step - steps)
        return steps, fraction

    def _mass_within(self, k: Floats, start: Floats, stop: Floats) -> Floats:
        """The probability between two fractions of step k."""
        fall = math.exp(-self.epsilon)
        top = -math.expm1(-self.epsilon) / (2 * (self.gamma + fall * (1 - self.gamma)))
        high = np.minimum(stop, self.gamma) - np.minimum(start, self.gamma)
        low = np.maximum(stop, self.gamma) - np.maximum(start, self.gamma)
        return top * np.exp(-self.epsilon * k) * (high + fall * low)


@dataclass(frozen=True)
class CauchyNoise(Noise):
    """Density scale / (pi (scale^2 + x^2))."""

    scale: float

    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        a, b = near / self.scale, far / self.scale
        with np.errstate(invalid="ignore", over="ignore"):
            # arctan(b) - arctan(a) as one arctangent: no cancellation for a, b >= 0
            angle = np.where(np.isinf(b), np.arctan2(1.0, a), np.arctan2(b - a, 1 + a * b))
        return angle / math.pi


def discrete_gaussian_probabilities(sigma: float, reach: int) -> tuple[Floats, Floats]:
    """Return Pr(Z = k) and Pr(Z >= k) of the discrete Gaussian for k = 0..reach.

    Pr(Z = k) is proportional to exp(-k^2 / (2 sigma^2)) on all integers. Sums run from the far
    tail inwards.
    """
    far = max(reach, math.ceil(GAUSSIAN_REACH * sigma)) + 2
    k = np.arange(far + 1, dtype=float)
    weights = np.exp(-(k * k) / (2 * sigma * sigma))
    tails = np.cumsum(weights[::-1])[::-1]
    total = 2 * tails[1] + weights[0]
    return weights[: reach + 1] / total, tails[: reach + 1] / total
