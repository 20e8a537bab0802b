"""The linear program of a problem, its reductions, and the way back from its solutions.

`select` decides which rows are written out, `write_program` writes them as a matrix program,
and `assemble` reduces that to a program for a solver. Besides the matrix its variables are, where
needed, the smallest entry of each column (complete graphs), the worst case, and the slack
of (epsilon, delta)-privacy.

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
from tallyveil.optimize.problem import (
    PRIVACY,
    Block,
    Marginal,
    Problem,
    has_output_minimum,
    list_privacy_rows,
    list_property_rows,
    number_pairs,
    select_rows,
)
from tallyveil.optimize.solver import Matrix, Program, Solution
from tallyveil.properties import Rows


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions of the named parts of a vector, one after another in the given order.

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


# Keys of groups of rows; blocks of rows and marginals are keys themselves.
ROW_SUMS = "row sums"
WORST_CASE = "worst case"
ABOVE_MINIMUM = "M[i, j] >= m_j"
BELOW_MINIMUM = "M[i, j] <= e^epsilon m_j"
SLACK_SUMS = "slack sums"

# Names of the variables other than the matrix.
MINIMUM, LARGEST_LOSS, SLACK = "minimum", "largest loss", "slack"


@dataclass(frozen=True, eq=False)
class Selection:
    """The rows that are written out; all others follow by symmetry or by the shape of the tails."""

    folded: bool  # whether the matrix is its own mirror image
    width: int | None  # where geometric tails begin
    cut: int | None  # beyond which entries, and every row they are in, are left out
    blocks: tuple[Block, ...]
    sums: Integers  # inputs whose row sums are written
    marginals: tuple[tuple[Marginal, Integers], ...]  # each with the outputs that it fixes
    worst_inputs: Integers  # inputs whose loss enters the worst case
    minimum_outputs: Integers  # outputs whose privacy goes through their smallest entry


@dataclass(frozen=True, eq=False)
class Assembly:
    """A program for a solver together with the reductions that led to it."""

    problem: Problem
    selection: Selection
    steps: tuple[MatrixScaling, Substitution, CostScaling]
    stages: tuple[MatrixProgram, MatrixProgram, Program]
    program: Program

    def invert(self, solution: Solution) -> MatrixSolution:
        """Return the matrix and the multipliers that the solver found."""
        scale_matrix, substitute, scale_costs = self.steps
        written, scaled, substituted = self.stages
        unscaled = scale_costs.invert(substituted, solution)
        return scale_matrix.invert(written, substitute.invert(scaled, unscaled))


def assemble(
    problem: Problem,
    width: int | None = None,
    extra: tuple[Block, ...] = (),
    *,
    cut: bool = False,
    margin: float = 0.0,
    fold_if_mirrored: bool = True,
    scaled: bool = True,
) -> Assembly:
    """Build the program of `problem`, folded where it is symmetric.

    Geometric tails begin at `width` (paths only; None for the whole program). With `cut` there are
    no tails: entries beyond `width` are left out, with the rows they are in, so that the program
    asks for less than the problem does. `extra` rows are those outside the window that an earlier
    solution broke; inequalities hold by `margin`, so that round-off cannot break them. `scaled`
    brings costs to a common size; some problems are solved more accurately without.
    """
    selection = select(problem, width, extra, cut=cut, fold_if_mirrored=fold_if_mirrored)
    scale_matrix = MatrixScaling(_choose_matrix_factor(problem))
    substitute = choose_substitution(problem, selection)
    scale_costs = CostScaling(_choose_cost_factor(problem) if scaled else 1.0)
    written = write_program(problem, selection, margin)
    enlarged = scale_matrix.apply(written)
    substituted = substitute.apply(enlarged)
    return Assembly(
        problem,
        selection,
        (scale_matrix, substitute, scale_costs),
        (written, enlarged, substituted),
        scale_costs.apply(substituted),
    )


# -- which rows are written -----------------------------------------------------------------------


def select(
    problem: Problem,
    width: int | None = None,
    extra: tuple[Block, ...] = (),
    *,
    cut: bool = False,
    fold_if_mirrored: bool = True,
) -> Selection:
    """Select the rows to write out, folded where symmetry is demanded or just holds."""
    mirrored = problem.is_mirrored and fold_if_mirrored
    folded = mirrored or "symmetric" in problem.properties
    beyond, width = (width, None) if cut else (None, width)
    blocks = [
        _drop_superfluous(block, problem, mirrored, width)
        for block in (*list_privacy_rows(problem), *list_property_rows(problem))
        if not block.rows.equal
    ]
    if beyond is not None:
        blocks = [_drop_beyond(block, problem, beyond) for block in blocks]
    n, m = problem.query.shape
    sums = np.arange((n + 1) // 2 if folded else n)
    outputs = np.arange((m + 1) // 2 if folded else m)
    demanded = outputs if mirrored else np.arange(m)
    worst = np.flatnonzero(problem.possible) if problem.worst_case else np.empty(0, np.int64)
    return Selection(
        folded,
        width,
        beyond,
        tuple(block for block in (*blocks, *extra) if len(block.rows)),
        sums,
        tuple(
            (marginal, _drop_dependent(marginal, demanded, problem))
            for marginal in problem.marginals
        ),
        worst[worst < len(sums)] if mirrored else worst,
        outputs if has_output_minimum(problem) else outputs[:0],
    )


def _drop_superfluous(block: Block, problem: Problem, mirrored: bool, width: int | None) -> Block:
    """Drop the rows of a block that the tails or the symmetry makes superfluous."""
    rows = block.rows
    keep = np.ones(len(rows), dtype=bool)
    if width is not None and rows.smaller is not None:
        far = mark_tails(problem, width)
        first, second = far[rows.larger], far[rows.smaller]
        # A row along one input is implied only where both its entries lie in tails; a row
        # down a tail is implied as soon as one does. Honesty compares with the truth.
        along = np.asarray(rows.larger[0] == rows.smaller[0]) & (block.name != "column_honest")
        keep &= np.where(along, ~(first & second), ~(first | second))
    if mirrored and problem.delta and block.name == PRIVACY:
        keep &= _is_first_of_mirrored_pairs(rows, len(problem.query.inputs))
    elif mirrored:
        keep &= _is_first_of_mirrored_rows(rows, problem.query.shape)
    return Block(block.name, select_rows(rows, keep))


def _drop_beyond(block: Block, problem: Problem, cut: int) -> Block:
    """Drop the rows of a block that have an entry beyond `cut`."""
    far = mark_tails(problem, cut)
    keep = ~far[block.rows.larger]
    if block.rows.smaller is not None:
        keep &= ~far[block.rows.smaller]
    return Block(block.name, select_rows(block.rows, keep))


def _is_first_of_mirrored_rows(rows: Rows, shape: tuple[int, int]) -> Mask:
    """Mark one of every row and its mirror image."""
    n, m = shape
    top = n * m - 1
    code = (rows.larger[0] * m + rows.larger[1]).astype(np.int64)
    other = top - code
    if rows.smaller is not None:
        second = rows.smaller[0] * m + rows.smaller[1]
        code, other = code * (top + 1) + second, other * (top + 1) + top - second
    return code <= other


def _is_first_of_mirrored_pairs(rows: Rows, n: int) -> Mask:
    """Mark all rows of one of every ordered neighbour pair and its mirror.

    Pairs stay complete because the slacks of their rows are summed.
    """
    assert rows.smaller is not None
    code = rows.larger[0] * n + rows.smaller[0]
    return code <= n * n - 1 - code


def _drop_dependent(marginal: Marginal, outputs: Integers, problem: Problem) -> Integers:
    """Return the outputs whose equations are needed: row sums already imply one of them."""
    possible = outputs[~mark_erased(problem)[outputs]]
    independent: Integers = possible[possible != possible[np.argmax(marginal.target[possible])]]
    return independent


def mark_erased(problem: Problem) -> Mask:
    """Mark the outputs that a marginal forbids: zero for one input is zero for all of them."""
    erased = np.zeros(len(problem.query.outputs), dtype=bool)
    if problem.query.neighbours.kind != "explicit" and not problem.delta and problem.private:
        for marginal in problem.marginals:
            erased |= marginal.target == 0
    return erased


# -- how they are written -------------------------------------------------------------------------


def write_program(problem: Problem, selection: Selection, margin: float = 0.0) -> MatrixProgram:
    """Write the selected rows as a linear program of the matrix and the other variables."""
    free = _is_free(problem)
    others: dict[str, OtherVariables] = {}
    if len(selection.minimum_outputs):
        others[MINIMUM] = OtherVariables(len(selection.minimum_outputs), free=free)
    if problem.worst_case:
        others[LARGEST_LOSS] = OtherVariables(1, cost=1.0, free=True)
    equations: dict[Hashable, Constraint] = {
        ROW_SUMS: Constraint(RowSums(selection.sums, np.ones(problem.query.shape)), 1.0)
    }
    for marginal, outputs in selection.marginals:
        fixed = ColumnSums(marginal.source, outputs)
        equations[marginal] = Constraint(fixed, marginal.target[outputs])
    inequalities: dict[Hashable, Constraint] = {}
    for block in selection.blocks:
        slack: dict[str, Matrix] = {}
        if problem.delta and block.name == PRIVACY:
            others[SLACK] = OtherVariables(len(block.rows))
            slack = {SLACK: sparse.eye_array(len(block.rows), format="csr")}
        inequalities[block] = Constraint(block.rows, block.rows.floor + margin, slack)
    inequalities |= _write_minimum(problem, selection.minimum_outputs)
    if problem.worst_case:
        losses = RowSums(selection.worst_inputs, -problem.loss_table)
        ones = sparse.csr_array(np.ones((len(losses), 1)))
        inequalities[WORST_CASE] = Constraint(losses, 0.0, {LARGEST_LOSS: ones})
    if problem.delta:
        inequalities[SLACK_SUMS] = _write_slack_sums(problem, selection.blocks)
    weights = None if problem.worst_case else problem.weights
    return MatrixProgram(weights, equations, inequalities, others, free)


def _write_minimum(problem: Problem, outputs: Integers) -> dict[Hashable, Constraint]:
    """Write m_j <= M[i, j] and M[i, j] <= e^epsilon m_j."""
    if not len(outputs):
        return {}
    n = len(problem.query.inputs)
    i, j = (part.ravel() for part in np.meshgrid(np.arange(n), outputs, indexing="ij"))
    minimum = sparse.csr_array(
        (np.ones(len(j)), (np.arange(len(j)), j)), shape=(len(j), len(outputs))
    )
    return {
        ABOVE_MINIMUM: Constraint(Rows((i, j)), 0.0, {MINIMUM: -minimum}),
        BELOW_MINIMUM: Constraint(
            Rows((i, j), factor=-1.0), 0.0, {MINIMUM: problem.growth * minimum}
        ),
    }


def _write_slack_sums(problem: Problem, blocks: tuple[Block, ...]) -> Constraint:
    """Write sum_j s[i, k, j] <= delta for each ordered pair of neighbours i, k."""
    (block,) = (block for block in blocks if block.name == PRIVACY)
    pair = number_pairs(block.rows, len(problem.query.inputs))
    count = len(pair)
    by_pair = sparse.csr_array(
        (-np.ones(count), (pair, np.arange(count))), shape=(int(pair.max()) + 1, count)
    )
    return Constraint(None, -float(problem.delta), {SLACK: by_pair})


def _is_free(problem: Problem) -> bool:
    """Return True if entries need no sign: privacy both ways makes them non-negative."""
    touched = np.zeros(len(problem.query.inputs), dtype=bool)
    for low, high in problem.query.neighbours.blocks():
        touched[low] = touched[high] = True
    return bool(not problem.delta and problem.private and touched.all())


# -- how they are reduced -------------------------------------------------------------------------


def choose_substitution(problem: Problem, selection: Selection) -> Substitution:
    """Choose how entries become variables: tails, symmetry, a shared diagonal, erased outputs."""
    if selection.width is None:
        chosen = identity(problem.query.shape)
    else:
        chosen = geometric_tails(problem, selection.width)
    if selection.folded:
        chosen = mirror(chosen)
    if "fair" in problem.properties:
        chosen = share_diagonal(chosen, problem.query.home)
    erased = np.broadcast_to(mark_erased(problem), problem.query.shape)
    if selection.cut is not None:
        erased = erased | mark_tails(problem, selection.cut)
    return erase(chosen, erased) if erased.any() else chosen


def _choose_matrix_factor(problem: Problem) -> float:
    """Return the number of outputs, or less for column honesty under a narrow prior.

    Measured: with a prior that falls by a tenth per step and 161 answers that halves the
    iterations for column honesty, and gains nothing or loses digits for other properties.
    """
    n, m = problem.query.shape
    if problem.worst_case or "column_honest" not in problem.properties:
        return float(m)
    return max(1.0, m / (n * float((problem.prior**2).sum())))


def _choose_cost_factor(problem: Problem) -> float:
    """Return the factor that brings the optimum to about 5 m.

    There the solver's tolerances work best. The optimum is guessed from entries that fall off like
    e^-epsilon per neighbour step.
    """
    steps = np.abs(problem.query.home[:, None] - np.arange(len(problem.query.outputs))[None, :])
    rate = float(problem.epsilon) / problem.query.neighbours.width
    guess: Floats = np.exp(-np.minimum(rate * steps, 700.0))
    value = abs(problem.objective(guess / guess.sum(axis=1, keepdims=True)))
    return 5.0 / value if value > 0 else 1.0
