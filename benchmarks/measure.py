"""What every benchmark shares: a clock, growth exponents, a result, and how it is kept.

A benchmark module has a `main(arguments)` that reads its options and hands a function to
`conduct`. The function returns a `Result`; `conduct` prints it, writes it as JSON with a
description of the machine, and returns 1 if a bar was missed.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import tallyveil

LIBRARIES = ("tallyveil", "numpy", "scipy", "clarabel", "cryptography", "pyarrow")


@dataclass(frozen=True)
class Table:
    """One table as it is shown; numbers are already text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Plot:
    """Lines of one picture: label -> (x values, y values); `log` as in `figure.Panel`."""

    title: str
    x_label: str
    y_label: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    log: str = "xy"


@dataclass(frozen=True)
class Bar:
    """A promise, what was measured, and whether it was kept."""

    promise: str
    measured: str
    met: bool


@dataclass(frozen=True)
class Result:
    """The answer to one question.

    Attributes
    ----------
    question : what a reader wants to know, as a heading
    method : how it was measured, in a few sentences
    exponents : label -> k, where the cost grows like size^k
    raw : every number, JSON-ready, for those who want to compute further
    peers : name -> version, or why it is not in the tables
    """

    question: str
    method: str
    tables: Sequence[Table]
    bars: Sequence[Bar] = ()
    plots: Sequence[Plot] = ()
    exponents: Mapping[str, float] = field(default_factory=dict)
    peers: Mapping[str, str] = field(default_factory=dict)
    raw: Any = None


def timed(
    action: Callable[[], Any], repeat: int = 1, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """The shortest of `repeat` runs in seconds, and what the last run returned."""
    best, result = np.inf, None
    for _ in range(repeat):
        start = clock()
        result = action()
        best = min(best, clock() - start)
    return best, result


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """k of the least-squares line log(cost) = k log(size) + constant, over the three largest sizes.

    Smaller sizes show what starting costs rather than how the cost grows.
    """
    if len(set(sizes)) < 2:
        raise ValueError("an exponent needs at least two sizes")
    largest = sorted(zip(sizes, costs, strict=True))[-3:]
    x, y = np.log(np.array(largest, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


@cache
def compiled_environment() -> dict[str, str]:
    """An environment in which modules are compiled once, as those of an installed package are."""
    compileall.compile_dir(Path(tallyveil.__file__).parent, quiet=1)
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def machine() -> dict[str, Any]:
    """The processor, the system and the versions; nothing that names the machine or its user."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "load": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def options(description: str | None) -> argparse.ArgumentParser:
    """A parser with the two options of every benchmark."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes; installs no peer")
    parser.add_argument("--json", type=Path, help="also write every figure here")
    return parser


def conduct(name: str, run: Callable[[], Result], given: argparse.Namespace) -> int:
    """Run one benchmark, show it, keep it; 1 if a bar was missed."""
    described = machine()  # before the run, so that the load is not our own
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    print(as_text(result), flush=True)
    if given.json:
        document = {
            "benchmark": name,
            "quick": given.quick,
            "seconds": round(seconds, 1),
            "machine": described,
            **asdict(result),
        }
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0 if all(bar.met for bar in result.bars) else 1


def as_text(result: Result) -> str:
    """The result for a terminal."""
    lines = [result.question]
    for table in result.tables:
        lines += ["", table.title, *_columns(table)]
    if result.exponents:
        lines += ["", "cost ~ size^k, over the three largest sizes:"]
        lines += [f"  {label}: k = {slope:.2f}" for label, slope in result.exponents.items()]
    for name, state in result.peers.items():
        lines.append(f"peer {name}: {state}")
    for bar in result.bars:
        lines.append(f"{'met   ' if bar.met else 'MISSED'}  {bar.promise}: {bar.measured}")
    return "\n".join(lines)


def _columns(table: Table) -> list[str]:
    """The first column to the left, the others to the right."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.columns))]
    return [
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
