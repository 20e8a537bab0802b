"""Kohli and Laskowski (2026), section 6.3: time to build a mechanism (Figure 7).

Seconds are those of this machine and this run; claims are about ratios within the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.certified.transport import implicit_transport
from tallyveil.figures import Curve, Panel, panels
from tallyveil.mechanisms.geometric import geometric
from tallyveil.mechanisms.transport import transport
from tallyveil.optimize.options import DesignOptions
from tallyveil.optimize.problem import pose
from tallyveil.optimize.program import assemble
from tallyveil.optimize.solver import solve
from tallyveil.papers.harness.data import load_homicides
from tallyveil.papers.harness.experiment import (
    Context,
    Experiment,
    Finding,
    Result,
    Table,
    check_claim,
    check_improvement,
)
from tallyveil.papers.kohli.greedy import greedy_fixed_point
from tallyveil.papers.kohli.histogram import distribution_of_counts
from tallyveil.papers.kohli.unfixed import unfixed_optimum
from tallyveil.query import Query

__all__ = ["EXPERIMENTS"]

EPSILON = math.log(2)
OURS, IMPLICIT = "transport, dense (ours)", "transport, implicit (ours)"
SIMPLEX, INTERIOR, HEURISTIC = "simplex (HiGHS)", "interior point (Clarabel)", "heuristic"
UNFIXED, GEOMETRIC = "two-stage unfixed", "truncated geometric"
TIMING = "A timing of this run; a loaded machine can disturb it."


def _solve_program(z: Floats, backend: Any) -> object:
    """Solve the fixed-point program of least count error as stated, without our reductions."""
    options = DesignOptions(loss="absolute", fixed_point=z)
    problem = pose(Query.count(len(z) - 1), EPSILON, options)
    return solve(assemble(problem, None).program, backend)


BUILDERS: dict[str, tuple[Callable[[Floats], object], int, int]] = {  # largest n: quick, full
    GEOMETRIC: (lambda z: geometric(Query.count(len(z) - 1), EPSILON), 2000, 2000),
    UNFIXED: (lambda z: unfixed_optimum(z, EPSILON), 2000, 2000),
    HEURISTIC: (lambda z: greedy_fixed_point(z, EPSILON, "sandwich"), 2000, 2000),
    SIMPLEX: (lambda z: _solve_program(z, "highs"), 40, 80),
    INTERIOR: (lambda z: _solve_program(z, "clarabel"), 40, 80),
    OURS: (lambda z: transport(Query.count(len(z) - 1), EPSILON, z), 2000, 2000),
    IMPLICIT: (lambda z: implicit_transport(len(z) - 1, EPSILON, z), 2000, 1_000_000),
}


def figure_7(context: Context) -> Result:
    """Seconds to build each mechanism from the crime distribution, epsilon = ln 2."""
    sample = load_homicides(context.data)
    sizes = [10, 20, 40, 80, 200, 500, 1000, 2000, 100_000, 1_000_000]
    jobs = [
        (name, build, n)
        for name, (build, quick, full) in BUILDERS.items()
        for n in sizes
        if n <= (quick if context.quick else full)
    ]
    _solve_program(np.full(3, 1 / 3), "highs")  # first use imports the solver
    seconds: dict[tuple[str, int], float] = {}
    for name, build, n in context.track(jobs):
        z = _trace_distribution(sample.values, n)
        seconds[name, n] = _measure_seconds(build, z)
        if seconds[name, n] < 0.3:  # short times depend on what else runs
            seconds[name, n] = min(_measure_seconds(build, z) for _ in range(5))
    curves = [
        Curve(
            name,
            [n for n in sizes if (name, n) in seconds],
            [seconds[name, n] for n in sizes if (name, n) in seconds],
            strong=name in (OURS, IMPLICIT),
        )
        for name in BUILDERS
    ]
    part = Panel(
        "crime distribution, epsilon = ln 2", curves, "number of counts n", "seconds", log="xy"
    )
    table = Table.of(("method", "n", "seconds"), [(*k, v) for k, v in seconds.items()])
    findings = _check_claims(seconds, 40 if context.quick else 80)
    return Result({"data": table}, partial(panels, [part]), findings, sample.label)


def _check_claims(seconds: dict[tuple[str, int], float], largest: int) -> tuple[Finding, ...]:
    """Ratios within the run; `largest` is the largest n the programs were given."""
    sizes = sorted({n for name, n in seconds if name == OURS})
    slow, fast = seconds[SIMPLEX, largest], seconds[HEURISTIC, largest]
    grown = {k: seconds[k, largest] / seconds[k, 10] for k in (SIMPLEX, INTERIOR)}
    against = {n: seconds[HEURISTIC, n] / seconds[OURS, n] for n in sizes}
    programs = {
        n: min(seconds[SIMPLEX, n], seconds[INTERIOR, n]) / seconds[OURS, n]
        for n in sizes
        if n <= largest
    }
    findings = [
        check_claim(
            "heuristic with n = 2,000 in under 10 seconds",
            f"{seconds[HEURISTIC, 2000]:.2f} s",
            seconds[HEURISTIC, 2000] < 10,
            TIMING,
        ),
        check_claim(
            "truncated geometric fastest, then two-stage unfixed, of the paper's methods",
            f"n = {largest}: {seconds[GEOMETRIC, largest]:.1e} s, "
            f"{seconds[UNFIXED, largest]:.1e} s, heuristic {fast:.1e} s",
            seconds[GEOMETRIC, largest] < seconds[UNFIXED, largest] < fast,
            TIMING,
        ),
        check_claim(
            "programs grow rapidly, simplex most",
            f"from n = 10 to {largest}: "
            + ", ".join(f"{k} {v:.0f} times" for k, v in grown.items()),
            min(grown.values()) > 4 and slow > seconds[INTERIOR, largest],
            TIMING,
        ),
        check_claim(
            "the heuristic is faster than simplex",
            f"n = {largest}: {slow / fast:.0f} times",
            slow > fast,
            TIMING,
        ),
        check_improvement(
            "the exact optimum in closed form, against the heuristic",
            "1",
            f"{min(against.values()):.1f} to {max(against.values()):.0f} times faster",
            min(against.values()) > 1,
            TIMING,
        ),
        check_improvement(
            "the exact optimum in closed form, against the faster program",
            "1",
            f"{min(programs.values()):.0f} to {max(programs.values()):.0f} times faster",
            min(programs.values()) > 1,
            TIMING,
        ),
    ]
    widest = max(n for name, n in seconds if name == IMPLICIT)
    if widest > 2000:
        findings.append(
            check_improvement(
                f"without the matrix, n = {widest:,}",
                "n = 2,000 in under 10 s",
                f"{seconds[IMPLICIT, widest]:.2f} s",
                seconds[IMPLICIT, widest] < 60,
                TIMING,
            )
        )
    return tuple(findings)


def _trace_distribution(counts: Integers, n: int) -> Floats:
    """Compute the distribution top-coded at n - 1, with a small share for every count.

    A private distribution from stage one is hardly ever exactly zero; the small shares keep
    the programs from being smaller than they would be.
    """
    share = distribution_of_counts(counts, n - 1, "top_code") + 1e-6 / n
    positive: Floats = share / share.sum()
    return positive


def _measure_seconds(build: Callable[[Floats], object], z: Floats) -> float:
    begun = time.perf_counter()
    build(z)
    return time.perf_counter() - begun


EXPERIMENTS = (
    Experiment("kohli", "Figure 7", "Time to build the mechanism against n", "6.3", figure_7),
)
