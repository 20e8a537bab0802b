"""Fixed-point mechanisms: the transport optimum against generic solvers and Algorithm 1.

    python -m benchmarks.preserve [--quick] [--json FILE] [--largest 161] [--epsilon 0.5]

One run compares, on the same distributions and the same program (minimise the expected absolute
error over all epsilon-private mechanisms with z T = z):

- transport in closed form with the best of HiGHS and Clarabel, n = 21, 41, 81, 161
- transport with Algorithm 1 of Kohli and Laskowski (2026, three selectors), up to n = 2001
- the implicit form up to n = 1,000,000

Bars: at n = 161 transport is at least 1,000 times faster than the best solver; n = 2001 dense
takes under 0.5 s; no feasible mechanism found is cheaper. Exits with 1 if one is missed.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.measure import Bar, Plot, Result, Table, conduct, exponent, options, timed
from tallyveil.certified.transport import implicit_transport
from tallyveil.mechanisms.transport import transport
from tallyveil.optimize.solver import Program, solve
from tallyveil.papers.kohli.greedy import greedy_fixed_point
from tallyveil.query import Query

BACKENDS = {"clarabel": "Clarabel", "highs": "HiGHS"}
SELECTORS = ("sandwich", "max", "min")


def make_skewed(n: int) -> np.ndarray:
    """Build a distribution with a peak at zero and a long tail, like counts of rare events."""
    z = 1.0 / (np.arange(n) + 1.0) ** 1.5
    return z / z.sum()


def build_program(z: np.ndarray, epsilon: float) -> Program:
    """Build the program of Kohli and Laskowski (2026), section 5.1, in n^2 variables."""
    n, at = len(z), np.arange(len(z))
    eye = sparse.eye_array(n)
    equations = sparse.vstack(
        [
            sparse.kron(eye, np.ones((1, n))),
            sparse.kron(z[None, :], eye),
        ]
    ).tocsc()
    up = sparse.diags_array(
        [np.ones(n - 1), np.full(n - 1, -np.exp(epsilon))], offsets=[0, 1], shape=(n - 1, n)
    )
    down = sparse.diags_array(
        [np.full(n - 1, -np.exp(epsilon)), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)
    )
    inequalities = sparse.kron(sparse.vstack([up, down]), eye).tocsc()
    cost = (z[:, None] * np.abs(at[:, None] - at[None, :])).ravel()
    right = np.concatenate([np.ones(n), z])
    return Program(cost, equations, right, inequalities, np.zeros(inequalities.shape[0]))


def measure_transport(n: int, epsilon: float, repeat: int) -> tuple[float, float]:
    """Measure seconds and cost of the transport optimum."""
    z, query = make_skewed(n), Query.count(n - 1)
    seconds, mechanism = timed(lambda: transport(query, epsilon, z, z), repeat)
    return seconds, mechanism.expected_loss("absolute", z)


def compare_solvers(n: int, epsilon: float) -> dict[str, Any]:
    """Measure seconds and cost of transport and of both solvers on the program."""
    seconds, cost = measure_transport(n, epsilon, repeat=20)
    row: dict[str, Any] = {"n": n, "transport": {"seconds": seconds, "cost": cost}}
    program = build_program(make_skewed(n), epsilon)
    for backend in BACKENDS:
        spent, solution = timed(lambda: solve(program, backend))  # noqa: B023
        # a solver's point is infeasible by about its tolerance, so it may look cheaper
        cheaper = solution.objective < cost * (1 - 1e-6) - 1e-7
        row[backend] = {
            "seconds": spent,
            "cost": float(solution.objective),
            "cheaper": bool(cheaper and solution.status == "optimal"),
        }
    row["ratio"] = min(row[backend]["seconds"] for backend in BACKENDS) / seconds
    return row


def compare_greedy(n: int, epsilon: float) -> dict[str, Any]:
    """Measure seconds and cost of transport and of Algorithm 1 with each selector."""
    z = make_skewed(n)
    seconds, cost = measure_transport(n, epsilon, repeat=3)
    row: dict[str, Any] = {"n": n, "transport": {"seconds": seconds, "cost": cost}}
    for selector in SELECTORS:
        spent, found = timed(lambda: greedy_fixed_point(z, epsilon, selector))  # noqa: B023
        theirs = found.expected_loss("absolute", z)
        row[selector] = {"seconds": spent, "cost": theirs, "cheaper": theirs < cost * (1 - 1e-9)}
    return row


def measure_implicit(n: int, epsilon: float) -> dict[str, Any]:
    """Measure seconds to build the implicit form and to release a million rows with it."""
    seconds, implicit = timed(lambda: implicit_transport(n - 1, epsilon, make_skewed(n)), 3)
    rows = np.zeros(1_000_000, dtype=np.int64)
    spent, _ = timed(lambda: implicit.release(rows))
    return {"n": n, "build": seconds, "release": spent, "entries": len(implicit.remap.share)}


def make_tables(solvers: list[Any], greedy: list[Any], implicit: list[Any]) -> list[Table]:
    first = [
        [str(row["n"]), f"{row['transport']['seconds']:.6f}", f"{row['transport']['cost']:.7f}"]
        + [cell for b in BACKENDS for cell in (f"{row[b]['seconds']:.3f}", f"{row[b]['cost']:.7f}")]
        + [f"{row['ratio']:,.0f}"]
        for row in solvers
    ]
    second = [
        [
            str(row["n"]),
            f"{row['transport']['seconds']:.4f}",
            f"{row['sandwich']['seconds']:.3f}",
            f"{row['sandwich']['seconds'] / row['transport']['seconds']:,.0f}",
            f"{row['transport']['cost']:.6f}",
        ]
        + [f"{row[selector]['cost']:.6f}" for selector in SELECTORS]
        for row in greedy
    ]
    third = [
        [f"{row['n']:,}", f"{row['build']:.3f}", f"{row['entries']:,}", f"{row['release']:.2f}"]
        for row in implicit
    ]
    heads = [cell for name in BACKENDS.values() for cell in (f"{name} s", "cost")]
    return [
        Table(
            "Against linear programs",
            ("n", "transport s", "cost", *heads, "best solver / transport"),
            first,
        ),
        Table(
            "Against Algorithm 1",
            (
                "n",
                "transport s",
                "sandwich s",
                "sandwich / transport",
                "transport cost",
                *(f"{selector} cost" for selector in SELECTORS),
            ),
            second,
        ),
        Table("Implicit form", ("n", "build s", "entries of the remap", "a million rows s"), third),
    ]


def make_bars(solvers: list[Any], greedy: list[Any]) -> list[Bar]:
    cheaper = [
        f"{name} at n = {row['n']}"
        for row in solvers + greedy
        for name in (*BACKENDS, *SELECTORS)
        if row.get(name, {}).get("cheaper")
    ]
    kept = [Bar("nothing feasible is cheaper", ", ".join(cheaper) or "nothing is", not cheaper)]
    for row in solvers:
        if row["n"] == 161:
            kept.append(
                Bar(
                    "1,000 times the best solver's speed at n = 161",
                    f"{row['ratio']:,.0f} times",
                    row["ratio"] >= 1000,
                )
            )
    for row in greedy:
        if row["n"] == 2001:
            seconds = row["transport"]["seconds"]
            kept.append(Bar("n = 2001 dense in 0.5 s", f"{seconds:.3f} s", seconds < 0.5))
    return kept


def run(largest: int, epsilon: float, quick: bool) -> Result:
    compare_solvers(6, 1.0)  # imports and caches are not timed
    small = [n for n in (21, 41, 81, 161) if n <= (41 if quick else largest)]
    solvers = [compare_solvers(n, epsilon) for n in small]
    wide = (21, 81, 161) if quick else (21, 81, 161, 501, 1001, 2001)
    greedy = [compare_greedy(n, epsilon) for n in wide]
    huge = (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    implicit = [measure_implicit(n, epsilon) for n in huge]
    curves = {
        "transport, dense": (wide, [row["transport"]["seconds"] for row in greedy]),
        "transport, implicit": (huge, [row["build"] for row in implicit]),
        "Algorithm 1, sandwich": (wide, [row["sandwich"]["seconds"] for row in greedy]),
        **{
            name: (small, [row[backend]["seconds"] for row in solvers])
            for backend, name in BACKENDS.items()
        },
    }
    return Result(
        question="How fast is the best mechanism that keeps a distribution?",
        method=f"Minimise the expected absolute error over all private mechanisms that keep a "
        f"skewed distribution at epsilon {epsilon:g}. Wall seconds. A solver's cost may lie below "
        "the optimum by its tolerance, because its matrix is not quite private.",
        tables=make_tables(solvers, greedy, implicit),
        bars=make_bars(solvers, greedy),
        plots=[Plot("Fixed-point mechanisms", "n", "seconds", curves)],
        exponents={f"{label}, against n": exponent(*curve) for label, curve in curves.items()},
        raw={"solvers": solvers, "greedy": greedy, "implicit": implicit},
    )


def main(arguments: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--largest", type=int, default=161, help="largest n given to the solvers")
    parser.add_argument("--epsilon", type=float, default=0.5)
    given = parser.parse_args(arguments)
    return conduct("preserve", lambda: run(given.largest, given.epsilon, given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
