"""Algorithm 1 of Kohli and Laskowski (2026): a fixed-point mechanism built from scales.

`residual` keeps its arithmetic precise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError, MechanismError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss
from tallyveil.mechanism import Mechanism
from tallyveil.papers.kohli.residual import Residual
from tallyveil.prior import require_distribution
from tallyveil.query import Query

__all__ = ["SELECTORS", "GreedyRun", "best_fixed_point", "greedy_fixed_point", "greedy_run"]

Chooser: TypeAlias = Callable[[Floats, Floats, Floats, Floats], int]
Selector: TypeAlias = str | Chooser | Sequence[int]

SELECTORS = ("max", "min", "sandwich", "random")
FEASIBLE = 1e-9
"""Largest error of row sums and of the fixed point in a matrix that is returned."""


@dataclass(frozen=True, eq=False)
class GreedyRun:
    """The outcome of Algorithm 1.

    Attributes
    ----------
    mechanism : Mechanism
        The fixed-point mechanism.
    order : tuple of int
        The columns in the order in which they were filled.
    scales : int
        How many scales were used.
    """

    mechanism: Mechanism
    order: tuple[int, ...]
    scales: int


def greedy_fixed_point(
    z: ArrayLike, epsilon: Epsilon, selector: Selector = "sandwich", entropy: Any = None
) -> Mechanism:
    """Build a mechanism that keeps the distribution `z`, by Algorithm 1.

    Fills one column after another with single-peaked scales, adapted where a privacy bound of
    the residual is already tight, so that z·T = z and T is epsilon-private. The result is a
    vertex of all such mechanisms (Theorem 6), though seldom the best: `tallyveil.transport`
    is, in closed form, for every convex loss.

    Rows sum to one and z·T is z within 1e-9 (in practice 1e-12), and ratios hold to 1e-12
    relative, for n up to some thousands and any distribution; a matrix that misses this is
    refused, never returned. At most 2n - 1 scales are used (Theorem 5): O(n^2).

    Parameters
    ----------
    z : array of float, shape (n,)
        The distribution to keep, summing to one; zeros are allowed.
    epsilon : number or str
        The privacy loss.
    selector : str, sequence of int or callable
        Which column comes next: that of ``"max"`` or ``"min"`` probability, ``"sandwich"``
        0, n-1, 1, n-2, ..., or ``"random"``; the columns in order as a list; or a function of
        (z, r, c, A) as in the paper, where r is what rows still lack, c what columns still
        lack, and A the matrix so far.
    entropy : Entropy, optional
        The source of the random order; the operating system's if not given.

    Returns
    -------
    Mechanism
        The fixed-point mechanism for a count from 0 to n - 1.

    References
    ----------
    Kohli and Laskowski (2026), Algorithm 1, Proposition 2, Theorems 5 and 6.

    Examples
    --------
    >>> third = [1 / 3, 1 / 3, 1 / 3]
    >>> m = greedy_fixed_point(third, "0.6931471805599453", selector="max")
    >>> (m.matrix * 49).round(9).tolist()
    [[28.0, 11.0, 10.0], [14.0, 22.0, 13.0], [7.0, 16.0, 26.0]]
    """
    return greedy_run(z, epsilon, selector, entropy).mechanism


def best_fixed_point(
    z: ArrayLike,
    epsilon: Epsilon,
    selectors: Sequence[Selector] = ("max", "min", "sandwich"),
    loss: Loss = "absolute",
) -> Mechanism:
    """Build a mechanism with each selector and return the one of least expected loss.

    The loss is computed from z and the matrices alone, so that when z is already private the
    choice costs no privacy.

    Parameters
    ----------
    z, epsilon
        As for `greedy_fixed_point`.
    selectors : sequence
        The selectors to try, at least one.
    loss : any loss of `tallyveil.loss`
        What an error costs.

    Returns
    -------
    Mechanism
        The cheapest of them, the first on ties.

    References
    ----------
    Kohli and Laskowski (2026), section 5.2.
    """
    if not selectors:
        raise ArgumentError("selectors", "hold at least one selector", got="none")
    built = [greedy_fixed_point(z, epsilon, selector) for selector in selectors]
    return min(built, key=lambda mechanism: mechanism.expected_loss(loss, z))


def greedy_run(
    z: ArrayLike, epsilon: Epsilon, selector: Selector = "sandwich", entropy: Any = None
) -> GreedyRun:
    """Run `greedy_fixed_point` and also return the order of the columns and the scales used."""
    wanted = require_distribution(z, _count_entries(z), "z")
    exact = exact_epsilon(epsilon)
    n = len(wanted)
    if n < 2:
        raise ArgumentError("z", "have at least 2 entries", n)
    choose = _make_chooser(selector, wanted, entropy)
    with np.errstate(divide="ignore"):
        weights = np.log(wanted)
    rest = Residual.of(np.ones(n), float(exact))
    lacking, matrix = wanted.copy(), np.zeros((n, n), order="F")
    order: list[int] = []
    scales = 0
    while np.count_nonzero(lacking) > 1 and rest.free.any():
        j = _check_column(choose(wanted, np.exp(rest.log), lacking.copy(), matrix), lacking)
        order.append(j)
        scales += _fill(j, rest, lacking, weights, matrix)
    # the last column takes what is left; if no bound is free, what is left is one scale and
    # every open column gets its share of it
    left, share = np.exp(rest.log), lacking / lacking.sum()
    open_columns = np.flatnonzero(lacking)
    matrix[:, open_columns] += left[:, None] * share[open_columns]
    order += [int(j) for j in open_columns if j not in order]
    scales += len(open_columns) + (int(rest.free.sum()) if len(open_columns) == 1 else 0)
    return GreedyRun(_require_feasible(matrix, wanted, exact), tuple(order), scales)


def _fill(j: int, rest: Residual, lacking: Floats, weights: Floats, matrix: Floats) -> int:
    """Add scales to column j until it is full or every bound is tight; return how many."""
    steps = np.where(np.arange(len(weights) - 1) < j, 1, -1)
    count = 0
    while lacking[j] > 0 and rest.free.any():
        taken, full = rest.take(rest.match_pattern(steps), float(np.log(lacking[j])), weights)
        matrix[:, j] += taken
        count += 1
        lacking[j] = 0.0 if full else max(lacking[j] - float(np.exp(weights) @ taken), 0.0)
    return count


def _require_feasible(matrix: Floats, wanted: Floats, exact: Any) -> Mechanism:
    """Return `matrix` as a mechanism, or raise an error that says how far off it is."""
    rows = float(np.abs(matrix.sum(axis=1) - 1).max())
    fixed = float(np.abs(wanted @ matrix - wanted).max())
    if not max(rows, fixed) <= FEASIBLE:
        raise MechanismError(
            "z",
            f"allow rows and fixed point to be met within {FEASIBLE:g} in floating point",
            hint="Use transport: it is exact for every distribution, and cheaper.",
            got=f"an error of {max(rows, fixed):.3g}",
        )
    query = Query.count(len(wanted) - 1)
    return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), query, exact, name="greedy")


def _check_column(column: Any, lacking: Floats) -> int:
    j = int(column)
    if not 0 <= j < len(lacking) or not lacking[j] > 0:
        rule = "choose a column that still lacks probability (c[j] > 0)"
        raise ArgumentError("selector", rule, j)
    return j


def _make_chooser(selector: Selector, z: Floats, entropy: Any) -> Chooser:
    if callable(selector):
        return selector
    if not isinstance(selector, str):
        return _choose_in_order(_check_order(selector, len(z)))
    n = len(z)
    if selector == "max":
        return _choose_in_order(np.argsort(-z, kind="stable"))
    if selector == "min":
        return _choose_in_order(np.argsort(z, kind="stable"))
    if selector == "sandwich":
        return _choose_in_order(np.column_stack([np.arange(n), n - 1 - np.arange(n)]).ravel()[:n])
    if selector == "random":
        from tallyveil.sampling.entropy import Entropy

        source = Entropy() if entropy is None else entropy
        return _choose_in_order(np.asarray(source.permutation(n)))
    rule = f"be one of {', '.join(SELECTORS)}, a list of columns, or a function of (z, r, c, A)"
    raise ArgumentError("selector", rule, selector)


def _choose_in_order(columns: NDArray[Any]) -> Chooser:
    def first_open(z: Floats, r: Floats, c: Floats, A: Floats) -> int:
        return int(columns[np.flatnonzero(c[columns] > 0)[0]])

    return first_open


def _check_order(columns: Sequence[int], n: int) -> Integers:
    order = np.asarray(columns)
    if order.shape != (n,) or not np.array_equal(np.sort(order), np.arange(n)):
        raise ArgumentError("selector", f"list each of the columns 0..{n - 1} once")
    return order.astype(np.int64)


def _count_entries(z: ArrayLike) -> int:
    shape = np.shape(z)
    if len(shape) != 1:
        raise ArgumentError("z", "be a distribution: a list of probabilities", got=f"shape {shape}")
    return int(shape[0])
