"""Accuracy at an epsilon, and the epsilon for an accuracy, from the discrete distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, InfeasibleError, describe_kind
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import loss_table
from tallyveil.matrix import check_confidence, check_number
from tallyveil.mechanism import Mechanism, MechanismLike, as_mechanism
from tallyveil.mechanisms.additive import laplace, staircase
from tallyveil.mechanisms.exponential import exponential, fair, uniform
from tallyveil.mechanisms.geometric import geometric
from tallyveil.query import Query, require_query
from tallyveil.reading.posterior import MARGIN

Maker: TypeAlias = str | Callable[[Query, Epsilon], MechanismLike]
CLOSED_FORMS: dict[str, Callable[[Query, Epsilon], Mechanism]] = {
    "geometric": geometric,
    "fair": fair,
    "exponential": exponential,
    "laplace": laplace,
    "staircase": staircase,
    "uniform": uniform,
}
DIGITS = 6
"""Significant digits of the epsilon that `epsilon_for` returns."""

SMALLEST, LARGEST = Fraction(1, 10**6), Fraction(500)
"""The range that `epsilon_for` searches."""


def accuracy(
    query: Query,
    epsilon: Epsilon,
    confidence: float = 0.95,
    mechanism: Maker | MechanismLike = "geometric",
) -> float:
    """Find the smallest d with Pr(|released - true| <= d) >= confidence for every true answer.

    A statement about the worst true answer, from the discrete distribution itself: no
    continuous approximation, and a probability that falls short by round-off does not count.
    Costs one matrix.

    Parameters
    ----------
    query : Query
        The query of the count.
    epsilon : exact number
        The privacy loss.
    confidence : float
        Strictly between 0 and 1.
    mechanism : str, callable, Mechanism, Design or certified mechanism
        The name of a closed form ("geometric", "fair", "exponential", "laplace",
        "staircase", "uniform"), a function of (query, epsilon), or a mechanism for this
        query and epsilon.

    Returns
    -------
    float
        The distance d.

    Examples
    --------
    >>> accuracy(Query.count(40), epsilon=1.0, confidence=0.95)
    3.0
    """
    check_confidence(confidence)
    built = _make_mechanism(mechanism, query, exact_epsilon(epsilon))
    distances = _distances(built)
    order = np.argsort(distances, axis=1, kind="stable")
    ranked = np.take_along_axis(distances, order, axis=1)
    reached = np.cumsum(np.take_along_axis(built.matrix, order, axis=1), axis=1)
    rank = (reached < confidence + MARGIN).sum(axis=1, keepdims=True)
    rank = np.minimum(rank, ranked.shape[1] - 1)
    return float(np.take_along_axis(ranked, rank, axis=1).max())


def chance_within(
    query: Query, epsilon: Epsilon, within: float, mechanism: Maker | MechanismLike = "geometric"
) -> float:
    """Find Pr(|released - true| <= within) for the true answer where it is smallest.

    Parameters
    ----------
    query, epsilon, mechanism : see `accuracy`
        The query, the privacy loss, and the mechanism.
    within : float
        A distance of at least 0.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> round(chance_within(Query.count(1), epsilon="1.0986122886681098", within=0), 9)
    0.75
    """
    distance = _check_distance(within)
    return _chance(_make_mechanism(mechanism, query, exact_epsilon(epsilon)), distance)


def epsilon_for(
    query: Query, within: float, confidence: float = 0.95, mechanism: Maker = "geometric"
) -> float:
    """Find the smallest epsilon that releases within `within` of the truth with `confidence`.

    For every true answer. The result is rounded up to six significant digits and checked:
    it holds at the returned epsilon and fails one unit of the sixth digit below it (for a
    mechanism that gets closer as epsilon grows, as all closed forms do). Costs some 30
    matrices.

    Parameters
    ----------
    query : Query
        The query of the count.
    within : float
        A distance of at least 0.
    confidence : float
        Strictly between 0 and 1.
    mechanism : str or callable
        The name of a closed form, or a function of (query, epsilon).

    Returns
    -------
    float
        Epsilon. `InfeasibleError` is raised where even epsilon 500 does not reach it, and an
        `ArgumentError` where every release is that close anyway.

    Examples
    --------
    >>> epsilon_for(Query.count(40), within=3, confidence=0.95)
    0.83189
    """
    check_confidence(confidence)
    distance = _check_distance(within)
    if not isinstance(mechanism, str) and not callable(mechanism):
        raise _unknown_maker(mechanism, "be the name of a closed form or a function")

    def reaches(epsilon: Fraction) -> bool:
        built = _make_mechanism(mechanism, query, epsilon)
        return _chance(built, distance) >= confidence + MARGIN

    if reaches(SMALLEST):
        hint = f"At any epsilon {confidence:.6g} of the releases are that close."
        raise ArgumentError("within", "be a smaller distance", within, hint)
    low, high = SMALLEST, SMALLEST
    while not reaches(high):
        if high >= LARGEST:
            name = mechanism if isinstance(mechanism, str) else "the mechanism"
            raise InfeasibleError(
                f"Even epsilon {float(LARGEST):g} does not bring {name} within {distance:g} "
                f"with probability {confidence:g}."
            )
        low, high = high, min(high * 10, LARGEST)
    while True:
        # one unit of the sixth significant digit of numbers just below `high`
        unit = Fraction(10) ** (math.ceil(math.log10(float(high)) - 1e-9) - DIGITS)
        middle = math.floor((low + high) / 2 / unit) * unit
        if middle <= low:
            return float(high)
        low, high = (low, middle) if reaches(middle) else (middle, high)


def _make_mechanism(mechanism: Maker | MechanismLike, query: Query, epsilon: Fraction) -> Mechanism:
    """Return the named or given mechanism for `query` at `epsilon`."""
    require_query(query)
    if isinstance(mechanism, str):
        if mechanism not in CLOSED_FORMS:
            raise _unknown_maker(mechanism, "be a closed form or a function of (query, epsilon)")
        return CLOSED_FORMS[mechanism](query, epsilon)
    if callable(mechanism):
        return as_mechanism(mechanism(query, epsilon))
    built = as_mechanism(mechanism)
    if built.query != query:
        raise ArgumentError("mechanism", "answer the query", got=repr(built.query))
    if built.exact_epsilon != epsilon:
        got = "no epsilon" if built.epsilon is None else f"epsilon {built.epsilon:g}"
        raise ArgumentError("mechanism", f"state epsilon {float(epsilon):g}", got=got)
    return built


def _unknown_maker(value: object, rule: str) -> ArgumentError:
    """Return the error for a mechanism that is no closed form and no function."""
    closed_forms = "Closed forms: " + ", ".join(CLOSED_FORMS) + "."
    if isinstance(value, str):
        return ArgumentError("mechanism", rule, value, closed_forms)
    return ArgumentError("mechanism", rule, hint=closed_forms, got=describe_kind(value))


def _distances(mechanism: Mechanism) -> Floats:
    """Return the distance of every output from every true answer."""
    return loss_table(mechanism.query, "absolute").round(9)


def _chance(mechanism: Mechanism, within: float) -> float:
    """Return Pr(|released - true| <= within) for the true answer where it is smallest."""
    close = _distances(mechanism) <= within * (1 + 1e-12)
    return float(np.where(close, mechanism.matrix, 0.0).sum(axis=1).min())


def _check_distance(within: float) -> float:
    """Check a distance: finite and at least 0."""
    distance = check_number(within, "within")
    if not (math.isfinite(distance) and distance >= 0):
        raise ArgumentError("within", "be a distance of at least 0", within)
    return distance
