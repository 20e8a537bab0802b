"""Mechanisms that add noise and bring the result back into range.

``boundary="snap"`` moves out-of-range mass to the end categories (Croft, Sack and Shi 2020,
Definition 4): plain post-processing, so the noise's own guarantee holds. ``"normalize"`` cuts
the density to the range and rescales each row, which needs more noise. ``"calibrate"``
normalises with the smallest scale that gives the wanted epsilon on this very query.

Probabilities of intervals are built from positive terms only, never as a difference of two
cumulative values near one, so a tail of 1e-300 keeps twelve digits.

`whole_staircase` is staircase noise on the whole numbers: the best noise for a count that one unit
moves by several. With b = e^-epsilon and a sensitivity of w, the noise k has a probability
proportional to::

    b^q      if |k| = q w + p with p < r,        b^(q + 1)     if p >= r,        0 <= p < w

for the step r in 1..w with the least mean absolute value. Probabilities of numbers w apart on one
side differ by exactly e^epsilon, and of none less far apart by more. For w = 1 it is geometric
noise.

References
----------
Geng and Viswanath (2014), The optimal mechanism in differential privacy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Literal

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.errors import ArgumentError, QueryError
from tallyveil.exact import Epsilon, exact_delta, exact_epsilon
from tallyveil.matrix import hockey_stick, worst_pair
from tallyveil.mechanism import Mechanism
from tallyveil.mechanisms.geometric import require_grid
from tallyveil.neighbours import Neighbours
from tallyveil.query import EDGE_TOLERANCE, Query, require_query

GAUSSIAN_REACH = 40
"""Beyond this many sigmas the weights of the discrete Gaussian are below any double."""


class Noise(ABC):
    """Noise on the real line with a density that is symmetric around zero."""

    def mass(self, lower: Floats, upper: Floats) -> Floats:
        """Return the probability of each interval [lower, upper]; the ends may be infinite."""
        # The parts above and below zero; the second is mirrored, an absent part is [0, 0].
        above = self._mass_above(np.maximum(lower, 0.0), np.maximum(upper, 0.0))
        below = self._mass_above(np.maximum(-upper, 0.0), np.maximum(-lower, 0.0))
        return above + below

    @abstractmethod
    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        """Return the probability of each interval with 0 <= near <= far."""


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """Density exp(-|x|/scale) / (2 scale) (Croft, Sack and Shi 2020, equation 19)."""

    scale: float

    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        return np.exp(-near / self.scale) * -np.expm1((near - far) / self.scale) / 2


@dataclass(frozen=True)
class StaircaseNoise(Noise):
    """A density of stairs: step k, from k to k+1 times `step`, has two heights.

    With b = e^(-epsilon), the first `gamma` of step k has height h b^k and the rest h b^(k+1).
    gamma = 1/(1 + e^(epsilon/2)) minimises the absolute error, 1/2 gives geometric noise on
    the grid (Croft, Sack and Shi 2020, equations 20 and 21; half-open steps and the recursion
    on |x|: errata, Croft 4).
    """

    step: float
    epsilon: float
    gamma: float

    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        first, start = self._locate(near)
        last, stop = self._locate(far)
        same = first == last
        head = self._mass_within(first, start, np.where(same, stop, 1.0))
        tail = np.where(same, 0.0, self._mass_within(last, np.zeros_like(stop), stop))
        with np.errstate(invalid="ignore"):
            full_steps = np.where(same, 0.0, last - first - 1)
        # step k has mass b^k (1 - b) / 2, so full steps are a geometric sum
        between = np.exp(-self.epsilon * (first + 1)) * -np.expm1(-self.epsilon * full_steps) / 2
        return head + tail + between

    def _locate(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the step that x >= 0 lies on, and the fraction of it that lies before x."""
        steps = np.floor(x / self.step)
        with np.errstate(invalid="ignore"):
            fraction = np.where(np.isinf(x), 0.0, x / self.step - steps)
        return steps, fraction

    def _mass_within(self, k: Floats, start: Floats, stop: Floats) -> Floats:
        """Return the probability between two fractions of step k."""
        fall = math.exp(-self.epsilon)
        top = -math.expm1(-self.epsilon) / (2 * (self.gamma + fall * (1 - self.gamma)))
        high = np.minimum(stop, self.gamma) - np.minimum(start, self.gamma)
        low = np.maximum(stop, self.gamma) - np.maximum(start, self.gamma)
        return top * np.exp(-self.epsilon * k) * (high + fall * low)


@dataclass(frozen=True)
class CauchyNoise(Noise):
    """Density scale / (pi (scale^2 + x^2))."""

    scale: float

    def _mass_above(self, near: Floats, far: Floats) -> Floats:
        a, b = near / self.scale, far / self.scale
        with np.errstate(invalid="ignore", over="ignore"):
            # arctan(b) - arctan(a) as one arctangent: no cancellation for a, b >= 0
            angle = np.where(np.isinf(b), np.arctan2(1.0, a), np.arctan2(b - a, 1 + a * b))
        return angle / math.pi


def discrete_gaussian_probabilities(sigma: float, reach: int) -> tuple[Floats, Floats]:
    """Return Pr(Z = k) and Pr(Z >= k) of the discrete Gaussian for k = 0..reach.

    Pr(Z = k) is proportional to exp(-k^2 / (2 sigma^2)) on all integers. Sums run from the far
    tail inwards.
    """
    far = max(reach, math.ceil(GAUSSIAN_REACH * sigma)) + 2
    k = np.arange(far + 1, dtype=float)
    weights = np.exp(-(k * k) / (2 * sigma * sigma))
    tails = np.cumsum(weights[::-1])[::-1]
    total = 2 * tails[1] + weights[0]
    return weights[: reach + 1] / total, tails[: reach + 1] / total


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
    """Build the matrix of discrete Gaussian noise, snapped or normalised."""
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


def _require_one_of(argument: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices."""
    if value not in choices:
        raise ArgumentError(argument, "be one of " + ", ".join(map(repr, choices)), value)


NEGLIGIBLE = 60.0
"""Noise this many factors e less likely than the last answer's is left out."""


def count_moved_by(upper: int, moves: int) -> Query:
    """Build the query of a count from 0 to `upper` that one unit moves by up to `moves`.

    >>> count_moved_by(9, 3).neighbours.width
    3
    """
    answers = np.arange(upper + 1)
    return Query.custom(answers, answers, Neighbours.band(upper + 1, min(moves, upper)))


def whole_staircase(upper: int, moves: int, epsilon: Epsilon) -> Mechanism:
    """Build the mechanism that adds staircase noise to a count and clamps it to 0..upper.

    Parameters
    ----------
    upper : int
        The largest count.
    moves : int
        The most that one unit can move it.
    epsilon : number
        The privacy loss for all moves together.

    Returns
    -------
    Mechanism
        Of the query `count_moved_by(upper, moves)`.

    Examples
    --------
    >>> whole_staircase(9, 1, 1).isclose(whole_staircase(9, 1, 1), 0)
    True
    """
    exact = exact_epsilon(epsilon)
    query = count_moved_by(upper, moves)
    noise = _choose_noise(min(moves, upper), float(exact), upper)  # no count moves farther
    every = np.arange(upper + 1)
    matrix = noise[np.abs(every[:, None] - every)]
    beyond = np.cumsum(noise[::-1])[::-1][: upper + 1]  # smallest first, so that no digit is lost
    matrix[:, 0], matrix[:, -1] = beyond, beyond[::-1]
    return Mechanism(matrix, query, exact, name="staircase")


def _choose_noise(moves: int, epsilon: float, upper: int) -> Floats:
    """Return the probabilities of the noise 0, 1, 2, ... with the least mean absolute value.

    They reach far beyond `upper`, where noise is clamped.
    """
    last = upper + moves * math.ceil(NEGLIGIBLE / epsilon)
    far = np.arange(last + 1)
    candidates = []
    for step in range(1, moves + 1):
        weights: Floats = np.exp(-epsilon * (far // moves + (far % moves >= step)))
        weights /= 2 * weights.sum() - weights[0]
        candidates.append((float(2 * far @ weights), weights))
    _, best = min(candidates, key=lambda pair: pair[0])
    return best
