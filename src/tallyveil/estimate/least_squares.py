"""Least squares over non-negative numbers with a given sum."""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats, Mask

__all__ = ["least_squares_at_total"]


ROUNDS = 40
"""Exchanges before giving up on blocks; three or four are usual."""


def least_squares_at_total(
    gram: Floats, right: Floats, total: float, start: Mask | None = None
) -> Floats:
    """Minimise h' gram h / 2 - right·h over h >= 0 with sum h = total, shape (n,).

    Block principal pivoting (Kim and Park 2011): guess which entries are positive, solve for
    them, and exchange all that break the optimality conditions at once: a few factorisations
    instead of one per entry. Where the blocks go round in circles, Lawson and Hanson's method
    finishes. `gram` must be positive definite.

    >>> least_squares_at_total(np.eye(2), np.array([3.0, -1.0]), 2.0).tolist()
    [2.0, 0.0]
    """
    n = len(right)
    passive = np.ones(n, dtype=bool) if start is None or not start.any() else start.copy()
    scale = max(float(np.abs(right).max()), 1e-300)
    for _ in range(ROUNDS):
        h, gradient = _on_support(gram, right, total, passive)
        wrong = np.where(passive, h < -1e-9 * total, gradient < -1e-10 * scale)
        if not wrong.any():
            return _at_total(h, total)
        passive = passive ^ wrong
        if not passive.any():
            passive[int(right.argmax())] = True
    return _at_total(_one_by_one(gram, right, total), total)


def _one_by_one(gram: Floats, right: Floats, total: float) -> Floats:
    """Lawson and Hanson's method, the sum held by one heavy equation."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import nnls

    root = cholesky(gram, lower=True)
    heavy = 1e3 * float(np.sqrt(np.diag(gram).max()))
    rows = np.vstack([root.T, np.full(len(right), heavy)])
    wanted = np.append(solve_triangular(root, right, lower=True), heavy * total)
    h: Floats = nnls(rows, wanted, maxiter=50 * len(right))[0]
    return h


def _at_total(h: Floats, total: float) -> Floats:
    kept = np.maximum(h, 0.0)
    result: Floats = kept * (total / kept.sum())
    return result


def _on_support(gram: Floats, right: Floats, total: float, passive: Mask) -> tuple[Floats, Floats]:
    """The minimiser with h = 0 off the support, and the gradient of the Lagrangian there."""
    at = np.flatnonzero(passive)
    sides = np.column_stack([right[at], np.ones(len(at))])
    solved = np.linalg.solve(gram[np.ix_(at, at)], sides)
    shift = (total - solved[:, 0].sum()) / solved[:, 1].sum()
    h = np.zeros(len(right))
    h[at] = solved[:, 0] + shift * solved[:, 1]
    gradient = gram @ h - right - shift
    return h, gradient
