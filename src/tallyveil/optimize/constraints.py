"""The rows of privacy and of the properties, without those that other rows imply.

Every row has the form ``factor * M[larger] - M[smaller] >= floor`` (`properties.Rows`), so
that the program, the lower bound and the final check read the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallyveil.arrays import Integers, Mask
from tallyveil.optimize.problem import Problem
from tallyveil.properties import IMPLIED, Rows, rows

__all__ = [
    "PRIVACY",
    "Block",
    "has_output_minimum",
    "list_privacy_rows",
    "list_property_rows",
    "number_pairs",
    "select_rows",
]

PRIVACY = "privacy"
"""The name of the blocks of privacy rows."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that belong together, under the name that the user knows; keys of the program's rows."""

    name: str
    rows: Rows


def list_property_rows(problem: Problem) -> list[Block]:
    """List the rows of every requested property that no other requested property implies."""
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
    if problem.least_probability > 0:
        cells = _find_nearest_cells(problem)
        blocks.append(Block("zero_outputs", Rows(cells, floor=problem.least_probability)))
    return blocks


def _find_nearest_cells(problem: Problem) -> tuple[Integers, Integers]:
    """Each output with the true answer, or the two, nearest to it."""
    distance = np.abs(problem.query.inputs[:, None].astype(float) - problem.query.outputs[None, :])
    tie = 1e-9 * float(problem.query.inputs[-1] - problem.query.inputs[0])
    i, j = np.nonzero(distance <= distance.min(axis=0) + tie)
    return i.astype(np.int64), j.astype(np.int64)


def has_output_minimum(problem: Problem) -> bool:
    """Whether privacy goes through one variable per output, m_j <= M[i,j] <= e^epsilon m_j.

    On a complete graph that is 2nm rows instead of n^2 m. Row monotonicity does better
    still, with nm rows and no new variable.
    """
    return (
        problem.query.neighbours.kind == "complete"
        and len(problem.query.inputs) > 2
        and "row_monotone" not in problem.properties
        and not problem.delta
        and problem.private
    )


def list_privacy_rows(problem: Problem) -> list[Block]:
    """List the rows e^epsilon M[k, j] >= M[i, j] for neighbours i, k, as few as suffice."""
    if has_output_minimum(problem) or not problem.private:
        return []
    banded = problem.query.neighbours.kind != "explicit" and not problem.delta
    if banded and "row_monotone" in problem.properties:
        larger, smaller, output = _pair_towards_peak(problem)
    else:
        larger, smaller, output = _pair_neighbours(problem)
    rows = Rows((larger, output), (smaller, output), factor=problem.growth)
    return [Block(PRIVACY, rows)]


def _pair_neighbours(problem: Problem) -> tuple[Integers, Integers, Integers]:
    """Every ordered pair of neighbours with every output."""
    pairs, m = problem.query.neighbours.pairs, len(problem.query.outputs)
    first = np.concatenate([pairs[:, 0], pairs[:, 1]])
    second = np.concatenate([pairs[:, 1], pairs[:, 0]])
    return np.repeat(first, m), np.repeat(second, m), np.tile(np.arange(m), len(first))


def _pair_towards_peak(problem: Problem) -> tuple[Integers, Integers, Integers]:
    """Every entry with the likeliest of its neighbours, under row monotonicity on a band.

    Column j rises up to input `left` and falls from input `right` on (they cross where j has
    inputs of its own). The largest entry within the band of i is then the one `width` steps
    towards the peak, or the peak itself; every other pair is implied.
    """
    home, (n, m) = problem.query.home, problem.query.shape
    width = problem.query.neighbours.width
    left = np.searchsorted(home, np.arange(m), side="right") - 1
    right = np.searchsorted(home, np.arange(m), side="left")
    i, j = np.indices((n, m)).reshape(2, -1)
    parts = []
    for peak in (left, right):
        inside = (peak[j] >= 0) & (peak[j] < n)
        step = np.clip(peak[j] - i, -width, width)
        parts.append((i[inside], (i + step)[inside], j[inside]))
    far, near, column = (np.concatenate(part) for part in zip(*parts, strict=True))
    code = np.unique((far * n + near) * m + column)
    far, near, column = code // (n * m), code // m % n, code % m
    moved = far != near
    return far[moved], near[moved], column[moved]


def select_rows(rows: Rows, which: Mask | Integers) -> Rows:
    """Return the rows that a mask or an array of numbers selects."""
    smaller = None if rows.smaller is None else (rows.smaller[0][which], rows.smaller[1][which])
    larger = (rows.larger[0][which], rows.larger[1][which])
    return Rows(larger, smaller, rows.factor, rows.floor, rows.equal)


def number_pairs(rows: Rows, n: int) -> Integers:
    """Number the ordered pairs of neighbours, and return that number for each privacy row."""
    assert rows.smaller is not None
    numbers: Integers = np.unique(rows.larger[0] * n + rows.smaller[0], return_inverse=True)[1]
    return numbers
