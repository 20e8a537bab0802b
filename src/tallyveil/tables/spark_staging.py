"""What tasks draw, count and publish. Runs on executors, on Arrow batches; knows no Spark.

Only `Draw` sees counts. What it gives is encrypted, and the other tasks read nothing else.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, Mask, count_values
from tallyveil.tables.arrow import ArrowTable
from tallyveil.tables.arrow_write import write_pieces
from tallyveil.tables.base import CountArray
from tallyveil.tables.counts import clip_counts
from tallyveil.tables.distributed import DrawRows, HandOut, Seal
from tallyveil.tables.hashes import Hashes, use_key
from tallyveil.tables.spark_tasks import Batches, Task, add_up, hash_rows, mark_counts, wrap_batch

__all__ = ["CountDigits", "Draw", "Publish", "StagedFile", "read_draws"]

DRAW = np.dtype(np.uint16)
"""How a draw is staged."""

FEW = 8
"""Bits that every prefix has at the least."""


@dataclass(frozen=True)
class Draw(Task):
    """Draw every row once: labels, draws and words of each batch, encrypted."""

    uppers: Mapping[str, int]
    labels: tuple[str, ...]
    draw: DrawRows
    seal: Seal
    key: int

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give a row for each batch, and one with what was counted in all of them."""
        use_key(self.key)
        bins: dict[str, CountArray] = {}
        marks = [0, 0]
        nothing = {
            f"{word}{at}": b"" for at in range(len(self.uppers)) for word in ("draw", "word")
        }
        for batch in batches:
            table = wrap_batch(batch)
            counts = {n: clip_counts(table.counts(n), u).values for n, u in self.uppers.items()}
            marks[0] += mark_counts(counts)
            marks[1] += add_up(hash_rows(table, self.labels))
            row: dict[str, Any] = {"rows": batch.num_rows, "facts": b""}
            row["labels"] = self.seal.close(_write_labels(batch.select(list(self.labels))))
            for at, (name, (drawn, words, binned)) in enumerate(self.draw(counts).items()):
                row[f"draw{at}"] = self.seal.close(drawn.astype(DRAW).tobytes())
                row[f"word{at}"] = b"" if words is None else self.seal.close(words.tobytes())
                bins[name] = bins[name] + binned if name in bins else binned
            yield row
        facts = self.seal.close(pickle.dumps((bins, marks)))
        yield {"rows": 0, "facts": facts, "labels": b""} | nothing


def _write_labels(batch: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


@dataclass(frozen=True)
class StagedFile:
    """A staged file: where it lies, and which rows its groups begin with."""

    path: str
    seal: Seal

    def read(self, columns: Sequence[str], first: int = 0, last: int | None = None) -> Batches:
        """Rows `first` to `last` of some columns, decrypted, group by group."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(self.path) as file:
            start = 0
            for group in range(file.num_row_groups):
                size = file.metadata.row_group(group).num_rows
                stop = start + size
                if stop > first and (last is None or start < last):
                    table = file.read_row_group(group, columns=list(columns), use_threads=False)
                    for at in range(max(first - start, 0), min(size, (last or stop) - start)):
                        yield {name: self._open(table.column(name)[at]) for name in columns}
                start = stop

    def _open(self, value: Any) -> Any:
        found = value.as_py()
        return found if isinstance(found, int) or not found else self.seal.open(found)


def read_draws(row: Mapping[str, Any], at: int) -> tuple[CountArray, Any]:
    """The draws and words of one batch, for the column at this place."""
    words = row[f"word{at}"]
    drawn = np.frombuffer(row[f"draw{at}"], DRAW)
    return drawn, np.frombuffer(words, np.uint64) if words else None


@dataclass(frozen=True)
class CountDigits(Task):
    """Count the next digits of words in staged files, one file for each number that arrives."""

    files: tuple[StagedFile, ...]
    column: int
    prefixes: tuple[tuple[int, int, int, int], ...]

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give, for each prefix, which digits occur and how often."""
        found: list[list[Any]] = [[] for _ in self.prefixes]
        columns = [f"draw{self.column}", f"word{self.column}"]
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for row in self.files[number].read(columns):
                    drawn, words = read_draws(row, self.column)
                    if words is None:
                        continue
                    self._count(drawn, words, found)
        joined = [
            np.unique(np.concatenate(own), return_counts=True) if own else None for own in found
        ]
        yield {"result": pickle.dumps(joined)}

    @cached_property
    def _wanted(self) -> Mask:
        """Whether rows with each draw, and each beginning of a word, may be counted."""
        found = np.zeros((1 << 8 * DRAW.itemsize, 1 << FEW), dtype=bool)
        for draw, beginning, bits, _ in self.prefixes:
            found[draw, beginning >> (bits - FEW)] = True
        return found

    def _count(self, drawn: CountArray, words: Hashes, found: list[list[Any]]) -> None:
        rows = np.flatnonzero(self._wanted[drawn, (words >> np.uint64(64 - FEW)).view(np.int64)])
        drawn, words = drawn[rows], words[rows]
        for at, (draw, beginning, bits, step) in enumerate(self.prefixes):
            own = words[drawn == draw]
            own = own[own >> np.uint64(64 - bits) == np.uint64(beginning)]
            found[at].append((own << np.uint64(bits)) >> np.uint64(64 - step))


@dataclass(frozen=True)
class Publish(Task):
    """Write parts of the published table, one for each number that arrives.

    What is written follows from staged files alone: a task that runs twice writes the same bytes.
    """

    files: tuple[StagedFile, ...]
    slices: tuple[tuple[tuple[int, int, int, int], ...], ...]
    hand_out: Mapping[str, HandOut]
    sizes: Mapping[str, int]
    keep: tuple[str, ...]
    folders: tuple[str, str]
    names: tuple[str, ...]

    def run(self, batches: Batches) -> Iterator[Mapping[str, Any]]:
        """Give number, size, SHA-256 and histograms of each part."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield {"result": pickle.dumps((number, *self._write(number)))}

    def _write(self, number: int) -> tuple[int, str, dict[str, Any]]:
        counted = {name: np.zeros(size, np.int64) for name, size in self.sizes.items()}
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

    def _build(self, number: int, counted: Mapping[str, Integers]) -> Iterator[Any]:
        import pyarrow as pa

        columns = [f"{w}{at}" for at in range(len(self.hand_out)) for w in ("draw", "word")]
        for file, group in groupby(self.slices[number], key=lambda part: part[0]):
            parts = list(group)
            read = self.files[file].read(["labels", *columns], parts[0][1], parts[-1][1] + 1)
            for row, (_, _, start, stop) in zip(read, parts, strict=True):
                labels = pa.ipc.open_stream(row["labels"]).read_all()
                if not labels.num_columns:
                    labels = pa.table({"": pa.nulls(stop)})
                counts = {}
                for place, (name, hand_out) in enumerate(self.hand_out.items()):
                    drawn, own = read_draws(row, place)
                    words = None if own is None else own[start:stop]
                    counts[name] = hand_out(drawn[start:stop], words)
                    np.add(
                        counted[name], count_values(counts[name], len(counted[name])), counted[name]
                    )
                piece = ArrowTable(labels.slice(start, stop - start), "parquet", from_file=True)
                yield piece.build_piece(counts, self.keep)


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
