"""Columns of the same rows: what the draws of another column say about the count of one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers

__all__ = ["DrawnColumn", "expect_together", "find_partners"]

FEWEST_ROWS = 100
"""With fewer rows nothing is learned about how two columns go together."""

MOST_PAIRS = 1 << 16
"""Up to so many pairs of counts both columns' noise is undone; beyond it there are classes."""

MOST_CLASSES, FEWEST_IN_CLASS = 32, 50
"""Draws of a wide column are told apart in so many classes, of so many rows at least."""

MOST_CELLS = 1 << 20
"""Beyond so many pairs of a count and a class there are fewer classes, at last none."""

PRIOR_ROWS = 20
"""Every class counts as if it had so many further rows, distributed as the whole table."""

ROUNDS = 40
SHUFFLES, MARGIN = 3, 1.5
"""Two columns go together if they gain so many times what they do in any of these shuffles."""

MOST_COMPARED = 10_000
"""So many rows decide which other column is tried."""

SMALL = 1e-300


@dataclass(frozen=True, eq=False)
class DrawnColumn:
    """A column of counts: geometric draws cut at 0, the counts handed out for them, the epsilon."""

    draws: Integers
    counts: Integers
    epsilon: float

    @property
    def size(self) -> int:
        """One more than the largest count or draw."""
        return int(max(self.draws.max(), self.counts.max())) + 1


@dataclass(frozen=True, eq=False)
class _Axis:
    """What is known of a column: every row's place on it, the shares of counts, and the noise."""

    places: Integers
    shares: Floats
    ratio: float
    prior: float = 0.0


def expect_together(own: DrawnColumn, other: DrawnColumn) -> Floats:
    """E[count | both draws] of every row for the first of two columns, shape (N,).

    How the two go together is estimated by expectation maximisation from all pairs of draws,
    starting from columns that have nothing to do with each other; after every step both
    distributions are made those of the published counts. Of a wide column only the class of a
    draw is used. Post-processing of private draws.

    Parameters
    ----------
    own, other : DrawnColumn
        The two columns. Of their counts the distributions are used, not their order.

    Examples
    --------
    >>> small, large = np.array([0, 1] * 60), np.array([0, 9] * 60)
    >>> drawn = np.array([1, 1] + [0, 1] * 59)
    >>> found = expect_together(DrawnColumn(drawn, small, 1.0), DrawnColumn(large, large, 1.0))
    >>> bool(found[0] < found[1])
    True
    """
    axes = _find_axes(own, other)
    if axes is None:
        return np.asarray(own.draws, dtype=float)
    found: Floats = _expect(*axes, _count_pairs(*axes))[axes[0].places, axes[1].places]
    return found


def find_partners(columns: Sequence[DrawnColumn], order: Integers) -> list[int | None]:
    """For every column the one whose draws help to rank its rows, where each helps the other.

    Tried is the column whose draws go most closely with its own. A gain is what the expected
    squared error is lowered by. It is compared with the gains when the rows of one column are
    shuffled, which are what chance finds in columns that have nothing to do with each other.

    Parameters
    ----------
    columns : sequence of DrawnColumn
        Columns of the same rows.
    order : array of int, shape (N,)
        A random permutation of the rows.
    """
    if len(columns) < 2 or len(order) < FEWEST_ROWS:
        return [None] * len(columns)
    some = order[:MOST_COMPARED]
    logs = np.array([np.log1p(column.draws[some]) for column in columns])
    logs -= logs.mean(axis=1, keepdims=True)
    lengths = np.maximum(np.sqrt((logs**2).sum(axis=1)), SMALL)
    alike = np.abs(logs @ logs.T) / np.outer(lengths, lengths)
    np.fill_diagonal(alike, -1.0)
    known: dict[tuple[int, int], bool] = {}
    for at, nearest in enumerate(alike.argmax(axis=1).tolist()):
        for pair in ((at, nearest), (nearest, at)):
            if pair not in known:
                known[pair] = _gains(columns[pair[0]], columns[pair[1]], order)
    return [
        nearest if known[at, nearest] and known[nearest, at] else None
        for at, nearest in enumerate(alike.argmax(axis=1).tolist())
    ]


def _gains(own: DrawnColumn, other: DrawnColumn, order: Integers) -> bool:
    """Whether the other column's draws tell more than chance would have them tell."""
    axes = _find_axes(own, other)
    if axes is None:
        return False
    first, second = axes
    gain, at = _measure_gain(own, first, second), order
    for _ in range(SHUFFLES):
        if gain <= MARGIN * _measure_gain(own, first, replace(second, places=second.places[at])):
            return False
        at = at[order]
    return True


def _measure_gain(own: DrawnColumn, first: _Axis, second: _Axis) -> float:
    """By what part the expected squared error falls if rows are ranked by both draws.

    All tables with the same distribution differ by the sum of count times expectation.
    """
    pairs = _count_pairs(first, second)
    means, counts = _expect(first, second, pairs), np.arange(len(first.shares))
    rows = np.bincount(own.counts, minlength=len(counts))
    ends = np.append(0, np.cumsum(rows)), np.append(0, np.cumsum(rows * counts))
    ranked = np.argsort(means, axis=None, kind="stable")
    handed = np.diff(np.interp(np.cumsum(pairs.ravel()[ranked]), *ends), prepend=0.0)
    both = float(handed @ means.ravel()[ranked])
    held = pairs.sum(axis=1)
    handed = np.diff(np.interp(np.cumsum(held), *ends), prepend=0.0)
    alone = float(handed @ ((pairs * means).sum(axis=1) / np.maximum(held, SMALL)))
    return (both - alone) / max(float(rows @ counts**2.0) - alone, SMALL)


def _find_axes(own: DrawnColumn, other: DrawnColumn) -> tuple[_Axis, _Axis] | None:
    """Both columns' axes; None where nothing can be learned."""
    if len(own.draws) < FEWEST_ROWS or own.size > MOST_CELLS // 2:
        return None
    if own.size * other.size <= MOST_PAIRS:
        return _undo_noise(own), _undo_noise(other)
    most = min(MOST_CLASSES, len(own.draws) // FEWEST_IN_CLASS, MOST_CELLS // own.size)
    _, at, rows = np.unique(other.draws, return_inverse=True, return_counts=True)
    place = ((np.cumsum(rows) - rows / 2) * most / len(at)).astype(int)
    classes = np.unique(place, return_inverse=True)[1][at]
    shares = np.bincount(classes) / len(classes)
    return _undo_noise(own), _Axis(classes, shares, 0.0, PRIOR_ROWS * len(shares))


def _undo_noise(column: DrawnColumn) -> _Axis:
    """A column whose draws are noisy counts; a little of its distribution is everywhere."""
    shares = np.bincount(column.counts, minlength=column.size) + 1e-6
    return _Axis(column.draws, shares / shares.sum(), math.exp(-column.epsilon))


def _count_pairs(first: _Axis, second: _Axis) -> Floats:
    """How many rows have each pair of places."""
    shape = len(first.shares), len(second.shares)
    pairs = np.bincount(first.places * shape[1] + second.places, minlength=math.prod(shape))
    return pairs.reshape(shape).astype(float)


def _expect(first: _Axis, second: _Axis, pairs: Floats) -> Floats:
    """E[count of the first | both places] for every pair of places."""
    ratios = first.ratio, second.ratio
    joint = np.outer(first.shares, second.shares)
    prior = second.prior * joint
    for _ in range(ROUNDS):
        joint = joint * _blur(pairs / np.maximum(_blur(joint, ratios), SMALL), ratios) + prior
        joint *= (first.shares / np.maximum(joint.sum(axis=1), SMALL))[:, None]
        joint *= second.shares / np.maximum(joint.sum(axis=0), SMALL)
    weights = np.maximum(_blur(joint, ratios), SMALL)
    means: Floats = _blur(joint * np.arange(len(joint))[:, None], ratios) / weights
    return means


def _blur(values: Floats, ratios: tuple[float, float]) -> Floats:
    """sum_ij a^|i-k| b^|j-l| values_ij for every (k, l)."""
    for ratio in ratios:
        values = (_blur_columns(values, ratio) if ratio else values).T
    return values


def _blur_columns(values: Floats, ratio: float) -> Floats:
    from scipy.linalg import solve_banded

    size, columns = values.shape
    bands: Any = np.vstack([np.ones(size), np.full(size, -ratio)])
    both = np.hstack([values, values[::-1]])
    sums = solve_banded((1, 0), bands, both, check_finite=False)
    blurred: Floats = sums[:, :columns] + sums[::-1, columns:] - values
    return blurred
