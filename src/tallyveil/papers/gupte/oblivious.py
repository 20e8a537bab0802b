"""From a mechanism that looks at the database to one that looks at the answer alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.query import Query

__all__ = ["oblivious"]


def oblivious(
    laws: ArrayLike, answers: ArrayLike, query: Query, epsilon: Epsilon | None = None
) -> Mechanism:
    """Average the laws of all databases that share a true answer (003, Appendix A, Lemma 6).

    Parameters
    ----------
    laws : the released law of each database, shape (databases, m)
    answers : the true answer of each database, shape (databases,); every answer must occur

    If `laws` is epsilon-private over all databases of a fixed size, so is the average, and no
    minimax consumer whose loss depends on the answer is worse off. That argument needs every
    database to be listed.

    >>> laws = [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5], [0.2, 0.8]]
    >>> q = Query.custom([0, 1, 2], [0, 1], "path")
    >>> oblivious(laws, [0, 1, 1, 2], q).matrix.tolist()
    [[0.8, 0.2], [0.4, 0.6], [0.2, 0.8]]
    """
    table, values = np.asarray(laws, dtype=float), np.asarray(answers)
    if table.ndim != 2 or values.shape != (len(table),):
        raise ArgumentError("answers", "name one true answer per row of laws", values.shape)
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
