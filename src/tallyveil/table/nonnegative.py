"""Least squares over non-negative numbers with a given sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["least_squares_at_total"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDS = 200


def least_squares_at_total(
    gram: Floats, right: Floats, total: float, start: Mask | None = None
) -> Floats:
    """Minimise h' gram h / 2 - right·h over h >= 0 with sum h = total, shape (n,).

    Block principal pivoting (Kim and Park 2011): guess which entries are positive, solve for
    them, and exchange all that break the optimality conditions at once; when that stops
    helping, one at a time, which must end. A few factorisations instead of one per entry as
    in Lawson and Hanson's method. `gram` must be positive definite.

    >>> least_squares_at_total(np.eye(2), np.array([3.0, -1.0]), 2.0).tolist()
    [2.0, 0.0]
    """
    n = len(right)
    passive = np.ones(n, dtype=bool) if start is None or not start.any() else start.copy()
    fewest, patience = n + 1, 3
    h = np.zeros(n)
    for _ in range(ROUNDS):
        h, gradient = _on_support(gram, right, total, passive)
        scale = max(float(np.abs(right).max()), 1e-300)
        wrong = np.where(passive, h < -1e-9 * total, gradient < -1e-10 * scale)
        count = int(wrong.sum())
        if count == 0:
            break
        if count < fewest:
            fewest, patience = count, 3
        elif patience > 0:
            patience -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        passive = passive ^ wrong
        if not passive.any():
            passive[int(right.argmax())] = True
    kept = np.maximum(h, 0.0)
    result: Floats = kept * (total / kept.sum())
    return result


def _on_support(gram: Floats, right: Floats, total: float, passive: Mask) -> tuple[Floats, Floats]:
    """The minimiser with h = 0 off the support, and the gradient of the Lagrangian there."""
    from scipy.linalg import cho_factor, cho_solve

    at = np.flatnonzero(passive)
    factor: Any = cho_factor(gram[np.ix_(at, at)], lower=True, check_finite=False)
    sides = np.column_stack([right[at], np.ones(len(at))])
    solved = cho_solve(factor, sides, check_finite=False)
    shift = (total - solved[:, 0].sum()) / solved[:, 1].sum()
    h = np.zeros(len(right))
    h[at] = solved[:, 0] + shift * solved[:, 1]
    gradient = gram @ h - right - shift
    return h, gradient
