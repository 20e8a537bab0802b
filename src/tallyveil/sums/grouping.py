"""Groups of rows some of which hold nobody: what is measured is the tree of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask
from tallyveil.sums.margins import Margins
from tallyveil.sums.tree import Tree

__all__ = ["Grouping"]


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of all rows, and those of the rows that can hold anybody.

    Structural zeros, and groups of nothing else, are 0 for certain: no noise is spent on them.

    Attributes
    ----------
    whole, part : Tree or Margins
        The groups of all rows, and of the free ones; the same object where all are free.
    places : tuple of array of int
        For each level, which node of `whole` every node of `part` is.

    Examples
    --------
    >>> tree = Tree.of_columns([np.array([0, 0, 1, 2])])
    >>> made = Grouping.of(tree, np.array([True, True, False, True]))
    >>> made.part.sizes, made.fill(1, np.array([5, 7])).tolist()
    ((1, 2, 3), [5, 0, 7])
    """

    whole: Tree | Margins
    part: Tree | Margins
    places: tuple[Integers, ...]

    @classmethod
    def of(cls, whole: Tree | Margins, free: Mask | None = None) -> Grouping:
        """The grouping in which only `free` rows can hold anybody; without it, all can."""
        if free is None or bool(free.all()):
            return cls(whole, whole, ())
        return cls(whole, *whole.restrict(free))

    def fill(self, level: int, values: NDArray[Any]) -> NDArray[Any]:
        """The values of all nodes of a level, given those of the free ones: 0 for the others."""
        if not self.places:
            return values
        filled = np.zeros(self.whole.sizes[level], dtype=values.dtype)
        filled[self.places[level]] = values
        return filled

    def take(self, level: int, values: NDArray[Any]) -> NDArray[Any]:
        """The values of the free nodes of a level, given those of all."""
        return values[self.places[level]] if self.places else values
