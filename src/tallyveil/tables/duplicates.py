"""Rows that repeat the public labels of earlier ones, in a table of any length.

Rows are hashed batch by batch to 64 bits, with a key that is new for every run. The hashes of at
most `MOST_HELD` rows are sorted at once; longer tables are read several times, each time for some
of the hashes. Equal hashes are no proof: the rows that have them are compared label by label.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.tables.labels import fill_empty, view_numbers, write_texts
from tallyveil.tables.table import Table, make_counts

Hashes = NDArray[np.uint64]

MOST_HELD = 104 << 20
"""Hashes that are sorted at once: 832 MiB."""

STEP = 1 << 20
"""Sorted hashes that are compared at once."""

MOST_SUSPECTS = 1000
"""Repeated hashes whose rows are compared; chance gives hardly any."""

WORD = 8
LONG = 16 * WORD
"""Longer labels are hashed one by one: a single one must not cost all others its length."""

KEY = np.uint64(hash("labels") & (2**64 - 1) | 1)
"""New for every run, as hashes of text are, so that nobody can prepare labels that collide."""

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD)] + [2**64 - 1], dtype=np.uint64)


class Repeats:
    """A search for rows with the same public labels, as the rows of a table come batch by batch.

    Holds the hashes of at most `MOST_HELD` rows; `require_none` reads a longer table again.
    """

    def __init__(self, table: Table, names: Sequence[str]) -> None:
        self.table, self.names = table, names
        self.parts = max(1, -(-table.rows // MOST_HELD))
        self._begin(0)

    def _begin(self, part: int) -> None:
        """Begin to collect the hashes of one part: an even share of all hashes there can be."""
        self.part = part
        self.size, self.rising = 0, dict.fromkeys(self.names, -math.inf)
        self.hashes = np.empty(min(self.table.rows, MOST_HELD + MOST_HELD // 8), np.uint64)

    def add(self, batch: Any) -> None:
        """Hash the rows of an Arrow batch."""
        _keep_rising(batch, self.rising)
        piece = self._hash(batch)
        if self.parts > 1:  # a hash below the part wraps around to a very large one
            width = np.uint64(2**64 // self.parts + 1)
            piece = piece[piece - np.uint64(self.part) * width < width]
        piece = piece[: len(self.hashes) - self.size]  # a part this large repeats hashes
        self.hashes[self.size : self.size + len(piece)] = piece
        self.size += len(piece)

    def _hash(self, batch: Any) -> Hashes:
        """Hash the labels of every row; rows with the same labels have the same hash."""
        first, *others = (_hash_column(batch.column(name)) for name in self.names)
        if self.parts == 1 and not others:  # nothing asks for evenly spread hashes
            return first
        hashes = _mix(first)
        for more in others:
            hashes = _mix(hashes * SECOND + more)
        return hashes

    def require_none(self) -> None:
        """Raise a `TableError` that names the first row with the labels of an earlier one.

        In a table of more than `MOST_HELD` rows, and where very many rows repeat others, it may be
        another of them.
        """
        suspects = self._find_suspects()
        while self.part + 1 < self.parts and not len(suspects) and not self.rising:
            self._begin(self.part + 1)
            for batch in self.table.scan(self.names):
                self.add(batch)
            suspects = self._find_suspects()
        if len(suspects):
            self._compare(suspects)

    def _find_suspects(self) -> Hashes:
        """Find hashes that rows share; none where a column of whole numbers rises."""
        hashes, self.hashes = self.hashes[: self.size], np.zeros(0, np.uint64)
        shared = np.zeros(0, np.uint64)
        if self.rising:
            return shared
        hashes.sort()
        for start in range(0, len(hashes) - 1, STEP):
            piece = hashes[start : start + STEP + 1]
            shared = np.append(shared, piece[1:][piece[1:] == piece[:-1]])[:MOST_SUSPECTS]
        return shared

    def _compare(self, suspects: Hashes) -> None:
        """Compare the rows with these hashes label by label."""
        seen: set[tuple[str, ...]] = set()
        start = 0
        for batch in self.table.scan(self.names):
            rows = np.flatnonzero(np.isin(self._hash(batch), suspects))
            likely = batch.take(make_counts(rows))
            columns = [fill_empty(write_texts(likely.column(name))) for name in self.names]
            texts = zip(*(column.to_pylist() for column in columns), strict=True)
            for row, labels in zip(rows.tolist(), texts, strict=True):
                if labels in seen:
                    raise describe_repeat(start + row, self.names)
                seen.add(labels)
            start += batch.num_rows


def describe_repeat(row: int, names: Sequence[str]) -> TableError:
    """Describe the error of a row, from 0, with the same public labels as an earlier one."""
    return TableError(
        f"Row {row + 1} repeats the category of an earlier row "
        f"({', '.join(names[:4])}{', ...' if len(names) > 4 else ''}): one person could be in "
        "both. Merge the rows, or use counts.allow_duplicates=True if no person is in two "
        "rows."
    )


def _keep_rising(batch: Any, rising: dict[str, float]) -> None:
    """Forget the columns whose whole numbers do not rise."""
    import pyarrow as pa

    for name in list(rising):
        last, column = rising.pop(name), batch.column(name)
        if not pa.types.is_integer(column.type) or column.null_count:
            continue
        numbers = view_numbers(column)
        if not len(numbers):
            rising[name] = last
        elif numbers[0] > last and (numbers[1:] > numbers[:-1]).all():
            rising[name] = int(numbers[-1])


def _hash_column(column: Any) -> Hashes:
    """Hash an Arrow array: whole numbers to themselves, everything else by its text.

    A missing number has one hash, so that every batch hashes a number alike.
    """
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        numbers = view_numbers(column)
        kind = np.int64 if numbers.dtype.kind == "i" else np.uint64
        hashes: Hashes = numbers.astype(kind, copy=False).view(np.uint64)
        if not column.null_count:
            return hashes
        return np.where(view_numbers(column.is_null().cast(pa.uint8())) > 0, KEY, hashes)
    return _hash_text(fill_empty(write_texts(column)))


def _hash_text(texts: Any) -> Hashes:
    """Hash text, eight bytes at a time; what is very long, piece by piece.

    >>> import pyarrow as pa
    >>> hashes = _hash_text(pa.array(["ab", "ab", "ba", "x" * 200, "x" * 200]))
    >>> [bool(hashes[a] == hashes[b]) for a, b in ((0, 1), (0, 2), (3, 4))]
    [True, False, True]
    """
    if not len(texts):
        return np.zeros(0, np.uint64)
    _, offsets, content = texts.buffers()
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset).astype(np.int64)
    starts, lengths = ends[:-1], np.diff(ends)
    size = 0 if content is None else int(ends[-1])
    padded = np.zeros(-(-size // WORD) * WORD + 2 * WORD, np.uint8)
    padded[:size] = np.frombuffer(content, np.uint8, size) if size else ()
    words = padded.view(np.uint64)
    hashes = _mix(lengths.astype(np.uint64) * SECOND + _load(words, starts, lengths))
    rows = np.arange(len(texts))
    for offset in range(WORD, min(int(lengths.max()), LONG), WORD):
        rows = rows[lengths[rows] > offset]
        more = _load(words, starts[rows] + offset, lengths[rows] - offset)
        hashes[rows] = _mix(hashes[rows] * SECOND + more)
    for row in np.flatnonzero(lengths > LONG).tolist():
        piece = padded[starts[row] : starts[row] + lengths[row]].tobytes()
        digest = hashlib.blake2b(piece, digest_size=WORD, key=KEY.tobytes()).digest()
        hashes[row] = int.from_bytes(digest, "little")
    return hashes


def _load(words: Hashes, starts: Integers, lengths: Integers) -> Hashes:
    """Load up to eight bytes from each start, the first one lowest."""
    shift = (starts & 7).astype(np.uint64) << np.uint64(3)
    first = starts >> 3
    low = words.take(first) >> shift
    high = (words.take(first + 1) << np.uint64(1)) << (np.uint64(63) - shift)
    loaded: Hashes = (low | high) & MASKS.take(np.minimum(lengths, WORD))
    return loaded


def _mix(values: Hashes) -> Hashes:
    """Spread every bit over all others; no two words become one."""
    mixed = values ^ KEY
    mixed ^= mixed >> np.uint64(30)
    mixed *= FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed
