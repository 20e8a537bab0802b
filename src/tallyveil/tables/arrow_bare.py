"""Released Feather (Arrow IPC) files hold their table and nothing beside it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import mmap

from tallyveil.tables.arrow_sizes import MAGIC, FlatTable
from tallyveil.tables.bare import require_bare, require_joined

__all__ = ["require_bare_arrow"]

START, PREFIX, TAIL = 8, 8, 10
"""Bytes before the first message, before the header of each, and after the footer."""

END = struct.pack("<iI", -1, 0)
"""What follows the last message."""

DICTIONARIES, BATCHES, WORDS = 2, 3, 4
"""Numbers of the footer's fields; words are for whoever wants to say something."""


def require_bare_arrow(content: bytes | mmap) -> None:
    """Refuse a Feather file with words of its own, or with bytes that belong to no batch.

    Messages must join from the beginning to the footer, and what is between the buffers of a
    message must be a few zeros. A ValueError is raised where headers point outside the file.
    """
    try:
        (length,) = struct.unpack_from("<i", content, len(content) - TAIL)
        footer = FlatTable(content, len(content) - TAIL - length)
        (schema,) = struct.unpack_from("<I", content, START + 4)
        blocks = [
            struct.unpack_from("<qi4xq", content, at)
            for number in (DICTIONARIES, BATCHES)
            for at in footer.structs(number, 24)
        ]
        require_bare(not footer.field(WORDS) and content[len(MAGIC) : START] == bytes(2))
        require_bare(not FlatTable(content, START + PREFIX).field(WORDS))
        parts = [(START, PREFIX + schema)]
        for offset, head, body in blocks:
            parts.append((offset, head + body))
            for start, stop in _list_gaps(content, offset, head, body):
                require_bare(stop - start < 64 and not any(content[start:stop]))
        end = require_joined(parts, START)
        require_bare(content[end : end + len(END)] == END)
        require_bare(end + len(END) + length + TAIL == len(content))
    except struct.error:
        raise ValueError("a header points outside the file") from None


def _list_gaps(
    content: bytes | mmap, offset: int, head: int, body: int
) -> Iterator[tuple[int, int]]:
    """Where bytes of a message lie that belong to none of its buffers."""
    message = FlatTable(content, offset + PREFIX)
    require_bare(not message.field(WORDS))
    batch = message.table(2)
    if struct.unpack_from("<B", content, message.field(1))[0] == 2:  # a dictionary
        batch = batch.table(1)
    places = (struct.unpack_from("<qq", content, at) for at in batch.structs(2, 16))
    end = 0
    for start, length in sorted(places):
        if length:
            require_bare(start >= end)
            yield offset + head + end, offset + head + start
            end = start + length
    yield offset + head + end, offset + head + body
