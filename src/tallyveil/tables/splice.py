"""Rows of bytes with some cells replaced, dropped or added, without a loop over rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask

__all__ = ["Splice", "format_numbers", "splice_rows"]

Octets = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Splice:
    """What becomes of the cells of rows.

    `kept` says which cells stay, shape (columns,); with a cell that goes, one delimiter goes.
    `replaced` holds new numbers of cells that stay, by column, `added` those of new cells, and
    `mark` is the delimiter.
    """

    kept: Mask
    replaced: Mapping[int, NDArray[Any]]
    added: Sequence[NDArray[Any]]
    mark: bytes

    def list_inserted(self, piece: int) -> list[tuple[Octets, Integers]]:
        """The numbers that stand before a piece of the old rows."""
        if piece == 2 * len(self.kept) - 1:
            return [format_numbers(values, self.mark) for values in self.added]
        column, is_delimiter = divmod(piece, 2)
        if is_delimiter or column not in self.replaced:
            return []
        return [format_numbers(self.replaced[column])]


def splice_rows(buffer: Octets, pieces: Sequence[Integers], splice: Splice) -> Octets:
    """Write rows anew, with numbers in place of some cells and further numbers at their ends.

    `pieces` says for every column how long its cells are, and what stands after them: a delimiter
    or the line end; shape (2 columns, rows).

    >>> rows = np.frombuffer(b"a,1\\nbb,22\\n", np.uint8)
    >>> pieces = np.array([[1, 2], [1, 1], [1, 2], [1, 1]])
    >>> new = Splice(np.ones(2, bool), {1: np.array([10, 3])}, [], b",")
    >>> splice_rows(rows, pieces, new).tobytes()
    b'a,10\\nbb,3\\n'
    """
    kept, replaced = splice.kept, splice.replaced
    columns = len(kept)
    last = int(np.flatnonzero(kept)[-1])
    stays = np.zeros(2 * columns, dtype=bool)
    stays[::2] = kept & ~np.isin(np.arange(columns), list(replaced))
    stays[1::2] = kept & (np.arange(columns) < last)
    stays[-1] = True
    carried = buffer[_mask(pieces, stays.tolist())]
    texts: list[Octets] = []
    lengths: list[Integers] = []
    flags: list[bool] = []
    for piece in range(2 * columns):
        for text, length in splice.list_inserted(piece):
            texts.append(text)
            lengths.append(length)
            flags.append(False)
        if stays[piece]:
            lengths.append(pieces[piece])
            flags.append(True)
    is_carried = _mask(lengths, flags)
    made = np.empty(len(is_carried), np.uint8)
    made[is_carried] = carried
    if texts:
        digits = np.concatenate(texts, axis=1)
        made[~is_carried] = digits[digits > 0]
    return made


def format_numbers(values: NDArray[Any], prefix: bytes = b"") -> tuple[Octets, Integers]:
    """Write whole numbers in decimals: bytes by row, 0 where there is none, and their lengths.

    >>> text, lengths = format_numbers(np.array([7, -12]), b",")
    >>> [row[row > 0].tobytes() for row in text], lengths.tolist()
    ([b',7', b',-12'], [2, 4])
    """
    negative = values < 0
    size = np.abs(values.astype(np.int64))
    width = len(str(int(size.max(initial=0))))
    text = np.zeros((len(values), len(prefix) + 1 + width), np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix, np.uint8)
    text[negative, len(prefix)] = ord("-")
    rest = size.astype(np.uint32) if width < 10 else size
    for place in range(width):
        rest, digit = np.divmod(rest, 10)
        column = text[:, -1 - place]
        column[:] = digit
        column += ord("0")
        if place:
            column[size < 10**place] = 0
    return text, np.count_nonzero(text, axis=1)


def _mask(lengths: Sequence[Integers], flags: Sequence[bool]) -> Mask:
    """A flag for every byte of rows whose pieces have these lengths; equal neighbours join."""
    joined: list[Integers] = []
    kinds: list[bool] = []
    for length, flag in zip(lengths, flags, strict=True):
        if kinds and kinds[-1] == flag:
            joined[-1] = joined[-1] + length
        else:
            joined.append(length)
            kinds.append(flag)
    rows = len(joined[0])
    return np.repeat(np.tile(kinds, rows), np.column_stack(joined).reshape(-1))
