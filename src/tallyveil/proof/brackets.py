"""Products of weight tables, each cell between two integers; for tables of geometric mechanisms.

Away from the diagonal every column of such a table is a multiple of a column nearby and a constant,
up to a few units. So for a block of columns a product needs two exact columns beside it, the exact
product of the block on the diagonal, and two multiples of what was found. What the multiples leave
over is bounded, not multiplied: rows of weights are not negative and total 2^62, so it adds no more
than its largest value. All of it is integers: every rounding is down, and counted in the bracket.

Nothing is assumed of a table: how far its columns are from multiples is measured, cell by cell.
Where a table is of another kind the brackets are wide and prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.proof.exponent import Growth
from tallyveil.proof.products import exact_product
from tallyveil.proof.rounding import TOTAL

__all__ = ["Brackets"]

COLUMNS_AT_ONCE = 64
"""How many columns are made from the same two; at most 128, so that sums of limbs stay exact."""

BITS = 21
LONGEST_SUM = 1 << (53 - 2 * BITS)
"""So many products of two limbs add up to no more than 2^53, which doubles hold exactly."""

HALF = 31
WIDEST = 1 << 40
"""Brackets that are wider, in units of 2^-62, are of no use."""


@dataclass(frozen=True)
class _Side:
    """Rows on one side of a block: weights are ``ref * ratio / 2^62 + constant`` and a rest."""

    ratio: Integers
    constant: Integers
    least: Integers
    most: Integers

    @classmethod
    def of(cls, ref: Integers, columns: Integers, near: int, far: int) -> _Side:
        """Take ratio and constant from two rows, and measure the rest in all of them."""
        count = columns.shape[1]
        if not len(ref):
            nothing = np.zeros(count, dtype=np.int64)
            return cls(nothing, nothing, nothing, nothing)
        gap, rises = int(ref[near]), columns[near].astype(object)
        if ref[near] != ref[far]:
            gap, rises = gap - int(ref[far]), rises - columns[far]
        ratios = [min(max(rise * TOTAL // gap, 0), TOTAL) if gap else 0 for rise in rises]
        ratio = np.array(ratios, dtype=np.int64)
        constant = np.clip(columns[far] - _scale(ref[far], ratio), 0, (1 << HALF) - 1)
        rest = columns - _scale(ref[:, None], ratio) - constant
        # `_scale` is below the exact multiple by less than 3, so the rest is in (rest - 3, rest].
        return cls(
            ratio, constant, np.minimum(rest.min(axis=0) - 3, 0), np.maximum(rest.max(axis=0), 0)
        )

    def take(self, refs: Integers, shares: Integers) -> Integers:
        """What these rows add to each column, rounded down; less than 6 below, without the rest.

        `refs` is floor(sum a ref / 2^62) and `shares` sum a, over the rows on this side.
        """
        multiples = _scale(refs[:, None], self.ratio)  # less than 3 + 1 below
        multiples += ((shares[:, None] >> HALF) * self.constant) >> HALF  # less than 2 below
        return multiples


@dataclass(frozen=True)
class _Block:
    """Columns start..stop of a table: limbs on the diagonal, and the rows on both sides."""

    start: int
    stop: int
    limbs: Sequence[Floats]
    above: _Side
    below: _Side

    def take_diagonal(self, limbs: Sequence[Floats]) -> Integers:
        """floor(sum a weights / 2^62) over the rows of the block; at most 1 below that.

        Limbs of one place are added inside a matrix product: 3 * 128 * 2^42 is below 2^53. The
        product of the lowest limbs is below 2^49, less than one unit, and left out.
        """
        low, middle, high = (limb[:, self.start : self.stop] for limb in limbs)
        lows, middles, highs = self.limbs
        left = np.hstack([high, middle, low])
        count = self.stop - self.start
        right = np.vstack([lows, middles, highs])
        places = (
            left[:, count:] @ right[: 2 * count],
            left @ right,
            left[:, : 2 * count] @ right[count:],
            high @ highs,
        )
        return _shift_down(*(place.astype(np.int64) for place in places))


@dataclass(frozen=True)
class _Step:
    """One table, ready for rows to be multiplied with it."""

    blocks: Sequence[_Block]
    refs: Sequence[Floats]
    least: Integers
    most: Integers

    @classmethod
    def of(cls, weights: Integers) -> _Step:
        """Cut a table into blocks; the first and the last column, unlike the others, alone."""
        size = len(weights)
        edges = sorted({0, *range(1, size - 1, COLUMNS_AT_ONCE), size - 1, size})
        refs = np.zeros((size, 2 * (len(edges) - 1)), dtype=np.int64)
        blocks = []
        for at, (start, stop) in enumerate(pairwise(edges)):
            columns = weights[:, start:stop]
            refs[:start, 2 * at] = columns[:start, 0]
            refs[stop:, 2 * at + 1] = columns[stop:, -1]
            above = _Side.of(columns[:start, 0], columns[:start], -1, 0)
            below = _Side.of(columns[stop:, -1], columns[stop:], 0, -1)
            blocks.append(_Block(start, stop, _cut(columns[start:stop]), above, below))
        least = [np.minimum(block.above.least, block.below.least) for block in blocks]
        # Less than 6 for each side, and less than 2 for the diagonal.
        most = [np.maximum(block.above.most, block.below.most) + 14 for block in blocks]
        return cls(blocks, _cut(refs), np.concatenate(least), np.concatenate(most))

    def take(self, rows: Integers) -> Integers:
        """rows @ weights / 2^62, between `least` and `most` above what is given, by column.

        Rows are not negative and total at most 2^62.
        """
        limbs = _cut(rows)
        refs = _multiply(limbs, self.refs)
        sums = np.zeros((len(rows), rows.shape[1] + 1), dtype=np.int64)
        np.cumsum(rows, axis=1, out=sums[:, 1:])
        made = np.empty(rows.shape, dtype=np.int64)
        for at, block in enumerate(self.blocks):
            part = block.take_diagonal(limbs)
            if block.start:
                part += block.above.take(refs[:, 2 * at], sums[:, block.start])
            if block.stop < rows.shape[1]:
                part += block.below.take(refs[:, 2 * at + 1], sums[:, -1] - sums[:, block.stop])
            made[:, block.start : block.stop] = part
        return made


@dataclass(frozen=True)
class Brackets:
    """The levels of a ladder, cell by cell between two integers in units of 2^-62."""

    first: Integers
    steps: Sequence[_Step]
    widths: Sequence[Integers]

    @classmethod
    def of(cls, tables: Sequence[Integers]) -> Brackets | None:
        """Brackets of all products of the first tables; None where they would be of no use."""
        if not all(_is_stochastic(weights) for weights in tables):
            return None
        steps = []
        widths = [np.zeros(len(tables[0]), dtype=np.int64)]
        for weights in tables[1:]:
            step = _Step.of(weights)
            # Rows are known up to their widths, which the table carries on, rounded up. The
            # differences may pass 64 bits, so they are Python's integers.
            carried = -(-exact_product(widths[-1][None], weights)[0] >> 62)
            width = step.most.astype(object) - step.least + carried
            if int(width.max()) > WIDEST:
                return None
            steps.append(step)
            widths.append(width.astype(np.int64))
        return cls(tables[0], steps, widths)

    def build_rows(self, start: int, stop: int) -> Iterator[tuple[Integers, Integers]]:
        """Rows start..stop of every level: what they are at least, and at most."""
        rows = self.first[start:stop]
        yield rows, rows
        for step, width in zip(self.steps, self.widths[1:], strict=True):
            rows = np.maximum(step.take(rows) + step.least, 0)
            yield rows, rows + width

    def prove(self, start: int, stop: int, width: int, growths: Sequence[Growth | None]) -> bool:
        """Whether rows start..stop that are up to `width` apart keep their ratios at all levels.

        False proves nothing.
        """
        for growth, (least, most) in zip(growths, self.build_rows(start, stop), strict=False):
            if growth is None:
                continue
            caps = growth.cap(least)
            for step in range(1, min(width, len(caps) - 1) + 1):
                if (most[:-step] > caps[step:]).any() or (most[step:] > caps[:-step]).any():
                    return False
        return True


def _is_stochastic(weights: Integers) -> bool:
    """Whether no weight is negative and every row totals 2^62, with no sum beyond 64 bits."""
    if weights.dtype != np.int64 or int(weights.min()) < 0 or int(weights.max()) > TOTAL:
        return False
    high = (weights >> HALF).sum(axis=1)
    low = (weights & ((1 << HALF) - 1)).sum(axis=1)
    return bool((high <= 1 << HALF).all() and ((high << HALF) + low == TOTAL).all())


def _scale(values: Integers, ratios: Integers) -> Integers:
    """values * ratios / 2^62, less than 3 below; both are at most 2^62 and not negative."""
    mask = (1 << HALF) - 1
    high, low = values >> HALF, values & mask
    over, under = ratios >> HALF, ratios & mask
    scaled: Integers = high * over + (high * under >> HALF) + (low * over >> HALF)
    return scaled


def _cut(table: Integers) -> list[Floats]:
    """Three limbs of integers up to 2^62, lowest first, as doubles."""
    mask = (1 << BITS) - 1
    return [(table >> shift & mask).astype(np.float64) for shift in (0, BITS, 2 * BITS)]


def _multiply(left: Sequence[Floats], right: Sequence[Floats]) -> Integers:
    """floor(left @ right / 2^62), exactly; products of limbs are added as integers."""
    shape = (left[0].shape[0], right[0].shape[1])
    places = [np.zeros(shape, dtype=np.int64) for _ in range(5)]
    for start in range(0, left[0].shape[1], LONGEST_SUM):
        inner = slice(start, start + LONGEST_SUM)
        for low, first in enumerate(left):
            for high, second in enumerate(right):
                places[low + high] += (first[:, inner] @ second[inner]).astype(np.int64)
    places[1] += places[0] >> BITS
    return _shift_down(*places[1:])


def _shift_down(one: Integers, two: Integers, three: Integers, four: Integers) -> Integers:
    """Floor of one 2^21 + two 2^42 + three 2^63 + four 2^84, in units of 2^62."""
    down: Integers = ((one >> BITS) + two >> 62 - 2 * BITS) + (three << 1) + (four << 22)
    return down
