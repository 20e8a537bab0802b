"""Design programs against SciPy's HiGHS on the plain program, and against qif where it can.

    python -m benchmarks.design [--quick] [--json FILE] [--limit S] [--scipy-up-to N] [--qif]

One run; Clarabel is held to one thread and HiGHS's simplex has one. The plain program has a
variable per cell, a row per neighbour pair, output and direction, and every property row; only
`linprog` itself is timed there, while for Tallyveil everything is: posing, assembling, solving,
repair and the certified bound. SciPy is stopped after --limit seconds, and then the ratio is a
lower bound. `--qif` installs qif in a temporary environment of its own and removes it again;
it knows no properties.

Bars: on a path 10 times faster than SciPy at 81 answers for every property set; 161 answers
in 2 s and 321 in 10 s; complete neighbours with 101 answers in 1 s; certified gap below 1e-6
up to 161 answers. Exits with 1 where one is missed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import tallyveil as tv
from tallyveil.loss import loss_table
from tallyveil.properties import SEVEN, rows

SETS = {
    "none": (),
    "WH": ("weakly_honest",),
    "F": ("fair",),
    "CM": ("column_monotone",),
    "all": SEVEN,
}
EPSILONS = (0.1, 0.5, 1.0)


def query(graph: str, size: int) -> tv.Query:
    if graph == "path":
        return tv.Query.count(size - 1)
    if graph == "band":
        return tv.Query.mean((size - 1) // 4, 0, 4)
    return tv.Query.maximum(0, size - 1)


def ours(question: tv.Query, epsilon: float, properties: tuple[str, ...]) -> tuple[float, Any]:
    best, found = np.inf, None
    for _ in range(3):
        start = time.perf_counter()
        found = tv.design(question, epsilon, properties=properties, method="lp", progress=False)
        best = min(best, time.perf_counter() - start)
        if best > 1:
            break
    return best, found


def plain(question: tv.Query, epsilon: float, properties: tuple[str, ...], limit: float) -> Any:
    """Seconds of linprog on the plain program, its objective, and whether it was stopped."""
    n, m = question.shape
    pairs = question.neighbours.pairs
    first = np.repeat(np.concatenate([pairs[:, 0], pairs[:, 1]]), m)
    second = np.repeat(np.concatenate([pairs[:, 1], pairs[:, 0]]), m)
    output = np.tile(np.arange(m), 2 * len(pairs))
    upper = [_rows(first * m + output, second * m + output, 1.0, -np.exp(epsilon), n * m)]
    right, equal, values = [np.zeros(len(first))], [], []
    for name in properties:
        for part in rows(name, question, epsilon):
            larger = part.larger[0] * m + part.larger[1]
            smaller = None if part.smaller is None else part.smaller[0] * m + part.smaller[1]
            form = _rows(larger, smaller, -part.factor, 1.0, n * m)
            (equal if part.equal else upper).append(form)
            (values if part.equal else right).append(np.full(len(part), -part.floor))
    equal.append(sparse.kron(sparse.eye_array(n), np.ones((1, m)), format="csr"))
    values.append(np.ones(n))
    cost = (loss_table(question, "absolute") / n).ravel()
    start = time.perf_counter()
    found = linprog(
        cost, A_ub=sparse.vstack(upper, format="csc"), b_ub=np.concatenate(right),
        A_eq=sparse.vstack(equal, format="csc"), b_eq=np.concatenate(values),
        method="highs", options={"time_limit": limit},
    )  # fmt: skip
    return time.perf_counter() - start, found.fun, found.status != 0


def _rows(first: Any, second: Any, one: float, other: float, size: int) -> Any:
    count = len(first)
    form = sparse.csr_array((np.full(count, one), (np.arange(count), first)), shape=(count, size))
    if second is None:
        return form
    entries = (np.full(count, other), (np.arange(count), second))
    return form + sparse.csr_array(entries, shape=(count, size))


def measure(graph: str, sizes: tuple[int, ...], scipy_up_to: int, limit: float) -> list[Any]:
    found = []
    for size in sizes:
        for epsilon in EPSILONS:
            for name, properties in SETS.items():
                question = query(graph, size)
                seconds, design = ours(question, epsilon, properties)
                row = {"graph": graph, "size": size, "epsilon": epsilon, "set": name,
                       "seconds": seconds, "objective": design.objective, "gap": design.gap,
                       "scipy": None, "stopped": False, "ratio": None}  # fmt: skip
                if size <= scipy_up_to:
                    taken, value, stopped = plain(question, epsilon, properties, limit)
                    row |= {"scipy": taken, "stopped": stopped, "ratio": taken / seconds,
                            "scipy_objective": value}  # fmt: skip
                found.append(row)
                _print_row(row)
    return found


def _print_row(row: dict[str, Any]) -> None:
    scipy = ""
    if row["scipy"] is not None:
        mark = ">" if row["stopped"] else " "
        scipy = f"  scipy {mark}{row['scipy']:8.3f} s  ratio {mark}{row['ratio']:7.1f}"
    print(f"{row['graph']:9}{row['size']:4}{row['epsilon']:6g} {row['set']:5}"
          f"{row['seconds']:9.4f} s  gap {row['gap']:.0e}{scipy}", flush=True)  # fmt: skip


def exponents(found: list[Any]) -> dict[str, float]:
    """d log(seconds) / d log(size) by least squares, per graph, epsilon and property set."""
    slopes = {}
    keys = dict.fromkeys((row["graph"], row["epsilon"], row["set"]) for row in found)
    for key in keys:
        points = [
            (row["size"], row["seconds"])
            for row in found
            if (row["graph"], row["epsilon"], row["set"]) == key and row["size"] > 21
        ]
        if len(points) > 1:
            x, y = np.log(np.array(points)).T
            slopes["{} {:g} {}".format(*key)] = float(np.polyfit(x, y, 1)[0])
    return slopes


def missed_bars(found: list[Any]) -> list[str]:
    missed = []
    for row in found:
        where = f"{row['graph']} {row['size']} epsilon {row['epsilon']:g} {row['set']}"
        size, seconds = row["size"], row["seconds"]
        if row["graph"] == "path":
            if size == 81 and row["ratio"] is not None and row["ratio"] < 10:
                missed.append(f"{where}: only {row['ratio']:.1f} times faster than SciPy")
            if (size == 161 and seconds >= 2) or (size == 321 and seconds >= 10):
                missed.append(f"{where}: {seconds:.2f} s")
        if row["graph"] == "complete" and size == 101 and seconds >= 1:
            missed.append(f"{where}: {seconds:.2f} s")
        if size <= 161 and row["gap"] >= 1e-6:
            missed.append(f"{where}: gap {row['gap']:.1e}")
    return missed


QIF = """
import sys, time, numpy as np, qif
size, epsilon = int(sys.argv[1]), float(sys.argv[2])
start = time.perf_counter()
found = qif.mechanism.d_privacy.min_loss_given_d(
    np.full(size, 1 / size), size,
    lambda x, y: epsilon * abs(x - y), lambda w, x: float(abs(w - x)))
seconds = time.perf_counter() - start
loss = np.abs(np.arange(size)[:, None] - np.arange(size))
with np.errstate(all="ignore"):
    ratio = np.log(found[1:]) - np.log(found[:-1])
print(seconds, (found * loss).sum() / size, np.nanmax(np.abs(ratio)))
"""


def against_qif(sizes: tuple[int, ...]) -> None:
    """A path without properties in a temporary environment that holds qif and nothing of ours."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        installed = subprocess.run([python, "-m", "pip", "install", "--quiet", "qif"], check=False)
        if installed.returncode:
            print("qif could not be installed here; left out")
            return
        for size in sizes:
            for epsilon in EPSILONS:
                words = [python, "-c", QIF, str(size), str(epsilon)]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                taken, objective, realised = map(float, done.stdout.split())
                seconds, design = ours(query("path", size), epsilon, ())
                print(f"qif      {size:4}{epsilon:6g} none {taken:9.3f} s"
                      f"  ratio {taken / seconds:.0f}  objective {objective:.7g}"
                      f" (ours {design.objective:.7g})"
                      f"  realised epsilon {realised:g}", flush=True)  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds SciPy may take")
    parser.add_argument("--scipy-up-to", type=int, default=81, help="largest size for SciPy")
    parser.add_argument("--qif", action="store_true", help="install qif on demand, and compare")
    options = parser.parse_args(arguments)
    path = (21, 41, 81) if options.quick else (21, 41, 81, 161, 321)
    small = (21, 41) if options.quick else (21, 41, 81)
    limit = min(options.limit, 10.0) if options.quick else options.limit
    found = measure("path", path, options.scipy_up_to, limit)
    found += measure("band", small, min(options.scipy_up_to, 41), limit)
    complete = (21, 51) if options.quick else (21, 51, 101)
    found += measure("complete", complete, min(options.scipy_up_to, 21), limit)
    if options.qif:
        against_qif((21,) if options.quick else (21, 41))
    slopes = exponents(found)
    print("\ngrowth exponents (seconds ~ size^k):")
    for key, slope in slopes.items():
        print(f"  {key:22}{slope:6.2f}")
    missed = missed_bars(found)
    for line in missed:
        print(f"MISSED  {line}")
    if options.json:
        document = {"rows": found, "exponents": slopes, "missed": missed}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
