"""A hierarchy of sums: level 0 is the grand total, the last level holds the single counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, Mask, freeze
from tallyveil.errors import UsageError

__all__ = ["LARGEST_SUM", "Tree", "sum_by"]

LARGEST_SUM = 2**53
"""Sums stay below this, so that floating point adds them without error."""


@dataclass(frozen=True, eq=False)
class Tree:
    """Which node of each level belongs to which node of the level above.

    Attributes
    ----------
    parents : tuple of array of int
        ``parents[l][i]`` is the node of level l that node i of level l + 1 belongs to. Every
        node has at least one child.
    size : int
        The number of nodes of the last level.

    Examples
    --------
    >>> tree = Tree.of_columns([np.array([0, 0, 1])])
    >>> tree.sizes, [level.tolist() for level in tree.sum_up(np.array([5, 1, 2]))]
    ((1, 2, 3), [[8], [6, 2], [5, 1, 2]])
    """

    parents: tuple[Integers, ...]

    @classmethod
    def of_columns(cls, columns: Sequence[NDArray[Any]]) -> Tree:
        """The tree of rows under columns of codes, from coarse to fine.

        Nodes of a level stand in the order in which they appear first in the rows, which is
        public. A last column that tells all rows apart is the level of the rows itself.
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
        """How many nodes each level has."""
        return (1, *(len(parents) for parents in self.parents))

    @property
    def depth(self) -> int:
        """The number of the last level."""
        return len(self.parents)

    @cached_property
    def members(self) -> Integers:
        """How many nodes of the last level belong to each node of the level above it."""
        return np.bincount(self.parents[-1])

    def restrict(self, rows: Mask) -> tuple[Tree, tuple[Integers, ...]]:
        """The tree of some rows only, and for each level which node here each of its nodes is."""
        places: list[Integers] = [np.flatnonzero(rows)]
        parents: list[Integers] = []
        for level in reversed(self.parents):
            nodes, numbers = np.unique(level[places[0]], return_inverse=True)
            parents.insert(0, freeze(numbers.reshape(-1)))
            places.insert(0, nodes)
        return Tree(tuple(parents)), tuple(places)

    def sum_children(self, values: NDArray[Any], level: int) -> Floats:
        """The sums of `values`, one for each node of `level`, over the nodes of level - 1."""
        return sum_by(self.parents[level - 1], values, self.sizes[level - 1])

    def sum_up(self, leaves: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The sums of every level, coarse to fine, of whole numbers or of real ones."""
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

    def spread_down(self, values: NDArray[Any], level: int, to: int) -> NDArray[Any]:
        """For every node of level `to`, the entry of `values` of its ancestor at `level`."""
        for parents in self.parents[level:to]:
            values = values[parents]
        return values


def sum_by(groups: Integers, values: NDArray[Any], size: int) -> Floats:
    """Sum `values` by group number; exact for whole numbers below 2^53.

    >>> sum_by(np.array([1, 0, 1]), np.array([4, 5, 6]), 2).tolist()
    [5.0, 10.0]
    """
    summed: Any = np.bincount(groups, weights=values, minlength=size)
    sums: Floats = summed
    return sums


def _number_by_first(keys: Integers) -> tuple[Integers, Integers]:
    """Number distinct keys in order of first appearance: every row's number, and first rows."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse.reshape(-1)], first[order]
