"""Public categories: which rows a table has is decided by a public list, never by the data.

A category that appears only because somebody is in it gives that person away. So microdata
are counted into a list that the publisher names, and every category of the list is released,
with its noise, whether or not anybody is in it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.counts import Counts
from tallyveil.tables.delimited import read_delimited
from tallyveil.tables.source import Table

__all__ = [
    "Condition",
    "Label",
    "count_rows",
    "parse_conditions",
    "public_categories",
    "require_distinct",
    "sorted_order",
]

Label = tuple[str, ...]
CONDITION = re.compile(
    r"\s*(?P<column>[^\s<>=!].*?)\s*(?P<sign>==|!=|>=|<=|=|>|<)\s*(?P<value>.*?)\s*"
)


@dataclass(frozen=True)
class Condition:
    """One public condition on a row of microdata, such as ``age >= 18``."""

    column: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.value}"

    def holds(self, table: Table) -> NDArray[np.bool_]:
        """Which rows meet it; a row without a value meets only ``!=``.

        Numbers are compared as numbers where both sides are numbers, everything else as
        text (so ISO dates compare as dates).
        """
        if self.column not in table.names:
            raise TableError(f"The condition {str(self)!r} names a column that is not there.")
        return np.array([self._met(label.strip()) for label in table.labels(self.column)])

    def _met(self, label: str) -> bool:
        if not label:
            return self.sign == "!="
        left, right = _number(label), _number(self.value)
        pair: tuple[Any, Any] = (label, self.value)
        if left is not None and right is not None:
            pair = (left, right)
        elif right is not None and self.sign in ("<", "<=", ">", ">="):
            return False
        first, second = pair
        answers: dict[str, bool] = {
            "==": first == second,
            "!=": first != second,
            "<": first < second,
            "<=": first <= second,
            ">": first > second,
            ">=": first >= second,
        }
        return answers[self.sign]


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Conditions written as ``column sign value``; all of them must hold.

    >>> [str(condition) for condition in parse_conditions(["age>=18", "result = 'positive'"])]
    ['age >= 18', 'result == positive']
    """
    found = []
    for text in texts:
        match = CONDITION.fullmatch(text)
        if match is None or not match["value"]:
            raise ArgumentError(
                "where", "be a condition such as 'age >= 18'", text,
                "Known signs: == != < <= > >=. Repeat the option for more conditions.",
            )  # fmt: skip
        value = match["value"]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        sign = "==" if match["sign"] == "=" else match["sign"]
        found.append(Condition(match["column"], sign, value))
    return tuple(found)


def public_categories(categories: Any, by: Sequence[str]) -> tuple[Label, ...]:
    """The public list as one label per category, in its own order.

    Parameters
    ----------
    categories : for one column a sequence of values, "a,b,c", or a file with one value per
        line; for several columns a mapping of column to values (every combination), a
        sequence of tuples, or a CSV file whose header names the columns.
    by : the columns that the labels belong to

    >>> public_categories(["N", "S"], ["region"])
    (('N',), ('S',))
    >>> public_categories({"sex": ["f", "m"], "region": ["N"]}, ["region", "sex"])
    (('N', 'f'), ('N', 'm'))
    """
    if isinstance(categories, Path) or (isinstance(categories, str) and "," not in categories):
        labels = _from_file(Path(categories), by)
    elif isinstance(categories, str):
        labels = [(part.strip(),) for part in categories.split(",")]
    elif isinstance(categories, Mapping):
        labels = _crossed(categories, by)
    else:
        labels = [
            tuple(str(part) for part in one) if isinstance(one, (tuple, list)) else (str(one),)
            for one in categories
        ]
    if not labels or any(len(label) != len(by) for label in labels):
        raise ArgumentError("categories", f"give a value for each of: {', '.join(by)}")
    repeated = _first_repeat(labels)
    if repeated is not None:
        named = ", ".join(labels[repeated])
        raise ArgumentError("categories", "name every category once", named)
    return tuple(labels)


def _crossed(categories: Mapping[Any, Any], by: Sequence[str]) -> list[Label]:
    if set(categories) != set(by):
        raise ArgumentError("categories", f"name exactly the columns {', '.join(by)}")
    return list(itertools.product(*([str(value) for value in categories[name]] for name in by)))


def _from_file(path: Path, by: Sequence[str]) -> list[Label]:
    if not path.is_file():
        raise ArgumentError(
            "categories", "be a file that exists, or values separated by commas", str(path)
        )
    if len(by) > 1 or path.suffix.lower() in (".csv", ".tsv"):
        table = read_delimited(path)
        if set(by) <= set(table.names):
            return list(zip(*(table.labels(name) for name in by), strict=True))
        if len(by) > 1:
            raise ArgumentError("categories", f"have a header naming {', '.join(by)}", path.name)
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return [(line.strip(),) for line in lines if line.strip() and line.strip() != by[0]]


def count_rows(
    table: Table, by: Sequence[str], categories: Sequence[Label], where: Sequence[Condition]
) -> Counts:
    """How many rows of the microdata fall into each category; shape (categories,)."""
    _require_columns(table, by)
    at = {label: index for index, label in enumerate(categories)}
    kept = np.ones(table.rows, dtype=bool)
    for condition in where:
        kept &= condition.holds(table)
    labels = zip(*(table.labels(name) for name in by), strict=True)
    index = np.zeros(table.rows, dtype=np.int64)
    for row, label in enumerate(labels):
        if not kept[row]:
            continue
        found = at.get(label)
        if found is None:
            raise TableError(
                f"Row {row + 1} has a category that is not in the public list. Extend the list, "
                "or leave such rows out with a condition (--where)."
            )
        index[row] = found
    return np.bincount(index[kept], minlength=len(categories)).astype(np.int64)


def require_distinct(table: Table, keys: Sequence[str]) -> None:
    """Raise a `TableError` if two rows carry the same public labels."""
    if not keys:
        return
    repeat = _first_repeat(list(zip(*(table.labels(name) for name in keys), strict=True)))
    if repeat is not None:
        raise TableError(
            f"Row {repeat + 1} repeats the category of an earlier row ({', '.join(keys[:4])}"
            f"{', ...' if len(keys) > 4 else ''}): one person could be in both. Merge the rows, "
            "or allow duplicates if every row is a unit of its own."
        )


def sorted_order(
    table: Table, keys: Sequence[str], start: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """The row order by the public columns `keys`: numbers by size, text by letter.

    Rows with the same labels stand as in `start`, by default as in the table.
    """
    columns = []
    for name in keys:
        labels = table.labels(name)
        numbers = [_number(label) for label in labels]
        numeric = all(number is not None for number in numbers)
        columns.append(numbers if numeric else list(labels))
    rows = list(zip(*columns, strict=True))
    first = range(table.rows) if start is None else start.tolist()
    return np.array(sorted(first, key=rows.__getitem__), dtype=np.int64)


def _first_repeat(labels: Sequence[Label]) -> int | None:
    seen: set[Label] = set()
    for row, label in enumerate(labels):
        if label in seen:
            return row
        seen.add(label)
    return None


def _require_columns(table: Table, names: Sequence[str]) -> None:
    for name in names:
        if name not in (*table.names, *table.index_names):
            raise TableError(f"There is no column {name!r} to count by.")


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
