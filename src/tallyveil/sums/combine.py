"""The best estimates of sums that add up, from noisy sums of all levels, with their intervals.

Every node's noisy sum is unbiased. Upwards, a node's own measurement is averaged with the sum
of its children, weighted by precision; downwards, what a parent learnt from elsewhere is
shared among its children in proportion to their variances (Hay, Rastogi, Miklau and Suciu
2010). The result is the best linear unbiased estimate, in linear time: children add up to their
parents.

An estimate is a weighted sum of independent geometric noises, so its characteristic function is a
product of theirs, and its distribution, which gives the interval, follows by one Fourier
transform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.sums.grouping import Tree, sum_by

__all__ = [
    "Combined",
    "Measurement",
    "WeightedNoises",
    "combine",
    "find_half_width",
    "find_half_widths",
    "join_totals",
    "noise_variance",
    "weigh_measurements",
]


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


POINTS = 4096
PER_DEVIATION = 128
"""Grid points in one standard deviation; the grid reaches 16 of them to both sides."""

MOST_NODES = 40
"""Nodes of a level whose distribution is worked out; those between take the wider neighbour."""

SUREST = 0.9999
"""Beyond this confidence tails matter that the grid does not reach, and they are bounded."""

EXPONENTS = np.concatenate([np.geomspace(1e-3, 0.5, 60), 1 - np.geomspace(0.5, 1e-6, 60)])
"""Where tails are bounded, as parts of the largest exponent that has an expectation."""

Measurement = tuple[int, float, int]
"""A level that was measured, its epsilon, and how many independent noises each sum has."""


def find_half_widths(
    combined: Combined, measured: Sequence[Measurement], level: int, confidence: float
) -> Floats:
    """How far from its estimate a node's true sum may lie, for every node of a level.

    Parameters
    ----------
    combined : Combined
        The tree's estimates.
    measured : sequence of (level, epsilon, noises)
        What was measured. A level may occur twice, measured in two ways.
    level : int
        Which level's nodes.
    confidence : float
        How often the interval must hold the truth.

    Returns
    -------
    array of float
        Half-widths; 0 for sums that are known exactly.
    """
    deviations = np.sqrt(np.maximum(combined.variances[level], 0))
    order = np.argsort(deviations, kind="stable")
    chosen = np.unique(np.linspace(0, len(order) - 1, MOST_NODES).astype(int))
    ratios = np.zeros(len(chosen))
    for at, node in enumerate(order[chosen]):
        if deviations[node] > 0:
            weights = weigh_measurements(combined, measured, level, int(node))
            ratios[at] = _find_quantile(weights, confidence)
    after = np.searchsorted(chosen, np.arange(len(order)))
    wider = np.maximum(ratios[after], ratios[np.maximum(after - 1, 0)])
    exact = chosen[after] == np.arange(len(order))
    half = np.empty(len(order))
    half[order] = np.where(exact, ratios[after], wider) * deviations[order]
    return half


def find_half_width(
    combined: Combined,
    measured: Sequence[Measurement],
    level: int,
    weights: Floats,
    confidence: float,
) -> tuple[float, float]:
    """The standard deviation and the half-width of a weighted sum of a level's estimates.

    Parameters
    ----------
    combined, measured, level, confidence
        See `find_half_widths`.
    weights : array of float
        The weight of every node of the level: 1 for those that are added up, 0 for others.

    Returns
    -------
    tuple of float
        Both 0 for sums that are known exactly.
    """
    covariances = _covary(combined, level, weights)
    deviation = math.sqrt(max(float(weights @ covariances[level]), 0.0))
    if deviation == 0:
        return 0.0, 0.0
    parts = _weigh(combined.tree, level, covariances, measured)
    return deviation, deviation * _find_quantile(parts, confidence)


@dataclass(frozen=True, eq=False)
class WeightedNoises:
    """The noises of one measurement of a level, and the weights that an estimate gives them.

    `times` says how many noises have each weight; without it, each has one of its own.
    """

    weights: Floats
    times: Integers | None
    epsilon: float
    noises: int

    @property
    def variance(self) -> float:
        """The variance of the weighted sum."""
        square = self.weights**2
        whole = square.sum() if self.times is None else square @ self.times
        return float(whole) * self.noises * noise_variance(self.epsilon)

    def count(self, weights: Floats) -> tuple[Floats, Integers]:
        """The different ones of `weights`, rising, which stand for ours, and their noises."""
        if self.times is None:
            return np.unique(weights, return_counts=True)
        each = np.unique(weights)
        places = np.searchsorted(each, weights)  # faster than an inverse where most are alike
        return each, sum_by(places, self.times, len(each)).astype(np.int64)


def join_totals(
    trees: Sequence[tuple[Combined, Sequence[Measurement]]], totals: Floats, confidence: float
) -> tuple[float, float, float]:
    """The best mean of what several trees of the same rows say of their grand total.

    Each tree has sums of its own, measured with independent noises, and all share the rows' noise.
    So the totals are correlated, and the weights of least variance are C^-1 1 / (1' C^-1 1).

    Parameters
    ----------
    trees : sequence of (Combined, measurements)
        Of total, groups and rows: the total is not measured, groups and rows are.
    totals : array of float, shape (trees,)
        What each tree says.
    confidence : float
        How often the interval must hold the truth.

    Returns
    -------
    tuple of float
        The mean, its standard deviation and the half-width of its interval.
    """
    own, shared = [], []
    for combined, measured in trees:
        covariances = _covary(combined, 0, np.ones(1))
        groups, rows = _weigh(combined.tree, 0, covariances, measured)
        own.append(groups)
        shared.append(replace(rows, weights=rows.weights[combined.tree.parents[-1]], times=None))
    of_rows = np.array([rows.weights for rows in shared])
    each = noise_variance(shared[0].epsilon) * shared[0].noises
    covariance = of_rows @ of_rows.T * each + np.diag([groups.variance for groups in own])
    means = np.linalg.solve(covariance, np.ones(len(totals)))
    means /= means.sum()
    deviation = math.sqrt(float(means @ covariance @ means))
    parts = [
        replace(groups, weights=mean * groups.weights)
        for mean, groups in zip(means, own, strict=True)
    ]
    parts.append(replace(shared[0], weights=means @ of_rows))
    return float(means @ totals), deviation, deviation * _find_quantile(parts, confidence)


def weigh_measurements(
    combined: Combined, measured: Sequence[Measurement], level: int, node: int
) -> list[WeightedNoises]:
    """The weight that one estimate gives to every measurement, level by level.

    For the best linear estimate the weight of a measurement is the covariance of the estimate
    with that of the measured node, over the variance of the measurement. Above the rows, rows of
    one group all have the same weight, which is given once.
    """
    chosen = np.zeros(combined.tree.sizes[level])
    chosen[node] = 1
    return _weigh(combined.tree, level, _covary(combined, level, chosen), measured)


def _weigh(
    tree: Tree, level: int, covariances: list[Floats], measured: Sequence[Measurement]
) -> list[WeightedNoises]:
    found = []
    for at, epsilon, noises in measured:
        weights = covariances[at] / (noises * noise_variance(epsilon))
        times = tree.members if at == tree.depth > level else None
        found.append(WeightedNoises(weights, times, epsilon, noises))
    return found


def _covary(combined: Combined, level: int, weights: Floats) -> list[Floats]:
    """The covariance of a weighted sum of a level's estimates with the estimate of every node.

    Upwards, a parent's weight is what its children take of its correction; downwards, a child
    has its share of its parent's covariance and what is its own. Rows are equally uncertain: with
    nothing of their own, those of one group are alike, and the group stands for them.
    """
    tree, chain = combined.tree, [weights]
    for above in range(level, 0, -1):
        chain.insert(0, tree.sum_children(chain[0] * combined.share(above), above))
    found = [chain[0] * combined.spread[0]]
    for below in range(1, max(level + 1, tree.depth)):
        parents = tree.parents[below - 1]
        values = combined.share(below) * found[-1][parents]
        if below <= level:
            values = values + combined.spread[below] * (chain[below] - chain[below - 1][parents])
        found.append(values)
    if level < tree.depth:
        found.append(combined.share_of_rows * found[-1])
    return found


def _find_quantile(parts: list[WeightedNoises], confidence: float) -> float:
    """The half-width that holds the weighted noise with this probability, in its deviations."""
    deviation = math.sqrt(sum(part.variance for part in parts))
    if confidence > SUREST:
        return _bound_quantile(parts, confidence) / deviation
    counted = []
    for part in parts:
        each, times = part.count(np.round(part.weights / deviation, 9))
        counted.append((tuple(each.tolist()), tuple(times.tolist()), part.epsilon, part.noises))
    return _transform(tuple(counted), deviation, confidence)


@lru_cache(maxsize=1024)
def _transform(
    parts: tuple[tuple[tuple[float, ...], tuple[int, ...], float, int], ...],
    deviation: float,
    confidence: float,
) -> float:
    """The quantile of noises with these weights, each as often as said; alike nodes share it."""
    step = deviation / PER_DEVIATION
    frequency = 2 * np.pi * np.arange(POINTS // 2 + 1) / (POINTS * step)
    log = -0.5 * (frequency * step) ** 2  # smooths jumps by one step of the grid
    for each, times, epsilon, noises in parts:
        a = math.exp(-epsilon)
        for one, many in zip(each, times, strict=True):
            ratio = 1 + 2 * a * (1 - np.cos(one * deviation * frequency)) / (1 - a) ** 2
            log -= noises * many * np.log(ratio)
    chance = np.fft.irfft(np.exp(log), POINTS)
    inside = chance[0] + 2 * np.cumsum(chance[1 : POINTS // 2])
    at = int(np.searchsorted(np.maximum.accumulate(inside), confidence)) + 1
    return (at + 2) / PER_DEVIATION


def _bound_quantile(parts: list[WeightedNoises], confidence: float) -> float:
    """Chernoff's bound: the least (log E exp(s noise) + log(2 / (1 - confidence))) / s over s."""
    most = min(part.epsilon / np.abs(part.weights).max() for part in parts if part.weights.any())
    exponents = most * EXPONENTS
    log = np.full(len(exponents), math.log(2 / (1 - confidence)))
    for part in parts:
        epsilon, (each, times) = part.epsilon, part.count(np.abs(part.weights))
        for one, many in zip(each[each > 0], times[each > 0], strict=True):
            ends = np.expm1(one * exponents - epsilon) * np.expm1(-one * exponents - epsilon)
            log += part.noises * many * (2 * math.log(-math.expm1(-epsilon)) - np.log(ends))
    return float((log / exponents).min())
