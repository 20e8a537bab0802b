"""How accurate a mechanism is: losses, bias, spread and intervals, computed from its matrix.

All figures are exact up to the rounding of doubles; nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import ArgumentError, describe_kind
from tallyveil.loss import Loss, loss_table
from tallyveil.matrix import central_interval, posterior_costs
from tallyveil.prior import Prior, mark_possible_answers, resolve_prior
from tallyveil.query import Query

__all__ = ["AccuracyMeasures", "check_confidence", "check_number"]


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

    def error_histogram(self, prior: Prior = None) -> tuple[Floats, Floats]:
        """Every possible error (released - true) and its probability under the prior."""
        error = self.query.outputs[None, :].astype(float) - self.query.inputs[:, None]
        weight = self.matrix * resolve_prior(prior, len(self.query.inputs))[:, None]
        values, where = np.unique(np.round(error, 9), return_inverse=True)
        mass: Any = np.bincount(where.ravel(), weights=weight.ravel(), minlength=len(values))
        return values, mass

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
        guesses = Query.custom(self.query.inputs, self.query.inputs, self.query.neighbours)
        weights = resolve_prior(prior, len(self.query.inputs))
        return posterior_costs(self.matrix, loss_table(guesses, loss), weights)

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
