"""Releases without an upper bound, against a public bound and a private one.

Part of `benchmarks.accuracy`, for the real tables of a folder. Errors are measured against the
table as it is, so that what top-coding cuts off counts as error.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import tallyveil as tv
from benchmarks.measure import Bar, Table
from benchmarks.paired import read_column
from tallyveil.estimate.histogram import estimate_directly
from tallyveil.estimate.ranks import match_ranks, round_histogram
from tallyveil.release.methods.base import Task
from tallyveil.release.methods.preserve import Preserve
from tallyveil.sampling.entropy import Entropy

__all__ = ["make_bars", "make_tables", "measure_open"]

EPSILONS = ("0.1", "0.25", "0.5", "1")
OPEN, PUBLIC = "no upper bound", "public bound, direct estimate"
MOST_OFF = 0.01
FILES = {
    "homicides": ("homicides_by_county.csv", "MURDER", 600),
    "Lyme 2018": ("lyme_by_county_2000_2018.csv", "Cases2018", 1000),
    "teachers": ("private_schools_2017_18.csv", "FT_TEACHER", 400),
}


def measure_open(
    folder: Path | None, epsilons: tuple[str, ...], repetitions: int
) -> list[dict[str, Any]]:
    """Measure count error, distance and bias of the total for both ways to set a range."""
    found = []
    for name, (file, column, upper) in FILES.items() if folder else ():
        counts = read_column(Path(folder) / file, column)
        for epsilon in epsilons:
            row: dict[str, Any] = {"data": name, "epsilon": epsilon}
            for way, release in _list_ways(counts, upper, epsilon).items():
                each = np.array([_measure(release(), counts) for _ in range(repetitions)])
                row[way] = {
                    "mean": each.mean(axis=0).tolist(),
                    "off": float(np.abs(each[:, 2]).max()),
                }
            found.append(row)
    return found


def _list_ways(counts: np.ndarray, upper: int, epsilon: str) -> dict[str, Callable[[], np.ndarray]]:
    return {
        OPEN: lambda: tv.privatize(counts, epsilon=epsilon).table,
        PUBLIC: lambda: _release_directly(np.minimum(counts, upper), upper, epsilon),
    }


def _release_directly(counts: np.ndarray, upper: int, epsilon: str) -> np.ndarray:
    """Release with a public bound and the estimate that assumes no shape."""
    plan = Preserve().plan(Task("cases", upper, Fraction(epsilon), len(counts)))
    entropy = Entropy()
    draws = plan.draw(counts, entropy).private
    found = estimate_directly(draws)
    histogram = round_histogram(found.histogram, len(counts))
    return match_ranks(draws, found.cells, histogram, entropy.permutation(len(counts)))


def _measure(released: np.ndarray, counts: np.ndarray) -> tuple[float, float, float]:
    distance = np.abs(np.sort(released) - np.sort(counts)).mean()
    bias = released.sum() / counts.sum() - 1
    return float(np.abs(released - counts).mean()), float(distance), float(bias)


def make_tables(rows: list[dict[str, Any]]) -> list[Table]:
    """Make one table: count error, distance and bias of the total of every way."""
    if not rows:
        return []
    shown = [
        (
            row["data"],
            row["epsilon"],
            *(
                f"{mae:.3f} / {distance:.4f} / {bias:+.2%}"
                for mae, distance, bias in (row[way]["mean"] for way in (OPEN, PUBLIC))
            ),
        )
        for row in rows
    ]
    title = "No upper bound: mean absolute error / Wasserstein-1 / bias of the total"
    return [Table(title, ("data", "epsilon", OPEN, PUBLIC), shown)]


def make_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Make the bars: totals at epsilon 1, and the distance against a public bound."""
    if not rows:
        return []
    off = {row["data"]: row[OPEN]["off"] for row in rows if row["epsilon"] == "1"}
    worst = max(off, key=lambda name: off[name])
    lost = [
        f"{row['data']} at {row['epsilon']} ({row[OPEN]['mean'][1] / row[PUBLIC]['mean'][1]:.2f})"
        for row in rows
        if row[OPEN]["mean"][1] > row[PUBLIC]["mean"][1]
    ]
    return [
        Bar(
            "without an upper bound every total within 1 % at epsilon 1",
            f"{off[worst]:.2%} at most ({worst})",
            off[worst] <= MOST_OFF,
        ),
        Bar(
            "distance at most that with a public bound in all but 2 cells",
            ", ".join(lost) or f"in all {len(rows)} cells",
            len(lost) <= 2,
        ),
    ]
