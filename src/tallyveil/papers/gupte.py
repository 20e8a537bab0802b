"""Gupte and Sundararajan (2010), Universally Optimal Privacy Mechanisms for Minimax Agents."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_ratio
from tallyveil.mechanism import Mechanism
from tallyveil.query import Query, require_query


def oblivious(
    distributions: ArrayLike, answers: ArrayLike, query: Query, epsilon: Epsilon | None = None
) -> Mechanism:
    """Average the released distributions of all databases that share a true answer.

    If the given mechanism is epsilon-private over all databases of a fixed size, so is the
    average, and no minimax consumer whose loss depends on the answer is worse off. That
    argument needs every database to be listed.

    Parameters
    ----------
    distributions : array of float, shape (databases, m)
        The distribution of the released answer for each database.
    answers : array, shape (databases,)
        The true answer of each database; every answer of the query must occur.
    query : Query
        The query that the mechanism answers.
    epsilon : number or str, optional
        The privacy loss to label the result with.

    Returns
    -------
    Mechanism
        One row for each true answer.

    References
    ----------
    Gupte and Sundararajan (2010), Appendix A, Lemma 6.

    Examples
    --------
    >>> given = [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8]]
    >>> q = Query.custom([0, 1, 2], [0, 1], "path")
    >>> oblivious(given, [0, 1, 1, 2], q).matrix.tolist()
    [[0.8, 0.2], [0.4, 0.6], [0.2, 0.8]]
    """
    require_query(query)
    table, values = np.asarray(distributions, dtype=float), np.asarray(answers)
    if table.ndim != 2 or values.shape != (len(table),):
        rule = "name one true answer per row of 'distributions'"
        raise ArgumentError("answers", rule, got=f"shape {values.shape}")
    where = np.searchsorted(query.inputs, values)
    inside = where < len(query.inputs)
    if not inside.all() or not (query.inputs[where] == values).all():
        raise ArgumentError("answers", f"be true answers of {query!r}")
    counts = np.bincount(where, minlength=len(query.inputs))
    if (counts == 0).any():
        raise ArgumentError("answers", "cover every true answer of the query")
    sums = np.zeros((len(query.inputs), table.shape[1]))
    np.add.at(sums, where, table)
    return Mechanism(sums / counts[:, None], query, epsilon, name="oblivious average")


def has_lemma_5_pattern(matrix: ArrayLike, alpha: float) -> bool:
    """Decide whether every pair of adjacent rows has the pattern of Lemma 5.

    From one row to the next, columns fall by the factor alpha, then at most one column is
    free, then columns rise by the factor 1/alpha. Every minimax consumer has an optimal
    mechanism of this form. Compared within the relative tolerance 1e-5 of `numpy.isclose`.

    Parameters
    ----------
    matrix : array of float, shape (n, m)
        Rows are true answers in order, columns released answers.
    alpha : float
        e^-epsilon, strictly between 0 and 1.

    Returns
    -------
    bool
        True if every pair of rows has the pattern.

    References
    ----------
    Gupte and Sundararajan (2010), Lemma 5.

    Examples
    --------
    >>> has_lemma_5_pattern([[2 / 3, 1 / 3], [1 / 3, 2 / 3]], 0.5)
    True
    >>> has_lemma_5_pattern([[0.5, 0.5], [0.5, 0.5]], 0.5)
    False
    """
    table = np.asarray(matrix, dtype=float)
    if table.ndim != 2:
        raise ArgumentError("matrix", "have two dimensions", got=f"shape {table.shape}")
    exact_ratio(alpha, "alpha")
    for above, below in pairwise(table):
        falls, rises = np.isclose(below, alpha * above), np.isclose(above, alpha * below)
        first = int(np.argmin(falls)) if not falls.all() else len(falls)
        if not rises[first + 1 :].all():
            return False
    return True
