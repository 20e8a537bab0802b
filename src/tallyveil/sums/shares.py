"""The share of the budget of each level of a hierarchy, or each margin, from public sizes alone.

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

GROUP_WEIGHT, FADES = 16.0, 3.0
"""The weight of groups, where rows have 1; the epsilon over which it falls by a factor of e."""

MARGIN_WEIGHT = 2.0
"""The weight of a margin, where a level of a hierarchy has 1: each margin was named on purpose."""

SPREAD = 0.05
"""The part of the largest count by which rows are expected to differ."""

STEPS = 1000
"""Shares are multiples of one over this."""

LEAST = 20
"""Rows get at least this many of them, if their error counts."""

SWEEPS = 12
"""Most passes of the search over all levels."""


def default_weights(sizes: Sequence[int], epsilon: float) -> tuple[float, ...]:
    """Return the weight of each level: 1 for rows, 16 exp(-epsilon/3) sqrt(nodes/rows) above.

    Where epsilon is large rows can be read themselves, and count for more.

    >>> [round(weight, 3) for weight in default_weights([1, 50, 5000], 0.5)]
    [0.192, 1.354, 1.0]
    """
    scale = GROUP_WEIGHT * math.exp(-epsilon / FADES)
    return (*(scale * (size / sizes[-1]) ** 0.5 for size in sizes[:-1]), 1.0)


def share_budget(
    sizes: Sequence[int],
    epsilon: float,
    weights: Sequence[float] | None = None,
    *,
    total_variance: float | None = None,
    exact: int = -1,
    upper: int | None = None,
) -> tuple[Fraction, ...]:
    """Choose the share of `epsilon` that each level gets; they add up to one.

    Parameters
    ----------
    sizes : sequence of int
        The number of nodes of each level, from the grand total to the rows.
    epsilon : float
        The budget of all levels together.
    weights : sequence of float, optional
        The weight of each level's error; see `default_weights`.
    total_variance : float, optional
        The variance of another measurement of the grand total, which costs nothing here.
    exact : int
        The last level whose sums are public, so that neither it nor those above are measured.
    upper : int, optional
        The largest count of a row. Rows are expected to differ by a twentieth of it, and an error
        beyond that counts no more: no share makes such a row useful.

    Returns
    -------
    tuple of Fraction
        Multiples of 1/1000, 0 for a level whose sums would gain too little.

    Examples
    --------
    >>> [str(share) for share in share_budget([1, 51, 3136], 1.0)]
    ['0', '91/500', '409/500']
    >>> [str(share) for share in share_budget([1, 51, 3136], 4.0)]
    ['0', '0', '1']
    """
    level_weights = (
        default_weights(sizes, epsilon) if weights is None else tuple(map(float, weights))
    )
    if (
        len(level_weights) != len(sizes)
        or not all(weight >= 0 for weight in level_weights)
        or not any(level_weights)
    ):
        rule = f"be {len(sizes)} numbers of at least 0, not all of them 0"
        wrong = "nothing but 0" if not any(level_weights) else "a number below 0"
        wrong = wrong if len(level_weights) == len(sizes) else f"{len(level_weights)} numbers"
        raise ArgumentError("weights", rule, got=wrong)
    return _Levels(tuple(sizes), epsilon, level_weights, upper, exact, total_variance).solve()


def share_margins(
    sizes: Sequence[int], epsilon: float, *, upper: int | None = None
) -> tuple[Fraction, ...]:
    """Choose the share of `epsilon` that each margin gets, and the rows.

    They add up to one. No margin is less accurate than the rows alone would make it at the whole
    budget, on average over its groups. So either all margins are measured or none: a share that
    rows give away makes every margin worse that is only added up from them.

    Parameters
    ----------
    sizes : sequence of int
        The number of groups of each margin, and the number of rows.
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
    """Public sizes, their budget, and the weights of their errors."""

    sizes: tuple[int, ...]
    epsilon: float
    weights: tuple[float, ...]
    upper: int | None
    exact: int = -1

    @abstractmethod
    def list_starts(self) -> list[list[int]]:
        """Return the starts of the search, among them one without any share."""

    @abstractmethod
    def list_variances(self, rows: Floats, levels: Sequence[Floats]) -> list[Floats]:
        """Return the variance of a sum of each level.

        `rows` and `levels` are the variances of the noise of the rows and of each level's
        measurement.
        """

    def allow(self, errors: Sequence[Floats]) -> Mask | bool:
        """Mark the errors, relative to those of rows alone, that are allowed."""
        return True

    def solve(self) -> tuple[Fraction, ...]:
        """Return the best shares found from any start."""
        results = [self._descend(start) for start in self.list_starts()]
        shares = min(results, key=lambda result: round(result[0], 12))[1]
        groups = [Fraction(share, STEPS) for share in shares]
        return (*groups, 1 - sum(groups, Fraction(0)))

    @property
    def least(self) -> int:
        """The least share of rows: they need not be accurate, but must differ."""
        return LEAST if self.weights[-1] else 1

    def _descend(self, start: list[int]) -> tuple[float, list[int]]:
        """Change one level's share at a time to the best one, until none changes."""
        shares = list(start)
        error = float(self.weigh_errors(np.array([shares]) / STEPS)[0])
        for _ in range(SWEEPS):
            before = list(shares)
            for level in range(self.exact + 1, len(shares)):
                room = STEPS - (sum(shares) - shares[level]) - self.least + 1
                candidates = np.tile(np.array(shares), (room, 1))
                candidates[:, level] = np.arange(room)
                errors = self.weigh_errors(candidates / STEPS)
                shares[level] = int(np.argmin(errors))
                error = float(errors[shares[level]])
            if shares == before:
                break
        return error, shares

    def weigh_errors(self, shares: Floats) -> Floats:
        """Return the weighted error of every row of shares; infinite where not allowed."""
        rest = self.epsilon * (1 - shares.sum(axis=1))
        level_variances = [_variance(self.epsilon * share) for share in shares.T]
        with np.errstate(divide="ignore"):  # exact levels have an infinite precision
            variances = self.list_variances(_variance(rest), level_variances)
        alone = self.sizes[-1] * _variance(np.array([self.epsilon]))[0]
        errors = [
            variance * size / alone for variance, size in zip(variances, self.sizes, strict=False)
        ]
        weighted = self.weights[-1] * self._compare_rows(rest)
        for weight, error in zip(self.weights, errors, strict=False):
            weighted = weighted + weight * error
        return np.where(self.allow(errors), weighted, np.inf)

    def _compare_rows(self, rest: Floats) -> Floats:
        """Return the rows' error relative to that at the whole budget.

        Noise beyond the differences between rows counts no more.
        """
        spread = math.inf if self.upper is None else (SPREAD * self.upper) ** 2
        alone, variance = 1 / np.sinh(self.epsilon) ** 2, 1 / np.sinh(rest) ** 2
        compared: Floats = variance / alone * (1 + alone / spread) / (1 + variance / spread)
        return compared


@dataclass(frozen=True)
class _Levels(_Problem):
    """The problem of a balanced tree."""

    total_variance: float | None = None

    def list_starts(self) -> list[list[int]]:
        """Return no level, every level, and each level alone."""
        groups = len(self.sizes) - 1
        usual = [
            min(STEPS // (2 * groups), round(1.2 * STEPS * (size / self.sizes[-1]) ** 0.5))
            for size in self.sizes[:-1]
        ]
        usual = [share if level > self.exact else 0 for level, share in enumerate(usual)]
        alone = [[usual[i] if i == j else 0 for i in range(groups)] for j in range(groups)]
        return [[0] * groups, usual, *alone]

    def list_variances(self, rows: Floats, levels: Sequence[Floats]) -> list[Floats]:
        """Combine upwards with the children, and downwards with the parent."""
        sizes, upward = self.sizes, [rows]
        for level in range(len(sizes) - 2, -1, -1):
            precision = sizes[level] / (sizes[level + 1] * upward[0]) + 1 / levels[level]
            if level == 0 and self.total_variance is not None:
                precision = precision + 1 / self.total_variance
            exact = level <= self.exact
            upward.insert(0, np.zeros_like(precision) if exact else 1 / precision)
        variances = upward[:1]
        for level in range(1, len(sizes) - 1):
            fan = sizes[level] / sizes[level - 1]
            variances.append(upward[level] * (1 - 1 / fan) + variances[-1] / fan**2)
        return variances


class _Margins(_Problem):
    """The problem of margins: groups of one size, which learn from their rows and nothing else.

    A sum 1/(p + 1/(g v)) is concave in the number of rows g: where groups differ in size, a margin
    as a whole is more accurate than this, and rows alone make it neither better nor worse.
    """

    def list_starts(self) -> list[list[int]]:
        """Return no margin, and the best shares in proportion to square roots of sizes.

        With the default weights and a small epsilon no other shares are better.
        """
        roots = np.sqrt(self.sizes[:-1])
        candidates = np.ceil(np.outer(np.arange(STEPS), roots / roots.sum())).astype(np.int64)
        candidates = candidates[candidates.sum(axis=1) <= STEPS - self.least]
        best = candidates[np.argmin(self.weigh_errors(candidates / STEPS))]
        return [[0] * len(roots), best.tolist()]

    def list_variances(self, rows: Floats, levels: Sequence[Floats]) -> list[Floats]:
        """Combine a margin's noise with that of its rows, by precision."""
        pairs = zip(self.sizes, levels, strict=False)
        return [1 / (1 / noise + size / (self.sizes[-1] * rows)) for size, noise in pairs]

    def allow(self, errors: Sequence[Floats]) -> Mask:
        """Allow no margin to be worse than the sums of rows alone."""
        allowed: Mask = np.max(errors, axis=0) <= 1 + COMPARISON_ROUNDING
        return allowed


def _variance(epsilon: Floats) -> Floats:
    """Return the variance of geometric noise; infinite at 0."""
    with np.errstate(divide="ignore"):
        variance: Floats = 2 * np.exp(-epsilon) / np.expm1(-epsilon) ** 2
    return variance
