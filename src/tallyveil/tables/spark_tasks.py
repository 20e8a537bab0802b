"""What tasks look at before anything is drawn. Runs on executors, on Arrow batches; knows no Spark.

A task never says what a row holds: an error is raised without the words of the one before it.
"""

from __future__ import annotations

import pickle
import uuid
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import count_values
from tallyveil.errors import TableError
from tallyveil.fingerprint import fingerprint
from tallyveil.tables.arrow import ArrowTable
from tallyveil.tables.base import CountArray
from tallyveil.tables.counts import RowError, clip_counts
from tallyveil.tables.hashes import (
    Hashes,
    hash_numbers,
    hash_text,
    join_hashes,
    mix_hashes,
    use_key,
)
from tallyveil.tables.text_column import TextColumn
from tallyveil.tables.totals import LabelSearch

__all__ = [
    "Batches",
    "Compare",
    "FindRepeats",
    "Inspect",
    "Tally",
    "Task",
    "Try",
    "add_up",
    "hash_rows",
    "mark_counts",
    "require_counts",
    "wrap_batch",
]

Batches = Iterator[Any]

MOST_SUSPECTS = 1000
"""Hashes that occur twice, of which the labels are compared."""


@dataclass(frozen=True)
class Task(ABC):
    """One job's work on the batches of one partition; gives rows of bytes."""

    @abstractmethod
    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Work through the batches."""

    def __call__(self, batches: Batches) -> Batches:
        """Work through the batches of a partition, without a word about them in an error."""
        try:
            for row in self.run(batches):
                yield _write_row(row)
        except Exception as problem:
            name = type(problem).__name__
            raise RuntimeError(f"A task of Tallyveil stopped: {name}.") from None


def _write_row(row: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    def wrap(value: Any) -> Any:
        if isinstance(value, int):
            return pa.array([value], pa.int64())
        ends = np.array([0, len(value)], np.int32)
        return pa.Array.from_buffers(
            pa.binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(value)]
        )

    return pa.record_batch({name: wrap(value) for name, value in row.items()})


def wrap_batch(batch: Any) -> ArrowTable:
    """A batch as a table."""
    import pyarrow as pa

    return ArrowTable(pa.Table.from_batches([batch]), "parquet", from_file=True)


@dataclass(frozen=True)
class Tally(Task):
    """Check every count; give histograms, how many lie above, and a sum of keyed hashes."""

    uppers: Mapping[str, int]
    key: int

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give one result for the partition."""
        use_key(self.key)
        histograms = {name: np.zeros(upper + 1, np.int64) for name, upper in self.uppers.items()}
        above, mark = dict.fromkeys(self.uppers, 0), 0
        orders = {name: _Order() for name in self.uppers}
        problem = None
        for batch in batches:
            table = wrap_batch(batch)
            try:
                counts = {
                    name: clip_counts(table.counts(name), u) for name, u in self.uppers.items()
                }
            except RowError as found:
                problem = found.column, found.what
                break
            for name, column in counts.items():
                histograms[name] += count_values(column.values, len(histograms[name]))
                above[name] += column.above
                orders[name].add(column.values)
            mark += mark_counts({name: column.values for name, column in counts.items()})
        rules = {name: order.rules for name, order in orders.items()}
        yield {"result": pickle.dumps((problem, histograms, above, rules, mark))}


class _Order:
    """Whether counts rise, fall and differ from row to row, batch after batch."""

    def __init__(self) -> None:
        self.rules = (True, True, False)
        self.last = np.zeros(0, np.uint8)

    def add(self, counts: CountArray) -> None:
        """Look at the next batch."""
        joined = np.concatenate([self.last, counts])
        before, after = joined[:-1], joined[1:]
        rises, falls, differs = self.rules
        rises = rises and bool((after >= before).all())
        falls = falls and bool((after <= before).all())
        self.rules = rises, falls, differs or bool((after != before).any())
        self.last = joined[-1:]


def mark_counts(counts: Mapping[str, CountArray]) -> int:
    """The sum of keyed hashes of the rows' counts."""
    return add_up(_join([hash_numbers(values) for values in counts.values()]))


def add_up(hashes: Hashes) -> int:
    """A sum that tells whether the same rows were seen, in any order; modulo 2^64."""
    return int(mix_hashes(hashes).sum(dtype=np.uint64))


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
class Inspect(Task):
    """Look at public labels; give their facts, and hashes of `keys` in as many buckets."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    buckets: int
    key: int

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give the facts of the partition as bucket -1, and its hashes, bucket by bucket."""
        use_key(self.key)
        searches = {name: LabelSearch("utf-8") for name in self.names}
        waiting: list[list[Hashes]] = [[] for _ in range(self.buckets)]
        size, mark = 0, 0
        for batch in batches:
            table = wrap_batch(batch)
            size += table.table.nbytes
            for name, search in searches.items():
                text = table.text(name)
                if text is not None:
                    search.add(text)
            hashes = hash_rows(table, self.names)
            mark += add_up(hashes)
            if self.keys:
                if self.keys != self.names:
                    hashes = hash_rows(table, self.keys)
                for bucket, own in enumerate(_share_out(hashes, self.buckets)):
                    waiting[bucket].append(own)
        facts = {name: search.finish() for name, search in searches.items()}
        yield {"bucket": -1, "part": pickle.dumps((size, mark, facts))}
        for bucket, pieces in enumerate(waiting):
            if pieces:
                yield {"bucket": bucket, "part": np.concatenate(pieces).tobytes()}


def _share_out(hashes: Hashes, buckets: int) -> list[Hashes]:
    """Hashes by their highest bits, so that equal ones are together."""
    if buckets == 1:
        return [hashes]
    edges = np.array([bucket * 2**64 // buckets for bucket in range(1, buckets)], np.uint64)
    ordered = np.sort(hashes)
    return np.split(ordered, np.searchsorted(ordered, edges))


@dataclass(frozen=True)
class FindRepeats(Task):
    """Find hashes that occur twice; facts of partitions go on as they are."""

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give each fact, and the repeated hashes of each bucket."""
        found: dict[int, list[Hashes]] = {}
        for batch in batches:
            for bucket, part in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                if bucket < 0:
                    yield {"bucket": bucket, "part": part.as_py()}
                    continue
                found.setdefault(bucket, []).append(np.frombuffer(part.as_buffer(), np.uint64))
        for bucket, pieces in found.items():
            every = np.concatenate(pieces)
            every.sort()
            repeated = np.unique(every[1:][every[1:] == every[:-1]])[:MOST_SUSPECTS]
            yield {"bucket": bucket, "part": repeated.tobytes()}


@dataclass(frozen=True)
class Compare(Task):
    """Give the labels of rows whose hashes occur twice."""

    keys: tuple[str, ...]
    suspects: bytes
    key: int

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give the hashes and labels of suspicious rows of the partition, and how often."""
        use_key(self.key)
        suspects = np.frombuffer(self.suspects, np.uint64)
        seen: Counter[tuple[int, tuple[str, ...]]] = Counter()
        for batch in batches:
            table = wrap_batch(batch)
            hashes = hash_rows(table, self.keys)
            rows = np.flatnonzero(np.isin(hashes, suspects))
            if not len(rows):
                continue
            columns = [np.array(table.labels(name), dtype=object)[rows] for name in self.keys]
            seen.update(zip(hashes[rows].tolist(), zip(*columns, strict=True), strict=True))
        yield {"result": pickle.dumps(seen)}


@dataclass(frozen=True)
class Try(Task):
    """Write a file to a folder, and give its name and the fingerprint of this program."""

    folder: str

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give the name, empty where the folder cannot be written."""
        for _ in batches:
            pass
        name = f"try-{uuid.uuid4()}"
        try:
            (Path(self.folder) / name).touch(exist_ok=False)
        except OSError:
            name = ""
        yield {"result": pickle.dumps((name, fingerprint()))}


def require_counts(problem: tuple[str, str] | None) -> None:
    """Raise a `TableError` about a column of which a task said that it holds no counts."""
    if problem is not None:
        column, what = problem
        raise TableError(
            f"Column {column!r} must hold a whole number of at least 0 in every row. A row holds "
            f"{what}."
        )
