"""Long tables from file to file, beside a plain copy of the same file.

    python -m benchmarks scale [--quick] [--json FILE] [--rows N] [--folder DIR]

Counts in 0..80 at epsilon 1, with the default method. Parquet files hold an identifier that is
not sorted and a count; CSV files two columns of labels and a count. Every run has a process of its
own, bound to one core. `privatize` writes the whole release folder: it checks every count, compares
all rows, draws, estimates the distribution, matches ranks and writes. A plain copy only reads and
writes the rows with pyarrow, in batches. Processor time decides, because it does not depend on what
else the machine does; wall time is shown beside it. Peak memory is that of the whole process. A
gibibyte is touched before every run, so that none pays for memory that a host has to give first.

Bars: Parquet at most 2.5 times a plain streaming copy, under 1 GiB; CSV at most 3 times pyarrow's
reading and writing; `check` at most 2 times reading and hashing the data file; processor time grows
with the rows like rows^1.05 at the most. Exits with 1 where one is missed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import (
    Bar,
    Plot,
    Result,
    Table,
    compiled_environment,
    conduct,
    exponent,
    options,
)

STEP = 1 << 18
PARQUET, PARQUET_COPY = "tallyveil, Parquet", "plain copy, Parquet"
CSV, CSV_COPY = "tallyveil, CSV", "plain copy, CSV"
CHECK, READ = "tallyveil check, Parquet", "reading and hashing, Parquet"
CSV_CHECK, CSV_READ = "tallyveil check, CSV", "reading and hashing, CSV"
BARS = {
    (PARQUET, PARQUET_COPY): 2.5,
    (CSV, CSV_COPY): 3.0,
    (CHECK, READ): 2.0,
    (CSV_CHECK, CSV_READ): 2.0,
}
LARGEST_PEAK = 1 << 30
LARGEST_EXPONENT = 1.05
SCRIPT = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
kind, source, target = sys.argv[1:]
wall = time.perf_counter()
if kind.startswith("tallyveil check"):
    from tallyveil.check.package import check_package
    assert all(found.ok for found in check_package(target)), check_package(target)
elif kind.startswith("tallyveil"):
    from tallyveil.request.options import ReleaseOptions
    from tallyveil.release.transaction import publish_table
    asked = ReleaseOptions(count="cases", upper=80, epsilon=1, keep="all", out=target)
    publish_table(source, asked, command="benchmark")
else:
    import pyarrow as pa
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    import hashlib
    if kind.startswith("reading"):
        with open(source, "rb") as file:
            hashlib.file_digest(file, "sha256")
    if kind.endswith("CSV"):
        from pyarrow import csv
        table = csv.read_csv(source)
        if kind.startswith("plain copy"):
            csv.write_csv(table, target)
    else:
        import pyarrow.parquet as pq
        if kind == "plain copy, Parquet":
            with pq.ParquetFile(source, pre_buffer=False) as file:
                with pq.ParquetWriter(target, file.schema_arrow) as writer:
                    for batch in file.iter_batches(1 << 20, use_threads=False):
                        writer.write_batch(batch, row_group_size=1 << 20)
        else:
            with pq.ParquetFile(source, pre_buffer=False) as file:
                for batch in file.iter_batches(1 << 16, use_threads=False):
                    pass
with open("/proc/self/status") as file:
    peak = 1024 * int(file.read().split("VmHWM:")[1].split()[0])
print(time.process_time(), time.perf_counter() - wall, peak)
"""


def make_counts(rows: int, seed: int) -> np.ndarray:
    return np.minimum(np.random.default_rng(seed).geometric(0.15, rows) - 1, 80)


def write_parquet(path: Path, rows: int, first: int = 0) -> None:
    """Identifiers that are all different and in no order, and counts."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.int64()), ("cases", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, STEP):
            size = min(STEP, rows - start)
            numbers = np.arange(first + start, first + start + size, dtype=np.uint64)
            spread = (numbers * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(1)
            columns = [spread.astype(np.int64), make_counts(size, first + start)]
            writer.write_table(pa.table(columns, schema=schema))


def write_csv(path: Path, rows: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write("area,region,cases\n")
        for start in range(0, rows, STEP):
            size = min(STEP, rows - start)
            numbered = enumerate(make_counts(size, start).tolist(), start)
            file.writelines(f"area {i},region {i % 50},{n}\n" for i, n in numbered)


def measure(kind: str, rows: int, source: Path, target: Path) -> dict[str, Any]:
    """Processor and wall seconds and peak bytes of one run in a process of its own."""
    np.ones(LARGEST_PEAK // 8)  # a virtual machine's host may have taken free memory back
    words = [sys.executable, "-c", SCRIPT, kind, str(source), str(target)]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=compiled_environment()
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, wall, peak = map(float, done.stdout.split())
    return {"kind": kind, "rows": rows, "seconds": seconds, "wall": wall, "peak_bytes": peak}


def measure_size(rows: int, csv_rows: int, folder: Path) -> list[dict[str, Any]]:
    """Everything at one size; files are removed again."""
    source, out, copy = folder / "cases.parquet", folder / "release", folder / "copy"
    write_parquet(source, rows)
    found = [
        measure(PARQUET_COPY, rows, source, copy),
        measure(PARQUET, rows, source, out),
        measure(READ, rows, out / "data.parquet", copy),
        measure(CHECK, rows, source, out),
    ]
    shutil.rmtree(out)
    source.unlink()
    copy.unlink()
    if csv_rows:
        source = folder / "cases.csv"
        write_csv(source, csv_rows)
        found += [
            measure(CSV_COPY, csv_rows, source, copy),
            measure(CSV, csv_rows, source, out),
            measure(CSV_READ, csv_rows, out / "data.csv", copy),
            measure(CSV_CHECK, csv_rows, source, out),
        ]
        shutil.rmtree(out)
        source.unlink()
        copy.unlink()
    return found


def tabulate(found: list[dict[str, Any]]) -> Table:
    by = {(row["kind"], row["rows"]): row for row in found}
    copies = dict(BARS.keys())
    lines = []
    for row in found:
        floor = by.get((copies.get(row["kind"], ""), row["rows"]))
        ratio = "" if floor is None else f"{row['seconds'] / floor['seconds']:.2f}"
        lines.append(
            (
                row["kind"],
                f"{row['rows']:,}",
                f"{row['seconds']:.2f}",
                f"{row['wall']:.2f}",
                ratio,
                f"{row['peak_bytes'] / 2**20:,.0f}",
            )
        )
    columns = ("", "rows", "processor s", "wall s", "times plain", "peak MiB")
    return Table("Counts in 0..80 at epsilon 1, one core", columns, lines)


def judge(found: list[dict[str, Any]], growth: dict[str, float]) -> list[Bar]:
    bars = []
    for (ours, floor), most in BARS.items():
        rows = max(row["rows"] for row in found if row["kind"] == ours)
        own, plain = (
            next(row for row in found if (row["kind"], row["rows"]) == (kind, rows))
            for kind in (ours, floor)
        )
        ratio = own["seconds"] / plain["seconds"]
        words = f"{ours}, {rows:,} rows: at most {most:g} times {floor}"
        bars.append(Bar(words, f"{ratio:.2f} times", ratio <= most))
        if ours == PARQUET:
            peak = own["peak_bytes"]
            bars.append(
                Bar(f"{ours}, {rows:,} rows: less than 1 GiB", f"{peak / 2**20:,.0f} MiB",
                    peak < LARGEST_PEAK)
            )  # fmt: skip
    for label, k in growth.items():
        if label.startswith("tallyveil"):
            bars.append(Bar(f"{label}: exponent at most 1.05", f"{k:.2f}", k <= LARGEST_EXPONENT))
    return bars


def run(rows: int, folder: Path | None) -> Result:
    sizes = [rows // 100, rows // 10, rows]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        found = [
            one
            for size in sizes
            for one in measure_size(size, size if size <= 10_000_000 else 0, Path(place))
        ]
    kinds = dict.fromkeys(row["kind"] for row in found)
    own = {kind: [row for row in found if row["kind"] == kind] for kind in kinds}
    seconds = {k: ([r["rows"] for r in own[k]], [r["seconds"] for r in own[k]]) for k in kinds}
    memory = {
        k: ([r["rows"] for r in own[k]], [r["peak_bytes"] / 2**20 for r in own[k]]) for k in kinds
    }
    last = {k: tuple(part[-2:] for part in seconds[k]) for k in kinds}  # beyond what starting costs
    growth = {f"{kind}, processor time against rows": exponent(*last[kind]) for kind in kinds}
    return Result(
        question="How long do tables of up to a hundred million rows take?",
        method="Processor seconds of one run in a process of its own, bound to one core; wall "
        "seconds beside them. Exponents are over the last tenfold step. Starting the "
        "program is part of every figure; its modules are compiled, as those of an installed one.",
        tables=[tabulate(found)],
        bars=judge(found, growth),
        plots=[
            Plot("Time", "rows", "processor seconds", seconds),
            Plot("Memory", "rows", "peak MiB", memory),
        ],
        exponents=growth,
        raw=found,
    )


def main(arguments: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument(
        "--rows", type=int, default=10_000_000, help="rows of the largest table, up to 100,000,000"
    )
    parser.add_argument("--folder", type=Path, help="where files are made; needs 40 bytes a row")
    given = parser.parse_args(arguments)
    rows = min(given.rows, 1_000_000) if given.quick else given.rows
    return conduct("scale", lambda: run(rows, given.folder), given)


if __name__ == "__main__":
    sys.exit(main())
