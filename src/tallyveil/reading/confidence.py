"""Intervals that need no prior: the true answers a released value does not contradict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats
from tallyveil.mechanism import Mechanism
from tallyveil.reading.posterior import central_interval, output_positions

__all__ = ["ConfidenceSets", "confidence_sets"]


@dataclass(frozen=True, eq=False)
class ConfidenceSets:
    """For every released value, the true answers that fit it; and how often they are right.

    Attributes
    ----------
    confidence : the level asked for
    released : the outputs, shape (m,)
    members : whether true answer i is in the set of output j, shape (n, m)
    low, high : lowest and highest member of each output's set, shape (m,)
    coverage : for each true answer, the exact chance that the set contains it, shape (n,);
        the sum of its row of the matrix over the outputs whose set it is in. Never below
        `confidence`.
    interval_coverage : the same for the interval [low, high]; never smaller
    """

    mechanism: Mechanism
    confidence: float
    released: Floats
    members: NDArray[np.bool_]
    low: Floats
    high: Floats
    coverage: Floats
    interval_coverage: Floats

    def of(self, released: float) -> tuple[float, float]:
        """(low, high) for one released value."""
        at = output_positions(self.mechanism, [released])[0]
        return float(self.low[at]), float(self.high[at])


def confidence_sets(mechanism: Mechanism, confidence: float = 0.95) -> ConfidenceSets:
    """Invert the central intervals: i fits j if j lies in the central `confidence` of row i.

    A statement about the mechanism alone, true for every true answer and every prior: in
    repeated releases the set contains the truth at least `confidence` of the time. The
    likeliest true answer of an output is always in its set, so that none is empty. Costs
    O(n m).

    >>> from tallyveil import Query, geometric
    >>> sets = confidence_sets(geometric(Query.count(20), epsilon=1.0))
    >>> sets.of(7), bool((sets.coverage >= 0.95).all())
    ((4.0, 10.0), True)
    """
    matrix = mechanism.matrix
    n, m = matrix.shape
    first, last = central_interval(matrix, confidence)
    column = np.arange(m)[None, :]
    members = (column >= first[:, None]) & (column <= last[:, None])
    members[matrix.argmax(axis=0), np.arange(m)] = True
    bottom, top = members.argmax(axis=0), n - 1 - members[::-1].argmax(axis=0)
    row = np.arange(n)[:, None]
    between = (row >= bottom) & (row <= top)
    answers = mechanism.query.inputs.astype(float)
    return ConfidenceSets(
        mechanism,
        confidence,
        mechanism.query.outputs.astype(float),
        members,
        answers[bottom],
        answers[top],
        np.where(members, matrix, 0.0).sum(axis=1),
        np.where(between, matrix, 0.0).sum(axis=1),
    )
