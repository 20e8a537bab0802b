"""Algorithm 1 of paper 002: a fixed-point mechanism built from scales, one column at a time."""

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
from tallyveil.prior import require_distribution as law
from tallyveil.query import Query

__all__ = ["SELECTORS", "GreedyRun", "best_fixed_point", "greedy_fixed_point", "greedy_run"]

Chooser: TypeAlias = Callable[[Floats, Floats, Floats, Floats], int]
Selector: TypeAlias = str | Chooser | Sequence[int]

SELECTORS = ("max", "min", "sandwich", "random")
FEASIBLE = 1e-9
"""How far row sums and the fixed point of a returned matrix may be off."""


@dataclass(frozen=True, eq=False)
class GreedyRun:
    """What algorithm 1 did: the mechanism, the columns in order, and how many scales it took."""

    mechanism: Mechanism
    order: tuple[int, ...]
    scales: int


def greedy_fixed_point(
    z: ArrayLike, epsilon: Epsilon, selector: Selector = "sandwich", entropy: Any = None
) -> Mechanism:
    """The fixed-point mechanism of paper 002's heuristic (Algorithm 1, with Proposition 2).

    Fills one column after another with single-peaked scales, bent where a privacy bound of
    what is left is already used up, so that z·T = z and T is epsilon-private. The result is a
    vertex of all such mechanisms (Theorem 6), though seldom the best: `transport` is, in
    closed form, for every convex loss.

    Parameters
    ----------
    z : the law to keep, shape (n,), summing to one; zeros are allowed
    epsilon : the privacy loss
    selector : which column comes next. ``"max"`` or ``"min"`` probability, ``"sandwich"``
        0, n-1, 1, n-2, ..., ``"random"``; the columns in order as a list; or a function of
        (z, r, c, A) as in the paper: what rows lack r, what columns lack c, the matrix so far
    entropy : source of the random order, `tallyveil.sampling.entropy`'s own if not given

    Guarantees: rows sum to one and z·T is z within 1e-9 (in practice 1e-12), ratios hold to
    1e-12 relative, for n up to some thousands and any law; a matrix that misses this is
    refused, never returned. At most 2n - 1 scales are used (Theorem 5): O(n^2).

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
    """The cheapest of several greedy mechanisms, by expected loss under `z`.

    The cost is computed from z and the matrices alone, so that when z is already private the
    choice costs no privacy (002, section 5.2).
    """
    if not selectors:
        raise ArgumentError("selectors", "hold at least one selector", "none")
    built = [greedy_fixed_point(z, epsilon, selector) for selector in selectors]
    return min(built, key=lambda mechanism: mechanism.expected_loss(loss, z))


def greedy_run(
    z: ArrayLike, epsilon: Epsilon, selector: Selector = "sandwich", entropy: Any = None
) -> GreedyRun:
    """`greedy_fixed_point` together with the order of the columns and the number of scales."""
    wanted = law(z, _length(z), "z")
    exact = exact_epsilon(epsilon)
    n = len(wanted)
    if n < 2:
        raise ArgumentError("z", "have at least 2 entries", n)
    choose = _chooser(selector, wanted, entropy)
    with np.errstate(divide="ignore"):
        weights = np.log(wanted)
    rest = Residual.of(np.ones(n), float(exact))
    lacking, matrix = wanted.copy(), np.zeros((n, n), order="F")
    order: list[int] = []
    scales = 0
    while np.count_nonzero(lacking) > 1 and rest.free.any():
        j = _chosen(choose(wanted, np.exp(rest.log), lacking.copy(), matrix), lacking)
        order.append(j)
        scales += _fill(j, rest, lacking, weights, matrix)
    # the last column takes what is left; if no bound is free, what is left is one scale and
    # every open column gets its share of it
    left, share = np.exp(rest.log), lacking / lacking.sum()
    open_columns = np.flatnonzero(lacking)
    matrix[:, open_columns] += left[:, None] * share[open_columns]
    order += [int(j) for j in open_columns if j not in order]
    scales += len(open_columns) + (int(rest.free.sum()) if len(open_columns) == 1 else 0)
    return GreedyRun(_feasible(matrix, wanted, exact), tuple(order), scales)


def _fill(j: int, rest: Residual, lacking: Floats, weights: Floats, matrix: Floats) -> int:
    """Add scales to column j until it is full or nothing is free; returns how many."""
    steps = np.where(np.arange(len(weights) - 1) < j, 1, -1)
    count = 0
    while lacking[j] > 0 and rest.free.any():
        taken, full = rest.take(rest.matching(steps), float(np.log(lacking[j])), weights)
        matrix[:, j] += taken
        count += 1
        lacking[j] = 0.0 if full else max(lacking[j] - float(np.exp(weights) @ taken), 0.0)
    return count


def _feasible(matrix: Floats, wanted: Floats, exact: Any) -> Mechanism:
    """`matrix` as a mechanism, or a refusal that says by how much it misses."""
    rows = float(np.abs(matrix.sum(axis=1) - 1).max())
    fixed = float(np.abs(wanted @ matrix - wanted).max())
    if not max(rows, fixed) <= FEASIBLE:
        raise MechanismError(
            "z",
            f"allow rows and fixed point to be met within {FEASIBLE:g} in floating point",
            f"off by {max(rows, fixed):.3g}",
            "Use transport: it is exact for every law, and cheaper.",
        )
    query = Query.count(len(wanted) - 1)
    return Mechanism(matrix / matrix.sum(axis=1, keepdims=True), query, exact, name="greedy")


def _chosen(column: Any, lacking: Floats) -> int:
    j = int(column)
    if not 0 <= j < len(lacking) or not lacking[j] > 0:
        rule = "choose a column that still lacks probability (c[j] > 0)"
        raise ArgumentError("selector", rule, j)
    return j


def _chooser(selector: Selector, z: Floats, entropy: Any) -> Chooser:
    if callable(selector):
        return selector
    if not isinstance(selector, str):
        return _in_order(_permutation(selector, len(z)))
    n = len(z)
    if selector == "max":
        return _in_order(np.argsort(-z, kind="stable"))
    if selector == "min":
        return _in_order(np.argsort(z, kind="stable"))
    if selector == "sandwich":
        return _in_order(np.column_stack([np.arange(n), n - 1 - np.arange(n)]).ravel()[:n])
    if selector == "random":
        from tallyveil.sampling.entropy import Entropy

        source = Entropy.fresh(entropy)
        return _in_order(np.asarray(source.permutation(n)))
    rule = f"be one of {', '.join(SELECTORS)}, a list of columns, or a function of (z, r, c, A)"
    raise ArgumentError("selector", rule, selector)


def _in_order(columns: NDArray[Any]) -> Chooser:
    def first_open(z: Floats, r: Floats, c: Floats, A: Floats) -> int:
        return int(columns[np.flatnonzero(c[columns] > 0)[0]])

    return first_open


def _permutation(columns: Sequence[int], n: int) -> Integers:
    order = np.asarray(columns)
    if order.shape != (n,) or not np.array_equal(np.sort(order), np.arange(n)):
        raise ArgumentError("selector", f"list each of the columns 0..{n - 1} once")
    return order.astype(np.int64)


def _length(z: ArrayLike) -> int:
    shape = np.shape(z)
    if len(shape) != 1:
        raise ArgumentError("z", "be a law: a list of probabilities", f"shape {shape}")
    return int(shape[0])
