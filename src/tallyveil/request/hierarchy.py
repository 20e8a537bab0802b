"""Which sums a release adds up to: the groups of a hierarchy in a table, and their budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, freeze
from tallyveil.errors import ArgumentError, TableError
from tallyveil.request.budget_split import rows_tell
from tallyveil.sums.combine import Combined, combine, noise_variance
from tallyveil.sums.grouping import Grouping, Margins, Tree
from tallyveil.sums.shares import share_budget, share_margins
from tallyveil.tables.labels import Codes, encode_text, number_together
from tallyveil.tables.table import Table

__all__ = [
    "BESIDE",
    "MISSED",
    "MOST_LEVELS",
    "MOST_STAGES",
    "TOTAL",
    "HierarchyRequest",
    "LevelBudget",
    "count_alone",
    "describe_missed",
    "describe_tree",
    "find_groups",
    "find_tree",
    "name_levels",
    "read_codes",
    "split_levels",
]

TOTAL = "total"
BESIDE = ("estimate", "deviation", "low", "high")
"""The columns beside each sum: its estimate before rounding, its standard deviation, interval."""

MISSED = "missed"
"""Beside the sums of a margin: by how much the rows lie above what they were fitted to."""

MOST_LEVELS = 40
"""How many columns a hierarchy may have."""

MOST_STAGES = MOST_LEVELS + 3
"""Of one count: every level, the grand total, the distribution and the counts."""

MANY, POWER = 300, 1 / 6
"""Where there are so many rows for each possible count the distribution gets its whole share,
and with fewer a share that falls with this power: rows and groups then gain more from it."""


@dataclass(frozen=True)
class HierarchyRequest:
    """What was asked for.

    Attributes
    ----------
    columns : tuple of str
        Public columns from coarse to fine.
    exact : str
        The finest level whose sums are published exactly, because they are public already;
        empty for none. They are outside the promise.
    weights : tuple of float or None
        How much the error of each level counts, from the grand total to the rows.
    margins : tuple of tuple of str
        Instead of a hierarchy: the columns of each margin. `columns` are then all of them.
    bounds : str
        The public column with the largest count of every row; empty for none.
    """

    columns: tuple[str, ...]
    exact: str = ""
    weights: tuple[float, ...] | None = None
    margins: tuple[tuple[str, ...], ...] = ()
    bounds: str = ""

    @property
    def public(self) -> tuple[str, ...]:
        """Every column that is needed, and so published unchanged."""
        return (*self.columns, self.bounds) if self.bounds else self.columns

    @property
    def method(self) -> str:
        """The method's name."""
        return "margins" if self.margins else "hierarchy"

    @property
    def why(self) -> str:
        """Why that method is used."""
        return "margins were asked for" if self.margins else "a hierarchy was asked for"

    @property
    def exact_level(self) -> int:
        """The number of the finest exact level, -1 for none."""
        return (TOTAL, *self.columns).index(self.exact) if self.exact else -1


def find_tree(
    request: HierarchyRequest,
    table: Table | None,
    categories: Sequence[tuple[str, ...]] = (),
    by: Sequence[str] = (),
    order: Integers | None = None,
) -> Tree:
    """The tree of the table's rows; where `categories` are given, of those.

    Nodes are numbered in the order of the published rows, so their order tells nothing else;
    the last level stands in the order of the table itself.
    """
    columns = [read_codes(name, table, categories, by) for name in request.columns]
    for coarse, fine, at in zip(columns, columns[1:], range(len(columns)), strict=False):
        names = request.columns[at : at + 2]
        _require_one_parent(coarse, fine, names, by if categories else ())
    codes = [column.codes if order is None else column.codes[order] for column in columns]
    tree = Tree.of_columns(codes)
    _require_above_rows(request, tree)
    if order is None:
        return tree
    last = np.empty_like(tree.parents[-1])
    last[order] = tree.parents[-1]
    return Tree((*tree.parents[:-1], freeze(last)))


def count_alone(
    request: HierarchyRequest, grouping: Grouping, bounds: Integers | None = None
) -> int:
    """How many rows are the only ones of their group, where sums of groups are exact.

    Their counts are published exactly, too. Which rows these are is public: labels say it.
    Structural zeros beside a row, and rows whose public bound is 0, hide nothing of it.
    """
    tree = grouping.part
    if request.exact_level < 0 or isinstance(tree, Margins):  # margins are never exact
        return 0
    nodes = np.arange(tree.sizes[request.exact_level])
    rows = tree.spread_down(nodes, request.exact_level, tree.depth)
    if bounds is not None:
        rows = rows[grouping.take(tree.depth, bounds) > 0]
    return int((np.bincount(rows) == 1).sum())


def _require_above_rows(request: HierarchyRequest, tree: Tree) -> None:
    """Refuse to publish the rows themselves exactly, which is no release at all."""
    if request.exact_level >= tree.depth:
        rule = "name a level above the rows, and this column tells all rows apart"
        raise ArgumentError("invariant", rule, request.exact)


def read_codes(
    name: str,
    table: Table | None,
    categories: Sequence[tuple[str, ...]],
    by: Sequence[str],
    argument: str = "hierarchy",
) -> Codes:
    """A public column's labels, row for row; where `categories` are given, those."""
    if categories:
        if name not in by:
            raise ArgumentError(argument, f"name columns of 'by': {', '.join(by)}", name)
        return encode_text([label[list(by).index(name)] for label in categories])
    if table is None or name not in (*table.names, *table.index_names):
        raise TableError(f"There is no column {name!r}, which '{argument}' names.")
    return table.codes(name)


def _require_one_parent(
    coarse: Codes, fine: Codes, names: Sequence[str], listed: Sequence[str]
) -> None:
    """Refuse a finer label that occurs under two coarser ones.

    `listed` are the columns of the public list that says which labels go together, if one does.
    """
    above, below = names
    first = np.full(len(fine.values), -1, dtype=np.int64)
    first[fine.codes] = coarse.codes
    if not np.array_equal(first[fine.codes], coarse.codes):
        pairs = number_together([coarse.codes, fine.codes])
        if listed and int(pairs.max()) + 1 == len(coarse.values) * len(fine.values):
            raise TableError(
                f"The list of categories has every label of {below!r} under every label of "
                f"{above!r}. If every {below} lies in one {above}, list the combinations that "
                f"exist: 'categories' may be a CSV file with the header {','.join(listed)}. If "
                f"not, leave {below!r} out of the hierarchy, or name both in 'margins'."
            )
        if len(fine.values) < len(coarse.values):
            raise TableError(
                f"A label of {below!r} occurs under two labels of {above!r}, which has more labels "
                f"than {below!r}. Name the columns of a hierarchy from coarse to fine, such as "
                "state,county."
            )
        raise TableError(
            f"A label of {below!r} occurs under two labels of {above!r}. Every {below} must lie in "
            f"one {above}: make the labels of {below!r} distinct, for example with the one of "
            f"{above!r} before each. Where the two cross, as ages and sexes do, leave {below!r} "
            "out of the hierarchy, or name both in 'margins'."
        )


def find_margins(
    request: HierarchyRequest,
    table: Table | None,
    categories: Sequence[tuple[str, ...]] = (),
    by: Sequence[str] = (),
    order: Integers | None = None,
) -> Margins:
    """The groups of every margin, numbered in the order of the published rows."""
    groups = []
    for names in request.margins:
        columns = [read_codes(name, table, categories, by, "margins").codes for name in names]
        found = number_together(columns)
        placed = found if order is None else found[order]
        tree = Tree.of_columns([placed])
        if tree.depth == 1:
            rule = "group several rows together, and this margin tells all rows apart"
            raise ArgumentError("margins", rule, "+".join(names))
        group = tree.parents[1]
        if order is not None:
            own = np.empty_like(group)
            own[order] = group
            group = own
        groups.append(freeze(group))
    return Margins(tuple(groups))


def find_groups(
    request: HierarchyRequest,
    table: Table | None,
    categories: Sequence[tuple[str, ...]] = (),
    by: Sequence[str] = (),
    order: Integers | None = None,
) -> Tree | Margins:
    """The tree of a hierarchy, or the groups of margins."""
    find = find_margins if request.margins else find_tree
    return find(request, table, categories, by, order)


def name_levels(request: HierarchyRequest, depth: int) -> tuple[str, ...]:
    """The names of the levels above the rows, or of the margins."""
    if request.margins:
        return tuple("+".join(names) for names in request.margins)
    return (TOTAL, *request.columns)[:depth]


def describe_missed(missed: Sequence[int]) -> str:
    """How rows were fitted to margins that they miss by so much at most, in sentences.

    >>> describe_missed((0, 0, 2)).split(". ")[1:3]
    ['Met exactly: margins 1, 2', 'Met as closely as the cells allow: margin 3 within 2']
    """
    exact = [f"{at}" for at, most in enumerate(missed, 1) if not most]
    near = [f"margin {at} within {most:,}" for at, most in enumerate(missed, 1) if most]
    met = f"Met exactly: {'margin' if len(exact) == 1 else 'margins'} {', '.join(exact)}."
    parts = [
        "Rows were raked to the margins and rounded by a linear program.",
        *([met] if exact and near else ["Every margin is met exactly."] if exact else []),
        *([f"Met as closely as the cells allow: {', '.join(near)}."] if near else []),
        "The files of the margins say by how much every group is missed.",
    ]
    return " ".join(parts)


@dataclass(frozen=True)
class LevelBudget:
    """What each level is measured with, 0 for not at all, and the distribution."""

    levels: tuple[Fraction, ...]
    distribution: Fraction

    @property
    def only_rows(self) -> bool:
        """Whether nothing but the rows themselves is measured."""
        return not (self.distribution or any(self.levels[:-1]))

    def of_margin(self, margin: int) -> LevelBudget:
        """What one margin was measured with: no grand total, its groups, the rows."""
        return LevelBudget((Fraction(0), self.levels[margin], self.levels[-1]), Fraction(0))


def split_levels(
    request: HierarchyRequest, sizes: Sequence[int], epsilon: Fraction, upper: int
) -> LevelBudget:
    """Share `epsilon` between the distribution and the levels; looks at public sizes only."""
    if request.margins:
        parts = share_margins(sizes, float(epsilon), upper=upper)
        return LevelBudget(tuple(part * epsilon for part in parts), Fraction(0))
    first = epsilon * _share_distribution(epsilon, sizes[-1], upper + 1)
    rest = epsilon - first
    variance = upper * noise_variance(first) if first else None
    shares = share_budget(
        sizes,
        float(rest),
        request.weights,
        total_variance=variance,
        exact=request.exact_level,
        upper=upper if request.weights is None else None,
    )
    return LevelBudget(tuple(share * rest for share in shares), first)


def _share_distribution(epsilon: Fraction, records: int, size: int) -> Fraction:
    """What part the distribution gets: 0.08 + 0.2 exp(-3 epsilon), none where rows tell it.

    Less than without groups, because their sums help to estimate it, and less where there are
    few rows for each possible count.
    """
    if rows_tell(epsilon, records, size):
        return Fraction(0)
    many = min(1.0, (records / (MANY * size)) ** POWER)
    return Fraction(round(many * (0.08 + 0.2 * math.exp(-3 * epsilon)) * 10**6), 10**6)


def describe_tree(tree: Tree, budget: LevelBudget, upper: int, exact_level: int) -> Combined:
    """The variances of all estimates, which depend on no draw (the estimates in it are 0)."""
    zeros = [np.zeros(size) for size in tree.sizes]
    return combine(tree, *list_measured(zeros, budget, upper, exact_level))


def list_measured(
    values: Sequence[Any], budget: LevelBudget, upper: int, exact_level: int, total: float = 0.0
) -> tuple[list[Any], list[float | None]]:
    """What was measured at each level and its variance; `total` is the distribution's.

    A noisy cumulative histogram also measures the grand total, sum (N - C_j), with `upper`
    independent noises.
    """
    measured: list[Any] = []
    variances: list[float | None] = []
    for level, epsilon in enumerate(budget.levels):
        known = epsilon > 0 or level == exact_level
        measured.append(values[level] if known else None)
        variances.append(noise_variance(epsilon) if epsilon else 0.0 if known else None)
    if budget.distribution and exact_level < 0:
        own, variance = np.array([total]), upper * noise_variance(budget.distribution)
        if variances[0] is not None:
            weight = variance / (variance + variances[0])
            own = weight * measured[0] + (1 - weight) * own
            variance = weight * variances[0]
        measured[0], variances[0] = own, variance
    return measured, variances
