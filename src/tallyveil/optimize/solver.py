"""Linear programs: the only home of Clarabel and of SciPy's HiGHS.

A solver's word is never taken for a bound: `lower_bound` turns any multipliers, right or
wrong, into a number that no feasible point can beat.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from tallyveil.arrays import Floats

__all__ = ["Program", "Solution", "lower_bound", "round_down", "solve"]

Matrix: TypeAlias = Any  # a scipy.sparse matrix or array, whose stubs do not compose
Backend = Literal["clarabel", "highs"]
Watch: TypeAlias = Callable[[int, float], bool]
"""Called with (iteration, objective) while a solver runs; True stops it."""

UNIT = 2.0**-53
"""Largest relative error of one rounding to a double."""


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise ``cost @ x`` subject to ``A_eq x = b_eq``, ``A_ub x <= b_ub`` and ``x >= 0``.

    Parameters
    ----------
    cost : shape (n,)
    A_eq, b_eq : sparse, shapes (p, n) and (p,); or None for no equations
    A_ub, b_ub : sparse, shapes (q, n) and (q,); or None for no inequalities
    free : which variables have no sign, shape (n,) or one bool for all
    """

    cost: Floats
    A_eq: Matrix = None
    b_eq: Floats | None = None
    A_ub: Matrix = None
    b_ub: Floats | None = None
    free: NDArray[np.bool_] | bool = False

    @property
    def size(self) -> int:
        """How many variables there are."""
        return len(self.cost)

    def equations(self) -> tuple[Matrix, Floats]:
        """``A_eq`` (CSC) and ``b_eq``, with no rows where there are none."""
        return _side(self.A_eq, self.b_eq, self.size)

    def inequalities(self) -> tuple[Matrix, Floats]:
        """``A_ub`` (CSC) and ``b_ub``, with no rows where there are none."""
        return _side(self.A_ub, self.b_ub, self.size)

    def signed(self) -> NDArray[np.bool_]:
        """Which variables must be non-negative, shape (n,)."""
        signed: NDArray[np.bool_] = ~np.broadcast_to(np.asarray(self.free, dtype=bool), self.size)
        return signed


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver returned.

    ``cost + A_eq' y_eq + A_ub' y_ub`` is (nearly) zero on free variables and non-negative on
    the others; ``y_ub >= 0``. `status` is "optimal", "infeasible", "unbounded" or
    "inaccurate" (stopped short of its tolerance: use it only with a bound of your own).
    """

    x: Floats
    objective: float
    y_eq: Floats
    y_ub: Floats
    status: str
    solver: str
    version: str
    seconds: float
    iterations: int


def solve(
    program: Program,
    backend: Backend = "clarabel",
    *,
    tolerance: float = 1e-9,
    watch: Watch | None = None,
) -> Solution:
    """Solve a linear program, with dual values.

    ``"clarabel"`` is an interior-point method: fast, and in the middle of the optimal face
    where optima are not unique. ``"highs"`` (through SciPy, tolerances 1e-10) returns a
    vertex. Neither is exact: expect feasibility to about `tolerance`.

    `watch` is called once per iteration (Clarabel only) and stops the solve by returning
    True; Ctrl-C stops it cleanly as well and is raised again here.

    >>> solve(Program(np.array([1.0, 2.0]), sparse.csc_array([[1.0, 1.0]]), np.ones(1)),
    ...       backend="highs").objective
    1.0
    """
    if backend == "highs":
        return _highs(program)
    return _clarabel(program, tolerance, watch)


def lower_bound(
    program: Program,
    y_eq: ArrayLike,
    y_ub: ArrayLike,
    *,
    upper: ArrayLike = 1.0,
    lower: ArrayLike = 0.0,
    simplices: NDArray[np.int64] | None = None,
    coefficient_error: float = 4 * UNIT,
) -> float:
    """A number that ``cost @ x`` cannot fall below for any feasible x in a known box.

    For any multipliers y_eq and y_ub >= 0 (negative ones are set to zero) and
    r = cost + A_eq' y_eq + A_ub' y_ub, every feasible x with lower <= x <= upper has::

        cost @ x >= -y_eq @ b_eq - y_ub @ b_ub + sum_j min(r_j lower_j, r_j upper_j)

    The right side is evaluated with outward rounding, and with every coefficient of the
    program taken to be off by up to `coefficient_error` relative (rounded exponentials), so
    it holds however poor the multipliers are. Costs one product with each matrix.

    Parameters
    ----------
    upper, lower : the box, scalars or shape (n,); 0 and 1 suit probabilities
    simplices : labels, shape (n,): variables with the same label >= 0 are known to be
        non-negative and to sum to one (a row of a stochastic matrix), which is worth
        min_j r_j instead of a sum of minima and so loses far less; -1 for no label
    """
    A_eq, b_eq = program.equations()
    A_ub, b_ub = program.inequalities()
    free, held = np.asarray(y_eq, dtype=float), np.maximum(np.asarray(y_ub, dtype=float), 0.0)
    reduced = program.cost + A_eq.T @ free + A_ub.T @ held
    size = np.abs(program.cost) + abs(A_eq).T @ np.abs(free) + abs(A_ub).T @ held
    terms = 4 + max(_longest_column(A_eq), 0) + max(_longest_column(A_ub), 0)
    error = size * (coefficient_error + 2 * terms * UNIT)
    low, high = np.broadcast_to(lower, program.size), np.broadcast_to(upper, program.size)
    ends = np.stack([(reduced - error) * low, (reduced - error) * high,
                     (reduced + error) * low, (reduced + error) * high])  # fmt: skip
    worst = ends.min(axis=0) - 2 * UNIT * np.abs(ends).max(axis=0)
    if simplices is not None and (simplices >= 0).any():
        inside = simplices >= 0
        least = np.full(int(simplices.max()) + 1, np.inf)
        np.minimum.at(least, simplices[inside], (reduced - error)[inside])
        worst = np.concatenate([worst[~inside], least[np.isfinite(least)]])
    constants = np.concatenate([-(free * b_eq), -(held * b_ub)])
    blur = (coefficient_error + 2 * UNIT) * math.fsum(np.abs(constants))
    return round_down(math.fsum(np.concatenate([worst, constants])) - blur)


def round_down(value: float) -> float:
    """A double a few units below `value`, enough to cover the last few roundings."""
    return value - 4 * UNIT * abs(value) if math.isfinite(value) else value


def _longest_column(matrix: Matrix) -> int:
    counts = np.diff(sparse.csc_array(matrix).indptr)
    return int(counts.max(initial=0))


def _side(matrix: Matrix, right: Floats | None, size: int) -> tuple[Matrix, Floats]:
    if matrix is None or right is None:
        return sparse.csc_array((0, size)), np.empty(0)
    return sparse.csc_array(matrix), np.asarray(right, dtype=float)


def _clarabel(program: Program, tolerance: float, watch: Watch | None) -> Solution:
    import clarabel

    A_eq, b_eq = program.equations()
    A_ub, b_ub = program.inequalities()
    signed = np.flatnonzero(program.signed())
    bounds = sparse.csc_array(
        (-np.ones(len(signed)), (np.arange(len(signed)), signed)),
        shape=(len(signed), program.size),
    )
    stacked = sparse.csc_matrix(sparse.vstack([A_eq, A_ub, bounds], format="csc"))
    right = np.concatenate([b_eq, b_ub, np.zeros(len(signed))])
    cones = [clarabel.ZeroConeT(len(b_eq)), clarabel.NonnegativeConeT(len(b_ub) + len(signed))]
    none = sparse.csc_matrix((program.size, program.size))
    start = time.perf_counter()
    solver = clarabel.DefaultSolver(
        none, program.cost, stacked, right, cones, _clarabel_settings(tolerance)
    )
    with _interruptible() as interrupted:
        solver.set_termination_callback(
            lambda info: (
                interrupted.is_set()
                or (watch is not None and watch(int(info.iterations), float(info.cost_primal)))
            )
        )
        found = solver.solve()
    seconds = time.perf_counter() - start
    dual = np.array(found.z)
    return Solution(
        np.array(found.x),
        float(found.obj_val),
        dual[: len(b_eq)],
        np.maximum(dual[len(b_eq) : len(b_eq) + len(b_ub)], 0.0),
        _CLARABEL_STATUS.get(str(found.status), "inaccurate"),
        "clarabel",
        clarabel.__version__,
        seconds,
        int(found.iterations),
    )


_CLARABEL_STATUS = {
    "Solved": "optimal",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible",
    "DualInfeasible": "unbounded",
    "AlmostDualInfeasible": "unbounded",
}


def _clarabel_settings(tolerance: float) -> Any:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "qdldl"  # the fastest of its factorisations on one thread
    settings.max_threads = 1
    settings.presolve_enable = False  # rows are chosen already; it only costs time
    settings.max_iter = 250  # what takes longer has stalled; the bound tells how close it came
    settings.chordal_decomposition_enable = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tolerance
    return settings


@contextmanager
def _interruptible() -> Iterator[threading.Event]:
    """Turn Ctrl-C into an event while foreign code runs; raise it again afterwards.

    Only the main thread receives signals, so elsewhere the event just never fires.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
    if pressed.is_set():
        raise KeyboardInterrupt


def _highs(program: Program) -> Solution:
    import scipy
    from scipy.optimize import linprog

    A_eq, b_eq = program.equations()
    A_ub, b_ub = program.inequalities()
    bounds = np.where(program.signed()[:, None], [0.0, np.inf], [-np.inf, np.inf])
    start = time.perf_counter()
    run: Any = linprog  # its stubs want every option of every method at once
    found = run(
        program.cost,
        A_ub=sparse.csc_matrix(A_ub) if len(b_ub) else None,
        b_ub=b_ub if len(b_ub) else None,
        A_eq=sparse.csc_matrix(A_eq) if len(b_eq) else None,
        b_eq=b_eq if len(b_eq) else None,
        bounds=bounds,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    seconds = time.perf_counter() - start
    status = {0: "optimal", 2: "infeasible", 3: "unbounded"}.get(int(found.status), "inaccurate")
    solved = found.x is not None
    return Solution(
        np.array(found.x) if solved else np.zeros(program.size),
        float(found.fun) if solved else math.nan,
        -np.array(found.eqlin.marginals) if solved else np.zeros(len(b_eq)),
        np.maximum(-np.array(found.ineqlin.marginals), 0.0) if solved else np.zeros(len(b_ub)),
        status,
        "highs",
        f"scipy {scipy.__version__}",
        seconds,
        int(found.nit),
    )
