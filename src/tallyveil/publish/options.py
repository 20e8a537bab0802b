"""What the publisher asks for: every word of it is public.

A request is checked and made definite before the table is opened. It holds one upper bound
and one epsilon per count column, whichever way they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from tallyveil.errors import ArgumentError
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.loss import Loss
from tallyveil.properties import check_names
from tallyveil.query import Query
from tallyveil.tables.categories import Condition, Label, parse_conditions, public_categories

__all__ = ["METHODS", "ColumnRequest", "Request", "make_request"]

METHODS = ("auto", "preserve", "geometric", "fair", "design")
NEIGHBOURS = ("add_remove", "change_one")
ABOVE = ("top_code", "refuse")
ORDERS = ("input", "sorted")
COUNT_OF_ROWS = "count"
"""The name of the column that microdata are counted into, and of a plain array."""

PerColumn: TypeAlias = Any  # one value for all count columns, a sequence, or a mapping


@dataclass(frozen=True)
class ColumnRequest:
    """One count column: its public range (None: to be found privately) and its epsilon."""

    name: str
    upper: int | None
    epsilon: Fraction


@dataclass(frozen=True)
class Request:
    """A checked request; see `tallyveil.privatize` for what each part means."""

    columns: tuple[ColumnRequest, ...]
    method: str
    why: str
    loss: Loss
    properties: tuple[str, ...]
    neighbours: str
    contributions: int
    above: str
    upper_epsilon: Fraction | None
    by: tuple[str, ...]
    where: tuple[Condition, ...]
    categories: tuple[Label, ...]
    order: str
    keep: tuple[str, ...] | None
    drop: tuple[str, ...]
    allow_duplicates: bool
    microdata: bool

    @property
    def multiplier(self) -> int:
        """How many cell changes one person can make: what every epsilon is multiplied with.

        A person in up to k cells moves k of them (group privacy); changing one record
        instead of adding or removing it moves two cells for each.
        """
        return self.contributions * (2 if self.neighbours == "change_one" else 1)


def make_request(
    *,
    count: str | Sequence[str] | None,
    upper: PerColumn,
    epsilon: PerColumn = None,
    within: float | None = None,
    confidence: float = 0.95,
    method: str | Path = "auto",
    loss: Loss = "absolute",
    properties: Sequence[str] | str = (),
    neighbours: str = "add_remove",
    contributions: int = 1,
    above: str = "top_code",
    upper_epsilon: Epsilon | None = None,
    by: str | Sequence[str] | None = None,
    where: str | Sequence[str] = (),
    categories: Any = None,
    order: str = "input",
    keep: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    allow_duplicates: bool = False,
    array: bool = False,
) -> Request:
    """Check everything that can be checked without the table."""
    _require_one_of("neighbours", neighbours, NEIGHBOURS)
    _require_one_of("above", above.replace("-", "_"), ABOVE)
    _require_one_of("order", order, ORDERS)
    groups = _names(by, "by")
    counted = _names(count, "count")
    microdata = bool(groups) and not counted
    if not counted and not array and not microdata:
        raise ArgumentError(
            "count", "name the column of counts", None,
            "For microdata, one row per person, name the columns to count by.",
        )  # fmt: skip
    if set(groups) & set(counted):
        raise ArgumentError("by", "name public columns, not a column of counts")
    names = counted or (COUNT_OF_ROWS,)
    if microdata and categories is None:
        raise ArgumentError(
            "categories", "list the public categories when microdata are counted", None,
            "A category that appears only because somebody is in it gives that person away.",
        )  # fmt: skip
    if (where or categories is not None) and not groups:
        raise ArgumentError("by", "name the category columns that the other options refer to")
    if where and not microdata:
        raise ArgumentError("where", "be left out unless microdata are counted (by without count)")
    uppers = _per_column(upper, names, "upper", _upper)
    if None in uppers and upper_epsilon is None:
        raise ArgumentError(
            "upper_epsilon", "say how much finding the upper bound may cost", None,
            "For example 0.1; or give upper, if a bound is publicly known.",
        )  # fmt: skip
    chosen, why = _method(method), "asked for"
    if within is not None and chosen == "auto":
        chosen, why = "geometric", "it keeps the wanted accuracy for every true count"
    if within is None:
        epsilons = _given_epsilons(epsilon, names)
    else:
        epsilons = _solved_epsilons(epsilon, within, confidence, chosen, uppers)
    return Request(
        tuple(map(ColumnRequest, names, uppers, epsilons)),
        chosen,
        why,
        loss,
        check_names(properties),
        neighbours,
        _contributions(contributions),
        above.replace("-", "_"),
        exact_epsilon(upper_epsilon, "upper_epsilon") if None in uppers else None,  # type: ignore[arg-type]
        groups,
        parse_conditions([where] if isinstance(where, str) else where),
        () if categories is None else public_categories(categories, groups),
        order,
        None if keep is None else _names(keep, "keep"),
        _names(drop, "drop"),
        allow_duplicates,
        microdata,
    )


def _given_epsilons(epsilon: PerColumn, names: tuple[str, ...]) -> tuple[Fraction, ...]:
    if epsilon is None:
        raise ArgumentError(
            "epsilon", "be given, or 'within' instead of it", None,
            "Smaller is more private; 1.0 is a usual start.",
        )  # fmt: skip
    return _per_column(epsilon, names, "epsilon", exact_epsilon)


def _solved_epsilons(
    epsilon: PerColumn,
    within: float,
    confidence: float,
    method: str,
    uppers: tuple[int | None, ...],
) -> tuple[Fraction, ...]:
    """The smallest epsilon of each column that is accurate enough, whatever the true count."""
    from tallyveil.reading.precision import epsilon_for

    if epsilon is not None:
        raise ArgumentError("epsilon", "be left out when 'within' is given")
    if method not in ("geometric", "fair"):
        raise ArgumentError(
            "within", "be used with the methods geometric or fair", method,
            "They alone can promise an accuracy for every true count beforehand.",
        )  # fmt: skip
    found = []
    for upper in uppers:
        if upper is None:
            raise ArgumentError("upper", "be a number when 'within' is given", "auto")
        wanted = epsilon_for(Query.count(upper), within, confidence, mechanism=method)
        found.append(exact_epsilon(wanted))
    return tuple(found)


def _per_column(
    given: PerColumn, names: tuple[str, ...], argument: str, checked: Callable[[Any, str], Any]
) -> tuple[Any, ...]:
    """`given` for every count column: one for all, a sequence, or a mapping by name."""
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ArgumentError(argument, f"name exactly the columns {', '.join(names)}")
        return tuple(checked(given[name], argument) for name in names)
    if isinstance(given, (list, tuple)):
        if len(given) == 1:
            return (checked(given[0], argument),) * len(names)
        if len(given) != len(names):
            rule = f"be one value, or one for each of the {len(names)} count columns"
            raise ArgumentError(argument, rule, f"{len(given)} values")
        return tuple(checked(value, argument) for value in given)
    return (checked(given, argument),) * len(names)


def _upper(value: Any, argument: str) -> int | None:
    if value == "auto":
        return None
    rule = "be a whole number of at least 1, or 'auto'"
    hint = "It is the largest count that can be published, and it must be publicly known."
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ArgumentError(argument, rule, value, hint)
    if int(value) > 10**6:
        raise ArgumentError(argument, "be at most 1,000,000", value)
    return int(value)


def _names(given: str | Sequence[str] | None, argument: str) -> tuple[str, ...]:
    if given is None:
        return ()
    several = given if isinstance(given, (list, tuple)) else (given,)
    names = tuple(str(name) for name in several)
    if len(set(names)) != len(names):
        raise ArgumentError(argument, "name every column once", ", ".join(names))
    return names


def _method(method: str | Path) -> str:
    text = str(method)
    if text in METHODS:
        return text
    if not Path(text).is_file():
        rule = f"be one of {', '.join(METHODS)}, or the path of a mechanism file"
        raise ArgumentError("method", rule, text)
    return text


def _contributions(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ArgumentError("contributions", "be a whole number of at least 1", value)
    return int(value)


def _require_one_of(argument: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise ArgumentError(argument, f"be one of: {', '.join(known)}", value)
