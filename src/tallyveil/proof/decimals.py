"""Tables of integers as lines of decimals, written and read at machine speed in blocks of rows.

There is one way to write a table, and `read_table` accepts nothing else: it writes what it has
read again and compares every byte. So the reading need not be trusted, only the writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["parse_table", "read_table", "write_table"]

GROUP = 10_000
FULL = b"".join(b"%04d" % group for group in range(GROUP))
LEADING = b"\0\0\0\0" + b"".join((b"%d" % group).rjust(4, b"\0") for group in range(1, GROUP))
GROUPS = np.frombuffer(FULL + LEADING, dtype=np.uint32)
"""The four digits of every number below 10,000 as one word each, after other digits; then as the
first digits of a number, where leading zeros are null bytes."""

LAST = np.frombuffer(FULL + b"\0\0\0000" + LEADING[4:], dtype=np.uint32)
"""The same for a number's last four digits: a zero alone is written."""

CELLS_AT_ONCE = 1 << 15
"""Cells handled at once: the temporaries stay in cache."""


def write_table(table: NDArray[np.int64]) -> Iterator[bytes]:
    """Yield the text of a table in parts: a newline ends a row, one space parts its cells.

    >>> b"".join(write_table(np.array([[0, 12], [345, 6]])))
    b'0 12\\n345 6\\n'
    """
    rows = max(1, CELLS_AT_ONCE // max(1, table.shape[1]))
    for start in range(0, len(table), rows):
        yield _write_block(np.ascontiguousarray(table[start : start + rows], dtype=np.int64))


def read_table(lines: Sequence[str]) -> NDArray[np.int64]:
    """Read the table whose lines `write_table` wrote; a ValueError for anything else."""
    return _read_blocks(lines, canonical=True)


def parse_table(lines: Sequence[str]) -> NDArray[np.int64]:
    """Read lines that `read_table` has accepted before, without writing them again."""
    return _read_blocks(lines, canonical=False)


def _write_block(block: NDArray[np.int64]) -> bytes:
    """Twenty digits for every cell and what follows it; null bytes are then left out."""
    cells, columns = block.reshape(-1), block.shape[1]
    if cells.size and cells.min() < 0:  # no table of weights, but it has a text
        return "".join(" ".join(map(str, row)) + "\n" for row in block.tolist()).encode()
    words = np.empty((len(cells), 6), dtype=np.uint32)
    rest, group = cells.view(np.uint64), np.uint64(GROUP)
    for place in (4, 3, 2, 1, 0):
        higher = rest // group
        digits = rest - higher * group
        digits += (higher == 0) * group
        words[:, place] = np.take(LAST if place == 4 else GROUPS, digits.view(np.int64))
        rest = higher
    after = words.view(np.uint8)[:, 20:]
    after[:] = np.frombuffer(b" \0\0\0", dtype=np.uint8)
    after[columns - 1 :: columns, 0] = ord("\n")
    return words.tobytes().translate(None, b"\0")


def _read_blocks(lines: Sequence[str], *, canonical: bool) -> NDArray[np.int64]:
    """Read some lines at once; every line must have as many spaces as the first."""
    columns = lines[0].count(" ") + 1 if lines else 0
    table = np.empty((len(lines), columns), dtype=np.int64)
    rows = max(1, CELLS_AT_ONCE // max(1, columns))
    for start in range(0, len(lines), rows):
        text = ("\n".join(lines[start : start + rows]) + "\n").encode()
        part = table[start : start + rows]
        part[:] = _parse_block(text, part.shape)
        if canonical and b"".join(write_table(part)) != text:
            raise ValueError("weights are not plain decimals")
    return table


def _parse_block(text: bytes, shape: tuple[int, int]) -> NDArray[np.int64]:
    if text.translate(None, b"-0123456789 \n"):
        raise ValueError("weights are not plain decimals")
    cells = np.fromstring(text, dtype=np.int64, sep=" ")
    if cells.size != shape[0] * shape[1]:
        raise ValueError("weights are not plain decimals")
    return cells.reshape(shape)
