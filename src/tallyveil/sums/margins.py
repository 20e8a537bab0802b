"""Cells that meet several margins at once: raking, and whole numbers by a linear program.

Cells of a table are grouped in several ways that cross, such as by age and sex and by education.
Expected cells are raked towards the margins; then whole numbers near them are found that meet two
margins exactly. With two margins the program is one of a flow in a network, whose corners are
whole numbers (Hoffman and Kruskal 1956). Further margins are met as closely as rounding allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, Mask, freeze
from tallyveil.sums.tree import Tree, sum_by

__all__ = ["EXACT_MARGINS", "Margins", "measure_missed", "rake", "round_to_margins"]

SWEEPS = 200
NEAR = 1e-7
EXACT_MARGINS = 2
"""So many margins are met exactly."""

MISSED = 100.0
"""What a unit by which a further margin is missed costs, against moving a cell by one."""


@dataclass(frozen=True, eq=False)
class Margins:
    """Which group of each margin every row belongs to.

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
        """How many groups each margin has, and the number of rows."""
        return (*(int(group.max()) + 1 for group in self.groups), len(self.groups[0]))

    def sum_up(self, rows: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The sums of every margin, and the rows themselves; whole numbers stay whole."""
        sums: list[NDArray[Any]] = []
        for group, size in zip(self.groups, self.sizes, strict=False):
            added: NDArray[Any] = sum_by(group, rows, size)
            sums.append(added.astype(np.int64) if rows.dtype.kind in "iu" else added)
        return (*sums, rows)

    def restrict(self, rows: Mask) -> tuple[Margins, tuple[Integers, ...]]:
        """The margins of some rows only, and which group here each of their groups is."""
        found = [np.unique(group[rows], return_inverse=True) for group in self.groups]
        groups = tuple(freeze(numbers.reshape(-1)) for _, numbers in found)
        return Margins(groups), (*(nodes for nodes, _ in found), np.flatnonzero(rows))

    def crosses(self) -> bool:
        """Whether every two groups of the first two margins have a row in common."""
        first, second = self.groups[:2]
        pairs = first * (int(second.max()) + 1) + second
        return len(np.unique(pairs)) == self.sizes[0] * self.sizes[1]

    def find_apart(self) -> tuple[int, int] | None:
        """Two margins of which some groups share no row with the others, so that sums must agree.

        >>> Margins((np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2]))).find_apart()
        (0, 1)
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        for one, two in combinations(range(self.depth), 2):
            first, second = self.groups[one], self.groups[two]
            size = int(first.max()) + int(second.max()) + 2
            joined = (np.ones(len(first)), (first, second + int(first.max()) + 1))
            if connected_components(coo_array(joined, (size, size)), directed=False)[0] > 1:
                return one, two
        return None

    def tree(self, margin: int) -> Tree:
        """One margin as a hierarchy of its own: total, groups, rows."""
        group = self.groups[margin]
        return Tree((np.zeros(int(group.max()) + 1, dtype=np.int64), group))


def measure_missed(missed: Sequence[Integers]) -> tuple[int, ...]:
    """By how much each margin is missed at most.

    >>> measure_missed([np.array([0, 0]), np.array([1, -3])])
    (0, 3)
    """
    return tuple(int(np.abs(gap).max()) for gap in missed)


def rake(cells: Floats, margins: Margins, targets: Sequence[Integers], upper: int) -> Floats:
    """Cells multiplied so that their sums come as near to the targets as they can.

    >>> margins = Margins((np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    >>> rake(np.ones(4), margins, [np.array([2, 6]), np.array([4, 4])], 9).round(3).tolist()
    [1.0, 1.0, 3.0, 3.0]
    """
    found = np.clip(cells, 1e-9, upper).astype(float)
    for _ in range(SWEEPS):
        gap = 0.0
        for group, target in zip(margins.groups, targets, strict=True):
            sums = sum_by(group, found, len(target))
            gap = max(gap, float(np.abs(sums - target).max()))
            found *= np.divide(target, sums, out=np.zeros(len(target)), where=sums > 0)[group]
            np.minimum(found, upper, out=found)
        if gap < NEAR:
            break
    return found


def round_to_margins(
    cells: Floats, margins: Margins, targets: Sequence[Integers], upper: int
) -> Integers:
    """Whole numbers in 0..upper near the cells whose sums meet the first two margins exactly.

    Minimised is the sum of |x - cell|, and, for further margins, 100 for each unit missed. Where
    no such table exists, because groups cross in too few rows, the first two may be missed too.

    >>> margins = Margins((np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])))
    >>> targets = [np.array([3, 2]), np.array([2, 3])]
    >>> round_to_margins(np.array([1.2, 1.8, 0.8, 1.2]), margins, targets, 9).tolist()
    [1, 2, 1, 1]
    """
    near = cells
    if margins.depth > EXACT_MARGINS:
        near = _solve(cells, margins, targets, upper, exact=margins.depth)
    first = Margins(margins.groups[:EXACT_MARGINS])
    found = _solve(near, first, targets[:EXACT_MARGINS], upper, exact=first.depth)
    whole: Integers = np.clip(np.rint(found), 0, upper).astype(np.int64)
    return whole


def _solve(
    cells: Floats, margins: Margins, targets: Sequence[Integers], upper: int, *, exact: int
) -> Floats:
    """The corner of the program min sum |x - cell| + what margins are missed by."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_matrix, hstack, identity

    rows = len(cells)
    low = np.floor(cells + NEAR)
    part = np.maximum(cells - low, 0)
    wanted = np.concatenate(targets[:exact]).astype(float)
    starts = np.cumsum([0, *margins.sizes[:exact]])
    place = np.concatenate([g + s for g, s in zip(margins.groups[:exact], starts, strict=False)])
    column = np.tile(np.arange(rows), exact)
    A = coo_matrix((np.ones(exact * rows), (place, column)), (len(wanted), rows)).tocsr()
    slack = identity(len(wanted), format="csr")
    whole = hstack([A, A, -A, slack, -slack], format="csr")
    ones, missed = np.ones(rows), np.full(len(wanted), MISSED)
    cost = np.concatenate([1 - 2 * part, ones, ones, missed, missed])
    room = np.minimum(upper - low, 1)
    most = np.concatenate([room, upper - low - room, low, np.full(2 * len(wanted), np.inf)])
    bounds: Any = np.column_stack([np.zeros(len(cost)), most])
    made = linprog(cost, A_eq=whole, b_eq=wanted - A @ low, bounds=bounds, method="highs-ds")
    if made.x is None:
        return cells
    x = made.x
    found: Floats = low + x[:rows] + x[rows : 2 * rows] - x[2 * rows : 3 * rows]
    return found
