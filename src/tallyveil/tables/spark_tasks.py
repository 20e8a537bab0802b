"""What tasks look at before anything is drawn. Runs on executors, on Arrow batches; knows no Spark.

A task never says what a row holds: an error is raised without the words of the one before it.
"""

from __future__ import annotations

import os
import pickle
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import Any
from zipimport import zipimporter

import numpy as np

from tallyveil.arrays import Integers, Tally
from tallyveil.errors import TableError
from tallyveil.fingerprint import fingerprint
from tallyveil.tables.arrow import ArrowTable
from tallyveil.tables.base import CountArray
from tallyveil.tables.counts import RowError, clip_counts
from tallyveil.tables.distributed import CountRange, PrivateRoom, Seal, choose_kind
from tallyveil.tables.equal import find_equal, share_out
from tallyveil.tables.hashes import (
    Hashes,
    hash_text,
    join_hashes,
    use_key,
)
from tallyveil.tables.spark_files import HASHES, KeptRows, read_pieces
from tallyveil.tables.spool import open_new
from tallyveil.tables.text_column import TextColumn
from tallyveil.tables.totals import LabelSearch

__all__ = [
    "Batches",
    "Facts",
    "FindRepeats",
    "Survey",
    "Task",
    "WriteFile",
    "hash_rows",
    "list_numbers",
    "wrap_batch",
    "write_row",
]

Batches = Iterator[Any]

MOST_SUSPECTS = 1000
"""Hashes that occur twice, of which the labels are compared."""


@dataclass(frozen=True)
class Task(ABC):
    """One job's work on the batches of one partition; gives rows of bytes."""

    @abstractmethod
    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Work through the batches of the partition with this number."""

    def __call__(self, batches: Batches, partition: int = 0) -> Batches:
        """Work through the batches of a partition, without a word about them in an error."""
        try:
            for row in self.run(batches, partition):
                yield write_row(row)
        except Exception as problem:
            name = type(problem).__name__
            raise RuntimeError(f"A task of Tallyveil stopped: {name}.") from None
        finally:
            _forget_zips()


def _forget_zips() -> None:
    """Spare the next task of this process 0.2 s: Spark asks Python to look for new modules first.

    Python up to 3.11 then reads the list of Spark's own zip file again, for every folder of it that
    is in this cache. A folder that is needed again comes back from memory.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def write_row(row: Mapping[str, Any]) -> Any:
    """A row of whole numbers and bytes as a batch."""
    import pyarrow as pa

    def wrap(value: Any) -> Any:
        if isinstance(value, int):
            return pa.array([value], pa.int64())
        ends = np.array([0, len(value)], np.int32)
        return pa.Array.from_buffers(
            pa.binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(value)]
        )

    return pa.record_batch({name: wrap(value) for name, value in row.items()})


def list_numbers(batches: Batches) -> Iterator[int]:
    """The numbers that arrive."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def wrap_batch(batch: Any) -> ArrowTable:
    """A batch as a table."""
    import pyarrow as pa

    return ArrowTable(pa.Table.from_batches([batch]), "parquet", from_file=True)


@dataclass(frozen=True)
class Facts:
    """What a task says of a partition of a table; or, in `problem`, what is wrong there."""

    program: str
    problem: str = ""
    file: str = ""
    batch_rows: tuple[int, ...] = ()
    tallies: Mapping[str, Integers | Tally] = field(default_factory=dict)
    above: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, tuple[bool, bool, bool]] = field(default_factory=dict)
    label_bytes: int = 0
    labels: Mapping[str, tuple[str | None, int, tuple[str, ...]]] = field(default_factory=dict)
    partition: int = 0


@dataclass(frozen=True)
class Survey(Task):
    """Look at every row, once: check counts, look at labels, and keep both in `room`, encrypted.

    Hashes of `keys` are kept beside them, in as many buckets. Every attempt has files of its own,
    which its facts name: what is compared, drawn and published later is what one attempt saw.
    """

    ranges: Mapping[str, CountRange]
    labels: tuple[str, ...]
    keys: tuple[str, ...]
    buckets: int
    room: PrivateRoom

    def run(self, batches: Batches, partition: int) -> Iterator[Mapping[str, Any]]:
        """Give the facts of the partition."""
        use_key(self.room.key)
        yield {"result": pickle.dumps(replace(self._look(batches), partition=partition))}

    def _look(self, batches: Batches) -> Facts:
        name = f"rows-{uuid.uuid4()}"
        try:
            kind = choose_kind(own.upper for own in self.ranges.values())
            with KeptRows.create(self.room.folder / name, self.room.seal, kind) as kept:
                return self._work(batches, kept)
        except OSError:  # no room, no such folder, no right to write there
            return Facts(fingerprint())

    def _work(self, batches: Batches, kept: KeptRows) -> Facts:
        tallies = {name: _Column(own) for name, own in self.ranges.items()}
        searches = {name: LabelSearch("utf-8") for name in self.labels}
        waiting: list[list[Hashes]] = [[] for _ in range(self.buckets)]
        rows, size = [], 0
        for batch in batches:
            table = wrap_batch(batch)
            try:
                counts = {name: own.add(table.counts(name)) for name, own in tallies.items()}
                for name, search in searches.items():
                    text = table.text(name)
                    if text is not None:
                        search.add(text)
                if self.keys:
                    shared = share_out(hash_rows(table, self.keys), self.buckets)
                    for own, pieces in zip(shared, waiting, strict=True):
                        pieces.append(own)
            except RowError as found:
                return Facts(fingerprint(), found.describe("A row"))
            except TableError as found:
                return Facts(fingerprint(), str(found))
            labels = batch.select(list(self.labels))
            rows.append(batch.num_rows)
            size += labels.nbytes
            kept.add(labels, counts)
        kept.add_hashes(waiting)
        return Facts(
            fingerprint(),
            "",
            kept.name,
            tuple(rows),
            {name: own.tally for name, own in tallies.items()},
            {name: own.above for name, own in tallies.items()},
            {name: own.rules for name, own in tallies.items()},
            size,
            {name: search.finish() for name, search in searches.items()},
        )


class _Column:
    """How many rows have each count, how many lie above, and whether they rise, fall and differ."""

    def __init__(self, known: CountRange) -> None:
        self.known, self.above = known, 0
        self.tally: Any = known.tally(np.zeros(0, np.uint8))
        self.rules = (True, True, False)
        self.last = np.zeros(0, np.uint8)

    def add(self, given: Integers) -> CountArray:
        """Check the counts of the next batch, and give them cut to the upper bound."""
        found = clip_counts(given, self.known.upper)
        counts = found.values
        self.above += found.above
        self.tally = self.tally + self.known.tally(counts)
        rises, falls, differs = self.rules
        if rises or falls or not differs:
            joined = np.concatenate([self.last, counts])
            before, after = joined[:-1], joined[1:]
            rises = rises and bool((after >= before).all())
            falls = falls and bool((after <= before).all())
            self.rules = rises, falls, differs or bool((after != before).any())
            self.last = joined[-1:]
        return counts


def _join(columns: Sequence[Hashes]) -> Hashes:
    return reduce(join_hashes, columns) if columns else np.zeros(0, np.uint64)


def hash_rows(table: ArrowTable, names: Sequence[str]) -> Hashes:
    """Hash the labels of every row, of any type."""
    found = table.hash_labels(names)
    if found is not None:
        return found
    columns = []
    for codes in map(table.codes, names):
        each = hash_text(TextColumn.of([str(label).encode() for label in codes.labels]))
        columns.append(each[codes.codes])
    return _join(columns)


@dataclass(frozen=True)
class FindRepeats(Task):
    """Find hashes that occur twice in kept files, in each bucket whose number arrives."""

    files: tuple[str, ...]
    seal: Seal

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give the hashes of each bucket that occur twice, or the first of them."""
        for bucket in list_numbers(batches):
            every = np.concatenate([self._read(file, bucket) for file in self.files])
            yield {"result": pickle.dumps(find_equal(every)[:MOST_SUSPECTS])}

    def _read(self, file: str, bucket: int) -> Hashes:
        (piece,) = read_pieces(Path(file + HASHES), self.seal, bucket, bucket + 1)
        return np.frombuffer(piece, np.uint64)


@dataclass(frozen=True)
class WriteFile(Task):
    """Write an empty file into a folder, for each number that arrives."""

    folder: str

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give the name of each file; an empty one where it cannot be written."""
        for _number in list_numbers(batches):
            name = f"probe-{uuid.uuid4()}"
            try:
                os.close(open_new(Path(self.folder) / name))
            except (OSError, UnicodeError):  # not there, not writable, or a name it cannot write
                name = ""
            yield {"result": pickle.dumps(name)}
