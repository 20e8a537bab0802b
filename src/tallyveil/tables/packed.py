"""Text files that are compressed: gzip with the standard library, Zstandard with pyarrow."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tallyveil.errors import TableError
from tallyveil.tables.arrow_values import import_pyarrow
from tallyveil.tables.wrapped import WrappedTable

__all__ = ["PACKINGS", "PackedTable", "split_packing", "unpack"]

PACKINGS = {".gz": "gzip", ".zst": "zstd"}
"""The ending of each way of packing that is read and written."""

MOST_UNPACKED = 2**34
"""Bytes that the publisher's own file may unpack to."""


@dataclass(frozen=True, eq=False)
class PackedTable(WrappedTable):
    """A table whose file is compressed."""

    packing: str = ".gz"

    @property
    def extension(self) -> str:
        """The ending of the compressed file."""
        return self.inner.extension + self.packing

    def to_bytes(self) -> bytes:
        """Write the file and compress it; equal tables give equal bytes."""
        return pack(self.inner.to_bytes(), self.packing)

    def write(self, file: IO[bytes]) -> None:
        """Write the compressed file."""
        file.write(self.to_bytes())

    def largest_size(self) -> int:
        """Give more bytes than the compressed file takes, whatever it holds."""
        self.to_bytes()  # what cannot be packed fails now
        content = len(self.inner.to_bytes())
        return content + content // 1000 + 4096


def split_packing(path: Path) -> tuple[str, str]:
    """Split the ending of a file into that of its content and that of its packing.

    >>> split_packing(Path("cases.CSV.gz")), split_packing(Path("cases.csv"))
    (('.csv', '.gz'), ('.csv', ''))
    """
    last = path.suffix.lower()
    if last not in PACKINGS:
        return last, ""
    return path.with_suffix("").suffix.lower(), last


def pack(content: bytes, packing: str) -> bytes:
    """Compress bytes; the result holds no name and no time."""
    if packing == ".gz":
        return gzip.compress(content, compresslevel=6, mtime=0)
    pa = import_pyarrow()
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return bytes(sink.getvalue())


def unpack(content: bytes, packing: str, most: int = MOST_UNPACKED) -> bytes:
    """Decompress bytes; a `TableError` if they are damaged or give more than `most`."""
    try:
        found = _unpack_gzip(content, most) if packing == ".gz" else _unpack_zstd(content, most)
    except (OSError, EOFError, zlib.error) as problem:
        raise TableError(
            f"The file cannot be unpacked as {PACKINGS[packing]}: it is damaged or cut short."
        ) from problem
    if len(found) > most:
        raise TableError("The file unpacks to far more than a file of that size should hold.")
    return found


def _unpack_gzip(content: bytes, most: int) -> bytes:
    parts, size, rest = [], 0, content
    while rest and size <= most:
        stream = zlib.decompressobj(wbits=31)
        parts.append(stream.decompress(rest, most + 1 - size))
        size += len(parts[-1])
        if not stream.eof and size <= most:
            raise EOFError("the file ends too early")
        rest = stream.unused_data
    return b"".join(parts)


def _unpack_zstd(content: bytes, most: int) -> bytes:
    pa = import_pyarrow()
    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
        return bytes(stream.read(most + 1))
