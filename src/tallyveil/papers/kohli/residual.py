"""What is still missing from each row, kept private while scales are taken away from it.

In plain floats this is where algorithm 1 of paper 002 breaks: the residual falls by factors
of e^(epsilon n), subtraction leaves nothing but rounding, and the test "is this bound
tight?" answers at random. Here the residual is kept as logarithms, a bound that was used up
is remembered (tight once is tight for ever, errata 002.6), and rows joined by tight bounds
form a block that moves as one. A block that came down to a bound is put where its neighbours
say, not where subtraction left it; that changes row sums by the order of 1e-13.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallyveil.arrays import Floats, Integers

__all__ = ["Residual"]


CANCELLED = 1e-13
"""A row of which less than this share is left has too few digits left to be compared."""


@dataclass(eq=False)
class Residual:
    """A positive private vector r = exp(log), and the bounds it has used up.

    `tight[i]` is +1 where r[i+1] = e^epsilon r[i], -1 where r[i+1] = e^-epsilon r[i], else 0.
    """

    log: Floats
    tight: Integers
    epsilon: float

    @classmethod
    def of(cls, values: ArrayLike, epsilon: float) -> Residual:
        """The residual that starts at `values`, all positive and private."""
        log = np.log(np.asarray(values, dtype=float))
        fresh = cls(log, np.zeros(len(log) - 1, dtype=np.int64), epsilon)
        fresh._settle()
        return fresh

    @property
    def free(self) -> NDArray[np.bool_]:
        """Which bounds are not used up, shape (n-1,)."""
        free: NDArray[np.bool_] = self.tight == 0
        return free

    def matching(self, pattern: Integers) -> Integers:
        """`pattern` with the steps that are tight here set to this vector's own (line 7)."""
        return np.where(self.free, pattern, self.tight)

    def take(
        self, pattern: Integers, cap: float = np.inf, weights: Floats | None = None
    ) -> tuple[Floats, bool]:
        """Take away as much of the scale with `pattern` as the bounds and `cap` allow.

        Returns what was taken, shape (n,), and whether the cap stopped it. `cap` is the
        logarithm of the most that ``sum(exp(weights) * taken)`` may be. Either one more bound
        becomes tight, or the cap is met (002, Proposition 2).
        """
        height = np.concatenate([[0], np.cumsum(pattern)])
        scale = self.epsilon * (height - height.max())
        amounts, free = self._amounts(pattern, scale), int(self.free.sum())
        at = int(amounts.argmin())
        limit = np.inf if weights is None else cap - _log_sum(weights + scale)
        capped = limit <= amounts[at]
        taken = (limit if capped else float(amounts[at])) + scale
        leaders = self._leaders()
        share = np.exp(np.minimum(taken - self.log, 0.0))[leaders]
        with np.errstate(divide="ignore"):
            self.log += np.maximum(np.log1p(-share), -700.0)
        placed = share > 1 - CANCELLED
        if not capped:
            # the row on the low side of the used-up bound is the one that came down to it
            placed |= leaders == leaders[at + 1 if pattern[at] > 0 else at]
        if placed.any() and not placed.all():
            self._place(np.unique(leaders[placed]))
        self._settle()
        result: Floats = np.exp(taken)
        return result, capped or int(self.free.sum()) == free

    def _amounts(self, pattern: Integers, scale: Floats) -> Floats:
        """Logarithm of how much of the scale each free bound allows; inf at tight ones."""
        step, rate = np.diff(self.log), self.epsilon
        with np.errstate(divide="ignore", invalid="ignore"):
            # -expm1(-x) keeps the slack's digits for large and small epsilon alike
            slack = np.log(-np.expm1(-np.maximum(rate + pattern * step, 0.0)))
        ready = np.where(pattern > 0, self.log[1:] - scale[1:], self.log[:-1] - scale[:-1])
        allowed = ready + slack - np.log(-np.expm1(-2 * rate))
        return np.where(self.free, allowed, np.inf)

    def _leaders(self) -> Integers:
        """For every row, the first row of its block."""
        first = np.concatenate([[0], np.where(self.free, np.arange(1, len(self.log)), 0)])
        return np.maximum.accumulate(first)

    def _place(self, starts: Integers) -> None:
        """Put the blocks that start here at the lowest place allowed; mark the bounds they meet.

        Which of several bounds a block met first may differ by less than a rounding, so all of
        them are asked: one pass up and one down reach every block.
        """
        ends = np.append(np.flatnonzero(self.free) + 1, len(self.log))
        highs = ends[np.searchsorted(ends, starts, side="right")]
        blocks = list(zip(starts.tolist(), highs.tolist(), strict=True))
        met: dict[int, int] = {}
        for low, high in blocks:
            self.log[low:high] = -np.inf
        for low, high in [*blocks, *reversed(blocks)]:
            shape = self.epsilon * np.cumsum(np.append(0, self.tight[low : high - 1]))
            below = self.log[low - 1] - self.epsilon - shape[0] if low > 0 else -np.inf
            above = self.log[high] - self.epsilon - shape[-1] if high < len(self.log) else -np.inf
            if max(below, above) > self.log[low]:
                self.log[low:high] = shape + max(below, above)
                met[low] = low - 1 if below >= above else high - 1
        for at in met.values():
            self.tight[at] = int(np.sign(self.log[at + 1] - self.log[at]))

    def _settle(self) -> None:
        """Mend every bound that rounding overstepped."""
        while True:
            step = np.diff(self.log)
            beyond = np.flatnonzero(self.free & (np.abs(step) >= self.epsilon))
            if len(beyond) == 0:
                return
            at = int(beyond[0])  # one at a time: each join may mend, or break, the next
            self.tight[at] = int(np.sign(step[at]))
            self._join(at)

    def _join(self, at: int) -> None:
        """Shift one of the two blocks beside bound `at` so that it is exactly tight."""
        tight = self.tight
        free = np.flatnonzero(tight == 0)
        left = int(free[free < at].max(initial=-1)) + 1
        right = int(free[free > at].min(initial=len(tight))) + 1
        gap = self.log[at + 1] - self.log[at] - tight[at] * self.epsilon
        if gap == 0.0:
            return
        # move the block whose rows change least: the other has the digits that are right
        low = self.log[left : at + 1].max() + _log_change(gap)
        high = self.log[at + 1 : right].max() + _log_change(-gap)
        if high <= low:
            self.log[at + 1 : right] -= gap
        else:
            self.log[left : at + 1] += gap


def _log_change(shift: float) -> float:
    """log|e^shift - 1|: how much a number changes, relative to itself, when its log shifts."""
    return float(np.log(-np.expm1(-abs(shift)))) + max(shift, 0.0)


def _log_sum(terms: Floats) -> float:
    """log(sum(exp(terms))) without overflow; terms of -inf count for nothing."""
    top = float(terms.max())
    return top + float(np.log(np.exp(terms - top).sum()))
