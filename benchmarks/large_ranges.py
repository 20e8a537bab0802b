"""What thousands of answers cost: certificates as text, ladders, minimax responses, readings.

    python -m benchmarks.large_ranges [--quick] [--json FILE]

Processor and wall seconds of each step, with as many BLAS threads as the program uses by itself:
the certificate of the geometric mechanism at epsilon 0.1 saved, verified and loaded; a ladder of
three levels (2, 1, 0.5; 1, 0.5, 0.25; 0.1, 0.05, 0.01) built and verified; minimax responses at
epsilon 0.1 and 0.01; a million released values interpreted.

Bars, in processor seconds at full size: verify and load under 1, ladders under 5, minimax
responses under 5, `interpret` under 0.2. Exits with 1 where one is missed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tallyveil as tv
from benchmarks.measure import Bar, Result, Table, conduct, options


def clock(step: str, limit: float | None, work: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """Processor and wall seconds of one step, and what it gave."""
    wall, processor = time.perf_counter(), time.process_time()
    given = work()
    processor, wall = time.process_time() - processor, time.perf_counter() - wall
    return {"step": step, "processor": processor, "wall": wall, "limit": limit}, given


def measure_text(answers: int, folder: Path) -> list[dict[str, Any]]:
    mechanism = tv.geometric(tv.Query.count(answers - 1), "0.1")
    certify, certified = clock(f"certify {answers:,} answers", None, lambda: tv.certify(mechanism))
    file = folder / "mechanism.json"
    save, _ = clock("save", None, lambda: certified.save(file))
    verify, verdict = clock("verify the file", 1.0, lambda: tv.verify(file))
    load, _ = clock("load the file", 1.0, lambda: tv.load(file))
    if not verdict:
        raise SystemExit(verdict.reason)
    return [certify, save, verify, load]


def measure_ladder(answers: int) -> list[dict[str, Any]]:
    query = tv.Query.count(answers - 1)
    rows = []
    for levels in (("2", "1", "0.5"), ("1", "0.5", "0.25"), ("0.1", "0.05", "0.01")):
        name = f"ladder {', '.join(levels)}, three levels of {answers:,}"
        build, ladder = clock(name, 5.0, partial(tv.Ladder, query, levels))
        verify, verdict = clock("verify the ladder", None, ladder.verify)
        if not verdict:
            raise SystemExit(verdict.reason)
        rows += [build, verify]
    return rows


def measure_responses(answers: int) -> list[dict[str, Any]]:
    """Readers who know nothing, who know a part of the range, and who know a part with a hole."""
    middle = answers // 2
    hole = [at for at in range(answers) if not middle - 5 <= at < middle + 5]
    rows = []
    for epsilon, loss, known, told in (
        ("0.1", "absolute", None, ""),
        ("0.1", "squared", None, ""),
        ("0.1", "absolute", range(5, answers), f", 5..{answers - 1} known"),
        ("0.1", "absolute", hole, ", all known but ten in the middle"),
        ("0.01", "absolute", None, ""),
        ("0.01", "absolute", hole, ", all known but ten in the middle"),
    ):
        mechanism = tv.geometric(tv.Query.count(answers - 1), epsilon)
        consumer = tv.Consumer(loss, side_information=known)
        words = f"minimax, {loss}, epsilon {epsilon}{told}"
        asked = partial(consumer.respond, mechanism)
        rows.append(clock(words, 5.0, asked)[0])
    return rows


def measure_reading(values: int) -> dict[str, Any]:
    mechanism = tv.geometric(tv.Query.count(80), 1.0)
    released = np.random.default_rng(3).integers(0, 81, values)
    tv.interpret(mechanism, released[:100])
    return clock(f"interpret {values:,} values", 0.2, lambda: tv.interpret(mechanism, released))[0]


def run(quick: bool) -> Result:
    tv.verify(tv.certify(tv.geometric(tv.Query.count(20), 1)))  # imports are not timed
    tv.Consumer("absolute").respond(tv.geometric(tv.Query.count(4), 1))
    with tempfile.TemporaryDirectory() as folder:
        rows = measure_text(201 if quick else 2001, Path(folder))
    rows += measure_ladder(101 if quick else 2001)
    rows += measure_responses(101 if quick else 1001)
    rows.append(measure_reading(10**5 if quick else 10**6))
    lines = [(row["step"], f"{row['processor']:.2f}", f"{row['wall']:.2f}") for row in rows]
    bars = [
        Bar(
            f"{row['step']}: under {row['limit']:g} s of processor time",
            f"{row['processor']:.2f} s",
            row["processor"] < row["limit"],
        )
        for row in rows
        if row["limit"] is not None
    ]
    return Result(
        "What do thousands of answers cost?",
        "Each step once, in one process.",
        [Table("Seconds", ("step", "processor", "wall"), lines)],
        bars=bars,
        raw={"steps": rows},
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("large_ranges", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
