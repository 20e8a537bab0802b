"""Mechanisms that add noise and bring the result back into range.

``boundary="snap"`` moves out-of-range mass to the end categories (Croft, Sack and Shi 2020,
Definition 4): plain post-processing, so the noise's own guarantee holds. ``"normalize"`` cuts
the density to the range and rescales each row, which needs more noise. ``"calibrate"``
normalises with the smallest scale that gives the wanted epsilon on this very query.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Literal

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.audit import hockey_stick, worst_pair
from tallyveil.errors import ArgumentError, QueryError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.densities import (
    LaplaceNoise,
    Noise,
    StaircaseNoise,
    discrete_gaussian_probabilities,
)
from tallyveil.mechanisms.geometric import require_grid
from tallyveil.query import EDGE_TOLERANCE, Query, require_query

__all__ = ["discrete_gaussian", "laplace", "noise_matrix", "staircase"]

Boundary = Literal["snap", "normalize"]

SCALE_TOLERANCE = 1e-12
"""Relative precision to which the smallest scale is found."""

SMALLEST_SCALE = 1e-9
"""The search for the smallest scale stops at this part of where it started."""

SIGMAS_SUMMED = 12
"""Sigmas over which the hockey-stick sum of unbounded Gaussian noise is taken."""


def laplace(
    query: Query,
    epsilon: Epsilon,
    boundary: Literal["snap", "normalize", "calibrate"] = "snap",
    *,
    truncate: Literal["categories", "answers"] = "categories",
) -> Mechanism:
    """Build the mechanism that adds Laplace noise of scale D/epsilon, D the sensitivity.

    Parameters
    ----------
    query : Query
        Any query.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.
    boundary : str
        "snap"; "normalize" with scale 2D/epsilon, which is over-private; or "calibrate" with
        the smallest scale for which the normalised matrix is epsilon-private.
    truncate : str
        What "normalize" and "calibrate" cut to: "categories", the union of the response
        categories, or "answers", the span of the true answers, half a bin narrower at each end.

    Returns
    -------
    Mechanism
        The matrix, shape (n, m).

    References
    ----------
    Croft, Sack and Shi (2020), Mechanism 3 and equation 22 (errata, Croft 1 and 5).

    Examples
    --------
    >>> np.round(laplace(Query.maximum(1, 5), 1.0).matrix[0], 3).tolist()   # their Table 1
    [0.559, 0.098, 0.076, 0.059, 0.208]
    """
    exact = exact_epsilon(epsilon)
    require_query(query)
    _require_one_of("boundary", boundary, ("snap", "normalize", "calibrate"))
    _require_one_of("truncate", truncate, ("categories", "answers"))
    base = query.sensitivity / float(exact)

    def at(scale: float) -> Floats:
        kind: Boundary = "snap" if boundary == "snap" else "normalize"
        return noise_matrix(query, LaplaceNoise(scale), kind, truncate)

    if boundary == "calibrate":
        neighbours, goal = query.neighbours, float(exact)
        scale = _find_smallest_scale(
            lambda s: worst_pair(at(s), neighbours).epsilon <= goal, 2 * base
        )
    else:
        scale = base if boundary == "snap" else 2 * base
    return Mechanism(at(scale), query, exact, name=f"Laplace ({boundary})")


def staircase(
    query: Query, epsilon: Epsilon, boundary: Boundary = "snap", *, gamma: float | None = None
) -> Mechanism:
    """Build the mechanism that adds staircase noise and brings it into range.

    Parameters
    ----------
    query : Query
        Any query.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.
    boundary : str
        "snap", or "normalize", which uses noise at epsilon/2, since rescaling the rows can cost
        as much again.
    gamma : float or None
        The fraction of each step that lies high, in [0, 1]; by default the one that minimises
        the absolute error, 1/(1 + e^(epsilon/2)).

    Returns
    -------
    Mechanism
        The matrix, shape (n, m).

    References
    ----------
    Croft, Sack and Shi (2020), Mechanism 2.

    Examples
    --------
    >>> m = staircase(Query.count(3), 1.0, gamma=0.5)      # the geometric mechanism
    >>> from tallyveil import geometric
    >>> m.isclose(geometric(Query.count(3), 1.0), 1e-12)
    True
    """
    exact = exact_epsilon(epsilon)
    require_query(query)
    _require_one_of("boundary", boundary, ("snap", "normalize"))
    spent = float(exact) if boundary == "snap" else float(exact) / 2
    if gamma is None:
        gamma = 1 / (1 + math.exp(spent / 2))
    if not isinstance(gamma, Real) or not 0 <= gamma <= 1:
        raise ArgumentError("gamma", "lie in [0, 1]", gamma)
    matrix = noise_matrix(query, StaircaseNoise(query.sensitivity, spent, gamma), boundary)
    return Mechanism(matrix, query, exact, name=f"staircase ({boundary})")


def discrete_gaussian(
    query: Query, epsilon: Epsilon, delta: Epsilon = 1e-6, boundary: Boundary = "snap"
) -> Mechanism:
    """Build the discrete Gaussian mechanism of the smallest (epsilon, delta)-private sigma.

    Pr(noise = k) is proportional to exp(-k^2 / (2 sigma^2)) on the grid. With "snap" sigma
    solves delta(epsilon) = delta for the unbounded noise at the widest neighbour step, by
    its exact hockey-stick sum; with "normalize", for this very matrix.

    Parameters
    ----------
    query : Query
        Evenly spaced inputs, and outputs on the same grid.
    epsilon : int, float, str, Decimal or Fraction
        The privacy loss.
    delta : int, float, str, Decimal or Fraction
        Greater than 0: Gaussian noise is never private with delta = 0.
    boundary : str
        "snap" or "normalize".

    Returns
    -------
    Mechanism
        The matrix, shape (n, m).

    Examples
    --------
    >>> m = discrete_gaussian(Query.count(20), 1.0, 1e-6)
    >>> bool(m.privacy_profile([1.0])[0] <= 1e-6)
    True
    """
    exact, slack = exact_epsilon(epsilon), exact_delta(delta)
    _require_one_of("boundary", boundary, ("snap", "normalize"))
    if slack == 0:
        raise ArgumentError("delta", "be greater than 0 for Gaussian noise", delta)
    require_grid(query, "discrete Gaussian noise")
    goal, width = float(exact), query.neighbours.width

    def unbounded(sigma: float) -> bool:
        reach = math.ceil(SIGMAS_SUMMED * sigma) + width + 2
        one_side, _ = discrete_gaussian_probabilities(sigma, reach)
        both = np.concatenate([one_side[:0:-1], one_side])
        excess = np.maximum(both[:-width] - math.exp(goal) * both[width:], 0.0)
        return float(excess.sum()) <= float(slack)

    def here(sigma: float) -> bool:
        matrix = _gaussian_matrix(query, sigma, "normalize")
        return float(hockey_stick(matrix, query.neighbours, [goal])[0]) <= float(slack)

    start = width * math.sqrt(2 * math.log(1.25 / float(slack))) / min(goal, 1.0) + 1
    sigma = _find_smallest_scale(unbounded if boundary == "snap" else here, start)
    matrix = _gaussian_matrix(query, sigma, boundary)
    return Mechanism(matrix, query, exact, delta=slack, name=f"discrete Gaussian ({boundary})")


def _gaussian_matrix(query: Query, sigma: float, boundary: Boundary) -> Floats:
    m = len(query.outputs)
    probabilities, tails = discrete_gaussian_probabilities(sigma, m)
    distance = np.abs(query.home[:, None] - np.arange(m)[None, :])
    matrix = probabilities[distance]
    if boundary == "snap":
        matrix[:, 0] = tails[distance[:, 0]]
        matrix[:, -1] = tails[distance[:, -1]]
    normalised: Floats = matrix / matrix.sum(axis=1, keepdims=True)
    return normalised


def noise_matrix(
    query: Query,
    noise: Noise,
    boundary: Boundary,
    truncate: Literal["categories", "answers"] = "categories",
    location: Floats | None = None,
) -> Floats:
    """Return the mass of ``location + noise`` in every response category; rows sum to one.

    `location`, shape (k,), is by default every true answer. `truncate` is that of `laplace`.
    """
    centres = query.inputs.astype(float) if location is None else location
    lower, upper = (edge.copy() for edge in query.edges())
    if boundary == "snap":
        slack = EDGE_TOLERANCE * (upper[-1] - lower[0])
        if not np.allclose(lower[1:], upper[:-1], rtol=0, atol=slack):
            rule = "have response categories without gaps for 'snap'"
            raise QueryError("query", rule, hint="Use boundary='normalize', or close the gaps.")
        lower[0], upper[-1] = -np.inf, np.inf
    elif truncate == "answers":
        low, high = float(query.inputs[0]), float(query.inputs[-1])
        lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
    mass = noise.mass(lower[None, :] - centres[:, None], upper[None, :] - centres[:, None])
    normalised: Floats = mass / mass.sum(axis=1, keepdims=True)
    return normalised


def _find_smallest_scale(good: Callable[[float], bool], start: float) -> float:
    """Find the smallest scale at which `good` holds, by doubling, halving and bisection."""
    high = start
    while not good(high):
        high *= 2
    low = high / 2
    while good(low):
        low, high = low / 2, low
        if low < SMALLEST_SCALE * start:
            return high
    while high - low > SCALE_TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def _require_one_of(argument: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ArgumentError(argument, "be one of " + ", ".join(map(repr, known)), value)
