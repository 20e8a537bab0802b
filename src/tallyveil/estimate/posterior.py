"""What a row's draw says about its count, given the estimated distribution."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import Estimate
from tallyveil.estimate.ranks import RandomBits
from tallyveil.mechanisms.frontier import Posterior
from tallyveil.mechanisms.geometric import absolute_errors

__all__ = ["find_row_limits", "keep_error"]

FARTHEST = 2**18
"""Draws above this say all there is: cells there are far wider than the noise of practical use."""

STEPS = 6
"""The tradeoff of `keep_error` is found to a part in 2^STEPS; between two, rows are split."""

OCTETS = 256

SPARSE = 30.0
"""Counts with fewer rows are judged together with their neighbours."""

ALLOWED = 1.0015
"""`keep_error` allows this many times the error of plain noise: it is known no better."""


def find_row_limits(
    draws: PrivateDraws, estimate: Estimate, tradeoff: float
) -> tuple[Integers, Integers]:
    """The lowest and the highest count that each row may get, shapes (N,).

    The ends of the central part of the row's posterior with probability `tradeoff`, under the
    estimated distribution, even inside cells (`mechanisms.frontier.Posterior`). A
    row drawn above `FARTHEST` may get any count; with a tradeoff of 0, what it drew.
    """
    values, shares = draws.values, _spread_near(estimate)
    if not shares.sum() > 0:
        return np.zeros_like(values), np.full_like(values, draws.size - 1)
    at = np.minimum(values, len(shares) - 1).astype(np.int64)
    low, high = Posterior(shares, float(draws.epsilon2)).find_limits(tradeoff, at)
    far = values > FARTHEST
    low[far], high[far] = (values[far], values[far]) if tradeoff == 0 else (0, draws.size - 1)
    return low, high


def keep_error(
    draws: PrivateDraws,
    estimate: Estimate,
    counts: NDArray[np.integer[Any]],
    epsilon: Fraction,
    bits: RandomBits,
) -> NDArray[np.integer[Any]]:
    """Counts that are expected to err no more than plain noise at `epsilon` would, shape (N,).

    Both errors are those expected under the estimated distribution, even inside its sparse parts,
    and `ALLOWED` is. Where counts handed out by rank err more, they are moved along the frontier,
    to the largest tradeoff at which they do not, and at a corner of it only some rows, at random:
    no private release that errs so little has its distribution nearer to the estimated one
    (docs/theory.md, the frontier theorem). Rows drawn above `FARTHEST` stay.
    """
    shares = _spread_near(estimate)
    near = draws.values <= FARTHEST
    if not shares.sum() > 0 or not near.any():
        return counts
    rows = _Rows(shares, float(draws.epsilon2), draws.values[near], counts[near])
    plain = absolute_errors(np.arange(len(shares)), draws.size - 1, float(epsilon))
    most = ALLOWED * float(shares @ plain)
    if rows.expect(1.0) <= most:
        return counts
    low, high = 0, 1 << STEPS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rows.expect(middle / 2**STEPS) <= most else (low, middle)
    less, more = low / 2**STEPS, high / 2**STEPS
    errors = rows.expect(less), rows.expect(more)
    gain = errors[1] - errors[0]
    part = min(1.0, (errors[1] - most) / gain) if gain > 0 else 1.0
    chosen = bits.octets(len(rows.counts)) < math.ceil(OCTETS * part)
    made = counts.copy()
    made[near] = np.where(chosen, rows.move(less), rows.move(more))
    return made


def _spread_near(estimate: Estimate) -> Floats:
    """The distribution that rows are judged by, up to `FARTHEST`: even inside sparse parts.

    An estimated histogram has learnt from the very rows that are to be judged. Where it has few
    rows for each count it repeats their draws, and would find their noise smaller than it is. So
    neighbouring cells with fewer than `SPARSE` rows each are taken together, about `SPARSE` rows
    at a time.
    """
    cells = estimate.cells
    near = cells.low <= FARTHEST
    width, rows = (cells.high - cells.low + 1)[near], estimate.histogram[near]
    sparse = rows < SPARSE
    runs = np.flatnonzero(np.append(True, ~(sparse[1:] & sparse[:-1])))
    before = np.cumsum(rows) - rows
    since = before - np.repeat(before[runs], np.diff(np.append(runs, len(rows))))
    first = np.union1d(runs, np.flatnonzero(np.diff(since // SPARSE, prepend=0.0)))
    widths = np.add.reduceat(width, first)
    shares: Floats = np.repeat(np.add.reduceat(rows, first) / widths, widths)
    total = shares.sum()
    return shares / total if total > 0 else shares


class _Rows:
    """The rows, their ranked counts, and what their draws say of them."""

    def __init__(
        self,
        shares: Floats,
        epsilon: float,
        draws: NDArray[np.integer[Any]],
        counts: NDArray[np.integer[Any]],
    ) -> None:
        self.top, self.counts = len(shares) - 1, counts
        self.draws = np.minimum(draws.astype(np.int64), self.top)
        self.posterior = Posterior(shares, epsilon)

    def move(self, tradeoff: float) -> NDArray[np.integer[Any]]:
        """The counts, moved into the central part of each row's posterior."""
        return self.counts.clip(*self.posterior.find_limits(tradeoff, self.draws))

    def expect(self, tradeoff: float) -> float:
        """The mean over rows of E[|true - moved count| | draw]."""
        moved = np.minimum(self.move(tradeoff), self.top)
        return float(self.posterior.expect_errors(self.draws, moved).mean())
