"""Trees over the bins of a histogram: Haar coefficients, and sums made consistent."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers

__all__ = ["invert_haar", "make_consistent", "sum_levels", "transform_haar"]


def transform_haar(histogram: Integers) -> list[Integers]:
    """Compute (left sum - right sum) of every node of a binary tree over the bins.

    Parameters
    ----------
    histogram : array of int, shape (n,)
        Rows in each bin; padded with empty bins to a power of two.

    Returns
    -------
    list of array of int
        One array per level, root first.

    Examples
    --------
    >>> [level.tolist() for level in transform_haar(np.array([5, 1, 2, 0]))]
    [[4], [4, 2]]
    """
    sums, levels = _pad(histogram, 2), []
    while len(sums) > 1:
        levels.append(sums[0::2] - sums[1::2])
        sums = sums[0::2] + sums[1::2]
    return levels[::-1]


def invert_haar(coefficients: ArrayLike, total: float) -> Floats:
    """Compute the histogram with these (noisy) coefficients and this total.

    Parameters
    ----------
    coefficients : array of float
        The levels of `transform_haar` one after another, root first.
    total : float
        The number of rows.

    Returns
    -------
    array of float
        The bins, padding included.

    Examples
    --------
    >>> invert_haar([4, 4, 2], 8).tolist()
    [5.0, 1.0, 2.0, 0.0]
    """
    rest, sums = np.asarray(coefficients, dtype=float), np.array([float(total)])
    while len(rest):
        difference, rest = rest[: len(sums)], rest[len(sums) :]
        sums = np.column_stack([sums + difference, sums - difference]).ravel() / 2
    return sums


def sum_levels(histogram: Integers, branching: int) -> list[Integers]:
    """Sum the rows below every node but the root of a tree over the bins.

    Parameters
    ----------
    histogram : array of int, shape (n,)
        Rows in each bin; padded with empty bins to a power of `branching`.
    branching : int
        Children of a node, at least 2.

    Returns
    -------
    list of array of int
        One array per level, top level first.

    Examples
    --------
    >>> [level.tolist() for level in sum_levels(np.array([5, 1, 2, 0]), 2)]
    [[6, 2], [5, 1, 2, 0]]
    """
    level, levels = _pad(histogram, branching), []
    while len(level) > 1:
        levels.append(level)
        level = level.reshape(-1, branching).sum(axis=1)
    return levels[::-1]


def make_consistent(noisy: ArrayLike, levels: int, branching: int, total: float) -> Floats:
    """Estimate the leaves of a tree of equally noisy sums by least squares, the root known.

    Weighted averaging from the leaves up, then mean consistency from the root down.

    Parameters
    ----------
    noisy : array of float
        The levels of `sum_levels` one after another, with noise.
    levels : int
        The number of levels below the root.
    branching : int
        Children of a node.
    total : float
        The sum at the root.

    Returns
    -------
    array of float
        The leaves, padding included; the sums of any node's children agree with it.

    References
    ----------
    Hay, Rastogi, Miklau and Suciu (2010), section 4. Qardaji, Yang and Li (2013).

    Examples
    --------
    >>> make_consistent([6.0, 2.0, 5.0, 1.0, 2.0, 0.0], 2, 2, 8.0).tolist()
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


def _pad(histogram: Integers, branching: int) -> Integers:
    size = branching
    while size < len(histogram):
        size *= branching
    return np.pad(histogram, (0, size - len(histogram)))
