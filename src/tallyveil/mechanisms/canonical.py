"""Canonical noise for (epsilon, delta)-privacy, and what is optimal because of it.

The noise N has density 0 outside [-L, L] and the cumulative distribution F with::

    F(-1/2) = (1 - delta) / (1 + e^epsilon),        F linear from -1/2 to 1/2,
    F(x - 1) = e^-epsilon (F(x) - delta)   for x <= 1/2, until it reaches 0,
    F(-x) = 1 - F(x)

so that F(x - 1) is, for every x, the smallest value that (epsilon, delta)-privacy allows beside
F(x). That alone makes every private mechanism of a count no better than a remap of true answer
plus N (docs/theory.md, canonical noise). With delta = 0, rounded, it is geometric noise.

References
----------
Awan and Vadhan (2023), Canonical noise distributions; Awan and Slavkovic (2018), the Tulap
distribution.
"""

from __future__ import annotations

import math

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import geometric, require_grid
from tallyveil.query import Query

__all__ = ["canonical", "canonical_cells"]

MOST_CELLS = 1 << 26
"""How many entries the matrix of canonical noise may have."""


def canonical(query: Query, epsilon: Epsilon, delta: Epsilon) -> Mechanism:
    """Build the mechanism that adds canonical (epsilon, delta) noise, rounds, and clamps.

    The counterpart of `geometric`, which it is for a delta of 0. A small delta cuts off the far
    tails, so that no error is larger than L + 1/2, about ln(1/delta) / epsilon.

    Parameters
    ----------
    query : Query
        A count, or another query with adjacent neighbours on an evenly spaced grid.
    epsilon, delta : int, float, str, Decimal or Fraction
        The privacy parameters; delta is at least 0 and below 1.

    Returns
    -------
    Mechanism
        The matrix, shape (n, n).

    References
    ----------
    Awan and Vadhan (2023); Awan and Slavkovic (2018).

    Examples
    --------
    For two answers it is randomized response with p = (e^epsilon + delta) / (1 + e^epsilon):

    >>> np.round(canonical(Query.count(1), "0.6931471805599453", 0.1).matrix, 6).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    require_grid(query, "canonical noise")
    if not slack:
        return geometric(query, exact)
    query.require_square("canonical noise")
    if not query.neighbours.is_path:
        rule = "have adjacent true answers as neighbours, as a count does"
        raise ArgumentError("query", rule, got=repr(query))
    n = len(query.inputs)
    knots, totals = _tabulate(float(exact), float(slack))
    cuts = np.concatenate([[-math.inf], np.arange(n - 1) + 0.5, [math.inf]])
    matrix = _measure_cells(cuts[None, :] - np.arange(n)[:, None], knots, totals)
    return Mechanism(matrix, query, exact, delta=slack, name="canonical")


def canonical_cells(size: int, epsilon: float, delta: float) -> Floats:
    """Probabilities of true answer plus canonical noise, by cells of the real line, in order.

    Cells are cut where the noise of some true answer begins, bends or ends, so within a cell
    the likelihoods of any two true answers have a constant ratio, and a remap loses nothing.

    Parameters
    ----------
    size : int
        True answers are 0..size-1.
    epsilon, delta : float
        The privacy parameters, both above 0.

    Returns
    -------
    array of float, shape (size, cells)
        Every row sums to one.
    """
    knots, totals = _tabulate(epsilon, delta)
    reach = -knots[0]
    if 3 * size * (size + 2 * reach) > MOST_CELLS:
        raise ArgumentError("delta", "be larger, or the range smaller, for the cells to fit")
    answers = np.arange(size)
    bends = np.arange(math.floor(-reach), math.ceil(size + reach)) + 0.5
    cuts = np.unique(np.concatenate([answers - reach, bends, answers + reach]))
    cells = _measure_cells(cuts[None, :] - answers[:, None], knots, totals)
    kept: Floats = cells[:, cells.any(axis=0)]
    return kept


def _tabulate(epsilon: float, delta: float) -> tuple[Floats, Floats]:
    """The points where F bends, from -L to 0, and its values there."""
    shrink = math.exp(-epsilon)
    values = [shrink * (1 - delta) / (1 + shrink)]
    while values[-1] > delta:
        values.append(shrink * (values[-1] - delta))
    last, beyond = values[-1], shrink * (values[-1] - delta)
    reach = len(values) - 0.5 + last / (last - beyond)
    knots = np.concatenate([[-reach], np.arange(len(values) - 1, -1, -1) * -1.0 - 0.5, [0.0]])
    return knots, np.concatenate([[0.0], values[::-1], [0.5]])


def _measure_cells(edges: Floats, knots: Floats, totals: Floats) -> Floats:
    """Probabilities of the noise between neighbouring edges, without cancellation in the tails."""
    below = np.interp(-np.abs(edges), knots, totals, left=0.0)
    left, right = edges[:, :-1], edges[:, 1:]
    inside: Floats = np.where(
        right <= 0,
        below[:, 1:] - below[:, :-1],
        np.where(left >= 0, below[:, :-1] - below[:, 1:], 1 - below[:, :-1] - below[:, 1:]),
    )
    return inside
