"""How arguments that may be written in several ways are read: names, lists, one per column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import exact_epsilon
from tallyveil.request.options import ReleaseOptions

__all__ = [
    "check_epsilon",
    "check_whole",
    "list_given",
    "read_names",
    "read_per_column",
    "require_one_of",
    "require_short",
    "require_switches",
    "require_text",
    "require_writable",
    "split_names",
    "write_underscores",
]

SWITCHES = (
    "allow_duplicates",
    "allow_totals",
    "unbiased",
    "one_row",
    "separate_rows",
    "signed",
)
WRITTEN = (
    *("count", "by", "where", "keep", "dataset", "other"),
    *("hierarchy", "zero", "strata", "margins"),
)
"""Options whose words go into files."""
MOST_DIGITS = 300
"""Digits of an amount below its fraction bar."""

LEAST_EPSILON = Fraction(1, 10**8)
"""Shares of less could not be certified in 62-bit integers."""

LARGEST_WHOLE = 10**6
"""Nobody is counted more often than this."""


def read_names(given: str | Sequence[str] | None, argument: str) -> tuple[str, ...]:
    """The names of columns, each once."""
    names = tuple(str(name) for name in list_given(given))
    if len(set(names)) != len(names):
        raise ArgumentError(argument, "name every column once", got=", ".join(names))
    return names


def list_given(given: Any) -> Sequence[Any]:
    """One value or several, as a sequence; None for none."""
    if given is None:
        return ()
    return given if isinstance(given, (list, tuple)) else (given,)


def split_names(given: Any, argument: str = "") -> tuple[str, ...]:
    """Names in a sequence, or in one text with commas between them.

    With `argument`, a text without any name is refused: an empty variable in a script is not the
    same as an option that was left out.
    """
    if given is None:
        return ()
    parts = given.split(",") if isinstance(given, str) else list_given(given)
    names = tuple(str(part).strip() for part in parts if str(part).strip())
    if argument and isinstance(given, str) and not names:
        raise ArgumentError(argument, "name at least one column", got="an empty text")
    return names


def read_per_column(
    given: Any, names: tuple[str, ...], argument: str, check: Callable[[Any, str], Any]
) -> tuple[Any, ...]:
    """`given` for every count column: one for all, a sequence, or a mapping by name."""
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ArgumentError(argument, f"name exactly the columns {', '.join(names)}")
        return tuple(check(given[name], argument) for name in names)
    if isinstance(given, (list, tuple)):
        if len(given) == 1:
            return (check(given[0], argument),) * len(names)
        if len(given) != len(names):
            rule = f"be one value, or one for each of the {len(names)} count columns"
            raise ArgumentError(argument, rule, got=f"{len(given)} values")
        return tuple(check(value, argument) for value in given)
    return (check(given, argument),) * len(names)


def write_underscores(word: str) -> str:
    """A word as Python writes it, from the command line's hyphens."""
    return str(word).replace("-", "_")


def check_epsilon(value: Any, argument: str) -> Fraction:
    """An exact epsilon of at least `LEAST_EPSILON`, whose shares can be written and read again."""
    epsilon = require_short(exact_epsilon(value, argument), argument)
    if epsilon < LEAST_EPSILON:
        hint = "With less, the noise is wider than any count."
        raise ArgumentError(argument, f"be at least {float(LEAST_EPSILON):g}", value, hint)
    return epsilon


def check_whole(value: Any, argument: str) -> int:
    """A whole number from 1 to `LARGEST_WHOLE`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ArgumentError(argument, "be a whole number of at least 1", value)
    if int(value) > LARGEST_WHOLE:
        raise ArgumentError(argument, f"be at most {LARGEST_WHOLE:,}", value)
    return int(value)


def require_short(exact: Fraction, argument: str) -> Fraction:
    """`exact`, unless it has more digits than a receipt should."""
    if exact.denominator >= 10**MOST_DIGITS:
        raise ArgumentError(argument, f"be a fraction of at most {MOST_DIGITS} digits")
    return exact


def require_writable(argument: str, parts: Iterable[Any]) -> None:
    """Refuse text with halves of a character, which no encoding has."""
    try:
        for part in parts:
            str(part).encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(f"'{argument}' has a character that cannot be written.") from None


def require_one_of(argument: str, value: str, known: Sequence[str]) -> None:
    """Refuse a word that is not known."""
    if value not in known:
        raise ArgumentError(argument, f"be one of: {', '.join(known)}", value)


def require_text(options: ReleaseOptions) -> None:
    """Refuse words that no file could hold."""
    for name in WRITTEN:
        require_writable(name, list_given(getattr(options, name)))


def require_switches(options: ReleaseOptions) -> None:
    """Refuse words where only yes or no is meant: the word "no" would mean yes."""
    for name in SWITCHES:
        if not isinstance(getattr(options, name), bool):
            raise ArgumentError(name, "be True or False", getattr(options, name))
