"""What tasks draw, count and publish. Runs on executors, on kept rows; knows no Spark.

Only `Draw` sees counts. What it writes is encrypted; the others read its draws, and labels.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import MOST_COUNTED, Integers, Mask, tally_values
from tallyveil.tables.arrow import ArrowTable
from tallyveil.tables.arrow_write import write_pieces
from tallyveil.tables.base import CountArray
from tallyveil.tables.distributed import Drawn, DrawRows, HandOut, Seal
from tallyveil.tables.hashes import Hashes, use_key
from tallyveil.tables.spark_files import (
    BINS,
    COUNTS,
    DRAWS,
    LABELS,
    read_labels,
    read_pieces,
    write_piece,
)
from tallyveil.tables.spark_tasks import Batches, Task, hash_rows, list_numbers
from tallyveil.tables.spool import open_new

__all__ = ["Compare", "CountDigits", "Draw", "Publish", "StagedFile"]

WORD = 8
"""Bytes of a word."""

FEW = 8
"""Bits that every prefix has at the least where first digits were counted in bins."""


@dataclass(frozen=True)
class Compare(Task):
    """Give the labels of kept rows whose hashes occur twice, for each file number that arrives."""

    files: tuple[str, ...]
    keys: tuple[str, ...]
    suspects: bytes
    seal: Seal
    key: int

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give the hashes and labels of suspicious rows, and how often they occur."""
        use_key(self.key)
        suspects = np.frombuffer(self.suspects, np.uint64)
        seen: Counter[tuple[int, tuple[str, ...]]] = Counter()
        for number in list_numbers(batches):
            for piece in read_pieces(Path(self.files[number] + LABELS), self.seal):
                table = ArrowTable(read_labels(piece), "parquet", from_file=True)
                hashes = hash_rows(table, self.keys)
                rows = np.flatnonzero(np.isin(hashes, suspects))
                if not len(rows):
                    continue
                columns = [np.array(table.labels(name), dtype=object)[rows] for name in self.keys]
                seen.update(zip(hashes[rows].tolist(), zip(*columns, strict=True), strict=True))
        yield {"result": pickle.dumps(seen)}


@dataclass(frozen=True)
class Draw(Task):
    """Draw the kept rows of each file number that arrives, once: draws and words, encrypted.

    Gives the number and the name of the two files with its draws and with what was counted.
    """

    files: tuple[str, ...]
    folder: str
    columns: tuple[str, ...]
    kind: np.dtype[Any]
    draw: DrawRows
    seal: Seal

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give a row for each number. Every attempt writes files of its own."""
        for number in list_numbers(batches):
            name = str(uuid.uuid4())
            bins: dict[Drawn, Any] = {}
            with open(open_new(Path(self.folder) / f"{DRAWS}{name}"), "wb") as file:
                for piece in read_pieces(Path(self.files[number] + COUNTS), self.seal):
                    counts = np.frombuffer(piece, self.kind).reshape(len(self.columns), -1)
                    drawn = self.draw(dict(zip(self.columns, counts, strict=True)))
                    for column, kind in self.draw.kinds.items():
                        own, words, binned = drawn[column]
                        write_piece(file, self.seal, _join_draws(own.astype(kind), words))
                        bins[column] = bins[column] + binned if column in bins else binned
            with open(open_new(Path(self.folder) / f"{BINS}{name}"), "wb") as file:
                write_piece(file, self.seal, pickle.dumps(bins))
            yield {"result": pickle.dumps((number, name))}


def _join_draws(drawn: CountArray, words: Any) -> Any:
    """The words of a batch, if ranks are matched, and then its draws."""
    own = drawn.view(np.uint8)
    return own.data if words is None else np.concatenate([words.view(np.uint8), own]).data


@dataclass(frozen=True)
class StagedFile:
    """The draws of a partition, and the labels that belong to them, batch by batch."""

    labels: str
    draws: str
    batch_rows: tuple[int, ...]
    kinds: tuple[np.dtype[Any], ...]
    seal: Seal

    def read_labels(self, first: int = 0, last: int | None = None) -> Iterator[Any]:
        """The labels of some batches."""
        for piece in read_pieces(Path(self.labels), self.seal, first, last):
            yield read_labels(piece)

    def read_draws(
        self, first: int = 0, last: int | None = None
    ) -> Iterator[list[tuple[CountArray, Any]]]:
        """The draws and words of each column, for some batches."""
        rows, columns = self.batch_rows[first:last], len(self.kinds)
        end = (first + len(rows)) * columns
        pieces = read_pieces(Path(self.draws), self.seal, first * columns, end)
        for own in rows:
            together = zip(islice(pieces, columns), self.kinds, strict=True)
            yield [_cut_draws(piece, own, kind) for piece, kind in together]


def _cut_draws(piece: bytes, rows: int, kind: np.dtype[Any]) -> tuple[CountArray, Any]:
    """Cut a piece into draws and words; it must be one of so many rows."""
    before = len(piece) - kind.itemsize * rows
    drawn = np.frombuffer(piece, kind, rows, offset=before)
    words = np.frombuffer(memoryview(piece)[:before], np.uint64)
    return drawn, words.reshape(rows) if before else None


@dataclass(frozen=True)
class CountDigits(Task):
    """Count the next digits of words in staged files, one file for each number that arrives."""

    files: tuple[StagedFile, ...]
    column: int
    binned: bool
    prefixes: tuple[tuple[int, int, int, int], ...]

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give, for each prefix, which digits occur and how often."""
        found: list[list[Any]] = [[] for _ in self.prefixes]
        for number in list_numbers(batches):
            for batch in self.files[number].read_draws():
                drawn, words = batch[self.column]
                if words is not None:
                    self._count(drawn, words, found)
        joined = [
            np.unique(np.concatenate(own), return_counts=True) if own else None for own in found
        ]
        yield {"result": pickle.dumps(joined)}

    @cached_property
    def _wanted(self) -> Mask:
        """Whether rows with each draw, and each beginning of a word, may be counted."""
        found = np.zeros((MOST_COUNTED, 1 << FEW), dtype=bool)
        for draw, beginning, bits, _ in self.prefixes:
            found[draw, beginning >> (bits - FEW)] = True
        return found.reshape(-1)

    def _select(self, drawn: CountArray, words: Hashes) -> Integers:
        """The rows that may be counted."""
        if not self.binned:
            return np.flatnonzero(np.isin(drawn, [draw for draw, *_ in self.prefixes]))
        places = drawn.astype(np.intp)
        places <<= FEW
        places |= (words >> np.uint64(64 - FEW)).view(np.int64)
        return np.flatnonzero(self._wanted.take(places))

    def _count(self, drawn: CountArray, words: Hashes, found: list[list[Any]]) -> None:
        rows = self._select(drawn, words)
        drawn, words = drawn[rows], words[rows]
        for at, (draw, beginning, bits, step) in enumerate(self.prefixes):
            own = words[drawn == draw]
            if bits:
                own = own[own >> np.uint64(64 - bits) == np.uint64(beginning)]
            found[at].append((own << np.uint64(bits)) >> np.uint64(64 - step))


@dataclass(frozen=True)
class Publish(Task):
    """Write parts of the published table, one for each number that arrives.

    `hand_out` has, for each column, which of the staged columns it is made from, and how; `sizes`
    how many counts it can have, where rows are counted.

    What is written follows from staged files alone: a task that runs twice writes the same bytes.
    """

    files: tuple[StagedFile, ...]
    slices: tuple[tuple[tuple[int, int, int, int], ...], ...]
    hand_out: Mapping[str, tuple[int, HandOut]]
    sizes: Mapping[str, int]
    keep: tuple[str, ...]
    folders: tuple[str, str]
    names: tuple[str, ...]

    def run(self, batches: Batches, _: int) -> Iterator[Mapping[str, Any]]:
        """Give number, size, SHA-256 and histograms of each part."""
        for number in list_numbers(batches):
            yield {"result": pickle.dumps((number, *self._write(number)))}

    def _write(self, number: int) -> tuple[int, str, dict[str, Any]]:
        counted: dict[str, Any] = {}
        pieces = self._build(number, counted)
        first = next(pieces)
        hidden = Path(self.folders[0]) / f"{self.names[number]}-{uuid.uuid4()}"
        with open(hidden, "xb") as file:
            write_pieces(file, "parquet", first.schema, _chain(first, pieces))
            file.flush()
            os.fsync(file.fileno())
        with open(hidden, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
        os.replace(hidden, Path(self.folders[1]) / self.names[number])
        return size, digest, counted

    def _build(self, number: int, counted: dict[str, Any]) -> Iterator[Any]:
        import pyarrow as pa

        for at, group in groupby(self.slices[number], key=lambda part: part[0]):
            parts, file = list(group), self.files[at]
            place = parts[0][1], parts[-1][1] + 1
            read = zip(file.read_labels(*place), file.read_draws(*place), parts, strict=True)
            for labels, drawn, (_, _, start, stop) in read:
                others = labels if labels.num_columns else pa.table({"": pa.nulls(stop)})
                counts = {}
                for name, (staged, hand_out) in self.hand_out.items():
                    own, words = drawn[staged]
                    part = None if words is None else words[start:stop]
                    counts[name] = hand_out(own[start:stop], part)
                    if name in self.sizes:
                        rows = tally_values(counts[name], self.sizes[name])
                        counted[name] = counted[name] + rows if name in counted else rows
                piece = ArrowTable(others.slice(start, stop - start), "parquet", from_file=True)
                yield piece.build_piece(counts, self.keep)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
