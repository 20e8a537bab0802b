"""How fast counts are released on one core, in ratio to NumPy, OpenDP and diffprivlib.

Counts in 0..80 at epsilon 1. Every contender runs three times in turn and its best rate counts.
The first round is shown too, because it pays for memory that was never touched before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tallyveil as tv
from benchmarks.harness import Result, Settings, Table, Target, find_peer, time_best

UPPER, EPSILON, ROUNDS = 80, 1.0, 3
OURS, NUMPY, COPY = "tallyveil", "numpy, not private", "memory copy, 8 bytes a row"
FASTER = {NUMPY: 5.0, "opendp": 500.0}
"""How many times faster than these."""

DRAWN = {"draws only, 8-bit counts": 380.0, "draws only, 64-bit counts": 280.0}
"""Million rows a second."""

TWO_CORES, MICROSECONDS = 1.6, 50.0
SHORT = {"one count": 40, "an array of one": np.array([40]), "an array of ten": np.arange(10)}
PEERS = {
    "opendp": """
import sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
noisy = space >> dp.m.then_laplace(scale=1.0)
counts = [i % 81 for i in range(int(sys.argv[1]))]
best = 0.0
for _ in range(3):
    start = time.process_time()
    noisy(counts)
    best = max(best, len(counts) / (time.process_time() - start))
print(best)
""",
    "diffprivlib": """
import sys, time, warnings
warnings.simplefilter("ignore")
from diffprivlib.mechanisms import GeometricTruncated
mechanism = GeometricTruncated(epsilon=1.0, sensitivity=1, lower=0, upper=80)
counts = [i % 81 for i in range(int(sys.argv[1]) // 10)]
best = 0.0
for _ in range(3):
    start = time.process_time()
    for count in counts:
        mechanism.randomise(count)
    best = max(best, len(counts) / (time.process_time() - start))
print(best)
""",
}


def add_numpy_noise(counts: np.ndarray) -> np.ndarray:
    """Neither private nor exact: what most scripts do."""
    draw, p = np.random.default_rng(), -np.expm1(-EPSILON)
    noise = draw.geometric(p, len(counts)) - draw.geometric(p, len(counts))
    return np.clip(counts + noise, 0, UPPER)


def list_contenders(counts: np.ndarray) -> dict[str, Callable[[], Any]]:
    """List what to time on these rows."""
    certified = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    certified.release(counts[:1_000_000])  # builds the table once, as a user's first call does
    small, target, entropy = counts.astype(np.uint8), np.empty_like(counts), tv.Entropy()
    small_target, draw = np.empty_like(small), certified.sampler.draw
    return {
        "draws only, 64-bit counts": lambda: draw(counts, entropy, target),
        "draws only, 8-bit counts": lambda: draw(small, entropy, small_target),
        OURS: lambda: certified.release(counts),
        "tallyveil, 8-bit counts": lambda: certified.release(small),
        NUMPY: lambda: add_numpy_noise(counts),
        COPY: lambda: np.copyto(target, counts),
    }


def measure_rates(rows: int) -> dict[str, list[float]]:
    """Measure rows per second of every contender on one core, a number for each round."""
    contenders = list_contenders(np.random.default_rng(0).integers(0, UPPER + 1, rows))
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        for _ in range(ROUNDS):
            for name, release in contenders.items():
                rates[name].append(rows / time_best(release)[0])
    finally:
        os.sched_setaffinity(0, allowed)
    return rates


def compare_cores(rows: int) -> float:
    """Measure how many times faster two cores draw than one, by the clock; NaN with one core."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        return np.nan
    certified = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    counts = np.random.default_rng(0).integers(0, UPPER + 1, rows, dtype=np.uint8)
    released, entropy, best = np.empty_like(counts), tv.Entropy(), {1: np.inf, 2: np.inf}
    try:
        for _ in range(2 * ROUNDS):
            for cores in (1, 2):
                os.sched_setaffinity(0, allowed[:cores])
                start = time.perf_counter()
                certified.sampler.draw(counts, entropy, released)
                best[cores] = min(best[cores], time.perf_counter() - start)
    finally:
        os.sched_setaffinity(0, allowed)
    return best[1] / best[2]


def time_short_draws() -> dict[str, float]:
    """Microseconds for one count and few, best of twenty times a hundred."""
    certified = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    return {
        name: 1e4 * time_best(lambda: [certified.release(counts) for _ in range(100)], 20)[0]  # noqa: B023
        for name, counts in SHORT.items()
    }


def run(settings: Settings) -> Result:
    """Measure all rates, and the targets at the largest number of rows."""
    peers = [find_peer(name, not settings.quick) for name in PEERS]
    rows = 20_000 if settings.quick else 200_000
    numbers = {peer.name: peer.run(PEERS[peer.name], str(rows)) for peer in peers}
    theirs = {name: number[0] for name, number in numbers.items() if number}
    tables, targets = [], []
    for rows in (1_000_000, 10_000_000) if settings.quick else (1_000_000, 50_000_000):
        rounds = measure_rates(rows)
        rates = {name: max(values) for name, values in rounds.items()} | theirs
        lines = [
            (
                name,
                f"{rate / 1e6:,.3f}",
                f"{rates[OURS] / rate:,.2f}",
                f"{rounds[name][0] / 1e6:,.3f}" if name in rounds else "",
            )
            for name, rate in rates.items()
        ]
        columns = ("contender", "million rows/s", "tallyveil / this", "first round")
        tables.append(Table(f"{rows:,} counts in 0..{UPPER} at epsilon 1", columns, lines))
    for name, least in FASTER.items():
        if name in rates:
            ratio = rates[OURS] / rates[name]
            targets.append(Target.at_least(f"{least:g} times {name}", ratio, least))
    for name, least in DRAWN.items():
        promise = f"{name}: {least:g} million a second and core"
        targets.append(Target.at_least(promise, rates[name] / 1e6, least, " million"))
    for name, spent in time_short_draws().items():
        promise = f"{name} in less than {MICROSECONDS:g} microseconds"
        targets.append(Target.at_most(promise, spent, MICROSECONDS))
    faster = compare_cores(rows)
    if np.isfinite(faster):
        promise = f"two cores draw at least {TWO_CORES:g} times as many rows as one"
        targets.append(Target.at_least(promise, faster, TWO_CORES))
    return Result(
        question="How many exact private draws per second?",
        method="Processor time of one core, best of three rounds in which every contender runs "
        "once. The first round also pays for memory that nobody has touched yet. OpenDP and "
        "diffprivlib run in separate processes on up to 200,000 rows, best of three. NumPy's "
        "noise is neither private nor exact.",
        tables=tables,
        targets=targets,
        peers={peer.name: peer.state for peer in peers},
    )
