"""Epsilon-scales: the building blocks of every private column.

A scale is a distribution on 0..n-1 whose every step goes up or down by exactly e^epsilon. A
column of a private mechanism is a non-negative combination of scales (Lemma 1).

Kohli and Laskowski (2026), section 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.papers.kohli.greedy import Residual

__all__ = [
    "Decomposition",
    "decompose",
    "is_indistinguishable",
    "is_scale",
    "pattern_of",
    "patterns",
    "peak_weights",
    "privacy_rows",
    "scale",
    "scale_matrix",
    "single_peaked_scales",
]


MOST_ROWS_LISTED = 20
"""The largest n for which all 2^(n-1) scales are listed."""


def patterns(n: int) -> Integers:
    """List all 2^(n-1) patterns of ups (+1) and downs (-1).

    Parameters
    ----------
    n : int
        The number of counts, from 2 to 20.

    Returns
    -------
    array of int, shape (2^(n-1), n-1)
        One pattern in each row.

    References
    ----------
    Kohli and Laskowski (2026), Definition 9.

    Examples
    --------
    >>> patterns(3).tolist()
    [[-1, -1], [-1, 1], [1, -1], [1, 1]]
    """
    if not 2 <= n <= MOST_ROWS_LISTED:
        rule = f"lie between 2 and {MOST_ROWS_LISTED}, as there are 2^(n-1) scales"
        raise ArgumentError("n", rule, n)
    bits = np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 2, -1, -1)[None, :]
    return 2 * (bits & 1).astype(np.int64) - 1


def scale(pattern: ArrayLike, epsilon: Epsilon) -> Floats:
    """Build the scale that goes up where `pattern` is +1 and down where it is -1.

    Parameters
    ----------
    pattern : array of int, shape (n-1,)
        Entries -1 and +1.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n,)
        A distribution.

    References
    ----------
    Kohli and Laskowski (2026), Definition 6.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(7 * scale([1, 1], np.log(2)), 9).tolist()
    [1.0, 2.0, 4.0]
    """
    steps = np.asarray(pattern)
    if steps.ndim != 1 or len(steps) == 0 or not np.isin(steps, (-1, 1)).all():
        raise ArgumentError("pattern", "be a list of -1 and +1")
    height = np.concatenate([[0], np.cumsum(steps)])
    values = np.exp(float(exact_epsilon(epsilon)) * (height - height.max()))
    distribution: Floats = values / values.sum()
    return distribution


def scale_matrix(n: int, epsilon: Epsilon) -> Floats:
    """Build Psi: every scale as a column, in the order of `patterns`.

    Parameters
    ----------
    n : int
        The number of counts, from 2 to 20.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n, 2^(n-1))
        The scales.

    Examples
    --------
    >>> scale_matrix(3, 1.0).shape
    (3, 4)
    """
    return np.column_stack([scale(pattern, epsilon) for pattern in patterns(n)])


def single_peaked_scales(n: int, epsilon: Epsilon) -> Floats:
    """Build Sigma: column j rises to a peak at row j and falls after it.

    Entries underflow where epsilon * n is above about 700.

    Parameters
    ----------
    n : int
        The number of counts, at least 2.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n, n)
        The single-peaked scales.

    References
    ----------
    Kohli and Laskowski (2026), Definition 10.

    Examples
    --------
    >>> import numpy as np
    >>> np.round(4 * single_peaked_scales(3, np.log(2))[:, 1], 9).tolist()
    [1.0, 2.0, 1.0]
    """
    rows = np.arange(_check_size(n))
    peaked = np.exp(-float(exact_epsilon(epsilon)) * np.abs(rows[:, None] - rows[None, :]))
    sigma: Floats = peaked / peaked.sum(axis=0)
    return sigma


def peak_weights(n: int, epsilon: Epsilon) -> Floats:
    """Compute omega: how much of each single-peaked scale makes all rows sum to one.

    With a = e^-epsilon and S_l = sum_i a^|i-l|: (1-a)/(1+a) S_l inside, S_l/(1+a) at the ends.
    Column l of the geometric mechanism is omega_l times scale l.

    Parameters
    ----------
    n : int
        The number of counts, at least 2.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (n,)
        The weights, all positive.

    References
    ----------
    Kohli and Laskowski (2026), Observation 3, with e^epsilon read as e^-epsilon (errata,
    Kohli 1).

    Examples
    --------
    >>> import numpy as np
    >>> np.round(6 * peak_weights(3, np.log(2)), 9).tolist()
    [7.0, 4.0, 7.0]
    """
    rate, rows = float(exact_epsilon(epsilon)), np.arange(_check_size(n))
    a = np.exp(-rate)
    sums = np.exp(-rate * np.abs(rows[:, None] - rows[None, :])).sum(axis=0)
    omega: Floats = sums * (-np.expm1(-rate) / (1 + a))
    omega[[0, -1]] = sums[[0, -1]] / (1 + a)
    return omega


def privacy_rows(n: int, epsilon: Epsilon) -> Floats:
    """Build Pi: a non-negative column v is private exactly when Pi v <= 0.

    Row 2i says e^-epsilon v[i+1] <= v[i]; row 2i+1 says v[i] <= e^epsilon v[i+1].

    Parameters
    ----------
    n : int
        The number of counts, at least 2.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    array of float, shape (2n-2, n)
        The constraints.

    References
    ----------
    Kohli and Laskowski (2026), section 4.1.
    """
    rate = float(exact_epsilon(epsilon))
    rows = np.zeros((2 * _check_size(n) - 2, n))
    steps = np.arange(n - 1)
    rows[2 * steps, steps], rows[2 * steps, steps + 1] = -1.0, np.exp(-rate)
    rows[2 * steps + 1, steps], rows[2 * steps + 1, steps + 1] = 1.0, -np.exp(rate)
    return rows


def is_indistinguishable(column: ArrayLike, epsilon: Epsilon, tolerance: float = 1e-9) -> bool:
    """Decide whether neighbours in `column` differ by a factor of at most e^epsilon.

    Parameters
    ----------
    column : array of float, shape (n,)
        A column of a mechanism.
    epsilon : number or str
        The privacy loss.
    tolerance : float
        Relative to the factor.

    Returns
    -------
    bool
        True if it is non-negative and every factor is small enough.

    References
    ----------
    Kohli and Laskowski (2026), Definition 3.

    Examples
    --------
    >>> is_indistinguishable([1.0, 2.0], 0.7), is_indistinguishable([1.0, 2.0], 0.6)
    (True, False)
    """
    values = np.asarray(column, dtype=float)
    grow = np.exp(float(exact_epsilon(epsilon))) * (1 + tolerance)
    first, second = values[:-1], values[1:]
    return bool(
        (values >= 0).all() and (first <= grow * second).all() and (second <= grow * first).all()
    )


def pattern_of(column: ArrayLike, epsilon: Epsilon, tolerance: float = 1e-9) -> Integers | None:
    """Find the pattern of a multiple of a scale.

    Parameters
    ----------
    column : array of float, shape (n,)
        A column of a mechanism.
    epsilon : number or str
        The privacy loss.
    tolerance : float
        Relative to each step's factor.

    Returns
    -------
    array of int, shape (n-1,), or None
        The pattern; None if some step is not by e^epsilon exactly.

    Examples
    --------
    >>> pattern_of([1.0, 2.0, 1.0], "0.6931471805599453").tolist()
    [1, -1]
    """
    values = np.asarray(column, dtype=float)
    if len(values) < 2 or (values <= 0).any():
        return None
    steps = np.diff(np.log(values))
    if (np.abs(np.abs(steps) - float(exact_epsilon(epsilon))) > tolerance).any():
        return None
    signs: Integers = np.sign(steps).astype(np.int64)
    return signs


def is_scale(column: ArrayLike, epsilon: Epsilon, tolerance: float = 1e-9) -> bool:
    """Decide whether `column` is a scale: a distribution with every step by e^epsilon.

    Parameters
    ----------
    column, epsilon, tolerance
        As for `pattern_of`.

    Returns
    -------
    bool
        True if it is a scale.

    References
    ----------
    Kohli and Laskowski (2026), Definition 6.
    """
    total = float(np.sum(np.asarray(column, dtype=float)))
    return abs(total - 1) <= tolerance and pattern_of(column, epsilon, tolerance) is not None


@dataclass(frozen=True, eq=False)
class Decomposition:
    """A private column as a non-negative sum of scales.

    Attributes
    ----------
    patterns : array of int, shape (k, n-1)
        The patterns of the scales, at most n of them.
    coefficients : array of float, shape (k,)
        How much of each scale.
    epsilon : float
        The privacy loss.
    """

    patterns: Integers
    coefficients: Floats
    epsilon: float

    def column(self) -> Floats:
        """Compute the column that was decomposed, shape (n,)."""
        pairs = zip(self.patterns, self.coefficients, strict=True)
        parts = [amount * scale(steps, self.epsilon) for steps, amount in pairs]
        total: Floats = np.sum(parts, axis=0)
        return total


def decompose(column: ArrayLike, epsilon: Epsilon) -> Decomposition:
    """Write any private column as a non-negative sum of at most n scales.

    Subtracts as much of one scale as keeps the residual private, which makes one more privacy
    bound tight each time; when all are tight the residual is a scale. Accurate to about 1e-12
    relative to the largest entry. Costs O(n^2).

    Parameters
    ----------
    column : array of float, shape (n,)
        A private column, not all zero.
    epsilon : number or str
        The privacy loss.

    Returns
    -------
    Decomposition
        The scales and their coefficients.

    References
    ----------
    Kohli and Laskowski (2026), Lemma 1.

    Examples
    --------
    >>> found = decompose([1.0, 1.5, 1.0], "0.6931471805599453")
    >>> len(found.coefficients) <= 3, found.column().round(9).tolist()
    (True, [1.0, 1.5, 1.0])
    """
    values, rate = np.asarray(column, dtype=float), float(exact_epsilon(epsilon))
    if values.ndim != 1 or len(values) < 2 or not values.max(initial=0) > 0:
        raise ArgumentError("column", "be a list of at least two numbers, not all zero")
    if not is_indistinguishable(values, epsilon):
        raise ArgumentError("column", "be private: neighbours within a factor e^epsilon")
    rest = Residual.of(values, rate)
    steps: list[Integers] = []
    amounts: list[float] = []
    while rest.free.any():
        pattern = rest.match_pattern(np.where(np.diff(rest.log) >= 0, 1, -1))
        taken, _ = rest.take(pattern)
        steps.append(pattern)
        amounts.append(float(taken.sum()))
    steps.append(rest.tight.copy())
    amounts.append(float(np.exp(rest.log).sum()))
    keep = np.array(amounts) > 0
    return Decomposition(np.array(steps)[keep], np.array(amounts)[keep], rate)


def _check_size(n: int) -> int:
    if n < 2:
        raise ArgumentError("n", "be at least 2", n)
    return n
