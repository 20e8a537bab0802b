"""A linear program whose main unknown is a matrix, in named groups of rows.

Groups are stacked in the order in which they stand in their mapping. `Layout` is the only
place that turns names into positions of a vector and positions back into names, so the rows
of a program and their dual values cannot fall out of step.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.optimize.solver import Matrix
from tallyveil.properties import Rows

__all__ = [
    "ColumnSums",
    "Constraint",
    "Form",
    "Layout",
    "MatrixProgram",
    "MatrixSolution",
    "OtherVariables",
    "RowSums",
]


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each named part of a vector stands; parts follow one another in the given order.

    >>> layout = Layout({"a": 2, "b": 1})
    >>> {name: part.tolist() for name, part in layout.split(np.array([5, 6, 7])).items()}
    {'a': [5, 6], 'b': [7]}
    """

    sizes: Mapping[Hashable, int]

    @property
    def size(self) -> int:
        """The length of the whole vector."""
        return sum(self.sizes.values())

    @cached_property
    def slices(self) -> dict[Hashable, slice]:
        """The slice of the vector that each part occupies."""
        found: dict[Hashable, slice] = {}
        start = 0
        for name, size in self.sizes.items():
            found[name] = slice(start, start + size)
            start += size
        return found

    def split(self, vector: Floats) -> dict[Hashable, Floats]:
        """Return the parts of a vector by name."""
        return {name: vector[place] for name, place in self.slices.items()}

    def join(self, parts: Mapping[Hashable, Floats | float]) -> Floats:
        """Return the vector with the given parts, a scalar filling its part; `split` inverts it."""
        vector = np.zeros(self.size)
        for name, part in parts.items():
            vector[self.slices[name]] = part
        return vector


@dataclass(frozen=True, eq=False)
class RowSums:
    """The forms ``(weights * M)[i].sum()``, one for each chosen row i."""

    chosen: Integers
    weights: Floats

    def __len__(self) -> int:
        return len(self.chosen)


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """The forms ``(source @ M)[j]``, one for each chosen column j."""

    source: Floats
    chosen: Integers

    def __len__(self) -> int:
        return len(self.chosen)


Form: TypeAlias = Rows | RowSums | ColumnSums
"""Linear forms of a matrix; of `Rows` only ``factor * M[larger] - M[smaller]`` is meant."""


@dataclass(frozen=True, eq=False)
class Constraint:
    """Rows ``form(M) + sum_k others[k] @ x_k >= bound``; among equations ``== bound``."""

    form: Form | None
    bound: float | Floats
    others: Mapping[str, Matrix] = field(default_factory=dict)

    def __len__(self) -> int:
        if self.form is not None:
            return len(self.form)
        return int(next(iter(self.others.values())).shape[0])


@dataclass(frozen=True)
class OtherVariables:
    """Variables beside the matrix: how many, their cost, and whether they may be negative."""

    count: int
    cost: float = 0.0
    free: bool = False


@dataclass(frozen=True, eq=False)
class MatrixProgram:
    """Minimise ``(weights * M).sum()`` and the other variables' costs over a matrix M.

    Groups of rows have as key whatever they belong to: a block of rows, a marginal, or a name.
    With `free`, entries need no sign because the rows already make them non-negative.
    """

    weights: Floats | None
    equations: Mapping[Hashable, Constraint]
    inequalities: Mapping[Hashable, Constraint]
    others: Mapping[str, OtherVariables]
    free: bool

    @cached_property
    def equation_layout(self) -> Layout:
        """Where the equations of each group stand."""
        return Layout({key: len(group) for key, group in self.equations.items()})

    @cached_property
    def inequality_layout(self) -> Layout:
        """Where the inequalities of each group stand."""
        return Layout({key: len(group) for key, group in self.inequalities.items()})


@dataclass(frozen=True, eq=False)
class MatrixSolution:
    """A (nearly feasible) matrix and the dual multipliers, an array for the key of each group.

    With l >= 0 for inequalities and y for equations, ``weights - sum l A + sum y E`` is (nearly)
    zero on free entries.
    """

    matrix: Floats
    multipliers: Mapping[Hashable, Floats]
