"""The sums of a release as files, one for each level, and what the receipt says of them."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import PackageError
from tallyveil.plans.group_totals import list_trees
from tallyveil.request.hierarchy import (
    BESIDE,
    MISSED,
    TOTAL,
    HierarchyRequest,
    LevelBudget,
    count_alone,
    name_levels,
)
from tallyveil.request.kinds import COUNTS, DISTRIBUTION
from tallyveil.request.request import Request
from tallyveil.sums.combine import find_half_widths
from tallyveil.sums.grouping import Grouping, Margins, Tree
from tallyveil.tables.table import Table

__all__ = [
    "LevelAccuracy",
    "SumsRecord",
    "describe_alone",
    "describe_levels",
    "format_numbers",
    "level_stage",
    "list_stages",
    "read_estimates",
    "read_stated",
    "write_level",
]

CONFIDENCE = 0.95
DECIMALS = 3
PRINTED = re.compile(rf"-?[0-9]{{1,18}}\.[0-9]{{{DECIMALS}}}")
"""How a real number stands in the files."""


def level_stage(name: str) -> str:
    """The kind of the stage that measured a level."""
    return f"sums by {name}"


def list_stages(
    request: HierarchyRequest, sizes: Sequence[int], budget: LevelBudget
) -> list[tuple[str, Fraction]]:
    """Kind and epsilon of every stage, in the order in which they draw; counts come last."""
    names = name_levels(request, len(sizes) - 1)
    parts = zip(names, budget.levels, strict=False)
    stages = [(level_stage(name), part) for name, part in parts if part]
    if budget.distribution:
        stages.append((DISTRIBUTION, budget.distribution))
    return [*stages, (COUNTS, budget.levels[-1])]


@dataclass(frozen=True)
class SumsRecord:
    """What the receipt says of the hierarchy; everything else follows from it and the data."""

    request: HierarchyRequest
    sizes: tuple[int, ...]
    alone: int = 0
    """Rows that are the only ones of a group whose sum is exact."""
    free: tuple[int, ...] = ()
    """Beside structural zeros: how many sums of each level, and rows, were measured."""

    @classmethod
    def of(
        cls, request: HierarchyRequest, grouping: Grouping, bounds: Integers | None = None
    ) -> SumsRecord:
        """The record of a hierarchy with these groups; `bounds` hold the largest counts of rows."""
        free = grouping.part.sizes if grouping.places else ()
        return cls(request, grouping.full.sizes, count_alone(request, grouping, bounds), free)

    @classmethod
    def of_request(cls, request: Request) -> SumsRecord | None:
        """The record of what was asked for, or None where nothing adds up."""
        if request.hierarchy is None or request.grouping is None:
            return None
        return cls.of(request.hierarchy, request.grouping, request.bounds)

    @classmethod
    def of_table(cls, request: HierarchyRequest, grouping: Grouping, table: Table) -> SumsRecord:
        """The same, with the bounds that stand in a published table."""
        bounds = table.counts(request.bounds) if request.bounds else None
        return cls.of(request, grouping, bounds)

    @property
    def measured(self) -> tuple[int, ...]:
        """How many nodes each level has that are not 0 for certain."""
        return self.free or self.sizes

    @property
    def names(self) -> tuple[str, ...]:
        """The levels above the rows."""
        return name_levels(self.request, len(self.sizes) - 1)

    @property
    def files(self) -> tuple[str, ...]:
        """The file of each level above the rows."""
        return tuple(f"sums-{level}.csv" for level in range(len(self.sizes) - 1))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        asked, levels = self.request, zip(self.names, self.files, self.sizes, strict=False)
        return {
            "columns": list(asked.columns),
            "rows": self.sizes[-1],
            "levels": [{"name": n, "file": f, "sums": s} for n, f, s in levels],
            "level_weights": None if asked.weights is None else list(asked.weights),
            "exact": asked.exact,
            **({"exact_rows": self.alone} if self.alone else {}),
            "outside_the_promise": self.outside,
            **({"not_structural_zeros": list(self.free)} if self.free else {}),
            **({"bounds": asked.bounds} if asked.bounds else {}),
            **({"margins": [list(names) for names in asked.margins]} if asked.margins else {}),
        }

    @property
    def outside(self) -> str:
        """Which sums the promise does not cover, in words; empty if it covers all."""
        if not self.request.exact:
            return ""
        below = " and ".join(self.names[1 : self.request.exact_level + 1])
        sums = f" and the exact sums by {below}" if below else ""
        words = f"the exact total{sums}, which the publisher declared public"
        if not self.alone:
            return words
        return f"{words}, and with them {describe_alone(self.alone)}"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SumsRecord:
        """The record that `to_dict` wrote."""
        weights, levels = data["level_weights"], data["levels"]
        request = HierarchyRequest(
            tuple(str(name) for name in data["columns"]),
            str(data["exact"]),
            None if weights is None else tuple(float(weight) for weight in weights),
            tuple(tuple(str(name) for name in names) for names in data.get("margins", ())),
            str(data.get("bounds", "")),
        )
        sizes = (*(int(level["sums"]) for level in levels), int(data["rows"]))
        free = tuple(int(size) for size in data.get("not_structural_zeros", ()))
        made = cls(request, sizes, int(data.get("exact_rows", 0)), free)
        if not made._is_sound() or made.to_dict() != dict(data):
            raise PackageError("The receipt's hierarchy contradicts itself.")
        return made

    def _is_sound(self) -> bool:
        """Whether some table and request could have this record."""
        asked, sizes, free = self.request, self.sizes, self.measured
        named = tuple(name for names in asked.margins for name in names)
        plain = not (asked.exact or asked.weights)
        if asked.margins and not (plain and named == asked.columns and not asked.bounds):
            return False
        weights = asked.weights or (1.0,) * len(sizes)
        return (
            0 < len(set(asked.columns)) == len(asked.columns)
            and asked.bounds not in asked.columns
            and asked.exact in ("", TOTAL, *asked.columns)
            and len(weights) == len(sizes) == len(free)
            and all(0 <= weight < math.inf for weight in weights)
            and all(1 <= part <= size <= sizes[-1] for part, size in zip(free, sizes, strict=True))
            and not (self.free and self.free[-1] == sizes[-1])
        )


def describe_alone(rows: int) -> str:
    """Words for the counts that exact sums give away.

    >>> describe_alone(1)
    'the exact count of 1 row that is the only one of its group'
    """
    if rows == 1:
        return "the exact count of 1 row that is the only one of its group"
    return f"the exact counts of {rows:,} rows that are the only ones of their groups"


@dataclass(frozen=True, eq=False)
class LevelAccuracy:
    """Standard deviations and half-widths of the intervals of one column, level by level."""

    deviations: tuple[Floats, ...]
    halves: tuple[Floats, ...]


def describe_levels(
    asked: HierarchyRequest, grouping: Grouping, epsilon: Fraction, upper: int
) -> LevelAccuracy:
    """How accurate the estimates above the rows are; no draw is needed for it."""
    deviations: list[Floats] = []
    halves: list[Floats] = []
    for tree in list_trees(asked, grouping, epsilon, upper):
        for level in tree.levels:
            deviations.append(np.sqrt(np.maximum(tree.combined.variances[level], 0)))
            halves.append(find_half_widths(tree.combined, tree.measured, level, CONFIDENCE))
    return LevelAccuracy(
        tuple(grouping.fill(*one) for one in enumerate(deviations)),
        tuple(grouping.fill(*one) for one in enumerate(halves)),
    )


def write_level(
    level: int,
    record: SumsRecord,
    tree: Tree | Margins,
    table: Table,
    columns: Mapping[str, tuple[Integers, Sequence[str], LevelAccuracy, Integers | None]],
) -> bytes:
    """The file of one level: its labels, and each column's sums, estimates and intervals.

    Parameters
    ----------
    level : int
        Which level.
    record, tree : SumsRecord and Tree
        The hierarchy, its rows in the order of `table`.
    table : Table
        The released table, which has the labels.
    columns : mapping
        By count column: the sums of this level, their estimates as text, the accuracy, and by
        how much a margin is missed.
    """
    margins = record.request.margins
    names = margins[level] if margins else record.request.columns[:level]
    first = _find_first_rows(tree, level)
    labels = [
        np.array(table.codes(n).labels, dtype=object)[table.codes(n).codes[first]] for n in names
    ]
    header = list(names)
    parts: list[Any] = list(labels)
    for name, (sums, estimates, accuracy, missed) in columns.items():
        header += [name, *(f"{name}_{word}" for word in BESIDE)]
        values = np.array([float(text) for text in estimates])
        half = accuracy.halves[level]
        numbers = (accuracy.deviations[level], values - half, values + half)
        parts += [sums.tolist(), estimates, *(format_numbers(part) for part in numbers)]
        if missed is not None:
            header.append(f"{name}_{MISSED}")
            parts.append(missed.tolist())
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(zip(*parts, strict=True))
    return text.getvalue().encode()


def format_numbers(values: Floats) -> list[str]:
    """Real numbers as they stand in the files.

    >>> format_numbers(np.array([1.25, -0.0001]))
    ['1.250', '0.000']
    """
    return [f"{value + 0.0:.{DECIMALS}f}" for value in np.round(values, DECIMALS).tolist()]


def read_stated(content: bytes, column: str, word: str = "estimate") -> list[str]:
    """A column that stands beside the sums of a count column in a file, as it is written."""
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    at = rows[0].index(f"{column}_{word}")
    return [row[at] for row in rows[1:]]


def read_estimates(content: bytes, column: str, sums: int) -> Floats:
    """The estimates of a column in somebody's file of sums, or a `PackageError`."""
    try:
        texts = read_stated(content, column)
    except (ValueError, LookupError, csv.Error):
        texts = []
    printed = len(texts) == sums and all(PRINTED.fullmatch(text) for text in texts)
    values = np.array([float(text) for text in texts if printed])
    if not printed or format_numbers(values) != texts:
        raise PackageError(f"The files of sums do not hold the estimates of {column!r}.")
    return values


def _find_first_rows(tree: Tree | Margins, level: int) -> Integers:
    """For every node of a level, the first row below it."""
    if isinstance(tree, Margins):
        return np.unique(tree.groups[level], return_index=True)[1]
    nodes = np.arange(tree.sizes[level])
    of_rows = tree.spread_down(nodes, level, tree.depth)
    return np.unique(of_rows, return_index=True)[1]
