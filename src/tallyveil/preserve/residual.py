"""What is still missing from each row, kept private while scales are taken away from it.

In plain floats this is where algorithm 1 of paper 002 breaks: the residual falls by factors
of e^(epsilon n), subtraction leaves nothing but rounding, and the test "is this bound
tight?" answers at random. Here the residual is kept as logarithms, a bound that was used up
is remembered (tight once is tight for ever, errata 002.6), and rows joined by tight bounds
form a block that moves as one. Rounding can then only lift a block up to the bound its larger
neighbour sets, by an amount of the order of 1e-13 of a row sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Residual"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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

    def take(self, pattern: Integers, cap: float = np.inf, weights: Floats | None = None) -> Floats:
        """Take away as much of the scale with `pattern` as the bounds and `cap` allow.

        Returns what was taken, shape (n,). `cap` is the logarithm of the most that
        ``sum(exp(weights) * taken)`` may be. Either one more bound becomes tight, or the cap
        is met (002, Proposition 2).
        """
        height = np.concatenate([[0], np.cumsum(pattern)])
        scale = self.epsilon * (height - height.max())
        amounts = self._amounts(pattern, scale)
        at = int(amounts.argmin())
        amount = float(amounts[at])
        limit = np.inf if weights is None else cap - _log_sum(weights + scale)
        taken = min(amount, limit) + scale
        share = np.exp(np.minimum(taken - self.log, 0.0))[self._leaders()]
        with np.errstate(divide="ignore"):
            self.log += np.maximum(np.log1p(-share), -700.0)
        if amount < limit:
            self.tight[at] = -pattern[at]
        self._settle(at if amount < limit else None)
        result: Floats = np.exp(taken)
        return result

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

    def _settle(self, used: int | None = None) -> None:
        """Make the newly used bound exact and mend every bound that rounding overstepped."""
        pending = [] if used is None else [used]
        while True:
            step = np.diff(self.log)
            beyond = np.flatnonzero(self.free & (np.abs(step) >= self.epsilon))
            self.tight[beyond] = np.sign(step[beyond]).astype(np.int64)
            pending += beyond.tolist()
            if not pending:
                return
            for at in pending:
                self._join(at)
            pending = []

    def _join(self, at: int) -> None:
        """Shift the smaller of the two blocks beside bound `at` so that it is exactly tight."""
        tight = self.tight
        free = np.flatnonzero(tight == 0)
        left = int(free[free < at].max(initial=-1)) + 1
        right = int(free[free > at].min(initial=len(tight))) + 1
        gap = self.log[at + 1] - self.log[at] - tight[at] * self.epsilon
        # the block with the larger entries has lost fewer digits, so the other follows it
        if self.log[left : at + 1].max() >= self.log[at + 1 : right].max():
            self.log[at + 1 : right] -= gap
        else:
            self.log[left : at + 1] += gap


def _log_sum(terms: Floats) -> float:
    """log(sum(exp(terms))) without overflow; terms of -inf count for nothing."""
    top = float(terms.max())
    return top + float(np.log(np.exp(terms - top).sum()))
