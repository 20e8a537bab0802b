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
DIGITS = np.array([f"{group:04d}".encode() for group in range(GROUP)]).view(np.uint32)
"""The four digits of every number below 10,000, as one word each."""

POWERS = np.array([10**power for power in range(1, 19)], dtype=np.int64)
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
    """Twenty digits for every cell and what follows it, then leading zeros are left out."""
    cells, columns = block.reshape(-1), block.shape[1]
    if cells.size and cells.min() < 0:  # no table of weights, but it has a text
        return "".join(" ".join(map(str, row)) + "\n" for row in block.tolist()).encode()
    words = np.empty((len(cells), 6), dtype=np.uint32)
    rest = cells
    for place in (4, 3, 2, 1, 0):
        higher = rest // GROUP
        words[:, place] = DIGITS[rest - higher * GROUP]
        rest = higher
    text = words.view(np.uint8)[:, :21]
    text[:, 20] = ord(" ")
    text[columns - 1 :: columns, 20] = ord("\n")
    length = np.searchsorted(POWERS, cells, side="right") + 1
    return text[np.arange(21) >= 20 - length[:, None]].tobytes()


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
