"""The true answer given a released number: its distribution, and sets that need no prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.answers import read_floats
from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.errors import ArgumentError, numbered
from tallyveil.matrix import (
    FrozenArrays,
    central_interval,
    check_confidence,
    check_number,
    joint_distribution,
)
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.prior import Prior, resolve_prior

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

MARGIN = 1e-12
"""Probability kept in reserve at every level, so that round-off never costs coverage."""


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(FrozenArrays):
    """The distribution of the true answer after one release.

    Attributes
    ----------
    answers : array of float, shape (n,)
        The true answers.
    distribution : array of float, shape (n,)
        Their probabilities given the release and the prior, summing to one.
    released : float
        The released value.
    """

    answers: Floats
    distribution: Floats
    released: float

    @property
    def mode(self) -> float:
        """The most probable true answer; the lowest of several."""
        return float(self.answers[self.distribution.argmax()])

    @property
    def mean(self) -> float:
        """The expected true answer, which need not be a whole number."""
        return float(self.distribution @ self.answers)

    @property
    def median(self) -> float:
        """The lowest true answer with at least half of the probability up to it."""
        reached = np.searchsorted(np.cumsum(self.distribution), 0.5 - MARGIN)
        return float(self.answers[reached])

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the true answer."""
        return float(np.sqrt(self.distribution @ (self.answers - self.mean) ** 2))

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the central credible interval: at most (1 - confidence)/2 on either side.

        Its probability is never below `confidence`, and usually somewhat above it because
        the distribution is discrete.
        """
        low, high = safe_interval(self.distribution[None, :], confidence)
        return float(self.answers[low[0]]), float(self.answers[high[0]])

    def highest(self, confidence: float = 0.95) -> Floats:
        """Return the fewest true answers that together have at least `confidence`, in order."""
        check_confidence(confidence)
        order = np.argsort(-self.distribution, kind="stable")
        reached = np.cumsum(self.distribution[order])
        enough = int(np.searchsorted(reached, confidence + MARGIN)) + 1
        return np.sort(self.answers[order[:enough]])

    def probability(self, low: float, high: float) -> float:
        """Return the chance of a true answer between `low` and `high`, both included."""
        first, last = check_number(low, "low"), check_number(high, "high")
        inside = (self.answers >= first) & (self.answers <= last)
        return float(self.distribution[inside].sum())

    def plot(self, confidence: float = 0.95, path: str | Path | None = None) -> Figure:
        """Draw bars with the credible interval marked; saved to `path` if given."""
        from tallyveil.notebook import distribution_bars

        low, high = self.interval(confidence)
        title = f"released {self.released:g}: the true count is probably {low:g} to {high:g}"
        return distribution_bars(
            self.answers, self.distribution, (low, high), self.released, title=title, path=path
        )

    def _repr_html_(self) -> str:
        """Return bars with the 95% credible interval marked, for notebooks."""
        from tallyveil.notebook import show_distribution

        interval = self.interval()
        about = (
            f"95% credible interval {interval[0]:g} to {interval[1]:g} · most probable "
            f"{self.mode:g} · standard error {self.standard_deviation:.3g}"
        )
        return show_distribution(
            self.answers,
            self.distribution,
            interval,
            self.released,
            title=f"True answer, given that {self.released:g} was released",
            about=about,
        )

    def __repr__(self) -> str:
        low, high = self.interval()
        return (
            f"<Posterior: released {self.released:g}, most probable {self.mode:g}, "
            f"95% between {low:g} and {high:g}>"
        )


def posterior(mechanism: MechanismLike, released: float, prior: Prior = None) -> Posterior:
    """Apply Bayes' rule to one released value.

    Pr(true = i | released) is proportional to prior[i] M[i, released]. Exact up to the
    rounding of doubles; costs O(n m).

    Parameters
    ----------
    mechanism : Mechanism, Design or certified mechanism
        What released the value.
    released : float
        One of the mechanism's outputs. A value that the mechanism never releases, or not
        under this prior, is an `ArgumentError`.
    prior : None, "uniform", ("binomial", p) or array of float, shape (n,)
        The belief before the release; None is uniform.

    Returns
    -------
    Posterior
        The distribution of the true answer, with its mode, mean and intervals.

    Examples
    --------
    >>> from tallyveil import Query
    >>> m = Mechanism([[0.75, 0.25], [0.25, 0.75]], Query.count(1))
    >>> posterior(m, released=1).distribution.tolist()
    [0.25, 0.75]
    """
    mechanism = as_mechanism(mechanism)
    output = int(find_outputs(mechanism, [check_number(released, "released")])[0])
    distribution = posterior_distributions(mechanism, prior)[output]
    if not np.isfinite(distribution).all():
        raise ArgumentError("released", "be possible under the prior", released)
    answers = mechanism.query.inputs.astype(float)
    return Posterior(answers, distribution, float(mechanism.query.outputs[output]))


def posterior_distributions(mechanism: Mechanism, prior: Prior = None) -> Floats:
    """Return the posterior for every output, shape (m, n); NaN for impossible outputs."""
    joint = joint_distribution(mechanism.matrix, resolve_prior(prior, len(mechanism.matrix)))
    with np.errstate(invalid="ignore", divide="ignore"):
        conditional: Floats = joint / joint.sum(axis=1, keepdims=True)
    return conditional


def find_outputs(mechanism: Mechanism, released: ArrayLike) -> Integers:
    """Return the index of each released value among the outputs that can be reported.

    Released values are public, so the error names the one that cannot have been released.
    """
    values = read_floats(released, "released")
    outputs = mechanism.query.outputs.astype(float)
    reportable = mechanism.matrix.max(axis=0) > 0
    above = np.clip(np.searchsorted(outputs, values), 1, max(1, len(outputs) - 1))
    below, above = above - 1, above % len(outputs)
    nearer_below = np.abs(outputs[below] - values) <= np.abs(outputs[above] - values)
    nearest: Integers = np.where(nearer_below, below, above).astype(np.int64)
    spacing = float(np.diff(outputs).min()) if len(outputs) > 1 else 1.0
    reported = (
        np.isfinite(values)
        & (np.abs(outputs[nearest] - values) <= 1e-9 * spacing)
        & reportable[nearest]
    )
    if not reported.all():
        unknown = float(np.atleast_1d(values)[~np.atleast_1d(reported)][0])
        able = outputs[reportable]
        hint = f"It reports {len(able)} values between {able[0]:g} and {able[-1]:g}."
        raise ArgumentError("released", "be a value this mechanism can report", unknown, hint)
    return nearest


def find_column(mechanism: Mechanism, released: ArrayLike) -> tuple[Floats, Integers]:
    """Return one number or a list of them as an array of values, and their output indices."""
    outputs = np.atleast_1d(find_outputs(mechanism, released))
    if outputs.ndim != 1:
        raise ArgumentError(
            "released", "be a number or a list of numbers", got=f"{outputs.ndim} axes"
        )
    return np.atleast_1d(np.asarray(released, dtype=float)), outputs


def safe_interval(rows: Floats, confidence: float) -> tuple[Integers, Integers]:
    """Return first and last index of each row's central interval, never below `confidence`."""
    check_confidence(confidence)
    return central_interval(rows, (1 - confidence) / 2 - MARGIN)


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceSets(FrozenArrays):
    """For every released value, the true answers that fit it, and how often they are right.

    Attributes
    ----------
    mechanism : Mechanism
        What releases the values.
    confidence : float
        The requested level.
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
        The coverage of the interval [low, high]; never smaller.
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
        """Return (low, high) for one released value."""
        output = find_outputs(self.mechanism, [check_number(released, "released")])[0]
        return float(self.low[output]), float(self.high[output])

    def __repr__(self) -> str:
        return (
            f"<ConfidenceSets: {100 * self.confidence:g}% for "
            f"{numbered(len(self.released), 'released count')}, right at least "
            f"{100 * self.coverage.min():.4g}% of the time>"
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
