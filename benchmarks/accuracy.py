"""Accuracy at equal epsilon: tallyveil, the pipeline of Kohli and Laskowski, plain geometric.

For every table and epsilon: Wasserstein-1 distance between the released and the true
distribution, and mean absolute error of the counts. `tallyveil` is `tv.privatize` with the method
"preserve". The pipeline of Kohli and Laskowski (2026) is cyclic Laplace, clip, Algorithm 1 with
the sandwich selector, an independent draw per row, and its rule of thumb for the split. Plain
truncated geometric spends the whole epsilon on the counts and lets the distribution follow.

Homicides, teachers and Lyme cases come from a folder of real tables. A binomial sample is always
included; without a folder a generated stand-in takes the place of homicides, and says so.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tallyveil as tv
from benchmarks.harness import Result, Settings, Table, Target
from reproduction.data import load_homicides, load_schools
from tallyveil.evaluate import count_errors, wasserstein
from tallyveil.papers.kohli.pipeline import privatize_counts
from tallyveil.papers.kohli.privatizers import distribution_of_counts

EPSILONS = ("0.1", "0.22", "0.48", "1.05", "2.29", "5")
MEASURES = ("Wasserstein-1", "mean absolute error")
OURS, PAPER, PLAIN = "tallyveil", "Kohli 2026", "geometric"
REPETITIONS, QUICK_REPETITIONS, CONFIDENCE = 30, 5, 0.95
LYME = "lyme_by_county_2000_2018.csv"


def load_tables(folder: Path | None) -> dict[str, tuple[np.ndarray, int]]:
    """Load counts and their public upper bound, top-coded as in Kohli and Laskowski, section 6."""
    murders = load_homicides(folder)
    tables = {
        "binomial (20, 1/2)": (np.random.default_rng(20).binomial(20, 0.5, size=10_000), 20),
        murders.label: (murders.values, 50),
    }
    if folder is not None:
        teachers = load_schools(folder)
        tables[teachers.label] = (teachers.values, 80)
        with (folder / LYME).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["is_county"] == "1"]
        lyme = np.array([int(row["Cases2018"]) for row in rows])
        tables["Lyme disease by county, 2018"] = (lyme, 600)
    return {name: (np.minimum(counts, upper), upper) for name, (counts, upper) in tables.items()}


def build_pipelines(upper: int, epsilon: str) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Build each pipeline: from true counts to released ones."""
    plain = tv.certify_geometric(tv.Query.count(upper), epsilon)
    return {
        OURS: lambda counts: (
            tv.privatize(counts, upper=upper, epsilon=epsilon, method="preserve").table
        ),
        PAPER: lambda counts: privatize_counts(counts, upper, epsilon).counts,
        PLAIN: plain.release,
    }


def measure_cell(
    counts: np.ndarray, upper: int, epsilon: str, repetitions: int
) -> dict[str, np.ndarray]:
    """Measure mean and standard error of both measures for each pipeline."""
    truth, cell = distribution_of_counts(counts, upper), {}
    for name, release in build_pipelines(upper, epsilon).items():
        runs = []
        for _ in range(repetitions):
            released = release(counts)
            distance = wasserstein(truth, distribution_of_counts(released, upper))
            runs.append((distance, count_errors(counts, released).absolute))
        spread = np.std(runs, axis=0, ddof=1) / np.sqrt(repetitions)
        cell[name] = np.array([np.mean(runs, axis=0), spread])
    return cell


def measure_coverage(counts: np.ndarray, upper: int, epsilon: str, repetitions: int) -> int:
    """Count the releases whose 95% interval of the total holds the true total."""
    totals = (
        tv.estimate_total(tv.privatize(counts, upper=upper, epsilon=epsilon))
        for _ in range(repetitions)
    )
    return sum(total.low <= counts.sum() <= total.high for total in totals)


def tabulate(cells: dict[tuple[str, str], dict[str, np.ndarray]], measure: int) -> Table:
    """Format one measure: every pipeline, and its ratio to ours."""
    rows = []
    for (data, epsilon), cell in cells.items():
        shown = [f"{mean[measure]:.4f} ± {error[measure]:.4f}" for mean, error in cell.values()]
        ours = cell[OURS][0, measure]
        ratios = [f"{cell[name][0, measure] / ours:.2f}" for name in (PAPER, PLAIN)]
        rows.append((data, epsilon, *shown, *ratios))
    columns = ("data", "epsilon", OURS, PAPER, PLAIN, f"{PAPER} / {OURS}", f"{PLAIN} / {OURS}")
    return Table(MEASURES[measure], columns, rows)


def run(settings: Settings) -> Result:
    """Measure every table at every epsilon."""
    repetitions = QUICK_REPETITIONS if settings.quick else REPETITIONS
    cells, covered, releases = {}, 0, 0
    for name, (counts, upper) in load_tables(settings.data).items():
        for epsilon in EPSILONS[1:5:2] if settings.quick else EPSILONS:
            cells[name, epsilon] = measure_cell(counts, upper, epsilon, repetitions)
            covered += measure_coverage(counts, upper, epsilon, repetitions)
            releases += repetitions
    worse = [
        f"{data} at {epsilon}"
        for (data, epsilon), cell in cells.items()
        if not (cell[OURS][0] < cell[PAPER][0]).all()
    ]
    nearer = sum(cell[OURS][0, 1] <= cell[PLAIN][0, 1] for cell in cells.values())
    closer = sum(cell[OURS][0, 0] <= cell[PLAIN][0, 0] for cell in cells.values())
    allowed = CONFIDENCE - 2 * np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / releases)
    return Result(
        question="How accurate is a table at equal epsilon?",
        method=f"Mean and standard error over {repetitions} releases. The distance is between the "
        "released and the true distribution of counts, the error that of single counts. Plain "
        "truncated geometric spends all of epsilon on the counts and none on their distribution: "
        "where its count error is the lower one, that is the price of the distribution. "
        f"Tallyveil's count error is the lower one in {nearer} of {len(cells)} cells, its "
        f"distance in {closer}. Real tables come from a folder (`--data`); without one a stand-in "
        "is generated and named so.",
        tables=[tabulate(cells, measure) for measure in range(len(MEASURES))],
        targets=[
            Target(
                "lower than the paper's pipeline on both measures in every cell",
                ", ".join(worse) or f"in all {len(cells)} cells",
                not worse,
            ),
            Target(
                "95% intervals of totals hold, to two standard errors",
                f"{covered / releases:.1%} of {releases}",
                bool(covered / releases >= allowed),
            ),
        ],
    )
