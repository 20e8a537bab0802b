"""What no private release of a distribution can do better: a lower bound on its worst error.

Let C_j be the number of rows with a count of at most j. Tables are as good as the vectors C, one
person moves one entry of C by one, and N W1 is the sum of |error of C_j|. So a release of the
distribution answers as many counting queries as there are thresholds, on the same epsilon, and
each has an error that no mechanism of a single count avoids (docs/theory.md).
"""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanisms.geometric import output_factors

__all__ = ["bound_distribution_error", "least_uniform_error"]

LARGEST_RANGE = 10**6
"""Ranges of a threshold's count are cut here; that can only lower the bound."""

ENOUGH_STEPS = 2000.0
"""Ranges beyond this many 1/epsilon raise the bound by less than 0.1 per cent."""

SMALLEST_REACH = 1e-3
"""Below this epsilon times range the best guess is constant, up to that share."""


def bound_distribution_error(rows: int, upper: int, epsilon: Epsilon) -> float:
    """Bound the worst-case expected Wasserstein-1 error of every private release of a distribution.

    For every epsilon-private algorithm that sees a table of `rows` counts between 0 and `upper`
    and releases any estimate of their distribution, there is a table on which the expected
    distance is at least this. One person changes one count by one. With r(e, g) the least
    expected error of a count that is uniform on 0..g (`least_uniform_error`) and thresholds in
    blocks of b::

        max_b  floor(n/b) b r(b epsilon, floor(N / floor(n/b))) / N,     n = upper, N = rows

    Geometric noise on the cumulative histogram has n/N * 2a/(1 - a^2) on every table,
    a = e^-epsilon: the bound up to a factor 1 + O(n/(N epsilon)). So no method is much better on
    all tables; on smooth distributions some are.

    Parameters
    ----------
    rows : int
        The number of rows, public.
    upper : int
        The largest count.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss of the release.

    Returns
    -------
    float
        A distance in counts.

    References
    ----------
    Suresh (2019, arXiv 1910.03553) and Manurangsi (2021, arXiv 2111.03257) bound other
    parametrisations of the same problem.

    Examples
    --------
    >>> round(bound_distribution_error(10_000, 50, 0.5), 6)
    0.009457
    """
    people, top = _check_count(rows, "rows"), _check_count(upper, "upper")
    loss = float(exact_epsilon(epsilon))
    widths = {min(top, max(1, round(1.25**power))) for power in range(64)}
    return max(_bound_in_blocks(people, top, loss, width) for width in widths)


def _bound_in_blocks(rows: int, upper: int, epsilon: float, width: int) -> float:
    """The bound with thresholds in blocks of `width`, which move together."""
    blocks = upper // width
    return blocks * width * least_uniform_error(rows // blocks, width * epsilon) / rows


def least_uniform_error(upper: int, epsilon: float) -> float:
    """Bound the mean error of a private count that is uniform on 0..upper from below.

    It is that of a geometric draw followed by the posterior median, which is optimal; the range is
    cut where more of it changes nothing, and at a tiny epsilon the error is that of the best
    constant times e^(-epsilon upper/2). Costs O(upper).

    >>> round(least_uniform_error(1, math.log(2)), 9), round(least_uniform_error(100, 1.0), 6)
    (0.333333333, 0.83759)
    """
    top = int(min(upper, LARGEST_RANGE, math.ceil(ENOUGH_STEPS / epsilon)))
    if top * epsilon < SMALLEST_REACH:
        half = (top + 1) // 2
        return math.exp(-epsilon * half) * half * (top + 1 - half) / (top + 1)
    draw = np.arange(top + 1)
    draw = np.minimum(draw, top - draw)  # mirrored, so that the median is never below the draw
    sums = _Powers(epsilon)
    median = sums.find_medians(draw, top)
    nearby = (np.clip(median + step, draw, top) for step in (-1, 0, 1))
    least = np.min([sums.measure_errors(draw, guess, top) for guess in nearby], axis=0)
    return float(np.mean(least * output_factors(top + 1, epsilon)))


class _Powers:
    """Sums of powers of a = e^-epsilon, with expm1 so that little cancels at a small epsilon."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon, self.gap = epsilon, -math.expm1(-epsilon)

    def sum(self, first: Floats | int, count: Floats | Integers) -> Floats:
        """a^first + ... + a^(first + count - 1)."""
        result: Floats = np.exp(-self.epsilon * first) * -np.expm1(-self.epsilon * count) / self.gap
        return result

    def sum_weighted(self, count: Floats | Integers) -> Floats:
        """1 a + 2 a^2 + ... + count a^count."""
        last = count * np.exp(-self.epsilon * (count + 1))
        result: Floats = (self.sum(1, count) - last) / self.gap
        return result

    def find_medians(self, k: Integers, top: int) -> Floats:
        """The median m >= k of the weights a^|i-k| on 0..top, for k <= top/2.

        It is the lowest m with a^(m+1-k) + ... + a^(top-k) at most half of all.
        """
        total = 1 + self.sum(1, k) + self.sum(1, top - k)
        least = self.gap * total / 2 + np.exp(-self.epsilon * (top + 1 - k))
        medians: Floats = k + np.ceil(-np.log(least) / self.epsilon - 1)
        return medians

    def measure_errors(self, k: Integers, guess: Floats, top: int) -> Floats:
        """sum_i a^|i-k| |i - guess| over i in 0..top, for guesses of at least k."""
        ahead = guess - k
        beyond = np.exp(-self.epsilon * ahead) * self.sum_weighted(top - guess)
        before = self.sum_weighted(k) + ahead * self.sum(1, k)
        between = ahead * self.sum(0, ahead + 1) - self.sum_weighted(ahead)
        result: Floats = beyond + before + between
        return result


def _check_count(value: object, argument: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ArgumentError(argument, "be a whole number of at least 1", value)
    return int(value)
