"""The guarantee of a release as a sentence about one unit."""

from __future__ import annotations

import math
from fractions import Fraction

from tallyveil.budget.entries import shown_rational
from tallyveil.request.unit import PrivacyUnit

__all__ = ["LARGE_DELTA", "VERSION", "WEAK_EPSILON", "promise"]

VERSION = 1
"""Of the receipt."""

WEAK_EPSILON = 5
"""Above this the promise says itself that it is weak, and the publisher is warned."""

LARGE_DELTA = Fraction(1, 1000)
"""So for a delta above this: a release that publishes one row in a thousand as it is has it."""


def promise(
    epsilon: Fraction,
    unit: PrivacyUnit,
    delta: Fraction = Fraction(0),
    outside: str = "",
) -> str:
    """The guarantee as a sentence about one unit.

    The factor is e^epsilon, rounded up so that the sentence never promises too much. `outside` is
    what the promise does not cover.
    """
    factor = math.exp(min(float(epsilon), 100.0))
    cents = f"{math.ceil(factor * 100) / 100:.2f}".rstrip("0").rstrip(".") if factor < 1e6 else ""
    slack = f", plus at most {shown_rational(delta)} (delta)" if delta else ""
    bound = f"a factor of at most {cents}" if cents else "up to a very large factor"
    return (
        f"{unit.change} changes the probability of any outcome of this release by {bound} "
        f"(epsilon {shown_rational(epsilon)}){slack}. {_judge(epsilon, delta, unit)}"
        + (f" Outside this guarantee: {outside}." if outside else "")
    )


def _judge(epsilon: Fraction, delta: Fraction, unit: PrivacyUnit) -> str:
    """Say what that factor means: the smaller it is, the more can be said."""
    kind = unit.kind
    if delta > LARGE_DELTA:
        return (
            f"This is weak protection: with a probability of up to {shown_rational(delta)}, the "
            f"release may show whether that {kind} was counted."
        )
    if epsilon <= 1:
        absent = f"the {kind} not been included"
        if unit.neighbours == "change_one":
            absent = f"that {kind}'s data been different" if kind == "person" else "it been another"
        return (
            f"Anything an observer could learn about that {kind} from this release, they could "
            f"have learned almost as well had {absent}."
        )
    if epsilon <= WEAK_EPSILON:
        whose = "their data" if kind == "person" else "it"
        return f"What an observer learns about that {kind} may depend on {whose} to this extent."
    return (
        "This is weak protection: an observer who already knows much may learn almost with "
        f"certainty whether that {kind} was counted."
    )
