"""Long tables from file to file, in ratio to a plain copy of the same file.

    python -m benchmarks scale [--quick] [--rows N] [--format parquet|csv|quoted] [--scratch DIR]

Parquet files hold an identifier that is not sorted and a count, CSV files two columns of labels
and a count; in quoted files every label is quoted and has a comma inside. Both commands are the
public ones: `privatize` writes the whole release folder, `check` checks it. The copies read and
write the rows with pyarrow. Every run is a process on one core; processor time decides, because
it does not depend on what else the machine does. `--rows` gives the rows of the Parquet file; CSV
files have a fifth. A full run needs 4 GB of disk.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import (
    PROGRAM,
    Cost,
    Result,
    Settings,
    Table,
    Target,
    list_words,
    measure_command,
)

STEP = 1 << 18
MIB = 2**20
SINGLE = "import pyarrow as pa; pa.set_cpu_count(1); pa.set_io_thread_count(1)\n"
COPY_CSV = """
import sys
from pyarrow import csv
csv.write_csv(csv.read_csv(sys.argv[1]), sys.argv[2])
"""
READ_CSV = """
import hashlib, sys
from pyarrow import csv
with open(sys.argv[1], "rb") as file:
    hashlib.file_digest(file, "sha256")
csv.read_csv(sys.argv[1])
"""
COPY_PARQUET = """
import sys
import pyarrow.parquet as pq
with pq.ParquetFile(sys.argv[1], pre_buffer=False) as file:
    with pq.ParquetWriter(sys.argv[2], file.schema_arrow) as writer:
        for batch in file.iter_batches(1 << 20, use_threads=False):
            writer.write_batch(batch, row_group_size=1 << 20)
"""
READ_PARQUET = """
import hashlib, sys
import pyarrow.parquet as pq
with open(sys.argv[1], "rb") as file:
    hashlib.file_digest(file, "sha256")
with pq.ParquetFile(sys.argv[1], pre_buffer=False) as file:
    for batch in file.iter_batches(1 << 16, use_threads=False):
        pass
"""


@dataclass(frozen=True)
class Format:
    """A kind of file: what it is compared with, and the targets of ratio and peak memory."""

    suffix: str
    share: float
    copy: str
    read: str
    most: float
    memory: float
    label: str = ""


FORMATS = {
    "parquet": Format("parquet", 1.0, COPY_PARQUET, READ_PARQUET, 2.5, 1024 * MIB),
    "csv": Format("csv", 0.2, COPY_CSV, READ_CSV, 3.0, 600 * MIB, "area {0},region {1},{2}\n"),
    "quoted": Format(
        "csv", 0.2, COPY_CSV, READ_CSV, 3.0, 600 * MIB, '"area, {0}","region, {1}",{2}\n'
    ),
}
MOST_CHECK = 2.0
"""Check may take this many times what reading and hashing the same file takes."""


def list_counts(rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """Give batches of counts in 0..80, and the number of each one's first row."""
    for start in range(0, rows, STEP):
        draw = np.random.default_rng(start).geometric(0.15, min(STEP, rows - start)) - 1
        yield start, np.minimum(draw, 80)


def write_table(path: Path, rows: int, label: str, first: int = 0) -> None:
    """Write a table; a Parquet file if there is no `label`, the form of a line of CSV.

    Identifiers of a Parquet file are made from row numbers, which begin at `first`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if label:
        with path.open("w", encoding="utf-8") as file:
            file.write("area,region,cases\n")
            for start, counts in list_counts(rows):
                numbered = enumerate(counts.tolist(), start)
                file.writelines(label.format(i, i % 50, count) for i, count in numbered)
        return
    schema = pa.schema([("id", pa.int64()), ("cases", pa.int64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start, counts in list_counts(rows):
            numbers = np.arange(first + start, first + start + len(counts), dtype=np.uint64)
            scattered = (numbers * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(1)
            writer.write_table(pa.table([scattered.astype(np.int64), counts], schema=schema))


def run_script(script: str, *paths: Path) -> Cost:
    """Measure a script of pyarrow with one thread."""
    return measure_command([sys.executable, "-c", SINGLE + script, *paths], cores=1)


def measure_format(form: Format, rows: int, folder: Path) -> dict[str, Cost]:
    """Measure the four commands at one size; files are removed again."""
    source, copy = folder / f"cases.{form.suffix}", folder / f"copy.{form.suffix}"
    release = folder / "release"
    write_table(source, rows, form.label)
    np.ones(128 * MIB)  # the host of a virtual machine may have taken free memory back
    costs = {"copy": run_script(form.copy, source, copy)}
    costs["privatize"] = measure_command([*list_words(source, 80), release], cores=1)
    data = release / f"data.{form.suffix}"
    costs["read and hash"] = run_script(form.read, data)
    costs["check"] = measure_command([PROGRAM, "check", release], cores=1)
    shutil.rmtree(release)
    source.unlink()
    copy.unlink()
    return costs


def run(settings: Settings) -> Result:
    """Measure every format at two sizes."""
    largest = settings.rows or (1_000_000 if settings.quick else 100_000_000)
    lines, targets = [], []
    for name, form in FORMATS.items():
        if settings.format not in (None, name):
            continue
        for rows in (int(largest * form.share) // 10, int(largest * form.share)):
            with tempfile.TemporaryDirectory(dir=settings.scratch) as folder:
                costs = measure_format(form, rows, Path(folder))
            ratios = {
                "privatize": costs["privatize"].seconds / costs["copy"].seconds,
                "check": costs["check"].seconds / costs["read and hash"].seconds,
            }
            for command, cost in costs.items():
                ratio = f"{ratios[command]:.2f}" if command in ratios else ""
                peak = f"{cost.peak / MIB:,.0f}"
                seconds = f"{cost.seconds:.2f}", f"{cost.wall:.2f}"
                lines.append((f"{name}, {command}", f"{rows:,}", *seconds, ratio, peak))
        if settings.quick:
            continue  # starting the program is most of what small tables cost
        size, limit = f"{name}, {rows:,} rows", f"{form.memory / MIB:,.0f} MiB"
        copied, checked = ratios["privatize"], ratios["check"]
        peak = costs["privatize"].peak / MIB
        targets += [
            Target.at_most(f"{size}: {form.most:g} times a copy", copied, form.most, " times"),
            Target.at_most(f"{size}: less than {limit}", peak, form.memory / MIB, " MiB"),
            Target.at_most(
                f"{size}: check {MOST_CHECK:g} times reading and hashing",
                checked,
                MOST_CHECK,
                " times",
            ),
        ]
    columns = ("command", "rows", "processor s", "wall s", "ratio", "peak MiB")
    return Result(
        question="How long do tables of up to a hundred million rows take?",
        method="Processor seconds of each command as a process on one core, start-up included. "
        "The ratio of privatize is to a copy of the table with pyarrow, that of check to reading "
        "and hashing the released data file. Labels of quoted files are quoted and hold a comma.",
        tables=[Table("Counts in 0..80 at epsilon 1", columns, lines)],
        targets=targets,
    )
