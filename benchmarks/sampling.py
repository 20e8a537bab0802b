"""How fast counts are released, side by side with the peers, in one run on one thread.

    python -m benchmarks.sampling [--quick] [--json FILE]

Counts in 0..80 at epsilon 1, as 64-bit integers. Every contender is timed three times in turn,
in processor time of one thread so that a busy machine matters least; its best rate is compared,
and the first is shown too, because it holds the cost of memory that was never touched before.
The raw cipher at two bytes per row is the keystream that our draws consume; a memory copy is
the floor for touching the rows at all.

Bars: at least 5 times NumPy's own (unsafe) geometric noise, at least 500 times OpenDP's
exact vector noise; draws into memory that exists at 380 million rows a second and core for 8-bit
counts and 280 for 64-bit ones, on two cores at least 1.6 times as many in wall time (asked of a
machine like the one of the page); one count, and an array of up to ten, in less than 50
microseconds. Exits with 1 where one is
missed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tallyveil as tv
from benchmarks.measure import Bar, Plot, Result, Table, conduct, exponent, options, timed
from benchmarks.peers import Peer, peer

UPPER, EPSILON = 80, 1.0
ROUNDS = 3
SIZES = (100_000, 1_000_000, 10_000_000, 50_000_000)
DRAWN = {"draws only, 8-bit counts": 380.0, "draws only, 64-bit counts": 280.0}
"""Million rows a second."""

TWO_CORES, MICROSECONDS = 1.6, 50.0
SHORT = {"one count": 40, "an array of one": np.array([40]), "an array of ten": np.arange(10)}
BARS = {"numpy, not private": 5.0, "opendp": 500.0}
SCRIPTS = {
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


def numpy_noise(counts: np.ndarray) -> np.ndarray:
    """Not private (doubles) and not exact: what most scripts do."""
    generator = np.random.default_rng()
    p = -np.expm1(-EPSILON)
    noise = generator.geometric(p, len(counts)) - generator.geometric(p, len(counts))
    return np.clip(counts + noise, 0, UPPER)


def cipher(source: tv.Entropy, octets: int) -> None:
    for _ in range(0, octets, 1 << 17):
        source.octets(1 << 17)


def contenders(counts: np.ndarray) -> dict[str, Callable[[], Any]]:
    """What to time on these rows."""
    certified = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    certified.release(counts[:1_000_000])  # builds the table once, as a user's first call does
    small, target, source = counts.astype(np.uint8), np.empty_like(counts), tv.Entropy()
    rows, small_target = len(counts), np.empty_like(small)
    draw = certified.sampler.draw
    return {
        "draws only, 64-bit counts": lambda: draw(counts, source, target),
        "draws only, 8-bit counts": lambda: draw(small, source, small_target),
        "tallyveil": lambda: certified.release(counts),
        "tallyveil, 8-bit counts": lambda: certified.release(small),
        "numpy, not private": lambda: numpy_noise(counts),
        "raw cipher, 2 bytes a row": lambda: cipher(source, 2 * rows),
        "raw cipher, 8 bytes a row": lambda: cipher(source, 8 * rows),
        "memory copy, 8 bytes a row": lambda: np.copyto(target, counts),
    }


def two_cores(rows: int) -> float | None:
    """How many times faster two cores draw 8-bit counts than one, in wall time; None without."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        return None
    certified = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    counts = np.random.default_rng(0).integers(0, UPPER + 1, rows, dtype=np.uint8)
    out, source, best = np.empty_like(counts), tv.Entropy(), {1: np.inf, 2: np.inf}
    try:
        for _ in range(2 * ROUNDS):
            for cores in (1, 2):
                os.sched_setaffinity(0, allowed[:cores])
                start = time.perf_counter()
                certified.sampler.draw(counts, source, out)
                best[cores] = min(best[cores], time.perf_counter() - start)
    finally:
        os.sched_setaffinity(0, allowed)
    return best[1] / best[2]


def short_draws() -> dict[str, float]:
    """Microseconds of processor time for one count and few, best of twenty times a hundred."""
    certified = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    found = {}
    for words, counts in SHORT.items():

        def many(counts: Any = counts) -> None:
            for _ in range(100):
                certified.release(counts)

        found[words] = 1e4 * timed(many, 20, time.process_time)[0]
    return found


def rates(rows: int) -> dict[str, list[float]]:
    """Rows per second of every contender on one core, one number per round."""
    runs = contenders(np.random.default_rng(0).integers(0, UPPER + 1, rows))
    found: dict[str, list[float]] = {name: [] for name in runs}
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        for _ in range(ROUNDS):
            for name, run in runs.items():
                start = time.process_time()
                run()
                found[name].append(rows / (time.process_time() - start))
    finally:
        os.sched_setaffinity(0, allowed)
    return found


def peer_rates(peers: list[Peer], rows: int) -> dict[str, float]:
    found = {p.name: p.run(SCRIPTS[p.name], str(rows)) for p in peers}
    return {name: numbers[0] for name, numbers in found.items() if numbers}


def table(rows: int, found: dict[str, float], first: dict[str, float]) -> Table:
    ours = found["tallyveil"]
    lines = [
        (
            name,
            f"{rate / 1e6:,.3f}",
            f"{ours / rate:,.2f}",
            f"{first[name] / 1e6:,.3f}" if name in first else "",
        )
        for name, rate in found.items()
    ]
    title = f"{rows:,} counts in 0..{UPPER} at epsilon {EPSILON:g}"
    columns = ("", "million rows/s", "tallyveil is this many times faster", "in the first round")
    return Table(title, columns, lines)


def bars(rows: int, found: dict[str, float]) -> list[Bar]:
    ratios = {name: found["tallyveil"] / found[name] for name in BARS if name in found}
    return [
        Bar(
            f"{rows:,} rows: {least:g} times {name}",
            f"{ratios[name]:,.1f} times",
            ratios[name] >= least,
        )
        for name, least in BARS.items()
        if name in ratios
    ] + [
        Bar(
            f"{rows:,} rows, {name}: {least:g} million a second and core",
            f"{found[name] / 1e6:,.0f} million",
            found[name] >= 1e6 * least,
        )
        for name, least in DRAWN.items()
    ]


def further_bars(rows: int) -> list[Bar]:
    faster = two_cores(rows)
    made = [
        Bar(
            f"{words} in less than {MICROSECONDS:g} microseconds",
            f"{took:.1f}",
            took < MICROSECONDS,
        )
        for words, took in short_draws().items()
    ]
    if faster is None:
        return made
    words = f"two cores draw at least {TWO_CORES:g} times as many rows as one"
    return [*made, Bar(words, f"{faster:.2f} times", faster >= TWO_CORES)]


def run(quick: bool) -> Result:
    peers = [peer(name, install=not quick) for name in SCRIPTS]
    theirs = peer_rates(peers, 20_000 if quick else 200_000)
    sizes = SIZES[:3] if quick else SIZES
    rounds = {rows: rates(rows) for rows in sizes}
    found = {
        rows: {name: max(values) for name, values in by_name.items()} | theirs
        for rows, by_name in rounds.items()
    }
    first = {rows: {n: values[0] for n, values in rounds[rows].items()} for rows in sizes}
    shown = [rows for rows in sizes if rows >= 1_000_000]
    curves = {
        name: (list(sizes), [rows / found[rows][name] for rows in sizes])
        for name in ("tallyveil", "numpy, not private", "memory copy, 8 bytes a row")
    }
    curves |= {  # measured on fewer rows; their cost per row does not depend on how many
        name: (list(sizes), [rows / rate for rows in sizes]) for name, rate in theirs.items()
    }
    return Result(
        question="How many exact private draws per second?",
        method="Processor time of one thread, best of three rounds in which every contender "
        "runs once, tallyveil first. The first round also pays for memory that nobody has touched "
        "yet, which can cost a single large release several times the draws themselves; it has a "
        "column of its own. OpenDP and diffprivlib run in processes of their own on up to 200,000 "
        "rows, best of three. "
        "NumPy's noise is neither private nor exact; the cipher is what our draws consume.",
        tables=[table(rows, found[rows], first[rows]) for rows in shown],
        bars=[
            *(bar for rows in sizes if rows >= 10_000_000 for bar in bars(rows, found[rows])),
            *further_bars(sizes[-1]),
        ],
        plots=[Plot("Time to release a column of counts", "rows", "seconds", curves)],
        exponents={
            f"{name}, against rows": exponent(*curves[name])
            for name in ("tallyveil", "numpy, not private")
        },
        peers={p.name: p.state for p in peers},
        raw={
            "rounds": [{"rows": rows, "rows_per_second": v} for rows, v in rounds.items()],
            "peers": theirs,
        },
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("sampling", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
