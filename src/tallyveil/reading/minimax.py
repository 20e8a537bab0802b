"""The best response of somebody who fears the worst: a game against a hidden prior.

The consumer picks, for every released answer, a law on guesses; the worst case picks a prior
on the true answers. Any prior proves a bound, any remap attains a loss; the two meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats
from tallyveil.reading.interior import solve_game

__all__ = ["Saddle", "minimax_remap", "price"]

TOLERANCE = 1e-8
SMALL = 40_000
"""Up to this many payoffs (true answers times columns) a general solver finds a vertex."""

NEGLIGIBLE = 1e-20
"""Released answers less likely than this, whatever the truth, do not enter the game."""

MOST_ROUNDS = 40
COARSEST = 60


@dataclass(frozen=True, eq=False)
class Saddle:
    """A remap, the loss it attains, and a prior that proves (almost) nothing does better.

    `loss` - `lower_bound` is the certified gap. Both are evaluated from scratch, in floats,
    whatever produced the remap and the prior; the bound allows for its own rounding.
    """

    remap: Floats
    loss: float
    prior: Floats
    lower_bound: float


def price(matrix: Floats, losses: Floats, prior: Floats) -> Floats:
    """What each guess costs after each released answer, shape (released, guesses).

    ``sum_i prior[i] matrix[i, r] losses[i, g]``. The sum over r of the smallest entry is what
    a Bayesian with this prior pays; no remap has a smaller worst case (weak duality).
    """
    return (matrix * prior[:, None]).T @ losses


def minimax_remap(matrix: Floats, losses: Floats, tolerance: float = TOLERANCE) -> Saddle:
    """The stochastic remap T that minimises max_i sum_{r,g} matrix[i, r] T[r, g] losses[i, g].

    The program of paper 003, section 2.4.3, over post-processings instead of mechanisms.
    Small ones go to a general solver at once and come back as a vertex. Larger ones grow:
    solve with a few guesses per released answer, price all guesses with the worst-case prior
    found, add the best, until loss and bound agree to `tolerance` (relative).

    Parameters
    ----------
    matrix : shape (k, m), the rows of the possible true answers only
    losses : shape (k, g), the loss of every guess for every possible true answer

    Where counting from the other end changes nothing, half the rows and columns suffice.
    1001 answers take 3 to 12 s on one core (benchmarks/consumers.py).

    >>> saddle = minimax_remap(np.array([[0.8, 0.2], [0.2, 0.8]]), 1.0 - np.eye(2))
    >>> np.round(saddle.remap, 9).tolist(), round(saddle.loss, 9)
    ([[1.0, 0.0], [0.0, 1.0]], 0.2)
    """
    game = _Game(matrix, losses)
    if len(matrix) * matrix.shape[1] * losses.shape[1] <= SMALL:
        game.try_vertex()
    if game.gap() > tolerance:
        game.grow(tolerance)
    return game.saddle()


class _Game:
    """The best remap and the best prior found so far, on losses scaled to [0, 1]."""

    def __init__(self, matrix: Floats, losses: Floats) -> None:
        self.matrix, self.losses = matrix, losses
        self.offset = float(losses.min())
        self.scale = float(np.ptp(losses)) or 1.0
        self.payoff = (losses - self.offset) / self.scale
        self.mirrored = _is_mirrored(matrix) and _is_mirrored(self.payoff)
        self.rows = (len(matrix) + 1) // 2 if self.mirrored else len(matrix)
        self.live = np.flatnonzero(matrix.max(axis=0) > NEGLIGIBLE)
        if self.mirrored:
            self.live = self.live[2 * self.live < matrix.shape[1]]
        self.prior = np.full(len(matrix), 1.0 / len(matrix))
        self.bound, self.value = -np.inf, np.inf
        self.remap = np.zeros((matrix.shape[1], losses.shape[1]))
        self.offer(self.judge(self.prior))

    def gap(self) -> float:
        """Loss minus bound, relative to the loss."""
        return (self.value - self.bound) / max(self.value, 1e-6)

    def judge(self, prior: Floats) -> NDArray[np.int64]:
        """Keep `prior` if it proves more; return its best guess after each released answer."""
        costs = price(self.matrix, self.payoff, prior)
        best: NDArray[np.int64] = costs.argmin(axis=1)
        bound = float(costs[np.arange(len(best)), best].sum())
        if bound > self.bound:
            self.bound, self.prior = bound, prior
        return best

    def offer(self, best: NDArray[np.int64]) -> None:
        """Try these guesses."""
        remap = np.zeros_like(self.remap)
        remap[np.arange(len(best)), best] = 1.0
        self.consider(remap)

    def consider(self, remap: Floats) -> None:
        """Keep `remap` if its worst case is better."""
        value = float(((self.matrix @ remap) * self.payoff).sum(axis=1).max())
        if value < self.value:
            self.value, self.remap = value, remap

    def columns(self, active: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(position in live, guess) of the active columns, ordered by position."""
        position, guess = np.nonzero(active[self.live])
        return position.astype(np.int64), guess.astype(np.int64)

    def table(self, position: NDArray[np.int64], guess: NDArray[np.int64]) -> Floats:
        """What each column costs each row; a mirrored game has half of both.

        There a column stands for itself and its mirror image, used alike.
        """
        output = self.live[position]
        costs = self.matrix[:, output] * self.payoff[:, guess]
        if self.mirrored:
            twins = self.matrix[:, ::-1][:, output] * self.payoff[:, ::-1][:, guess]
            centre = 2 * output == self.matrix.shape[1] - 1
            costs = (costs + twins)[: self.rows] * np.where(centre, 0.5, 1.0)
        return costs

    def settle(self, position: NDArray[np.int64], guess: NDArray[np.int64],
               shares: Floats, weights: Floats) -> NDArray[np.int64]:  # fmt: skip
        """Turn a solver's word into a remap and a prior, judge both, return the best guesses."""
        prior = np.zeros(len(self.matrix))
        prior[: self.rows] = np.maximum(weights, 0.0)
        remap = np.zeros_like(self.remap)
        remap[self.live[position], guess] = np.maximum(shares, 0.0)
        if self.mirrored:
            prior, remap = prior + prior[::-1], remap + remap[::-1, ::-1]
        best = self.judge(prior / prior.sum() if prior.sum() > 0 else self.prior)
        empty = remap.sum(axis=1) <= 0
        remap[empty, best[empty]] = 1.0
        self.consider(remap / remap.sum(axis=1, keepdims=True))
        return best

    def try_vertex(self) -> None:
        """The whole program in one go."""
        from scipy import sparse

        from tallyveil.optimize.solver import Program, solve

        position, guess = self.columns(np.ones(self.remap.shape, dtype=bool))
        size = len(position)
        table = self.table(position, guess)
        below = sparse.csc_array(np.column_stack([table, -np.ones(len(table))]))
        sums = sparse.csc_array(
            (np.ones(size), (position, np.arange(size))), shape=(len(self.live), size + 1)
        )
        cost = np.zeros(size + 1)
        cost[-1] = 1.0
        program = Program(cost, sums, np.ones(len(self.live)), below, np.zeros(len(table)))
        found = solve(program, backend="highs")
        if found.status == "optimal":
            self.settle(position, guess, found.x[:-1], found.y_ub)

    def grow(self, tolerance: float) -> None:
        """Column generation with a solver that gets stricter as the gap closes."""
        guesses = self.remap.shape[1]
        active = self.seeds()
        best = self.judge(self.prior)
        strict, stalled = 1e-3, 0
        for _ in range(MOST_ROUNDS):
            for beside in (-1, 0, 1):
                active[np.arange(len(best)), np.clip(best + beside, 0, guesses - 1)] = True
            position, guess = self.columns(active)
            before = self.gap()
            point = solve_game(self.table(position, guess), position, strict)
            best = self.settle(position, guess, point.shares, point.weights)
            fresh = not active[np.arange(len(best)), best].all()
            stalled = 0 if fresh or self.gap() < 0.5 * before else stalled + 1
            if self.gap() <= tolerance or stalled > 2:
                return
            strict = max(0.1 * min(strict, self.gap()), tolerance / 10) if fresh else tolerance / 10

    def seeds(self) -> NDArray[np.bool_]:
        """Columns to start from: those around the solution of a game half as fine.

        Every other true answer and every other guess, down to about `COARSEST` of them. Wide
        noise moves guesses far, and this finds where to, at a fraction of the cost.
        """
        active = self.remap > 0
        rows, guesses = len(self.matrix), self.remap.shape[1]
        if min(rows, guesses) <= COARSEST:
            return active
        kept_rows = np.unique(np.append(np.arange(0, rows, 2), rows - 1))
        kept = np.unique(np.append(np.arange(0, guesses, 2), guesses - 1))
        coarse = _Game(self.matrix[kept_rows], self.losses[np.ix_(kept_rows, kept)])
        coarse.grow(1e-4)
        outputs = np.arange(len(active))
        for at in np.argsort(coarse.remap, axis=1)[:, -2:].T:
            used = coarse.remap[outputs, at] > 1e-4
            for beside in (-1, 0, 1):
                active[outputs[used], np.clip(kept[at[used]] + beside, 0, guesses - 1)] = True
        prior = np.zeros(rows)
        prior[kept_rows] = coarse.prior
        spread = prior + 0.5 * (np.roll(prior, 1) + np.roll(prior, -1))
        self.judge(spread / spread.sum())
        return active

    def saddle(self) -> Saddle:
        """The result in the caller's units."""
        attained = float(((self.matrix @ self.remap) * self.losses).sum(axis=1).max())
        proved = float(price(self.matrix, self.losses, self.prior).min(axis=1).sum())
        rounding = sum(self.matrix.shape) * 2.0**-52 * float(np.abs(self.losses).max())
        return Saddle(self.remap, attained, self.prior, min(attained, proved - rounding))


def _is_mirrored(table: Floats) -> bool:
    """Whether counting rows and columns from the other end changes nothing."""
    return bool(np.allclose(table, table[::-1, ::-1], rtol=1e-12, atol=1e-300))
