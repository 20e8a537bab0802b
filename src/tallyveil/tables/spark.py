"""Tables of Spark: rows are looked at, drawn and written by tasks, and stay where they are.

Five kinds of jobs release counts. The first reads the table: counts are tallied, and kept with
their labels and hashes of these, encrypted, in a private folder; the second compares the hashes.
The third draws what was kept; of several attempts of a task Spark takes the word of one, so no
row has two draws. Spark itself writes nothing. The fourth counts digits of random words, and the
fifth writes parts of the published table. No rows pass between Java and Python, unless the table
is no plain file. One job counts microdata, or two where the rows of each person are bounded. Rows
that are needed in one place are brought here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, Tally
from tallyveil.errors import TableError, UsageError
from tallyveil.fingerprint import fingerprint
from tallyveil.tables import spark_counting, spark_jobs, spark_staging, spark_tasks
from tallyveil.tables.answers import read_answer
from tallyveil.tables.arrow import ArrowTable
from tallyveil.tables.arrow_file import is_plain
from tallyveil.tables.arrow_write import bound_file
from tallyveil.tables.base import CountArray, Order, Table
from tallyveil.tables.categories import describe_repeat
from tallyveil.tables.counting import Counting, PersonBound
from tallyveil.tables.distributed import (
    KEPT,
    CountRange,
    DistributedCounts,
    DistributedTable,
    DrawRows,
    LabelFacts,
    PrivateRoom,
    Tallied,
    choose_kind,
)
from tallyveil.tables.spark_files import HASHES, LABELS, open_labels
from tallyveil.tables.spark_parquet import ReadFiles, cut_files
from tallyveil.tables.spark_parts import KeptTable, SparkParts, StagedFrame
from tallyveil.tables.totals import join_levels

__all__ = ["SparkTable"]

BUCKET_BYTES, PERSON_BYTES, MOST_BUCKETS = 1 << 26, 1 << 22, 1 << 8
"""Bytes of a table whose hashes are compared together, or whose persons are; the most buckets."""


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
        ranges: Mapping[str, CountRange],
        labels: Sequence[str],
        keys: Sequence[str],
        room: PrivateRoom,
    ) -> tuple[Tallied, LabelFacts]:
        """Look at every row, once: check counts, look at `labels`, and keep both, encrypted."""
        for name in labels:
            if not is_plain(self._empty.table.schema.field(name).type):
                raise TableError(f"Column {name!r} has a type that is not published: drop it.")
        names, buckets = (*labels, *ranges), self._count_buckets((*labels, *ranges), BUCKET_BYTES)
        look = spark_tasks.Survey(dict(ranges), tuple(labels), tuple(keys), buckets, room)
        parts: list[spark_tasks.Facts] = self._look(names, look, room)
        self._require_kept(room.folder, parts)
        self.kept = KeptTable(
            tuple(own.file for own in parts),
            tuple(own.batch_rows for own in parts),
            tuple(ranges),
            choose_kind(own.upper for own in ranges.values()),
            sum(own.label_bytes for own in parts),
            room.seal,
        )
        if keys and self.rows:
            self._compare(room, keys, buckets)
        tallied = {name: _add_tallies(name, parts, own) for name, own in ranges.items()}
        return tallied, {name: join_levels(p.labels[name] for p in parts) for name in labels}

    def _look(self, names: Sequence[str], task: spark_tasks.Task, room: PrivateRoom) -> list[Any]:
        """What a task says of some columns of every partition, or piece of a file, in order."""
        files = spark_jobs.list_files(self.frame, names)
        spark_jobs.require_parquet(files)
        pieces = cut_files(files, self._empty.table.select(names).schema)
        found: list[Any] = [None]
        if pieces is not None:
            read = ReadFiles(task, tuple(names), pieces)
            found = spark_jobs.collect_numbers(self.frame, read, len(pieces), room)
        if None in found:
            found = spark_jobs.collect_rows(self.frame, names, task, room)
        return sorted(found, key=lambda own: int(own.partition))

    def _count_buckets(self, names: Sequence[str], each: int) -> int:
        """How many buckets rows are shared out to, so that one is not too much for a task."""
        size = spark_jobs.estimate_bytes(self.frame, names)
        return min(max(1, size // each), MOST_BUCKETS)

    @staticmethod
    def _require_kept(folder: Path, parts: Sequence[spark_tasks.Facts]) -> None:
        """Refuse where executors run another program, found no counts, or kept no rows here."""
        _require_program(parts)
        for own in parts:
            if own.problem:
                raise TableError(own.problem)
            if not (own.file and (folder / f"{own.file}{LABELS}").is_file()):
                raise spark_jobs.describe_unseen(folder)

    def _compare(self, room: PrivateRoom, keys: Sequence[str], buckets: int) -> None:
        """Refuse rows whose hashes and labels are the same."""
        kept = self._kept
        files = kept.list_files(room.folder)
        find = spark_tasks.FindRepeats(files, kept.seal)
        found = spark_jobs.collect_numbers(self.frame, find, buckets, room)
        for file in files:
            Path(file + HASHES).unlink()
        suspects = np.concatenate(found)[: spark_tasks.MOST_SUSPECTS]
        if not len(suspects):
            return
        task = spark_staging.Compare(files, tuple(keys), suspects.tobytes(), kept.seal, room.key)
        seen: Counter[tuple[int, tuple[str, ...]]] = Counter()
        for own in spark_jobs.collect_numbers(self.frame, task, len(kept.files), room):
            seen.update(own)
        if max(seen.values(), default=0) > 1:
            raise describe_repeat("A row", keys)

    def count_cells(self, counting: Counting, room: PrivateRoom) -> Integers:
        """Count rows of microdata in public categories, where they are."""
        counting.count(self._empty)  # refuses columns that are not there
        task = spark_counting.CountCells(counting)
        parts: list[spark_counting.Said] = self._ask(counting.columns, task, room)
        counting.require_types(own.kinds for own in parts)
        found = (own.counts for own in parts if own.counts is not None)
        return sum(found, np.zeros(len(counting.categories), np.int64))

    def count_bounded(
        self, counting: Counting, bound: PersonBound, room: PrivateRoom
    ) -> tuple[Integers, Integers]:
        """The same with so many rows of each person, and with all of them.

        Rows of one person come together in one bucket, encrypted, and are chosen there.
        """
        counting.count_bounded(self._empty, bound)  # refuses columns that are not there
        names = tuple(dict.fromkeys((*counting.columns, bound.column)))
        buckets = self._count_buckets(names, PERSON_BYTES)
        share = spark_counting.ShareOut(counting, bound.column, buckets, room)
        parts = self._ask(names, share, room)
        counting.require_types(own.kinds for own in parts)
        files = tuple(path.name for path in self._list_said(parts, room))
        choose = spark_counting.CountPersons(files, bound, len(counting.categories), room)
        found = spark_jobs.collect_numbers(self.frame, choose, buckets, room)
        counts, every = (np.sum(own, axis=0) for own in zip(*found, strict=True))
        return counts, every

    def bring(self, names: Sequence[str], room: PrivateRoom) -> Table:
        """Bring some columns of all rows here, in the order of the partitions."""
        parts = self._ask(names, spark_counting.HandOver(room), room)
        empty = self._empty.table.select(list(names))
        return read_answer(open_labels(self._list_said(parts, room), room.seal, empty.schema))

    def _ask(
        self, names: Sequence[str], task: spark_tasks.Task, room: PrivateRoom
    ) -> list[spark_counting.Said]:
        """What a task says of some columns of every partition, in order; raises what is wrong."""
        parts: list[spark_counting.Said] = self._look(names, task, room)
        _require_program(parts)
        for own in parts:
            if own.problem:
                raise TableError(own.problem)
        return parts

    @staticmethod
    def _list_said(parts: Sequence[spark_counting.Said], room: PrivateRoom) -> list[Path]:
        """The files that tasks say they wrote, which must be seen here."""
        paths = [room.folder / own.file for own in parts]
        if not all(path.is_file() for path in paths):
            raise spark_jobs.describe_unseen(room.folder)
        return paths

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
        kept = self._kept
        room = PrivateRoom(folder, kept.seal)
        for name in spark_jobs.collect_numbers(self.frame, task, len(kept.files), room):
            if not (name and (folder / name).is_file()):
                raise spark_jobs.describe_unseen(folder)

    def stage(self, folder: Path, draw: DrawRows) -> StagedFrame:
        """Draw every row once, into `folder`; the table is not looked at again."""
        kept = self._kept
        files = kept.list_files(folder / KEPT)
        task = spark_staging.Draw(files, str(folder), kept.columns, kept.kind, draw, kept.seal)
        room = PrivateRoom(folder, kept.seal)
        drawn = spark_jobs.collect_numbers(self.frame, task, len(files), room)
        return StagedFrame.read(self.frame, room, kept, draw.kinds, drawn)

    def build_released(
        self, counts: Mapping[str, Any], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Give the published table, which tasks write."""
        (staged,) = {column.staged for column in counts.values()}
        return SparkParts(self, staged, dict(counts), tuple(keep))

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Build a table with one row for each category, here."""
        return self._empty.build_grouped(by, labels, counts)

    def native(self) -> Any:
        """Give the DataFrame."""
        return self.frame


def _require_program(parts: Sequence[Any]) -> None:
    """Refuse where executors run another program."""
    if {own.program for own in parts} - {fingerprint()}:
        raise UsageError(
            "The executors run another version of Tallyveil: install this one there as well."
        )


def _add_tallies(
    name: str, parts: Sequence[spark_tasks.Facts], known: CountRange
) -> tuple[DistributedCounts, int]:
    """The histogram of a column, and how many counts lie above, from all partitions."""
    histogram = np.zeros(known.size, np.int64)
    for own in parts:
        tally = own.tallies[name]
        if isinstance(tally, Tally):
            histogram[tally.values] += tally.rows
        else:
            histogram += tally
    ordered = bool(parts) and _is_ordered([own.rules[name] for own in parts])
    return DistributedCounts(histogram, ordered), sum(own.above[name] for own in parts)


def _is_ordered(rules: Sequence[tuple[bool, bool, bool]]) -> bool:
    """Whether all partitions rise, or all fall, and some counts differ."""
    rises, falls, differs = zip(*rules, strict=True)
    return (all(rises) or all(falls)) and any(differs)
