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
    shown = cents or "a very large number"
    return (
        f"{unit.alternative}, every possible outcome of this release stays as likely as "
        f"before, up to a factor of {shown} (epsilon {shown_rational(epsilon)}){_add(delta)}"
        f"{_judge(epsilon, delta, unit.kind)}"
        + (f" Outside this promise: {outside}." if outside else "")
    )


def _add(delta: Fraction) -> str:
    if not delta:
        return ""
    return f" and an added probability of at most {shown_rational(delta)} (delta)"


def _judge(epsilon: Fraction, delta: Fraction, kind: str) -> str:
    """What that factor means: the smaller it is, the more can be said."""
    if delta > LARGE_DELTA:
        return (
            f". That is weak protection: with a chance of up to {shown_rational(delta)} the "
            f"release may show whether that {kind} was counted."
        )
    if epsilon <= 1:
        return (
            f". Whatever anyone concludes about that {kind} from it, they could have concluded "
            f"nearly as well without {'them' if kind == 'person' else 'it'}."
        )
    if epsilon <= WEAK_EPSILON:
        whose = "their data" if kind == "person" else "it"
        return f". What anyone concludes about that {kind} can rest on {whose} to that extent."
    return (
        ". That is weak protection: somebody who knows much already may learn from it, nearly for "
        f"certain, whether that {kind} was counted."
    )
