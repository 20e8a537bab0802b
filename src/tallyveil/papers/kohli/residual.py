"""The residual of Algorithm 1: what each row still lacks, private while scales are subtracted.

In plain floats Algorithm 1 of Kohli and Laskowski (2026) loses its precision here: the residual
falls by factors of e^(epsilon n), subtraction leaves only rounding errors, and the test whether
a bound is tight is decided by them. Here the residual is kept as logarithms. A bound that became
tight is remembered, because it stays tight (errata, Kohli 6). Rows joined by tight bounds form
a block that moves as one. A block that came down to a bound is placed by its neighbours, which
are more precise, and not by the result of the subtraction; that changes row sums by about 1e-13.
docs/theory.md gives the argument: Algorithm 1 without losing digits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Floats, Integers, Mask

__all__ = ["Residual"]


CANCELLED = 1e-13
"""A row of which less than this share is left has too few correct digits to be compared."""


@dataclass(eq=False)
class Residual:
    """A positive private vector r = exp(log), and which of its privacy bounds are tight.

    Attributes
    ----------
    log : array of float, shape (n,)
        The logarithms of r.
    tight : array of int, shape (n-1,)
        +1 where r[i+1] = e^epsilon r[i], -1 where r[i+1] = e^-epsilon r[i], else 0.
    epsilon : float
        The privacy loss.
    """

    log: Floats
    tight: Integers
    epsilon: float

    @classmethod
    def of(cls, values: ArrayLike, epsilon: float) -> Residual:
        """Build the residual that starts at `values`, all positive and private."""
        log = np.log(np.asarray(values, dtype=float))
        fresh = cls(log, np.zeros(len(log) - 1, dtype=np.int64), epsilon)
        fresh._repair_bounds()
        return fresh

    @property
    def free(self) -> Mask:
        """Which bounds are not tight, shape (n-1,)."""
        free: Mask = self.tight == 0
        return free

    def match_pattern(self, pattern: Integers) -> Integers:
        """Return `pattern` with tight steps set to this vector's own (line 7 of Algorithm 1)."""
        return np.where(self.free, pattern, self.tight)

    def take(
        self, pattern: Integers, cap: float = np.inf, weights: Floats | None = None
    ) -> tuple[Floats, bool]:
        """Subtract as much of the scale with `pattern` as the bounds and `cap` allow.

        Either one more bound becomes tight, or the cap is met (Proposition 2).

        Parameters
        ----------
        pattern : array of int, shape (n-1,)
            The scale's steps, +1 or -1, equal to `tight` where that is not 0.
        cap : float
            The logarithm of the largest value of ``sum(exp(weights) * taken)``.
        weights : array of float, shape (n,), optional
            Logarithms; without them there is no cap.

        Returns
        -------
        array of float, shape (n,)
            What was subtracted.
        bool
            Whether the cap was met.
        """
        height = np.concatenate([[0], np.cumsum(pattern)])
        scale = self.epsilon * (height - height.max())
        amounts, free = self._limit_amounts(pattern, scale), int(self.free.sum())
        at = int(amounts.argmin())
        limit = np.inf if weights is None else cap - _log_sum(weights + scale)
        capped = limit <= amounts[at]
        taken = (limit if capped else float(amounts[at])) + scale
        leaders = self._find_leaders()
        share = np.exp(np.minimum(taken - self.log, 0.0))[leaders]
        with np.errstate(divide="ignore"):
            self.log += np.maximum(np.log1p(-share), -700.0)
        placed = share > 1 - CANCELLED
        if not capped:
            # the row on the low side of the tight bound is the one that came down to it
            placed |= leaders == leaders[at + 1 if pattern[at] > 0 else at]
        if placed.any() and not placed.all():
            self._place(np.unique(leaders[placed]))
        self._repair_bounds()
        result: Floats = np.exp(taken)
        return result, capped or int(self.free.sum()) == free

    def _limit_amounts(self, pattern: Integers, scale: Floats) -> Floats:
        """Compute the log of how much of the scale each bound allows; inf at tight ones."""
        step, rate = np.diff(self.log), self.epsilon
        with np.errstate(divide="ignore", invalid="ignore"):
            # -expm1(-x) keeps the slack's digits for large and small epsilon alike
            slack = np.log(-np.expm1(-np.maximum(rate + pattern * step, 0.0)))
        ready = np.where(pattern > 0, self.log[1:] - scale[1:], self.log[:-1] - scale[:-1])
        allowed = ready + slack - np.log(-np.expm1(-2 * rate))
        return np.where(self.free, allowed, np.inf)

    def _find_leaders(self) -> Integers:
        """Find, for every row, the first row of its block."""
        first = np.concatenate([[0], np.where(self.free, np.arange(1, len(self.log)), 0)])
        return np.maximum.accumulate(first)

    def _place(self, starts: Integers) -> None:
        """Set these blocks to the lowest values allowed and mark the bounds they meet.

        Which of several bounds a block met first may differ by less than a rounding error, so
        all of them are compared: one pass up and one down reach every block.
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

    def _repair_bounds(self) -> None:
        """Make every bound tight that rounding errors exceeded."""
        while True:
            step = np.diff(self.log)
            beyond = np.flatnonzero(self.free & (np.abs(step) >= self.epsilon))
            if len(beyond) == 0:
                return
            at = int(beyond[0])  # one at a time: each join may repair the next, or exceed it
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
        # move the block whose rows change least: the other one is more precise
        low = self.log[left : at + 1].max() + _log_change(gap)
        high = self.log[at + 1 : right].max() + _log_change(-gap)
        if high <= low:
            self.log[at + 1 : right] -= gap
        else:
            self.log[left : at + 1] += gap


def _log_change(shift: float) -> float:
    """Compute log|e^shift - 1|, the relative change of a number whose log shifts."""
    return float(np.log(-np.expm1(-abs(shift)))) + max(shift, 0.0)


def _log_sum(terms: Floats) -> float:
    """Compute log(sum(exp(terms))) without overflow; terms of -inf add nothing."""
    top = float(terms.max())
    return top + float(np.log(np.exp(terms - top).sum()))
