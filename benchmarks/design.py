"""Designs in ratio to generic solvers on the plain program, and to the paper's Algorithm 1.

The plain program has a variable for each cell and a row for each neighbour pair, output and
direction, and every property. Of SciPy's HiGHS only `linprog` itself is timed, and stopped after
a limit, so that the ratio is then a lower bound; of Tallyveil everything is: posing, solving,
repair and the certified bound. qif knows no properties. The second half keeps a distribution:
the closed form of `transport` in ratio to HiGHS, Clarabel and Algorithm 1 of Kohli and Laskowski
(2026).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import tallyveil as tv
from benchmarks.harness import (
    Peer,
    Result,
    Settings,
    Table,
    Target,
    find_peer,
    pose_program,
    time_best,
)
from tallyveil.loss import loss_table
from tallyveil.mechanisms.transport import transport
from tallyveil.optimize.program import identity
from tallyveil.optimize.solver import Program, solve
from tallyveil.papers.kohli.greedy import greedy_fixed_point
from tallyveil.properties import SEVEN, Rows, rows

SETS = {
    "none": (),
    "WH": ("weakly_honest",),
    "F": ("fair",),
    "CM": ("column_monotone",),
    "all": SEVEN,
}
EPSILONS = (0.1, 0.5, 1.0)
SIZES = {"path": (21, 81, 161, 321), "band": (21, 41, 81), "complete": (21, 51, 101)}
QUICK_SIZES = {"path": (21, 41), "band": (21,), "complete": (21,)}
COMPARED = {"path": 81, "band": 41, "complete": 21}
"""The largest sizes at which SciPy runs."""

SECONDS = {("path", 161): 2.0, ("path", 321): 10.0, ("complete", 101): 1.0}
FASTER, FASTER_TRANSPORT = 10.0, 1000.0
SELECTORS = ("sandwich", "max", "min")
QIF = """
import sys, time, numpy as np, qif
size, epsilon = int(sys.argv[1]), float(sys.argv[2])
start = time.process_time()
matrix = qif.mechanism.d_privacy.min_loss_given_d(
    np.full(size, 1 / size), size,
    lambda x, y: epsilon * abs(x - y), lambda w, x: float(abs(w - x)))
seconds = time.process_time() - start
with np.errstate(all="ignore"):
    ratio = np.log(matrix[1:]) - np.log(matrix[:-1])
print(seconds, np.nanmax(np.abs(ratio)))
"""


def pose_query(graph: str, size: int) -> tv.Query:
    """Build a query: a count (path), a mean (band) or a maximum (complete neighbours)."""
    if graph == "path":
        return tv.Query.count(size - 1)
    return (
        tv.Query.mean((size - 1) // 4, 0, 4) if graph == "band" else tv.Query.maximum(0, size - 1)
    )


def time_design(query: tv.Query, epsilon: float, properties: tuple[str, ...]) -> tuple[float, Any]:
    """Measure a whole design, the best of three unless one takes over a second."""

    def run() -> tv.Design:
        return tv.design(query, epsilon, properties=properties, method="lp", progress=False)

    seconds, design = time_best(run)
    return (min(seconds, time_best(run, 2)[0]) if seconds < 1 else seconds), design


def time_scipy(
    query: tv.Query, epsilon: float, properties: tuple[str, ...], limit: float
) -> tuple[float, bool]:
    """Measure linprog on the plain program; also whether it was stopped."""
    n, m = query.shape
    pairs = query.neighbours.pairs
    first = np.repeat(np.concatenate([pairs[:, 0], pairs[:, 1]]), m)
    second = np.repeat(np.concatenate([pairs[:, 1], pairs[:, 0]]), m)
    output = np.tile(np.arange(m), 2 * len(pairs))
    private = Rows((second, output), (first, output), factor=float(np.exp(epsilon)))
    upper, right, equal, values = [], [], [], []
    for part in [private, *(part for name in properties for part in rows(name, query, epsilon))]:
        (equal if part.equal else upper).append(-identity(query.shape).apply_form(part))
        (values if part.equal else right).append(np.full(len(part), -part.floor))
    equal.append(sparse.kron(sparse.eye_array(n), np.ones((1, m)), format="csr"))
    values.append(np.ones(n))
    program = {
        "c": (loss_table(query, "absolute") / n).ravel(),
        "A_ub": sparse.vstack(upper, format="csc"),
        "b_ub": np.concatenate(right),
        "A_eq": sparse.vstack(equal, format="csc"),
        "b_eq": np.concatenate(values),
    }
    seconds, solution = time_best(
        lambda: linprog(**program, method="highs", options={"time_limit": limit})
    )
    return seconds, solution.status != 0


def compare_properties(settings: Settings) -> tuple[Table, list[Target]]:
    """Measure designs for each graph, size, epsilon and property set."""
    epsilons, limit = (EPSILONS[1:2], 5.0) if settings.quick else (EPSILONS, 25.0)
    lines, targets, gap, ratios = [], [], 0.0, {}
    for graph, sizes in (QUICK_SIZES if settings.quick else SIZES).items():
        for size in sizes:
            cells, slowest = [], 0.0
            for name, properties in SETS.items():
                taken, faster, mark = 0.0, np.inf, ""
                for epsilon in epsilons:
                    query = pose_query(graph, size)
                    seconds, design = time_design(query, epsilon, properties)
                    taken = max(taken, seconds)
                    gap = max(gap, design.gap if size <= 161 else 0.0)
                    if size <= COMPARED[graph]:
                        scipy, stopped = time_scipy(query, epsilon, properties, limit)
                        faster, mark = min(faster, scipy / seconds), ">" * stopped or mark
                ratios[graph, size, name] = faster
                ratio = f" ({mark}{faster:.0f} times)" if np.isfinite(faster) else ""
                cells.append(f"{taken:.3f} s{ratio}")
                slowest = max(slowest, taken)
            lines.append((graph, str(size), *cells))
            if allowed := SECONDS.get((graph, size)):
                promise = f"{graph}, {size} answers: under {allowed:g} s for every set"
                targets.append(Target.at_most(promise, slowest, allowed, " s"))
    judged = [ratio for (graph, size, _), ratio in ratios.items() if (graph, size) == ("path", 81)]
    if judged:
        promise = f"path, 81 answers: {FASTER:g} times faster than SciPy for every set"
        targets.insert(0, Target.at_least(promise, min(judged), FASTER))
    targets.append(Target.at_most("certified gap below 1e-6 up to 161 answers", gap, 1e-6))
    title = "Slowest over epsilons (and how many times faster than SciPy, at least)"
    return Table(title, ("neighbours", "answers", *SETS), lines), targets


def compare_qif(qif: Peer, quick: bool) -> list[Table]:
    """Measure a path without properties in qif, and the epsilon its matrix really has."""
    lines = []
    for size in (21,) if quick else (21, 41):
        for epsilon in EPSILONS:
            numbers = qif.run(QIF, str(size), str(epsilon))
            if numbers is not None:
                seconds, _ = time_design(pose_query("path", size), epsilon, ())
                ratio = f"{numbers[0] / seconds:.0f}"
                cells = (f"{seconds:.4f}", f"{numbers[0]:.3f}", ratio, f"{numbers[1]:g}")
                lines.append((str(size), f"{epsilon:g}", *cells))
    columns = ("answers", "epsilon", "tallyveil s", "qif s", "ratio", "qif's realised epsilon")
    return [Table("Against qif: path, no properties", columns, lines)] if lines else []


def pose_kept(z: np.ndarray, epsilon: float) -> Program:
    """Build the program of Kohli and Laskowski (2026), section 5.1, in n^2 variables."""
    n, answers = len(z), np.arange(len(z))
    sums, ratios = pose_program(n, epsilon)
    equal = sparse.vstack([sums, sparse.kron(z[None, :], sparse.eye_array(n))]).tocsc()
    cost = (z[:, None] * np.abs(answers[:, None] - answers)).ravel()
    right = np.concatenate([np.ones(n), z])
    return Program(cost, equal, right, ratios, np.zeros(ratios.shape[0]))


def compare_transport(quick: bool, epsilon: float = 0.5) -> tuple[Table, list[Target]]:
    """Measure the closed form, both solvers and Algorithm 1 on the same distributions."""
    lines, cheaper, faster = [], [], {}
    for n in (6, 41) if quick else (6, 41, 161, 1001, 2001):  # 6: imports are not judged
        z, query = 1.0 / (np.arange(n) + 1.0) ** 1.5, tv.Query.count(n - 1)  # like rare events
        z /= z.sum()
        seconds, mechanism = time_best(lambda: transport(query, epsilon, z, z), 10)  # noqa: B023
        cost = mechanism.expected_loss("absolute", z)
        cells = {"transport": (seconds, cost)}
        if n <= 161:
            program = pose_kept(z, epsilon)
            for backend in ("highs", "clarabel"):
                spent, solution = time_best(lambda: solve(program, backend))  # noqa: B023
                # a solver's point is infeasible by about its tolerance, so it may look cheaper
                cells[backend] = spent, float(solution.objective) * (1 + 1e-6) + 1e-7
            faster[n] = min(cells[backend][0] for backend in ("highs", "clarabel")) / seconds
        for selector in SELECTORS:
            spent, greedy = time_best(lambda: greedy_fixed_point(z, epsilon, selector))  # noqa: B023
            cells[selector] = spent, greedy.expected_loss("absolute", z) * (1 + 1e-9)
        cheaper += [
            f"{name} at {n}" for name, (_, theirs) in cells.items() if theirs < cost * (1 - 1e-12)
        ]
        shown = [f"{cells[name][0]:.4f}" if name in cells else "" for name in (*COLUMNS,)]
        lines.append((str(n), *shown, f"{cells['sandwich'][0] / seconds:,.0f}"))
    largest = max(faster)
    names = ", ".join(cheaper) or "nothing is"
    targets = [Target("nothing feasible is cheaper than transport", names, not cheaper)]
    if largest == 161:
        promise = f"{FASTER_TRANSPORT:g} times the best solver's speed at 161 answers"
        targets.append(Target.at_least(promise, faster[largest], FASTER_TRANSPORT))
    columns = ("answers", *COLUMNS, "sandwich / transport")
    return Table("Mechanisms that keep a distribution, seconds", columns, lines), targets


COLUMNS = ("transport", "highs", "clarabel", *SELECTORS)


def run(settings: Settings) -> Result:
    """Measure both halves."""
    tv.design(tv.Query.count(4), 1.0, method="lp", progress=False)  # imports are not timed
    properties, targets = compare_properties(settings)
    qif = find_peer("qif", not settings.quick)
    transported, promises = compare_transport(settings.quick)
    return Result(
        question="How long does a design take, against n and properties?",
        method="The best mechanism for the mean absolute error. Processor seconds, one thread; "
        "ours is posing, solving, repairing and the certified bound, SciPy's only the solver on "
        "the plain program, stopped after 25 s (then marked >). Properties: WH weakly honest, F "
        "fair, CM column monotone, all: the seven of Cormode et al. (2018). Neighbours: path (a "
        "count), band (a mean), complete (a maximum). The last table has the best mechanism that "
        "keeps a skewed distribution at epsilon 0.5, and three selectors of Algorithm 1.",
        tables=[properties, *compare_qif(qif, settings.quick), transported],
        targets=[*targets, *promises],
        peers={"qif": qif.state},
    )
