"""Text files that are compressed: gzip with the standard library, Zstandard with pyarrow.

A small file can unpack to anything, so every file is unpacked piece by piece and only as far as
its own size makes it likely. Honest tables unpack to 3 to 30 times their size, and their rows take
3 bytes and more.
"""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from tallyveil.errors import TableError
from tallyveil.tables.arrow_values import import_pyarrow
from tallyveil.tables.text_column import TextColumn
from tallyveil.tables.wrapped import WrappedTable
from tallyveil.untrusted import SMALL, UNLIKELY, open_file

__all__ = [
    "ANY_SIZE",
    "PACKINGS",
    "PackedTable",
    "Room",
    "UnpackedError",
    "bound_packed",
    "open_packed",
    "open_unpacked",
    "pack",
    "split_packing",
    "unpack",
]

PACKINGS = {".gz": "gzip", ".zst": "zstd"}
"""The ending of each way of packing that is read and written."""

PIECE = 1 << 20
MARKS = (b",", b"\t", b";", b"|")
DAMAGE = (OSError, EOFError, zlib.error)


class Room(NamedTuple):
    """How much a file may unpack to: bytes, lines, and marks between cells."""

    size: int = 2**62
    lines: int = 2**62
    marks: int | None = None

    @classmethod
    def for_blocks(cls, size: int) -> Room:
        """For a packed file of so many bytes that is read block by block."""
        more = max(0, size - SMALL)
        return cls(64 * 2**20 + 20 * size + 20 * more, 6_000_000 + size // 2 + 12 * more)

    @classmethod
    def for_whole(cls, size: int) -> Room:
        """For one that is read as a whole, such as text with quotation marks."""
        more = max(0, size - SMALL)
        return cls(40 * 2**20 + 5 * more, 4_000_000 + more, 4_000_000 + more)


ANY_SIZE = Room()


class UnpackedError(TableError):
    """Said of a file that unpacks to more than its size makes likely."""

    def __init__(self) -> None:
        super().__init__(UNLIKELY)


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
        content = self.inner.to_bytes()
        pack(content, self.packing)  # what cannot be packed fails now
        return bound_packed(len(content))

    def text(self, name: str) -> TextColumn | None:
        """Give a column of text as bytes."""
        return self.inner.text(name)


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
    buffer = io.BytesIO()
    with open_packed(buffer, packing) as stream:
        stream.write(content)
    return buffer.getvalue()


def bound_packed(size: int) -> int:
    """Bound the compressed size of so many bytes, whatever they are."""
    return size + size // 1000 + 4096


def open_packed(file: IO[bytes], packing: str) -> IO[bytes]:
    """Give a stream that compresses into an open file, which stays open."""
    raw: Any = _Deflated(file) if packing == ".gz" else _make_zstd(file)
    return raw  # type: ignore[no-any-return]


def open_unpacked(source: Path | bytes, packing: str, room: Room) -> io.BufferedReader:
    """Open what a file unpacks to; a `TableError` if it is damaged or gives too much."""
    pa = import_pyarrow() if packing == ".zst" else None
    raw: Any = io.BytesIO(source) if isinstance(source, bytes) else open_file(source)
    if pa is None:
        stream: Any = gzip.GzipFile(fileobj=raw)
    else:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
    return io.BufferedReader(_Unpacked(stream, raw, packing, room), PIECE)


def unpack(content: bytes, packing: str, room: Room = ANY_SIZE) -> bytes:
    """Decompress bytes; a `TableError` if they are damaged or give too much."""
    with open_unpacked(content, packing, room) as stream:
        return stream.read()


class _Unpacked(io.RawIOBase):
    """What a stream gives, up to a bound."""

    def __init__(self, stream: Any, raw: IO[bytes], packing: str, room: Room) -> None:
        self.stream, self.raw, self.packing, self.room = stream, raw, packing, room

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            part = self.stream.read(min(len(buffer), PIECE))
        except DAMAGE as problem:
            raise TableError(
                f"The file cannot be unpacked as {PACKINGS[self.packing]}: it is damaged or cut "
                "short."
            ) from problem
        size, lines, marks = self.room
        if marks is not None:
            marks -= sum(map(part.count, MARKS))
        self.room = Room(size - len(part), lines - part.count(b"\n"), marks)
        if min(self.room.size, self.room.lines, self.room.marks or 0) < 0:
            raise UnpackedError
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self.raw.close()
        super().close()


class _Deflated(io.RawIOBase):
    """Compresses with gzip, without a name and a time."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.packer = file, zlib.compressobj(6, zlib.DEFLATED, 31)

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.file.write(self.packer.compress(content))
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self.file.write(self.packer.flush())
        super().close()


def _make_zstd(file: IO[bytes]) -> Any:
    pa = import_pyarrow()
    return pa.CompressedOutputStream(pa.PythonFile(_Kept(file), "w"), "zstd")


class _Kept(io.RawIOBase):
    """An open file that stays open when its user closes it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.file.write(content)
        return len(content)
