"""Accuracy of the default pipeline against the pipeline of paper 002, on real counts.

For every data set and epsilon: Wasserstein-1 distance between the released and the true
distribution, and mean absolute error of the counts, mean and standard error over repetitions.
The paper's pipeline is its own: cyclic Laplace, clip, Algorithm 1 with the sandwich selector,
an independent draw per row, and its rule of thumb for the split.

    python benchmarks/accuracy.py --homicides homicides.csv --schools schools.csv \
        --lyme lyme.csv --repetitions 30

Files are CSV; columns MURDER, FT_TEACHER and Cases2018 are read. A binomial sample is always
included. Exits with 1 unless the default is lower on both measures in every cell.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np

from tallyveil.distribution.histogram import distribution_of_counts
from tallyveil.evaluate.distances import count_errors, wasserstein
from tallyveil.table.pipeline import privatize_counts

EPSILONS = ("0.1", "0.22", "0.48", "1.05", "2.29", "5")
PIPELINES = {
    "default": {},
    "paper": {
        "match": False,
        "split": "paper",
        "privatizer": "cyclic_laplace",
        "postprocess": "clip",
        "constructor": "sandwich",
    },
}


def column(path: Path, name: str) -> np.ndarray:
    """One column of whole numbers; rows marked as state residuals are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row.get("is_county", "1") == "1"]
    return np.array([int(row[name]) for row in rows])


def data_sets(arguments: argparse.Namespace) -> dict[str, tuple[np.ndarray, int]]:
    """Counts and their public upper bound, top-coded as in paper 002, section 6."""
    found = {"binomial": (np.random.default_rng(20).binomial(20, 0.5, size=10_000), 20)}
    if arguments.homicides:
        found["homicides"] = (column(arguments.homicides, "MURDER"), 50)
    if arguments.schools:
        found["schools"] = (column(arguments.schools, "FT_TEACHER"), 80)
    if arguments.lyme:
        found["lyme 2018"] = (column(arguments.lyme, "Cases2018"), arguments.lyme_upper)
    return {name: (np.minimum(counts, upper), upper) for name, (counts, upper) in found.items()}


def measure(
    counts: np.ndarray, upper: int, epsilon: str, repetitions: int
) -> dict[str, np.ndarray]:
    """Rows of (Wasserstein-1, mean absolute error) per pipeline, shape (repetitions, 2)."""
    truth = distribution_of_counts(counts, upper)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in PIPELINES}
    for _ in range(repetitions):
        for name, options in PIPELINES.items():
            done = privatize_counts(counts, upper, epsilon, **options)
            error = count_errors(counts, done.counts).absolute
            results[name].append((wasserstein(truth, done.distribution), error))
    return {name: np.array(values) for name, values in results.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--homicides", type=Path)
    parser.add_argument("--schools", type=Path)
    parser.add_argument("--lyme", type=Path)
    parser.add_argument("--lyme-upper", type=int, default=600)
    parser.add_argument("--repetitions", type=int, default=30)
    arguments = parser.parse_args()
    print("| data | epsilon | W1 default | W1 paper | ratio | MAE default | MAE paper | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    worse, started = [], time.perf_counter()
    for name, (counts, upper) in data_sets(arguments).items():
        for epsilon in EPSILONS:
            found = measure(counts, upper, epsilon, arguments.repetitions)
            mean = {key: values.mean(axis=0) for key, values in found.items()}
            error = {
                key: values.std(axis=0, ddof=1) / np.sqrt(len(values))
                for key, values in found.items()
            }
            cells = [f"{name} (N={len(counts)}, n={upper + 1})", epsilon]
            for measure_index in (0, 1):
                ours, theirs = (
                    f"{mean[key][measure_index]:.4f} ± {error[key][measure_index]:.4f}"
                    for key in ("default", "paper")
                )
                ratio = mean["default"][measure_index] / mean["paper"][measure_index]
                cells += [ours, theirs, f"{ratio:.3f}"]
            print("| " + " | ".join(cells) + " |", flush=True)
            if not (mean["default"] < mean["paper"]).all():
                worse.append(f"{name} at {epsilon}")
    print(f"\n{arguments.repetitions} repetitions, {time.perf_counter() - started:.0f} s")
    print("Worse in: " + ", ".join(worse) if worse else "Lower on both measures in every cell.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
