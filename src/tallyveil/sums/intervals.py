"""Intervals for estimated sums, from the exact distribution of their noise.

An estimate is a weighted sum of independent geometric noises, so its characteristic function
is a product of theirs, and its distribution follows by one Fourier transform.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.sums.combine import Combined

__all__ = ["Measurement", "find_half_width", "find_half_widths", "weigh_measurements"]

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
    parts = _weigh(covariances, measured)
    return deviation, deviation * _find_quantile(parts, confidence)


def weigh_measurements(
    combined: Combined, measured: Sequence[Measurement], level: int, node: int
) -> list[tuple[Floats, float, int]]:
    """The weight that one estimate gives to every measurement, level by level.

    For the best linear estimate the weight of a measurement is the covariance of the estimate
    with that of the measured node, over the variance of the measurement.
    """
    chosen = np.zeros(combined.tree.sizes[level])
    chosen[node] = 1
    return _weigh(_covary(combined, level, chosen), measured)


def _weigh(
    covariances: list[Floats], measured: Sequence[Measurement]
) -> list[tuple[Floats, float, int]]:
    found = []
    for at, epsilon, noises in measured:
        variance = noises * 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2
        found.append((covariances[at] / variance, epsilon, noises))
    return found


def _covary(combined: Combined, level: int, weights: Floats) -> list[Floats]:
    """The covariance of a weighted sum of a level's estimates with the estimate of every node.

    Upwards, a parent's weight is what its children take of its correction; downwards, a child
    has its share of its parent's covariance and what is its own.
    """
    tree, chain = combined.tree, [weights]
    for above in range(level, 0, -1):
        chain.insert(0, tree.sum_children(chain[0] * combined.share(above), above))
    found = [chain[0] * combined.spread[0]]
    for below in range(1, tree.depth + 1):
        parents = tree.parents[below - 1]
        values = combined.share(below) * found[-1][parents]
        if below <= level:
            values = values + combined.spread[below] * (chain[below] - chain[below - 1][parents])
        found.append(values)
    return found


def _find_quantile(weights: list[tuple[Floats, float, int]], confidence: float) -> float:
    """The half-width that holds the weighted noise with this probability, in its deviations."""
    variance = sum(
        float((w**2).sum()) * n * 2 * math.exp(-e) / math.expm1(-e) ** 2 for w, e, n in weights
    )
    deviation = math.sqrt(variance)
    if confidence > SUREST:
        return _bound_quantile(weights, confidence) / deviation
    parts = []
    for weight, epsilon, noises in weights:
        each, times = np.unique(np.round(weight / deviation, 9), return_counts=True)
        parts.append((tuple(each.tolist()), tuple(times.tolist()), epsilon, noises))
    return _transform(tuple(parts), deviation, confidence)


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


def _bound_quantile(weights: list[tuple[Floats, float, int]], confidence: float) -> float:
    """Chernoff's bound: the least (log E exp(s noise) + log(2 / (1 - confidence))) / s over s."""
    parts = [(np.abs(weight[weight != 0]), e, n) for weight, e, n in weights]
    most = min(epsilon / weight.max() for weight, epsilon, _ in parts if len(weight))
    exponents = most * EXPONENTS
    log = np.full(len(exponents), math.log(2 / (1 - confidence)))
    for weight, epsilon, noises in parts:
        each, times = np.unique(weight, return_counts=True)
        for one, many in zip(each, times, strict=True):
            ends = np.expm1(one * exponents - epsilon) * np.expm1(-one * exponents - epsilon)
            log += noises * many * (2 * math.log(-math.expm1(-epsilon)) - np.log(ends))
    return float((log / exponents).min())
