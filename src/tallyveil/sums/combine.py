"""Combine noisy sums of all levels into the best estimate that adds up, in linear time.

Every node's noisy sum is unbiased. Upwards, a node's own measurement is averaged with the sum
of its children, weighted by precision; downwards, what a parent learnt from elsewhere is
shared among its children in proportion to their variances (Hay, Rastogi, Miklau and Suciu
2010). The result is the best linear unbiased estimate: children add up to their parents.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats
from tallyveil.sums.tree import Tree

__all__ = ["Combined", "combine", "noise_variance"]


def noise_variance(epsilon: Fraction | float) -> float:
    """The variance 2a/(1-a)^2 of geometric noise, a = exp(-epsilon).

    >>> round(noise_variance(math.log(2)), 12)
    4.0
    """
    return 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2


@dataclass(frozen=True, eq=False)
class Combined:
    """Estimates of every node, with their exact variances and covariances.

    Attributes
    ----------
    tree : Tree
        The hierarchy.
    upward : tuple of array of float
        For each level, every node's estimate from its own subtree.
    spread : tuple of array of float
        The variances of `upward`.
    below : tuple of array of float
        For each level but the last, the variance of the sum of every node's children.
    estimates : tuple of array of float
        For each level, the best linear unbiased estimates.
    """

    tree: Tree
    upward: tuple[Floats, ...]
    spread: tuple[Floats, ...]
    below: tuple[Floats, ...]
    estimates: tuple[Floats, ...]

    @cached_property
    def variances(self) -> tuple[Floats, ...]:
        """For each level, the variance of every estimate: var_c = t - t k + k^2 var_p, k = t/v."""
        found = [self.spread[0]]
        for level in range(1, self.tree.depth + 1):
            own, share = self.spread[level], self.share(level)
            found.append(own - own * share + share**2 * found[-1][self.tree.parents[level - 1]])
        return tuple(found)

    def share(self, level: int) -> Floats:
        """How much of its parent's correction every node of a level takes; they sum to one."""
        return self.spread[level] * self._invert(level)[self.tree.parents[level - 1]]

    @property
    def share_of_rows(self) -> Floats:
        """The same for the last level, once for each parent: its children are all alike."""
        depth = self.tree.depth
        shares: Floats = self.spread[depth][0] * self._invert(depth)
        return shares

    def _invert(self, level: int) -> Floats:
        """One over the variance of the sum of every parent's children; 0 where that is exact."""
        below = self.below[level - 1]
        return np.divide(1.0, below, out=np.zeros_like(below), where=below > 0)

    def covariance(self, first: NDArray[Any], second: NDArray[Any] | None = None) -> float:
        """The covariance of two weighted sums of the last level's estimates.

        Any sum of nodes of any levels is such a sum, because estimates add up. Inside a family
        what is left after the parent's share is uncorrelated with the parent, hence with
        everything outside: family by family, sum w w' t - W W' v, and W goes on as the
        parent's weight.

        Parameters
        ----------
        first, second : array of float, shape (leaves,)
            The weights; without `second` the variance of the first sum.

        Returns
        -------
        float
            The exact covariance of the estimates, before any rounding.
        """
        w = np.asarray(first, dtype=float)
        u = w if second is None else np.asarray(second, dtype=float)
        total = 0.0
        for level in range(self.tree.depth, 0, -1):
            share, below = self.share(level), self.below[level - 1]
            total += float((w * u * self.spread[level]).sum())
            w, u = (self.tree.sum_children(x * share, level) for x in (w, u))
            total -= float((w * u * below).sum())
        return total + float((w * u * self.spread[0]).sum())


def combine(
    tree: Tree,
    measured: Sequence[NDArray[Any] | None],
    variances: Sequence[float | None],
) -> Combined:
    """The best linear unbiased estimate of every node's sum, in two passes.

    Parameters
    ----------
    tree : Tree
        The hierarchy.
    measured : sequence of array or None
        For each level the measured sums; None where a level was not measured. The last level
        must be.
    variances : sequence of float or None
        The noise variance of each level; 0 for sums that are known exactly.

    Returns
    -------
    Combined
        Estimates that add up exactly (to rounding of doubles), and their variances.

    Examples
    --------
    >>> tree = Tree.of_columns([np.array([0, 0, 1])])
    >>> made = combine(tree, [np.array([9]), None, np.array([4, 1, 2])], [3.0, None, 1.0])
    >>> [np.round(level, 3).tolist() for level in made.estimates]
    [[8.0], [5.667, 2.333], [4.333, 1.333, 2.333]]
    """
    upward, spread, below = _estimate_upward(tree, measured, variances)
    estimates = [upward[0]]
    for level in range(1, tree.depth + 1):
        parents = tree.parents[level - 1]
        gap = estimates[-1] - tree.sum_children(upward[level], level)
        each = np.divide(gap, below[level - 1], out=np.zeros_like(gap), where=below[level - 1] > 0)
        estimates.append(upward[level] + each[parents] * spread[level])
    return Combined(tree, upward, spread, below, tuple(estimates))


def _estimate_upward(
    tree: Tree, measured: Sequence[NDArray[Any] | None], variances: Sequence[float | None]
) -> tuple[tuple[Floats, ...], tuple[Floats, ...], tuple[Floats, ...]]:
    """Estimates from each node's own subtree, their variances, those of the children's sums."""
    leaves, variance = measured[-1], variances[-1]
    assert leaves is not None, "the last level is always measured"
    assert variance is not None
    upward = [leaves.astype(float)]
    spread = [np.broadcast_to(np.float64(variance), len(leaves))]
    below: list[Floats] = []
    for level in range(tree.depth, 0, -1):
        summed = tree.sum_children(upward[0], level)
        of_sum = tree.sum_children(spread[0], level)
        below.insert(0, of_sum)
        own, variance = measured[level - 1], variances[level - 1]
        if own is None or variance is None:
            upward.insert(0, summed)
            spread.insert(0, of_sum)
            continue
        whole = of_sum + variance
        weight = np.divide(of_sum, whole, out=np.zeros_like(whole), where=whole > 0)
        upward.insert(0, summed + weight * (own - summed) if variance else own.astype(float))
        spread.insert(0, weight * variance)
    return tuple(upward), tuple(spread), tuple(below)
