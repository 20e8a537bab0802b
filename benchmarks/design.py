"""Design programs against SciPy's HiGHS on the plain program, and against qif where it can.

    python -m benchmarks.design [--quick] [--json FILE] [--limit S] [--scipy-up-to N]

One run, in processor time, which other work on the machine disturbs least; Clarabel is held to
one thread and HiGHS's simplex has one. The plain program has a variable per cell, a row per
neighbour pair, output and direction, and every property row; only `linprog` itself is timed
there, while for Tallyveil everything is: posing, assembling, solving, repair and the certified
bound. SciPy is stopped after --limit seconds, and then the ratio is a lower bound. qif has an
environment of its own and knows no properties.

Bars: on a path 10 times faster than SciPy at 81 answers for every property set; 161 answers
in 2 s and 321 in 10 s; complete neighbours with 101 answers in 1 s; certified gap below 1e-6
up to 161 answers. Exits with 1 where one is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

import tallyveil as tv
from benchmarks.measure import Bar, Plot, Result, Table, conduct, exponent, options, timed
from benchmarks.peers import Peer, peer
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
    """Seconds of a whole design, the best of three unless one takes over a second."""

    def run() -> tv.Design:
        return tv.design(question, epsilon, properties=properties, method="lp", progress=False)

    seconds, found = timed(run, 1, time.process_time)
    return (min(seconds, timed(run, 2, time.process_time)[0]) if seconds < 1 else seconds), found


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
    start = time.process_time()
    found = linprog(
        cost,
        A_ub=sparse.vstack(upper, format="csc"),
        b_ub=np.concatenate(right),
        A_eq=sparse.vstack(equal, format="csc"),
        b_eq=np.concatenate(values),
        method="highs",
        options={"time_limit": limit},
    )
    return time.process_time() - start, found.fun, found.status != 0


def _rows(first: Any, second: Any, one: float, other: float, size: int) -> Any:
    count = len(first)
    form = sparse.csr_array((np.full(count, one), (np.arange(count), first)), shape=(count, size))
    if second is None:
        return form
    entries = (np.full(count, other), (np.arange(count), second))
    return form + sparse.csr_array(entries, shape=(count, size))


def measure(
    graph: str, sizes: tuple[int, ...], epsilons: tuple[float, ...], scipy_up_to: int, limit: float
) -> list[dict[str, Any]]:
    """One row per size, epsilon and property set, with SciPy beside it up to `scipy_up_to`."""
    found = []
    for size in sizes:
        for epsilon in epsilons:
            for name, properties in SETS.items():
                question = query(graph, size)
                seconds, design = ours(question, epsilon, properties)
                row = {
                    "graph": graph,
                    "size": size,
                    "epsilon": epsilon,
                    "set": name,
                    "seconds": seconds,
                    "objective": design.objective,
                    "gap": design.gap,
                    "scipy": None,
                    "stopped": False,
                    "ratio": None,
                }
                if size <= scipy_up_to:
                    taken, value, stopped = plain(question, epsilon, properties, limit)
                    row |= {
                        "scipy": taken,
                        "stopped": stopped,
                        "ratio": taken / seconds,
                        "scipy_objective": value,
                    }
                found.append(row)
                print(_cells(row), file=sys.stderr, flush=True)  # these runs are long
    return found


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    scipy = ("", "")
    if row["scipy"] is not None:
        mark = "> " if row["stopped"] else ""
        scipy = (f"{mark}{row['scipy']:.3f}", f"{mark}{row['ratio']:.1f}")
    return (
        row["graph"],
        str(row["size"]),
        f"{row['epsilon']:g}",
        row["set"],
        f"{row['seconds']:.4f}",
        *scipy,
        f"{row['gap']:.0e}",
    )


def curves(found: list[dict[str, Any]], key: str, graph: str, epsilon: float) -> dict[str, Any]:
    """Seconds against size for every property set that was measured at two sizes or more."""
    lines = {}
    for name in SETS:
        points = [
            (row["size"], row[key])
            for row in found
            if (row["graph"], row["epsilon"], row["set"]) == (graph, epsilon, name)
            and row[key] is not None
        ]
        if len(points) > 1:
            lines[name] = tuple(zip(*points, strict=True))
    return lines


def plots(found: list[dict[str, Any]]) -> list[Plot]:
    """Ours and SciPy's seconds on a path at epsilon 0.5, for three of the property sets."""
    lines = {
        f"{who}, {name}": line
        for who, key in (("tallyveil", "seconds"), ("SciPy", "scipy"))
        for name, line in curves(found, key, "path", 0.5).items()
        if name in ("none", "CM", "all")
    }
    return [Plot("A path at epsilon 0.5", "answers", "seconds", lines)]


def exponents(found: list[dict[str, Any]]) -> dict[str, float]:
    """Growth with size per graph, epsilon and property set."""
    return {
        f"{graph}, epsilon {epsilon:g}, {name}": exponent(*line)
        for graph, epsilon in dict.fromkeys((row["graph"], row["epsilon"]) for row in found)
        for name, line in curves(found, "seconds", graph, epsilon).items()
    }


def bars(found: list[dict[str, Any]]) -> list[Bar]:
    """Each bar over the rows it is about, where there are any."""
    path = [row for row in found if row["graph"] == "path"]
    kept = []
    faster = [row["ratio"] for row in path if row["size"] == 81 and row["ratio"] is not None]
    if faster:
        kept.append(
            Bar(
                "path, 81 answers: 10 times faster than SciPy for every set",
                f"at least {min(faster):.1f} times",
                min(faster) >= 10,
            )
        )
    for graph, size, limit in (("path", 161, 2), ("path", 321, 10), ("complete", 101, 1)):
        taken = [row["seconds"] for row in found if (row["graph"], row["size"]) == (graph, size)]
        if taken:
            kept.append(
                Bar(
                    f"{graph}, {size} answers: under {limit} s for every set",
                    f"at most {max(taken):.2f} s",
                    max(taken) < limit,
                )
            )
    gap = max(row["gap"] for row in found if row["size"] <= 161)
    kept.append(Bar("certified gap below 1e-6 up to 161 answers", f"{gap:.1e}", gap < 1e-6))
    return kept


QIF = """
import sys, time, numpy as np, qif
size, epsilon = int(sys.argv[1]), float(sys.argv[2])
start = time.process_time()
found = qif.mechanism.d_privacy.min_loss_given_d(
    np.full(size, 1 / size), size,
    lambda x, y: epsilon * abs(x - y), lambda w, x: float(abs(w - x)))
seconds = time.process_time() - start
loss = np.abs(np.arange(size)[:, None] - np.arange(size))
with np.errstate(all="ignore"):
    ratio = np.log(found[1:]) - np.log(found[:-1])
print(seconds, (found * loss).sum() / size, np.nanmax(np.abs(ratio)))
"""


def against_qif(qif: Peer, sizes: tuple[int, ...], epsilons: tuple[float, ...]) -> list[Any]:
    """A path without properties: qif's seconds and objective, and what it really promises."""
    found = []
    for size in sizes:
        for epsilon in epsilons:
            numbers = qif.run(QIF, str(size), str(epsilon))
            if numbers is None:
                continue
            taken, objective, realised = numbers
            seconds, design = ours(query("path", size), epsilon, ())
            found.append(
                {
                    "size": size,
                    "epsilon": epsilon,
                    "seconds": seconds,
                    "qif": taken,
                    "ratio": taken / seconds,
                    "objective": design.objective,
                    "qif_objective": objective,
                    "qif_realised": f"{realised:g}",
                }
            )
    return found


def summary(found: list[dict[str, Any]]) -> Table:
    """The slowest of ours over epsilons, and beside it the smallest ratio to SciPy."""
    lines = []
    for graph, size in dict.fromkeys((row["graph"], row["size"]) for row in found):
        cells = []
        for name in SETS:
            own = [
                row
                for row in found
                if (row["graph"], row["size"], row["set"]) == (graph, size, name)
            ]
            slowest = f"{max(row['seconds'] for row in own):.3f} s"
            ratios = [row["ratio"] for row in own if row["ratio"] is not None]
            cells.append(f"{slowest} ({min(ratios):.0f} times)" if ratios else slowest)
        lines.append((graph, str(size), *cells))
    title = "Slowest over epsilons (and how many times faster than SciPy, at least)"
    return Table(title, ("neighbours", "answers", *SETS), lines)


def tables(found: list[dict[str, Any]], qif: list[dict[str, Any]]) -> list[Table]:
    columns = (
        "neighbours",
        "answers",
        "epsilon",
        "properties",
        "tallyveil s",
        "SciPy s",
        "ratio",
        "certified gap",
    )
    made = [summary(found), Table("Every design", columns, [_cells(row) for row in found])]
    if qif:
        lines = [
            (
                str(row["size"]),
                f"{row['epsilon']:g}",
                f"{row['seconds']:.4f}",
                f"{row['qif']:.3f}",
                f"{row['ratio']:.0f}",
                f"{row['objective']:.7g}",
                f"{row['qif_objective']:.7g}",
                row["qif_realised"],
            )
            for row in qif
        ]
        heads = (
            "answers",
            "epsilon",
            "tallyveil s",
            "qif s",
            "ratio",
            "objective",
            "qif's objective",
            "qif's realised epsilon",
        )
        made.append(Table("Against qif: path, no properties", heads, lines))
    return made


def run(given: argparse.Namespace) -> Result:
    quick = given.quick
    epsilons = (0.5,) if quick else EPSILONS
    limit, up_to = (5.0, 41) if quick else (given.limit, given.scipy_up_to)
    tv.design(tv.Query.count(4), 1.0, method="lp", progress=False)  # imports are not timed
    found = measure(
        "path", (21, 41, 81) if quick else (21, 41, 81, 161, 321), epsilons, up_to, limit
    )
    small = (21, 41) if quick else (21, 41, 81)
    found += measure("band", small, epsilons, min(up_to, 21 if quick else 41), limit)
    complete = (21, 51) if quick else (21, 51, 101)
    found += measure("complete", complete, epsilons, min(up_to, 21), limit)
    qif = peer("qif", install=not quick)
    beside = against_qif(qif, (21,) if quick else (21, 41), epsilons)
    return Result(
        question="How long does a design take, against n and properties?",
        method="The best mechanism for the mean absolute error. Processor seconds, one thread; "
        "ours is posing, solving, repairing and the certified bound, SciPy's only the solver on "
        f"the plain program, stopped after {limit:g} s (then marked >). Properties: WH weakly "
        "honest, F fair, CM column monotone, all: the seven of Cormode et al. (2018). "
        "Neighbours: path (a count), band (a mean), complete (a maximum).",
        tables=tables(found, beside),
        bars=bars(found),
        plots=plots(found),
        exponents=exponents(found),
        peers={"qif": qif.state},
        raw={"rows": found, "qif": beside},
    )


def main(arguments: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds SciPy may take")
    parser.add_argument("--scipy-up-to", type=int, default=81, help="largest size for SciPy")
    given = parser.parse_args(arguments)
    return conduct("design", lambda: run(given), given)


if __name__ == "__main__":
    sys.exit(main())
