"""From a mechanism that depends on the database to one that depends on the answer alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.query import Query, require_query

__all__ = ["oblivious"]


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
    known = where < len(query.inputs)
    if not known.all() or not (query.inputs[where] == values).all():
        raise ArgumentError("answers", f"be true answers of {query!r}")
    counts = np.bincount(where, minlength=len(query.inputs))
    if (counts == 0).any():
        raise ArgumentError("answers", "cover every true answer of the query")
    sums = np.zeros((len(query.inputs), table.shape[1]))
    np.add.at(sums, where, table)
    return Mechanism(sums / counts[:, None], query, epsilon, name="oblivious average")
