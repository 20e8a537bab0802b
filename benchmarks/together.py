"""Columns ranked by each other's draws: errors beside those of columns ranked alone, same draws.

    python -m benchmarks.together [--data FOLDER] [--repetitions 10] [--epsilons 0.25,1]

Generated pairs, and with `--data` real ones: Lyme cases of two years, teachers and pupils.

Bars: where columns go together the mean error of both is lower; columns that have nothing to do
with each other are at most 1 % further. Exits with 1 if one is missed.
"""

from __future__ import annotations

import argparse
import csv
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks.measure import Bar, Result, Table, conduct, options
from tallyveil.certified.certify import certify_geometric, certify_noise
from tallyveil.plans.methods import Preserve
from tallyveil.plans.together import rank_together
from tallyveil.query import Query
from tallyveil.request.budget_split import split_budget
from tallyveil.sampling.entropy import Entropy

Counts = np.ndarray


def read_columns(file: Path, *columns: str, upper: int = 100) -> list[Counts]:
    with open(file, encoding="utf-8", newline="") as text:
        rows = [
            row
            for row in csv.DictReader(text)
            if all(row[name].strip() for name in columns) and row.get("is_county") != "0"
        ]
    return [np.minimum([int(float(row[c])) for row in rows], upper) for c in columns]


def make_tables(folder: Path | None) -> dict[str, list[Counts]]:
    """Pairs that go together, and pairs that have nothing to do with each other."""
    draw = np.random.default_rng(9)
    rate = draw.lognormal(1.5, 1, 2000)
    generated = [np.minimum(draw.poisson(rate), 100), np.minimum(draw.poisson(2 * rate), 100)]
    tables = {
        "generated, one rate": generated,
        "apart: generated, shuffled": [generated[0], draw.permutation(generated[1])],
        "apart: 400 Poisson": [draw.poisson(3, 400), draw.poisson(5, 400)],
    }
    return tables if folder is None else tables | _read_tables(folder, draw)


def _read_tables(folder: Path, draw: np.random.Generator) -> dict[str, list[Counts]]:
    lyme = folder / "lyme_by_county_2000_2018.csv"
    near = read_columns(lyme, "Cases2017", "Cases2018")
    teachers, pupils = read_columns(
        folder / "private_schools_2017_18.csv", "FT_TEACHER", "ENROLLMENT", upper=10**6
    )
    some = draw.permutation(len(teachers))[:5000]
    schools = [np.minimum(teachers, 80)[some], np.minimum(pupils // 8, 80)[some]]
    return {
        "lyme 2017 and 2018": near,
        "lyme 2017 and 2018, to 600": read_columns(lyme, "Cases2017", "Cases2018", upper=600),
        "lyme 2001 and 2018": read_columns(lyme, "Cases2001", "Cases2018"),
        "teachers and pupils/8": schools,
        "apart: lyme, shuffled": [near[0], draw.permutation(near[1])],
        "apart: schools, shuffled": [schools[0], draw.permutation(schools[1])],
    }


def release(columns: list[Counts], epsilon: Fraction) -> tuple[list[Counts], list[Counts], bool]:
    """The columns ranked alone and together, and whether it was used."""
    entropy, published, epsilons = Entropy(), {}, {}
    for at, counts in enumerate(columns):
        upper = int(counts.max())
        split = split_budget(epsilon, records=len(counts), size=upper + 1)
        first = certify_noise(split.epsilon1) if split.epsilon1 else None
        method = Preserve(certify_geometric(Query.count(upper), split.epsilon2), first)
        published[str(at)] = method.publish(method.draw(counts, entropy), entropy)
        epsilons[str(at)] = float(split.epsilon2)
    made = rank_together(published, epsilons, None, entropy)
    alone, both = ([one[0].counts for one in d.values()] for d in (published, made))
    return alone, both, any(one[0].told_by for one in made.values())


def compare(columns: list[Counts], epsilon: Fraction, times: int) -> tuple[Counts, Counts, float]:
    """Mean errors alone, those together as multiples, and how often it was used."""
    alone, both, used = [], [], 0
    for _ in range(times):
        *made, found = release(columns, epsilon)
        for errors, ranked in zip((alone, both), made, strict=True):
            errors.append([np.abs(r - c).mean() for r, c in zip(ranked, columns, strict=True)])
        used += found
    mean = np.mean(alone, axis=0)
    return mean, np.mean(both, axis=0) / mean, used / times


def run(given: argparse.Namespace) -> Result:
    rows, bars, raw = [], [], {}
    for name, columns in make_tables(given.data).items():
        for text in given.epsilons.split(","):
            times = 2 if given.quick else given.repetitions
            mean, ratio, used = compare(columns, Fraction(text), times)
            raw[f"{name} {text}"] = [mean.tolist(), ratio.tolist(), used]
            apart = name.startswith("apart")
            most = 1.01 if apart else 1.0
            said = f"{ratio[0]:.3f}, {ratio[1]:.3f}"
            rows.append((name, text, f"{mean[0]:.3g}, {mean[1]:.3g}", said, f"{used:.0%}"))
            bars.append(
                Bar(f"{name}, epsilon {text}: at most {most}", said, bool(ratio.max() <= most))
            )
            print(f"  {rows[-1]}", flush=True)
    head = "columns", "epsilon of each", "error alone", "together, as multiples", "used in"
    return Result(
        "Do two columns tell more than one?",
        f"Mean absolute errors of rows; means of {given.repetitions} releases, the same draws.",
        [Table("Ranked by both draws", head, rows)],
        bars,
        raw=raw,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, help="folder with the real tables")
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--epsilons", default="0.25,1")
    given = parser.parse_args(arguments)
    return conduct("together", lambda: run(given), given)


if __name__ == "__main__":
    sys.exit(main())
