"""Method preserve: noisy rows are ranked and receive counts with the estimated distribution."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from tallyveil.errors import ArgumentError
from tallyveil.exact import exact_rational
from tallyveil.release.methods.base import Method
from tallyveil.structs import set_field

__all__ = ["PLAIN", "Preserve", "Tradeoff", "read_priority"]

Tradeoff: TypeAlias = Fraction | str
"""What one unit of distribution error is worth in errors of single counts, or `PLAIN`."""

PLAIN = "plain"
"""The tradeoff at which single counts err as much as plain noise would, and no more."""

PRIORITIES: Mapping[str, Tradeoff | None] = {
    "distribution": None,
    "balanced": PLAIN,
    "counts": Fraction(1, 4),
}
"""The tradeoffs that have names; None keeps exactly the estimated distribution."""

LARGEST_TRADEOFF = 1000
MOST_DIGITS = 300


class Preserve(Method, frozen=True, tag="preserve"):
    """Keep the distribution of counts.

    Attributes
    ----------
    priority : str or number
        What matters most: "distribution", "balanced" (single counts err about as much as plain
        noise would) or "counts"; or how much error of single counts one unit of distribution error
        is worth. At 0 each row gets its best guess; from 1 on counts have exactly the estimated
        distribution.
    """

    priority: str | int | float = "distribution"

    def __post_init__(self) -> None:
        set_field(self, "priority", read_priority(self.priority))
        super().__post_init__()

    @property
    def tradeoff(self) -> Tradeoff | None:
        """The priority as a number, `PLAIN`, or None for the whole distribution."""
        name = str(self.priority)
        return PRIORITIES[name] if name in PRIORITIES else Fraction(name)


def read_priority(priority: str | int | float | Fraction) -> str:
    """Return a priority in its one form: a name, or an exact number as text.

    >>> read_priority(0.25), read_priority("balanced")
    ('1/4', 'balanced')
    """
    names = ", ".join(PRIORITIES)
    if isinstance(priority, str) and priority in PRIORITIES:
        return priority
    if isinstance(priority, str) and not any(symbol.isdigit() for symbol in priority):
        raise ArgumentError("priority", f"be one of {names}, or a number", priority)
    tradeoff = exact_rational(priority, "priority")
    if not 0 <= tradeoff <= LARGEST_TRADEOFF or tradeoff.denominator >= 10**MOST_DIGITS:
        rule = f"be one of {names}, or lie in 0..{LARGEST_TRADEOFF} in at most {MOST_DIGITS} digits"
        raise ArgumentError("priority", rule, priority)
    return str(tradeoff)
