"""Public conditions on rows of microdata, such as ``age >= 18``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.arrays import Mask
from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.base import Table

__all__ = ["Condition", "parse_conditions"]

CONDITION = re.compile(
    r"\s*(?P<column>[^\s<>=!].*?)\s*(?P<sign>==|!=|>=|<=|=|>|<)\s*(?P<value>.*?)\s*"
)
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """One public condition on a row of microdata, such as ``age >= 18``."""

    column: str
    sign: str
    value: str

    def __str__(self) -> str:
        return f"{self.column} {self.sign} {self.value}"

    def holds(self, table: Table) -> Mask:
        """Find the rows that meet the condition; a row without a value meets only ``!=``.

        Numbers are compared as numbers where both sides are numbers, everything else as text (so
        ISO dates compare as dates).
        """
        self.require_column(table)
        column = table.codes(self.column)
        right = _parse_number(self.value)
        if column.numbers is not None and right is not None:
            met = COMPARE[self.sign](column.numbers, right)
        else:
            met = np.array([self._compare(label.strip()) for label in column.labels], dtype=bool)
        rows: Mask = met[column.codes]
        return rows

    def require_column(self, table: Table) -> None:
        """Raise a `TableError` unless the table has the column."""
        if self.column not in table.names:
            raise TableError(f"The condition {str(self)!r} names a column that is not there.")

    def _compare(self, label: str) -> bool:
        """Compare one label."""
        if not label:
            return self.sign == "!="
        left, right = _parse_number(label), _parse_number(self.value)
        if left is not None and right is not None:
            return bool(COMPARE[self.sign](left, right))
        if right is not None and self.sign not in ("==", "!="):
            return False
        return bool(COMPARE[self.sign](label, self.value))


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Parse conditions written as ``column sign value``.

    >>> [str(condition) for condition in parse_conditions(["age>=18", "result = 'positive'"])]
    ['age >= 18', 'result == positive']
    """
    found = []
    for text in texts:
        match = CONDITION.fullmatch(text)
        if match is None or not match["value"]:
            raise ArgumentError(
                "where",
                "be a condition such as 'age >= 18'",
                text,
                "Known signs: == != < <= > >=. Repeat the option for more conditions.",
            )
        value = match["value"]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        sign = "==" if match["sign"] == "=" else match["sign"]
        found.append(Condition(match["column"], sign, value))
    return tuple(found)


def _parse_number(text: str) -> float | None:
    """Parse a finite number; None for anything else."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
