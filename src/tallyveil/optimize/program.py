"""From a problem to a linear program, and from its solution back to a matrix.

The variables stand for m times a probability, so that they are of the order of one: with
them the interior-point method needs fewer iterations and leaves far smaller errors. They are
those of the substitution, then, where needed, the smallest entry of each
column (complete graphs), the worst case, and the slack of (epsilon, delta)-privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tallyveil.arrays import Floats, Integers
from tallyveil.optimize import reductions as fold
from tallyveil.optimize.constraints import Block, minimum_trick, privacy_rows, property_rows
from tallyveil.optimize.reductions import Substitution
from tallyveil.optimize.problem import Law, Problem
from tallyveil.optimize.solver import Matrix, Program, Solution
from tallyveil.properties import Rows

__all__ = ["Assembly", "Multipliers", "assemble", "erased_columns", "pair_numbers"]


@dataclass(frozen=True, eq=False)
class Assembly:
    """A program together with what its rows and variables mean."""

    problem: Problem
    program: Program
    substitution: Substitution
    folded: bool
    width: int | None
    blocks: tuple[Block, ...]
    sums: Integers
    scale: float
    law_columns: tuple[tuple[Law, Integers], ...]
    worst_inputs: Integers
    trick_columns: Integers

    def matrix(self, solution: Solution) -> Floats:
        """The (nearly feasible) mechanism that the solver found."""
        found = self.substitution.invert(solution.x[: self.substitution.size])
        return found / len(self.problem.query.outputs)

    def multipliers(self, solution: Solution) -> Multipliers:
        """The dual values, sorted by what they belong to."""
        parts = np.split(solution.y_ub, np.cumsum([len(block.rows) for block in self.blocks]))
        rest = parts[-1]
        shape = (len(self.problem.query.inputs), len(self.trick_columns))
        above, below, rest = _three(rest, shape[0] * shape[1], shape[0] * shape[1])
        worst = rest[: len(self.worst_inputs)]  # the bound divides by their sum
        laws = np.split(
            solution.y_eq[len(self.sums) :],
            np.cumsum([len(columns) for _, columns in self.law_columns]),
        )
        return Multipliers(
            tuple(
                (block, part / self.scale)
                for block, part in zip(self.blocks, parts[:-1], strict=True)
            ),
            solution.y_eq[: len(self.sums)] / self.scale,
            tuple(law / self.scale for law in laws[:-1]),
            worst / self.scale,
            above.reshape(shape) / self.scale,
            below.reshape(shape) / self.scale,
        )


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Dual values of an assembly: one array per kind of row."""

    blocks: tuple[tuple[Block, Floats], ...]
    sums: Floats
    laws: tuple[Floats, ...]
    worst: Floats
    above: Floats
    below: Floats


def assemble(
    problem: Problem,
    width: int | None = None,
    extra: tuple[Block, ...] = (),
    *,
    margin: float = 0.0,
    fold_if_even: bool = True,
    scaled: bool = True,
) -> Assembly:
    """The program of `problem`, folded where it is symmetric.

    Parameters
    ----------
    width : where geometric tails begin (paths only), None for the whole program
    extra : rows outside the window that an earlier solution broke
    margin : by how much inequalities must hold, so that round-off cannot break them
    fold_if_even : fold a problem that is its own mirror image, not only where it must be
    scaled : bring costs to a common size first; a few stubborn problems prefer them as given
    """
    mirrored = problem.is_mirrored and fold_if_even
    folded = mirrored or "symmetric" in problem.properties
    substitution = _substitution(problem, folded, width)
    blocks = [
        _kept(block, problem, mirrored, width)
        for block in (*privacy_rows(problem), *property_rows(problem))
        if not block.rows.equal
    ]
    blocks = [block for block in (*blocks, *extra) if len(block.rows)]
    n, m = problem.query.shape
    sums = np.arange((n + 1) // 2 if folded else n)
    columns = np.arange((m + 1) // 2 if folded else m)
    demanded = columns if mirrored else np.arange(m)
    laws = tuple((law, _independent(law, demanded, problem)) for law in problem.laws)
    worst = np.flatnonzero(problem.possible) if problem.worst_case else np.empty(0, np.int64)
    worst = worst[worst < len(sums)] if mirrored else worst
    trick = columns if minimum_trick(problem) else columns[:0]
    rows = _inequalities(problem, substitution, blocks, (worst, trick), margin)
    at_worst = substitution.size + len(trick)
    cost = np.zeros(rows.size)
    if problem.worst_case:
        cost[at_worst] = 1.0
    else:
        cost[: substitution.size] = substitution.apply_form(problem.weights)
    equations, right = _equations(problem, substitution, sums, laws, rows.size)
    A_ub, b_ub = rows.finished()
    scale = _cost_scale(problem) if scaled else 1.0
    program = Program(
        scale * cost, equations, m * right, A_ub, m * b_ub, free=_free(problem, rows.size, at_worst)
    )
    return Assembly(
        problem,
        program,
        substitution,
        folded,
        width,
        tuple(blocks),
        sums,
        scale,
        laws,
        worst,
        trick,
    )


def _inequalities(
    problem: Problem,
    substitution: Substitution,
    blocks: list[Block],
    chosen: tuple[Integers, Integers],
    margin: float,
) -> _Stack:
    """Every inequality: the blocks', then complete graphs', the worst case's, delta's."""
    worst, trick = chosen
    slacks = sum(len(block.rows) for block in blocks if block.name == "privacy")
    at_worst = substitution.size + len(trick)
    at_slack = at_worst + problem.worst_case
    rows = _Stack(at_slack + (slacks if problem.delta else 0))
    for block in blocks:
        loose = problem.delta and block.name == "privacy"
        slack = sparse.eye_array(slacks, format="csr") if loose else None
        rows.add(substitution.apply_rows(block.rows), block.rows.floor + margin, slack, at_slack)
    _add_trick(rows, problem, substitution, trick)
    if problem.worst_case:
        losses = substitution.apply_row_sums(worst, problem.table)
        rows.add(-losses, 0.0, sparse.csr_array(np.ones((len(worst), 1))), at_worst)
    if problem.delta:
        _add_slack_sums(rows, problem, blocks, at_slack)
    return rows


def _cost_scale(problem: Problem) -> float:
    """What brings the optimum to about 5 m, where the solver's tolerances bite as they should.

    The optimum is guessed from entries that fall off like e^-epsilon per neighbour step.
    """
    steps = np.abs(problem.query.home[:, None] - np.arange(len(problem.query.outputs))[None, :])
    rate = float(problem.epsilon) / problem.query.neighbours.width
    guess = np.exp(-np.minimum(rate * steps, 700.0))
    value = abs(problem.value(guess / guess.sum(axis=1, keepdims=True)))
    return 5.0 / value if value > 1e-9 else 1.0


def erased_columns(problem: Problem) -> NDArray[np.bool_]:
    """Outputs that a law forbids: probability zero for one input is zero for all of them."""
    erased = np.zeros(len(problem.query.outputs), dtype=bool)
    if problem.query.neighbours.kind != "explicit" and not problem.delta and problem.private:
        for law in problem.laws:
            erased |= law.target == 0
    return erased


def _substitution(problem: Problem, folded: bool, width: int | None) -> Substitution:
    chosen = fold.nothing(problem.query.shape) if width is None else fold.tails(problem, width)
    if folded:
        chosen = fold.mirror(chosen)
    if "fair" in problem.properties:
        chosen = fold.fair(chosen, problem.query.home)
    erased = erased_columns(problem)
    return fold.erase(chosen, erased) if erased.any() else chosen


def _kept(block: Block, problem: Problem, mirrored: bool, width: int | None) -> Block:
    """The rows of a block that the substitution does not make superfluous."""
    rows = block.rows
    keep = np.ones(len(rows), dtype=bool)
    if width is not None and rows.smaller is not None:
        far = fold.outside(problem, width)
        first, second = far[rows.larger], far[rows.smaller]
        # beside the window a step along a row is still a condition, a step down a tail is not
        along = np.asarray(rows.larger[0] == rows.smaller[0])
        keep &= np.where(along & ~_is_honesty(block), ~(first & second), ~(first | second))
    if mirrored and problem.delta and block.name == "privacy":
        keep &= _first_of_neighbours(rows, len(problem.query.inputs))
    elif mirrored:
        keep &= _first_of_pair(rows, problem.query.shape)
    return Block(block.name, _select(rows, keep))


def _is_honesty(block: Block) -> bool:
    return block.name == "column_honest"


def _select(rows: Rows, keep: NDArray[np.bool_]) -> Rows:
    smaller = None if rows.smaller is None else (rows.smaller[0][keep], rows.smaller[1][keep])
    larger = (rows.larger[0][keep], rows.larger[1][keep])
    return Rows(larger, smaller, rows.factor, rows.floor, rows.equal)


def _first_of_pair(rows: Rows, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """One of every row and its mirror image."""
    n, m = shape
    top = n * m - 1
    code = (rows.larger[0] * m + rows.larger[1]).astype(np.int64)
    other = top - code
    if rows.smaller is not None:
        second = rows.smaller[0] * m + rows.smaller[1]
        code, other = code * (top + 1) + second, other * (top + 1) + top - second
    first: NDArray[np.bool_] = code <= other
    return first


def _first_of_neighbours(rows: Rows, n: int) -> NDArray[np.bool_]:
    """All rows of one of every ordered neighbour pair and its mirror: their slacks are summed."""
    assert rows.smaller is not None
    code = rows.larger[0] * n + rows.smaller[0]
    first: NDArray[np.bool_] = code <= n * n - 1 - code
    return first


def _independent(law: Law, columns: Integers, problem: Problem) -> Integers:
    """The outputs whose equations are kept: row sums already imply one of them."""
    kept = columns[~erased_columns(problem)[columns]]
    spare: Integers = kept[kept != kept[np.argmax(law.target[kept])]]
    return spare


def _equations(
    problem: Problem,
    substitution: Substitution,
    sums: Integers,
    laws: tuple[tuple[Law, Integers], ...],
    size: int,
) -> tuple[Matrix, Floats]:
    ones = np.ones(problem.query.shape)
    parts, right = [substitution.apply_row_sums(sums, ones)], [np.ones(len(sums))]
    for law, columns in laws:
        parts.append(substitution.apply_column_sums(law.source, columns))
        right.append(law.target[columns])
    stacked = sparse.vstack(parts, format="csr")
    stacked.resize((stacked.shape[0], size))
    return stacked, np.concatenate(right)


class _Stack:
    """Rows ``form @ v >= floor`` collected as ``A_ub x <= b_ub``."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: list[Matrix] = []
        self.right: list[Floats] = []

    def add(self, form: Matrix, floor: float | Floats, other: Matrix = None, at: int = 0) -> None:
        """Add rows on the first variables, and `other` on those from number `at` on."""
        count = form.shape[0]
        widened = form.tocoo()
        entries = [(-widened.data, widened.coords[0], widened.coords[1])]
        if other is not None:
            second = other.tocoo()
            entries.append((-second.data, second.coords[0], second.coords[1] + at))
        data, row, column = (np.concatenate(part) for part in zip(*entries, strict=True))
        self.parts.append(sparse.csr_array((data, (row, column)), shape=(count, self.size)))
        self.right.append(-np.broadcast_to(np.asarray(floor, dtype=float), count))

    def finished(self) -> tuple[Matrix, Floats]:
        """``A_ub`` and ``b_ub``."""
        if not self.parts:
            return sparse.csr_array((0, self.size)), np.empty(0)
        return sparse.vstack(self.parts, format="csr"), np.concatenate(self.right)


def _add_trick(
    rows: _Stack, problem: Problem, substitution: Substitution, columns: Integers
) -> None:
    """m_j <= M[i, j] and M[i, j] <= e^epsilon m_j."""
    if not len(columns):
        return
    n = len(problem.query.inputs)
    i, j = (part.ravel() for part in np.meshgrid(np.arange(n), columns, indexing="ij"))
    cells = substitution.apply_rows(Rows((i, j)))
    least = sparse.csr_array(
        (np.ones(len(j)), (np.arange(len(j)), j)), shape=(len(j), len(columns))
    )
    rows.add(cells, 0.0, -least, substitution.size)
    rows.add(-cells, 0.0, problem.grow * least, substitution.size)


def _add_slack_sums(rows: _Stack, problem: Problem, blocks: list[Block], at: int) -> None:
    """sum_j s[i, k, j] <= delta for each ordered pair of neighbours i, k."""
    (block,) = [block for block in blocks if block.name == "privacy"]
    which = pair_numbers(block.rows, len(problem.query.inputs))
    count = len(which)
    sums = sparse.csr_array(
        (-np.ones(count), (which, np.arange(count))), shape=(int(which.max()) + 1, count)
    )
    rows.add(sparse.csr_array((sums.shape[0], 1)), -float(problem.delta), sums, at)


def pair_numbers(rows: Rows, n: int) -> Integers:
    """For each privacy row, the number of its ordered pair of neighbours."""
    assert rows.smaller is not None
    numbers: Integers = np.unique(rows.larger[0] * n + rows.smaller[0], return_inverse=True)[1]
    return numbers


def _free(problem: Problem, size: int, at_worst: int) -> NDArray[np.bool_]:
    """Which variables need no sign: privacy both ways makes probabilities non-negative."""
    free = np.ones(size, dtype=bool)
    touched = np.zeros(len(problem.query.inputs), dtype=bool)
    for low, high in problem.query.neighbours.blocks():
        touched[low] = touched[high] = True
    if problem.delta or not problem.private or not touched.all():
        free[:] = False
    if problem.worst_case:
        free[at_worst] = True
    return free


def _three(values: Floats, first: int, second: int) -> tuple[Floats, Floats, Floats]:
    return values[:first], values[first : first + second], values[first + second :]
