"""Designs for uneven priors, the slowest there are: processor seconds and proved gaps.

    python -m benchmarks.uneven [--quick] [--json FILE]

161 answers, mean absolute error. Priors: falling by a tenth per answer, a bell of width 8 in the
middle and at a quarter of the range, one at random over ten orders of magnitude, and a saw over
29; further the worst case with output privacy. One run of each, in processor time.

Bars: every design under 10 s, every gap at most 1e-6. Exits with 1 where one is missed.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import tallyveil as tv
from benchmarks.measure import Bar, Result, Table, conduct, options

SETS = {
    "WH": ("weakly_honest",),
    "CH": ("column_honest",),
    "CM": ("column_monotone",),
    "RM, CM": ("row_monotone", "column_monotone"),
    "output private": ("output_private",),
}
EPSILONS = ("0.1", "0.5", "1", "2", "5")
MOST_SECONDS, LARGEST_GAP = 10.0, 1e-6


def make_priors(size: int) -> dict[str, np.ndarray]:
    """The uneven priors, by name."""
    at = np.arange(size)
    weights = {
        "falling": 0.9**at,
        "bell, middle": np.exp(-(((at - size // 2) / 8.0) ** 2) / 2),
        "bell, quarter": np.exp(-(((at - size // 4) / 8.0) ** 2) / 2),
        "wild": np.exp(5 * np.random.default_rng(5).normal(size=size)),
        "saw": 10.0 ** -(7 * at % 29),
    }
    return {name: weight / weight.sum() for name, weight in weights.items()}


def measure(size: int, prior: str, name: str, epsilon: str) -> dict[str, Any]:
    """One design: its processor seconds, objective and gap."""
    asked: dict[str, Any] = {"prior": make_priors(size).get(prior)}
    if prior == "worst case":
        asked = {"worst_case": True}
    start = time.process_time()
    query = tv.Query.count(size - 1)
    made = tv.design(query, epsilon, properties=SETS[name], progress=False, **asked)
    return {
        "prior": prior,
        "set": name,
        "epsilon": epsilon,
        "seconds": time.process_time() - start,
        "gap": made.gap,
        "objective": made.objective,
    }


def summary(rows: list[dict[str, Any]]) -> Table:
    """The slowest design of every prior and property set, and at which epsilon that was."""
    lines = []
    for prior in dict.fromkeys(row["prior"] for row in rows):
        cells = []
        for name in SETS:
            own = [row for row in rows if (row["prior"], row["set"]) == (prior, name)]
            slowest = max(own, key=lambda row: row["seconds"], default=None)
            cells.append(f"{slowest['seconds']:.1f} s at {slowest['epsilon']}" if slowest else "")
        lines.append((prior, *cells))
    return Table("Slowest over epsilons", ("prior", *SETS), lines)


def run(quick: bool) -> Result:
    size = 41 if quick else 161
    tv.design(tv.Query.count(4), 1.0, method="lp", progress=False)  # imports are not timed
    priors = make_priors(size)
    cases = [(prior, name, eps) for prior in priors for name in SETS for eps in EPSILONS]
    cases += [("worst case", "output private", epsilon) for epsilon in EPSILONS]
    rows = [measure(size, *case) for case in cases]
    slowest = max(rows, key=lambda row: row["seconds"])
    widest = max(row["gap"] for row in rows)
    where = f"{slowest['prior']}, {slowest['set']}, epsilon {slowest['epsilon']}"
    lines = [
        (*(row[key] for key in ("prior", "set", "epsilon")), f"{row['seconds']:.2f}",
         f"{row['gap']:.0e}", f"{row['objective']:.7g}") for row in rows
    ]  # fmt: skip
    return Result(
        question="How long do designs for uneven priors take?",
        method=f"{size} answers, mean absolute error, one run each, in processor time.",
        tables=[
            summary(rows),
            Table(
                "Every design",
                ("prior", "properties", "epsilon", "seconds", "certified gap", "objective"),
                lines,
            ),
        ],
        bars=[
            Bar(
                f"{size} answers, uneven priors: under {MOST_SECONDS:g} s for every set",
                f"at most {slowest['seconds']:.1f} s ({where})",
                slowest["seconds"] < MOST_SECONDS,
            ),
            Bar(f"certified gap at most {LARGEST_GAP:g}", f"{widest:.1e}", widest <= LARGEST_GAP),
        ],
        raw={"rows": rows},
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("uneven", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
