"""Staircase noise on the whole numbers: the best noise for a count that one unit moves by several.

With b = e^-epsilon and a sensitivity of w, the noise k has a probability proportional to::

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

import numpy as np

from tallyveil.arrays import Floats
from tallyveil.exact import Epsilon, exact_epsilon
from tallyveil.mechanism import Mechanism
from tallyveil.neighbours import Neighbours
from tallyveil.query import Query

__all__ = ["count_moved_by", "whole_staircase"]

NEGLIGIBLE = 60.0
"""Noise this many factors e less likely than the last answer's is left out."""


def count_moved_by(upper: int, moves: int) -> Query:
    """The query of a count from 0 to `upper` that one unit moves by up to `moves`.

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
        By how much one unit can move it.
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
    """Probabilities of the noise 0, 1, 2, ... with the least mean absolute value.

    Far beyond `upper`, as what lies there is clamped.
    """
    last = upper + moves * math.ceil(NEGLIGIBLE / epsilon)
    far = np.arange(last + 1)
    found = []
    for step in range(1, moves + 1):
        weights: Floats = np.exp(-epsilon * (far // moves + (far % moves >= step)))
        weights /= 2 * weights.sum() - weights[0]
        found.append((float(2 * far @ weights), weights))
    _, best = min(found, key=lambda pair: pair[0])
    return best
