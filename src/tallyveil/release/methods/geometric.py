"""Method geometric: two-sided geometric noise on every count."""

from __future__ import annotations

from tallyveil.errors import UsageError
from tallyveil.release.methods.base import Method

__all__ = ["Geometric"]


class Geometric(Method, frozen=True, tag="geometric"):
    """Add two-sided geometric noise to every count.

    Attributes
    ----------
    signed : bool
        Whether counts are published as drawn, negative ones too: each value and each sum of values
        is then right on average. There is no upper bound then.
    """

    signed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.signed and self.unbiased:
            raise UsageError("Signed counts are unbiased already: leave out 'unbiased'.")
