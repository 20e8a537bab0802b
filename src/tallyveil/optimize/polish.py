"""From a solver's matrix to a mechanism that keeps its promises as given.

A solver leaves zeros beside positives and ratios a little above e^epsilon. Where no property
is asked for, the sweep repair of `tallyveil.certify` mends that at almost no cost. Otherwise
the matrix is mixed with a little of the uniform law on its support, which has every property.
"""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.mechanism import Mechanism
from tallyveil.optimize.constraints import Block, property_rows
from tallyveil.optimize.problem import Problem
from tallyveil.proof.repair import repair
from tallyveil.properties import Rows

__all__ = ["LAW_TOLERANCE", "TOLERANCE", "above_underflow", "broken_rows", "clean"]


TOLERANCE = 1e-9
"""To this, absolutely, a design has the properties that were asked for."""

LAW_TOLERANCE = 1e-8
"""To this, absolutely, output laws come out as demanded."""

FAINT = (1e-8, 1e-11)
"""An output less likely than this for every input is a solver's way of saying never; the
larger limit is tried first and kept where dropping such outputs costs nothing."""

DEAR = 1e-8
"""What dropping faint outputs may cost, relative to the objective."""

UNDERFLOW = 1e-290
"""Below this, doubles lose the digits that ratios between neighbours need."""

ROUNDING = 1e-14
"""Ratios this close to e^epsilon, relatively, are e^epsilon in doubles."""


def clean(problem: Problem, matrix: Floats) -> Floats:
    """`matrix` made stochastic and private, with its properties kept to `TOLERANCE`.

    Privacy holds up to the rounding of doubles (about 1e-14 relative in the ratios); integer
    proof is the business of `tallyveil.certify`.
    """
    start = problem.value(matrix)
    for faint in FAINT:
        result = above_underflow(_cleaned(problem, matrix, faint))
        if problem.value(result) <= start + DEAR * abs(start):
            break
    return result


def above_underflow(matrix: Floats) -> Floats:
    """Lift outputs whose far tails underflow, so that no zero stands beside a positive.

    One constant per output keeps privacy and every property, and 1e-290 changes no sum.
    """
    used = matrix.max(axis=0) > 0
    if matrix[:, used].min(initial=1.0) > UNDERFLOW:
        return matrix
    lifted: Floats = np.where(used[None, :], matrix + UNDERFLOW, 0.0)
    return lifted


def _cleaned(problem: Problem, matrix: Floats, faint: float) -> Floats:
    kept = np.maximum(matrix, 0.0)
    silent = kept.max(axis=0) <= faint
    if problem.least == 0 and not problem.laws and "output_private" not in problem.properties:
        kept[:, silent] = 0.0
    single = problem.laws[0].target if len(problem.laws) == 1 else None
    if single is not None:
        kept[:, silent & (single == 0)] = 0.0
    if not problem.delta and not problem.properties and problem.least == 0:
        kept /= kept.sum(axis=1, keepdims=True)
        mechanism = Mechanism(kept, problem.query, problem.epsilon)
        return repair(mechanism, target=single).mechanism.matrix
    support = (kept.max(axis=0) > 0).astype(float)
    calm = support / support.sum() if single is None else single
    kept = _levelled(problem, kept, calm)
    share = _delta_share(problem, kept) if problem.delta else _ratio_share(problem, kept, calm)
    mixed: Floats = (1 - share) * kept + share * calm[None, :]
    return mixed


def _levelled(problem: Problem, matrix: Floats, calm: Floats) -> Floats:
    """Rows that sum to one, without touching ratios and differences inside the matrix.

    What row i lacks of the largest row sum, v_i, is filled up from `calm`, together with the
    least k that makes v + k private by itself; then everything is divided by one number.
    Dividing each row by its own sum would break ratios between rows instead.
    """
    sums = matrix.sum(axis=1)
    lack, grow, level = sums.max() - sums, problem.grow, 0.0
    for low, high in problem.query.neighbours.blocks():
        for first, second in ((lack[low], lack[high]), (lack[high], lack[low])):
            level = max(level, float((first - grow * second).max(initial=0.0)))
    lack = lack + level / np.expm1(float(problem.epsilon))
    filled: Floats = matrix + lack[:, None] * calm[None, :]
    return filled / float(filled.sum(axis=1).max())


def _ratio_share(problem: Problem, matrix: Floats, calm: Floats) -> float:
    """How much of `calm` brings every ratio down to e^epsilon: v / (v + (e^epsilon - 1) c)."""
    excess = np.zeros(matrix.shape[1])
    grow = problem.grow
    for low, high in problem.query.neighbours.blocks():
        for first, second in ((matrix[low], matrix[high]), (matrix[high], matrix[low])):
            above = first * (1 - ROUNDING) - grow * second
            np.maximum(excess, above.max(axis=0), out=excess)
    if not (excess > 0).any():
        return 0.0
    room = np.expm1(float(problem.epsilon)) * calm
    with np.errstate(invalid="ignore"):
        share = np.where((excess > 0) & (room > 0), excess / (excess + room), 0.0)
    return float(share.max())


def _delta_share(problem: Problem, matrix: Floats) -> float:
    """How much of a constant law brings the hockey-stick sums, which are convex, to delta."""
    worst = 0.0
    for low, high in problem.query.neighbours.blocks():
        for first, second in ((matrix[low], matrix[high]), (matrix[high], matrix[low])):
            excess = np.maximum(first - problem.grow * second, 0.0).sum(axis=1)
            worst = max(worst, float(excess.max(initial=0.0)))
    allowed = float(problem.delta) * (1 - ROUNDING)
    return 1 - allowed / worst if worst > allowed else 0.0


def broken_rows(problem: Problem, matrix: Floats, tolerance: float = TOLERANCE) -> list[Block]:
    """The property rows that `matrix` breaks by more than `tolerance`."""
    broken = []
    for block in property_rows(problem):
        at = np.flatnonzero(block.rows.slack(matrix) < -tolerance)
        if len(at):
            rows, smaller = block.rows, block.rows.smaller
            part = None if smaller is None else (smaller[0][at], smaller[1][at])
            larger = (rows.larger[0][at], rows.larger[1][at])
            broken.append(
                Block(block.name, Rows(larger, part, rows.factor, rows.floor, rows.equal))
            )
    return broken
