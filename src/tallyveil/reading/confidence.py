"""Intervals that need no prior: the true answers that a released value does not contradict."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Floats, Mask
from tallyveil.matrix import FrozenArrays
from tallyveil.measures import check_number
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.reading.posterior import find_outputs, safe_interval

__all__ = ["ConfidenceSets", "confidence_sets"]


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceSets(FrozenArrays):
    """For every released value, the true answers that fit it, and how often they are right.

    Attributes
    ----------
    mechanism : Mechanism
        What releases the values.
    confidence : float
        The level asked for.
    released : array of float, shape (m,)
        The outputs.
    members : array of bool, shape (n, m)
        Whether true answer i is in the set of output j.
    low, high : array of float, shape (m,)
        Lowest and highest member of each output's set.
    coverage : array of float, shape (n,)
        For each true answer, the exact chance that the set contains it: the sum of its row
        of the matrix over the outputs whose set it is in. Never below `confidence`.
    interval_coverage : array of float, shape (n,)
        The same for the interval [low, high]; never smaller.
    """

    mechanism: Mechanism
    confidence: float
    released: Floats
    members: Mask
    low: Floats
    high: Floats
    coverage: Floats
    interval_coverage: Floats

    def of(self, released: float) -> tuple[float, float]:
        """(low, high) for one released value."""
        at = find_outputs(self.mechanism, [check_number(released, "released")])[0]
        return float(self.low[at]), float(self.high[at])

    def __repr__(self) -> str:
        return (
            f"<ConfidenceSets: {100 * self.confidence:g} % for {len(self.released)} released "
            f"answers, right at least {100 * self.coverage.min():.4g} % of the time>"
        )


def confidence_sets(mechanism: MechanismLike, confidence: float = 0.95) -> ConfidenceSets:
    """Find, for every released value, the true answers that it does not contradict.

    True answer i fits output j if j lies in the central `confidence` of row i. This is a
    statement about the mechanism alone, true for every true answer and every prior: in
    repeated releases the set contains the truth at least `confidence` of the time. The
    likeliest true answer of an output is always in its set, so no set is empty. Costs O(n m).

    Parameters
    ----------
    mechanism : Mechanism, Design or certified mechanism
        What releases the values.
    confidence : float
        The level, strictly between 0 and 1.

    Returns
    -------
    ConfidenceSets
        The set of every output, and the exact coverage for every true answer.

    Examples
    --------
    >>> from tallyveil import Query, geometric
    >>> sets = confidence_sets(geometric(Query.count(20), epsilon=1.0))
    >>> sets.of(7), bool((sets.coverage >= 0.95).all())
    ((4.0, 10.0), True)
    """
    mechanism = as_mechanism(mechanism)
    matrix = mechanism.matrix
    n, m = matrix.shape
    first, last = safe_interval(matrix, confidence)
    column = np.arange(m)[None, :]
    members = (column >= first[:, None]) & (column <= last[:, None])
    members[matrix.argmax(axis=0), np.arange(m)] = True
    lowest, highest = members.argmax(axis=0), n - 1 - members[::-1].argmax(axis=0)
    row = np.arange(n)[:, None]
    between = (row >= lowest) & (row <= highest)
    answers = mechanism.query.inputs.astype(float)
    return ConfidenceSets(
        mechanism,
        confidence,
        mechanism.query.outputs.astype(float),
        members,
        answers[lowest],
        answers[highest],
        np.where(members, matrix, 0.0).sum(axis=1),
        np.where(between, matrix, 0.0).sum(axis=1),
    )
