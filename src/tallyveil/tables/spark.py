"""Tables of Spark: rows are looked at, drawn and written by tasks, and stay where they are.

Five kinds of jobs: counts are tallied; labels are compared; rows are drawn into a private folder,
through Spark's own committer; digits of their random words are counted; parts of the published
table are written. No job after the third reads the table again, so nothing can be drawn twice: of
a task that is repeated, Spark commits one attempt.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.errors import TableError, UsageError
from tallyveil.fingerprint import fingerprint
from tallyveil.tables import spark_jobs, spark_staging, spark_tasks
from tallyveil.tables.arrow import ArrowTable
from tallyveil.tables.arrow_file import is_plain
from tallyveil.tables.arrow_write import bound_file
from tallyveil.tables.base import Order, Table
from tallyveil.tables.categories import describe_repeat
from tallyveil.tables.distributed import (
    DistributedCounts,
    DistributedTable,
    DrawRows,
    HandedOut,
    LabelFacts,
    PartedTable,
    PartFacts,
    Seal,
    count_part_rows,
    list_slices,
    name_parts,
    refuse_changed,
)

__all__ = ["SparkTable"]

BUCKET_ROWS = 1 << 21
"""Hashes that one task compares."""

TRIES = 4
"""Tasks that try whether a folder can be written."""

MASK = (1 << 64) - 1


@dataclass(eq=False)
class SparkTable(DistributedTable):
    """A Spark DataFrame. What two looks at it have seen is compared by keyed hashes."""

    frame: Any
    key: int = 0
    tallied: int = -1
    label_bytes: int = 0
    marks: list[int] = field(default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        if not spark_jobs.is_repeatable(self.frame):
            raise TableError(
                "The DataFrame gives other rows whenever it is worked out, such as with rand(). "
                "Write it to files first."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return tuple(self.frame.columns)

    @property
    def rows(self) -> int:
        """How many rows were tallied."""
        return self.tallied

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return self._empty.type_of(name)

    @cached_property
    def _empty(self) -> ArrowTable:
        return ArrowTable(spark_jobs.read_schema(self.frame).empty_table(), "parquet")

    def batches(self, size: int = spark_jobs.ROWS_AT_ONCE) -> Iterator[Table]:
        """Give the columns, and no rows: they are not brought here."""
        yield self._empty

    def tally(self, uppers: Mapping[str, int], key: int) -> dict[str, tuple[Any, int]]:
        """Check every count, and give the histograms of 0..upper and how many lie above."""
        self.key = key
        histograms = {name: np.zeros(upper + 1, np.int64) for name, upper in uppers.items()}
        above = dict.fromkeys(uppers, 0)
        task = spark_tasks.Tally(dict(uppers), key)
        rules: dict[str, list[tuple[bool, bool, bool]]] = {name: [] for name in uppers}
        results = spark_jobs.collect_results(self._select(uppers), task)
        for problem, counted, over, seen, mark in results:
            spark_tasks.require_counts(problem)
            for name, own in counted.items():
                histograms[name] += own
                above[name] += over[name]
                rules[name].append(seen[name])
            self.marks[0] = (self.marks[0] + mark) & MASK
        self.tallied = int(next(iter(histograms.values())).sum())
        return {
            name: (DistributedCounts(found, _is_ordered(rules[name])), above[name])
            for name, found in histograms.items()
        }

    def inspect_labels(self, names: Sequence[str], keys: Sequence[str]) -> LabelFacts:
        """Look at the public columns `names`; refuse two rows with the same labels of `keys`."""
        for name in names:
            if not is_plain(self._empty.table.schema.field(name).type):
                raise TableError(f"Column {name!r} has a type that is not published: drop it.")
        if not names:
            return {}
        buckets = max(1, -(-self.rows // BUCKET_ROWS))
        look = spark_tasks.Inspect(tuple(names), tuple(keys), buckets, self.key)
        schema = "bucket long, part binary"
        steps: list[Any] = [(look, schema, (buckets, "bucket") if keys else None)]
        steps += [(spark_tasks.FindRepeats(), schema, None)] if keys else []
        suspects: list[Any] = []
        found: dict[str, list[Any]] = {name: [] for name in names}
        for bucket, part in spark_jobs.collect_rows(self._select(names), steps):
            if bucket >= 0:
                suspects.append(np.frombuffer(bytes(part), np.uint64))
                continue
            size, mark, facts = pickle.loads(bytes(part))
            self.label_bytes += size
            self.marks[1] = (self.marks[1] + mark) & MASK
            for name, own in facts.items():
                found[name].append(own)
        if any(map(len, suspects)):
            self._compare(keys, np.concatenate(suspects)[: spark_tasks.MOST_SUSPECTS])
        return {name: _join_totals(own) for name, own in found.items()}

    def _compare(self, keys: Sequence[str], suspects: Any) -> None:
        """Refuse rows whose hashes and labels are the same, and rows that are there only once."""
        task = spark_tasks.Compare(tuple(keys), suspects.tobytes(), self.key)
        seen: Counter[tuple[int, tuple[str, ...]]] = Counter()
        for own in spark_jobs.collect_results(self._select(keys), task):
            seen.update(own)
        if max(seen.values(), default=0) > 1:
            raise describe_repeat("A row", keys)
        often = Counter(number for number, _ in seen)
        if any(often[number] < 2 for number in suspects.tolist()):
            refuse_changed()  # what was seen twice is no longer there twice

    def try_folder(self, folder: Path) -> None:
        """Make sure that executors can write to a folder, and run this very program."""
        task = spark_tasks.Try(str(folder))
        found = spark_jobs.collect_numbers(self.frame, task, TRIES)
        made = {name for name, _ in found}
        if "" in made or not all((folder / name).is_file() for name in made):
            raise UsageError(
                f"The executors do not see {str(folder.parent)!r}, or may not write there: 'out' "
                "must lie on a file system that they share with this machine, as the same user."
            )
        for name in made:
            (folder / name).unlink()
        if {own for _, own in found} != {fingerprint()}:
            raise UsageError(
                "The executors run another version of Tallyveil: install this one there as well."
            )

    def bound_room(self, counts: int) -> int:
        """Bound the bytes of the published table and of the rows staged for it."""
        columns = len(self.names)
        staged = self.label_bytes + self.rows * (16 * counts + 1) + (1 << 20)
        made = bound_file(self.label_bytes + 8 * self.rows * counts, self.rows, columns)
        return made + staged + staged // 8

    def stage(
        self,
        folder: Path,
        keep: Sequence[str],
        uppers: Mapping[str, int],
        draw: DrawRows,
        seal: Seal,
    ) -> StagedFrame:
        """Draw every row once, into `folder`; refuse a table that is not the one tallied."""
        labels = tuple(name for name in keep if name not in uppers)
        task = spark_staging.Draw(dict(uppers), labels, draw, seal, self.key)
        columns = [f"{word}{at} binary" for at in range(len(uppers)) for word in ("draw", "word")]
        schema = ", ".join(["rows long", "facts binary", "labels binary", *columns])
        spark_jobs.write_once(self._select((*labels, *uppers)), task, schema, folder / "rows")
        found = StagedFrame.read(self, folder, tuple(uppers), seal)
        if sum(map(sum, found.batch_rows)) != self.rows or found.marks != self.marks:
            refuse_changed()
        return found

    def build_released(
        self, counts: Mapping[str, Any], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Give the published table, which tasks write."""
        (staged,) = {column.staged for column in counts.values()}
        return SparkParts(self, staged, dict(counts), tuple(keep))

    def native(self) -> Any:
        """Give the DataFrame."""
        return self.frame

    def _select(self, names: Sequence[str] | Mapping[str, Any]) -> Any:
        quoted = ("`" + name.replace("`", "``") + "`" for name in names)
        return self.frame.select(*quoted)


def _is_ordered(rules: Sequence[tuple[bool, bool, bool]]) -> bool:
    """Whether all partitions rise, or all fall, and some counts differ."""
    rises, falls, differs = zip(*rules, strict=True)
    return (all(rises) or all(falls)) and any(differs)


def _join_totals(
    parts: Sequence[tuple[str | None, int, tuple[str, ...]]],
) -> tuple[str | None, int]:
    """What the partitions say of one column: a label that stands for all others, and levels."""
    seen = {label for _, _, labels in parts for label in labels}
    total = next((total for total, _, _ in parts if total is not None), None)
    return (total if len(seen) > 1 else None), max((levels for _, levels, _ in parts), default=1)


def _add_counts(parts: Sequence[tuple[Any, Any] | None]) -> tuple[Integers, Integers]:
    """Values and how often they occur, from several parts of a table."""
    held = [part for part in parts if part is not None]
    values = np.concatenate([values for values, _ in held])
    present, at = np.unique(values, return_inverse=True)
    rows = np.zeros(len(present), np.int64)
    np.add.at(rows, at, np.concatenate([rows for _, rows in held]))
    return present.astype(np.int64), rows


@dataclass(frozen=True, eq=False)
class StagedFrame:
    """Rows with their draws in a private folder; a file for each partition of the table."""

    table: SparkTable
    folder: Path
    columns: tuple[str, ...]
    files: tuple[spark_staging.StagedFile, ...]
    batch_rows: tuple[tuple[int, ...], ...]
    bins: Mapping[str, Integers]
    marks: list[int]

    @classmethod
    def read(
        cls, table: SparkTable, folder: Path, columns: tuple[str, ...], seal: Seal
    ) -> StagedFrame:
        """What the committed files say of themselves."""
        paths = sorted((folder / "rows").glob("part-*.parquet"))
        files = tuple(spark_staging.StagedFile(str(path), seal) for path in paths)
        bins: dict[str, Integers] = {}
        rows, marks = [], [0, 0]
        for file in files:
            own = []
            for row in file.read(["rows", "facts"]):
                own.append(row["rows"])
                if row["facts"]:
                    counted, marked = pickle.loads(row["facts"])
                    marks = [(a + b) & MASK for a, b in zip(marks, marked, strict=True)]
                    for name, sizes in counted.items():
                        bins[name] = bins[name] + sizes if name in bins else sizes
            rows.append(tuple(own))
        return cls(table, folder, columns, files, tuple(rows), bins, marks)

    def count_digits(
        self, name: str, prefixes: Sequence[tuple[int, int, int, int]]
    ) -> list[tuple[Integers, Integers]]:
        """Which next digits occur, and in how many rows, for each prefix."""
        at = self.columns.index(name)
        task = spark_staging.CountDigits(self.files, at, tuple(prefixes))
        parts = spark_jobs.collect_numbers(self.table.frame, task, len(self.files))
        return [_add_counts(own) for own in zip(*parts, strict=True)]

    def cut_parts(self) -> list[tuple[tuple[int, int, int, int], ...]]:
        """For each part of the published table (file, batch, first row, last row) in order."""
        offsets = [0, *accumulate(map(len, self.batch_rows))]
        whole = [rows for own in self.batch_rows for rows in own]
        file_of = np.repeat(np.arange(len(self.files)), [len(own) for own in self.batch_rows])
        return [
            tuple(
                (int(file_of[batch]), batch - offsets[file_of[batch]], start, stop)
                for batch, start, stop in part
            )
            for part in list_slices(whole, count_part_rows(self.table.rows))
        ]


@dataclass(frozen=True, eq=False)
class SparkParts(PartedTable):
    """A published table that tasks write as a folder of Parquet files."""

    source: SparkTable
    staged: StagedFrame
    released: Mapping[str, HandedOut]
    keep: tuple[str, ...]
    path: Path | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return self.keep

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.source.rows

    @property
    def parts(self) -> int:
        """How many files there are."""
        return -(-self.rows // count_part_rows(self.rows))

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return "integer" if name in self.released else self.source.type_of(name)

    def write_parts(self, folder: Path) -> list[PartFacts]:
        """Write every file into `folder`, and give the facts of each, in order."""
        names, staged = name_parts(self.parts), self.staged
        task = spark_staging.Publish(
            staged.files,
            tuple(staged.cut_parts()),
            {name: self.released[name].hand_out for name in staged.columns},
            {name: len(self.released[name].histogram) for name in staged.columns},
            self.keep,
            (str(staged.folder), str(folder)),
            names,
        )
        found = {}
        histograms = {name: np.zeros_like(own.histogram) for name, own in self.released.items()}
        for number, size, sha256, counted in spark_jobs.collect_numbers(
            self.source.frame, task, len(names)
        ):
            found[number] = PartFacts(names[number], size, sha256)
            for name, rows in counted.items():
                histograms[name] += rows
        if sorted(found) != list(range(len(names))) or any(
            (histograms[name] != own.histogram).any() for name, own in self.released.items()
        ):
            refuse_changed()
        return [found[number] for number in sorted(found)]

    def reopen(self, path: Path) -> Table:
        """Give the same table, now that it lies at `path`."""
        return SparkParts(self.source, self.staged, self.released, self.keep, path)

    def native(self) -> Any:
        """Give the published table as a DataFrame."""
        if self.path is None:
            raise UsageError("The table is not written yet.")
        return spark_jobs.open_published(self.source.frame, self.path)
