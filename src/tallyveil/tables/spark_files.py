"""What tasks leave in a private folder for one another: pieces of bytes, each encrypted.

A file has a name of its own for every attempt of a task. Which attempt counts is for Spark to say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from tallyveil.tables.base import CountArray
from tallyveil.tables.distributed import Seal
from tallyveil.tables.hashes import Hashes
from tallyveil.tables.spool import open_new

__all__ = [
    "BINS",
    "COUNTS",
    "DRAWS",
    "HASHES",
    "LABELS",
    "KeptRows",
    "open_labels",
    "read_labels",
    "read_pieces",
    "write_batch",
    "write_piece",
]

ENDINGS = LABELS, COUNTS, HASHES = ".labels", ".counts", ".hashes"
"""How the files of a partition end: its rows, in two files, and hashes of their labels."""

DRAWS, BINS = "draws-", "bins-"
"""How the files of a partition begin that has been drawn: its rows, and how many each bin has."""

LENGTH = 8
"""Bytes that say how long the next piece is."""


def write_piece(file: IO[bytes], seal: Seal, content: Any) -> None:
    """Encrypt a piece and add it to a file."""
    sealed = seal.close(memoryview(content).cast("B"))
    file.write(len(sealed).to_bytes(LENGTH, "little"))
    file.write(sealed)


def read_pieces(path: Path, seal: Seal, first: int = 0, last: int | None = None) -> Iterator[bytes]:
    """Read pieces `first` to `last` of a file."""
    with open(path, "rb") as file:
        for _ in range(first):
            file.seek(_read_length(file), os.SEEK_CUR)
        lengths = iter(lambda: _read_length(file), 0)
        for length in islice(lengths, None if last is None else last - first):
            yield seal.open(file.read(length))


def _read_length(file: IO[bytes]) -> int:
    return int.from_bytes(file.read(LENGTH), "little")


@dataclass(frozen=True)
class KeptRows:
    """The rows of a partition that were looked at: labels and counts, batch by batch; hashes."""

    name: str
    files: tuple[IO[bytes], ...]
    seal: Seal
    kind: np.dtype[Any]

    @classmethod
    def create(cls, path: Path, seal: Seal, kind: np.dtype[Any]) -> KeptRows:
        """Make the files, which only their owner can read, for counts of one type."""
        made = (os.fdopen(open_new(Path(f"{path}{end}")), "wb") for end in ENDINGS)
        return cls(path.name, tuple(made), seal, kind)

    def __enter__(self) -> KeptRows:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files:
            file.close()

    def add(self, labels: Any, counts: Mapping[str, CountArray]) -> None:
        """Keep a batch."""
        write_piece(self.files[0], self.seal, write_batch(labels))
        whole = np.concatenate([own.astype(self.kind) for own in counts.values()])
        write_piece(self.files[1], self.seal, whole.data)

    def add_hashes(self, buckets: Sequence[Sequence[Hashes]]) -> None:
        """Keep the hashes of all batches, a piece for each bucket."""
        for pieces in buckets:
            write_piece(self.files[2], self.seal, b"".join(own.data for own in pieces))


def write_batch(batch: Any) -> Any:
    """A batch as bytes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_labels(piece: bytes) -> Any:
    """The labels of a batch as an Arrow table."""
    import pyarrow as pa

    return pa.ipc.open_stream(piece).read_all()


def open_labels(paths: Sequence[Path], seal: Seal, schema: Any) -> Any:
    """A reader of all batches in some files, each of which is removed when it was read.

    `schema` is for files without any.
    """
    import pyarrow as pa

    def read() -> Iterator[Any]:
        for path in paths:
            for piece in read_pieces(path, seal):
                yield from read_labels(piece).to_batches()
            path.unlink()

    batches = read()
    first = list(islice(batches, 1))
    known = first[0].schema if first else schema
    return pa.RecordBatchReader.from_batches(known, chain(first, batches))
