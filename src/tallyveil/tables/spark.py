"""Tables of Spark: rows are looked at, drawn and written by tasks, and stay where they are.

Five kinds of jobs. The first reads the table: counts are tallied, and kept with their labels and
hashes of these, encrypted, in a private folder; the second compares the hashes. The third draws
what was kept; of several attempts of a task Spark takes the word of one, so no row has two draws.
Spark itself writes nothing. The fourth counts digits of random words, and the fifth writes parts
of the published table. No rows pass between Java and Python, unless the table is no plain file.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    KEPT,
    DistributedCounts,
    DistributedTable,
    DrawRows,
    HandedOut,
    LabelFacts,
    PartedTable,
    PartFacts,
    Seal,
    Tallied,
    count_part_rows,
    list_slices,
    name_parts,
    refuse_changed,
)
from tallyveil.tables.spark_files import BINS, DRAWS, HASHES, LABELS, read_pieces
from tallyveil.tables.spark_parquet import SurveyFiles, cut_files

__all__ = ["SparkTable"]

BUCKET_BYTES, MOST_BUCKETS = 1 << 26, 1 << 8
"""Bytes of a table whose hashes are compared together, and the most buckets of them."""


@dataclass(eq=False)
class SparkTable(DistributedTable):
    """A Spark DataFrame. It is read once; what was looked at is kept in a private folder."""

    frame: Any
    kept: KeptTable | None = None

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
        """How many rows were looked at."""
        return 0 if self.kept is None else self.kept.rows

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return self._empty.type_of(name)

    @cached_property
    def _empty(self) -> ArrowTable:
        return ArrowTable(spark_jobs.read_schema(self.frame).empty_table(), "parquet")

    def batches(self, size: int = spark_jobs.ROWS_AT_ONCE) -> Iterator[Table]:
        """Give the columns, and no rows: they are not brought here."""
        yield self._empty

    def survey(
        self,
        uppers: Mapping[str, int],
        labels: Sequence[str],
        keys: Sequence[str],
        place: tuple[Path, Seal, int],
    ) -> tuple[Tallied, LabelFacts]:
        """Look at every row, once: check counts, look at `labels`, and keep both, encrypted."""
        for name in labels:
            if not is_plain(self._empty.table.schema.field(name).type):
                raise TableError(f"Column {name!r} has a type that is not published: drop it.")
        names, (folder, seal, key) = (*labels, *uppers), place
        size = spark_jobs.estimate_bytes(self.frame, names)
        buckets = min(max(1, size // BUCKET_BYTES), MOST_BUCKETS)
        look = spark_tasks.Survey(
            dict(uppers), tuple(labels), tuple(keys), buckets, str(folder), seal, key
        )
        files = spark_jobs.list_files(self.frame, names)
        spark_jobs.require_parquet(files)
        pieces = cut_files(files, self._empty.table.select(names).schema)
        parts: list[spark_tasks.Facts] = []
        if pieces is not None:
            parts = spark_jobs.collect_numbers(self.frame, SurveyFiles(look, pieces), len(pieces))
        if pieces is None or any(own.unseen for own in parts):
            parts = spark_jobs.collect_rows(self.frame, names, look)
        parts = sorted(parts, key=lambda own: own.partition)
        self._require_kept(folder, parts)
        self.kept = KeptTable(
            tuple(own.file for own in parts),
            tuple(own.batch_rows for own in parts),
            tuple(uppers),
            sum(own.label_bytes for own in parts),
            seal,
        )
        if keys:
            self._compare(folder, keys, buckets, key)
        tallied = {name: _add_tallies(name, parts, upper) for name, upper in uppers.items()}
        return tallied, {name: _join_totals([p.labels[name] for p in parts]) for name in labels}

    @staticmethod
    def _require_kept(folder: Path, parts: Sequence[spark_tasks.Facts]) -> None:
        """Refuse where executors run another program, found no counts, or kept no rows here."""
        if {own.program for own in parts} - {fingerprint()}:
            raise UsageError(
                "The executors run another version of Tallyveil: install this one there as well."
            )
        for own in parts:
            spark_tasks.require_counts(own.problem)
            if not (own.file and (folder / f"{own.file}{LABELS}").is_file()):
                raise _describe_unseen(folder)

    def _compare(self, folder: Path, keys: Sequence[str], buckets: int, key: int) -> None:
        """Refuse rows whose hashes and labels are the same."""
        kept = self._kept
        files = kept.list_files(folder)
        find = spark_tasks.FindRepeats(files, kept.seal)
        found = spark_jobs.collect_numbers(self.frame, find, buckets)
        for file in files:
            Path(file + HASHES).unlink()
        suspects = np.concatenate(found)[: spark_tasks.MOST_SUSPECTS]
        if not len(suspects):
            return
        task = spark_staging.Compare(files, tuple(keys), suspects.tobytes(), kept.seal, key)
        seen: Counter[tuple[int, tuple[str, ...]]] = Counter()
        for own in spark_jobs.collect_numbers(self.frame, task, len(kept.files)):
            seen.update(own)
        if max(seen.values(), default=0) > 1:
            raise describe_repeat("A row", keys)

    @property
    def _kept(self) -> KeptTable:
        if self.kept is None:
            raise UsageError("The table was not looked at yet.")
        return self.kept

    def bound_room(self, counts: int) -> int:
        """Bound the bytes of the published table, of its parts in the making, and of the draws."""
        size = self._kept.label_bytes
        made = bound_file(size + 8 * self.rows * counts, self.rows, len(self.names))
        return made + self.rows * 16 * counts + (1 << 20)

    def require_seen(self, folder: Path) -> None:
        """Refuse a folder where executors cannot write files that are seen here."""
        task = spark_tasks.WriteFile(str(folder))
        for name in spark_jobs.collect_numbers(self.frame, task, len(self._kept.files)):
            if not (name and (folder / name).is_file()):
                raise _describe_unseen(folder)

    def stage(self, folder: Path, draw: DrawRows) -> StagedFrame:
        """Draw every row once, into `folder`; the table is not looked at again."""
        kept = self._kept
        files = kept.list_files(folder / KEPT)
        task = spark_staging.Draw(files, str(folder), kept.columns, draw, kept.seal)
        drawn = spark_jobs.collect_numbers(self.frame, task, len(files))
        return StagedFrame.read(self, folder, kept, drawn)

    def build_released(
        self, counts: Mapping[str, Any], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Give the published table, which tasks write."""
        (staged,) = {column.staged for column in counts.values()}
        return SparkParts(self, staged, dict(counts), tuple(keep))

    def native(self) -> Any:
        """Give the DataFrame."""
        return self.frame


def _describe_unseen(folder: Path) -> UsageError:
    return UsageError(
        f"The executors do not see {str(folder.parent)!r}, or may not write there: 'out' must lie "
        "on a file system that they share with this machine, as the same user."
    )


@dataclass(frozen=True)
class KeptTable:
    """Rows that were looked at and are kept, encrypted: two files for each partition."""

    files: tuple[str, ...]
    batch_rows: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    label_bytes: int
    seal: Seal

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(map(sum, self.batch_rows))

    def list_files(self, folder: Path) -> tuple[str, ...]:
        """Where the files are, without their endings."""
        return tuple(str(folder / name) for name in self.files)


def _add_tallies(
    name: str, parts: Sequence[spark_tasks.Facts], upper: int
) -> tuple[DistributedCounts, int]:
    """The histogram of a column, and how many counts lie above, from all partitions."""
    histogram = np.zeros(upper + 1, np.int64)
    for own in parts:
        histogram += own.histograms[name]
    ordered = bool(parts) and _is_ordered([own.rules[name] for own in parts])
    return DistributedCounts(histogram, ordered), sum(own.above[name] for own in parts)


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
    bins: Mapping[str, Integers]

    @classmethod
    def read(
        cls, table: SparkTable, folder: Path, kept: KeptTable, drawn: Sequence[tuple[int, str]]
    ) -> StagedFrame:
        """What was drawn: for each number the name of the files of the attempt that counts."""
        names: dict[int, str] = {}
        bins: dict[str, Integers] = {}
        for number, name in drawn:
            if number in names:
                refuse_changed()
            names[number] = name
            (counted,) = read_pieces(folder / f"{BINS}{name}", kept.seal)
            for column, sizes in pickle.loads(counted).items():
                bins[column] = bins[column] + sizes if column in bins else sizes
        if sorted(names) != list(range(len(kept.files))):
            refuse_changed()
        files = tuple(
            spark_staging.StagedFile(
                f"{label}{LABELS}",
                str(folder / f"{DRAWS}{names[number]}"),
                rows,
                len(kept.columns),
                kept.seal,
            )
            for number, (label, rows) in enumerate(
                zip(kept.list_files(folder / KEPT), kept.batch_rows, strict=True)
            )
        )
        return cls(table, folder, kept.columns, files, bins)

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
        batch_rows = [file.batch_rows for file in self.files]
        offsets = [0, *accumulate(map(len, batch_rows))]
        whole = [rows for own in batch_rows for rows in own]
        file_of = np.repeat(np.arange(len(self.files)), list(map(len, batch_rows)))
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
