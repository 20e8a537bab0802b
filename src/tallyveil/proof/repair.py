"""Sweep repair: the nearest private matrix to one that a solver or rounding left not private.

A solver's matrix has zeros beside positives and ratios a little above e^epsilon. Four
steps mend it without knowing where it came from:

1. *Noise out.* Entries below four times the error seen in the ratios carry no information;
   they become 0 and are filled again from their larger neighbours. An output whose every
   entry is that small is never reported.
2. *Sweep.* b[i, j] = max over k of e^(-epsilon d(i, k)) M[k, j], with d the number of
   neighbour steps from k to i: the smallest private column above the given one. It raises
   noisy entries to the largest of their neighbourhood, so what it raises a column by on
   average is taken off beforehand. (Meeting it halfway from below is no help: a tiny entry
   that is a little too low would pull a whole column down with it.)
3. *Seat.* Rows now sum to s_i. What a row lacks, v_i = max(s) - s_i, is put on the output
   its true answer belongs to and swept again, for as long as that shrinks the lack: at a
   large epsilon this keeps the moved mass where it costs nothing.
4. *Level.* With the smallest k >= 0 for which v + k is itself private,
   (b + (v_i + k) a_j) / (max(s) + k) has rows that sum to one. The law a is the mean output
   law, or the target where a fixed point is wanted.

All of it is floating point and proves nothing; `tallyveil.proof.weights` rounds the
result to integers and `tallyveil.proof.verify` proves those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, Prior, loss_name, prior_law
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.neighbours import Neighbours
from tallyveil.query import Query

__all__ = ["Repair", "closure", "components", "repair"]

LARGEST_NOISE = 1e-6  # above this an entry is never taken for a solver's noise


@dataclass(frozen=True)
class Repair:
    """A repaired mechanism and what the repair cost.

    Attributes
    ----------
    mechanism : the repaired matrix, private up to the rounding of doubles
    mass_moved : the most probability that moved in any row (total variation)
    loss : name of the loss below
    loss_before, loss_after : expected loss of the given and of the repaired matrix
    """

    mechanism: Mechanism
    mass_moved: float
    loss: str
    loss_before: float
    loss_after: float

    @property
    def loss_change(self) -> float:
        """Expected loss after the repair minus before."""
        return self.loss_after - self.loss_before


def repair(
    mechanism: MechanismLike,
    epsilon: Epsilon | None = None,
    *,
    target: ArrayLike | None = None,
    loss: Loss = "absolute",
    prior: Prior = None,
) -> Repair:
    """A private mechanism close to the given one, with the mass moved and the loss changed.

    Works for every neighbour relation (path, band, complete, explicit). It mends whatever
    it is given, so look at `mass_moved`: near 1e-8 it removed a solver's round-off; near 1
    the matrix was never private at this epsilon. `certify` repairs by itself what is within
    its stated limit, and refuses more.

    Parameters
    ----------
    mechanism : the matrix to mend, shape (n, m)
    epsilon : the wanted privacy loss; None takes the mechanism's own
    target : a law on the outputs, shape (m,), towards which moved mass goes, for mechanisms
        with a wanted output law; None takes the mean output law
    loss, prior : what the reported change is measured in

    Costs O(w n m) on a band of width w, O(n m) on a complete graph.

    >>> from tallyveil.query import Query
    >>> broken = Mechanism([[0.8, 0.2, 0.0], [0.4, 0.4, 0.2], [0.0, 0.2, 0.8]], Query.count(2))
    >>> mended = repair(broken, epsilon=1.0)
    >>> broken.realised_epsilon(), mended.mechanism.realised_epsilon() < 1 + 1e-12
    (inf, True)
    """
    mechanism = as_mechanism(mechanism)
    exact = mechanism.exact_epsilon if epsilon is None else exact_epsilon(epsilon)
    if exact is None:
        raise ArgumentError("epsilon", "be given, because the mechanism states none")
    aim = None if target is None else prior_law(target, len(mechanism.query.outputs))
    matrix = repaired_matrix(mechanism.matrix, mechanism.query, float(exact), aim)
    mended = Mechanism(
        matrix, mechanism.query, exact, delta=mechanism.exact_delta, name=mechanism.name
    )
    return Repair(
        mended,
        mass_moved(mechanism.matrix, matrix),
        loss_name(loss),
        mechanism.expected_loss(loss, prior),
        mended.expected_loss(loss, prior),
    )


def mass_moved(before: Floats, after: Floats) -> float:
    """The largest total variation distance between matching rows, both scaled to one."""
    first = before / before.sum(axis=1, keepdims=True)
    second = after / after.sum(axis=1, keepdims=True)
    return float(np.abs(first - second).sum(axis=1).max() / 2)


def repaired_matrix(
    matrix: Floats, query: Query, epsilon: float, target: Floats | None = None
) -> Floats:
    """The four steps of this module on a bare matrix, shape (n, m)."""
    neighbours = query.neighbours
    noise = _noise(matrix, neighbours, epsilon)
    faint = min(4 * noise, LARGEST_NOISE)
    kept = np.where(matrix < faint, 0.0, matrix)
    alone = kept.sum(axis=1) == 0  # a row of nothing but faint entries keeps them
    kept[alone] = matrix[alone]
    kept = kept / kept.sum(axis=1, keepdims=True)
    lowered = _lowered(kept, neighbours, epsilon, faint / 2)
    swept = _seated(_sweep(lowered, neighbours, epsilon), query, epsilon)
    sums = swept.sum(axis=1)
    lack = sums.max() - sums
    level = _level(lack, neighbours, epsilon)
    levelled = swept + (lack + level)[:, None] * _aim(swept, neighbours, target)
    result: Floats = levelled / levelled.sum(axis=1, keepdims=True)
    if neighbours.kind != "explicit" and np.array_equal(matrix, matrix[::-1, ::-1]):
        return (result + result[::-1, ::-1]) / 2  # sums in another order differ in last bits
    return result


def _sweep(matrix: Floats, neighbours: Neighbours, epsilon: float) -> Floats:
    decay = math.exp(-epsilon)
    return closure(matrix, neighbours, lambda row: row * decay)


def _lowered(kept: Floats, neighbours: Neighbours, epsilon: float, most: float) -> Floats:
    """Each column less what a sweep raises its positive entries by on average, up to `most`."""
    positive = kept > 0
    lift = np.where(positive, _sweep(kept, neighbours, epsilon) - kept, 0.0).sum(axis=0)
    lift /= np.maximum(positive.sum(axis=0), 1)
    return np.where(positive, kept - np.minimum(lift, most), 0.0)


def _seated(swept: Floats, query: Query, epsilon: float) -> Floats:
    """Put what rows lack on their own outputs while that at least halves the lack."""
    rows = np.arange(len(swept))
    taken = swept[rows, query.home] > 0  # an output that is never reported stays so
    while True:
        sums = swept.sum(axis=1)
        lack = np.where(taken, sums.max() - sums, 0.0)
        raised = swept.copy()
        raised[rows, query.home] += lack
        raised = _sweep(raised, query.neighbours, epsilon)
        if np.ptp(raised.sum(axis=1)) > np.ptp(sums) / 2 or np.ptp(sums) < 1e-15:
            return swept
        swept = raised


def closure(
    values: NDArray[Any], neighbours: Neighbours, fade: Callable[[Any], Any]
) -> NDArray[Any]:
    """The smallest array above `values` with ``closed[i] >= fade(closed[k])`` for neighbours.

    `fade` maps a row to what it demands of a neighbouring row: multiplication by
    e^-epsilon for doubles, `Growth.need` for integers. It must be increasing.
    """
    closed = values.copy()
    if neighbours.kind == "complete":
        np.maximum(closed, fade(closed.max(axis=0))[None, :], out=closed)
        return closed
    if neighbours.kind == "explicit":
        pairs = neighbours.pairs
        while True:
            before = closed.copy()
            for i, k in pairs.tolist():
                np.maximum(closed[i], fade(closed[k]), out=closed[i])
                np.maximum(closed[k], fade(closed[i]), out=closed[k])
            if np.array_equal(before, closed):
                return closed
    # On a band, one pass down and one up reach every row: a detour is never shorter.
    size, width = neighbours.size, neighbours.width
    for i in range(1, size):
        above = closed[max(0, i - width) : i].max(axis=0)
        np.maximum(closed[i], fade(above), out=closed[i])
    for i in range(size - 2, -1, -1):
        below = closed[i + 1 : i + 1 + width].max(axis=0)
        np.maximum(closed[i], fade(below), out=closed[i])
    return closed


def components(neighbours: Neighbours) -> NDArray[np.int64]:
    """The connected part of the neighbour graph each input lies in, labelled by its first."""
    label = np.zeros(neighbours.size, dtype=np.int64)
    if neighbours.kind != "explicit":
        return label
    label = np.arange(neighbours.size)
    low, high = neighbours.pairs.T
    while True:
        least = np.minimum(label[low], label[high])
        after = label.copy()
        np.minimum.at(after, low, least)
        np.minimum.at(after, high, least)
        if np.array_equal(after, label):
            return label
        label = after


def _noise(matrix: Floats, neighbours: Neighbours, epsilon: float) -> float:
    """The least change of single entries that could explain the worst broken ratio."""
    # (M_i - R M_k) / (1 + R) without overflow: both sides divided by R = e^epsilon.
    return _breach(matrix, neighbours, epsilon) / (1 + math.exp(-epsilon))


def _level(lack: Floats, neighbours: Neighbours, epsilon: float) -> float:
    """The smallest k >= 0 with lack[i] + k <= e^epsilon (lack[i'] + k) for neighbours i, i'."""
    return _breach(lack[:, None], neighbours, epsilon) / -math.expm1(-epsilon)


def _breach(values: Floats, neighbours: Neighbours, epsilon: float) -> float:
    """The largest e^-epsilon values[i] - values[k] over neighbours and columns, or 0."""
    shrink = math.exp(-epsilon)
    if neighbours.kind == "complete":
        return max(0.0, float((shrink * values.max(axis=0) - values.min(axis=0)).max()))
    worst = 0.0
    for low, high in neighbours.blocks():
        for first, second in ((values[low], values[high]), (values[high], values[low])):
            worst = max(worst, float((shrink * first - second).max(initial=0.0)))
    return worst


def _aim(swept: Floats, neighbours: Neighbours, target: Floats | None) -> Floats:
    """Where moved mass goes, shape (n, m): one law per connected part of the graph."""
    label = components(neighbours)
    aim = np.empty_like(swept)
    for part in np.unique(label):
        inside = label == part
        mean = swept[inside].mean(axis=0)
        law = mean if target is None else np.where(mean > 0, target, 0.0)
        law = law if law.sum() > 0 else mean
        aim[inside] = law / law.sum()
    return aim
