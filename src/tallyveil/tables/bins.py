"""Public ranges of a number, such as ages from 18 to 44, as categories to count by."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from tallyveil.errors import ArgumentError

__all__ = ["Bins", "read_bins"]

RULE = "be a column and its rising limits, such as age=0,18,45,65"


@dataclass(frozen=True)
class Bins:
    """Ranges that begin at each of the rising `limits`; the last has no end.

    >>> ages = Bins((0.0, 18.0, 45.0, 65.0))
    >>> ages.labels, ages.find("44.5"), ages.find("-1"), ages.find("old")
    (('0-17', '18-44', '45-64', '65+'), '18-44', '', '')
    """

    limits: tuple[float, ...]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label of each range: whole numbers by first and last, others by where they end."""
        whole = all(limit == int(limit) for limit in self.limits)
        return (
            *(_name_whole(*ends) if whole else _name(*ends) for ends in pairwise(self.limits)),
            f"{self.limits[-1]:.15g}+",
        )

    def write(self) -> list[float]:
        """The limits for a file, whole ones as whole numbers."""
        return [int(limit) if limit == int(limit) else limit for limit in self.limits]

    def find(self, text: str) -> str:
        """The label of the range that a number lies in; empty below the first and for no number."""
        try:
            number = float(text)
        except ValueError:
            return ""
        at = bisect_right(self.limits, number) - 1
        return self.labels[at] if at >= 0 and math.isfinite(number) else ""


def _name_whole(low: float, high: float) -> str:
    return f"{int(low)}" if high == low + 1 else f"{int(low)}-{int(high) - 1}"


def _name(low: float, high: float) -> str:
    return f"{low:.15g} to below {high:.15g}"


def read_bins(given: Any) -> dict[str, Bins]:
    """Read ranges by column: a mapping of column to limits, or texts such as "age=0,18,65"."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        parts = [(str(name), limits) for name, limits in given.items()]
    else:
        texts = [given] if isinstance(given, str) else list(given)
        parts = [_split(text) for text in texts]
    found = {name: Bins(_read_limits(name, limits)) for name, limits in parts}
    if len(found) != len(parts):
        raise ArgumentError("bins", "name every column once")
    return found


def _split(text: Any) -> tuple[str, Sequence[str]]:
    name, sign, limits = str(text).rpartition("=")
    if not sign or not name.strip():
        raise ArgumentError("bins", RULE, text)
    return name.strip(), limits.split(",")


def _read_limits(name: str, limits: Any) -> tuple[float, ...]:
    try:
        numbers = tuple(float(limit) for limit in limits)
    except (TypeError, ValueError):
        numbers = ()
    rising = all(low < high for low, high in pairwise(numbers))
    if not numbers or not rising or not all(map(math.isfinite, numbers)):
        raise ArgumentError("bins", RULE, got=f"limits of {name!r} that do not rise")
    return numbers
