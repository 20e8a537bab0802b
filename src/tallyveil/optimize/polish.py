"""Repairs that make a solver's matrix stochastic and private, with its requested properties.

A solver leaves zeros next to positives and ratios a little above e^epsilon. Where no property
is requested, `tallyveil.proof.repair` mends that at almost no cost. Otherwise the matrix is
mixed with a little of a constant mechanism, whose rows are all one distribution: the
uniform one on the outputs in use, which has every property, or the demanded output distribution.
`tallyveil.optimize.problem` says why there are two repairs and how their limits relate.
"""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.transport import monotone_remap
from tallyveil.neighbours import Neighbours
from tallyveil.optimize.problem import (
    DISTRIBUTION_TOLERANCE,
    MAX_DROP_COST,
    NEGLIGIBLE_OUTPUTS,
    RATIO_ROUNDING,
    ROUNDED_PROPERTY,
    SMALLEST_ENTRY,
    TIGHT_SHARE,
    Block,
    Problem,
    list_property_rows,
    select_rows,
)
from tallyveil.proof.repair import close_ratios, repair
from tallyveil.properties import TOLERANCE


def polish(problem: Problem, matrix: Floats) -> Floats:
    """Return the matrix made stochastic and private, with its properties kept.

    Private up to the rounding of doubles (about 1e-14 relative in the ratios); `tallyveil.certify`
    proves privacy in integers.
    """
    start = problem.objective(matrix)
    for negligible in NEGLIGIBLE_OUTPUTS:
        result = lift_underflow(_repair(problem, _drop_outputs(problem, matrix, negligible)))
        if problem.objective(result) <= start + MAX_DROP_COST * abs(start):
            break
    return _meet_marginal(problem, result)


def _meet_marginal(problem: Problem, matrix: Floats) -> Floats:
    """Remap the outputs so that a single output distribution is met to rounding.

    Post-processing keeps privacy; where it breaks a property the matrix stays unchanged.
    """
    if len(problem.marginals) != 1:
        return matrix
    (marginal,) = problem.marginals
    released = marginal.source @ matrix
    met = monotone_remap(released / released.sum(), marginal.target).after(matrix)
    return matrix if find_broken_rows(problem, met) else met


def lift_underflow(matrix: Floats) -> Floats:
    """Lift outputs whose far tails underflow, so that no zero is next to a positive entry.

    Adding one constant per output keeps privacy and every property, and 1e-290 changes no sum.
    """
    used = matrix.max(axis=0) > 0
    if matrix[:, used].min(initial=1.0) > SMALLEST_ENTRY:
        return matrix
    return np.where(used[None, :], matrix + SMALLEST_ENTRY, 0.0)


def _drop_outputs(problem: Problem, matrix: Floats, negligible: float) -> Floats:
    """Set negative entries, and outputs that are never likelier than `negligible`, to zero."""
    cleared = np.maximum(matrix, 0.0)
    unlikely = cleared.max(axis=0) <= negligible
    target = _get_single_target(problem)
    if target is not None:
        cleared[:, unlikely & (target == 0)] = 0.0
    elif (
        problem.least_probability == 0
        and not problem.marginals
        and "output_private" not in problem.properties
    ):
        cleared[:, unlikely] = 0.0
    return cleared


def _get_single_target(problem: Problem) -> Floats | None:
    """Return the one demanded output distribution, or None."""
    return problem.marginals[0].target if len(problem.marginals) == 1 else None


def _repair(problem: Problem, matrix: Floats) -> Floats:
    """Make rows sum to one and ratios private."""
    target = _get_single_target(problem)
    if not problem.delta and not problem.properties and problem.least_probability == 0:
        stochastic = matrix / matrix.sum(axis=1, keepdims=True)
        mechanism = Mechanism(stochastic, problem.query, problem.epsilon)
        return repair(mechanism, target=target).mechanism.matrix
    if can_fill_both_ways(problem):
        matrix = _fill_both_ways(problem, matrix)
    support = (matrix.max(axis=0) > 0).astype(float)
    constant = support / support.sum() if target is None else target
    filled = _fill_rows(problem, matrix, constant)
    if problem.delta:
        share = _measure_delta_share(problem, filled)
    else:
        share = _measure_ratio_share(problem, filled, constant)
    return (1 - share) * filled + share * constant[None, :]


def can_fill_both_ways(problem: Problem) -> bool:
    """Return True if nothing but privacy of inputs and of outputs is demanded."""
    demanded = set(problem.properties) == {"output_private"} and problem.private
    return demanded and not (problem.delta or problem.marginals or problem.least_probability)


def _fill_both_ways(problem: Problem, matrix: Floats) -> Floats:
    """Raise entries to what privacy of inputs and of outputs demands, and rows to equal sums.

    The lack of a row goes to the output of its truth while that halves the differences in row
    sums.
    """
    rows, home = np.arange(len(matrix)), problem.query.home
    closed = _close_both_ways(problem, matrix)
    while True:
        sums = closed.sum(axis=1)
        raised = closed.copy()
        raised[rows, home] += sums.max() - sums
        raised = _close_both_ways(problem, raised)
        if not np.ptp(raised.sum(axis=1)) <= np.ptp(sums) / 2 or np.ptp(sums) < RATIO_ROUNDING:
            return closed
        closed = raised


def _close_both_ways(problem: Problem, matrix: Floats) -> Floats:
    """Return the smallest matrix above this one with private neighbouring rows and columns."""
    shrink = 1 / problem.growth
    along_inputs = close_ratios(matrix, problem.query.neighbours, lambda row: row * shrink)
    outputs = Neighbours.path(matrix.shape[1])
    return close_ratios(along_inputs.T, outputs, lambda column: column * shrink).T


def _fill_rows(problem: Problem, matrix: Floats, constant: Floats) -> Floats:
    """Make rows sum to one without changing ratios and differences inside the matrix.

    The lack v_i of row i, compared with the largest row sum, is filled up from `constant`, with
    the least k that makes v + k private by itself; then everything is divided by one number.
    Dividing each row by its sum would break ratios between rows instead.
    """
    sums = matrix.sum(axis=1)
    lack, level = sums.max() - sums, 0.0
    for first, second in problem.query.neighbours.ordered_blocks():
        level = max(level, float((lack[first] - problem.growth * lack[second]).max(initial=0.0)))
    lack = lack + level / np.expm1(float(problem.epsilon))
    filled: Floats = matrix + lack[:, None] * constant[None, :]
    return filled / float(filled.sum(axis=1).max())


def _measure_ratio_share(problem: Problem, matrix: Floats, constant: Floats) -> float:
    """Return the share of `constant` that brings every ratio down to e^epsilon.

    An excess v of one entry needs the share v / (v + (e^epsilon - 1) c).
    """
    excess = np.zeros(matrix.shape[1])
    for first, second in problem.query.neighbours.ordered_blocks():
        above = matrix[first] * (1 - RATIO_ROUNDING) - problem.growth * matrix[second]
        np.maximum(excess, above.max(axis=0), out=excess)
    if not (excess > 0).any():
        return 0.0
    room = np.expm1(float(problem.epsilon)) * constant
    with np.errstate(invalid="ignore"):
        share = np.where((excess > 0) & (room > 0), excess / (excess + room), 0.0)
    return float(share.max())


def _measure_delta_share(problem: Problem, matrix: Floats) -> float:
    """Return the share of a constant mechanism that brings divergences down to delta.

    The hockey-stick divergence is convex and is zero for a constant mechanism.
    """
    worst = 0.0
    for first, second in problem.query.neighbours.ordered_blocks():
        excess = np.maximum(matrix[first] - problem.growth * matrix[second], 0.0).sum(axis=1)
        worst = max(worst, float(excess.max(initial=0.0)))
    allowed = float(problem.delta) * (1 - RATIO_ROUNDING)
    return 1 - allowed / worst if worst > allowed else 0.0


def find_broken_rows(problem: Problem, matrix: Floats) -> list[Block]:
    """Find the property rows that a matrix breaks by more than `TOLERANCE`."""
    broken = []
    for block in list_property_rows(problem):
        numbers = np.flatnonzero(block.rows.slack(matrix) < -TOLERANCE)
        if len(numbers):
            broken.append(Block(block.name, select_rows(block.rows, numbers)))
    return broken


def meets_marginals(problem: Problem, matrix: Floats) -> bool:
    """Test every demanded output distribution to `DISTRIBUTION_TOLERANCE`."""
    return _measure_miss(problem, matrix) <= DISTRIBUTION_TOLERANCE


def is_tight(problem: Problem, matrix: Floats) -> bool:
    """Return True if missed demands cannot have made the objective look good.

    A probability that is off by t changes the objective by the order of t times the largest loss.
    """
    largest = float(np.abs(problem.loss_table).max())
    if not largest:  # every mechanism has the objective 0
        return True
    gain = TIGHT_SHARE * abs(problem.objective(matrix)) / largest
    slacks = [float(b.rows.slack(matrix).min()) for b in list_property_rows(problem)]
    most = max([_measure_miss(problem, matrix), *(-slack for slack in slacks)])
    return most <= max(gain, ROUNDED_PROPERTY)


def _measure_miss(problem: Problem, matrix: Floats) -> float:
    """Return the worst error of an entry of a demanded output distribution."""
    misses = (
        np.abs(marginal.source @ matrix - marginal.target).max() for marginal in problem.marginals
    )
    return float(max(misses, default=0.0))
