"""Arithmetic on matrices of probabilities that a mechanism and its readers share.

Rows are true answers, columns are released answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.errors import MechanismError, describe_kind

__all__ = [
    "FrozenArrays",
    "central_interval",
    "check_matrix",
    "joint_distribution",
    "posterior_costs",
]

ROUND_OFF = 1e-6
"""How far a solver may leave rows from summing to one, and entries below zero."""


class FrozenArrays:
    """Base of result classes: every array in a field is read-only, also after unpickling."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                freeze(value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        FrozenArrays.__post_init__(self)


def check_matrix(matrix: ArrayLike, shape: tuple[int, int]) -> Floats:
    """Return `matrix` as a read-only array of `shape` whose rows are distributions.

    A solver's round-off is tolerated: entries above -1e-6 become 0, and rows may miss one by
    1e-6. Anything else raises a `MechanismError`.
    """
    try:
        array = np.array(matrix, dtype=float)
    except (TypeError, ValueError):
        got = describe_kind(matrix)
        raise MechanismError("matrix", "be a table of numbers", got=got) from None
    if array.shape != shape:
        rule = f"have shape {shape}: a row per true answer, a column per released answer"
        raise MechanismError("matrix", rule, got=f"shape {array.shape}")
    lowest = array.min()
    if not np.isfinite(lowest) or not np.isfinite(array.max()):
        raise MechanismError("matrix", "be finite", got="an infinite or missing entry")
    if lowest < -ROUND_OFF:
        i, j = np.unravel_index(int(array.argmin()), array.shape)
        raise MechanismError("matrix", "be non-negative", got=f"{array[i, j]:.6g} at ({i}, {j})")
    if lowest < 0:
        np.maximum(array, 0.0, out=array)
    sums = array.sum(axis=1)
    off = int(np.abs(sums - 1).argmax())
    if abs(sums[off] - 1) > ROUND_OFF:
        got = f"{sums[off]:.9g} in row {off}"
        raise MechanismError("matrix", "have rows that sum to 1", got=got)
    return freeze(array)


def joint_distribution(matrix: Floats, prior: Floats) -> Floats:
    """Return Pr(released = r, true = i) = prior[i] matrix[i, r], shape (released, true)."""
    return (matrix * prior[:, None]).T


def posterior_costs(matrix: Floats, losses: Floats, prior: Floats) -> Floats:
    """Return sum_i prior[i] matrix[i, r] losses[i, g], shape (released, guesses).

    A Bayesian guesses the smallest entry of each row, and the sum of these is what they lose.
    By weak duality no post-processing of the matrix has a smaller worst-case loss than this
    sum, whatever the prior.

    >>> posterior_costs(np.array([[0.8, 0.2], [0.2, 0.8]]), 1 - np.eye(2), np.full(2, 0.5))
    array([[0.1, 0.4],
           [0.4, 0.1]])
    """
    return joint_distribution(matrix, prior) @ losses


def central_interval(rows: Floats, tail: float) -> tuple[Integers, Integers]:
    """Return the first and last column of each row's interval with at most `tail` either side."""
    low = (np.cumsum(rows, axis=1) <= tail).sum(axis=1)
    high = rows.shape[1] - 1 - (np.cumsum(rows[:, ::-1], axis=1) <= tail).sum(axis=1)
    return low.astype(np.int64), np.maximum(low, high).astype(np.int64)
