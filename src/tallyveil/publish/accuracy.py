"""How accurate a released column is, computed from public and released things only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.base import Certified
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedGeometric
from tallyveil.errors import ArgumentError
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import (
    geometric_output_distribution,
    inverse_diagonals,
    measure_errors,
)
from tallyveil.mechanisms.transport import transport
from tallyveil.publish.kinds import MethodKind
from tallyveil.query import Query

__all__ = [
    "CONFIDENCE",
    "WIDEST_PICTURE",
    "Accuracy",
    "Figures",
    "describe_published",
    "drawn_spread",
    "estimated_spread",
    "expected_accuracy",
    "geometric_accuracy",
    "matched_mechanism",
    "matrix_of",
]

CONFIDENCE = 0.95
WIDEST_PICTURE = 1001
"""Up to this many possible counts the whole matrix is built, for figures and pictures."""


@dataclass(frozen=True, eq=False)
class Accuracy:
    """How far released counts lie from true ones, for every true count 0..upper.

    `interval` has shape (upper + 1, 2). `exact` says whether the figures are those of the
    certified mechanism itself, or of the whole procedure with the released distribution
    standing in for the true one.
    """

    bias: Floats
    rmse: Floats
    interval: Floats
    exact: bool = True

    @classmethod
    def of(cls, mechanism: Mechanism, exact: bool = True) -> Accuracy:
        """The figures of one mechanism."""
        return cls(mechanism.bias(), mechanism.rmse(), mechanism.interval(CONFIDENCE), exact)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, rounded to six decimals."""
        return {
            "confidence": CONFIDENCE,
            "exact": self.exact,
            "bias": (np.round(self.bias, 6) + 0.0).tolist(),
            "rmse": np.round(self.rmse, 6).tolist(),
            "interval_low": self.interval[:, 0].astype(int).tolist(),
            "interval_high": self.interval[:, 1].astype(int).tolist(),
        }


@dataclass(frozen=True, eq=False)
class Figures:
    """What can be said of a published column from its certificates and its own histogram.

    Attributes
    ----------
    accuracy : Accuracy
        Errors by true count.
    spread : array of float or None
        Standard error of each bin of the histogram, where the range is not too wide.
    mechanism : Mechanism or None
        Probabilities of published counts given true ones, for pictures.
    properties : tuple of str
        The named properties that the certified mechanism has.
    """

    accuracy: Accuracy
    spread: Floats | None
    mechanism: Mechanism | None
    properties: tuple[str, ...]


def expected_accuracy(certified: Certified, upper: int) -> Accuracy:
    """What can be said before anything is drawn: the accuracy of the certified draw."""
    if isinstance(certified, CertifiedGeometric):
        return geometric_accuracy(upper, certified.exact_epsilon)
    return Accuracy.of(matrix_of(certified))


def matrix_of(certified: Certified) -> Mechanism:
    """The probabilities that a certified count is drawn with."""
    if isinstance(certified, (CertifiedAnswers, Ladder)):
        return certified.mechanism
    raise ArgumentError("certified", "answer a count", got=repr(certified))


def describe_published(
    kind: MethodKind,
    certified: Certified,
    distribution: Certified | None,
    upper: int,
    histogram: Integers,
) -> Figures:
    """The figures of a column; the same for who publishes it and for who checks it.

    Parameters
    ----------
    kind : MethodKind
        The method: some match ranks after drawing.
    certified : Certified
        What the counts were drawn from.
    distribution : Certified or None
        What the cumulative histogram's noise was drawn from, if there was any.
    upper : int
        The largest count.
    histogram : array of int, shape (upper + 1,)
        How many rows have each published count.
    """
    expected = expected_accuracy(certified, upper)
    narrow = upper + 1 <= WIDEST_PICTURE
    drawn = matrix_of(certified) if narrow else None
    held = () if drawn is None else tuple(sorted(n for n, has in drawn.properties().items() if has))
    if not kind.keeps_distribution:
        spread = None if drawn is None else drawn_spread(drawn, histogram)
        return Figures(expected, spread, drawn, held)
    epsilon1 = Fraction(0) if distribution is None else distribution.exact_epsilon
    spread = estimated_spread(histogram, epsilon1, certified.exact_epsilon)
    matched = matched_mechanism(upper, certified.exact_epsilon, histogram)
    accuracy = expected if matched is None else Accuracy.of(matched, exact=False)
    return Figures(accuracy, spread, matched, held)


def geometric_accuracy(upper: int, epsilon: Fraction) -> Accuracy:
    """The figures of clamped geometric noise, in O(upper) and without a matrix.

    >>> geometric_accuracy(5, Fraction(1)).interval[2].tolist()
    [0.0, 5.0]
    """
    return Accuracy(*measure_errors(upper, float(epsilon), CONFIDENCE))


def matched_mechanism(upper: int, epsilon: Fraction, histogram: Integers) -> Mechanism | None:
    """What ranking noisy counts and handing out `histogram` does to each true count.

    In a large table, matching ranks is the monotone map of the noisy counts' distribution onto the
    released distribution: the transport mechanism. None where the range is too wide.
    """
    if upper + 1 > WIDEST_PICTURE:
        return None
    shares = histogram / histogram.sum()
    return transport(Query.count(upper), epsilon, source=shares, target=shares)


def drawn_spread(mechanism: Mechanism, histogram: Integers) -> Floats:
    """Standard error of each released bin when every row is drawn by itself, shape (m,).

    sqrt(sum_d h_d M[d, j] (1 - M[d, j])), the released histogram h standing in for the true.
    """
    chance = mechanism.matrix
    spread: Floats = np.sqrt(histogram @ (chance * (1 - chance)))
    return spread


def estimated_spread(histogram: Integers, epsilon1: Fraction, epsilon2: Fraction) -> Floats:
    """Standard error of each bin of a histogram estimated from both private draws, shape (n,).

    Stage one gives every bin the variance 2 s^2, s^2 = 2a/(1-a)^2 (its two cumulative sums);
    undoing the noise of stage two gives sum_k Ginv[k, j]^2 E[K_k] - h_j, with Ginv the
    tridiagonal inverse of the geometric matrix. The two are independent and are weighted by
    their precisions. Shape constraints only make the estimate better.
    """
    records = float(histogram.sum())
    drawn = geometric_output_distribution(histogram / records, float(epsilon2)) * records
    own, beside = inverse_diagonals(len(histogram), float(epsilon2))
    around = beside**2 * drawn
    variance = own**2 * drawn + np.append(around[1:], 0.0) + np.append(0.0, around[:-1]) - histogram
    variance = np.maximum(variance, 1e-12)
    if epsilon1 > 0:
        b = math.exp(-float(epsilon1))
        variance = 1 / (1 / variance + 1 / (4 * b / math.expm1(-float(epsilon1)) ** 2))
    spread: Floats = np.sqrt(variance)
    return spread
