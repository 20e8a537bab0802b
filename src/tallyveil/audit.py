"""Measure the privacy of a matrix: the tightest epsilon, and the whole delta(epsilon) curve.

Computed in floating point on the matrix as it is, zeros included. It is a measurement, not
a proof: `tallyveil.certify` proves a guarantee in integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.neighbours import Neighbours

__all__ = ["WorstPair", "hockey_stick", "log_ratio", "worst_pair"]


@dataclass(frozen=True)
class WorstPair:
    """Where privacy is weakest: releasing `output` favours `likelier` over `rarer`.

    Attributes
    ----------
    epsilon : float
        ln(M[likelier, output] / M[rarer, output]), infinite where the second is zero.
    likelier, rarer : int
        Indices of two neighbouring inputs.
    output : int
        Index of an output.
    """

    epsilon: float
    likelier: int
    rarer: int
    output: int


def log_ratio(larger: Floats, smaller: Floats) -> Floats:
    """Return ln(larger / smaller) without cancellation; 0 where both are 0, inf beside a zero.

    Close entries go through log1p of their (exact) difference, so that an epsilon of 1e-6
    keeps all its digits.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = (larger - smaller) / smaller
        value = np.where(excess < 1.0, np.log1p(excess), np.log(larger) - np.log(smaller))
    return np.where(larger == smaller, 0.0, np.where(smaller == 0.0, np.inf, value))


def worst_pair(matrix: Floats, neighbours: Neighbours) -> WorstPair:
    """Find the neighbour pair and output with the largest ratio in `matrix`, shape (n, m).

    Costs O(n m) on complete graphs and O(width n m) on bands.
    """
    if neighbours.kind == "complete":
        ratios = log_ratio(matrix.max(axis=0), matrix.min(axis=0))
        j = int(ratios.argmax())
        likelier, rarer = int(matrix[:, j].argmax()), int(matrix[:, j].argmin())
        return WorstPair(float(ratios[j]), likelier, rarer, j)
    index = np.arange(len(matrix))
    worst = WorstPair(-1.0, 0, 0, 0)
    for low, high in neighbours.blocks():
        first, second = matrix[low], matrix[high]
        ratios = log_ratio(np.maximum(first, second), np.minimum(first, second))
        at, j = (int(x) for x in np.unravel_index(int(ratios.argmax()), ratios.shape))
        if ratios[at, j] > worst.epsilon:
            i, k = int(index[low][at]), int(index[high][at])
            likelier, rarer = (i, k) if first[at, j] >= second[at, j] else (k, i)
            worst = WorstPair(float(ratios[at, j]), likelier, rarer, j)
    return worst


def hockey_stick(matrix: Floats, neighbours: Neighbours, epsilons: Iterable[float]) -> Floats:
    """Return delta(epsilon) = max over neighbours of sum_j max(0, M[i,j] - e^epsilon M[k,j])."""

    def largest_excess(grow: float) -> float:
        return max(
            float(np.maximum(matrix[first] - grow * matrix[second], 0.0).sum(axis=1).max())
            for first, second in neighbours.ordered_blocks()
        )

    return np.array([largest_excess(float(np.exp(epsilon))) for epsilon in epsilons])
