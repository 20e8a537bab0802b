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
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.mechanisms.geometric import noise_variance
from tallyveil.sums.grouping import Tree, sum_by


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
        variances = [self.spread[0]]
        for level in range(1, self.tree.depth + 1):
            upward_variances, share = self.spread[level], self.share(level)
            variances.append(
                upward_variances
                - upward_variances * share
                + share**2 * variances[-1][self.tree.parents[level - 1]]
            )
        return tuple(variances)

    def share(self, level: int) -> Floats:
        """Return the part of its parent's correction that every node of a level takes.

        The parts of one family sum to one.
        """
        return self.spread[level] * self._invert(level)[self.tree.parents[level - 1]]

    @property
    def share_of_rows(self) -> Floats:
        """`share` of the last level, once for each parent: its children are all alike."""
        depth = self.tree.depth
        shares: Floats = self.spread[depth][0] * self._invert(depth)
        return shares

    def _invert(self, level: int) -> Floats:
        """Return 1 / the variance of the sum of every parent's children; 0 where that is exact."""
        below = self.below[level - 1]
        return np.divide(1.0, below, out=np.zeros_like(below), where=below > 0)

    def covariance(self, first: NDArray[Any], second: NDArray[Any] | None = None) -> float:
        """Return the covariance of two weighted sums of the last level's estimates.

        Any sum of nodes of any levels is such a sum, because estimates add up. Inside a family
        the remainder after the parent's share is uncorrelated with the parent, hence with
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
    """Return the best linear unbiased estimate of every node's sum, in two passes.

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
    >>> combined = combine(tree, [np.array([9]), None, np.array([4, 1, 2])], [3.0, None, 1.0])
    >>> [np.round(level, 3).tolist() for level in combined.estimates]
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
    """Estimate each node from its subtree, with its variance and its children's sum's."""
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
        sums, variance = measured[level - 1], variances[level - 1]
        if sums is None or variance is None:
            upward.insert(0, summed)
            spread.insert(0, of_sum)
            continue
        variance_of_both = of_sum + variance
        weight = np.divide(
            of_sum,
            variance_of_both,
            out=np.zeros_like(variance_of_both),
            where=variance_of_both > 0,
        )
        upward.insert(0, summed + weight * (sums - summed) if variance else sums.astype(float))
        spread.insert(0, weight * variance)
    return tuple(upward), tuple(spread), tuple(below)


POINTS = 4096
"""Grid points of the distribution of an estimate's noise."""

PER_DEVIATION = 128
"""Grid points in one standard deviation; the grid reaches 16 of them to both sides."""

MOST_NODES = 40
"""Nodes of a level whose distribution is worked out; the others take the wider neighbour."""

SUREST = 0.9999
"""Beyond this confidence tails matter that the grid does not reach, and they are bounded."""

EXPONENTS = np.concatenate([np.geomspace(1e-3, 0.5, 60), 1 - np.geomspace(0.5, 1e-6, 60)])
"""Where tails are bounded, as parts of the largest exponent that has an expectation."""

Measurement = tuple[int, float, int]
"""A measured level, its epsilon, and the number of independent noises of each sum."""


def find_half_widths(
    combined: Combined, measured: Sequence[Measurement], level: int, confidence: float
) -> Floats:
    """Return the half-width of the interval of every node of a level.

    Parameters
    ----------
    combined : Combined
        The tree's estimates.
    measured : sequence of (level, epsilon, noises)
        The measurements. A level may occur twice, measured in two ways.
    level : int
        The level of the nodes.
    confidence : float
        The probability that the interval holds the truth.

    Returns
    -------
    array of float
        How far from its estimate each true sum may lie; 0 for sums that are known exactly.
    """
    deviations = np.sqrt(np.maximum(combined.variances[level], 0))
    order = np.argsort(deviations, kind="stable")
    chosen = np.unique(np.linspace(0, len(order) - 1, MOST_NODES).astype(int))
    ratios = np.zeros(len(chosen))
    for i, node in enumerate(order[chosen]):
        if deviations[node] > 0:
            weights = weigh_measurements(combined, measured, level, int(node))
            ratios[i] = _find_quantile(weights, confidence)
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
    """Return the standard deviation and the half-width of a weighted sum of estimates.

    Parameters
    ----------
    combined, measured, level, confidence
        See `find_half_widths`.
    weights : array of float
        The weight of every node of the level: 1 for each node that is added up, 0 for others.

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

    `times` is the number of noises of each weight; without it, each weight has one noise.
    """

    weights: Floats
    times: Integers | None
    epsilon: float
    noises: int

    @property
    def variance(self) -> float:
        """The variance of the weighted sum."""
        square = self.weights**2
        total = square.sum() if self.times is None else square @ self.times
        return float(total) * self.noises * noise_variance(self.epsilon)

    def count(self, weights: Floats) -> tuple[Floats, Integers]:
        """Return the different values of `weights`, rising, and their numbers of noises."""
        if self.times is None:
            return np.unique(weights, return_counts=True)
        each = np.unique(weights)
        places = np.searchsorted(each, weights)  # faster than an inverse where most are alike
        return each, sum_by(places, self.times, len(each)).astype(np.int64)


def join_totals(
    trees: Sequence[tuple[Combined, Sequence[Measurement]]], totals: Floats, confidence: float
) -> tuple[float, float, float]:
    """Return the best mean of the grand totals that several trees of the same rows estimate.

    Each tree's sums were measured with independent noises, and all trees share the rows' noise.
    So the totals are correlated, and the weights of least variance are C^-1 1 / (1' C^-1 1).

    Parameters
    ----------
    trees : sequence of (Combined, measurements)
        Of total, groups and rows: the total is not measured, groups and rows are.
    totals : array of float, shape (trees,)
        The estimate of each tree.
    confidence : float
        The probability that the interval holds the truth.

    Returns
    -------
    tuple of float
        The mean, its standard deviation and the half-width of its interval.
    """
    separate, shared = [], []
    for combined, measured in trees:
        covariances = _covary(combined, 0, np.ones(1))
        groups, rows = _weigh(combined.tree, 0, covariances, measured)
        separate.append(groups)
        shared.append(replace(rows, weights=rows.weights[combined.tree.parents[-1]], times=None))
    of_rows = np.array([rows.weights for rows in shared])
    each = noise_variance(shared[0].epsilon) * shared[0].noises
    covariance = of_rows @ of_rows.T * each + np.diag([groups.variance for groups in separate])
    means = np.linalg.solve(covariance, np.ones(len(totals)))
    means /= means.sum()
    deviation = math.sqrt(float(means @ covariance @ means))
    parts = [
        replace(groups, weights=mean * groups.weights)
        for mean, groups in zip(means, separate, strict=True)
    ]
    parts.append(replace(shared[0], weights=means @ of_rows))
    return float(means @ totals), deviation, deviation * _find_quantile(parts, confidence)


def weigh_measurements(
    combined: Combined, measured: Sequence[Measurement], level: int, node: int
) -> list[WeightedNoises]:
    """Return the weight that one estimate gives to every measurement, level by level.

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
    """Return the weights of all measurements, from covariances with every node."""
    parts = []
    for measured_level, epsilon, noises in measured:
        weights = covariances[measured_level] / (noises * noise_variance(epsilon))
        times = tree.members if measured_level == tree.depth > level else None
        parts.append(WeightedNoises(weights, times, epsilon, noises))
    return parts


def _covary(combined: Combined, level: int, weights: Floats) -> list[Floats]:
    """Return the covariances of a weighted sum of a level with the estimates of all nodes.

    Upwards, a parent's weight is what its children take of its correction; downwards, a child
    has its share of its parent's covariance and a part that only it has. Rows are equally
    uncertain: without such a part, the rows of one group are alike, and the group has their value.
    """
    tree, chain = combined.tree, [weights]
    for above in range(level, 0, -1):
        chain.insert(0, tree.sum_children(chain[0] * combined.share(above), above))
    covariances = [chain[0] * combined.spread[0]]
    for below in range(1, max(level + 1, tree.depth)):
        parents = tree.parents[below - 1]
        values = combined.share(below) * covariances[-1][parents]
        if below <= level:
            values = values + combined.spread[below] * (chain[below] - chain[below - 1][parents])
        covariances.append(values)
    if level < tree.depth:
        covariances.append(combined.share_of_rows * covariances[-1])
    return covariances


def _find_quantile(parts: list[WeightedNoises], confidence: float) -> float:
    """Return the half-width with this probability, in standard deviations of the noise."""
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
    """Return the quantile of noises with these weights by a Fourier transform.

    Each of `parts` has weights, the number of noises of each, epsilon and noises. Cached, because
    alike nodes share it.
    """
    step = deviation / PER_DEVIATION
    frequency = 2 * np.pi * np.arange(POINTS // 2 + 1) / (POINTS * step)
    log = -0.5 * (frequency * step) ** 2  # smooths jumps by one step of the grid
    for each, times, epsilon, noises in parts:
        a = math.exp(-epsilon)
        for weight, count in zip(each, times, strict=True):
            ratio = 1 + 2 * a * (1 - np.cos(weight * deviation * frequency)) / (1 - a) ** 2
            log -= noises * count * np.log(ratio)
    chance = np.fft.irfft(np.exp(log), POINTS)
    inside = chance[0] + 2 * np.cumsum(chance[1 : POINTS // 2])
    index = int(np.searchsorted(np.maximum.accumulate(inside), confidence)) + 1
    return (index + 2) / PER_DEVIATION


def _bound_quantile(parts: list[WeightedNoises], confidence: float) -> float:
    """Bound the quantile by Chernoff's inequality.

    The least (log E exp(s noise) + log(2 / (1 - confidence))) / s over s.
    """
    most = min(part.epsilon / np.abs(part.weights).max() for part in parts if part.weights.any())
    exponents = most * EXPONENTS
    log = np.full(len(exponents), math.log(2 / (1 - confidence)))
    for part in parts:
        epsilon, (each, times) = part.epsilon, part.count(np.abs(part.weights))
        for weight, count in zip(each[each > 0], times[each > 0], strict=True):
            ends = np.expm1(weight * exponents - epsilon) * np.expm1(-weight * exponents - epsilon)
            log += part.noises * count * (2 * math.log(-math.expm1(-epsilon)) - np.log(ends))
    return float((log / exponents).min())
