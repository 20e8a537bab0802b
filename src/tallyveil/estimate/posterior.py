"""What a row's draw says about its count, given the estimated distribution."""

from __future__ import annotations

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import Estimate
from tallyveil.mechanisms.frontier import find_posterior_limits

__all__ = ["find_row_limits"]

FARTHEST = 2**18
"""Draws above this say all there is: cells there are far wider than the noise of practical use."""


def find_row_limits(
    draws: PrivateDraws, estimate: Estimate, tradeoff: float
) -> tuple[Integers, Integers]:
    """The lowest and the highest count that each row may get, shapes (N,).

    The ends of the central part of the row's posterior with probability `tradeoff`, under the
    estimated distribution, even inside cells (`mechanisms.frontier.find_posterior_limits`). A
    row drawn above `FARTHEST` may get any count; with a tradeoff of 0, what it drew.
    """
    cells, values = estimate.cells, draws.values
    near = cells.low <= FARTHEST
    width = (cells.high - cells.low + 1)[near]
    shares = np.repeat(estimate.histogram[near] / width, width)
    if not shares.sum() > 0:
        return np.zeros_like(values), np.full_like(values, draws.size - 1)
    ends = find_posterior_limits(shares / shares.sum(), draws.epsilon2, tradeoff)
    at = np.minimum(values, len(shares) - 1)
    far = values > FARTHEST
    low, high = ends[0][at], ends[1][at]
    low[far], high[far] = (values[far], values[far]) if tradeoff == 0 else (0, draws.size - 1)
    return low, high
