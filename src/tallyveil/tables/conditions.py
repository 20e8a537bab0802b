"""Public conditions on rows of microdata, such as ``age >= 18``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallyveil.arrays import Mask
from tallyveil.errors import ArgumentError, TableError
from tallyveil.tables.labels import Codes, normal_label
from tallyveil.tables.table import Table

CONDITION = re.compile(
    r"\s*(?P<column>[^\s<>=!].*?)\s*(?P<sign>==|!=|>=|<=|=|>|<)\s*(?P<value>.*?)\s*"
)
QUOTES = "'\""
JOINED = re.compile(r"""\s+and\s+(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""")
"""The word and outside quotes."""

ODD = re.compile(r"""[<>=!'"]|\b(?:and|or|not)\b""")
HINT = "Operators: = == != < <= > >=. Quote a value that contains one, or the word and, or, not."
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
        self.require_type(self.find_kinds(column))
        return self.meets(column)

    def meets(self, column: Codes) -> Mask:
        """Find the rows of a column that meet the condition, without checking its type."""
        right = _parse_number(self.value)
        if column.numbers is not None and right is not None:
            met = COMPARE[self.sign](column.numbers, right)
        else:
            met = np.array([self._compare(label.strip()) for label in column.labels], dtype=bool)
        rows: Mask = met[column.codes]
        return rows

    def find_kinds(self, column: Codes) -> set[bool]:
        """Return whether the labels of a column are numbers (True), text (False), or both."""
        return {_parse_number(label) is not None for label in column.labels if label.strip()}

    def require_column(self, table: Table) -> None:
        """Raise a `TableError` unless the table has the column."""
        if self.column not in table.written_names:
            raise TableError(f"The condition {str(self)!r} names a column that is not there.")

    def require_type(self, kinds: set[bool]) -> None:
        """Refuse to compare numbers with text, which no row would meet; see `find_kinds`."""
        right, is_ordered = _parse_number(self.value), self.sign not in ("==", "!=")
        if right is None and kinds == {True}:
            raise TableError(f"The condition {str(self)!r} compares numbers with text.")
        if right is not None and is_ordered and kinds == {False}:
            raise TableError(f"The condition {str(self)!r} compares text with a number.")

    def _compare(self, label: str) -> bool:
        """Compare a label."""
        if not label:
            return self.sign == "!="
        number, right = _parse_number(label), _parse_number(self.value)
        if number is not None and right is not None:
            return bool(COMPARE[self.sign](number, right))
        if right is not None and self.sign not in ("==", "!="):
            return False
        return bool(COMPARE[self.sign](normal_label(label), normal_label(self.value)))


class RowChooser:
    """A search for the rows that meet all conditions, batch by batch.

    The types of columns are complete after the last batch: call `require_types` then.
    """

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self.conditions = conditions
        self.kinds: list[set[bool]] = [set() for _ in conditions]

    def choose(self, batch: Table) -> Mask:
        """Find the rows of a batch that meet all conditions."""
        chosen = np.ones(batch.rows, dtype=bool)
        for condition, kinds in zip(self.conditions, self.kinds, strict=True):
            column = batch.codes(condition.column)
            kinds.update(condition.find_kinds(column))
            chosen &= condition.meets(column)
        return chosen

    def require_types(self) -> None:
        """Refuse to compare numbers with text, as `Condition.holds` does."""
        for condition, kinds in zip(self.conditions, self.kinds, strict=True):
            condition.require_type(kinds)


def parse_conditions(texts: Iterable[str]) -> tuple[Condition, ...]:
    """Parse comparisons ``column sign value``, joined by ``and`` inside a text.

    A value that contains a sign or the word and, or, not must be in quotes.

    >>> [str(c) for c in parse_conditions(["age>=18 and sex = f", "result = 'not known'"])]
    ['age >= 18', 'sex == f', 'result == not known']
    """
    conditions = []
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentError("where", "be a condition such as 'age >= 18'", text)
        conditions += [_parse_comparison(part, text) for part in JOINED.split(text)]
    return tuple(conditions)


def _parse_comparison(part: str, text: str) -> Condition:
    match = CONDITION.fullmatch(part)
    if match is None or not match["value"]:
        raise ArgumentError(
            "where", "be comparisons such as 'age >= 18', joined by and", text, HINT
        )
    value = match["value"]
    if len(value) > 1 and value[0] == value[-1] and value[0] in QUOTES:
        value = value[1:-1]
    else:
        odd = ODD.search(value) or re.search(r"\b(and|or|not)\b", match["column"])
        if odd:
            rule = f"be comparisons joined by and; {odd[0]!r} does not belong in one"
            raise ArgumentError("where", rule, text, HINT)
    return Condition(match["column"], "==" if match["sign"] == "=" else match["sign"], value)


def _parse_number(text: str) -> float | None:
    """Parse a finite number; None for anything else."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
