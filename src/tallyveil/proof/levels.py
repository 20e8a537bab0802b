"""Whether every level of a ladder is private: products of weight tables, compared exactly.

A level is drawn in steps, each from integer weights; its distribution is the product of those
tables, with entries of hundreds of bits. Far from the diagonal the rows of a table are constant,
so a table is that constant beside each row plus a window around the diagonal, and so is a product.
It is built for some rows at a time: a few exact vectors, and integers cut into limbs so short that
a double holds every sum of their products exactly. Comparisons are made in those integers. Rows
whose cells lie between integers that suffice (`proof.brackets`) need none of that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from tallyveil.arrays import BigIntegers, Floats, Integers, Mask
from tallyveil.neighbours import Neighbours
from tallyveil.proof.brackets import Brackets
from tallyveil.proof.exponent import Growth
from tallyveil.proof.products import exact_product, ratio_holds
from tallyveil.proof.ratios import find_row_fault
from tallyveil.proof.rounding import TOTAL
from tallyveil.query import Query

__all__ = ["find_broken_level", "first_broken_level", "multiply_levels"]

ROWS_AT_ONCE = 192
"""How many rows of a product are built at once."""

WIDEST_BAND = 8
"""Up to this many steps between neighbours, rows are compared inside a block of rows."""


def find_broken_level(
    tables: Sequence[Integers], query: Query, epsilons: Sequence[Fraction]
) -> str | None:
    """Why the levels of a ladder are not private at their epsilons, or None if they are.

    The first table is drawn from given the true answer, every further one given what the
    level before released. Level k on its own is epsilon_k-private if the exact product of the
    first k tables is; all levels together are as private as the first, because the others
    never look at the true answer again (Gupte and Sundararajan 2010, Lemma 4).
    """
    size = len(query.inputs)
    if not query.is_square or not epsilons or len(tables) != len(epsilons):
        return "A ladder needs a table and an epsilon for every level, and answers as outputs."
    if any(after >= before for before, after in pairwise(epsilons)):
        return "The epsilons of a ladder must fall from level to level."
    for level, weights in enumerate(tables, start=1):
        if weights.shape != (size, size):
            return f"The weights of level {level} do not have the shape of the query's answers."
    for level, weights in enumerate(tables, start=1):
        fault = find_row_fault(weights)
        if fault is not None:
            return f"Level {level}: {fault}"
    broken = first_broken_level(tables, query.neighbours, epsilons)
    if broken is not None:
        return f"Level {broken} is not private at epsilon {epsilons[broken - 1]}."
    return None


def first_broken_level(
    tables: Sequence[Integers], neighbours: Neighbours, epsilons: Sequence[Fraction | None]
) -> int | None:
    """The first level, from 1, where P[i, j] > e^epsilon P[k, j] for neighbours i, k; else None.

    P is the exact product of the tables up to the level, whose rows total 2^62 each. The factor
    is `Growth.of(epsilon)`, a rational proved not to exceed e^epsilon. A level whose epsilon is
    None is not compared. Rows that `Brackets` prove are not multiplied out; all others are, so
    the answer is that of the exact products.
    """
    if neighbours.kind != "band" or neighbours.width > WIDEST_BAND:
        return _compare_whole(tables, neighbours, epsilons)
    growths = [None if epsilon is None else Growth.of(epsilon) for epsilon in epsilons]
    brackets = Brackets.of(tables)
    chain: _Chain | None = None
    broken = len(tables)
    for start in range(0, neighbours.size - 1, ROWS_AT_ONCE):
        stop = min(neighbours.size, start + ROWS_AT_ONCE + neighbours.width)
        if brackets and brackets.prove(start, stop, neighbours.width, growths[:broken]):
            continue
        chain = chain or _Chain.of(tables)
        levels = zip(growths[:broken], chain.build_rows(start, stop), strict=False)
        for level, (growth, rows) in enumerate(levels):
            if growth is not None and not _block_holds(rows, neighbours.width, growth):
                broken = level
                break
    return None if broken == len(tables) else broken + 1


def multiply_levels(tables: Sequence[Integers]) -> list[Floats]:
    """The distribution of every level as doubles: the products of the tables up to it.

    >>> [made.tolist() for made in multiply_levels([np.array([[2**62]])])]
    [[[1.0]]]
    """
    chain, size = _Chain.of(tables), len(tables[0])
    made = [np.empty((size, size)) for _ in tables]
    for start in range(0, size, ROWS_AT_ONCE):
        stop = min(size, start + ROWS_AT_ONCE)
        first, window = chain.take_window(0, slice(start, stop), start, stop)
        x = chain.constants[0][start:stop, None] / TOTAL
        near = window / TOTAL
        for level, whole in enumerate(made):
            if level:
                inner = slice(first, first + near.shape[1])
                x = np.hstack([x, near @ (chain.constants[level][inner, None] / TOTAL)])
                first, window = chain.take_window(level, inner, inner.start, inner.stop)
                near = near @ (window / TOTAL)
            whole[start:stop] = x @ chain.shares[level]
            whole[start:stop, first : first + near.shape[1]] += near
    return made


def _block_holds(rows: _Rows, width: int, growth: Growth) -> bool:
    """Whether all rows of a block that are up to `width` apart keep the ratio."""
    for step in range(1, width + 1):
        upper, lower = rows.part(0, -step), rows.part(step, None)
        if len(upper.x) and not (
            _ratio_holds(upper, lower, growth) and _ratio_holds(lower, upper, growth)
        ):
            return False
    return True


def _compare_whole(
    tables: Sequence[Integers], neighbours: Neighbours, epsilons: Sequence[Fraction | None]
) -> int | None:
    """The same with whole tables of Python's integers, for any neighbours."""
    product: BigIntegers = np.eye(len(tables[0]), dtype=np.int64).astype(object)
    for level, (weights, epsilon) in enumerate(zip(tables, epsilons, strict=True), start=1):
        product = exact_product(product, weights)
        if epsilon is not None and not ratio_holds(product, neighbours, epsilon):
            return level
    return None


@dataclass(frozen=True)
class _Rows:
    """Some rows of a product: sum_r x_r[i] y_r[j], plus limbs of the columns first..last.

    `limbs`, shape (limbs, rows, last - first), count 2^(bits * limb); `x` has a column and `y` a
    row for each term. Columns outside the window have the terms alone.
    """

    x: BigIntegers
    y: BigIntegers
    limbs: Integers
    first: int
    bits: int

    def part(self, start: int, stop: int | None) -> _Rows:
        """The rows from `start` to `stop`."""
        rows = slice(start, stop)
        return _Rows(self.x[rows], self.y, self.limbs[:, rows], self.first, self.bits)


@dataclass(frozen=True)
class _Chain:
    """The tables of a ladder: what each has beside every row, and how far its windows reach."""

    tables: Sequence[Integers]
    constants: Sequence[Integers]
    reaches: Sequence[int]
    sums: Sequence[BigIntegers]
    bits: int

    @classmethod
    def of(cls, tables: Sequence[Integers]) -> _Chain:
        """Take every row's smallest weight as its constant."""
        constants = [weights.min(axis=1) for weights in tables]
        size = len(tables[0])
        sums = [np.ones((1, size), dtype=object)]
        reaches = [
            _find_reach(weights, constant)
            for weights, constant in zip(tables, constants, strict=True)
        ]
        for weights, constant, reach in zip(tables[1:], constants[1:], reaches[1:], strict=True):
            moved = _move_sums(sums[-1], weights, constant, reach)
            sums.append(np.vstack([moved, np.ones((1, size), dtype=object)]))
        return cls(tables, constants, reaches, sums, (53 - size.bit_length()) // 2)

    @cached_property
    def shares(self) -> list[Floats]:
        """`sums` as doubles, in shares of a row."""
        return [
            np.array([row / TOTAL ** (len(sums) - 1 - at) for at, row in enumerate(sums)], float)
            for sums in self.sums
        ]

    def take_window(self, level: int, rows: slice, start: int, stop: int) -> tuple[int, Integers]:
        """Some rows of a table without their constants, from the column where they may differ.

        The rows are those of the answers `start` to `stop`.
        """
        reach = self.reaches[level]
        first, last = max(0, start - reach), stop + reach
        return first, self.tables[level][rows, first:last] - self.constants[level][rows, None]

    def build_rows(self, start: int, stop: int) -> Iterator[_Rows]:
        """Rows start..stop of every level, one level after the other."""
        first, window = self.take_window(0, slice(start, stop), start, stop)
        rows = _Rows(
            self.constants[0][start:stop, None].astype(object),
            self.sums[0],
            np.stack(list(_split(window, self.bits))),
            first,
            self.bits,
        )
        yield rows
        for level in range(1, len(self.tables)):
            rows = self._step(rows, level)
            yield rows

    def _step(self, rows: _Rows, level: int) -> _Rows:
        """`rows` times the next table: its window, and what its constants add to each row."""
        inner = slice(rows.first, rows.first + rows.limbs.shape[2])
        first, window = self.take_window(level, inner, inner.start, inner.stop)
        constant = self.constants[level][inner, None]
        limbs = _multiply(rows.limbs, np.hstack([window, constant]), self.bits)
        added = _join(limbs[:, :, -1], self.bits)[:, None]
        x = np.hstack([rows.x, added])
        return _Rows(x, self.sums[level], limbs[:, :, :-1], first, self.bits)


def _move_sums(sums: BigIntegers, weights: Integers, constant: Integers, reach: int) -> BigIntegers:
    """``sums @ weights``: what the constants add to every column, and windows of columns."""
    size = len(weights)
    moved = np.empty(sums.shape, dtype=object)
    moved[:] = exact_product(sums, constant[:, None])
    for start in range(0, size, ROWS_AT_ONCE):
        stop = min(size, start + ROWS_AT_ONCE)
        rows = slice(max(0, start - reach), stop + reach)
        window = weights[rows, start:stop] - constant[rows, None]
        moved[:, start:stop] += exact_product(sums[:, rows], window)
    return moved


def _find_reach(weights: Integers, constant: Integers) -> int:
    """How far from the diagonal a row differs from its constant."""
    row, column = np.nonzero(weights != constant[:, None])
    return int(np.abs(row - column).max(initial=0))


def _split(table: Integers, bits: int) -> Iterator[Integers]:
    """Limbs of a table of 64-bit integers, lowest first."""
    for shift in range(0, 63, bits):
        yield table >> shift & ((1 << bits) - 1)


def _multiply(left: Integers, right: Integers, bits: int) -> Integers:
    """Limbs of the product of rows, shape (limbs, rows, inner), and a table, (inner, columns).

    Every sum of products of limbs is below 2^53, so the matrix products of doubles are exact
    whatever order they add in; sums of those are kept as integers, and carried.
    """
    rows, columns = (
        left.astype(np.float64),
        [part.astype(np.float64) for part in _split(right, bits)],
    )
    places = len(rows) + len(columns)
    limbs = np.zeros((places, left.shape[1], right.shape[1]), dtype=np.int64)
    for low, first in enumerate(rows):
        for high, second in enumerate(columns):
            limbs[low + high] += (first @ second).astype(np.int64)
    for place in range(places - 1):
        limbs[place + 1] += limbs[place] >> bits
        limbs[place] &= (1 << bits) - 1
    used = max((place + 1 for place in range(places) if limbs[place].any()), default=1)
    return limbs[:used]


def _join(limbs: Integers, bits: int) -> BigIntegers:
    """Python's integers from limbs, shape (limbs, ...)."""
    joined = np.zeros(limbs.shape[1:], dtype=object)
    for place, limb in enumerate(limbs):
        joined += limb.astype(object) << (bits * place)
    return joined


def _ratio_holds(first: _Rows, second: _Rows, growth: Growth) -> bool:
    """Whether first[i, j] 2^shift <= numerator second[i, j] for all rows i and columns j.

    What the terms contribute to numerator second - 2^shift first is at least `least[i]` whatever
    the column. Where that is not enough, the cell's own contribution is computed.
    """
    gain = second.x * growth.numerator - (first.x << growth.shift)
    lowest, highest = first.y.min(axis=1), first.y.max(axis=1)
    least = np.minimum(gain * lowest, gain * highest).sum(axis=1)
    row, column = np.nonzero(_find_doubtful(first, second, growth, least))
    if len(row):
        whole = (gain[row] * first.y.T[first.first + column]).sum(axis=1)
        whole += _join(second.limbs[:, row, column], first.bits) * growth.numerator
        whole -= _join(first.limbs[:, row, column], first.bits) << growth.shift
        if (whole < 0).any():
            return False
    inside = slice(first.first, first.first + first.limbs.shape[2])
    outside = np.delete(first.y, inside, axis=1)
    rows = np.flatnonzero(least < 0) if outside.size else ()
    return all(bool(((gain[i][:, None] * outside).sum(axis=0) >= 0).all()) for i in rows)


def _find_doubtful(first: _Rows, second: _Rows, growth: Growth, least: BigIntegers) -> Mask:
    """Cells of the window where numerator second - 2^shift first + least is negative.

    Added up limb by limb from the lowest, each carried to the next; the last carry has the sign.
    """
    bits, count = first.bits, len(first.limbs)
    words = [growth.numerator >> place & ((1 << bits) - 1) for place in range(0, 64, bits)]
    skip, factor = growth.shift // bits, 1 << growth.shift % bits
    longest = max(int(value).bit_length() for value in least)
    places = max(count + len(words), count + skip + 1, longest // bits + 1)
    carry = np.zeros(first.limbs.shape[1:], dtype=np.int64)
    for place in range(places):
        carry += (least >> (bits * place) & ((1 << bits) - 1)).astype(np.int64)[:, None]
        for low, word in enumerate(words):
            if 0 <= place - low < count:
                carry += second.limbs[place - low] * word
        if 0 <= place - skip < count:
            carry -= first.limbs[place - skip] * factor
        carry >>= bits
    carry += (least >> (bits * places)).astype(np.int64)[:, None]
    negative: Mask = carry < 0
    return negative
