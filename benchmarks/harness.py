"""What every benchmark shares: settings, a clock, a result, peers, and a run that is recorded.

A benchmark is a module with a function `run(settings)` that returns a `Result`. `conduct` calls
it, prints the result and writes it as JSON with a description of the machine.

Peers are the libraries we compare with. None is a dependency: each has an environment in
build/peers, which `make clean` removes. A quick run uses those that exist and installs none.
"""

from __future__ import annotations

import compileall
import json
import os
import platform
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import tallyveil

LIBRARIES = ("tallyveil", "numpy", "scipy", "clarabel", "cryptography", "pyarrow")
PROGRAM = Path(sys.executable).with_name("tallyveil")
PEERS = Path("build") / "peers"
PACKAGES = {
    "opendp": ("opendp",),
    "diffprivlib": ("diffprivlib", "scikit-learn<1.8"),  # 0.6.6 imports names that 1.8 dropped
    "qif": ("qif",),
}
INSTALL_SECONDS, RUN_SECONDS = 600, 1200


@dataclass(frozen=True)
class Settings:
    """The options of a run. `rows` and `format` limit scale, whose files are in `scratch`."""

    quick: bool = False
    data: Path | None = None
    rows: int | None = None
    format: str | None = None
    scratch: Path | None = None


@dataclass(frozen=True)
class Table:
    """A table of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Target:
    """What the product promises, what was measured, and whether the target was met."""

    promise: str
    measured: str
    met: bool

    @classmethod
    def at_most(cls, promise: str, value: float, limit: float, unit: str = "") -> Target:
        """Compare a number with the largest one allowed."""
        return cls(promise, f"{value:,.3g}{unit}", bool(value <= limit))

    @classmethod
    def at_least(cls, promise: str, value: float, limit: float, unit: str = " times") -> Target:
        """Compare a number, mostly a ratio, with the smallest one allowed."""
        return cls(promise, f"{value:,.3g}{unit}", bool(value >= limit))


@dataclass(frozen=True)
class Result:
    """The answer to a question, and how it was measured in a few sentences."""

    question: str
    method: str
    tables: Sequence[Table]
    targets: Sequence[Target]
    peers: Mapping[str, str] = field(default_factory=dict)


def conduct(name: str, run: Callable[[Settings], Result], settings: Settings, folder: Path) -> bool:
    """Run a benchmark, print the result and write its numbers; True if all targets were met."""
    machine = describe_machine()  # before the run, so that the load is not our own
    start = time.perf_counter()
    result = run(settings)
    document = {
        "benchmark": name,
        "quick": settings.quick,
        "seconds": round(time.perf_counter() - start, 1),
        "machine": machine,
        **asdict(result),
    }
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    print(format_result(result), flush=True)
    return all(target.met for target in result.targets)


def format_result(result: Result) -> str:
    """Format a result for a terminal: the first column to the left, the others to the right."""
    lines = [result.question]
    for table in result.tables:
        rows = [table.columns, *table.rows]
        widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
        lines += ["", table.title]
        for first, *others in rows:
            padded = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
            lines.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    lines += ["", *(f"peer {name}: {state}" for name, state in result.peers.items())]
    for target in result.targets:
        lines.append(f"{'met   ' if target.met else 'MISSED'}  {target.promise}: {target.measured}")
    return "\n".join(lines)


def describe_machine() -> dict[str, Any]:
    """Describe the processor, the system and the versions, but neither host nor user."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return {
        "processor": (models or [platform.processor() or platform.machine()])[0],
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "load": round(os.getloadavg()[0], 2),
        "date": datetime.now(UTC).date().isoformat(),
    }


def time_best(action: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Return the least processor seconds of `repeat` runs, and what the last run returned."""
    best, result = np.inf, None
    for _ in range(repeat):
        start = time.process_time()
        result = action()
        best = min(best, time.process_time() - start)
    return best, result


@cache
def compiled_environment() -> dict[str, str]:
    """Compile the package's modules as an installer does; return an environment that uses them."""
    compileall.compile_dir(Path(tallyveil.__file__).parent, quiet=1)
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


MEASURE = """
import os, resource, subprocess, sys, time
if sys.argv[1] == "1":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
start = time.perf_counter()
done = subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL)
wall = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, wall, 1024 * used.ru_maxrss)
sys.exit(done.returncode)
"""


@dataclass(frozen=True)
class Cost:
    """Processor and wall seconds of a command, and its peak memory in bytes."""

    seconds: float
    wall: float
    peak: float


def measure_command(words: Sequence[str | Path], cores: int | None = None) -> Cost:
    """Run a command and measure it, start-up included; with `cores` 1 on a single core.

    A small process starts the command, because Linux counts the memory of the process that
    starts another towards its peak.
    """
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(cores), *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=compiled_environment(),
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} failed:\n{done.stderr}")
    return Cost(*map(float, done.stdout.split()))


def list_words(source: Path, upper: int, *more: str) -> list[str | Path]:
    """List the words of the public command that privatizes a file; the folder comes last."""
    options = f"--count cases --keep all --upper {upper} --epsilon 1".split()
    return [PROGRAM, "privatize", source, *options, *more, "--out"]


@dataclass(frozen=True)
class Peer:
    """A library to compare with; `state` is its version, or why it cannot run."""

    name: str
    python: Path | None
    state: str

    def run(self, script: str, *words: str) -> list[float] | None:
        """Run a script in the peer's environment; return the numbers it prints last, or None."""
        if self.python is None:
            return None
        done = _run([self.python, "-c", script, *words], RUN_SECONDS)
        if done is None or done.returncode:
            return None
        return [float(word) for word in done.stdout.splitlines()[-1].split()]


def find_peer(name: str, install: bool) -> Peer:
    """Find a peer; with `install`, install it if it is not there."""
    folder = PEERS / name
    python = folder / "bin" / "python"
    if not _can_import(name, python):
        if not install:
            return Peer(name, None, "not installed, and a quick run installs nothing")
        print(f"Installing {name} in {folder}", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True, clear=True)
        _run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], INSTALL_SECONDS)
        if not _can_import(name, python):
            return Peer(name, None, "could not be installed here")
    ask = f"from importlib.metadata import version; print(version({name!r}))"
    number = subprocess.check_output([python, "-c", ask], text=True).strip()
    return Peer(name, python.absolute(), number)


def pose_program(n: int, epsilon: float) -> tuple[Any, Any]:
    """Write the plain program of a count's n by n mechanism: sums of rows, and privacy <= 0."""
    eye, grow = sparse.eye_array(n, format="csr"), float(np.exp(epsilon))
    steps = sparse.vstack([eye[:-1] - grow * eye[1:], eye[1:] - grow * eye[:-1]])
    return sparse.kron(eye, np.ones((1, n))), sparse.kron(steps, eye).tocsc()


def _run(words: Sequence[str | Path], seconds: int) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None


def _can_import(name: str, python: Path) -> bool:
    done = _run([python, "-c", f"import {name}"], RUN_SECONDS) if python.exists() else None
    return done is not None and done.returncode == 0
