"""Single values of a receipt, read with suspicion: text, whole numbers, exact amounts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tallyveil.errors import PackageError
from tallyveil.exact import exact_rational

__all__ = ["read_amount", "read_text", "read_texts", "read_whole", "refusal"]

LONGEST_AMOUNT = 2000
"""How many characters an exact amount may have: more is not read at all."""


def read_text(value: Any) -> str:
    """`value` if it is text, else a `PackageError`."""
    if not isinstance(value, str):
        raise refusal("text")
    return value


def read_texts(values: Any) -> tuple[str, ...]:
    """A list of texts as a tuple, else a `PackageError`."""
    if not isinstance(values, list):
        raise refusal("a list")
    return tuple(map(read_text, values))


def read_whole(value: Any, least: int, most: int = 2**62) -> int:
    """`value` if it is a whole number in this range, else a `PackageError`."""
    if type(value) is not int or not least <= value <= most:
        raise refusal(f"a whole number from {least:,} to {most:,}")
    return int(value)


def read_amount(text: Any) -> Fraction:
    """A positive exact amount, written as the program writes it, else a `PackageError`."""
    value = exact_rational(read_text(text)) if len(read_text(text)) < LONGEST_AMOUNT else None
    if value is None or value <= 0 or str(value) != text:
        raise refusal("an exact amount above 0")
    return value


def refusal(what: str) -> PackageError:
    """What is raised where a receipt holds something else."""
    return PackageError(f"The receipt must hold {what} where it holds something else.")
