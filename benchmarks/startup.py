"""How long one waits before anything happens: imports, help, a small table from end to end.

    python -m benchmarks.startup [--quick] [--json FILE]

Every command is a new process, run several times in turn; the shortest wall time and the
shortest processor time are kept.

Bars: `import tallyveil` less than 150 ms over `import numpy`; `tallyveil --help` under half a
second of processor time; privatizing 3,136 rows under 2 s of wall time. Exits with 1 where one
is missed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import Bar, Result, Table, compiled_environment, conduct, options
from benchmarks.peers import peer

ROWS, UPPER = 3_136, 50
FIRST_DRAW = """
import tallyveil as tv
tv.certify(tv.geometric(tv.Query.count(40), 1)).release([0, 3, 40])
"""
PRIVATIZE = "tallyveil privatize, 3,136 rows"


def commands(folder: Path) -> dict[str, list[str]]:
    """What to start, by the name it has in the table."""
    program = str(Path(sys.executable).with_name("tallyveil"))
    table = folder / "cases.csv"
    counts = np.minimum(np.random.default_rng(1).geometric(0.3, ROWS) - 1, UPPER)
    table.write_text("county,cases\n" + "".join(f"c{i},{n}\n" for i, n in enumerate(counts)))
    return {
        "python": [sys.executable, "-c", "pass"],
        "import numpy": [sys.executable, "-c", "import numpy"],
        "import tallyveil": [sys.executable, "-c", "import tallyveil"],
        "import tallyveil after numpy": [sys.executable, "-c", "import numpy, tallyveil"],
        "first certified draw": [sys.executable, "-c", FIRST_DRAW],
        "tallyveil --help": [program, "--help"],
        PRIVATIZE: [
            program,
            "privatize",
            str(table),
            "--count",
            "cases",
            "--keep",
            "all",
            "--upper",
            str(UPPER),
            "--epsilon",
            "1",
            "--out",
        ],
    }


def once(words: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of one process."""
    before, start = _children(), time.perf_counter()
    subprocess.run(words, check=True, capture_output=True, env=compiled_environment())
    return time.perf_counter() - start, _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(quick: bool) -> Result:
    peers = [peer(name, install=not quick) for name in ("opendp", "diffprivlib")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = commands(folder)
        for other in peers:
            if other.python:
                module = "opendp.prelude" if other.name == "opendp" else other.name
                asked[f"import {module}"] = [str(other.python), "-c", f"import {module}"]
        best = dict.fromkeys(asked, (np.inf, np.inf))
        for turn in range(3 if quick else 7):
            for label, words in asked.items():
                last = [str(folder / f"release {turn}")] if label == PRIVATIZE else []
                pair = zip(best[label], once(words + last), strict=True)
                best[label] = tuple(min(both) for both in pair)
    over = max(0.0, best["import tallyveil after numpy"][0] - best["import numpy"][0])
    helped, whole = best["tallyveil --help"][1], best[PRIVATIZE][0]
    unit = best["import numpy"][0]
    lines = [
        (label, f"{1000 * wall:.0f}", f"{1000 * spent:.0f}", f"{wall / unit:.2f}")
        for label, (wall, spent) in best.items()
    ]
    return Result(
        question="How long does it take to start?",
        method="New processes in turn, the shortest of several runs of each. The last column is "
        "wall time relative to `import numpy`.",
        tables=[Table("Milliseconds", ("", "wall", "processor", "ratio"), lines)],
        bars=[
            Bar("`import tallyveil` under 150 ms over numpy", f"{1000 * over:.0f} ms", over < 0.15),
            Bar(
                "`tallyveil --help` under 0.5 s of processor time", f"{helped:.2f} s", helped < 0.5
            ),
            Bar("3,136 rows privatized under 2 s of wall time", f"{whole:.2f} s", whole < 2),
        ],
        peers={other.name: other.state for other in peers},
        raw={label: {"wall": wall, "processor": spent} for label, (wall, spent) in best.items()},
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("startup", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
