"""Reading released numbers: an interval and a standard error for each, and words for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, InfeasibleError
from tallyveil.mechanism import Mechanism
from tallyveil.prior import Prior
from tallyveil.reading.confidence import confidence_sets
from tallyveil.reading.posterior import (
    central_interval,
    output_positions,
    posterior,
    posterior_laws,
)
from tallyveil.reading.unbiased import unbiased

__all__ = ["Interpretation", "interpret", "reading"]


@dataclass(frozen=True, eq=False)
class Interpretation:
    """What each released value of a column says about its true answer.

    Attributes
    ----------
    released : the values, shape (rows,)
    low, high : without a prior, the lowest and highest true answer that the value does not
        contradict (`confidence_sets`: right at least `confidence` of the time whatever the
        truth is); with a prior, the central credible interval
    standard_error : standard deviation of the true answer given the value, under the prior
        (uniform if none was given)
    confidence : the level of low and high
    kind : "confidence" without a prior, "credible" with one
    """

    released: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    confidence: float
    kind: str


def interpret(
    mechanism: Mechanism, released: ArrayLike, prior: Prior = None, confidence: float = 0.95
) -> Interpretation:
    """Low, high and standard error for every released value, by one lookup per value.

    Costs O(n m) for the tables, then O(1) per value. A value the mechanism cannot report,
    or not under the prior, is an error.

    >>> from tallyveil import Query, geometric
    >>> reading = interpret(geometric(Query.count(20), epsilon=1.0), [7, 0])
    >>> reading.low.tolist(), reading.high.tolist(), round(float(reading.standard_error[0]), 2)
    ([4.0, 0.0], [10.0, 3.0], 1.35)
    """
    values = np.atleast_1d(np.asarray(released))
    at = output_positions(mechanism, values)
    laws = posterior_laws(mechanism, prior)
    if not np.isfinite(laws[at]).all():
        impossible = values[~np.isfinite(laws[at]).all(axis=1)][0]
        raise ArgumentError("released", "be possible under the prior", float(impossible))
    answers = mechanism.query.inputs.astype(float)
    laws = np.nan_to_num(laws)
    mean = laws @ answers
    spread = np.sqrt(np.maximum(0.0, (laws * (answers - mean[:, None]) ** 2).sum(axis=1)))
    if prior is None:
        sets = confidence_sets(mechanism, confidence)
        low, high, kind = sets.low, sets.high, "confidence"
    else:
        first, last = central_interval(laws, confidence)
        last = np.minimum(last, len(answers) - 1)
        first = np.minimum(first, last)
        low, high, kind = answers[first], answers[last], "credible"
    return Interpretation(values.astype(float), low[at], high[at], spread[at], confidence, kind)


def reading(
    mechanism: Mechanism, released: float, prior: Prior = None, confidence: float = 0.95
) -> dict[str, Any]:
    """Everything about one released value, JSON-ready, with a paragraph in plain words.

    >>> from tallyveil import Query, geometric
    >>> text = reading(geometric(Query.count(20), epsilon=1.0), 7)["words"]
    >>> text.split(". ")[0]
    'The released answer 7 fits true answers from 4 to 10'
    """
    belief = posterior(mechanism, released, prior)
    sets = confidence_sets(mechanism, confidence)
    low, high = sets.of(released)
    credible = belief.interval(confidence)
    try:
        estimator = unbiased(mechanism, None)
        at = int(output_positions(mechanism, [released])[0])
        estimate: float | None = float(estimator.values[at])
        variance: float | None = float(estimator.variance_estimates[at])
    except InfeasibleError:
        estimate = variance = None
    found = {
        "released": belief.released,
        "confidence": confidence,
        "confidence_set": [low, high],
        "least_coverage": float(sets.coverage.min()),
        "credible_interval": list(credible),
        "credible_probability": belief.probability(*credible),
        "most_probable": belief.mode,
        "most_probable_probability": float(belief.law.max()),
        "posterior_mean": belief.mean,
        "standard_error": belief.standard_deviation,
        "unbiased_estimate": estimate,
        "unbiased_variance": variance,
        "prior": "uniform" if prior is None else "given",
    }
    return {**found, "words": _words(found)}


def _words(found: dict[str, Any]) -> str:
    (low, high), level = found["confidence_set"], 100 * found["confidence"]
    inner = found["credible_interval"]
    prior = "all answers equally likely beforehand" if found["prior"] == "uniform" else "the prior"
    parts = [
        f"The released answer {found['released']:g} fits true answers from {low:g} to {high:g}",
        f"A range made in this way contains the true answer in at least {level:g} % of all "
        f"releases, whatever the truth is (here {100 * found['least_coverage']:.2f} % or more)",
        f"With {prior}, the true answer lies between {inner[0]:g} and {inner[1]:g} with "
        f"probability {found['credible_probability']:.4f}; the most probable is "
        f"{found['most_probable']:g}, with probability {found['most_probable_probability']:.3f}",
        f"Its standard error is {found['standard_error']:.3g}",
    ]
    if found["unbiased_estimate"] is None:
        parts.append("This mechanism has no unbiased estimate")
    else:
        parts.append(
            f"For sums and means over many groups count it as {found['unbiased_estimate']:.4g}: "
            "that is right on average, and may be negative or fractional"
        )
    return ". ".join(parts) + "."
