"""What no private release can do better, beside what was measured; and whether intervals hold.

Part of `benchmarks.accuracy`. For every table and epsilon: the least distance that any private
release can have with the count error of plain noise (the frontier), the minimax bound on the
distance, and which priority has both a count error of at most plain noise's and a distance of at
most the paper's. Where the frontier forbids the two together, the cell says so.

The frontier is for a distribution that is known free of charge and for a table of any length. So it
is beside the least distance, with that error, of a release in two stages that knows the
distribution and not how many rows of this table have each count: totals at a share of epsilon,
rows at the rest. That one is a normal approximation, and no proof.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import tallyveil as tv
from benchmarks.measure import Bar, Table
from benchmarks.paired import list_real
from tallyveil._threads import one_blas_thread

__all__ = ["bound_cell", "expect_error", "make_bars", "make_tables", "measure_coverage"]

COVERED = ("homicides", "teachers", "Lyme 2018", "Lyme 2003", "family size")
EPSILONS = ("0.25", "1")
CONFIDENCE = 0.95
SHARES = tuple(Fraction(part, 1000) for part in (0, 5, 10, 15, 20, 30, 50, 80, 120))
SLACK = 1.005
"""Count errors within half a per cent are equal: that is their standard error."""


def bound_cell(counts: np.ndarray, upper: int, epsilon: str) -> dict[str, float]:
    """Work out the bounds for rows drawn from the distribution of a table."""
    shares = np.bincount(counts, minlength=upper + 1) / len(counts)
    query = tv.Query.count(upper)
    with one_blas_thread():
        two_stages = bound_two_stages(shares, len(counts), epsilon)
        plain = expect_error(counts, upper, epsilon)
        curve = tv.frontier(query, epsilon, shares)
    return {
        "plain error": plain,
        "least distance": curve.bound_distance(max(plain, float(curve.error[0]))),
        "least error": float(curve.error[0]),
        "two stages": two_stages,
        "minimax distance": tv.bound_distribution_error(len(counts), upper, epsilon),
    }


def expect_error(counts: np.ndarray, upper: int, epsilon: str | Fraction) -> float:
    """The mean error of plain truncated geometric noise on these counts."""
    drawn = tv.geometric(tv.Query.count(upper), epsilon).matrix
    away = np.abs(np.arange(upper + 1)[:, None] - np.arange(upper + 1))
    return float((drawn * away).sum(axis=1)[counts].mean())


def bound_two_stages(shares: np.ndarray, rows: int, epsilon: str) -> float:
    """Approximate the least distance of two stages with plain noise's error, the shares known.

    The least over shares f of the larger of two distances: the one that the frontier of the rows'
    draws forces, and what the draws and totals leave open of how many rows have at most each
    count. With p_j(k) = Pr(true <= j | draw k), the draws leave a covariance of
    N E[p_i(k) (1 - p_j(k))], i <= j, and a total has the information (1 - a)^2 / a at a share.
    """
    upper, away = len(shares) - 1, np.abs(np.subtract.outer(*2 * (np.arange(len(shares)),)))
    query, whole = tv.Query.count(upper), Fraction(epsilon)
    plain = float(shares @ (tv.geometric(query, whole).matrix * away).sum(axis=1))
    found = [np.inf]
    for share in SHARES:
        curve = tv.frontier(query, whole * (1 - share), shares)
        if curve.error[0] > plain:
            continue
        joint = shares[:, None] * tv.geometric(query, whole * (1 - share)).matrix
        drawn = np.maximum(joint.sum(axis=0), 1e-300)
        below = np.cumsum(joint, axis=0)[:-1]
        upper_half = np.triu(rows * (below.sum(axis=1)[:, None] - below @ (below / drawn).T))
        left = upper_half + np.triu(upper_half, 1).T
        if share:
            a = np.exp(-float(whole * share))
            left = np.linalg.solve(np.eye(upper) + left * ((1 - a) ** 2 / a), left)
        variance = np.maximum(np.diag(left), 0.0)
        open_still = np.minimum(variance, np.sqrt(2 * variance / np.pi)).sum() / rows
        found.append(max(open_still, curve.bound_distance(plain)))
    return float(min(found))


def judge_cell(row: dict[str, Any], ours: tuple[str, ...], paper: str) -> str:
    """Say who has both, or that nobody can."""
    bounds, allowed = row["bounds"], row[paper]["mean"][0]
    if bounds["least distance"] > allowed:
        return "impossible"
    having = [
        name
        for name in ours
        if row[name]["mean"][0] <= allowed and row[name]["mean"][1] <= SLACK * bounds["plain error"]
    ]
    return ", ".join(having) or "not had"


def measure_coverage(folder: Path | None, repetitions: int) -> list[dict[str, Any]]:
    """Measure how often stated intervals of rows and of totals hold, on five real tables."""
    found = []
    sources = {} if folder is None else {source.name: source for source in list_real(folder)}
    for name in COVERED if sources else ():
        source = sources[name]
        counts = np.clip(source.read(), 0, source.upper).astype(np.int64)
        for epsilon in EPSILONS:
            for options in ({}, {"priority": "counts"}):
                inside, totals = [], 0
                for _ in range(repetitions):
                    made = tv.privatize(counts, upper=source.upper, epsilon=epsilon, **options)
                    low, high = made.figures[0].accuracy.interval[counts].T
                    inside.append(((made.table >= low) & (made.table <= high)).mean())
                    total = tv.estimate_total(made)
                    totals += total.low <= counts.sum() <= total.high
                found.append(
                    {
                        "data": name,
                        "epsilon": epsilon,
                        "priority": options.get("priority", "distribution"),
                        "rows": float(np.mean(inside)),
                        "totals": totals / repetitions,
                        "releases": repetitions,
                    }
                )
    return found


def make_tables(
    rows: list[dict[str, Any]], ours: tuple[str, ...], paper: str, covered: list[dict[str, Any]]
) -> list[Table]:
    """Make the table of bounds, and that of coverage."""
    shown = [
        (
            row["data"],
            row["epsilon"],
            f"{row['bounds']['plain error']:.4f}",
            f"{row['bounds']['least distance']:.4f}",
            f"{row['bounds']['two stages']:.4f}",
            f"{row[paper]['mean'][0]:.4f}",
            f"{row['bounds']['minimax distance']:.4f}",
            *(f"{row[name]['mean'][0]:.4f} / {row[name]['mean'][1]:.4f}" for name in ours),
            judge_cell(row, ours, paper),
        )
        for row in rows
    ]
    columns = (
        "data",
        "epsilon",
        "error of plain noise",
        "least distance with it",
        "the same, two stages, distribution known",
        f"distance of {paper}",
        "minimax distance",
        *(f"{name}: distance / error" for name in ours),
        "both at most",
    )
    title = "What cannot be beaten, and who has plain noise's error with the paper's distance"
    tables = [Table(title, columns, shown)]
    if covered:
        names = ("data", "epsilon", "priority", "rows inside", "totals inside")
        cells = [
            (r["data"], r["epsilon"], r["priority"], f"{r['rows']:.2%}", f"{r['totals']:.0%}")
            for r in covered
        ]
        tables.append(Table("Coverage of stated 95 % intervals, real tables", names, cells))
    return tables


def make_bars(
    rows: list[dict[str, Any]], ours: tuple[str, ...], paper: str, covered: list[dict[str, Any]]
) -> list[Bar]:
    """Make the bars: both errors wherever the frontier allows it, and the coverage."""
    verdicts = {f"{r['data']} at {r['epsilon']}": judge_cell(r, ours, paper) for r in rows}
    missing = [cell for cell, verdict in verdicts.items() if verdict == "not had"]
    never = sum(verdict == "impossible" for verdict in verdicts.values())
    told = f"in {len(rows) - never - len(missing)} of {len(rows)}; {never} are impossible"
    bars = [
        Bar(
            "plain noise's count error with the paper's distance wherever the frontier allows it",
            told + (f"; not in {', '.join(missing)}" if missing else ""),
            not missing,
        )
    ]
    if covered:
        worst = min(covered, key=lambda row: row["rows"])
        told = f"{worst['rows']:.2%} ({worst['data']} at {worst['epsilon']})"
        bars.append(Bar("intervals of rows hold at least 95 %", told, worst["rows"] >= CONFIDENCE))
        held = sum(row["totals"] * row["releases"] for row in covered)
        number = sum(row["releases"] for row in covered)
        allowed = CONFIDENCE - 2 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / number)
        told = f"{held / number:.1%} of {number}"
        bars.append(
            Bar("intervals of totals hold 95 % (2 errors)", told, bool(held / number >= allowed))
        )
    return bars
