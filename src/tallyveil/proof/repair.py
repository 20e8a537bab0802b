"""Repair a matrix that a solver or rounding left not quite private.

A solver's matrix has zeros beside positives and ratios a little above e^epsilon. Four steps
mend it without knowing where it came from. M is the matrix, d(i, k) the number of neighbour
steps from input i to input k.

1. *Zero the noise.* The worst broken ratio tells how large the error of an entry is at least.
   Entries below four times that carry no information: they become 0, and step 2 fills them
   again from larger entries in their column. An output whose every entry is that small is
   never reported.
2. *Close the ratios.* B[i, j] = max over k of e^(-epsilon d(i, k)) M[k, j] is the smallest
   private matrix above M (`close_ratios`). It raises every noisy entry to the largest that its
   neighbours demand, so each column is first lowered by what it will be raised by on average.
   (Lowering entries instead of raising them is no help: one tiny entry that is a little too
   low would pull a whole column down with it.)
3. *Fill own outputs.* Rows of B sum to s_i. What a row lacks of the largest sum,
   v_i = max(s) - s_i, is put on the output that its true answer belongs to, and the ratios are
   closed again, for as long as that at least halves the differences between rows. At a large
   epsilon this keeps the moved mass where it costs nothing.
4. *Fill the rest.* What rows still lack is spread over all outputs in fixed proportions a_j, the
   mean output distribution, or the target where one is wanted. The lacks v_i need not be
   private themselves; with the smallest k >= 0 for which v + k is,
   (B[i, j] + (v_i + k) a_j) / (max(s) + k) is private and its rows sum to one.

All of it is floating point and proves nothing; `tallyveil.proof.weights` rounds the result to
integers and `tallyveil.proof.verify` proves those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss, loss_name
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.neighbours import Neighbours
from tallyveil.prior import Prior, resolve_prior
from tallyveil.query import Query

__all__ = ["Repair", "close_ratios", "label_components", "mass_moved", "repair", "repair_matrix"]

LARGEST_NOISE = 1e-6
"""Entries of at least this are never taken for a solver's noise."""

NOISE_FACTOR = 4
"""Entries below this many times the error seen in the ratios are taken for noise."""

EQUAL_SUMS = 1e-15
"""Row sums that differ by less than this are equal up to the rounding of doubles."""


@dataclass(frozen=True)
class Repair:
    """A repaired mechanism and what the repair cost.

    Attributes
    ----------
    mechanism : Mechanism
        The repaired matrix, private up to the rounding of doubles.
    mass_moved : float
        The most probability that moved in any row (total variation).
    loss : str
        Name of the loss below.
    loss_before, loss_after : float
        Expected loss of the given and of the repaired matrix.
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
    """Find a private mechanism close to the given one, and say how far it is.

    It mends whatever it is given, so look at `mass_moved`: near 1e-8 it removed a solver's
    round-off; near 1 the matrix was never private at this epsilon. `certify` repairs by itself
    what is within its stated limit, and refuses more. Works for every neighbour relation; costs
    O(w n m) on a band of width w, O(n m) on a complete graph.

    Parameters
    ----------
    mechanism : Mechanism
        The matrix to mend, shape (n, m).
    epsilon : int, float, str, Decimal, Fraction or None
        The wanted privacy loss; None takes the mechanism's own.
    target : array of float, shape (m,), or None
        Proportions in which moved mass goes to the outputs, for mechanisms with a wanted output
        distribution; None takes the mean output distribution.
    loss, prior
        What the reported change is measured in; see `loss_table` and `resolve_prior`.

    Returns
    -------
    Repair
        The mended mechanism, the mass moved and the loss changed.

    Examples
    --------
    >>> broken = Mechanism([[0.8, 0.2, 0.0], [0.4, 0.4, 0.2], [0.0, 0.2, 0.8]], Query.count(2))
    >>> mended = repair(broken, epsilon=1.0)
    >>> broken.realised_epsilon(), mended.mechanism.realised_epsilon() < 1 + 1e-12
    (inf, True)
    """
    mechanism = as_mechanism(mechanism)
    exact = mechanism.exact_epsilon if epsilon is None else exact_epsilon(epsilon)
    if exact is None:
        raise ArgumentError("epsilon", "be given, because the mechanism states none")
    proportions = None if target is None else resolve_prior(target, len(mechanism.query.outputs))
    matrix = repair_matrix(mechanism.matrix, mechanism.query, float(exact), proportions)
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
    """Return the largest total variation distance between matching rows, both scaled to one."""
    first = before / before.sum(axis=1, keepdims=True)
    second = after / after.sum(axis=1, keepdims=True)
    return float(np.abs(first - second).sum(axis=1).max() / 2)


def repair_matrix(
    matrix: Floats, query: Query, epsilon: float, target: Floats | None = None
) -> Floats:
    """Apply the four steps of this module to a bare matrix, shape (n, m)."""
    neighbours = query.neighbours
    noise = min(NOISE_FACTOR * _estimate_noise(matrix, neighbours, epsilon), LARGEST_NOISE)
    informative = _zero_noise(matrix, noise)
    lowered = _lower_columns(informative, neighbours, epsilon, most=noise / 2)
    closed = _close_floats(lowered, neighbours, epsilon)
    closed = _fill_own_outputs(closed, query, epsilon)
    filled = _fill_rows(closed, neighbours, epsilon, target)
    result: Floats = filled / filled.sum(axis=1, keepdims=True)
    if neighbours.kind != "explicit" and np.array_equal(matrix, matrix[::-1, ::-1]):
        return (result + result[::-1, ::-1]) / 2  # sums in another order differ in last bits
    return result


# -- step 1 --------------------------------------------------------------------------------------


def _estimate_noise(matrix: Floats, neighbours: Neighbours, epsilon: float) -> float:
    """The least change of single entries that could explain the worst broken ratio.

    M_i > R M_k with R = e^epsilon is explained by changes of (M_i - R M_k) / (1 + R) in both;
    numerator and denominator are divided by R, which may overflow.
    """
    return _measure_excess(matrix, neighbours, epsilon) / (1 + math.exp(-epsilon))


def _zero_noise(matrix: Floats, noise: float) -> Floats:
    """`matrix` with entries below `noise` set to zero and rows scaled to one."""
    kept = np.where(matrix < noise, 0.0, matrix)
    emptied = kept.sum(axis=1) == 0
    kept[emptied] = matrix[emptied]  # a row of nothing but noise keeps its entries
    scaled: Floats = kept / kept.sum(axis=1, keepdims=True)
    return scaled


# -- step 2 --------------------------------------------------------------------------------------


def _lower_columns(matrix: Floats, neighbours: Neighbours, epsilon: float, most: float) -> Floats:
    """Lower each column by what closing raises its positive entries by on average, or `most`."""
    positive = matrix > 0
    raised = np.where(positive, _close_floats(matrix, neighbours, epsilon) - matrix, 0.0)
    average = raised.sum(axis=0)
    average /= np.maximum(positive.sum(axis=0), 1)
    return np.where(positive, matrix - np.minimum(average, most), 0.0)


def _close_floats(matrix: Floats, neighbours: Neighbours, epsilon: float) -> Floats:
    decay = math.exp(-epsilon)
    return close_ratios(matrix, neighbours, lambda row: row * decay)


def close_ratios(
    values: NDArray[Any], neighbours: Neighbours, demand: Callable[[Any], Any]
) -> NDArray[Any]:
    """Return the smallest array above `values` with closed[i] >= demand(closed[k]) for neighbours.

    `demand` is an increasing map from a row to the least that a neighbouring row may hold:
    multiplication by e^-epsilon for doubles, `Growth.need` for integers.
    """
    closed = values.copy()
    if neighbours.kind == "complete":
        np.maximum(closed, demand(closed.max(axis=0))[None, :], out=closed)
        return closed
    if neighbours.kind == "explicit":
        while True:
            before = closed.copy()
            for i, k in neighbours.pairs.tolist():
                np.maximum(closed[i], demand(closed[k]), out=closed[i])
                np.maximum(closed[k], demand(closed[i]), out=closed[k])
            if np.array_equal(before, closed):
                return closed
    # On a band, one pass down and one up reach every row: a detour is never shorter.
    size, width = neighbours.size, neighbours.width
    for i in range(1, size):
        above = closed[i - 1] if width == 1 else closed[max(0, i - width) : i].max(axis=0)
        np.maximum(closed[i], demand(above), out=closed[i])
    for i in range(size - 2, -1, -1):
        below = closed[i + 1] if width == 1 else closed[i + 1 : i + 1 + width].max(axis=0)
        np.maximum(closed[i], demand(below), out=closed[i])
    return closed


# -- step 3 --------------------------------------------------------------------------------------


def _fill_own_outputs(closed: Floats, query: Query, epsilon: float) -> Floats:
    """Put what rows lack on their own outputs while that halves the differences in row sums."""
    rows = np.arange(len(closed))
    reported = closed[rows, query.home] > 0  # an output that is never reported stays so
    while True:
        sums = closed.sum(axis=1)
        lacks = np.where(reported, sums.max() - sums, 0.0)
        raised = closed.copy()
        raised[rows, query.home] += lacks
        raised = _close_floats(raised, query.neighbours, epsilon)
        if np.ptp(raised.sum(axis=1)) > np.ptp(sums) / 2 or np.ptp(sums) < EQUAL_SUMS:
            return closed
        closed = raised


# -- step 4 --------------------------------------------------------------------------------------


def _fill_rows(
    closed: Floats, neighbours: Neighbours, epsilon: float, target: Floats | None
) -> Floats:
    """Add to every row what it lacks of the largest sum, and as much more as privacy needs."""
    sums = closed.sum(axis=1)
    lacks = sums.max() - sums
    # the smallest k >= 0 with lacks[i] + k <= e^epsilon (lacks[i'] + k) for neighbours i, i'
    common = _measure_excess(lacks[:, None], neighbours, epsilon) / -math.expm1(-epsilon)
    filled: Floats = closed + (lacks + common)[:, None] * _choose_proportions(
        closed, neighbours, target
    )
    return filled


def _choose_proportions(closed: Floats, neighbours: Neighbours, target: Floats | None) -> Floats:
    """Where added mass goes, shape (n, m): one distribution per connected part of the graph."""
    label = label_components(neighbours)
    proportions = np.empty_like(closed)
    for part in np.unique(label):
        inside = label == part
        mean = closed[inside].mean(axis=0)
        chosen = mean if target is None else np.where(mean > 0, target, 0.0)
        chosen = chosen if chosen.sum() > 0 else mean
        proportions[inside] = chosen / chosen.sum()
    return proportions


# -- the neighbour graph -------------------------------------------------------------------------


def _measure_excess(values: Floats, neighbours: Neighbours, epsilon: float) -> float:
    """The largest e^-epsilon values[i] - values[k] over neighbours and columns, or 0."""
    shrink = math.exp(-epsilon)
    if neighbours.kind == "complete":
        return max(0.0, float((shrink * values.max(axis=0) - values.min(axis=0)).max()))
    return max(
        float((shrink * values[first] - values[second]).max(initial=0.0))
        for first, second in neighbours.ordered_blocks()
    )


def label_components(neighbours: Neighbours) -> Integers:
    """Label each input by the first input of its connected part of the neighbour graph."""
    if neighbours.kind != "explicit":
        return np.zeros(neighbours.size, dtype=np.int64)
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
