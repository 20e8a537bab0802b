"""How much of the budget each level of a hierarchy gets, or each margin, from public sizes alone.

Minimised is the weighted sum, over the levels, of squared errors relative to what the rows
alone would give at the whole budget. A level whose sums are hardly better for its share gets
none: then it is added up from the level below, or a margin from the rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tallyveil.arrays import COMPARISON_ROUNDING, Floats, Mask
from tallyveil.errors import ArgumentError

__all__ = ["default_weights", "share_budget", "share_margins"]

GROUP_WEIGHT, FADES = 16.0, 3.0
"""How much groups count beside rows, and the epsilon over which that falls by a factor of e."""

MARGIN_WEIGHT = 2.0
"""How much a margin counts beside a level of a hierarchy: it was named for its own sake."""

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
        wrong = "nothing but 0" if not any(given) else "a number below 0"
        wrong = wrong if len(given) == len(sizes) else f"{len(given)} numbers"
        raise ArgumentError("level_weights", rule, got=wrong)
    return _Levels(tuple(sizes), epsilon, given, upper, exact, total_variance).solve()


def share_margins(
    sizes: Sequence[int], epsilon: float, *, upper: int | None = None
) -> tuple[Fraction, ...]:
    """The share of `epsilon` that each margin gets, and the rows; they add up to one.

    No margin is less accurate than the rows alone would make it at the whole budget, on average
    over its groups. So either all margins are measured or none: a share that rows give away makes
    every margin worse that is only added up from them.

    Parameters
    ----------
    sizes : sequence of int
        How many groups each margin has, and the number of rows.
    epsilon : float
        The budget of all margins and of the rows together.
    upper : int, optional
        The largest count of a row; see `share_budget`.

    Returns
    -------
    tuple of Fraction
        Multiples of 1/1000.

    Examples
    --------
    >>> [str(share) for share in share_margins([20, 20, 4000], 1.0)]
    ['61/500', '61/500', '189/250']
    >>> [str(share) for share in share_margins([12, 16, 192], 1.0)]
    ['0', '0', '1']
    """
    *weights, rows = default_weights(sizes, epsilon)
    weights = [MARGIN_WEIGHT * weight for weight in weights]
    return _Margins(tuple(sizes), epsilon, (*weights, rows), upper).solve()


@dataclass(frozen=True)
class _Problem(ABC):
    """Public sizes, their budget, and what errors count."""

    sizes: tuple[int, ...]
    epsilon: float
    weights: tuple[float, ...]
    upper: int | None
    exact: int = -1

    @abstractmethod
    def list_starts(self) -> list[list[int]]:
        """Where the search begins, with no share at all among others."""

    @abstractmethod
    def list_variances(self, rows: Floats, own: Sequence[Floats]) -> list[Floats]:
        """What a sum of each level varies by, given the noise of rows and of the levels' own."""

    def allow(self, errors: Sequence[Floats]) -> Mask | bool:
        """Which of the levels' errors, relative to those of rows alone, are allowed."""
        return True

    def solve(self) -> tuple[Fraction, ...]:
        """The best shares that are found from any start."""
        found = [self._descend(start) for start in self.list_starts()]
        shares = min(found, key=lambda one: round(one[0], 12))[1]
        groups = [Fraction(share, STEPS) for share in shares]
        return (*groups, 1 - sum(groups, Fraction(0)))

    @property
    def least(self) -> int:
        """What rows are left in any case: they need not be accurate, but must be told apart."""
        return LEAST if self.weights[-1] else 1

    def _descend(self, start: list[int]) -> tuple[float, list[int]]:
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
        """The weighted error of every row of shares; infinite where it is not allowed."""
        left = self.epsilon * (1 - shares.sum(axis=1))
        own = [_variance(self.epsilon * share) for share in shares.T]
        with np.errstate(divide="ignore"):  # exact levels have an infinite precision
            variances = self.list_variances(_variance(left), own)
        alone = self.sizes[-1] * _variance(np.array([self.epsilon]))[0]
        errors = [one * size / alone for one, size in zip(variances, self.sizes, strict=False)]
        weighted = self.weights[-1] * self._compare_rows(left)
        for weight, error in zip(self.weights, errors, strict=False):
            weighted = weighted + weight * error
        return np.where(self.allow(errors), weighted, np.inf)

    def _compare_rows(self, left: Floats) -> Floats:
        """The rows' error relative to that at the whole budget; what hides them counts no more."""
        spread = math.inf if self.upper is None else (SPREAD * self.upper) ** 2
        alone, own = 1 / np.sinh(self.epsilon) ** 2, 1 / np.sinh(left) ** 2
        compared: Floats = own / alone * (1 + alone / spread) / (1 + own / spread)
        return compared


@dataclass(frozen=True)
class _Levels(_Problem):
    """A balanced tree."""

    total_variance: float | None = None

    def list_starts(self) -> list[list[int]]:
        """No level, every level, and each level alone."""
        groups = len(self.sizes) - 1
        usual = [
            min(STEPS // (2 * groups), round(1.2 * STEPS * (size / self.sizes[-1]) ** 0.5))
            for size in self.sizes[:-1]
        ]
        usual = [share if level > self.exact else 0 for level, share in enumerate(usual)]
        alone = [[usual[i] if i == j else 0 for i in range(groups)] for j in range(groups)]
        return [[0] * groups, usual, *alone]

    def list_variances(self, rows: Floats, own: Sequence[Floats]) -> list[Floats]:
        """Upwards every node learns from its children, downwards from its parent."""
        sizes, upward = self.sizes, [rows]
        for level in range(len(sizes) - 2, -1, -1):
            precision = sizes[level] / (sizes[level + 1] * upward[0]) + 1 / own[level]
            if level == 0 and self.total_variance is not None:
                precision = precision + 1 / self.total_variance
            exact = level <= self.exact
            upward.insert(0, np.zeros_like(precision) if exact else 1 / precision)
        found = upward[:1]
        for level in range(1, len(sizes) - 1):
            fan = sizes[level] / sizes[level - 1]
            found.append(upward[level] * (1 - 1 / fan) + found[-1] / fan**2)
        return found


class _Margins(_Problem):
    """Groups of one size in every margin, which learn from their rows and from nothing else.

    A sum 1/(p + 1/(g v)) is concave in the number of rows g: where groups differ in size, a margin
    as a whole is more accurate than this, and rows alone make it neither better nor worse.
    """

    def list_starts(self) -> list[list[int]]:
        """No margin, and the best shares in proportion to the square roots of the sizes.

        With the default weights and a small epsilon no other shares are better.
        """
        roots = np.sqrt(self.sizes[:-1])
        tried = np.ceil(np.outer(np.arange(STEPS), roots / roots.sum())).astype(np.int64)
        tried = tried[tried.sum(axis=1) <= STEPS - self.least]
        best = tried[np.argmin(self.weigh_errors(tried / STEPS))]
        return [[0] * len(roots), best.tolist()]

    def list_variances(self, rows: Floats, own: Sequence[Floats]) -> list[Floats]:
        """A margin's own noise and that of its rows, weighted by precision."""
        pairs = zip(self.sizes, own, strict=False)
        return [1 / (1 / noise + size / (self.sizes[-1] * rows)) for size, noise in pairs]

    def allow(self, errors: Sequence[Floats]) -> Mask:
        """No margin is worse than the sums of rows alone would be."""
        allowed: Mask = np.max(errors, axis=0) <= 1 + COMPARISON_ROUNDING
        return allowed


def _variance(epsilon: Floats) -> Floats:
    """The variance of geometric noise; infinite at 0."""
    with np.errstate(divide="ignore"):
        found: Floats = 2 * np.exp(-epsilon) / np.expm1(-epsilon) ** 2
    return found
