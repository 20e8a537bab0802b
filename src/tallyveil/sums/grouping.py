"""Rows in groups that nest or cross: a hierarchy of sums, and several margins.

In a hierarchy level 0 is the grand total, and the last level holds the single counts. Margins group
the cells of a table in several ways that cross, such as by age and sex and by education. Expected
cells are raked towards the margins; then whole numbers near them are found that meet two margins
exactly. With two margins the program is one of a flow in a network, whose corners are whole numbers
(Hoffman and Kruskal 1956). Further margins are met as closely as rounding allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, Mask, freeze
from tallyveil.errors import UsageError

LARGEST_SUM = 2**53
"""Sums stay below this, so that floating point adds them without error."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A hierarchy: for each level, the node of the level above that every node belongs to.

    Attributes
    ----------
    parents : tuple of array of int
        ``parents[l][i]`` is the node of level l that node i of level l + 1 belongs to. Every
        node has at least one child.

    Examples
    --------
    >>> tree = Tree.of_columns([np.array([0, 0, 1])])
    >>> tree.sizes, [level.tolist() for level in tree.sum_up(np.array([5, 1, 2]))]
    ((1, 2, 3), [[8], [6, 2], [5, 1, 2]])
    """

    parents: tuple[Integers, ...]

    @classmethod
    def of_columns(cls, columns: Sequence[NDArray[Any]]) -> Tree:
        """Build the tree of rows under columns of codes, from coarse to fine.

        Nodes of a level keep the order of their first appearance in the rows, which is public. A
        last column with a code for each row is the level of the rows itself.
        """
        rows = len(columns[0])
        parents: list[Integers] = []
        above = np.zeros(rows, dtype=np.int64)
        for column in columns:
            pairs = above * (int(np.max(column)) + 1) + column
            nodes, first = _number_by_first(pairs)
            if len(first) == rows:
                break
            parents.append(freeze(above[first]))
            above = nodes
        parents.append(freeze(above))
        return cls(tuple(parents))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes of each level."""
        return (1, *(len(parents) for parents in self.parents))

    @property
    def depth(self) -> int:
        """The number of the last level."""
        return len(self.parents)

    @cached_property
    def members(self) -> Integers:
        """The number of children of each node of the level above the last."""
        return np.bincount(self.parents[-1])

    def restrict(self, rows: Mask) -> tuple[Tree, tuple[Integers, ...]]:
        """Return the tree of some rows only, and for each level the old number of each node."""
        places: list[Integers] = [np.flatnonzero(rows)]
        parents: list[Integers] = []
        for level in reversed(self.parents):
            nodes, numbers = np.unique(level[places[0]], return_inverse=True)
            parents.insert(0, freeze(numbers.reshape(-1)))
            places.insert(0, nodes)
        return Tree(tuple(parents)), tuple(places)

    def sum_children(self, values: NDArray[Any], level: int) -> Floats:
        """Sum `values` over the children of each node of level - 1."""
        return sum_by(self.parents[level - 1], values, self.sizes[level - 1])

    def sum_up(self, leaves: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return the sums of every level, coarse to fine, of whole numbers or of real ones."""
        levels: list[NDArray[Any]] = [leaves]
        for level in range(self.depth, 0, -1):
            above = self.sum_children(levels[0], level)
            if leaves.dtype.kind in "iu":
                levels.insert(0, above.astype(np.int64))
                continue
            levels.insert(0, above)
        if levels[0].dtype.kind in "iu" and abs(int(levels[0][0])) >= LARGEST_SUM:
            raise UsageError(f"The grand total must stay below {LARGEST_SUM:,}.")
        return tuple(levels)

    def group_rows(self, level: int) -> Integers:
        """Return the node of a level that each row belongs to."""
        nodes = np.arange(self.sizes[level])
        for parents in self.parents[level:]:
            nodes = nodes[parents]
        return nodes


def sum_by(groups: Integers, values: NDArray[Any], size: int) -> Floats:
    """Sum `values` by group number; exact for whole numbers below 2^53.

    >>> sum_by(np.array([1, 0, 1]), np.array([4, 5, 6]), 2).tolist()
    [5.0, 10.0]
    """
    summed: Any = np.bincount(groups, weights=values, minlength=size)
    sums: Floats = summed
    return sums


def _number_by_first(keys: Integers) -> tuple[Integers, Integers]:
    """Number distinct keys by first appearance: every row's number, and first rows."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse.reshape(-1)], first[order]


SWEEPS = 200
"""Most sweeps of raking over all margins."""

NEAR = 1e-7
"""Sums this near to their targets are met."""

EXACT_MARGINS = 2
"""The number of margins that are met exactly."""

MISSED = 100.0
"""The cost of missing a further margin by a unit, where moving a cell by one costs 1."""


@dataclass(frozen=True, eq=False)
class Margins:
    """Several margins: for each, the group that every row belongs to.

    >>> margins = Margins((np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    >>> margins.sizes, [part.tolist() for part in margins.sum_up(np.array([1, 2, 3, 4]))[:2]]
    ((2, 2, 4), [[3, 7], [4, 6]])
    """

    groups: tuple[Integers, ...]

    @property
    def depth(self) -> int:
        """The number of margins."""
        return len(self.groups)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of groups of each margin, and the number of rows."""
        return (*(int(group.max()) + 1 for group in self.groups), len(self.groups[0]))

    def sum_up(self, rows: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return the sums of every margin, and the rows; whole numbers stay whole."""
        sums: list[NDArray[Any]] = []
        for group, size in zip(self.groups, self.sizes, strict=False):
            added: NDArray[Any] = sum_by(group, rows, size)
            sums.append(added.astype(np.int64) if rows.dtype.kind in "iu" else added)
        return (*sums, rows)

    def group_rows(self, level: int) -> Integers:
        """Return the group of a margin that each row belongs to."""
        return self.groups[level]

    def restrict(self, rows: Mask) -> tuple[Margins, tuple[Integers, ...]]:
        """Return the margins of some rows only, and the old number of each of their groups."""
        numbered = [np.unique(group[rows], return_inverse=True) for group in self.groups]
        groups = tuple(freeze(numbers.reshape(-1)) for _, numbers in numbered)
        return Margins(groups), (*(nodes for nodes, _ in numbered), np.flatnonzero(rows))

    def crosses(self) -> bool:
        """Return True if every two groups of the first two margins have a row in common."""
        first, second = self.groups[:2]
        pairs = first * (int(second.max()) + 1) + second
        return len(np.unique(pairs)) == self.sizes[0] * self.sizes[1]

    def find_apart(self) -> tuple[int, int] | None:
        """Find two margins some of whose groups share no row with the others.

        The sums of such groups must agree.

        >>> Margins((np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2]))).find_apart()
        (0, 1)
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        for i, j in combinations(range(self.depth), 2):
            first, second = self.groups[i], self.groups[j]
            size = int(first.max()) + int(second.max()) + 2
            joined = (np.ones(len(first)), (first, second + int(first.max()) + 1))
            if connected_components(coo_array(joined, (size, size)), directed=False)[0] > 1:
                return i, j
        return None

    def tree(self, margin: int) -> Tree:
        """Return one margin as a hierarchy: total, groups, rows."""
        group = self.groups[margin]
        return Tree((np.zeros(int(group.max()) + 1, dtype=np.int64), group))


def measure_missed(missed: Sequence[Integers]) -> tuple[int, ...]:
    """Return the largest amount by which each margin is missed.

    >>> measure_missed([np.array([0, 0]), np.array([1, -3])])
    (0, 3)
    """
    return tuple(int(np.abs(gap).max()) for gap in missed)


def rake(cells: Floats, margins: Margins, targets: Sequence[Integers], upper: int) -> Floats:
    """Multiply cells so that their sums come as near to the targets as they can.

    >>> margins = Margins((np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    >>> rake(np.ones(4), margins, [np.array([2, 6]), np.array([4, 4])], 9).round(3).tolist()
    [1.0, 1.0, 3.0, 3.0]
    """
    raked = np.clip(cells, 1e-9, upper).astype(float)
    for _ in range(SWEEPS):
        gap = 0.0
        for group, target in zip(margins.groups, targets, strict=True):
            sums = sum_by(group, raked, len(target))
            gap = max(gap, float(np.abs(sums - target).max()))
            raked *= np.divide(target, sums, out=np.zeros(len(target)), where=sums > 0)[group]
            np.minimum(raked, upper, out=raked)
        if gap < NEAR:
            break
    return raked


def round_to_margins(
    cells: Floats, margins: Margins, targets: Sequence[Integers], upper: int
) -> Integers:
    """Return whole numbers near the cells that meet the first two margins exactly.

    They lie in 0..upper. Minimised is the sum of |x - cell|, and, for further margins, 100 for each
    unit missed. Where no such table exists, because groups cross in too few rows, the first two may
    be missed too.

    >>> margins = Margins((np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    >>> targets = [np.array([3, 2]), np.array([2, 3])]
    >>> round_to_margins(np.array([1.2, 1.8, 0.8, 1.2]), margins, targets, 9).tolist()
    [1, 2, 1, 1]
    """
    near = cells
    if margins.depth > EXACT_MARGINS:
        near = _solve(cells, margins, targets, upper, exact=margins.depth)
    first = Margins(margins.groups[:EXACT_MARGINS])
    corner = _solve(near, first, targets[:EXACT_MARGINS], upper, exact=first.depth)
    rounded: Integers = np.clip(np.rint(corner), 0, upper).astype(np.int64)
    return rounded


def _solve(
    cells: Floats, margins: Margins, targets: Sequence[Integers], upper: int, *, exact: int
) -> Floats:
    """Find the corner of the program min sum |x - cell| + penalties of missed margins."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, hstack, identity

    rows = len(cells)
    low = np.floor(cells + NEAR)
    part = np.maximum(cells - low, 0)
    sums = np.concatenate(targets[:exact]).astype(float)
    starts = np.cumsum([0, *margins.sizes[:exact]])
    place = np.concatenate([g + s for g, s in zip(margins.groups[:exact], starts, strict=False)])
    column = np.tile(np.arange(rows), exact)
    A = coo_matrix((np.ones(exact * rows), (place, column)), (len(sums), rows)).tocsr()
    slack = identity(len(sums), format="csr")
    equations = hstack([A, A, -A, slack, -slack], format="csr")
    ones, missed = np.ones(rows), np.full(len(sums), MISSED)
    cost = np.concatenate([1 - 2 * part, ones, ones, missed, missed])
    room = np.minimum(upper - low, 1)
    most = np.concatenate([room, upper - low - room, low, np.full(2 * len(sums), np.inf)])
    bounds: Any = np.column_stack([np.zeros(len(cost)), most])
    result = linprog(cost, A_eq=equations, b_eq=sums - A @ low, bounds=bounds, method="highs-ds")
    if result.x is None:
        return cells
    x = result.x
    moved: Floats = low + x[:rows] + x[rows : 2 * rows] - x[2 * rows : 3 * rows]
    return moved


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of all rows, and those of the rows that can hold anybody.

    Structural zeros, and groups of nothing else, are certainly 0: no noise is spent on them, and
    what is measured are the groups of the others.

    Attributes
    ----------
    full, part : Tree or Margins
        The groups of all rows, and of the free ones; the same object where all are free.
    places : tuple of array of int
        For each level, the node of `full` that every node of `part` is.

    Examples
    --------
    >>> tree = Tree.of_columns([np.array([0, 0, 1, 2])])
    >>> grouping = Grouping.of(tree, np.array([True, True, False, True]))
    >>> grouping.part.sizes, grouping.fill(1, np.array([5, 7])).tolist()
    ((1, 2, 3), [5, 0, 7])
    """

    full: Tree | Margins
    part: Tree | Margins
    places: tuple[Integers, ...]

    @classmethod
    def of(cls, full: Tree | Margins, free: Mask | None = None) -> Grouping:
        """Build the grouping whose `free` rows alone can hold anybody; without it, all can."""
        if free is None or bool(free.all()):
            return cls(full, full, ())
        return cls(full, *full.restrict(free))

    def fill(self, level: int, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of all nodes of a level: those of the free ones, 0 for the others."""
        if not self.places:
            return values
        filled = np.zeros(self.full.sizes[level], dtype=values.dtype)
        filled[self.places[level]] = values
        return filled

    def fill_levels(self, levels: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """Return the values of all nodes of several levels, from level 0 on; see `fill`."""
        return tuple(self.fill(level, values) for level, values in enumerate(levels))

    def take(self, level: int, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the free nodes of a level, from those of all."""
        return values[self.places[level]] if self.places else values
