"""Find hashes that occur more than once among very many, in linear time and without sorting them.

Of every hash the leading 48 bits are kept, its stem. Stems are grouped by their first bits, block
by block and in place, as SciPy groups the entries of a sparse matrix by rows. In a group further
bits are an address: every member writes its number there, and one that then reads another number
shares its address with that member. What is left after a second round, with addresses mixed from
all bits, is sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask
from tallyveil.tables.hashes import Hashes, mix_hashes

__all__ = ["Stems", "find_equal", "find_marked", "share_out"]

Indices = NDArray[np.int32]
Owners = NDArray[np.uint32]

BITS, HEAD_BITS, TAIL_BITS = 64, 32, 16
ADDRESS_BITS, GROUP_BITS = 20, 12
"""An address is 4 MiB of memory away at the most; a group holds some 2^15 members."""

BLOCK = 1 << 20
"""Stems that are grouped at once."""

MOST_MEMBERS = 1 << 20
"""All members of a larger group are suspects, so that rows that are all alike take no room."""

MOST_SORTED = 1 << 16

MOST_MARKED = 26
"""Beginnings of hashes are told apart by at most so many bits: 64 MiB."""


def find_equal(hashes: Hashes) -> Hashes:
    """The hashes that occur more than once, sorted.

    >>> find_equal(np.array([9, 4, 9, 4, 9, 1], np.uint64)).tolist()
    [4, 9]
    """
    if len(hashes) > MOST_SORTED:
        mixed = mix_hashes(hashes)  # they may all begin alike
        stems = Stems(len(hashes))
        stems.add(mixed)
        marked = stems.mark_repeated()
        hashes = hashes[find_marked(mixed, marked)] if marked.any() else hashes[:0]
    return _find_by_sorting(hashes)


def _find_by_sorting(hashes: Hashes) -> Hashes:
    ordered = np.sort(hashes)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    found: Hashes = again[np.append(True, again[1:] != again[:-1])[: len(again)]]
    return found


def share_out(hashes: Hashes, buckets: int) -> list[Hashes]:
    """Put hashes into buckets by their first bits, so that equal ones are together.

    >>> [part.tolist() for part in share_out(np.array([2**63, 5, 7], np.uint64), 2)]
    [[5, 7], [9223372036854775808]]
    """
    if buckets == 1:
        return [hashes]
    first = (hashes >> np.uint64(BITS - TAIL_BITS)).astype(np.int32)
    rows = _group((first * buckets) >> TAIL_BITS, np.zeros_like(first), hashes, (buckets, 1))
    return np.split(rows.data, rows.indptr[1:-1])


class Stems:
    """The leading 48 bits of hashes, in 32 and 16: room for so many rows, filled part by part."""

    def __init__(self, rows: int) -> None:
        self.heads = np.empty(rows, np.uint32)
        self.tails = np.empty(rows, np.uint16)
        self.size = 0

    def add(self, hashes: Hashes) -> None:
        """Keep the stems of further rows."""
        part = slice(self.size, self.size + len(hashes))
        words = hashes.astype("<u8", copy=False)
        self.heads[part] = words.view("<u4")[1::2]
        self.tails[part] = words.view("<u2")[1::4]
        self.size += len(hashes)

    def mark_repeated(self) -> Mask:
        """Mark how the stems begin that occur more than once; they are in disorder afterwards.

        Shape (2^bits,), with bits enough to tell most other stems apart.
        """
        bits, repeats = min(self.size.bit_length() + 3, MOST_MARKED), 0
        marked = np.zeros(1 << bits, dtype=bool)
        for heads in self._find_repeated():
            marked[heads >> (HEAD_BITS - bits)] = True
            repeats += len(heads)
        if not repeats:
            return np.zeros(2, dtype=bool)
        fewer = min(repeats.bit_length() + 6, bits)
        return np.asarray(marked.reshape(1 << fewer, -1).any(axis=1))

    def _find_repeated(self) -> Iterator[Integers]:
        """The heads of stems that occur more than once, group by group."""
        bits = min(max(self.size.bit_length() - 15, 1), GROUP_BITS)
        rest = HEAD_BITS - bits
        starts = range(0, self.size, BLOCK)
        heads = [self.heads[start : start + BLOCK] for start in starts]
        tails = [self.tails[start : start + BLOCK] for start in starts]
        ends = [_group_stems(*both, bits) for both in zip(heads, tails, strict=True)]
        owner = np.empty(1 << ADDRESS_BITS, dtype=np.uint32)
        for group in range(1 << bits):
            parts = [slice(end[group], end[group + 1]) for end in ends]
            held = _cut(heads, parts)
            if sum(map(len, held)) <= MOST_MEMBERS:
                members = np.concatenate(held).astype(np.intp)
                shared = _find_shared(members >> (rest - ADDRESS_BITS), owner)
                held = [_find_equal_stems(members, _cut(tails, parts), shared, owner)]
            for found in held:
                yield found.astype(np.intp) | group << rest


def find_marked(hashes: Hashes, marked: Mask) -> Mask:
    """Which hashes begin as marked."""
    bits = len(marked).bit_length() - 1
    found: Mask = marked[hashes >> np.uint64(BITS - bits)]
    return found


def _group(keys: Indices, places: Indices, data: NDArray[Any], shape: tuple[int, int]) -> Any:
    """Put entries in order of their keys: a sparse matrix that has them as rows."""
    from scipy.sparse import coo_array

    entries = coo_array((data, (keys, places)), shape=shape)
    entries.has_canonical_format = True  # entries that are alike are not to be added
    return entries.tocsr()


def _group_stems(heads: NDArray[np.uint32], tails: NDArray[np.uint16], bits: int) -> list[int]:
    """Put a block in order of its groups, without their bits; say where they end, from 0 on."""
    rest = HEAD_BITS - bits
    group = (heads >> np.uint32(rest)).view(np.int32)
    member = (heads & np.uint32((1 << rest) - 1)).view(np.int32)
    rows = _group(group, member, tails, (1 << bits, 1 << rest))
    heads[:], tails[:] = rows.indices, rows.data
    ends: list[int] = rows.indptr.tolist()
    return ends


def _find_equal_stems(
    members: Integers, tails: list[NDArray[np.uint16]], shared: Integers, owner: Owners
) -> Hashes:
    """The members of a group whose stems are equal, among those that share an address."""
    if not len(shared):
        return np.zeros(0, np.uint64)
    tail = np.concatenate(tails)
    stems = (members[shared] << TAIL_BITS | tail[shared]).astype(np.uint64)
    mixed = mix_hashes(stems) >> np.uint64(BITS - ADDRESS_BITS)
    again = _find_shared(mixed.astype(np.intp), owner)
    return _find_by_sorting(stems[again]) >> np.uint64(TAIL_BITS)


def _find_shared(address: Integers, owner: Owners) -> Integers:
    """Numbers of the members whose address others have, too; `owner` is overwritten."""
    number = np.arange(len(address), dtype=np.uint32)
    owner[address] = number
    last = owner[address]
    is_shared = last != number
    is_shared[last[is_shared]] = True
    return np.flatnonzero(is_shared)


def _cut(blocks: list[NDArray[Any]], parts: list[slice]) -> list[NDArray[Any]]:
    return [block[part] for block, part in zip(blocks, parts, strict=True)]
