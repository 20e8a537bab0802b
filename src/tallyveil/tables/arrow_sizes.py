"""How large a Parquet or Feather file is once it is unpacked, read from its headers alone.

A small file can unpack to anything: pages of zeros, runs of one value. Readers of somebody
else's file add up what its page and buffer headers declare, which is what a library would
allocate, before they let a library read it. Layouts: the Thrift compact protocol of Parquet's
page headers, and the FlatBuffers of Arrow's footer and messages.
"""

from __future__ import annotations

import mmap as mmap_module
import struct
from collections.abc import Iterator, Sequence
from mmap import mmap

__all__ = ["MAGIC", "FlatTable", "measure_arrow", "page_sizes"]

DEEPEST = 16
MAGIC = b"ARROW1"
MAPPED = 16
"""Batches after which a mapped file is let go of: a look at a header maps all that is around it."""

# types of the Thrift compact protocol
STOP, TRUE, FALSE, BYTE, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 0, 1, 2, 3, 6, 7, 8, 9, 10, 12
FIXED = {TRUE: 0, FALSE: 0, BYTE: 1, DOUBLE: 8}


def page_sizes(content: Sequence[int], start: int, length: int) -> Iterator[int]:
    """Yield what every page of a column chunk unpacks to; a ValueError if they do not fit."""
    at, end = start, start + length
    if not 0 <= start <= end <= len(content):
        raise ValueError("a column lies outside the file")
    while at < end:
        at, fields = _read_struct(content, at, 0)
        unpacked, packed = fields.get(2, -1), fields.get(3, -1)
        if unpacked < 0 or packed < 0 or at + packed > end:
            raise ValueError("a page has no size")
        yield unpacked
        at += packed


def _read_struct(content: Sequence[int], at: int, depth: int) -> tuple[int, dict[int, int]]:
    """Where a Thrift struct ends, and its whole numbers by field."""
    if depth > DEEPEST:
        raise ValueError("a header is nested too deeply")
    fields: dict[int, int] = {}
    number = 0
    while True:
        kind, at = _byte(content, at) & 15, at + 1
        step = content[at - 1] >> 4
        if kind == STOP:
            return at, fields
        if step:
            number += step
        else:
            at, number = _signed(content, at)
        at, value = _read_value(content, at, kind, depth)
        fields[number] = value


def _read_value(content: Sequence[int], at: int, kind: int, depth: int) -> tuple[int, int]:
    if kind in FIXED:
        return at + FIXED[kind], 0
    if BYTE < kind <= I64:
        return _signed(content, at)
    if kind == BINARY:
        at, length = _varint(content, at)
        return at + length, 0
    if kind in (LIST, SET):
        head, at = _byte(content, at), at + 1
        size = head >> 4
        if size == 15:
            at, size = _varint(content, at)
        if size > len(content):
            raise ValueError("a list is longer than the file")
        for _ in range(size):
            at, _value = _read_value(content, at, head & 15 or TRUE, depth + 1)
        return at, 0
    if kind == STRUCT:
        return _read_struct(content, at, depth + 1)[0], 0
    raise ValueError("a header holds an unknown type")


def _byte(content: Sequence[int], at: int) -> int:
    if at >= len(content):
        raise ValueError("a header is cut short")
    return content[at]


def _varint(content: Sequence[int], at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = _byte(content, at), at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return at, value
        if shift > 63:
            raise ValueError("a number is too long")


def _signed(content: Sequence[int], at: int) -> tuple[int, int]:
    at, value = _varint(content, at)
    return at, (value >> 1) ^ -(value & 1)


def measure_arrow(content: bytes | mmap) -> tuple[int, int]:
    """Rows of a Feather (Arrow IPC) file, and bytes its batches and dictionaries unpack to."""
    try:
        if content[: len(MAGIC)] != MAGIC or content[-len(MAGIC) :] != MAGIC:
            raise ValueError("not an Arrow file")
        (length,) = struct.unpack_from("<i", content, len(content) - 10)
        footer = FlatTable(content, len(content) - 10 - length)
        words, batches = (
            list(_measure_batches(content, footer.structs(number, 24))) for number in (2, 3)
        )
        return sum(rows for rows, _ in batches), sum(size for _, size in words + batches)
    except struct.error:
        raise ValueError("a header points outside the file") from None


def _measure_batches(content: bytes | mmap, blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rows and size of every batch; what was mapped of a file is given back now and then."""
    unneeded = getattr(mmap_module, "MADV_DONTNEED", None)  # not on Windows
    for number, at in enumerate(blocks, start=1):
        yield _measure_batch(content, *struct.unpack_from("<qi4xq", content, at))
        if isinstance(content, mmap) and unneeded is not None and number % MAPPED == 0:
            content.madvise(unneeded)


def _measure_batch(content: bytes | mmap, offset: int, head: int, body: int) -> tuple[int, int]:
    """Rows of one batch, and what it unpacks to: its buffers, and a byte for every row."""
    if offset < 0 or head < 8 or body < 0 or offset + head + body > len(content):
        raise ValueError("a batch lies outside the file")
    message = FlatTable(content, offset + 8)  # after the mark and the length
    batch = message.table(2)
    if struct.unpack_from("<B", content, message.field(1))[0] == 2:  # a dictionary
        batch = batch.table(1)
    rows = struct.unpack_from("<q", content, batch.field(0))[0] if batch.field(0) else 0
    packed = batch.field(3) != 0
    total = max(rows, 0)
    for at in batch.structs(2, 16):
        start, length = struct.unpack_from("<qq", content, at)
        if length < 0 or start < 0 or start + length > body:
            raise ValueError("a buffer lies outside its batch")
        if packed and length >= 8:
            (declared,) = struct.unpack_from("<q", content, offset + head + start)
            length = declared if declared >= 0 else length
        total += length
    return max(rows, 0), total


class FlatTable:
    """A FlatBuffers table: where its fields are, by number."""

    def __init__(self, content: bytes | mmap, at: int, *, root: bool = True) -> None:
        self.content = content
        self.at = at + struct.unpack_from("<I", content, at)[0] if root else at
        self.fields = self.at - struct.unpack_from("<i", content, self.at)[0]
        (self.size,) = struct.unpack_from("<H", content, max(self.fields, 0))

    def field(self, number: int) -> int:
        """Where a field is, or 0 if it is not there."""
        place = 4 + 2 * number
        if self.fields < 0 or place + 2 > self.size:
            return 0
        (offset,) = struct.unpack_from("<H", self.content, self.fields + place)
        return self.at + int(offset) if offset else 0

    def table(self, number: int) -> FlatTable:
        """The table that a field refers to."""
        at = self.field(number)
        if not at:
            raise ValueError("a header lacks a part")
        return FlatTable(
            self.content, at + struct.unpack_from("<I", self.content, at)[0], root=False
        )

    def structs(self, number: int, size: int) -> list[int]:
        """Where the structs of a list are, none if it is not there."""
        at = self.field(number)
        if not at:
            return []
        start = at + struct.unpack_from("<I", self.content, at)[0]
        (count,) = struct.unpack_from("<I", self.content, start)
        if count * size > len(self.content):
            raise ValueError("a list is longer than the file")
        return [start + 4 + size * k for k in range(count)]
