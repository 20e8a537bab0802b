"""Interpretation of released values: intervals, standard errors, and a paragraph for one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Mask
from tallyveil.errors import ArgumentError, InfeasibleError, numbered
from tallyveil.matrix import FrozenArrays
from tallyveil.mechanism import MechanismLike, as_mechanism
from tallyveil.prior import Prior
from tallyveil.reading.posterior import (
    ConfidenceSets,
    confidence_sets,
    find_column,
    find_outputs,
    posterior,
    posterior_distributions,
    safe_interval,
)
from tallyveil.reading.unbiased import unbiased


@dataclass(frozen=True, eq=False, repr=False)
class Interpretation(FrozenArrays):
    """The intervals and standard errors of a column of released values.

    Attributes
    ----------
    released : array of float, shape (rows,)
        The released values.
    low, high : array of float, shape (rows,)
        Without a prior, the lowest and highest true answer that the value does not contradict
        (`confidence_sets`: right at least `confidence` of the time for every truth). With a prior,
        the central credible interval.
    standard_error : array of float, shape (rows,)
        Standard deviation of the true answer given the value, under the prior (uniform if
        none was given).
    confidence : float
        The level of `low` and `high`.
    kind : str
        "confidence" without a prior, "credible" with one.
    """

    released: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    confidence: float
    kind: str

    def __repr__(self) -> str:
        return (
            f"<Interpretation: {numbered(len(self.released), 'released count')}, "
            f"{100 * self.confidence:g}% {self.kind} intervals>"
        )


def interpret(
    mechanism: MechanismLike,
    released: ArrayLike,
    prior: Prior = None,
    confidence: float = 0.95,
    *,
    sets: ConfidenceSets | None = None,
    open_end: bool = False,
) -> Interpretation:
    """Find an interval and a standard error for every released value.

    Costs O(n m) for the tables, then one lookup per value.

    Parameters
    ----------
    mechanism : Mechanism, Design or certified mechanism
        What released the values.
    released : float or array of float, shape (rows,)
        A value the mechanism cannot report, or not under the prior, is an `ArgumentError`.
    prior : None, "uniform", ("binomial", p) or array of float, shape (n,)
        None gives confidence intervals, which need no prior; anything else credible ones.
    confidence : float
        The level, strictly between 0 and 1.
    sets : ConfidenceSets, optional
        The mechanism's sets, where more is known than its matrix shows.
    open_end : bool
        Whether the largest true answer means itself "or more" (top-coding): an interval that
        reaches it then has no upper end, and `high` is infinite.

    Returns
    -------
    Interpretation
        Low, high and standard error of every row.

    Examples
    --------
    >>> from tallyveil import Query, geometric
    >>> column = interpret(geometric(Query.count(20), epsilon=1.0), [7, 0])
    >>> column.low.tolist(), column.high.tolist(), round(float(column.standard_error[0]), 2)
    ([4.0, 0.0], [10.0, 3.0], 1.35)
    """
    mechanism = as_mechanism(mechanism)
    values, outputs = find_column(mechanism, released)
    conditional = posterior_distributions(mechanism, prior)
    possible: Mask = np.isfinite(conditional.sum(axis=1))
    if not possible[outputs].all():
        impossible = float(values[~possible[outputs]][0])
        raise ArgumentError("released", "be possible under the prior", impossible)
    answers = mechanism.query.inputs.astype(float)
    conditional = np.nan_to_num(conditional)
    mean = conditional @ answers
    variance = (conditional * (answers - mean[:, None]) ** 2).sum(axis=1)
    spread = np.sqrt(np.maximum(0.0, variance))
    if prior is None:
        sets = sets or confidence_sets(mechanism, confidence)
        low, high, kind = sets.low, sets.high, "confidence"
    else:
        first, last = safe_interval(conditional, confidence)
        last = np.minimum(last, len(answers) - 1)
        first = np.minimum(first, last)
        low, high, kind = answers[first], answers[last], "credible"
    high = np.where(open_end & (high == answers[-1]), np.inf, high)
    return Interpretation(values, low[outputs], high[outputs], spread[outputs], confidence, kind)


def describe_release(
    mechanism: MechanismLike,
    released: float,
    prior: Prior = None,
    confidence: float = 0.95,
    *,
    sets: ConfidenceSets | None = None,
    open_end: bool = False,
) -> dict[str, Any]:
    """Describe one released value in numbers, JSON-ready, with a paragraph as "words".

    `sets` and `open_end` are the options of `interpret`; "or_more" is the count that means itself
    or more, None where none does.

    >>> from tallyveil import Query, geometric
    >>> text = describe_release(geometric(Query.count(20), epsilon=1.0), 7)["words"]
    >>> text.split(". ")[0]
    'The released count 7 fits true counts from 4 to 10'
    """
    mechanism = as_mechanism(mechanism)
    belief = posterior(mechanism, released, prior)
    sets = sets or confidence_sets(mechanism, confidence)
    credible = belief.interval(confidence)
    try:
        estimator = unbiased(mechanism, None)
        output = int(find_outputs(mechanism, [released])[0])
        estimate: float | None = float(estimator.values[output])
        variance: float | None = float(estimator.variance_estimates[output])
    except InfeasibleError:
        estimate = variance = None
    facts = {
        "released": belief.released,
        "confidence": confidence,
        "confidence_set": list(sets.of(released)),
        "least_coverage": float(sets.coverage.min()),
        "credible_interval": list(credible),
        "credible_probability": belief.probability(*credible),
        "most_probable": belief.mode,
        "most_probable_probability": float(belief.distribution.max()),
        "posterior_mean": belief.mean,
        "standard_error": belief.standard_deviation,
        "unbiased_estimate": estimate,
        "unbiased_variance": variance,
        "prior": "uniform" if prior is None else "given",
        "or_more": float(mechanism.query.inputs[-1]) if open_end else None,
    }
    return {**facts, "words": _describe_in_words(facts)}


def _describe_in_words(facts: dict[str, Any]) -> str:
    """Write the figures of `describe_release` as a paragraph."""
    (low, high), level = facts["confidence_set"], 100 * facts["confidence"]
    inner = facts["credible_interval"]
    prior = "all counts equally likely beforehand" if facts["prior"] == "uniform" else "the prior"

    def name(answer: float) -> str:
        return f"{answer:g} or more" if answer == facts["or_more"] else f"{answer:g}"

    parts = [
        f"The released count {facts['released']:g} fits true counts from {low:g} to {name(high)}",
        f"Such a range contains the true count in at least {level:g}% of all releases, for every "
        f"true count (here {100 * facts['least_coverage']:.2f}% or more)",
        f"With {prior}, the true count lies between {inner[0]:g} and {name(inner[1])} with "
        f"probability {facts['credible_probability']:.4f}; the most probable is "
        f"{name(facts['most_probable'])}, with probability "
        f"{facts['most_probable_probability']:.3f}",
        f"Its standard error is {facts['standard_error']:.3g}",
    ]
    if facts["or_more"] is not None and facts["or_more"] in (high, inner[1]):
        parts.append(
            f"Counts above {facts['or_more']:g} were top-coded: {facts['or_more']:g} means that or "
            "more, and how much more is not known"
        )
    if facts["unbiased_estimate"] is None:
        parts.append("This mechanism has no unbiased estimate")
    else:
        parts.append(
            f"For sums and means over many groups use {facts['unbiased_estimate']:.4g}: it is "
            "right on average, and may be negative or fractional"
        )
    return ". ".join(parts) + "."
