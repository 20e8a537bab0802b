"""Whole tables: rows per second and memory of `tv.privatize`, on arrays and CSV files.

    python -m benchmarks.throughput [--quick] [--json FILE]

Skewed counts in 0..80 at epsilon 1, with the default method. Every run has a process of its
own, so that its peak memory is its own; the peak is counted above the process with its imports
and the input in place (resident pages, as Linux counts them). Beside it: NumPy's noise on the
same array (not private), and pyarrow copying the same CSV without privatizing anything.

Bar: memory grows at most linearly with the rows (exponent at most 1.1).
Exits with 1 where it is missed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Bar, Plot, Result, Table, conduct, exponent, options

UPPER = 80
SCRIPT = """
import sys, time
from pathlib import Path
import numpy as np

def high_water():  # getrusage would also count the parent's peak
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.split("VmHWM:")[1].split()[0])

def skewed(rows):
    return np.minimum(np.random.default_rng(3).geometric(0.15, rows) - 1, 80)

kind, rows, source, target = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
if kind == "tallyveil array":
    import tallyveil as tv
    tv.privatize(skewed(1000), upper=80, epsilon=1.0)
    counts = skewed(rows)
    run = lambda: tv.privatize(counts, upper=80, epsilon=1.0).table
elif kind == "numpy array, not private":
    counts, p = skewed(rows), -np.expm1(-1.0)
    draw = np.random.default_rng()
    run = lambda: np.clip(counts + draw.geometric(p, rows) - draw.geometric(p, rows), 0, 80)
elif kind == "tallyveil CSV":
    import tallyveil as tv
    tv.privatize(skewed(1000), upper=80, epsilon=1.0)
    import pyarrow.csv
    run = lambda: tv.privatize(source, "cases", keep="all", upper=80, epsilon=1.0).save(target)
else:
    from pyarrow import csv
    run = lambda: csv.write_csv(csv.read_csv(source), target)
Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
before = high_water()
start, busy = time.perf_counter(), time.process_time()
run()
seconds, busy = time.perf_counter() - start, time.process_time() - busy
print(seconds, busy, high_water() - before, high_water())
"""
BESIDE = {
    "tallyveil array": "numpy array, not private",
    "tallyveil CSV": "pyarrow copies the CSV",
}


def write_table(path: Path, rows: int) -> None:
    """A CSV of areas with two label columns and the counts."""
    counts = np.minimum(np.random.default_rng(3).geometric(0.15, rows) - 1, UPPER)
    with path.open("w", encoding="utf-8") as file:
        file.write("area,region,cases\n")
        file.writelines(f"area {i},region {i % 50},{n}\n" for i, n in enumerate(counts.tolist()))


def measured(kind: str, rows: int, folder: Path) -> dict[str, Any]:
    """Wall and processor seconds and peak bytes of one run in a process of its own."""
    source = folder / f"{rows}.csv"
    if "CSV" in kind and not source.exists():
        write_table(source, rows)
    target = folder / f"{kind.split(maxsplit=1)[0]} {rows}"
    words = [sys.executable, "-c", SCRIPT, kind, str(rows), str(source), str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    seconds, processor, above, peak = map(float, done.stdout.split())
    return {
        "kind": kind,
        "rows": rows,
        "seconds": seconds,
        "processor": processor,
        "rows_per_second": rows / seconds,
        "bytes_above_input": above,
        "peak_bytes": peak,
    }


def table(found: list[dict[str, Any]]) -> Table:
    by = {(row["kind"], row["rows"]): row for row in found}
    lines = []
    for row in found:
        ours = next((kind for kind, floor in BESIDE.items() if floor == row["kind"]), row["kind"])
        slower = row["seconds"] / by[(ours, row["rows"])]["seconds"]
        lines.append(
            (
                row["kind"],
                f"{row['rows']:,}",
                f"{row['seconds']:.3f}",
                f"{row['processor']:.3f}",
                f"{row['rows_per_second'] / 1e6:.2f}",
                f"{1 / slower:.1f}",
                f"{row['peak_bytes'] / 2**20:,.0f}",
                f"{row['bytes_above_input'] / row['rows']:,.0f}",
            )
        )
    columns = (
        "",
        "rows",
        "wall s",
        "processor s",
        "million rows/s",
        "tallyveil / this",
        "peak MiB",
        "bytes per row above the input",
    )
    return Table("Counts in 0..80 at epsilon 1", columns, lines)


def run(quick: bool) -> Result:
    array_sizes = (10_000, 100_000, 1_000_000) if quick else (100_000, 1_000_000, 10_000_000)
    file_sizes = (10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for ours, sizes in zip(BESIDE, (array_sizes, file_sizes), strict=True):
            found += [
                measured(kind, rows, Path(folder))
                for rows in sizes
                for kind in (ours, BESIDE[ours])
            ]
    kinds = [kind for pair in BESIDE.items() for kind in pair]
    own = {kind: [row for row in found if row["kind"] == kind] for kind in kinds}
    seconds = {k: ([r["rows"] for r in own[k]], [r["seconds"] for r in own[k]]) for k in kinds}
    memory = {
        k: ([r["rows"] for r in own[k]], [r["peak_bytes"] / 2**20 for r in own[k]]) for k in kinds
    }
    growth = {f"{kind}, seconds against rows": exponent(*seconds[kind]) for kind in kinds}
    large = own["tallyveil array"][-2:]
    memory_growth = exponent(*zip(*((r["rows"], r["peak_bytes"]) for r in large), strict=True))
    growth["tallyveil array, peak memory against rows"] = memory_growth
    return Result(
        question="How fast and how large is a whole table?",
        method="Rates and growth are those of wall time, each run in a process of its own. A CSV "
        "is read, privatized and written as a release folder with its certificate, report and "
        "checksums; the floor beside it only copies the file.",
        tables=[table(found)],
        bars=[
            Bar(
                "memory grows at most linearly with rows (exponent at most 1.1)",
                f"{memory_growth:.2f}",
                memory_growth <= 1.1,
            )
        ],
        plots=[
            Plot("Time", "rows", "seconds", seconds),
            Plot("Memory", "rows", "peak MiB", memory),
        ],
        exponents=growth,
        raw=found,
    )


def main(arguments: list[str] | None = None) -> int:
    given = options(__doc__).parse_args(arguments)
    return conduct("throughput", lambda: run(given.quick), given)


if __name__ == "__main__":
    sys.exit(main())
