"""Method ladder: several privacy levels, each drawn from the one before."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tallyveil.certified.ladder import check_levels
from tallyveil.errors import ArgumentError
from tallyveil.release.methods.base import Method
from tallyveil.structs import set_field

__all__ = ["Ladder"]

LEAST_EPSILON = Fraction(1, 10**8)
MOST_DIGITS = 300


class Ladder(Method, frozen=True, tag="ladder"):
    """Release several privacy levels; all together cost what the least private one does.

    Attributes
    ----------
    epsilons : tuple of str
        The epsilon of each level as an exact number, strictly decreasing.
    """

    epsilons: Any

    def __post_init__(self) -> None:
        parts = self.epsilons
        levels = check_levels(parts.split(",") if isinstance(parts, str) else parts)
        short = all(level.denominator < 10**MOST_DIGITS for level in levels)
        if levels[-1] < LEAST_EPSILON or not short:
            rule = f"be at least {float(LEAST_EPSILON):g}, in at most {MOST_DIGITS} digits"
            raise ArgumentError("epsilons", rule)
        set_field(self, "epsilons", tuple(map(str, levels)))
        super().__post_init__()
        self.refuse_unbiased()

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The epsilons as numbers."""
        return tuple(map(Fraction, self.epsilons))
