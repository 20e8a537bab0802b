"""Is a mechanism minimal: can no private one move probability closer to every true answer?

Croft, Sack and Shi (2020), Definitions 5 to 8 and Corollary 1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import loss_table
from tallyveil.mechanism import MechanismLike, as_mechanism
from tallyveil.optimize.solver import Matrix, Program, solve
from tallyveil.query import Query

__all__ = ["is_minimal"]


def is_minimal(
    mechanism: MechanismLike, epsilon: Epsilon | None = None, tolerance: float = 1e-6
) -> bool:
    """Decide whether no other epsilon-private mechanism for the query is smaller.

    A mechanism is smaller if, for every true answer and every distance d, it releases something
    within d of the truth at least as often, and somewhere more often (`Mechanism.smaller_than`).
    A linear program looks for the one that gains most: over all private M' with
    Pr'(within d | i) >= Pr(within d | i), the largest sum of the differences. Every mechanism
    that minimises a strictly increasing loss under a prior that is positive everywhere is minimal
    (Corollary 1; errata, Croft 6); many others are.

    Parameters
    ----------
    mechanism : Mechanism or what holds one
        Any mechanism; at most a few thousand entries.
    epsilon : number, str or None
        The privacy loss of the class; the mechanism's own if not given.
    tolerance : float
        The largest total gain in probability that still counts as none.

    Returns
    -------
    bool
        True if it is minimal (optimal, in the words of Definition 8).

    References
    ----------
    Croft, Sack and Shi (2020), Definition 8.

    Examples
    --------
    >>> from tallyveil.mechanisms.additive import laplace
    >>> from tallyveil.mechanisms.geometric import geometric
    >>> query = Query.count(5)
    >>> is_minimal(geometric(query, 0.5)), is_minimal(laplace(query, 0.5))
    (True, False)
    """
    m = as_mechanism(mechanism)
    given = m.exact_epsilon if epsilon is None else epsilon
    if given is None:
        raise ArgumentError("epsilon", "be given, since the mechanism states none", epsilon)
    level = float(exact_epsilon(given))
    if m.realised_epsilon() > level * (1 + 1e-9):
        raise ArgumentError(
            "epsilon", f"be at least {m.realised_epsilon():.6g}, as realised", level
        )
    ranks = _rank_distances(m.query)
    within, bound = _write_dominance(m.matrix, ranks)
    privacy = _write_privacy(m.query, math.exp(level))
    rows, size = m.query.shape
    program = Program(
        cost=-np.asarray(within.sum(axis=0), dtype=float).ravel(),
        A_eq=sparse.kron(sparse.eye(rows), np.ones((1, size)), format="csc"),
        b_eq=np.ones(rows),
        A_ub=sparse.vstack([privacy, -within], format="csc"),
        b_ub=np.concatenate([np.zeros(privacy.shape[0]), -bound]),
    )
    found = solve(program, "highs")
    return bool(-found.objective - bound.sum() <= tolerance)


def _rank_distances(query: Query) -> Integers:
    """For every entry, which of its row's distances from the truth it has, from 0."""
    distance = loss_table(query, "absolute")
    step = 1e-9 * float(np.diff(query.inputs).min())
    ranks = [np.unique(np.round(row / step), return_inverse=True)[1] for row in distance]
    return np.array(ranks, dtype=np.int64)


def _write_dominance(matrix: Floats, ranks: Integers) -> tuple[Matrix, Floats]:
    """The forms Pr(within d | i) for all i and d, and the values of this mechanism."""
    rows, columns, bounds, count = [], [], [], 0
    for i, (row, rank) in enumerate(zip(matrix, ranks, strict=True)):
        for level in range(int(rank.max())):
            near = np.flatnonzero(rank <= level)
            rows.append(np.full(len(near), count))
            columns.append(i * matrix.shape[1] + near)
            bounds.append(float(row[near].sum()))
            count += 1
    at = np.concatenate(rows), np.concatenate(columns)
    forms = sparse.csc_array((np.ones(len(at[0])), at), shape=(count, matrix.size))
    return forms, np.array(bounds)


def _write_privacy(query: Query, growth: float) -> Matrix:
    """The rows M[i, j] - e^epsilon M[k, j] <= 0 for neighbours i and k, both ways."""
    pairs, (n, m) = query.neighbours.pairs, query.shape
    order = np.arange(len(pairs))
    shape = (len(pairs), n)
    first, second = (
        sparse.csc_array((np.ones(len(pairs)), (order, pairs[:, side])), shape=shape)
        for side in (0, 1)
    )
    both = sparse.vstack([first - growth * second, second - growth * first])
    return sparse.kron(both, sparse.eye(m), format="csc")
