"""Matrices of probabilities: their checks, their tightest epsilon and their accuracy.

Rows are true answers, columns are released answers. All figures are exact up to the rounding of
doubles, zeros included; nothing is sampled. The tightest epsilon and the curve delta(epsilon) are
measurements, not a proof: `tallyveil.certify` proves a guarantee in integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.errors import ArgumentError, MechanismError, describe_kind
from tallyveil.loss import Loss, loss_table
from tallyveil.neighbours import Neighbours
from tallyveil.prior import Prior, mark_possible_answers, resolve_prior
from tallyveil.query import Query

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
    sum, under any prior.

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


@dataclass(frozen=True)
class WorstPair:
    """The weakest point of privacy: releasing `output` favours `likelier` over `rarer`.

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
    """Return ln(larger / smaller) without cancellation; 0 where both are 0, inf next to a zero.

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
        row, j = (int(x) for x in np.unravel_index(int(ratios.argmax()), ratios.shape))
        if ratios[row, j] > worst.epsilon:
            i, k = int(index[low][row]), int(index[high][row])
            likelier, rarer = (i, k) if first[row, j] >= second[row, j] else (k, i)
            worst = WorstPair(float(ratios[row, j]), likelier, rarer, j)
    return worst


def hockey_stick(matrix: Floats, neighbours: Neighbours, epsilons: Iterable[float]) -> Floats:
    """Return delta(epsilon) = max over neighbours of sum_j max(0, M[i,j] - e^epsilon M[k,j])."""

    def largest_excess(grow: float) -> float:
        return max(
            float(np.maximum(matrix[first] - grow * matrix[second], 0.0).sum(axis=1).max())
            for first, second in neighbours.ordered_blocks()
        )

    return np.array([largest_excess(float(np.exp(epsilon))) for epsilon in epsilons])


class AccuracyMeasures:
    """The accuracy of ``matrix[true, released]`` as an answer to `query`; base of `Mechanism`."""

    matrix: Floats
    query: Query

    def loss_by_input(self, loss: Loss = "absolute") -> Floats:
        """Expected loss for each true answer, shape (n,)."""
        by_input: Floats = (self.matrix * loss_table(self.query, loss)).sum(axis=1)
        return by_input

    def expected_loss(self, loss: Loss = "absolute", prior: Prior = None) -> float:
        """Prior mean of the loss.

        Cormode, Kulkarni and Srivastava (2018), Definition 3; Croft, Sack and Shi (2020),
        equations 23 and 24.
        """
        return float(resolve_prior(prior, len(self.query.inputs)) @ self.loss_by_input(loss))

    def worst_loss(
        self, loss: Loss = "absolute", side_information: Iterable[float] | None = None
    ) -> float:
        """Largest expected loss over the possible true answers.

        Gupte and Sundararajan (2010), equation 1.
        """
        possible = mark_possible_answers(self.query, side_information)
        return float(self.loss_by_input(loss)[possible].max())

    def error_probability(self, prior: Prior = None) -> float:
        """Chance of releasing another output than the one the true answer belongs to."""
        return self.expected_loss("zero_one", prior)

    def bias(self) -> Floats:
        """Expected released answer minus the true one, per true answer, shape (n,).

        No mechanism on a bounded range is unbiased at both ends.
        """
        error = self.query.outputs[None, :].astype(float) - self.query.inputs[:, None]
        bias: Floats = (self.matrix * error).sum(axis=1)
        return bias

    def variance(self) -> Floats:
        """Variance of the released answer, per true answer, shape (n,)."""
        centre = self.query.inputs + self.bias()
        spread = (self.query.outputs[None, :].astype(float) - centre[:, None]) ** 2
        variance: Floats = (self.matrix * spread).sum(axis=1)
        return variance

    def rmse(self) -> Floats:
        """Root mean squared error per true answer, shape (n,)."""
        return np.sqrt(self.loss_by_input("squared"))

    def interval(self, confidence: float = 0.95) -> Floats:
        """Lowest and highest released answer to expect for each true answer, shape (n, 2).

        The central interval: at most (1 - confidence)/2 lies below it and as much above, so
        its probability is never under `confidence`.
        """
        check_confidence(confidence)
        low, high = central_interval(self.matrix, (1 - confidence) / 2)
        released = self.query.outputs.astype(float)
        return np.column_stack([released[low], released[high]])

    def bayes_remap(self, loss: Loss = "absolute", prior: Prior = None) -> Integers:
        """For each output, the index of the true answer a Bayesian would report instead.

        Minimises the posterior expected loss over the true answers; the lowest on ties.
        """
        best: Integers = self._guess_costs(loss, prior).argmin(axis=1)
        return best

    def bayes_loss(self, loss: Loss = "absolute", prior: Prior = None) -> float:
        """Expected loss after the best Bayesian remap.

        sum_r min_g sum_i prior(i) M[i, r] loss(i, g), as in Croft, Sack and Shi (2020),
        equations 25 and 26, without their extra factor Pr(r), which counts the output's
        probability twice (errata, Croft 2).
        """
        return float(self._guess_costs(loss, prior).min(axis=1).sum())

    def _guess_costs(self, loss: Loss, prior: Prior) -> Floats:
        weights = resolve_prior(prior, len(self.query.inputs))
        return posterior_costs(self.matrix, loss_table(self.query.to_guesses(), loss), weights)

    def usability(self) -> dict[str, float]:
        """The four measures of Croft, Sack and Shi (2020), section 4.2, under a uniform prior."""
        return {
            "error": self.expected_loss("absolute"),
            "squared_error": self.expected_loss("squared"),
            "bayes_error": self.bayes_loss("absolute"),
            "bayes_squared_error": self.bayes_loss("squared"),
        }


def check_confidence(confidence: float) -> None:
    """Raise an `ArgumentError` unless `confidence` lies strictly between 0 and 1."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ArgumentError("confidence", "lie strictly between 0 and 1", confidence)


def check_number(value: object, argument: str) -> float:
    """Return `value` as a float, or raise an `ArgumentError` if it is not a number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ArgumentError(argument, "be a number", got=describe_kind(value))
    return float(value)
