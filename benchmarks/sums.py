"""Tables that add up: a hierarchical release in ratio to other ways at the same epsilon.

Errors of rows (mean absolute), of the distribution (Wasserstein-1) and of state sums (root mean
squared) of these ways:

- "hierarchy" and "states first", which weighs the error of states 40 times
- "default", a release without a hierarchy, added up
- "noise", clipped geometric noise, added up
- "top down", a pass that gives total, states and rows 5, 20 and 75 % of epsilon and fits each
  level to the one above

Without a folder of real tables a generated one is measured. Large hierarchies are then released
from file to file, in ratio to a release of the same file without one.
"""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tallyveil as tv
from benchmarks.harness import Cost, Result, Settings, Table, Target, list_words, measure_command
from tallyveil.sampling.noise import geometric_noise
from tallyveil.sums.grouping import Tree
from tallyveil.sums.rounding import round_family

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
REPETITIONS, QUICK_REPETITIONS = 20, 2
TABLES = {
    "homicides": ("homicides_by_county.csv", "MURDER", "FIPS_ST", 600),
    "lyme 2018": ("lyme_by_county_2000_2018.csv", "Cases2018", "STCODE", 600),
    "lyme 2005": ("lyme_by_county_2000_2018.csv", "Cases2005", "STCODE", 600),
    "schools": ("private_schools_2017_18.csv", "FT_TEACHER", "STATE", 80),
}
"""File, count column, state column and public upper bound."""

FIXED = (0.05, 0.20, 0.75)
MEASURES = ("row", "distribution", "state")
LARGE = {200_000: ((51, 3_100), 5.0), 10_000_000: ((51, 3_100, 84_000, 240_000), 240.0)}
"""Rows, groups of each level, and the wall seconds a whole release may take."""


class Counts(NamedTuple):
    """Counts, the number of each one's state, and the public upper bound."""

    counts: np.ndarray
    states: np.ndarray
    upper: int


Release = Callable[[Counts, float], np.ndarray]


def read_tables(folder: Path | None) -> dict[str, Counts]:
    """Read the real tables, or generate one."""
    if folder is None:
        draw = np.random.default_rng(7)
        counts = np.minimum(draw.poisson(draw.gamma(0.3, 30, 3_000)), 600)
        return {"generated": Counts(counts, draw.integers(0, 50, 3_000), 600)}
    tables = {}
    for name, (file, count, state, upper) in TABLES.items():
        with (folder / file).open(encoding="utf-8", newline="") as text:
            rows = [
                row
                for row in csv.DictReader(text)
                if row[count].strip() and row.get("is_county") != "0"
            ]
        counts = np.minimum([int(float(row[count])) for row in rows], upper)
        states = np.unique([row[state] for row in rows], return_inverse=True)[1]
        tables[name] = Counts(counts, states, upper)
    return tables


def privatize(table: Counts, epsilon: float, **options: object) -> np.ndarray:
    """Release a table with the default method, and the options of a hierarchy."""
    columns = {"row": np.arange(len(table.counts)), "state": table.states, "n": table.counts}
    release = tv.privatize(
        pa.table(columns), count="n", keep="all", upper=table.upper, epsilon=epsilon, **options
    )
    return np.asarray(release.table["n"])


def add_noise(table: Counts, epsilon: float) -> np.ndarray:
    """Clip geometric noise to the range."""
    noise = geometric_noise(len(table.counts), epsilon)
    return np.clip(table.counts + noise, 0, table.upper)


def pass_down(table: Counts, epsilon: float) -> np.ndarray:
    """Fit each level to the one above, with fixed shares and nothing from below."""
    tree = Tree.of_columns([table.states])
    order = np.random.default_rng().permutation(len(table.counts))
    uppers = tree.sum_up(np.full(len(table.counts), table.upper))
    noisy = [
        level + geometric_noise(len(level), share * epsilon)
        for level, share in zip(tree.sum_up(table.counts.astype(np.int64)), FIXED, strict=True)
    ]
    fitted = np.clip(noisy[0], 0, uppers[0])
    for level in (1, 2):
        size = tree.sizes[level]
        fitted = round_family(
            noisy[level].astype(float),
            np.ones(size),
            tree.parents[level - 1],
            fitted,
            uppers=uppers[level],
            order=order[order < size],
        )
    return fitted


HIERARCHY = {"name": "hierarchy", "columns": ["state"]}
STATES_FIRST = HIERARCHY | {"weights": [1, 40, 1]}
WAYS: dict[str, Release] = {
    "hierarchy": lambda table, epsilon: privatize(table, epsilon, method=HIERARCHY),
    "states first": lambda table, epsilon: privatize(table, epsilon, method=STATES_FIRST),
    "default": privatize,
    "noise": add_noise,
    "top down": pass_down,
}


def measure_errors(released: np.ndarray, table: Counts) -> tuple[float, float, float]:
    """Measure the error of a row, of the distribution and of a state."""
    gap = np.bincount(table.states, weights=released - table.counts)
    distance = np.abs(np.sort(released) - np.sort(table.counts)).mean()
    row = np.abs(released - table.counts).mean()
    return float(row), float(distance), float(np.sqrt((gap**2).mean()))


Cell = dict[str, np.ndarray]
"""The mean errors of every way on one table at one epsilon, in the order of `MEASURES`."""


PROMISES = (
    ("error of states at most 0.75 times the default's up to epsilon 1",
     "hierarchy", "default", "state", 0.75, 1.0),
    ("error of rows at most 1.25 times the default's up to epsilon 1",
     "hierarchy", "default", "row", 1.25, 1.0),
    ("error of states below that of noise added up, up to epsilon 1",
     "hierarchy", "noise", "state", 1.0, 1.0),
    ("states first: error of states below that of a pass from the top down",
     "states first", "top down", "state", 1.0, np.inf),
    ("error of the distribution at most half that of a pass from the top down",
     "hierarchy", "top down", "distribution", 0.5, np.inf),
)  # fmt: skip
"""What is promised, of which way, in ratio to which, the limit, and up to which epsilon."""


def judge(cells: dict[tuple[str, float], Cell]) -> list[Target]:
    """Judge every promise over all tables and epsilons."""
    targets = []
    for promise, way, rival, measure, limit, most in PROMISES:
        index = MEASURES.index(measure)
        ratios = {
            f"{name} at {epsilon:g}": float(cell[way][index] / cell[rival][index])
            for (name, epsilon), cell in cells.items()
            if epsilon <= most
        }
        worst = max(ratios, key=ratios.__getitem__)
        met = sum(ratio <= limit for ratio in ratios.values())
        measured = f"in {met} of {len(ratios)} cells; at most {ratios[worst]:.2f} times ({worst})"
        targets.append(Target(promise, measured, met == len(ratios)))
    return targets


def tabulate(name: str, cells: dict[tuple[str, float], Cell]) -> Table:
    """Format the errors of every way on one table."""
    rows = [
        (f"{epsilon:g}", *(" / ".join(f"{error:.3g}" for error in cell[way]) for way in WAYS))
        for (table, epsilon), cell in cells.items()
        if table == name
    ]
    return Table(f"{name}: error of a {' / '.join(MEASURES)}", ("epsilon", *WAYS), rows)


def write_hierarchy(path: Path, rows: int, groups: Sequence[int]) -> list[str]:
    """Write a table with a label of every level for each row; return the levels' names."""
    draw = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {}
    labels = np.arange(rows)
    for number, size in reversed(list(enumerate(groups))):
        labels = labels * size // (labels[-1] + 1)
        columns[f"level{number}"] = labels
    counts = np.minimum(draw.poisson(draw.gamma(0.3, 30, rows)), 500)
    columns = dict(reversed(columns.items())) | {"row": np.arange(rows), "cases": counts}
    pq.write_table(pa.table(columns), path)
    return [name for name in columns if name.startswith("level")]


def measure_large(rows: int, groups: Sequence[int], folder: Path) -> tuple[Cost, Cost]:
    """Measure a release with a hierarchy and one without."""
    source = folder / "cases.parquet"
    levels = write_hierarchy(source, rows, groups)
    words = list_words(source, 500, "--set", "counts.allow_duplicates=true")
    plain = measure_command([*words, folder / "plain"])
    return measure_command([*words, folder / "sums", "--hierarchy", ",".join(levels)]), plain


def run(settings: Settings) -> Result:
    """Measure every table, and large hierarchies."""
    repetitions = QUICK_REPETITIONS if settings.quick else REPETITIONS
    data, cells = read_tables(settings.data), {}
    for name, table in data.items():
        for epsilon in EPSILONS[2:4] if settings.quick else EPSILONS:
            cells[name, epsilon] = {
                way: np.mean(
                    [measure_errors(release(table, epsilon), table) for _ in range(repetitions)],
                    axis=0,
                )
                for way, release in WAYS.items()
            }
    targets, rows = judge(cells), []
    for size, (groups, seconds) in list(LARGE.items())[: 1 if settings.quick else None]:
        with tempfile.TemporaryDirectory(dir=settings.scratch) as folder:
            cost, plain = measure_large(size, groups, Path(folder))
        ratio, peak = f"{cost.seconds / plain.seconds:.2f}", f"{cost.peak / 2**20:,.0f}"
        shown = f"{len(groups) + 2}", f"{cost.wall:.1f}", f"{plain.wall:.1f}", ratio, peak
        rows.append((f"{size:,}", *shown))
        targets.append(
            Target.at_most(f"{size:,} rows under {seconds:g} s", cost.wall, seconds, " s")
        )
    columns = ("rows", "levels", "wall s", "without", "processor ratio", "peak MiB")
    return Result(
        question="Do released groups add up to something true?",
        method="Mean absolute error of rows, distance of the distributions, root mean squared "
        f"error of state sums; means of {repetitions} releases with fresh randomness. 'default' "
        "has no hierarchy, 'noise' clips geometric noise, 'top down' fits each level to the one "
        "above with 5, 20 and 75 % of epsilon. Real tables come from a folder (`--data`). [What "
        "sums cost](sums-cost.md) discusses the figures.",
        tables=[
            *(tabulate(name, cells) for name in data),
            Table("Large hierarchies from file to file", columns, rows),
        ],
        targets=targets,
    )
