"""Keyed 64-bit hashes of labels: equal labels have equal hashes, and different ones hardly ever.

Hashes only say where to look. What must not be wrong is compared label by label afterwards.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.tables.text_column import WORD, TextColumn

__all__ = ["EMPTY", "Hashes", "hash_numbers", "hash_text", "join_hashes", "mix_hashes", "use_key"]

Hashes = NDArray[np.uint64]

_key = [np.uint64(hash("labels") & (2**64 - 1) | 1)]
"""New for every run, as hashes of text are, so that nobody can prepare labels that collide."""

LONG = 128 * WORD
"""Longer pieces are hashed one by one: a single one must not cost all others its length."""

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
EMPTY = np.uint64(0x9E3779B97F4A7C15)
"""Stands for a cell without a value."""


def use_key(key: int) -> None:
    """Hash as other processes do that were given the same key."""
    _key[0] = np.uint64(key | 1)


def hash_numbers(values: NDArray[Any]) -> Hashes:
    """Hash whole numbers of any type, or the bits of doubles; only equal numbers have equal hashes.

    One multiplication by a secret odd number spreads them over the leading bits.
    """
    if values.dtype.kind == "f":
        wide = values.astype(np.float64)
        wide[np.isnan(wide)] = np.nan
    else:
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64, copy=False)
    found: Hashes = wide.view(np.uint64) * _key[0]
    return found


def hash_text(column: TextColumn) -> Hashes:
    """Hash text, eight bytes at a time; what is very long, piece by piece.

    >>> found = hash_text(TextColumn.of([b"ab", b"ab", b"ba"]))
    >>> bool(found[0] == found[1]), bool(found[0] == found[2])
    (True, False)
    """
    found = mix_hashes(column.load() + column.lengths.astype(np.uint64) * SECOND)
    rows = np.arange(len(column))
    for offset in range(WORD, min(column.longest, LONG), WORD):
        rows = rows[column.lengths[rows] > offset]
        found[rows] = mix_hashes(found[rows] * SECOND + column.take(rows).load(offset))
    for row in np.flatnonzero(column.lengths > LONG).tolist():
        found[row] = _hash_long(column.piece(row))
    return found


def _hash_long(piece: bytes) -> np.uint64:
    made = hashlib.blake2b(piece, digest_size=WORD, key=_key[0].tobytes())
    return np.uint64(int.from_bytes(made.digest(), "little"))


def join_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Hash two columns together, in this order."""
    return mix_hashes(mix_hashes(first) + second)


def mix_hashes(values: Hashes) -> Hashes:
    """Spread every bit over all others; no two words become one."""
    mixed = values ^ _key[0]
    mixed ^= mixed >> np.uint64(30)
    mixed *= FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed
