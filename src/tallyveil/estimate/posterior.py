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
from tallyveil.mechanisms.geometric import decaying_sums

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
    most = ALLOWED * _expect_plain(shares, draws.size - 1, float(epsilon))
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


def _expect_plain(shares: Floats, top: int, epsilon: float) -> float:
    """The mean error of geometric noise clamped to 0..top: a (2 - a^d - a^(top-d))/(1 - a^2)."""
    a, count = math.exp(-epsilon), np.arange(len(shares))
    inside = 2 - np.exp(-epsilon * count) - np.exp(-epsilon * (float(top) - count))
    return float(shares @ inside) * a / -math.expm1(-2 * epsilon)


class _Rows:
    """The rows, their ranked counts, and what their draws say of them."""

    def __init__(
        self,
        shares: Floats,
        epsilon: float,
        draws: NDArray[np.integer[Any]],
        counts: NDArray[np.integer[Any]],
    ) -> None:
        self.top, self.epsilon, self.counts = len(shares) - 1, epsilon, counts
        self.draws = np.minimum(draws.astype(np.int64), self.top)
        self.posterior = Posterior(shares, epsilon)
        a = math.exp(-epsilon)
        below, above = self.posterior.below, self.posterior.above
        # sum_i z_i a^|j-i| |j-i| over i < j, and over i > j
        self.left = decaying_sums(np.append(0.0, a * below[:-1]), a)[0]
        self.right = decaying_sums(np.append(a * above[1:], 0.0), a)[1]
        self.total = np.maximum(self.posterior.total, 1e-300)

    def move(self, tradeoff: float) -> NDArray[np.integer[Any]]:
        """The counts, moved into the central part of each row's posterior."""
        return self.counts.clip(*self.posterior.find_limits(tradeoff, self.draws))

    def expect(self, tradeoff: float) -> float:
        """The mean over rows of E[|true - moved count| | draw].

        With m the moved count and k the draw it is |m - k| + s (E[D | k] - k) + 2 E(beyond),
        s = 1 and what lies below m for m < k, s = -1 and what lies above m for m >= k.
        """
        k, m = self.draws, np.minimum(self.move(tradeoff), self.top)
        drift, down = (self.right - self.left)[k], m < k
        gap = np.abs(m - k).astype(float)
        beyond = np.exp(-self.epsilon * gap) * np.where(down, self.left[m], self.right[m])
        return float((gap + (np.where(down, drift, -drift) + 2 * beyond) / self.total[k]).mean())
