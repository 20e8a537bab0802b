"""Released files hold their table and nothing beside it: no notes, no names, no bytes in between.

What a file can carry unseen (metadata of a format, labels of values, a comment of a packed file,
bytes that no reader looks at) is published all the same, and no receipt speaks of it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any
from zipfile import ZipFile

from tallyveil.errors import TableError
from tallyveil.untrusted import open_file

__all__ = [
    "require_bare",
    "require_bare_notes",
    "require_bare_packing",
    "require_bare_parquet",
    "require_bare_schema",
    "require_bare_zip",
    "require_joined",
]

PIECE = 1 << 20
GZIP = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0))
"""Deflated, with no name, comment or further field, and no time."""

ZSTD = 0xFD2FB528
PARQUET_MARK, PARQUET_TAIL = 4, 8
NOTES = ("file_label", "notes", "variable_value_labels", "missing_ranges", "missing_user_values",
         "mr_sets")  # fmt: skip


def require_bare(bare: bool) -> None:
    """Refuse a file unless it is bare."""
    if not bare:
        raise TableError("The released file holds more than its table.")


def require_bare_schema(schema: Any) -> None:
    """Refuse an Arrow schema that says anything but names and types."""
    require_bare(not schema.metadata)
    fields = list(schema)
    while fields:
        field = fields.pop()
        require_bare(not {*(field.metadata or ())} - {b"PARQUET:field_id"})
        fields += [field.type.field(at) for at in range(field.type.num_fields)]


def require_bare_parquet(schema: Any, meta: Any, length: int) -> None:
    """Refuse a Parquet file with words of its own, or bytes that belong to no column."""
    require_bare_schema(schema)
    require_bare({*(meta.metadata or ())} <= {b"ARROW:schema"})
    groups = (meta.row_group(at) for at in range(meta.num_row_groups))
    chunks = (group.column(at) for group in groups for at in range(meta.num_columns))
    parts = []
    for chunk in chunks:
        starts = (chunk.dictionary_page_offset, chunk.data_page_offset)
        start = min(offset for offset in starts if offset)
        parts.append((start, chunk.total_compressed_size))
    end = require_joined(parts, PARQUET_MARK)
    require_bare(end + meta.serialized_size + PARQUET_TAIL == length)


def require_joined(parts: Iterable[tuple[int, int]], end: int) -> int:
    """Where the last of these parts ends; each must start where the one before ends."""
    for start, size in sorted(parts):
        require_bare(start == end and size >= 0)
        end = start + size
    return end


def require_bare_notes(facts: Any) -> None:
    """Refuse a file of a statistics program with labels or notes; `facts` is what it says."""
    require_bare(not any(getattr(facts, name, None) for name in NOTES))
    require_bare(not any(facts.column_labels))


def require_bare_zip(parts: ZipFile, length: int) -> None:
    """Refuse a zip file of `length` bytes in which some belong to no member."""
    members = parts.infolist()
    require_bare(not parts.comment)
    for member in members:
        require_bare(not (member.extra or member.comment or member.flag_bits))
        require_bare(member.date_time == (1980, 1, 1, 0, 0, 0))
    sizes = [(one.header_offset, 30 + len(one.filename) + one.compress_size) for one in members]
    require_bare(require_joined(sizes, 0) == parts.start_dir)
    directory = sum(46 + len(member.filename) for member in members)
    require_bare(parts.start_dir + directory + 22 == length)


def require_bare_packing(path: Path, packing: str) -> None:
    """Refuse packed text that is not one stream without a name, a time and anything behind it."""
    with open_file(path) as file:
        try:
            _skip_gzip(file) if packing == ".gz" else _skip_zstd(file)
        except (zlib.error, struct.error):
            require_bare(False)
        require_bare(not file.read(1))


def _skip_gzip(file: IO[bytes]) -> None:
    head = file.read(len(GZIP))
    require_bare(head == GZIP)
    stream = zlib.decompressobj(31)
    stream.decompress(head)
    while not stream.eof:
        waiting = stream.unconsumed_tail or file.read(PIECE)
        require_bare(bool(stream.decompress(waiting, PIECE) or waiting))
    require_bare(not stream.unused_data)


def _skip_zstd(file: IO[bytes]) -> None:
    """Go to the end of one frame, block by block; what follows it is not of this table."""
    magic, flags = struct.unpack("<IB", file.read(5))
    require_bare(magic == ZSTD and not flags & 0b1011)  # no dictionary, nothing reserved
    whole = flags >> 5 & 1
    content = (whole, 2, 4, 8)[flags >> 6]
    file.read((0 if whole else 1) + content)
    last = 0
    while not last:
        (block,) = struct.unpack("<I", file.read(3) + b"\0")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        size = 1 if kind == 1 else size
        require_bare(len(file.read(size)) == size)
    file.read(4 if flags & 4 else 0)
