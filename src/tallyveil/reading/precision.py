"""From a wanted accuracy to epsilon and back, exactly on the discrete law."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ArgumentError, InfeasibleError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import loss_table
from tallyveil.mechanism import Mechanism, check_confidence
from tallyveil.mechanisms.additive import laplace, staircase
from tallyveil.mechanisms.exponential import exponential
from tallyveil.mechanisms.fair import fair, uniform
from tallyveil.mechanisms.geometric import geometric
from tallyveil.query import Query
from tallyveil.reading.posterior import MARGIN

__all__ = ["accuracy", "chance_within", "epsilon_for"]

Maker: TypeAlias = str | Callable[[Query, Epsilon], Mechanism]
CLOSED_FORMS: dict[str, Callable[[Query, Epsilon], Mechanism]] = {
    "geometric": geometric,
    "fair": fair,
    "exponential": exponential,
    "laplace": laplace,
    "staircase": staircase,
    "uniform": uniform,
}
DIGITS = 6
SMALLEST, LARGEST = Fraction(1, 10**6), Fraction(500)


def accuracy(
    query: Query, epsilon: Epsilon, confidence: float = 0.95, mechanism: Maker = "geometric"
) -> float:
    """The smallest d with Pr(|released - true| <= d) >= confidence for every true answer.

    Parameters
    ----------
    query, epsilon : what is asked, and the privacy loss
    confidence : strictly between 0 and 1
    mechanism : the name of a closed form ("geometric", "fair", "exponential", ...) or a
        function of (query, epsilon)

    A statement about the worst true answer, from the discrete law itself: no continuous
    approximation, and a probability that falls short by round-off does not count. Costs one
    matrix.

    >>> accuracy(Query.count(40), epsilon=1.0, confidence=0.95)
    3.0
    """
    check_confidence(confidence)
    return _radius(_made(mechanism, query, exact_epsilon(epsilon)), confidence)


def chance_within(
    query: Query, epsilon: Epsilon, within: float, mechanism: Maker = "geometric"
) -> float:
    """Pr(|released - true| <= within) for the true answer where it is smallest.

    >>> round(chance_within(Query.count(1), epsilon="1.0986122886681098", within=0), 9)
    0.75
    """
    _check_within(within)
    return _chance(_made(mechanism, query, exact_epsilon(epsilon)), within)


def epsilon_for(
    query: Query, within: float, confidence: float = 0.95, mechanism: Maker = "geometric"
) -> float:
    """The smallest epsilon that releases within `within` of the truth with `confidence`.

    Whatever the true answer. The result is rounded up to six significant digits and checked:
    it holds at the returned epsilon and fails one unit of the sixth digit below it (for a
    mechanism that gets closer as epsilon grows, as all closed forms do). Some 30 matrices.

    Raises `InfeasibleError` where even epsilon 500 does not reach it, and an `ArgumentError`
    where every release is that close anyway.

    >>> epsilon_for(Query.count(40), within=3, confidence=0.95)
    0.83189
    """
    check_confidence(confidence)
    _check_within(within)

    def enough(epsilon: Fraction) -> bool:
        return _chance(_made(mechanism, query, epsilon), within) >= confidence + MARGIN

    if enough(SMALLEST):
        raise ArgumentError(
            "within", "ask for something", within,
            f"At any epsilon {confidence:.6g} of the releases are that close.",
        )  # fmt: skip
    low, high = SMALLEST, SMALLEST
    while not enough(high):
        if high >= LARGEST:
            raise InfeasibleError(
                f"Even epsilon {float(LARGEST):g} does not bring {mechanism} within {within:g} "
                f"with probability {confidence:g}."
            )
        low, high = high, min(high * 10, LARGEST)
    while True:
        unit = _unit(high)
        middle = math.floor((low + high) / 2 / unit) * unit
        if middle <= low:
            return float(high)
        low, high = (low, middle) if enough(middle) else (middle, high)


def _made(mechanism: Maker, query: Query, epsilon: Fraction) -> Mechanism:
    if callable(mechanism):
        return mechanism(query, epsilon)
    if mechanism not in CLOSED_FORMS:
        known = "Closed forms: " + ", ".join(CLOSED_FORMS) + "."
        rule = "be a closed form or a function of (query, epsilon)"
        raise ArgumentError("mechanism", rule, mechanism, known)
    return CLOSED_FORMS[mechanism](query, epsilon)


def _errors(mechanism: Mechanism) -> NDArray[np.float64]:
    distance: NDArray[np.float64] = loss_table(mechanism.query, "absolute")
    return distance.round(9)


def _chance(mechanism: Mechanism, within: float) -> float:
    close = _errors(mechanism) <= within * (1 + 1e-12)
    return float(np.where(close, mechanism.matrix, 0.0).sum(axis=1).min())


def _radius(mechanism: Mechanism, confidence: float) -> float:
    """The largest over true answers of the distance at which the chance is reached."""
    distance = _errors(mechanism)
    order = np.argsort(distance, axis=1, kind="stable")
    ranked = np.take_along_axis(distance, order, axis=1)
    reached = np.cumsum(np.take_along_axis(mechanism.matrix, order, axis=1), axis=1)
    at = (reached < confidence + MARGIN).sum(axis=1)
    at = np.minimum(at, ranked.shape[1] - 1)
    return float(np.take_along_axis(ranked, at[:, None], axis=1).max())


def _check_within(within: float) -> None:
    if not (math.isfinite(within) and within >= 0):
        raise ArgumentError("within", "be a distance of at least 0", within)


def _unit(epsilon: Fraction) -> Fraction:
    """One unit of the sixth significant digit of numbers just below `epsilon`."""
    exponent = math.ceil(math.log10(float(epsilon)) - 1e-9) - DIGITS
    return Fraction(10) ** exponent
