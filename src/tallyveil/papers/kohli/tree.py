"""Trees over the bins of a histogram: Haar coefficients, and sums made consistent."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers

__all__ = ["consistent", "haar", "inverse_haar", "sums"]


def haar(histogram: Integers) -> list[Integers]:
    """(left sum - right sum) of every node of a binary tree, one array per level, root first.

    The histogram is padded with empty bins to a power of two.

    >>> [level.tolist() for level in haar(np.array([5, 1, 2, 0]))]
    [[4], [4, 2]]
    """
    sums, levels = _padded(histogram, 2), []
    while len(sums) > 1:
        levels.append(sums[0::2] - sums[1::2])
        sums = sums[0::2] + sums[1::2]
    return levels[::-1]


def inverse_haar(coefficients: ArrayLike, total: float) -> Floats:
    """The histogram with these (noisy) coefficients, root first, and this total.

    >>> inverse_haar([4, 4, 2], 8).tolist()
    [5.0, 1.0, 2.0, 0.0]
    """
    rest, sums = np.asarray(coefficients, dtype=float), np.array([float(total)])
    while len(rest):
        difference, rest = rest[: len(sums)], rest[len(sums) :]
        sums = np.column_stack([sums + difference, sums - difference]).ravel() / 2
    return sums


def sums(histogram: Integers, branching: int) -> list[Integers]:
    """Sums of every node below the root of a tree over the bins, top level first.

    >>> [level.tolist() for level in sums(np.array([5, 1, 2, 0]), 2)]
    [[6, 2], [5, 1, 2, 0]]
    """
    level, levels = _padded(histogram, branching), []
    while len(level) > 1:
        levels.append(level)
        level = level.reshape(-1, branching).sum(axis=1)
    return levels[::-1]


def consistent(noisy: ArrayLike, levels: int, branching: int, total: float) -> Floats:
    """Leaves of the best consistent tree for equally noisy sums and a known root.

    Weighted averaging from the leaves up, then mean consistency from the root down: the
    least-squares estimate (Hay et al. 2010, section 4; Qardaji et al. 2013). `noisy` holds
    the levels of `sums` one after another.

    >>> consistent([6.0, 2.0, 5.0, 1.0, 2.0, 0.0], 2, 2, 8.0).tolist()
    [5.0, 1.0, 2.0, 0.0]
    """
    b = branching
    ends = np.cumsum([b**depth for depth in range(1, levels + 1)])
    level = np.split(np.asarray(noisy, dtype=float), ends[:-1])
    for depth in range(levels - 2, -1, -1):
        height = levels - depth  # leaves have height 1
        below = level[depth + 1].reshape(-1, b).sum(axis=1)
        own = (b**height - b ** (height - 1)) / (b**height - 1)
        level[depth] = own * level[depth] + (1 - own) * below
    parents = np.array([float(total)])
    for values in level:
        siblings = values.reshape(-1, b)
        gap = parents - siblings.sum(axis=1)
        parents = (siblings + gap[:, None] / b).ravel()
    return parents


def _padded(histogram: Integers, branching: int) -> Integers:
    size = branching
    while size < len(histogram):
        size *= branching
    return np.pad(histogram, (0, size - len(histogram)))
