"""Brackets hold the exact products, are narrow for ladders, and prove nothing that is not so."""

from fractions import Fraction

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.neighbours import Neighbours
from tallyveil.proof import brackets, levels
from tallyveil.proof.brackets import Brackets
from tallyveil.proof.exponent import Growth
from tallyveil.proof.levels import first_broken_level
from tallyveil.proof.rounding import TOTAL
from tests.proof.test_levels import multiply


def make_ladder(size, *epsilons):
    return [rung.weights.copy() for rung in tv.Ladder(tv.Query.count(size - 1), epsilons).rungs]


def move(table, row, source, target, units):
    """A table with some units of one row moved to another column."""
    moved = table.copy()
    units = min(units, int(moved[row, source]))
    moved[row, source] -= units
    moved[row, target] += units
    return moved


@pytest.mark.parametrize("columns_at_once", [1, 5, 64])
@pytest.mark.parametrize("kind", ["ladder", "units moved", 1, 2, 3])
@pytest.mark.parametrize("epsilons", [("1", "0.5", "0.25"), ("0.1", "0.05", "0.01")])
def test_exact_products_lie_inside(columns_at_once, kind, epsilons, monkeypatch):
    monkeypatch.setattr(brackets, "COLUMNS_AT_ONCE", columns_at_once)
    if isinstance(kind, int):
        rest = TOTAL % kind * np.eye(kind, dtype=np.int64)
        tables = [np.full((kind, kind), TOTAL // kind) + rest] * 3
    else:
        tables = make_ladder(70, *epsilons)
    if kind == "units moved":
        tables[1:] = [move(table, 33, 33, 7, 2**30) for table in tables[1:]]
    found = Brackets.of(tables)
    pairs = zip(found.build_rows(0, len(tables[0])), multiply(tables), strict=True)
    for level, ((least, most), product) in enumerate(pairs):
        unit = TOTAL**level
        assert (least.astype(object) * unit <= product).all()
        assert (product <= most.astype(object) * unit).all()


def test_sums_longer_than_doubles_hold_are_cut():
    """Limbs all at their largest, more of them than add up exactly at once."""
    size = 2 * brackets.LONGEST_SUM + 1
    left, right = np.full((1, size), 2**62 - 1), np.full((size, 1), 2**42 - 1)
    made = brackets._multiply(brackets._cut(left), brackets._cut(right))
    assert int(made[0, 0]) == size * (2**62 - 1) * (2**42 - 1) >> 62


def test_rests_beyond_64_bits_are_noticed(monkeypatch):
    """Column 6 is column 5 by rows 0 and 4, and all there is above or below it in 1 and 2."""
    monkeypatch.setattr(brackets, "COLUMNS_AT_ONCE", 2)
    table = TOTAL * np.eye(12, dtype=np.int64)
    table[[1, 2, 4]] = 0
    table[1, 5] = table[2, 6] = TOTAL
    table[4, 5:7] = TOTAL // 2
    assert Brackets.of([table, table]) is None


@pytest.mark.parametrize("epsilons", [("1", "0.5", "0.25"), ("0.1", "0.05", "0.01")])
def test_ladders_are_proved_without_multiplying_out(epsilons, monkeypatch):
    tables = make_ladder(300, *epsilons)
    monkeypatch.setattr(levels._Chain, "of", None)
    asked = [Fraction(epsilon) for epsilon in epsilons]
    assert first_broken_level(tables, Neighbours.path(300), asked) is None


def test_units_moved_anywhere_are_judged_as_by_exact_products():
    rng = np.random.default_rng(8)
    epsilons = [Fraction(1), Fraction(1, 2), Fraction(1, 4)]
    whole, size = make_ladder(50, *epsilons), 50
    seen = {None: 0, 1: 0, 2: 0, 3: 0}
    for _ in range(60):
        level = int(rng.choice([0, 1, 2], p=[0.1, 0.45, 0.45]))
        row, source, target = (int(at) for at in rng.integers(size, size=3))
        tables = list(whole)
        units = 2 ** int(rng.integers(4, 62))
        tables[level] = move(
            tables[level], row, row if rng.random() < 0.5 else source, target, units
        )
        expected = None
        for number, (product, epsilon) in enumerate(zip(multiply(tables), epsilons, strict=True)):
            growth = Growth.of(epsilon)
            upper, lower = product[:-1], product[1:]
            if ((upper << growth.shift) > lower * growth.numerator).any() or (
                (lower << growth.shift) > upper * growth.numerator
            ).any():
                expected = number + 1
                break
        assert first_broken_level(tables, Neighbours.path(size), epsilons) == expected
        seen[expected] += 1
    assert all(seen.values())


def test_tables_that_are_not_stochastic_have_none():
    even = np.full((4, 4), TOTAL // 4)
    assert Brackets.of([even, even]) is not None
    wrong = even.copy()
    wrong[2, 2] += 1
    assert Brackets.of([even, wrong]) is None
    wrapped = np.full((20, 20), TOTAL)
    wrapped[:, 17:] = 0
    assert (wrapped.sum(axis=1) == TOTAL).all()  # 17 times 2^62 in 64 bits
    assert Brackets.of([wrapped, wrapped]) is None
