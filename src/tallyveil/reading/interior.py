"""A small interior-point method for games of many simplices against one worst case.

``min d`` subject to ``A t <= d`` row by row, t >= 0, and t summing to one in every block.
General solvers see a dense A with thousands of columns; here every step is one symmetric
product and one Cholesky factor of the size of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats

__all__ = ["GamePoint", "solve_game"]

MOST_STEPS = 40


class GamePoint(NamedTuple):
    """A nearly optimal pair: shares t of the columns, shape (K,), and weights w of the rows.

    Neither is trusted: the caller rebuilds the value of t and the bound that w proves.
    """

    shares: Floats
    weights: Floats


def solve_game(A: Floats, block: NDArray[np.int64], tolerance: float) -> GamePoint:
    """Mehrotra's predictor-corrector on the game with payoffs A, shape (rows, K).

    Parameters
    ----------
    A : loss of each row under each column; `block` : non-decreasing labels 0.., shape (K,),
        none left out; every block's shares sum to one
    tolerance : stop when the duality gap is below it, relative to the value

    The dual is ``max sum_b lambda_b`` with lambda_b <= (w A)_c for every column c of block b
    and w a law on the rows. Costs O(rows^2 K) per step, some 15 steps.
    """
    state = _start(A, block)
    for _ in range(MOST_STEPS):
        gap = float(state.t @ state.z + state.s @ state.w)
        if gap <= tolerance * abs(state.d):
            break
        if not state.advance(gap):
            break
    return GamePoint(state.t, state.w)


class _State:
    """The iterate: t, s, d (primal), w, z, lam (dual)."""

    def __init__(self, A: Floats, block: NDArray[np.int64], **parts: Any) -> None:
        self.A, self.block = A, block
        self.by_column = np.ascontiguousarray(A.T)
        self.count = int(block[-1]) + 1
        self.first = np.searchsorted(block, np.arange(self.count))
        self.t: Floats = parts["t"]
        self.s: Floats = parts["s"]
        self.d: float = parts["d"]
        self.w: Floats = parts["w"]
        self.z: Floats = parts["z"]
        self.lam: Floats = parts["lam"]

    def sums(self, values: Floats) -> Floats:
        """Sum over each block."""
        return np.add.reduceat(values, self.first)

    def advance(self, gap: float) -> bool:
        """One predictor-corrector step; False when the numbers leave no further progress."""
        from scipy.linalg import LinAlgError

        mean = gap / (len(self.t) + len(self.s))
        try:
            newton = _Newton(self)
        except LinAlgError:
            return False
        guess = newton.direction(-self.t * self.z, -self.s * self.w)
        primal, dual = self.reach(guess)
        ahead = (self.t + primal * guess.t) @ (self.z + dual * guess.z)
        ahead += (self.s + primal * guess.s) @ (self.w + dual * guess.w)
        centre = mean * (ahead / gap) ** 3
        move = newton.direction(
            centre - self.t * self.z - guess.t * guess.z,
            centre - self.s * self.w - guess.s * guess.w,
        )
        primal, dual = (min(1.0, 0.995 * length) for length in self.reach(move))
        if not np.isfinite(move.d) or max(primal, dual) < 1e-6:
            return False
        self.t = self.t + primal * move.t
        self.s = self.s + primal * move.s
        self.d = self.d + primal * move.d
        self.w = self.w + dual * move.w
        self.z = self.z + dual * move.z
        self.lam = self.lam + dual * move.lam
        return True

    def reach(self, move: _Move) -> tuple[float, float]:
        """How far each side can go before something turns negative."""
        primal = min(_longest(self.t, move.t), _longest(self.s, move.s))
        return primal, min(_longest(self.w, move.w), _longest(self.z, move.z))


class _Move(NamedTuple):
    t: Floats
    s: Floats
    d: float
    w: Floats
    z: Floats
    lam: Floats


class _Newton:
    """The linear system of one iterate, eliminated down to the rows of the game."""

    def __init__(self, at: _State) -> None:
        from scipy.linalg import cho_factor
        from scipy.linalg.blas import dsyrk

        self.at = at
        self.theta = at.t / at.z
        self.mass = at.sums(self.theta)
        # Eliminating a block's multiplier centres its columns, weighted by theta.
        centred = at.by_column * self.theta[:, None]
        mean = np.add.reduceat(centred, at.first, axis=0) / self.mass[:, None]
        np.take(mean, at.block, axis=0, out=centred)
        np.subtract(at.by_column, centred, out=centred)
        centred *= np.sqrt(self.theta)[:, None]
        normal = dsyrk(1.0, centred.T, lower=1)  # its transpose is in Fortran order: no copy
        diagonal = np.einsum("ii->i", normal)
        diagonal += at.s / at.w
        diagonal += 1e-14 * diagonal.max()
        self.factor = cho_factor(normal, lower=True, overwrite_a=True, check_finite=False)
        self.ones = self.solve(np.ones(len(at.s)))
        self.short = 1.0 - at.sums(at.t)
        self.slack = at.d - at.A @ at.t - at.s
        self.law = 1.0 - float(at.w.sum())
        self.price = at.w @ at.A - at.lam[at.block] - at.z

    def solve(self, right: Floats) -> Floats:
        from scipy.linalg import cho_solve

        solution: Floats = cho_solve(self.factor, right, check_finite=False)
        return solution

    def direction(self, columns: Floats, rows: Floats) -> _Move:
        """The step that makes t z change by `columns`, s w by `rows`, and closes residuals."""
        at, theta = self.at, self.theta
        free = columns / at.z - theta * self.price
        shift = (self.short - at.sums(free)) / self.mass
        right = at.A @ (free + theta * shift[at.block]) + rows / at.w - self.slack
        bare = self.solve(right)
        d = float((bare.sum() - self.law) / self.ones.sum())
        w = bare - d * self.ones
        price = w @ at.A
        lam = shift + at.sums(theta * price) / self.mass
        z = price - lam[at.block] + self.price
        return _Move(columns / at.z - theta * z, (rows - at.s * w) / at.w, d, w, z, lam)


def _start(A: Floats, block: NDArray[np.int64]) -> _State:
    """Even shares, even weights, everything strictly inside."""
    first = np.searchsorted(block, np.arange(int(block[-1]) + 1))
    sizes = np.diff(np.append(first, len(block)))
    t = 1.0 / sizes[block]
    losses = A @ t
    d = 1.1 * float(losses.max()) + 1e-3
    w = np.full(len(A), 1.0 / len(A))
    price = w @ A
    lam = np.minimum.reduceat(price, first) - max(float(price.max()), 1e-8) / (10 * len(first))
    return _State(A, block, t=t, s=d - losses, d=d, w=w, z=price - lam[block], lam=lam)


def _longest(values: Floats, move: Floats) -> float:
    falling = move < 0
    return min(1.0, float((-values[falling] / move[falling]).min(initial=np.inf)))
