"""The linear program of a problem, and the way back from its solutions.

`select` decides which rows are written out, `write_program` writes them as a matrix program,
and `assemble` reduces that to a program for a solver. Besides the matrix its variables are, where
needed, the smallest entry of each column (complete graphs), the worst case, and the slack
of (epsilon, delta)-privacy.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.optimize.matrix_program import (
    ColumnSums,
    Constraint,
    CostScaling,
    MatrixProgram,
    MatrixScaling,
    MatrixSolution,
    OtherVariables,
    RowSums,
    Substitution,
    erase,
    geometric_tails,
    identity,
    mark_tails,
    mirror,
    share_diagonal,
)
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

__all__ = [
    "ABOVE_MINIMUM",
    "BELOW_MINIMUM",
    "ROW_SUMS",
    "WORST_CASE",
    "Assembly",
    "Selection",
    "assemble",
    "choose_substitution",
    "mark_erased",
    "select",
    "write_program",
]

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
