"""Files of a private folder that executors share with the driver: labels, and what is encrypted.

Labels are published and stored as they are. Counts and draws are encrypted with a key that is
never written. Every attempt of a task writes new files, and only the names that Spark accepted
are opened.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from tallyveil.errors import UsageError
from tallyveil.sampling.entropy import Entropy
from tallyveil.tables.columnar import FeatherRows
from tallyveil.tables.databases import make_private, open_new

NONCE, KEY = 12, 32
"""Bytes of a nonce and of a key of AES-256-GCM."""


@dataclass(frozen=True)
class Piece:
    """An encrypted array of numbers in a vault."""

    name: str
    dtype: str
    rows: int


@dataclass(frozen=True)
class Vault:
    """A private folder, and the key of what is confidential in it."""

    folder: Path
    key: bytes = field(repr=False)

    @classmethod
    def make(cls, parent: Path, owner: object) -> Vault:
        """Make a folder that is removed with its owner, or when the process ends."""
        return cls(make_private(parent, owner), Entropy().octets(KEY).tobytes())

    def save(self, values: NDArray[Any]) -> Piece:
        """Encrypt an array into a new file. Its size tells the number of rows alone."""
        name, nonce = str(uuid.uuid4()), Entropy().octets(NONCE).tobytes()
        sealed = AESGCM(self.key).encrypt(nonce, values.tobytes(), name.encode())
        with open(open_new(self.folder / name), "wb") as file:
            file.write(nonce + sealed)
        return Piece(name, values.dtype.str, len(values))

    def load(self, piece: Piece) -> NDArray[Any]:
        """Decrypt an array; one that somebody changed or exchanged raises an error."""
        content = (self.folder / piece.name).read_bytes()
        nonce, sealed = content[:NONCE], memoryview(content)[NONCE:]
        values = AESGCM(self.key).decrypt(nonce, sealed, piece.name.encode())
        return np.frombuffer(values, np.dtype(piece.dtype), piece.rows)

    def require_seen(self, names: Sequence[str]) -> None:
        """Refuse a folder where this machine does not see the executors' files."""
        if not all((self.folder / name).is_file() for name in names if name):
            raise UsageError(
                "'out' must be in a folder that all executors share with this machine under one "
                f"path. What they wrote to {str(self.folder.parent)!r} is not there."
            )

    def remove(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


class LabelWriter:
    """A writer of the public columns of one run of rows, batch by batch."""

    def __init__(self, vault: Vault, schema: pa.Schema) -> None:
        self.name = f"{uuid.uuid4()}.arrow"
        self.file = open(open_new(vault.folder / self.name), "wb")  # noqa: SIM115 - kept open
        self.writer = pa.ipc.new_file(self.file, schema)

    def add(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        self.writer.write_batch(batch)

    def close(self) -> None:
        """Finish the file."""
        self.writer.close()
        self.file.close()


@dataclass(eq=False)
class StagedRows:
    """The public columns of rows that executors staged, in the order of publication."""

    schema: pa.Schema
    parts: tuple[FeatherRows, ...] = ()
    count: int = 0

    def fill(self, vault: Vault, names: Sequence[str], rows: int) -> None:
        """Take the files that executors wrote; no name where no column is public."""
        self.parts = tuple(FeatherRows.open(vault.folder / name, self) for name in names if name)
        self.count = rows

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch; a column that was not staged has no values here."""
        for part in self.parts:
            for batch in part.scan([name for name in names if name in part.schema.names]):
                columns = [
                    batch.column(name)
                    if name in batch.schema.names
                    else pa.nulls(batch.num_rows, self.schema.field(name).type)
                    for name in names
                ]
                yield pa.RecordBatch.from_arrays(columns, list(names))

    def require_same(self) -> None:
        """Raise a `TableError` if a file was changed since it was written."""
        for part in self.parts:
            part.require_same()
