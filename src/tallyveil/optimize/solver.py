"""Linear programs solved by Clarabel or SciPy's HiGHS; no other module calls them.

No bound relies on a solver's claims: `lower_bound` turns any multipliers, right or wrong,
into a number that no feasible point can go below. A long solve shows one line on the terminal or
in a notebook.
"""

from __future__ import annotations

import builtins
import math
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from tallyveil.arrays import Floats, Mask

Matrix: TypeAlias = Any  # a scipy.sparse matrix or array, whose stubs do not compose
Backend = Literal["clarabel", "highs"]
Watch: TypeAlias = Callable[[int, float], bool]
"""Called with (iteration, objective) while a solver runs; True stops it."""

UNIT = 2.0**-53
"""Largest relative error of one rounding to a double."""

COEFFICIENT_ERROR = 4 * UNIT
"""Largest relative error of a program's coefficients, products of rounded exponentials."""

HIGHS_TOLERANCE = 1e-10
"""Feasibility tolerance asked of HiGHS, the smallest it accepts."""

MAX_ITERATIONS = 250
"""Beyond this Clarabel has stalled; the bound then shows how close it came."""


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise ``cost @ x`` subject to ``A_eq x = b_eq``, ``A_ub x <= b_ub`` and ``x >= 0``.

    No equations or inequalities are None; `free` marks variables that may be negative.
    """

    cost: Floats
    A_eq: Matrix = None
    b_eq: Floats | None = None
    A_ub: Matrix = None
    b_ub: Floats | None = None
    free: Mask | bool = False

    @property
    def size(self) -> int:
        """The number of variables."""
        return len(self.cost)

    def equations(self) -> tuple[Matrix, Floats]:
        """Return ``A_eq`` (CSC) and ``b_eq``, with no rows where there are none."""
        return _fill_side(self.A_eq, self.b_eq, self.size)

    def inequalities(self) -> tuple[Matrix, Floats]:
        """Return ``A_ub`` (CSC) and ``b_ub``, with no rows where there are none."""
        return _fill_side(self.A_ub, self.b_ub, self.size)

    def signed(self) -> Mask:
        """Mark the variables that must be non-negative, shape (n,)."""
        return ~np.broadcast_to(np.asarray(self.free, dtype=bool), self.size)


@dataclass(frozen=True, eq=False)
class Solution:
    """The answer of a solver: values x, multipliers y_eq and y_ub >= 0, and how it ended.

    ``cost + A_eq' y_eq + A_ub' y_ub`` is (nearly) zero on free variables and non-negative on the
    others. `status` is optimal, infeasible, unbounded, or inaccurate: stopped short of its
    tolerance, to be used only with a bound computed from the multipliers.
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
    """Solve a linear program, with dual values, feasible to about `tolerance`.

    Clarabel is an interior-point method: fast, and in the middle of the optimal face. HiGHS
    (through SciPy, tolerances 1e-10) returns a vertex. Ctrl-C stops Clarabel between two
    iterations and is raised again here.
    """
    if backend == "highs":
        return _solve_highs(program)
    return _solve_clarabel(program, tolerance, watch)


def lower_bound(program: Program, y_eq: ArrayLike, y_ub: ArrayLike, *, upper: float) -> float:
    """Return a number that ``cost @ x`` cannot fall below for feasible x with 0 <= x <= upper.

    For any multipliers y_eq and y_ub >= 0 (negative ones are set to zero) and
    r = cost + A_eq' y_eq + A_ub' y_ub, every such x has::

        cost @ x >= -y_eq @ b_eq - y_ub @ b_ub + sum_j min(0, r_j upper)

    The right side is evaluated with outward rounding, and with every coefficient taken to be off
    by up to `COEFFICIENT_ERROR`. Costs one product with each matrix.
    """
    A_eq, b_eq = program.equations()
    A_ub, b_ub = program.inequalities()
    free, non_negative = (
        np.asarray(y_eq, dtype=float),
        np.maximum(np.asarray(y_ub, dtype=float), 0.0),
    )
    reduced = program.cost + A_eq.T @ free + A_ub.T @ non_negative
    size = np.abs(program.cost) + abs(A_eq).T @ np.abs(free) + abs(A_ub).T @ non_negative
    terms = 4 + _count_longest_column(A_eq) + _count_longest_column(A_ub)
    error = size * (COEFFICIENT_ERROR + 2 * terms * UNIT)
    low, high = (reduced - error) * upper, (reduced + error) * upper
    worst = np.minimum(low, 0.0) - 2 * UNIT * np.maximum(np.abs(low), np.abs(high))
    constants = np.concatenate([-(free * b_eq), -(non_negative * b_ub)])
    constants_error = (COEFFICIENT_ERROR + 2 * UNIT) * math.fsum(np.abs(constants))
    return round_down(math.fsum(np.concatenate([worst, constants])) - constants_error)


def round_down(value: float) -> float:
    """Return a double a few units below `value`, to cover the last few roundings.

    >>> 1 - 1e-14 < round_down(1.0) < 1
    True
    """
    return value - 4 * UNIT * abs(value) if math.isfinite(value) else value


def _count_longest_column(matrix: Matrix) -> int:
    """Return the largest number of entries in a column of a CSC matrix."""
    return int(np.diff(matrix.indptr).max(initial=0))


def _fill_side(matrix: Matrix, right: Floats | None, size: int) -> tuple[Matrix, Floats]:
    """Return one side of a program as arrays, empty where there is none."""
    if matrix is None or right is None:
        return sparse.csc_array((0, size)), np.empty(0)
    return sparse.csc_array(matrix), np.asarray(right, dtype=float)


def _solve_clarabel(program: Program, tolerance: float, watch: Watch | None) -> Solution:
    """Solve by Clarabel's interior-point method, with signs as rows of the program."""
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
        none, program.cost, stacked, right, cones, _choose_clarabel_settings(tolerance)
    )
    with _catch_interrupt() as interrupted:
        solver.set_termination_callback(
            lambda info: (
                interrupted.is_set()
                or (watch is not None and watch(int(info.iterations), float(info.cost_primal)))
            )
        )
        result = solver.solve()
    seconds = time.perf_counter() - start
    dual = np.array(result.z)
    return Solution(
        np.array(result.x),
        float(result.obj_val),
        dual[: len(b_eq)],
        np.maximum(dual[len(b_eq) : len(b_eq) + len(b_ub)], 0.0),
        _CLARABEL_STATUS.get(str(result.status), "inaccurate"),
        "clarabel",
        clarabel.__version__,
        seconds,
        int(result.iterations),
    )


_CLARABEL_STATUS = {
    "Solved": "optimal",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible",
    "DualInfeasible": "unbounded",
    "AlmostDualInfeasible": "unbounded",
}


def _choose_clarabel_settings(tolerance: float) -> Any:
    """Choose Clarabel's settings: one thread, no presolve, one tolerance for all."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.direct_solve_method = "qdldl"  # the fastest of its factorisations on one thread
    settings.max_threads = 1
    settings.presolve_enable = False  # rows are chosen already; it only costs time
    settings.max_iter = MAX_ITERATIONS
    settings.chordal_decomposition_enable = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = tolerance
    return settings


@contextmanager
def _catch_interrupt() -> Iterator[threading.Event]:
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


def _solve_highs(program: Program) -> Solution:
    """Solve by HiGHS's simplex method; its marginals have the opposite sign of ours."""
    import scipy
    from scipy.optimize import linprog

    A_eq, b_eq = program.equations()
    A_ub, b_ub = program.inequalities()
    bounds = np.where(program.signed()[:, None], [0.0, np.inf], [-np.inf, np.inf])
    start = time.perf_counter()
    run: Any = linprog  # its stubs want every option of every method at once
    result = run(
        program.cost,
        A_ub=sparse.csc_matrix(A_ub) if len(b_ub) else None,
        b_ub=b_ub if len(b_ub) else None,
        A_eq=sparse.csc_matrix(A_eq) if len(b_eq) else None,
        b_eq=b_eq if len(b_eq) else None,
        bounds=bounds,
        method="highs-ds",
        options={
            "primal_feasibility_tolerance": HIGHS_TOLERANCE,
            "dual_feasibility_tolerance": HIGHS_TOLERANCE,
        },
    )
    seconds = time.perf_counter() - start
    status = {0: "optimal", 2: "infeasible", 3: "unbounded"}.get(int(result.status), "inaccurate")
    solved = result.x is not None
    return Solution(
        np.array(result.x) if solved else np.zeros(program.size),
        float(result.fun) if solved else math.nan,
        -np.array(result.eqlin.marginals) if solved else np.zeros(len(b_eq)),
        np.maximum(-np.array(result.ineqlin.marginals), 0.0) if solved else np.zeros(len(b_ub)),
        status,
        "highs",
        f"scipy {scipy.__version__}",
        seconds,
        int(result.nit),
    )


Progress: TypeAlias = bool | Callable[[int, float], object] | None
"""True and None show a line if somebody sees standard error, on a terminal or in a notebook, and
False nothing; only a solve that takes longer than a second shows it. A function is called with
(iteration, objective so far)."""

SECONDS_BEFORE_SHOWN = 1.0
"""Shorter solves show no line."""


@contextmanager
def watch_solver(progress: Progress, title: str) -> Iterator[Watch | None]:
    """Yield the function to call at every iteration, which never stops the solver, or None."""
    if callable(progress):
        report = progress

        def forward(iteration: int, objective: float) -> bool:
            report(iteration, objective)
            return False

        yield forward
    elif progress is False or not (sys.stderr.isatty() or _in_notebook()):
        yield None
    else:
        with _show_line(title, "" if _in_notebook() else " (Ctrl-C stops)") as watch:
            yield watch


def _in_notebook() -> bool:
    """Return True if a notebook's kernel runs this."""
    find_shell = getattr(builtins, "get_ipython", None)
    return find_shell is not None and hasattr(find_shell(), "kernel")


@contextmanager
def _show_line(title: str, hint: str) -> Iterator[Watch]:
    """Show one line, written over itself without widgets, and remove it afterwards."""
    start, width = time.monotonic(), 0

    def show(iteration: int, objective: float) -> bool:
        nonlocal width
        if time.monotonic() - start >= SECONDS_BEFORE_SHOWN:
            line = f"{title}: iteration {iteration}, objective {objective:.6g}{hint}"
            line = line[: shutil.get_terminal_size((120, 24)).columns - 1]
            print("\r" + line.ljust(width), end="", file=sys.stderr, flush=True)
            width = len(line)
        return False

    try:
        yield show
    finally:
        if width:
            print("\r" + " " * width + "\r", end="", file=sys.stderr, flush=True)
