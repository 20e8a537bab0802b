"""Whether a table of integer weights is private: every ratio compared exactly.

This module and `exponent` are the heart of what has to be right. They compare integers with
integers; no double decides anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import VerificationError
from tallyveil.neighbours import Neighbours
from tallyveil.proof.exponent import CELLS_AT_ONCE, Growth
from tallyveil.proof.rounding import TOTAL, TOTAL_BITS

__all__ = [
    "Cell",
    "Verdict",
    "check_weights",
    "find_broken_cell",
    "find_row_fault",
    "hockey_stick",
]


@dataclass(frozen=True)
class Cell:
    """The output that tells two neighbouring true answers apart best.

    `likelier` and `rarer` are input indices, `output` an output index, `weights` their two
    integer weights: the ratio is weights[0] / weights[1].
    """

    likelier: int
    rarer: int
    output: int
    weights: tuple[int, int]

    @property
    def epsilon(self) -> float:
        """ln of the ratio, in floating point; infinite beside a zero."""
        first, second = self.weights
        if second == 0:
            return math.inf if first else 0.0
        return math.log1p((first - second) / second)

    def __str__(self) -> str:
        first, second = self.weights
        ratio = first / second if second else math.inf
        return (
            f"output {self.output}: inputs {self.likelier} and {self.rarer}, "
            f"weights {first} and {second}, ratio {ratio:.12g}"
        )


@dataclass(frozen=True)
class Verdict:
    """Whether a mechanism holds what it claims; true in a condition if it does.

    Attributes
    ----------
    ok : every check passed
    epsilon, delta : the exact privacy that was checked, None if nothing readable was claimed
    achieved_epsilon : ln of the largest ratio found, in floating point, None if unknown
    achieved_delta : the exact hockey-stick bound found, where delta > 0 is claimed
    worst : the cell with the largest ratio
    reason : one sentence, what failed or what was checked
    """

    ok: bool
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    achieved_epsilon: float | None = None
    achieved_delta: Fraction | None = None
    worst: Cell | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


def check_weights(
    weights: Integers, neighbours: Neighbours, epsilon: Fraction, delta: Fraction = Fraction(0)
) -> Verdict:
    """Whether integer weights, shape (n, m), are (epsilon, delta)-private, exactly.

    >>> half = np.array([[2**61, 2**61], [2**61, 2**61]])
    >>> check_weights(half, Neighbours.path(2), Fraction(1)).achieved_epsilon
    0.0
    """
    fault = find_row_fault(weights)
    if fault:
        return Verdict(False, epsilon, delta, reason=fault)
    caps = Growth.of(epsilon).cap(weights)
    worst = _find_worst_cell(weights, neighbours)
    achieved = worst.epsilon
    if delta:
        units, likelier, rarer = hockey_stick(weights, caps, neighbours)
        found = Fraction(units, TOTAL)
        if found <= delta:
            return Verdict(True, epsilon, delta, achieved, found, worst)
        reason = (
            f"Not private: inputs {likelier} and {rarer} need delta {float(found):.6g} at "
            f"epsilon {epsilon}; claimed {float(delta):.6g}."
        )
        return Verdict(False, epsilon, delta, achieved, found, worst, reason)
    broken = find_broken_cell(weights, caps, neighbours)
    if broken is None:
        return Verdict(True, epsilon, delta, achieved, None, worst)
    reason = f"Not private at epsilon {epsilon}: {broken}."
    return Verdict(False, epsilon, delta, achieved, None, broken, reason)


def find_row_fault(weights: Integers) -> str | None:
    """Why a table is no table of weights, or None: every row must total 2^62."""
    if weights.ndim != 2 or weights.dtype != np.int64:
        return "Weights must be a table of 64-bit integers."
    if weights.min() < 0 or weights.max() > TOTAL:
        row = int(np.argmax(((weights < 0) | (weights > TOTAL)).any(axis=1)))
        return f"Row {row} has a weight outside 0..2^{TOTAL_BITS}."
    # Two halves, because a sum of many large weights could wrap around 2^64.
    high, low = np.empty((2, len(weights)), dtype=np.int64)
    for part in _split_rows(weights):
        high[part] = (weights[part] >> 31).sum(axis=1)
        low[part] = (weights[part] & 0x7FFFFFFF).sum(axis=1)
    carry = low >> 31
    wrong = (high + carry != TOTAL >> 31) | (low & 0x7FFFFFFF != 0)
    if wrong.any():
        return f"Row {int(wrong.argmax())} does not total 2^{TOTAL_BITS}."
    return None


def find_broken_cell(weights: Integers, caps: Integers, neighbours: Neighbours) -> Cell | None:
    """The cell with w[i, j] > floor(ratio w[k, j]) by most in the first block that has one."""
    for i, k, top, cap in _iterate_comparisons(weights, caps, neighbours):
        if any((top[part] > cap[part]).any() for part in _split_rows(top)):
            return _pick_cell(weights, i, k, *_find_largest(np.subtract, top, cap))
    return None


def _find_worst_cell(weights: Integers, neighbours: Neighbours) -> Cell:
    """The largest ratio, compared exactly among each block's float maxima."""
    # Where all pairs are neighbours, the largest weight of a column is looked for among doubles.
    values = weights.astype(float) if neighbours.kind == "complete" else weights
    best: Cell | None = None
    for i, k, top, bottom in _iterate_comparisons(values, values, neighbours):
        cell = _pick_cell(weights, i, k, *_find_largest(_divide, top, bottom))
        if best is None or (cell.weights[0] * best.weights[1] > best.weights[0] * cell.weights[1]):
            best = cell
    if best is None:
        raise VerificationError("The query has no neighbours.")
    return best


def _divide(top: NDArray[Any], bottom: NDArray[Any]) -> NDArray[Any]:
    """Ratios as doubles, 1 where both are equal."""
    first, second = top.astype(float), bottom.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: NDArray[Any] = first / second
    ratio[first == second] = 1.0
    return ratio


def _find_largest(
    measure: Callable[[Any, Any], NDArray[Any]], top: NDArray[Any], bottom: NDArray[Any]
) -> tuple[int, int]:
    """The first row and column where `measure(top, bottom)` is largest."""
    place, largest = (0, 0), None
    for part in _split_rows(top):
        found = measure(top[part], bottom[part])
        at, j = np.unravel_index(int(found.argmax()), found.shape)
        if largest is None or found[at, j] > largest:
            place, largest = (part.start + int(at), int(j)), found[at, j]
    return place


def _split_rows(table: NDArray[Any]) -> Iterator[slice]:
    """Some rows at a time, so that what is worked out of them stays in cache."""
    rows = max(1, CELLS_AT_ONCE // max(1, table.shape[1]))
    for start in range(0, len(table), rows):
        yield slice(start, start + rows)


def _iterate_comparisons(
    upper: Any, lower: Any, neighbours: Neighbours
) -> Iterator[tuple[Any, ...]]:
    """Blocks (i, k, upper[i], lower[k]) that together hold every ordered neighbour pair.

    Where all pairs are neighbours, the largest of each column against the smallest decides.
    """
    if neighbours.kind == "complete":
        yield (
            upper.argmax(axis=0)[None, :],
            lower.argmin(axis=0)[None, :],
            upper.max(axis=0)[None, :],
            lower.min(axis=0)[None, :],
        )
        return
    index = np.arange(len(upper))
    for first, second in neighbours.ordered_blocks():
        yield index[first][:, None], index[second][:, None], upper[first], lower[second]


def _pick_cell(weights: Integers, i: Integers, k: Integers, at: int, j: int) -> Cell:
    """The cell of a block in this row and column of it."""
    shape = (len(i), weights.shape[1])
    likelier = int(np.broadcast_to(i, shape)[at, j])
    rarer = int(np.broadcast_to(k, shape)[at, j])
    return Cell(likelier, rarer, j, (int(weights[likelier, j]), int(weights[rarer, j])))


def hockey_stick(weights: Integers, caps: Integers, neighbours: Neighbours) -> tuple[int, int, int]:
    """The largest sum_j max(0, w[i, j] - floor(ratio w[k, j])) in units of 2^-62, and where.

    Rounding the cap down can only raise the sum, so it bounds the true one from above.
    """
    index = np.arange(len(weights))
    worst = (-1, 0, 0)
    for first, second in neighbours.ordered_blocks():
        sums = np.maximum(weights[first] - caps[second], 0).sum(axis=1)
        at = int(sums.argmax())
        if sums[at] > worst[0]:
            worst = (int(sums[at]), int(index[first][at]), int(index[second][at]))
    return worst
