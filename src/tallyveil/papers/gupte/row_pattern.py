"""The structure of a minimax consumer's optimum (Gupte and Sundararajan 2010, Lemma 5)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.errors import ArgumentError

__all__ = ["has_lemma_5_pattern"]


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
    if not 0 < alpha < 1:
        raise ArgumentError("alpha", "lie strictly between 0 and 1", alpha)
    for above, below in pairwise(table):
        falls, rises = np.isclose(below, alpha * above), np.isclose(above, alpha * below)
        first = int(np.argmin(falls)) if not falls.all() else len(falls)
        if not rises[first + 1 :].all():
            return False
    return True
