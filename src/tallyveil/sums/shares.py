"""How much of the budget each level of a hierarchy gets, from public sizes alone.

Minimised is the weighted sum, over the levels, of squared errors relative to what the rows
alone would give at the whole budget. A level whose sums are hardly better for its share gets
none: then it is added up from the level below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError

__all__ = ["default_weights", "share_budget"]

GROUP_WEIGHT, FADES = 16.0, 3.0
"""How much groups count beside rows, and the epsilon over which that falls by a factor of e."""

SPREAD = 0.05
"""By how much of the largest count rows are expected to differ."""

STEPS = 1000
"""Shares are multiples of one over this."""

LEAST = 20
"""Rows get at least so many of them, if their error counts."""

SWEEPS = 12


def default_weights(sizes: Sequence[int], epsilon: float) -> tuple[float, ...]:
    """The weight of each level: 1 for rows, 16 exp(-epsilon/3) sqrt(nodes/rows) for one above.

    Where epsilon is large rows can be read themselves, and count for more.

    >>> [round(weight, 3) for weight in default_weights([1, 50, 5000], 0.5)]
    [0.192, 1.354, 1.0]
    """
    whole = GROUP_WEIGHT * math.exp(-epsilon / FADES)
    return (*(whole * (size / sizes[-1]) ** 0.5 for size in sizes[:-1]), 1.0)


def share_budget(
    sizes: Sequence[int],
    epsilon: float,
    weights: Sequence[float] | None = None,
    *,
    total_variance: float | None = None,
    exact: int = -1,
    upper: int | None = None,
) -> tuple[Fraction, ...]:
    """The share of `epsilon` that each level gets; they add up to one.

    Parameters
    ----------
    sizes : sequence of int
        How many nodes each level has, from the grand total to the rows.
    epsilon : float
        The budget of all levels together.
    weights : sequence of float, optional
        How much the error of each level counts; see `default_weights`.
    total_variance : float, optional
        The variance of another measurement of the grand total, which costs nothing here.
    exact : int
        The last level whose sums are public, so that neither it nor those above are measured.
    upper : int, optional
        The largest count of a row. Rows are expected to differ by a twentieth of it, and an error
        beyond that counts no more: such a row tells nothing, whatever its share.

    Returns
    -------
    tuple of Fraction
        Multiples of 1/1000, 0 for a level that is not worth its share.

    Examples
    --------
    >>> [str(share) for share in share_budget([1, 51, 3136], 1.0)]
    ['0', '91/500', '409/500']
    >>> [str(share) for share in share_budget([1, 51, 3136], 4.0)]
    ['0', '0', '1']
    """
    given = default_weights(sizes, epsilon) if weights is None else tuple(map(float, weights))
    if len(given) != len(sizes) or not all(weight >= 0 for weight in given) or not any(given):
        rule = f"be {len(sizes)} numbers of at least 0, not all of them 0"
        raise ArgumentError("level_weights", rule, got=f"{len(given)} numbers")
    spread = math.inf if upper is None else (SPREAD * upper) ** 2
    problem = _Problem(tuple(sizes), epsilon, given, total_variance, exact, spread)
    found = [problem.descend(start) for start in problem.list_starts()]
    shares = min(found, key=lambda one: round(one[0], 12))[1]
    groups = [Fraction(share, STEPS) for share in shares]
    return (*groups, 1 - sum(groups, Fraction(0)))


@dataclass(frozen=True)
class _Problem:
    """A balanced tree of public sizes, its budget, and what errors count."""

    sizes: tuple[int, ...]
    epsilon: float
    weights: tuple[float, ...]
    total_variance: float | None
    exact: int
    spread: float

    @property
    def least(self) -> int:
        """What rows are left in any case: they need not be accurate, but must be told apart."""
        return LEAST if self.weights[-1] else 1

    def list_starts(self) -> list[list[int]]:
        """Where the search begins: no level, every level, and each level alone."""
        groups = len(self.sizes) - 1
        usual = [
            min(STEPS // (2 * groups), round(1.2 * STEPS * (size / self.sizes[-1]) ** 0.5))
            for size in self.sizes[:-1]
        ]
        usual = [share if level > self.exact else 0 for level, share in enumerate(usual)]
        alone = [[usual[i] if i == j else 0 for i in range(groups)] for j in range(groups)]
        return [[0] * groups, usual, *alone]

    def descend(self, start: list[int]) -> tuple[float, list[int]]:
        """Change one level's share at a time to the best one, until none changes."""
        shares = list(start)
        error = float(self.weigh_errors(np.array([shares]) / STEPS)[0])
        for _ in range(SWEEPS):
            before = list(shares)
            for level in range(self.exact + 1, len(shares)):
                room = STEPS - (sum(shares) - shares[level]) - self.least + 1
                tried = np.tile(np.array(shares), (room, 1))
                tried[:, level] = np.arange(room)
                errors = self.weigh_errors(tried / STEPS)
                shares[level] = int(np.argmin(errors))
                error = float(errors[shares[level]])
            if shares == before:
                break
        return error, shares

    def weigh_errors(self, shares: Floats) -> Floats:
        """The weighted error of every row of shares."""
        with np.errstate(divide="ignore"):  # exact levels have an infinite precision
            return self._weigh_errors(shares)

    def _weigh_errors(self, shares: Floats) -> Floats:
        sizes, epsilon = self.sizes, self.epsilon
        own = epsilon * (1 - shares.sum(axis=1))
        upward = [_variance(own)]
        for level in range(len(sizes) - 2, -1, -1):
            precision = sizes[level] / (sizes[level + 1] * upward[0])
            precision = precision + 1 / _variance(epsilon * shares[:, level])
            if level == 0 and self.total_variance is not None:
                precision = precision + 1 / self.total_variance
            exact = level <= self.exact
            upward.insert(0, np.zeros_like(precision) if exact else 1 / precision)
        alone_row = 1 / np.sinh(epsilon) ** 2
        own_row = 1 / np.sinh(own) ** 2
        error = self.weights[-1] * own_row / alone_row
        error = error * (1 + alone_row / self.spread) / (1 + own_row / self.spread)
        alone = sizes[-1] * _variance(np.array([epsilon]))[0]
        final = upward[0]
        for level in range(len(sizes) - 1):
            if level:
                fan = sizes[level] / sizes[level - 1]
                final = upward[level] * (1 - 1 / fan) + final / fan**2
            error = error + self.weights[level] * final * sizes[level] / alone
        weighted: Floats = error
        return weighted


def _variance(epsilon: Floats) -> Floats:
    """The variance of geometric noise; infinite at 0."""
    with np.errstate(divide="ignore"):
        found: Floats = 2 * np.exp(-epsilon) / np.expm1(-epsilon) ** 2
    return found
