"""How fast counts are released, side by side with the peers, in one run on one thread.

    python -m benchmarks.sampling [--quick] [--json FILE]

Counts in 0..80 at epsilon 1, 10 million and 50 million of them, as 64-bit integers. Every
contender is timed three times in turn, in processor time of one thread so that a busy machine
does not matter, and its best rate kept. The raw cipher at two bytes per row is the keystream
that our draws consume; a memory copy is the floor for touching the rows at all.

Bars: at least 5 times NumPy's own (unsafe) geometric noise, at least 500 times OpenDP's
exact vector noise. Exits with 1 where one is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tallyveil as tv

UPPER, EPSILON = 80, 1.0
SIZES = (10_000_000, 50_000_000)
BARS = {"numpy": 5.0, "opendp": 500.0}
DIFFPRIVLIB = """
import sys, time, warnings
warnings.simplefilter("ignore")
from diffprivlib.mechanisms import GeometricTruncated
mechanism = GeometricTruncated(epsilon=1.0, sensitivity=1, lower=0, upper=80)
counts = [i % 81 for i in range(20000)]
start = time.process_time()
for count in counts:
    mechanism.randomise(count)
print(len(counts) / (time.process_time() - start))
"""


def rate(run: Callable[[], Any], rows: int) -> float:
    start = time.process_time()
    run()
    return rows / (time.process_time() - start)


def numpy_noise(counts: np.ndarray) -> np.ndarray:
    """Not private (doubles) and not exact: what most scripts do."""
    generator = np.random.default_rng()
    p = -np.expm1(-EPSILON)
    noise = generator.geometric(p, len(counts)) - generator.geometric(p, len(counts))
    return np.clip(counts + noise, 0, UPPER)


def opendp_noise() -> Callable[[list[int]], Any]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    return space >> dp.m.then_laplace(scale=1.0 / EPSILON)


def diffprivlib_rate() -> float | None:
    """Rows per second of diffprivlib, installed into an environment of its own, or None."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        # 0.6.6 imports names that scikit-learn 1.8 dropped
        needed = ["diffprivlib", "scikit-learn<1.8"]
        install = [python, "-m", "pip", "install", "--quiet", *needed]
        if subprocess.run(install, capture_output=True, check=False).returncode:
            return None
        done = subprocess.run(
            [python, "-c", DIFFPRIVLIB], capture_output=True, text=True, check=False
        )
        return None if done.returncode else float(done.stdout.split()[-1])


def contenders(counts: np.ndarray, quick: bool) -> dict[str, tuple[Callable[[], Any], int]]:
    """What to time, with how many rows each run handles."""
    certified = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    certified.release(counts[:1_000_000])  # builds the table once, as a user's first call does
    small = counts.astype(np.uint8)
    target = np.empty_like(counts)
    source = tv.Entropy()
    few = counts[: 20_000 if quick else 200_000].tolist()
    noisy = opendp_noise()
    rows = len(counts)
    return {
        "tallyveil": (lambda: certified.release(counts), rows),
        "tallyveil, 8-bit counts": (lambda: certified.release(small), rows),
        "numpy": (lambda: numpy_noise(counts), rows),
        "opendp": (lambda: noisy(few), len(few)),
        "raw cipher, 8-byte words": (lambda: cipher(source, 8 * rows), rows),
        "raw cipher, 2-byte words": (lambda: cipher(source, 2 * rows), rows),
        "memory copy, 8 bytes": (lambda: np.copyto(target, counts), rows),
    }


def cipher(source: tv.Entropy, octets: int) -> None:
    for _ in range(0, octets, 1 << 17):
        source.octets(1 << 17)


def measure(rows: int, quick: bool) -> dict[str, float]:
    counts = np.random.default_rng(0).integers(0, UPPER + 1, rows)
    runs = contenders(counts, quick)
    best = dict.fromkeys(runs, 0.0)
    for _ in range(1 if quick else 3):
        for name, (run, handled) in runs.items():
            best[name] = max(best[name], rate(run, handled))
    return best


def show(rows: int, rates: dict[str, float]) -> None:
    ours = rates["tallyveil"]
    print(f"\n{rows:,} counts in 0..{UPPER} at epsilon {EPSILON:g}")
    print(f"{'':28}{'million rows/s':>16}{'ours is':>12}")
    for name, value in rates.items():
        print(f"{name:28}{value / 1e6:16.3f}{ours / value:11.2f}x")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no installation")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    figures: dict[str, Any] = {"cpu": os.cpu_count(), "numpy": np.__version__, "rates": {}}
    missed = []
    slowest = None if options.quick else diffprivlib_rate()
    for rows in (1_000_000,) if options.quick else SIZES:
        rates = measure(rows, options.quick)
        if slowest is not None:
            rates["diffprivlib"] = slowest
        show(rows, rates)
        missed += [
            f"{rows}: {rates['tallyveil'] / rates[peer]:.1f} times {peer}, wanted {bar:g}"
            for peer, bar in BARS.items()
            if rates["tallyveil"] < bar * rates[peer]
        ]
        figures["rates"][str(rows)] = rates
    if slowest is None:
        print("\ndiffprivlib was not measured (needs a full run and an installation of its own)")
    for line in missed:
        print(f"MISSED  {line}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
