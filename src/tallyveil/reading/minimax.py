"""Minimax-optimal post-processing of a mechanism, solved as a zero-sum game.

The consumer chooses a remap T: for every released answer r a distribution T[r] on guesses. The
worst case chooses a true answer i, and the consumer loses::

    loss_i(T) = sum_{r,g} matrix[i, r] T[r, g] losses[i, g]

- *Upper bound.* Any remap T attains ``max_i loss_i(T)``.
- *Lower bound.* For any prior p on the true answers, no remap attains less than
  ``sum_r min_g sum_i p[i] matrix[i, r] losses[i, g]``, what a Bayesian with prior p loses
  (`tallyveil.matrix.posterior_costs`).

At the optimum the two meet. So solvers need not be trusted: whatever remap and prior they
return are evaluated from scratch, the best of each is kept, and the difference is a certified
gap.

Small games are one linear program. Larger ones grow by column generation: solve with a few
guesses per released answer, price all guesses with the worst-case prior found, add the best, and
repeat. A game on every other answer supplies the first guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tallyveil._threads import one_blas_thread
from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.matrix import posterior_costs
from tallyveil.reading.interior import GamePoint, solve_game

__all__ = ["Saddle", "minimax_remap"]

TOLERANCE = 1e-8
"""Relative gap at which a solution is good enough."""

COARSE_TOLERANCE = 1e-3
"""Relative gap at which a coarser game is good enough to supply the first guesses."""

SMALL = 40_000
"""Up to this many payoffs (true answers times columns) a general solver finds a vertex."""

NEGLIGIBLE = 1e-20
"""Released answers less likely than this, whatever the truth, do not enter the game."""

MOST_ROUNDS = 40
"""Rounds of column generation at the very most."""

MOST_STALLED = 2
"""Rounds in a row that may neither add a column nor halve the gap."""

COARSEST = 60
"""Games with no more true answers or guesses than this are not made coarser."""


@dataclass(frozen=True, eq=False)
class Saddle:
    """A remap, the loss it attains, and a prior that proves (almost) nothing does better.

    `remap` has shape (released, guesses). No remap loses less than `lower_bound`, so `loss` -
    `lower_bound` is the certified gap. Both are evaluated from scratch, in floats; the bound
    allows for its own rounding.
    """

    remap: Floats
    loss: float
    prior: Floats
    lower_bound: float


def minimax_remap(matrix: Floats, losses: Floats, tolerance: float = TOLERANCE) -> Saddle:
    """Find the remap T that minimises max_i sum_{r,g} matrix[i, r] T[r, g] losses[i, g].

    Rows are those of the possible true answers only. This is the program of Gupte and
    Sundararajan (2010), section 2.4.3, over post-processings instead of mechanisms. `tolerance` is
    relative to the loss. 1001 answers take 3 s on one core (benchmarks/consumers.py). Where the
    possible ones have holes they take 3 to 9 s, and some 30 s for squared errors at epsilon 0.01;
    a fair mechanism at epsilon 0.1 takes 9 s.

    >>> saddle = minimax_remap(np.array([[0.8, 0.2], [0.2, 0.8]]), 1.0 - np.eye(2))
    >>> np.round(saddle.remap, 9).tolist(), round(saddle.loss, 9)
    ([[1.0, 0.0], [0.0, 1.0]], 0.2)
    """
    smaller = _Reduction.of(matrix, losses)
    game = smaller.game
    with one_blas_thread():  # many small products: two threads take four times the processor time
        best = _Incumbent(game)
        if len(game.matrix) * game.matrix.shape[1] * game.guesses <= SMALL:
            _solve_whole(game, best)
        if best.gap > tolerance:
            _generate_columns(game, best, tolerance)
        return _evaluate(matrix, losses, smaller.widen(best.remap), best.prior)


class _Columns(NamedTuple):
    """Pairs of a released answer and a guess that a restricted game may use.

    `position` indexes `_Game.outputs` and is non-decreasing; `guess` indexes the guesses.
    """

    position: Integers
    guess: Integers


@dataclass(frozen=True, eq=False)
class _Game:
    """The payoffs of a game, and what follows from them."""

    matrix: Floats
    losses: Floats

    @cached_property
    def payoff(self) -> Floats:
        """The losses scaled to [0, 1]."""
        scale = float(np.ptp(self.losses)) or 1.0
        return (self.losses - float(self.losses.min())) / scale

    @cached_property
    def is_mirrored(self) -> bool:
        """Whether counting true answers, outputs and guesses from the other end changes nothing."""
        return _is_symmetric(self.matrix) and _is_symmetric(self.payoff)

    @cached_property
    def rows(self) -> int:
        """How many true answers a solver sees: half of them in a mirrored game."""
        size = len(self.matrix)
        return (size + 1) // 2 if self.is_mirrored else size

    @cached_property
    def outputs(self) -> Integers:
        """The released answers a solver sees: likely enough, and half in a mirrored game."""
        likely = np.flatnonzero(self.matrix.max(axis=0) > NEGLIGIBLE)
        return likely[2 * likely < self.matrix.shape[1]] if self.is_mirrored else likely

    @property
    def guesses(self) -> int:
        """How many guesses there are."""
        return int(self.losses.shape[1])

    def list_columns(self, active: Mask) -> _Columns:
        """The columns marked in `active`, shape (released, guesses)."""
        position, guess = np.nonzero(active[self.outputs])
        return _Columns(position.astype(np.int64), guess.astype(np.int64))

    def column_costs(self, columns: _Columns) -> Floats:
        """What each column costs each true answer, shape (rows, columns).

        In a mirrored game a column stands for itself and its mirror image, used alike.
        """
        output, guess = self.outputs[columns.position], columns.guess
        by_output, by_guess = self._by_column
        costs = by_output[output] * by_guess[guess]
        if self.is_mirrored:
            costs += by_output[len(by_output) - 1 - output] * by_guess[self.guesses - 1 - guess]
            costs[2 * output == len(by_output) - 1] *= 0.5
        return costs.T

    @cached_property
    def _by_column(self) -> tuple[Floats, Floats]:
        """The columns of matrix and payoffs, as far as a solver sees their rows."""
        seen = slice(self.rows)
        return np.ascontiguousarray(self.matrix[seen].T), np.ascontiguousarray(self.payoff[seen].T)


@dataclass(frozen=True, eq=False)
class _Reduction:
    """A game with fewer released answers and guesses, and the same solution.

    Released answers that say the same about the truth need one distribution of guesses between
    them; guesses at either end that another is never worse than need not be made. A consumer who
    knows that the answer lies in a part of the range is left with that part.
    """

    game: _Game
    group: Integers
    first: int
    guesses: int

    @classmethod
    def of(cls, matrix: Floats, losses: Floats) -> _Reduction:
        totals = matrix.sum(axis=0)
        shares = matrix / np.where(totals > 0, totals, 1.0)
        same = np.isclose(shares[:, 1:], shares[:, :-1], rtol=1e-12, atol=NEGLIGIBLE).all(axis=0)
        group = np.concatenate([[0], np.cumsum(~same)])
        merged = np.add.reduceat(matrix, np.flatnonzero(np.diff(group, prepend=-1)), axis=1)
        first, last = 0, losses.shape[1] - 1
        while first < last and (losses[:, first + 1] <= losses[:, first]).all():
            first += 1
        while first < last and (losses[:, last - 1] <= losses[:, last]).all():
            last -= 1
        return cls(_Game(merged, losses[:, first : last + 1]), group, first, losses.shape[1])

    def widen(self, remap: Floats) -> Floats:
        """The remap of all released answers to all guesses."""
        whole = np.zeros((len(self.group), self.guesses))
        whole[:, self.first : self.first + remap.shape[1]] = remap[self.group]
        return whole


class _Incumbent:
    """The best remap and the best prior found so far, on losses scaled to [0, 1]."""

    def __init__(self, game: _Game) -> None:
        size, released = game.matrix.shape
        self.game = game
        self.prior = np.full(size, 1.0 / size)
        self.remap = np.zeros((released, game.guesses))
        self.bound, self.value = -np.inf, np.inf
        guesses = self.try_prior(self.prior)
        remap = np.zeros_like(self.remap)
        remap[np.arange(released), guesses] = 1.0
        self.try_remap(remap)

    @property
    def gap(self) -> float:
        """Loss minus bound, relative to the loss."""
        return (self.value - self.bound) / max(self.value, 1e-6)

    def try_prior(self, prior: Floats) -> Integers:
        """Keep `prior` if it proves more; return its best guess after each released answer."""
        costs = posterior_costs(self.game.matrix, self.game.payoff, prior)
        guesses: Integers = costs.argmin(axis=1)
        bound = float(costs[np.arange(len(guesses)), guesses].sum())
        if bound > self.bound:
            self.bound, self.prior = bound, prior
        return guesses

    def try_remap(self, remap: Floats) -> None:
        """Keep `remap` if its worst case is better."""
        value = float(((self.game.matrix @ remap) * self.game.payoff).sum(axis=1).max())
        if value < self.value:
            self.value, self.remap = value, remap

    def try_solution(self, columns: _Columns, shares: Floats, weights: Floats) -> Integers:
        """Try a solver's shares of `columns` as a remap and its row weights as a prior.

        Returns the best guesses under that prior.
        """
        game = self.game
        prior = np.zeros(len(game.matrix))
        prior[: game.rows] = np.maximum(weights, 0.0)
        remap = np.zeros_like(self.remap)
        remap[game.outputs[columns.position], columns.guess] = np.maximum(shares, 0.0)
        if game.is_mirrored:
            prior, remap = prior + prior[::-1], remap + remap[::-1, ::-1]
        guesses = self.try_prior(prior / prior.sum() if prior.sum() > 0 else self.prior)
        empty = remap.sum(axis=1) <= 0
        remap[empty, guesses[empty]] = 1.0
        self.try_remap(remap / remap.sum(axis=1, keepdims=True))
        return guesses


def _solve_whole(game: _Game, best: _Incumbent) -> None:
    """Solve the whole game as one linear program, at a vertex."""
    from scipy import sparse

    from tallyveil.optimize.solver import Program, solve

    columns = game.list_columns(np.ones(best.remap.shape, dtype=bool))
    costs = game.column_costs(columns)
    rows, size = costs.shape
    blocks = len(game.outputs)
    below = sparse.csc_array(np.column_stack([costs, -np.ones(rows)]))
    sums = sparse.csc_array(
        (np.ones(size), (columns.position, np.arange(size))), shape=(blocks, size + 1)
    )
    worst_case = np.zeros(size + 1)
    worst_case[-1] = 1.0
    program = Program(worst_case, sums, np.ones(blocks), below, np.zeros(rows))
    found = solve(program, backend="highs")
    if found.status == "optimal":
        best.try_solution(columns, found.x[:-1], found.y_ub)


def _generate_columns(game: _Game, best: _Incumbent, tolerance: float) -> None:
    """Column generation with a solver that gets stricter as the gap closes."""
    active = _seed_columns(game, best)
    guesses = best.try_prior(best.prior)
    released = np.arange(len(guesses))
    solver_tolerance, stalled = 1e-3, 0
    point: GamePoint | None = None
    solved, asked = np.empty(0, dtype=np.int64), 0.0
    for _ in range(MOST_ROUNDS):
        _activate_around(active, released, guesses)
        columns = game.list_columns(active)
        codes = columns.position * game.guesses + columns.guess  # they rise, and none is taken out
        if len(codes) == len(solved) and solver_tolerance == asked:
            return  # the same game again
        start = None if point is None else (point, np.searchsorted(codes, solved))
        costs, before = game.column_costs(columns), best.gap
        point = solve_game(costs, columns.position, solver_tolerance, start)
        solved, asked = codes, solver_tolerance
        guesses = best.try_solution(columns, point.shares, point.weights)
        has_new = not active[released, guesses].all()
        stalled = 0 if has_new or best.gap < 0.5 * before else stalled + 1
        if best.gap <= tolerance or stalled > MOST_STALLED:
            return
        wanted = 0.1 * min(solver_tolerance, best.gap) if has_new else 0.0
        solver_tolerance = max(wanted, tolerance / 10)


def _seed_columns(game: _Game, best: _Incumbent) -> Mask:
    """Columns to start from: those around the solution of a game half as fine.

    It has every other true answer and every other guess, down to about `COARSEST` of them.
    Wide noise moves guesses far, and this finds where to, at a fraction of the cost.
    """
    active = best.remap > 0
    rows, guesses = len(game.matrix), game.guesses
    if min(rows, guesses) <= COARSEST:
        return active
    kept_rows, kept_guesses = _every_other(rows), _every_other(guesses)
    coarse = _Game(game.matrix[kept_rows], game.losses[np.ix_(kept_rows, kept_guesses)])
    found = _Incumbent(coarse)
    _generate_columns(coarse, found, COARSE_TOLERANCE)
    outputs = np.arange(len(active))
    for at in np.argsort(found.remap, axis=1)[:, -2:].T:
        used = found.remap[outputs, at] > COARSE_TOLERANCE
        _activate_around(active, outputs[used], kept_guesses[at[used]])
    prior = np.zeros(rows)
    prior[kept_rows] = found.prior
    spread = prior + 0.5 * (np.roll(prior, 1) + np.roll(prior, -1))
    best.try_prior(spread / spread.sum())
    return active


def _activate_around(active: Mask, released: Integers, guesses: Integers) -> None:
    """Mark each guess and its two neighbours as usable after the released answer beside it."""
    for offset in (-1, 0, 1):
        active[released, np.clip(guesses + offset, 0, active.shape[1] - 1)] = True


def _every_other(size: int) -> Integers:
    """Every other index below `size`, counted from both ends: mirrored games stay so."""
    half = np.arange(0, (size + 1) // 2, 2)
    return np.unique(np.concatenate([half, size - 1 - half]))


def _evaluate(matrix: Floats, losses: Floats, remap: Floats, prior: Floats) -> Saddle:
    """The loss of a remap and the bound of a prior in the caller's units, from scratch."""
    attained = float(((matrix @ remap) * losses).sum(axis=1).max())
    proved = float(posterior_costs(matrix, losses, prior).min(axis=1).sum())
    rounding = sum(matrix.shape) * 2.0**-52 * float(np.abs(losses).max())
    return Saddle(remap, attained, prior, min(attained, proved - rounding))


def _is_symmetric(table: Floats) -> bool:
    """Whether counting rows and columns from the other end changes nothing."""
    return bool(np.allclose(table, table[::-1, ::-1], rtol=1e-12, atol=1e-300))
