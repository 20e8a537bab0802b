"""The inverse of a Cholesky factor.

SciPy solves triangular systems as well, but importing its linear algebra takes a quarter of a
second, a fifth of the time of publishing a small table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallyveil.arrays import Floats

__all__ = ["invert_root"]

SMALL = 48
"""Rows that are inverted at once."""


def invert_root(matrix: Floats) -> Floats:
    """Return L^-1 for the Cholesky factor L of a positive definite matrix: matrix = L L'.

    >>> invert_root(np.array([[4.0, 2.0], [2.0, 17.0]])).tolist()
    [[0.5, 0.0], [-0.125, 0.25]]
    """
    return _invert_lower(np.linalg.cholesky(matrix))


def _invert_lower(root: Any) -> Floats:
    """Invert by halves, mostly in products of matrices.

    The inverse of [[A, 0], [C, D]] is [[A^-1, 0], [-D^-1 C A^-1, D^-1]].
    """
    if len(root) <= SMALL:
        small: Any = np.linalg.inv(root)
        return np.tril(small)
    half = len(root) // 2
    inverse = np.zeros(root.shape)
    inverse[:half, :half] = first = _invert_lower(root[:half, :half])
    inverse[half:, half:] = last = _invert_lower(root[half:, half:])
    inverse[half:, :half] = -(last @ (root[half:, :half] @ first))
    return inverse
