"""A column of text as bytes in one buffer, handled eight bytes at a time and not row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask

__all__ = ["TextColumn", "Words", "align_words"]

Words = NDArray[np.uint64]
"""Eight bytes each, the first one lowest, 0 beyond the end of the text."""

WORD = 8
LONG = 8 * WORD
"""Longer pieces are looked at one by one: a single one must not cost all others its length."""

MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD)] + [2**64 - 1], dtype=np.uint64)
BYTES, THREE = np.uint64(7), np.uint64(3)
ONES = np.uint64(0x0101010101010101)
ZEROS, SIXES, HIGH = ONES * np.uint64(0x30), ONES * np.uint64(6), ONES * np.uint64(0xF0)


def align_words(buffer: NDArray[np.uint8]) -> Words:
    """Copy a buffer into 64-bit words, with room beyond its end."""
    padded = np.zeros(-(-len(buffer) // WORD) * WORD + 2 * WORD, np.uint8)
    padded[: len(buffer)] = buffer
    return padded.view(np.uint64)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Pieces of a buffer: where each starts and how many bytes it has.

    >>> column = TextColumn.of([b"12", b"x", b""])
    >>> column.decode("utf-8"), column.is_digits.tolist()
    (['12', 'x', ''], [True, False, True])
    """

    buffer: NDArray[np.uint8]
    starts: Integers
    lengths: Integers
    aligned: Words | None = None
    """The buffer as `align_words` gives it, if that was done already."""

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> TextColumn:
        """The column of these pieces."""
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        buffer = np.frombuffer(b"".join(pieces), np.uint8)
        return cls(buffer, np.cumsum(lengths) - lengths, lengths)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def longest(self) -> int:
        """Bytes of the longest piece."""
        return int(self.lengths.max(initial=0))

    def take(self, rows: Any) -> TextColumn:
        """Give some of the rows."""
        return TextColumn(self.buffer, self.starts[rows], self.lengths[rows], self._words)

    def load(self, offset: int = 0) -> Words:
        """Load up to eight bytes of each piece from `offset` on."""
        if not offset:
            return self._load(self.starts, np.minimum(self.lengths, WORD))
        starts = np.minimum(self.starts + offset, len(self.buffer))
        return self._load(starts, np.clip(self.lengths - offset, 0, WORD))

    def load_end(self) -> Words:
        """Load the last eight bytes of each piece, or all of them."""
        offset = np.maximum(self.lengths - WORD, 0)
        return self._load(self.starts + offset, self.lengths - offset)

    def _load(self, starts: Integers, lengths: Integers) -> Words:
        at = starts >> 3
        shift = (starts.astype(np.int64, copy=False).view(np.uint64) & BYTES) << THREE
        low = self._words.take(at) >> shift
        at += 1
        high = (self._words.take(at) << np.uint64(1)) << (np.uint64(63) - shift)
        found: Words = (low | high) & MASKS.take(lengths)
        return found

    @cached_property
    def _words(self) -> Words:
        return align_words(self.buffer) if self.aligned is None else self.aligned

    @cached_property
    def is_digits(self) -> Mask:
        """Whether every byte of each piece is a digit, as it is of an empty one."""
        found = np.ones(len(self), dtype=bool)
        for offset in range(0, min(self.longest, LONG), WORD):
            missing = ~MASKS[np.clip(self.lengths - offset, 0, WORD)]
            word = self.load(offset) | (ZEROS & missing)
            found &= ((word & HIGH) == ZEROS) & (((word + SIXES) & HIGH) == ZEROS)
        for row in np.flatnonzero(found & (self.lengths > LONG)).tolist():
            found[row] = self.piece(row).isdigit()
        return found

    def piece(self, row: int) -> bytes:
        """Give the bytes of one row."""
        start = int(self.starts[row])
        return self.buffer[start : start + int(self.lengths[row])].tobytes()

    def to_numbers(self) -> Integers:
        """Read pieces of one to eight digits as numbers."""
        word = (self.load() & (ONES * np.uint64(0x0F))) << ((WORD - self.lengths) << 3).astype(
            np.uint64
        )
        word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
        word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
        word = (word * np.uint64(10000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
        return word.astype(np.int64)

    def decode(self, encoding: str) -> list[str]:
        """Give every piece as a string; for few rows."""
        ends = (self.starts + self.lengths).tolist()
        content = self.buffer.tobytes() if len(self) > 64 else None
        spans = zip(self.starts.tolist(), ends, strict=True)
        if content is None:
            return [self.buffer[a:b].tobytes().decode(encoding) for a, b in spans]
        return [content[a:b].decode(encoding) for a, b in spans]

    def number(self) -> tuple[Integers, Integers]:
        """Number the distinct pieces: the code of each row, and a row of each code.

        Exact: pieces are compared byte for byte. No piece may hold a zero byte.
        """
        long = np.flatnonzero(self.lengths > LONG)
        if not len(long):
            return self._number_short()
        short = np.flatnonzero(self.lengths <= LONG)
        codes = np.empty(len(self), np.int64)
        codes[short], rows = self.take(short)._number_short()
        code_of: dict[bytes, int] = {}
        first: list[int] = []
        for row in long.tolist():
            code = code_of.setdefault(self.piece(row), len(code_of))
            codes[row] = len(rows) + code
            if code == len(first):
                first.append(row)
        return codes, np.concatenate([short[rows], np.array(first, np.int64)])

    def _number_short(self) -> tuple[Integers, Integers]:
        """Number pieces of few bytes, as words."""
        width = max(-(-self.longest // WORD), 1)
        table = np.empty((len(self), width), np.uint64)
        for at in range(width):
            table[:, at] = self.load(WORD * at)
        if width == 1:
            _, rows, codes = np.unique(table[:, 0], return_index=True, return_inverse=True)
        else:
            pieces = table.view(f"S{WORD * width}").reshape(-1)
            _, rows, codes = np.unique(pieces, return_index=True, return_inverse=True)
        return codes.astype(np.int64), rows.astype(np.int64)
