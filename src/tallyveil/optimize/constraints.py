"""The rows of the program: privacy and properties, without those that others imply.

Every row has the form ``factor * M[larger] - M[smaller] >= floor`` (`properties.Rows`), so
that the program, the lower bound and the final check read the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.optimize.problem import Problem
from tallyveil.properties import IMPLIED, Rows, rows

__all__ = ["Block", "minimum_trick", "privacy_rows", "property_rows"]


@dataclass(frozen=True)
class Block:
    """Rows that belong together, under the name the user knows them by."""

    name: str
    rows: Rows


def property_rows(problem: Problem) -> list[Block]:
    """The rows of every requested property that no other requested property implies."""
    wanted = set(problem.properties)
    implied = {name for strong in wanted for name in IMPLIED.get(strong, ())}
    epsilon = float(problem.epsilon)
    blocks = [
        Block(name, part)
        for name in problem.properties
        if name not in implied
        for part in rows(name, problem.query, epsilon)
        if len(part)
    ]
    if problem.least > 0:
        blocks.append(Block("zero_outputs", Rows(_nearest(problem), floor=problem.least)))
    return blocks


def _nearest(problem: Problem) -> tuple[Integers, Integers]:
    """Each output with the true answer, or the two, nearest to it."""
    distance = np.abs(problem.query.inputs[:, None].astype(float) - problem.query.outputs[None, :])
    step = 1e-9 * float(problem.query.inputs[-1] - problem.query.inputs[0])
    i, j = np.nonzero(distance <= distance.min(axis=0) + step)
    return i.astype(np.int64), j.astype(np.int64)


def minimum_trick(problem: Problem) -> bool:
    """Whether privacy goes through one variable per output, m_j <= M[i,j] <= e^epsilon m_j.

    On a complete graph that is 2nm rows instead of n^2 m. Row monotonicity does better
    still, with nm rows and no new variable.
    """
    kind = problem.query.neighbours.kind
    return (
        kind == "complete"
        and len(problem.query.inputs) > 2
        and "row_monotone" not in problem.properties
        and not problem.delta
        and problem.private
    )


def privacy_rows(problem: Problem) -> list[Block]:
    """Rows e^epsilon M[k, j] >= M[i, j] for neighbours i, k, as few as suffice."""
    if minimum_trick(problem) or not problem.private:
        return []
    banded = problem.query.neighbours.kind != "explicit" and not problem.delta
    if banded and "row_monotone" in problem.properties:
        far, near, j = _towards_the_peak(problem)
    else:
        far, near, j = _all_pairs(problem)
    return [Block("privacy", Rows((far, j), (near, j), factor=problem.grow))]


def _all_pairs(problem: Problem) -> tuple[Integers, Integers, Integers]:
    pairs, m = problem.query.neighbours.pairs, len(problem.query.outputs)
    first = np.concatenate([pairs[:, 0], pairs[:, 1]])
    second = np.concatenate([pairs[:, 1], pairs[:, 0]])
    return np.repeat(first, m), np.repeat(second, m), np.tile(np.arange(m), len(first))


def _towards_the_peak(problem: Problem) -> tuple[Integers, Integers, Integers]:
    """Under row monotonicity on a band: M[i, j] against the likeliest neighbour it has.

    Column j rises up to input `left` and falls from input `right` on (they cross where j has
    inputs of its own). The largest entry within the band of i is then the one `width` steps
    towards the peak, or the peak itself; every other pair is implied.
    """
    home, (n, m) = problem.query.home, problem.query.shape
    width = problem.query.neighbours.width
    left = np.searchsorted(home, np.arange(m), side="right") - 1
    right = np.searchsorted(home, np.arange(m), side="left")
    i, j = (part.ravel() for part in np.meshgrid(np.arange(n), np.arange(m), indexing="ij"))
    parts = []
    for peak in (left, right):
        inside = (peak[j] >= 0) & (peak[j] < n)
        parts.append(
            (i[inside], i[inside] + np.clip(peak[j] - i, -width, width)[inside], j[inside])
        )
    far, near, column = (np.concatenate(part) for part in zip(*parts, strict=True))
    code = np.unique((far * n + near) * m + column)
    far, near, column = code // (n * m), code // m % n, code % m
    moved = far != near
    return far[moved], near[moved], column[moved]
