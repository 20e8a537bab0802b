"""Linear programs whose main unknown is a matrix, and their reductions to smaller ones.

Rows come in named groups, stacked in the order of their mapping. `Layout` is the only place that
turns names into positions of a vector and positions back into names, so the rows of a program and
their dual values cannot fall out of step.

Each reduction maps a problem to a smaller or better scaled one (`apply`), and a solution of that,
primal values and dual multipliers alike, to one of the problem it came from (`invert`), as in CVXPY
(Agrawal, Verschueren, Diamond and Boyd 2018). A design goes through three::

    MatrixProgram  --MatrixScaling-->  MatrixProgram  --Substitution-->  Program
                   --CostScaling-->    Program  -->  solver

A `Substitution` writes every entry of the matrix as a multiple of one variable. Symmetry, a
shared diagonal, geometric tails and outputs that are never released are all of this kind and
are built by `mirror`, `share_diagonal`, `geometric_tails` and `erase`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy import sparse

from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.optimize.problem import Problem
from tallyveil.optimize.solver import Matrix, Program, Solution
from tallyveil.properties import Rows

__all__ = [
    "ColumnSums",
    "Constraint",
    "CostScaling",
    "Form",
    "Layout",
    "MatrixProgram",
    "MatrixScaling",
    "MatrixSolution",
    "OtherVariables",
    "RowSums",
    "Substitution",
    "erase",
    "geometric_tails",
    "identity",
    "mark_tails",
    "mirror",
    "share_diagonal",
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
        """The length of the vector."""
        return sum(self.sizes.values())

    @cached_property
    def slices(self) -> dict[Hashable, slice]:
        """The slice of the vector that each part occupies."""
        slices: dict[Hashable, slice] = {}
        start = 0
        for name, size in self.sizes.items():
            slices[name] = slice(start, start + size)
            start += size
        return slices

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
"""Linear forms of a matrix; a `Rows` here is ``factor * M[larger] - M[smaller]`` only."""


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
    """Variables other than the matrix: their number and cost, and whether they may be negative."""

    count: int
    cost: float = 0.0
    free: bool = False


@dataclass(frozen=True, eq=False)
class MatrixProgram:
    """Minimise ``(weights * M).sum()`` and the other variables' costs over a matrix M.

    The key of a group of rows is a block of rows, a marginal, or a name. With `free`, entries need
    no sign because the rows already make them non-negative.
    """

    weights: Floats | None
    equations: Mapping[Hashable, Constraint]
    inequalities: Mapping[Hashable, Constraint]
    others: Mapping[str, OtherVariables]
    free: bool

    @cached_property
    def equation_layout(self) -> Layout:
        """The places of the equations of each group."""
        return Layout({key: len(group) for key, group in self.equations.items()})

    @cached_property
    def inequality_layout(self) -> Layout:
        """The places of the inequalities of each group."""
        return Layout({key: len(group) for key, group in self.inequalities.items()})


@dataclass(frozen=True, eq=False)
class MatrixSolution:
    """A (nearly feasible) matrix and the dual multipliers, an array for the key of each group.

    With l >= 0 for inequalities and y for equations, ``weights - sum l A + sum y E`` is (nearly)
    zero on free entries.
    """

    matrix: Floats
    multipliers: Mapping[Hashable, Floats]


ENTRIES = "entries"
"""In the layout of a reduced program: the variables that the entries of the matrix are made of."""


@dataclass(frozen=True)
class MatrixScaling:
    """The step from M to the unknown N = factor * M; right sides are multiplied, multipliers stay.

    With about the number of outputs as the factor, entries are of the order of one: the
    interior-point method needs fewer iterations and leaves far smaller errors.
    """

    factor: float

    def apply(self, program: MatrixProgram) -> MatrixProgram:
        """Return the program of N."""

        def scale(group: Constraint) -> Constraint:
            return replace(group, bound=self.factor * group.bound)

        return replace(
            program,
            equations={key: scale(group) for key, group in program.equations.items()},
            inequalities={key: scale(group) for key, group in program.inequalities.items()},
        )

    def invert(self, program: MatrixProgram, solution: MatrixSolution) -> MatrixSolution:
        """Return M = N / factor with the same multipliers."""
        return replace(solution, matrix=solution.matrix / self.factor)


@dataclass(frozen=True)
class CostScaling:
    """The step to costs, and with them objective and multipliers, times a positive factor."""

    factor: float

    def apply(self, program: Program) -> Program:
        """Return the program with scaled costs."""
        return replace(program, cost=self.factor * program.cost)

    def invert(self, program: Program, solution: Solution) -> Solution:
        """Return the solution with objective and multipliers divided by the factor."""
        return replace(
            solution,
            objective=solution.objective / self.factor,
            y_eq=solution.y_eq / self.factor,
            y_ub=solution.y_ub / self.factor,
        )


@dataclass(frozen=True, eq=False)
class Substitution:
    """Every entry as a multiple of a variable, ``M[i, j] = scale[i, j] v[variable[i, j]]``.

    In the reduced program the `size` variables v come first, then the other variables of the
    matrix program in their order. Rows keep their meaning, and so do their multipliers.
    """

    variable: Integers
    scale: Floats
    size: int

    def apply(self, program: MatrixProgram) -> Program:
        """Return the program of v and of the other variables."""
        columns = self._place_variables(program)
        cost = columns.join({name: part.cost for name, part in program.others.items()})
        if program.weights is not None:
            cost[columns.slices[ENTRIES]] = self.apply_total(program.weights)
        free = columns.join(
            {ENTRIES: program.free, **{k: v.free for k, v in program.others.items()}}
        )
        A_eq = self._stack(program.equations, columns)
        A_ub = -self._stack(program.inequalities, columns)
        b_eq = program.equation_layout.join({k: v.bound for k, v in program.equations.items()})
        b_ub = -program.inequality_layout.join(
            {k: v.bound for k, v in program.inequalities.items()}
        )
        return Program(cost, A_eq, b_eq, A_ub, b_ub, free=free.astype(bool))

    def invert(self, program: MatrixProgram, solution: Solution) -> MatrixSolution:
        """Return the matrix of the values of v, and the multipliers by group of rows."""
        values = solution.x[self._place_variables(program).slices[ENTRIES]]
        return MatrixSolution(
            self.expand(values),
            program.equation_layout.split(solution.y_eq)
            | program.inequality_layout.split(solution.y_ub),
        )

    def expand(self, values: Floats) -> Floats:
        """Return the matrix, shape (n, m), of the values of the variables."""
        return self.scale * values[self.variable]

    def apply_total(self, weights: Floats) -> Floats:
        """Return ``(weights * M).sum()`` as coefficients of v, shape (size,)."""
        total = np.bincount(
            self.variable.ravel(), (weights * self.scale).ravel(), minlength=self.size
        )
        return total.astype(float)

    def apply_form(self, form: Form) -> sparse.csr_array:
        """Return the forms as a sparse matrix on v, one row each."""
        if isinstance(form, RowSums):
            row = np.repeat(np.arange(len(form)), self.variable.shape[1])
            column = self.variable[form.chosen].ravel()
            value = (form.weights * self.scale)[form.chosen].ravel()
        elif isinstance(form, ColumnSums):
            row = np.tile(np.arange(len(form)), len(form.source))
            column = self.variable[:, form.chosen].ravel()
            value = (form.source[:, None] * self.scale)[:, form.chosen].ravel()
        else:
            row, column, value = self._write_differences(form)
        return sparse.csr_array((value, (row, column)), shape=(len(form), self.size))

    def _write_differences(self, rows: Rows) -> tuple[Integers, Integers, Floats]:
        """Return row, column and value of ``factor * M[larger] - M[smaller]``."""
        row, column = np.arange(len(rows)), self.variable[rows.larger]
        value = rows.factor * self.scale[rows.larger]
        if rows.smaller is None:
            return row, column, value
        column = np.concatenate([column, self.variable[rows.smaller]])
        return np.tile(row, 2), column, np.concatenate([value, -self.scale[rows.smaller]])

    def _place_variables(self, program: MatrixProgram) -> Layout:
        """Lay out the variables of the reduced program."""
        return Layout({ENTRIES: self.size, **{k: v.count for k, v in program.others.items()}})

    def _stack(self, groups: Mapping[object, Constraint], columns: Layout) -> Matrix:
        """Stack all rows of the groups on all variables, in the groups' order."""
        if not groups:
            return sparse.csr_array((0, columns.size))
        parts = [self._widen(group, columns) for group in groups.values()]
        return sparse.vstack(parts, format="csr")

    def _widen(self, group: Constraint, columns: Layout) -> Matrix:
        """Return the rows of one group on all variables."""
        blocks = dict(group.others)
        if group.form is not None:
            blocks = {ENTRIES: self.apply_form(group.form), **blocks}
        placed = [(columns.slices[name].start, block.tocoo()) for name, block in blocks.items()]
        value = np.concatenate([block.data for _, block in placed])
        row = np.concatenate([block.coords[0] for _, block in placed])
        column = np.concatenate([start + block.coords[1] for start, block in placed])
        return sparse.csr_array((value, (row, column)), shape=(len(group), columns.size))

    def then(self, variable: Integers) -> Substitution:
        """Return this substitution with variable k identified with ``variable[k]``."""
        merged = variable[self.variable]
        used, dense = np.unique(merged, return_inverse=True)
        return Substitution(dense.reshape(merged.shape), self.scale, len(used))


def identity(shape: tuple[int, int]) -> Substitution:
    """Give every entry a separate variable."""
    cells = np.arange(shape[0] * shape[1]).reshape(shape)
    return Substitution(cells, np.ones(shape), cells.size)


def mirror(before: Substitution) -> Substitution:
    """Let an entry and its mirror image share a variable, M[i, j] = M[n-1-i, m-1-j]."""
    pair = np.minimum(before.variable, before.variable[::-1, ::-1])
    variable = np.arange(before.size)
    variable[before.variable] = pair
    return before.then(variable)


def share_diagonal(before: Substitution, home: Integers) -> Substitution:
    """Use one variable for the probability of the truth, for every truth.

    Apply it after `mirror`; the entries it joins must still have scale one.
    """
    diagonal = before.variable[np.arange(len(home)), home]
    variable = np.arange(before.size)
    variable[diagonal] = diagonal.min()
    return before.then(variable)


def erase(before: Substitution, cells: Mask) -> Substitution:
    """Make the given entries, or outputs, zero; their variables disappear."""
    gone = np.broadcast_to(cells, before.variable.shape)
    rest = np.unique(before.variable[~gone])
    number = np.zeros(before.size, dtype=np.int64)
    number[rest] = np.arange(len(rest))
    return Substitution(number[before.variable], np.where(gone, 0.0, before.scale), len(rest))


def geometric_tails(problem: Problem, width: int) -> Substitution:
    """Let entries further than `width` from the truth fall by e^-epsilon per step, on a path.

    That is as small as privacy allows, so it is what an optimum does far from the truth. It
    restricts the program: the objective can only be too high, and the lower bound, which is
    for the whole program, shows by how much.
    """
    n, m = problem.query.shape
    first, last = _find_nearest_inputs(problem)
    i = np.arange(n)[:, None]
    edge = np.clip(i, np.maximum(first - width, 0), np.minimum(last + width, n - 1))
    scale = np.exp(-float(problem.epsilon) * np.abs(i - edge))
    cells = edge * m + np.arange(m)[None, :]
    used, variable = np.unique(cells, return_inverse=True)
    return Substitution(variable.reshape(n, m), scale, len(used))


def mark_tails(problem: Problem, width: int) -> Mask:
    """Mark the entries more than `width` inputs away from those nearest to their output."""
    first, last = _find_nearest_inputs(problem)
    i = np.arange(len(problem.query.inputs))[:, None]
    return (i < first - width) | (i > last + width)


def _find_nearest_inputs(problem: Problem) -> tuple[Integers, Integers]:
    """Return the first and last input whose output is nearest to each output."""
    home, m = problem.query.home, len(problem.query.outputs)
    n = len(home)
    first = np.clip(np.searchsorted(home, np.arange(m), side="left"), 0, n - 1)
    last = np.clip(np.searchsorted(home, np.arange(m), side="right") - 1, 0, n - 1)
    return np.minimum(first, last), np.maximum(first, last)
