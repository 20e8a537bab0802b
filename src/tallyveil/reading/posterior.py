"""What a released number says about the truth: the law of the true answer, given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError
from tallyveil.mechanism import Mechanism, check_confidence
from tallyveil.prior import Prior
from tallyveil.prior import resolve_prior as prior_law

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

__all__ = ["Posterior", "output_positions", "posterior", "posterior_laws"]

MARGIN = 1e-12
"""Kept on the safe side of every level, so that round-off never costs coverage."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """The law of the true answer after one release.

    Attributes
    ----------
    answers : the true answers, shape (n,)
    law : their probabilities given the release and the prior, shape (n,), summing to one
    released : the released value
    """

    answers: NDArray[np.float64]
    law: Floats
    released: float

    @property
    def mode(self) -> float:
        """The most probable true answer; the lowest of several."""
        return float(self.answers[self.law.argmax()])

    @property
    def mean(self) -> float:
        """The expected true answer, which need not be a whole number."""
        return float(self.law @ self.answers)

    @property
    def median(self) -> float:
        """The lowest true answer with at least half of the probability up to it."""
        return float(self.answers[np.searchsorted(np.cumsum(self.law), 0.5 - MARGIN)])

    @property
    def standard_deviation(self) -> float:
        """How far the true answer typically lies from the posterior mean."""
        return float(np.sqrt(self.law @ (self.answers - self.mean) ** 2))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """The central credible interval: at most (1 - confidence)/2 on either side of it.

        Its probability is never below `confidence`; discrete laws make it somewhat more.
        """
        low, high = central_interval(self.law[None, :], confidence)
        return float(self.answers[low[0]]), float(self.answers[high[0]])

    def highest(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """The fewest true answers that together have at least `confidence`, in order."""
        check_confidence(confidence)
        order = np.argsort(-self.law, kind="stable")
        enough = int(np.searchsorted(np.cumsum(self.law[order]), confidence + MARGIN)) + 1
        kept: NDArray[np.float64] = np.sort(self.answers[order[:enough]])
        return kept

    def probability(self, low: float, high: float) -> float:
        """Chance that the true answer lies between `low` and `high`, both included."""
        inside = (self.answers >= low) & (self.answers <= high)
        return float(self.law[inside].sum())

    def plot(self, confidence: float = 0.95, path: str | Path | None = None) -> Figure:
        """Bars of the law with the credible interval marked; saved to `path` if given."""
        from tallyveil.figures import law_bars

        low, high = self.interval(confidence)
        title = f"released {self.released:g}: the true answer is probably {low:g} to {high:g}"
        return law_bars(self.answers, self.law, (low, high), self.released, title=title,
                        path=path)  # fmt: skip


def posterior(mechanism: Mechanism, released: float, prior: Prior = None) -> Posterior:
    """Bayes' rule: Pr(true = i | released) is proportional to prior[i] M[i, released].

    Parameters
    ----------
    mechanism : what released the value
    released : one of the mechanism's outputs
    prior : None or "uniform", ("binomial", p), or weights, shape (n,)

    A value that the mechanism never releases, or not under this prior, is an error. Exact up
    to rounding in floats; costs O(n).

    >>> from tallyveil import Query
    >>> m = Mechanism([[0.75, 0.25], [0.25, 0.75]], Query.count(1))
    >>> posterior(m, released=1).law.tolist()
    [0.25, 0.75]
    """
    at = int(output_positions(mechanism, [released])[0])
    law = posterior_laws(mechanism, prior)[at]
    if not np.isfinite(law).all():
        raise ArgumentError("released", "be possible under the prior", released)
    answers = mechanism.query.inputs.astype(float)
    return Posterior(answers, law, float(mechanism.query.outputs[at]))


def posterior_laws(mechanism: Mechanism, prior: Prior = None) -> Floats:
    """The posterior for every output, shape (m, n); NaN where the prior rules an output out."""
    joint = (mechanism.matrix * prior_law(prior, len(mechanism.matrix))[:, None]).T
    total = joint.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        laws: Floats = joint / total
    return laws


def output_positions(mechanism: Mechanism, released: ArrayLike) -> NDArray[np.int64]:
    """Index of each released value among the outputs the mechanism can report.

    Released values are public, so the error names the one that cannot have been released.
    """
    try:
        values = np.asarray(released, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError("released", "be numbers", type(released).__name__) from None
    outputs = mechanism.query.outputs.astype(float)
    at = np.clip(np.searchsorted(outputs, values), 1, max(1, len(outputs) - 1))
    left = at - 1
    at = np.where(np.abs(outputs[left] - values) <= np.abs(outputs[at % len(outputs)] - values),
                  left, at % len(outputs)).astype(np.int64)  # fmt: skip
    spacing = float(np.diff(outputs).min()) if len(outputs) > 1 else 1.0
    known = np.isfinite(values) & (np.abs(outputs[at] - values) <= 1e-9 * spacing)
    known &= (mechanism.matrix.max(axis=0) > 0)[at]
    if not known.all():
        stranger = float(np.atleast_1d(values)[~np.atleast_1d(known)][0])
        able = outputs[mechanism.matrix.max(axis=0) > 0]
        hint = f"It reports {len(able)} values between {able[0]:g} and {able[-1]:g}."
        raise ArgumentError("released", "be a value this mechanism can report", stranger, hint)
    return at


def central_interval(
    laws: Floats, confidence: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last index of each row's central interval; never less than `confidence`."""
    check_confidence(confidence)
    tail = (1 - confidence) / 2 - MARGIN
    low = (np.cumsum(laws, axis=1) <= tail).sum(axis=1)
    high = laws.shape[1] - 1 - (np.cumsum(laws[:, ::-1], axis=1) <= tail).sum(axis=1)
    return low.astype(np.int64), np.maximum(low, high).astype(np.int64)
