"""Upper bounds of counts: narrow, wide, or none."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from tallyveil.errors import ArgumentError

WIDE = 10**6
"""Above this upper bound noise is certified on all whole numbers, and public thresholds replace
single counts: nothing takes room for counts that do not occur."""

WIDEST_MATRIX = 5_000
"""The largest upper bound where every count has a row of a table of probabilities."""

NO_UPPER = 10**9
"""Stands for an upper bound where none was given: the ceiling, which is public. Larger counts
count as this."""

OPEN_RANGE = f"from 0, with {NO_UPPER:,} for all above"
SIGNED_RANGE = f"of any sign, true ones above {NO_UPPER:,} taken as that"
"""Counts without an upper bound, in words."""

LARGEST_UPPER = NO_UPPER - 1


def check_upper(value: Any, argument: str) -> int:
    """A public upper bound, `NO_UPPER` for none."""
    if value is None:
        return NO_UPPER
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        hint = "It is the largest count that can be published, and it must be publicly known."
        raise ArgumentError(argument, "be a whole number of at least 1", value, hint)
    if int(value) > LARGEST_UPPER:
        hint = f"Left out, counts up to {NO_UPPER:,} are published, and larger ones count as that."
        raise ArgumentError(argument, f"be at most {LARGEST_UPPER:,}", value, hint)
    return int(value)
