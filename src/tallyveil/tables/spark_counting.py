"""What tasks do with rows of microdata, and with rows that are brought to one machine.

Runs on executors, on Arrow batches; knows no Spark. What is wrong with a row is said without
quoting it.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, count_values
from tallyveil.errors import TableError
from tallyveil.fingerprint import fingerprint
from tallyveil.tables.base import Table
from tallyveil.tables.categories import describe_unlisted
from tallyveil.tables.codes import encode_text
from tallyveil.tables.conditions import RowChooser
from tallyveil.tables.counting import Counting, PersonBound, Placed
from tallyveil.tables.distributed import PrivateRoom
from tallyveil.tables.hashes import hash_text, use_key
from tallyveil.tables.persons import describe_nameless, name_persons
from tallyveil.tables.spark_files import read_pieces, write_batch, write_piece
from tallyveil.tables.spark_tasks import Batches, Task, list_numbers, wrap_batch
from tallyveil.tables.spool import open_new
from tallyveil.tables.text_column import TextColumn

__all__ = ["CountCells", "CountPersons", "HandOver", "Said", "ShareOut"]


@dataclass(frozen=True)
class Said:
    """What a task says of a partition: its counts or its file; or, in `problem`, what is wrong."""

    program: str
    partition: int
    problem: str = ""
    counts: Integers | None = None
    file: str = ""
    kinds: tuple[set[bool], ...] = ()


class _Seen:
    """Places the rows of one batch after the other, and keeps what the conditions saw."""

    def __init__(self, counting: Counting) -> None:
        self.counting, self.chooser = counting, RowChooser(counting.where)

    @property
    def kinds(self) -> tuple[set[bool], ...]:
        """For each condition, whether labels are numbers."""
        return tuple(self.chooser.kinds)

    def place(self, table: Table) -> Placed:
        """Place the rows of a batch; refuses one that is to be counted and has no category."""
        placed = self.counting.place(table, self.chooser)
        if placed.unlisted.any():
            raise describe_unlisted("A row")
        return placed


@dataclass(frozen=True)
class CountCells(Task):
    """Count the rows of microdata of a partition in public categories."""

    counting: Counting

    def run(self, batches: Batches, partition: int) -> Iterator[Mapping[str, Any]]:
        """Give the counts of all categories."""
        counts = np.zeros(len(self.counting.categories), np.int64)
        seen = _Seen(self.counting)
        try:
            for batch in batches:
                placed = seen.place(wrap_batch(batch))
                counts += count_values(placed.cells[placed.met], len(counts))
            said = Said(fingerprint(), partition, counts=counts, kinds=seen.kinds)
        except TableError as problem:
            said = Said(fingerprint(), partition, str(problem))
        yield {"result": pickle.dumps(said)}


@dataclass(frozen=True)
class ShareOut(Task):
    """Keep, encrypted, whose every counted row is and where it counts; buckets by persons."""

    counting: Counting
    person: str
    buckets: int
    room: PrivateRoom

    def run(self, batches: Batches, partition: int) -> Iterator[Mapping[str, Any]]:
        """Give the name of the file, which has a piece for each bucket."""
        use_key(self.room.key)
        seen = _Seen(self.counting)
        try:
            said = Said(fingerprint(), partition, file=self._write(batches, seen), kinds=seen.kinds)
        except TableError as problem:
            said = Said(fingerprint(), partition, str(problem))
        except OSError:  # no room, no such folder, no right to write there
            said = Said(fingerprint(), partition)
        yield {"result": pickle.dumps(said)}

    def _write(self, batches: Batches, seen: _Seen) -> str:
        waiting: list[list[Any]] = [[] for _ in range(self.buckets)]
        for batch in batches:
            for own, rows in zip(waiting, self._share_out(batch, seen), strict=True):
                own.append(rows)
        name = f"persons-{uuid.uuid4()}"
        with open(open_new(self.room.folder / name), "wb") as file:
            for own in waiting:
                write_piece(file, self.room.seal, pickle.dumps(own))
        return name

    def _share_out(self, batch: Any, seen: _Seen) -> Iterator[tuple[list[str], Integers, Integers]]:
        """For each bucket its persons, and the person and the category of each of its rows."""
        table = wrap_batch(batch)
        labels, persons, nameless = name_persons(table, self.person)
        if nameless.any():
            raise describe_nameless("A row", self.person)
        placed = seen.place(table)
        hashes = hash_text(TextColumn.of([label.encode() for label in labels]))
        bucket_of = (hashes % np.uint64(self.buckets)).astype(np.int64)
        for bucket in range(self.buckets):
            rows = np.flatnonzero(placed.met & (bucket_of[persons] == bucket))
            known, numbers = np.unique(persons[rows], return_inverse=True)
            yield [labels[at] for at in known.tolist()], numbers, placed.cells[rows]


@dataclass(frozen=True)
class CountPersons(Task):
    """Count so many rows of each person, of all persons of each bucket whose number arrives."""

    files: tuple[str, ...]
    bound: PersonBound
    size: int
    room: PrivateRoom

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give the counts of all categories: of the rows that stay, and of all."""
        for bucket in list_numbers(batches):
            labels: list[str] = []
            persons, cells = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
            for file in self.files:
                path = self.room.folder / file
                (piece,) = read_pieces(path, self.room.seal, bucket, bucket + 1)
                for known, numbers, places in pickle.loads(piece):
                    persons.append(numbers + len(labels))
                    cells.append(places)
                    labels += known
            counted = self._count(labels, np.concatenate(persons), np.concatenate(cells))
            yield {"result": pickle.dumps(counted)}

    def _count(
        self, labels: list[str], persons: Integers, cells: Integers
    ) -> tuple[Integers, Integers]:
        same = encode_text(labels).codes[persons] if labels else persons
        stays = self.bound.choose(same, cells, np.ones(len(cells), dtype=bool))
        return count_values(cells[stays], self.size), count_values(cells, self.size)


@dataclass(frozen=True)
class HandOver(Task):
    """Keep the rows of a partition, encrypted, for one machine that reads them all."""

    room: PrivateRoom

    def run(self, batches: Batches, partition: int) -> Iterator[Mapping[str, Any]]:
        """Give the name of the file, which has a piece for each batch."""
        name = f"rows-{uuid.uuid4()}"
        try:
            with open(open_new(Path(self.room.folder) / name), "wb") as file:
                for batch in batches:
                    write_piece(file, self.room.seal, write_batch(batch))
        except OSError:  # no room, no such folder, no right to write there
            name = ""
        yield {"result": pickle.dumps(Said(fingerprint(), partition, file=name))}
