"""The estimate of the distribution against the direct one, on the same draws.

Part of `benchmarks.accuracy`. For every table and epsilon both estimates are made from one set of
certified draws, and ranks are matched in the same order: whatever differs is the estimate. Real
tables come from a folder; generated ones, made to be hard for a smooth model, are always there.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Bar, Table
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import Estimate, estimate_directly, estimate_histogram
from tallyveil.estimate.ranks import match_ranks, round_histogram
from tallyveil.release.methods.base import Task
from tallyveil.release.methods.preserve import Preserve
from tallyveil.sampling.entropy import Entropy

__all__ = ["compare_estimates", "make_bars", "make_tables"]

EPSILONS = ("0.1", "0.25", "0.5", "1", "2")
TUNED, FRESH, STRESS = "used while tuning", "not used for tuning", "generated to be hard"
MOST_MEAN, MOST_CELL, MOST_ERROR = 0.7, 1.05, 1.01


@dataclass(frozen=True, eq=False)
class Source:
    """A table, its public upper bound, and what part it had."""

    name: str
    part: str
    upper: int
    read: Callable[[], np.ndarray]


def read_column(path: Path, name: str) -> np.ndarray:
    """Read the whole numbers of a column; rows that are no county and empty cells are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row[name] for row in csv.DictReader(file) if row.get("is_county", "1") == "1"]
    return np.array([int(float(cell)) for cell in rows if cell.strip().replace(".", "").isdigit()])


def count_cells(path: Path, columns: tuple[int, ...]) -> np.ndarray:
    """Count persons in every combination of the values of some columns of the Adult file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [tuple(line.split(", ")[at] for at in columns) for line in file if line.strip()]
    levels = [sorted({row[at] for row in rows}) for at in range(len(columns))]
    found = Counter(rows)
    return np.array([found[cell] for cell in itertools.product(*levels)])


def list_real(folder: Path) -> list[Source]:
    """List the real tables of a data folder."""
    lyme, schools = folder / "lyme_by_county_2000_2018.csv", folder / "private_schools_2017_18.csv"
    homicides, family = folder / "homicides_by_county.csv", folder / "family_size_acs2019.csv"
    adult, birds = folder / "adult.data.gz", folder / "bird_flu_by_state.csv"
    return [
        Source("homicides", TUNED, 50, lambda: read_column(homicides, "MURDER")),
        Source("teachers", TUNED, 80, lambda: read_column(schools, "FT_TEACHER")),
        Source("Lyme 2018", TUNED, 100, lambda: read_column(lyme, "Cases2018")),
        Source("Lyme 2008", TUNED, 100, lambda: read_column(lyme, "Cases2008")),
        Source(
            "adult: age, education, occupation", TUNED, 50, lambda: count_cells(adult, (0, 3, 6))
        ),
        Source("Lyme 2003", FRESH, 100, lambda: read_column(lyme, "Cases2003")),
        Source("Lyme 2013", FRESH, 200, lambda: read_column(lyme, "Cases2013")),
        Source("enrolment", TUNED, 1000, lambda: read_column(schools, "ENROLLMENT")),
        Source("adult: age, hours", FRESH, 100, lambda: count_cells(adult, (0, 12))),
        Source("family size", FRESH, 20, lambda: read_column(family, "NPF")),
        Source("bird flu (50 rows)", FRESH, 40, lambda: read_column(birds, "Bird_Flu_Cases")),
    ]


def list_generated() -> list[Source]:
    """List tables that are heaped, gappy, sparse or heavy-tailed, and two smooth ones."""

    def make(name: str, upper: int, draw: Callable[[np.random.Generator], np.ndarray]) -> Source:
        return Source(name, STRESS, upper, lambda: draw(np.random.default_rng(20)))

    def heap(rng: np.random.Generator) -> np.ndarray:
        smooth = rng.negative_binomial(1, 0.06, 20_000)
        return np.where(rng.random(20_000) < 0.5, 5 * np.rint(smooth / 5), smooth).astype(np.int64)

    return [
        make("binomial", 20, lambda rng: rng.binomial(20, 0.5, 10_000)),
        make("heaped", 80, heap),
        make("comb", 50, lambda rng: 5 * rng.integers(0, 11, 5000)),
        make("even numbers", 60, lambda rng: 2 * rng.geometric(0.1, 5000) - 2),
        make("multiples of 7", 63, lambda rng: 7 * rng.integers(0, 10, 5000)),
        make("one in three", 60, lambda rng: 3 * rng.geometric(0.15, 5000) - 2),
        make(
            "30 rows not zero", 50, lambda rng: np.append(rng.integers(1, 51, 30), np.zeros(2970))
        ),
        make("uniform", 50, lambda rng: rng.integers(0, 51, 5000)),
        make("Zipf", 100, lambda rng: rng.zipf(1.6, 3000) - 1),
        make(
            "20 rows not zero", 50, lambda rng: np.append(rng.integers(1, 51, 20), np.zeros(2980))
        ),
        make("two atoms", 50, lambda rng: np.where(rng.random(4000) < 0.3, 30, 5)),
        make("three atoms", 50, lambda rng: rng.choice([2, 11, 37], 4000, p=[0.6, 0.3, 0.1])),
        make("one atom", 50, lambda rng: np.full(3000, 17)),
    ]


def compare_estimates(
    folder: Path | None, epsilons: tuple[str, ...], repetitions: int
) -> list[dict[str, Any]]:
    """Measure both estimates for every table and epsilon."""
    sources = list_generated() if folder is None else [*list_real(folder), *list_generated()]
    return [
        {"data": source.name, "part": source.part, "epsilon": epsilon}
        | compare_cell(
            np.clip(source.read(), 0, source.upper).astype(np.int64),
            source.upper,
            epsilon,
            repetitions,
        )
        for source in sources
        for epsilon in epsilons
    ]


def compare_cell(counts: np.ndarray, upper: int, epsilon: str, repetitions: int) -> dict[str, Any]:
    """Measure both estimates on the same draws: distance and count error, and their ratios."""
    plan = Preserve().plan(Task("cases", upper, Fraction(epsilon), len(counts)))
    found: Mapping[str, list[tuple[float, float]]] = {"direct": [], "chosen": []}
    smooth = 0
    for _ in range(repetitions):
        entropy = Entropy()
        draws, order = plan.draw(counts, entropy).private, entropy.permutation(len(counts))
        chosen = estimate_histogram(draws)
        smooth += chosen.smooth
        found["chosen"].append(measure(chosen, draws, order, counts))
        found["direct"].append(measure(estimate_directly(draws), draws, order, counts))
    means = {name: np.mean(pairs, axis=0) for name, pairs in found.items()}
    ratio = means["chosen"] / np.maximum(means["direct"], 1e-12)
    return {
        "rows": len(counts),
        "upper": upper,
        "totals": len(plan.stages) > 1,
        "smooth": smooth / repetitions,
        "distance": [float(means["direct"][0]), float(means["chosen"][0])],
        "ratio": float(ratio[0]) if means["direct"][0] else 1.0,
        "error_ratio": float(ratio[1]) if means["direct"][1] else 1.0,
    }


def measure(
    estimate: Estimate, draws: PrivateDraws, order: np.ndarray, counts: np.ndarray
) -> tuple[float, float]:
    """Measure distance and mean absolute error of the table that an estimate gives."""
    histogram = round_histogram(estimate.histogram, len(counts))
    released = match_ranks(draws, estimate.cells, histogram, order)
    distance = np.abs(np.sort(released) - np.sort(counts)).mean()
    return float(distance), float(np.abs(released - counts).mean())


def make_tables(rows: list[dict[str, Any]]) -> list[Table]:
    """Make one table for each part the data had."""
    columns = ("data", "rows", "epsilon", "direct", "estimate", "ratio", "MAE ratio", "smooth")
    return [
        Table(
            f"Wasserstein-1 of the estimate / of the direct one, same draws: tables {part}",
            columns,
            [
                (
                    row["data"],
                    f"{row['rows']:,}",
                    row["epsilon"],
                    *(f"{value:.4f}" for value in row["distance"]),
                    f"{row['ratio']:.3f}",
                    f"{row['error_ratio']:.3f}",
                    f"{row['smooth']:.0%}" if row["totals"] else "no totals",
                )
                for row in rows
                if row["part"] == part
            ],
        )
        for part in (TUNED, FRESH, STRESS)
        if any(row["part"] == part for row in rows)
    ]


def make_bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Make the bars: the mean over real tables, the worst cell, and the count error."""
    bars = []
    for parts, most, words in (
        ((TUNED, FRESH), MOST_MEAN, "all real tables"),
        ((FRESH,), 1.0, "tables not used for tuning alone"),
    ):
        ratios = [r["ratio"] for r in rows if r["part"] in parts and float(r["epsilon"]) <= 1]
        if ratios:
            mean = float(np.exp(np.mean(np.log(ratios))))
            promise = f"distance at most {most:g} times, {words}, epsilon up to 1"
            told = f"{mean:.3f} (geometric mean of {len(ratios)})"
            bars.append(Bar(promise, told, mean <= most))
    for key, most, words in (
        ("ratio", MOST_CELL, "distance in no cell above"),
        ("error_ratio", MOST_ERROR, "count error in no cell above"),
    ):
        worst = max(rows, key=lambda row: row[key])
        told = f"{worst[key]:.3f} ({worst['data']} at {worst['epsilon']})"
        bars.append(Bar(f"{words} {most} times", told, worst[key] <= most))
    return bars
