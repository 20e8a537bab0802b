"""Minimax-optimal post-processing of a mechanism, solved as a zero-sum game.

The consumer chooses a remap T: for every released answer r a distribution T[r] on guesses. The
worst case chooses a true answer i, and the consumer loses::

    loss_i(T) = sum_{r,g} matrix[i, r] T[r, g] losses[i, g]

- *Upper bound.* Any remap T attains ``max_i loss_i(T)``.
- *Lower bound.* For any prior p on the true answers, no remap attains less than
  ``sum_r min_g sum_i p[i] matrix[i, r] losses[i, g]``, what a Bayesian with prior p loses
  (`tallyveil.matrix.posterior_costs`).

At the optimum the two meet. So solvers need not be trusted: the remaps and priors they return are
evaluated from scratch, the best of each is kept, and the difference is a certified gap.

Small games are one linear program. Larger ones grow by column generation: solve with a few
guesses per released answer, price all guesses with the worst-case prior found, add the best, and
repeat. A game on every other answer supplies the first guesses.

Larger games are solved by a small interior-point method of this module: ``min d`` subject to
``A t <= d`` row by row, t >= 0, and t summing to one in every block. Why not Clarabel, which
`tallyveil.optimize.solver` has? A is dense, with many more columns than rows. A general solver
factors a sparse system of the size of the columns; here every step is one symmetric product and one
Cholesky factor of the size of the rows. Minimax responses to the geometric mechanism, on one core
with one BLAS thread, are 2 to 8 times faster at 101 answers and 12 to 70 times at 401, with smaller
certified gaps. Seconds and relative gap at 401 answers:

    =========================  ===============  =============
    epsilon, loss, known       this module      Clarabel
    =========================  ===============  =============
    1, absolute                0.20 s, 1e-9     3.7 s, 5e-7
    0.1, absolute, 5..400      0.70 s, 9e-12    49 s, 2e-7
    0.1, squared               0.22 s, 3e-10    5.7 s, 9e-5
    1, zero_one                0.15 s, 2e-10    1.8 s, 1e-9
    =========================  ===============  =============
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tallyveil._threads import one_blas_thread
from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.matrix import posterior_costs

MOST_STEPS = 40
"""Most Newton steps; some 15 are usual."""

MOST_RESUMED = 12
"""Most Newton steps from a solution with fewer columns; after them a game starts anew."""

SHORTEST_STEP = 1e-6
"""Below this step length on both sides rounding leaves no further progress."""

BAND = 64
"""Blocks that are multiplied at once, over the rows that any of them reaches."""

ROUNDING = 1e-16
"""Payoffs below this share of the largest of their band do not enter the products."""

NEW_SHARE = 0.01
"""Largest share of a column that is added to a solved game: with 0.1 it takes three times as many
steps afterwards."""


class GamePoint(NamedTuple):
    """A nearly optimal pair: shares t of the columns, shape (K,), and weights w of the rows.

    Neither is trusted: the caller evaluates the value of t and the bound that w proves. The rest
    are slacks of the rows, reduced costs of the columns, multipliers of the blocks, and the value.
    """

    shares: Floats
    weights: Floats
    slacks: Floats
    reduced: Floats
    multipliers: Floats
    value: float


def solve_game(
    A: Floats,
    block: Integers,
    tolerance: float,
    start: tuple[GamePoint, Integers] | None = None,
) -> GamePoint:
    """Solve the game with payoffs A, shape (rows, K), by Mehrotra's predictor-corrector method.

    `block`, shape (K,), is non-decreasing from 0 with none left out: the block of each column.
    The dual is ``max sum_b lambda_b`` with lambda_b <= (w A)_c for every column c of block b
    and w a distribution on the rows. Stops when the duality gap is below `tolerance`, relative
    to the value. Costs O(rows^2 K) per step, some 15 steps, fewer from `start`: a point of the
    same game with fewer columns, and where each of its columns is now.
    """
    if start is not None:
        state = _State(A, block)
        state.resume(*start)
        if _follow(state, tolerance, MOST_RESUMED):
            return state.point()
    state = _State(A, block)
    _follow(state, tolerance, MOST_STEPS)
    return state.point()


def _follow(state: _State, tolerance: float, most: int) -> bool:
    """Step until gap and residuals are below `tolerance`; False where they do not get there."""
    for _ in range(most):
        gap, enough = float(state.t @ state.z + state.s @ state.w), tolerance * abs(state.d)
        if gap <= enough and state.measure_residuals() <= enough:
            return True
        if not state.advance(gap):
            break
    return False


class _State:
    """The iterate: shares t, slacks s, value d (primal); weights w, reduced costs z, lam (dual)."""

    def __init__(self, A: Floats, block: Integers) -> None:
        """Start with even shares and even weights, everything strictly inside."""
        self.A, self.block = A, block
        self.by_column = np.ascontiguousarray(A.T)
        self.first = np.searchsorted(block, np.arange(int(block[-1]) + 1))
        self.bands = _find_bands(self.by_column, self.first)
        sizes = np.diff(np.append(self.first, len(block)))
        self.t: Floats = 1.0 / sizes[block]
        losses = A @ self.t
        self.d = 1.1 * float(losses.max()) + 1e-3
        self.s: Floats = self.d - losses
        self.w = np.full(len(A), 1.0 / len(A))
        costs = self.w @ A
        margin = max(float(costs.max()), 1e-8) / (10 * len(self.first))
        self.lam: Floats = np.minimum.reduceat(costs, self.first) - margin
        self.z: Floats = costs - self.lam[block]

    def resume(self, point: GamePoint, place: Integers) -> None:
        """Start from a point of fewer columns; new ones have at most `NEW_SHARE`."""
        products = point.shares @ point.reduced + point.slacks @ point.weights
        mean = float(products) / (len(place) + len(point.slacks))
        self.d, self.s, self.w = point.value, point.slacks, point.weights
        self.lam = point.multipliers
        costs = self.w @ self.A - self.lam[self.block]
        self.z = np.maximum(costs, mean / NEW_SHARE)
        self.t = mean / self.z
        self.z[place], self.t[place] = point.reduced, point.shares

    def point(self) -> GamePoint:
        """Return the iterate."""
        return GamePoint(self.t, self.w, self.s, self.z, self.lam, self.d)

    def measure_residuals(self) -> float:
        """Bound the change of the value by equations that do not hold yet."""
        rows = self.d - self.A @ self.t - self.s
        columns = self.w @ self.A - self.lam[self.block] - self.z
        blocks = np.abs(self.lam) @ np.abs(1.0 - self.sums(self.t))
        return float(self.w @ np.abs(rows) + self.t @ np.abs(columns) + blocks)

    def sums(self, values: Floats) -> Floats:
        """Sum over each block."""
        return np.add.reduceat(values, self.first)

    def advance(self, gap: float) -> bool:
        """Take one predictor-corrector step; False when there is no further progress."""
        from scipy.linalg import LinAlgError

        mean = gap / (len(self.t) + len(self.s))
        try:
            newton = _Newton(self)
        except LinAlgError:
            return False
        predictor = newton.direction(-self.t * self.z, -self.s * self.w)
        primal, dual = self.reach(predictor)
        ahead = (self.t + primal * predictor.t) @ (self.z + dual * predictor.z)
        ahead += (self.s + primal * predictor.s) @ (self.w + dual * predictor.w)
        centre = mean * (ahead / gap) ** 3
        move = newton.direction(
            centre - self.t * self.z - predictor.t * predictor.z,
            centre - self.s * self.w - predictor.s * predictor.w,
        )
        primal, dual = (min(1.0, 0.995 * length) for length in self.reach(move))
        if not np.isfinite(move.d) or max(primal, dual) < SHORTEST_STEP:
            return False
        self.t = self.t + primal * move.t
        self.s = self.s + primal * move.s
        self.d = self.d + primal * move.d
        self.w = self.w + dual * move.w
        self.z = self.z + dual * move.z
        self.lam = self.lam + dual * move.lam
        return True

    def reach(self, move: _Move) -> tuple[float, float]:
        """Return how far each side can go before something turns negative."""
        primal = min(_longest_step(self.t, move.t), _longest_step(self.s, move.s))
        return primal, min(_longest_step(self.w, move.w), _longest_step(self.z, move.z))


class _Move(NamedTuple):
    """A change of every part of the iterate."""

    t: Floats
    s: Floats
    d: float
    w: Floats
    z: Floats
    lam: Floats


class _Newton:
    """The linear system of one iterate, eliminated down to the rows of the game."""

    def __init__(self, state: _State) -> None:
        from scipy.linalg import cho_factor
        from scipy.linalg.blas import dsyrk

        self.state = state
        self.theta = state.t / state.z
        self.mass = state.sums(self.theta)
        normal = np.zeros((len(state.s), len(state.s)), order="F")
        for columns, blocks, rows in state.bands:
            # Eliminating a block's multiplier centres its columns, weighted by theta.
            theta, weighted = self.theta[columns], state.by_column[columns, rows]
            centred = weighted * theta[:, None]
            first, mass = state.first[blocks], self.mass[blocks]
            mean = np.add.reduceat(centred, first - columns.start, axis=0) / mass[:, None]
            np.take(mean, state.block[columns] - blocks.start, axis=0, out=centred)
            np.subtract(weighted, centred, out=centred)
            centred *= np.sqrt(theta)[:, None]
            # its transpose is in Fortran order: no copy
            normal[rows, rows] += dsyrk(1.0, centred.T, lower=1)
        diagonal = np.einsum("ii->i", normal)
        diagonal += state.s / state.w
        diagonal += 1e-14 * diagonal.max()
        self.factor = cho_factor(normal, lower=True, overwrite_a=True, check_finite=False)
        self.ones = self.solve(np.ones(len(state.s)))
        self.block_residual = 1.0 - state.sums(state.t)
        self.row_residual = state.d - state.A @ state.t - state.s
        self.weight_residual = 1.0 - float(state.w.sum())
        self.cost_residual = state.w @ state.A - state.lam[state.block] - state.z

    def solve(self, right: Floats) -> Floats:
        """Solve with the Cholesky factor."""
        from scipy.linalg import cho_solve

        return cho_solve(self.factor, right, check_finite=False)

    def direction(self, columns: Floats, rows: Floats) -> _Move:
        """Return the step that changes t z by `columns`, s w by `rows`, and closes residuals."""
        state, theta = self.state, self.theta
        free = columns / state.z - theta * self.cost_residual
        shift = (self.block_residual - state.sums(free)) / self.mass
        right = state.A @ (free + theta * shift[state.block]) + rows / state.w - self.row_residual
        bare = self.solve(right)
        d = float((bare.sum() - self.weight_residual) / self.ones.sum())
        w = bare - d * self.ones
        costs = w @ state.A
        lam = shift + state.sums(theta * costs) / self.mass
        z = costs - lam[state.block] + self.cost_residual
        return _Move(columns / state.z - theta * z, (rows - state.s * w) / state.w, d, w, z, lam)


def _find_bands(by_column: Floats, first: Integers) -> list[tuple[slice, slice, slice]]:
    """Return columns, their blocks, and the rows where these columns are more than rounding.

    Noise that falls off quickly leaves most of a large game at zero. `first` are the blocks' first
    columns.
    """
    ends = np.append(first, len(by_column))
    bands = []
    for start in range(0, len(first), BAND):
        blocks = slice(start, min(start + BAND, len(first)))
        columns = slice(int(ends[blocks.start]), int(ends[blocks.stop]))
        largest = np.abs(by_column[columns]).max(axis=0)
        rows = np.flatnonzero(largest > ROUNDING * largest.max())
        if len(rows):
            bands.append((columns, blocks, slice(int(rows[0]), int(rows[-1]) + 1)))
    return bands


def _longest_step(values: Floats, move: Floats) -> float:
    """Return the longest step, at most 1, that keeps values + step * move non-negative."""
    falling = move < 0
    return min(1.0, float((-values[falling] / move[falling]).min(initial=np.inf)))


TOLERANCE = 1e-8
"""Relative gap at which a solution is good enough."""

COARSE_TOLERANCE = 1e-3
"""Relative gap at which a coarser game is good enough to supply the first guesses."""

SMALL = 40_000
"""Up to this many payoffs (true answers times columns) a general solver finds a vertex."""

NEGLIGIBLE = 1e-20
"""Released answers less likely than this for every truth do not enter the game."""

MOST_ROUNDS = 40
"""Most rounds of column generation."""

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
    relative to the loss. 1001 answers take 3 s on one core (benchmarks/ranges.py). Where the
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
        """True if counting answers, outputs and guesses from the other end changes nothing."""
        return _is_symmetric(self.matrix) and _is_symmetric(self.payoff)

    @cached_property
    def rows(self) -> int:
        """The number of true answers that a solver sees: half of them in a mirrored game."""
        size = len(self.matrix)
        return (size + 1) // 2 if self.is_mirrored else size

    @cached_property
    def outputs(self) -> Integers:
        """The released answers a solver sees: likely enough, and half in a mirrored game."""
        likely = np.flatnonzero(self.matrix.max(axis=0) > NEGLIGIBLE)
        return likely[2 * likely < self.matrix.shape[1]] if self.is_mirrored else likely

    @property
    def guesses(self) -> int:
        """The number of guesses."""
        return int(self.losses.shape[1])

    def list_columns(self, active: Mask) -> _Columns:
        """List the columns marked in `active`, shape (released, guesses)."""
        position, guess = np.nonzero(active[self.outputs])
        return _Columns(position.astype(np.int64), guess.astype(np.int64))

    def column_costs(self, columns: _Columns) -> Floats:
        """Return the loss of each column at each true answer, shape (rows, columns).

        In a mirrored game a column is the mean of itself and its mirror image.
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
        """The columns of matrix and payoffs, on the rows that a solver sees."""
        seen = slice(self.rows)
        return np.ascontiguousarray(self.matrix[seen].T), np.ascontiguousarray(self.payoff[seen].T)


@dataclass(frozen=True, eq=False)
class _Reduction:
    """A game with fewer released answers and guesses, and the same solution.

    Released answers that tell the same of the truth share one distribution of guesses; guesses at
    either end that are never better than another are left out. A consumer who knows that the
    answer lies in a part of the range has that part only.
    """

    game: _Game
    group: Integers
    first: int
    guesses: int

    @classmethod
    def of(cls, matrix: Floats, losses: Floats) -> _Reduction:
        """Merge released answers, and leave out guesses that are never best."""
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
        """Return the remap of all released answers to all guesses."""
        full = np.zeros((len(self.group), self.guesses))
        full[:, self.first : self.first + remap.shape[1]] = remap[self.group]
        return full


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
    """Solve a game as one linear program, at a vertex."""
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
    solution = solve(program, backend="highs")
    if solution.status == "optimal":
        best.try_solution(columns, solution.x[:-1], solution.y_ub)


def _generate_columns(game: _Game, best: _Incumbent, tolerance: float) -> None:
    """Generate columns, with a solver that gets stricter as the gap closes."""
    active = _seed_columns(game, best)
    guesses = best.try_prior(best.prior)
    released = np.arange(len(guesses))
    solver_tolerance, stalled = 1e-3, 0
    point: GamePoint | None = None
    solved, used_tolerance = np.empty(0, dtype=np.int64), 0.0
    for _ in range(MOST_ROUNDS):
        _activate_around(active, released, guesses)
        columns = game.list_columns(active)
        codes = columns.position * game.guesses + columns.guess  # they rise, and none is removed
        if len(codes) == len(solved) and solver_tolerance == used_tolerance:
            return  # the same game again
        start = None if point is None else (point, np.searchsorted(codes, solved))
        costs, before = game.column_costs(columns), best.gap
        point = solve_game(costs, columns.position, solver_tolerance, start)
        solved, used_tolerance = codes, solver_tolerance
        guesses = best.try_solution(columns, point.shares, point.weights)
        has_new = not active[released, guesses].all()
        stalled = 0 if has_new or best.gap < 0.5 * before else stalled + 1
        if best.gap <= tolerance or stalled > MOST_STALLED:
            return
        stricter = 0.1 * min(solver_tolerance, best.gap) if has_new else 0.0
        solver_tolerance = max(stricter, tolerance / 10)


def _seed_columns(game: _Game, best: _Incumbent) -> Mask:
    """Mark the columns to start from: around the solution of a game half as fine.

    That game has every other true answer and every other guess, down to about `COARSEST` of them.
    Wide noise moves guesses far, and this finds out how far, at a fraction of the cost.
    """
    active = best.remap > 0
    rows, guesses = len(game.matrix), game.guesses
    if min(rows, guesses) <= COARSEST:
        return active
    some_rows, some_guesses = _every_other(rows), _every_other(guesses)
    coarse = _Game(game.matrix[some_rows], game.losses[np.ix_(some_rows, some_guesses)])
    coarse_best = _Incumbent(coarse)
    _generate_columns(coarse, coarse_best, COARSE_TOLERANCE)
    outputs = np.arange(len(active))
    for likely in np.argsort(coarse_best.remap, axis=1)[:, -2:].T:
        used = coarse_best.remap[outputs, likely] > COARSE_TOLERANCE
        _activate_around(active, outputs[used], some_guesses[likely[used]])
    prior = np.zeros(rows)
    prior[some_rows] = coarse_best.prior
    spread = prior + 0.5 * (np.roll(prior, 1) + np.roll(prior, -1))
    best.try_prior(spread / spread.sum())
    return active


def _activate_around(active: Mask, released: Integers, guesses: Integers) -> None:
    """Mark each guess and its two neighbours as usable after its released answer."""
    for offset in (-1, 0, 1):
        active[released, np.clip(guesses + offset, 0, active.shape[1] - 1)] = True


def _every_other(size: int) -> Integers:
    """Return every other index below `size`, counted from both ends: mirrored games stay so."""
    half = np.arange(0, (size + 1) // 2, 2)
    return np.unique(np.concatenate([half, size - 1 - half]))


def _evaluate(matrix: Floats, losses: Floats, remap: Floats, prior: Floats) -> Saddle:
    """Evaluate the loss of a remap and the bound of a prior from scratch, in the caller's units."""
    attained = float(((matrix @ remap) * losses).sum(axis=1).max())
    proved = float(posterior_costs(matrix, losses, prior).min(axis=1).sum())
    rounding = sum(matrix.shape) * 2.0**-52 * float(np.abs(losses).max())
    return Saddle(remap, attained, prior, min(attained, proved - rounding))


def _is_symmetric(table: Floats) -> bool:
    """Return True if counting rows and columns from the other end changes nothing."""
    return bool(np.allclose(table, table[::-1, ::-1], rtol=1e-12, atol=1e-300))
