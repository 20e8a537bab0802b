"""How receipts of versions 1 and 2 divided epsilon, so that folders made then still check.

Releases are not made with these rules any more: see `tallyveil.request.budget_split`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tallyveil.request.budget_split import (
    FEWEST_ROWS,
    LARGEST_PLAIN_SHARE,
    SHARES,
    Split,
    Tradeoff,
    predict_error,
    rows_tell,
    rule_of_thumb,
)

__all__ = ["LAST_VERSION", "choose_earlier_split"]

LAST_VERSION = 2
"""The last version of the receipt whose releases were divided so."""


def choose_earlier_split(
    tradeoff: Tradeoff | None, epsilon: Fraction, *, records: int, size: int
) -> Split:
    """The split of the method preserve in a receipt of version 1 or 2.

    Without a tradeoff 0.85 times the paper's share, or none; with one, the least error plus
    tradeoff times distance, by an earlier prediction of the distance.

    >>> choose_earlier_split(None, Fraction(1, 2), records=3136, size=51).epsilon1
    Fraction(98989, 1000000)
    """
    if isinstance(tradeoff, str):
        share = _share_at_plain(epsilon, records, size)
    elif tradeoff is None:
        share = Fraction(0)
        if not rows_tell(epsilon, records, size):
            share = Fraction(round(0.85 * rule_of_thumb(float(epsilon)) * 10**6), 10**6)
    else:
        share = _least_sum(float(tradeoff), epsilon, size / records)
    return Split(epsilon * share, epsilon * (1 - share), "earlier")


def _share_at_plain(epsilon: Fraction, records: int, size: int) -> Fraction:
    if epsilon >= 2 or records < FEWEST_ROWS * size:
        return Fraction(0)
    wanted = 0.019 * math.pow(float(epsilon), -1.85) * math.tanh(epsilon)
    wanted *= 1 - float(epsilon / 2) ** 2
    return Fraction(round(1000 * min(wanted, LARGEST_PLAIN_SHARE)), 1000)


def _least_sum(tradeoff: float, epsilon: Fraction, ratio: float) -> Fraction:
    def predict(share: Fraction) -> float:
        rest = float(epsilon) * (1 - float(share))
        distance = 0.36 * math.pow(ratio, 0.25) * math.pow(_plain_error(rest), 0.95)
        if share:
            known = math.pow(float(epsilon), -0.85) * math.pow(float(share), -1 / 3)
            distance = min(distance, 0.12 * math.sqrt(ratio) * known)
        return predict_error(float(epsilon * (1 - share))) + tradeoff * distance

    return min(SHARES, key=predict)


def _plain_error(epsilon: float) -> float:
    return 1 / math.sinh(min(epsilon, 700.0))
