"""Levels of ladders: windows and limbs decide as Python's integers do, to the last unit."""

from fractions import Fraction

import numpy as np
import pytest

from tallyveil.exact import exp_lower
from tallyveil.neighbours import Neighbours
from tallyveil.proof import levels
from tallyveil.proof.exponent import Growth
from tallyveil.proof.levels import first_broken_level
from tallyveil.proof.rounding import TOTAL

KINDS = ("dense", "near the diagonal", "with zeros", "almost even")


def make_table(size, kind, rng):
    """A table of weights: rows total 2^62."""
    index = np.arange(size)
    matrix = {
        "dense": lambda: rng.random((size, size)),
        "near the diagonal": lambda: np.exp(-rng.uniform(0.3, 3) * np.abs(index[:, None] - index)),
        "with zeros": lambda: (rng.random((size, size)) < 0.3) + np.eye(size),
        "almost even": lambda: 1 + rng.random((size, size)) * 1e-3,
    }[kind]()
    weights = np.floor(matrix / matrix.sum(axis=1, keepdims=True) * (TOTAL - 10**6)).astype(int)
    weights += 0 if kind == "with zeros" else int(rng.integers(1, 400))
    weights[index, index] += TOTAL - weights.sum(axis=1)
    return weights


def multiply(tables):
    """The exact products, by Python's own integers."""
    product = tables[0].astype(object)
    yield product
    for table in tables[1:]:
        product = product @ table.astype(object)
        yield product


def largest_ratio(product, width):
    """The largest ratio of neighbours as a fraction; None beside a zero."""
    ratios = []
    for step in range(1, width + 1):
        for upper, lower in ((product[:-step], product[step:]), (product[step:], product[:-step])):
            for x, y in zip(upper.flat, lower.flat, strict=True):
                if y == 0 < x:
                    return None
                ratios.append(Fraction(x, y) if y else Fraction(0))
    return max(ratios)


def expected(tables, width, growths):
    """What the definition says, without any of the code under test."""
    for level, (product, growth) in enumerate(zip(multiply(tables), growths, strict=True), 1):
        ratio = largest_ratio(product, width)
        if ratio is None or ratio > growth.ratio:
            return level
    return None


@pytest.mark.parametrize("rows_at_once", [1, 4, 192])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_they_decide_as_the_definition_does(rows_at_once, width, monkeypatch):
    monkeypatch.setattr(levels, "ROWS_AT_ONCE", rows_at_once)
    rng = np.random.default_rng(10 * rows_at_once + width)
    found = {None: 0, 1: 0, 2: 0, 3: 0}
    for _ in range(25):
        size = int(rng.integers(width + 1, 12))
        kinds = rng.choice(KINDS, size=3, p=[0.2, 0.5, 0.1, 0.2])
        tables = [make_table(size, kind, rng) for kind in kinds]
        epsilons = [Fraction(int(rng.integers(1, top)), 100) for top in (900, 150, 40)]
        growths = [Growth.of(epsilon) for epsilon in epsilons]
        neighbours = Neighbours.band(size, width)
        answer = first_broken_level(tables, neighbours, epsilons)
        assert answer == expected(tables, width, growths)
        found[answer] += 1
    assert found[None] >= 2
    assert found[1] >= 2
    assert found[2] + found[3] >= 1


@pytest.mark.parametrize("reach", ["windows", "whole rows"])
def test_one_unit_too_much_is_found_wherever_it_is(reach, monkeypatch):
    """The factor is set to the largest ratio itself, then to the next smaller fraction."""
    rng = np.random.default_rng(3)
    size = 30
    tables = [make_table(size, "near the diagonal", rng) for _ in range(3)]
    if reach == "whole rows":
        tables = [make_table(size, "dense", rng) for _ in range(3)]
    neighbours = Neighbours.path(size)
    for level, product in enumerate(multiply(tables), start=1):
        worst = largest_ratio(product, 1)
        shift = 62 - (worst.numerator // worst.denominator).bit_length()
        above = -(-worst.numerator * 2**shift // worst.denominator)
        asked = [Fraction(1)] * level
        for numerator, held in ((above, True), (above - 1, False)):
            growth = Growth(numerator, shift)
            monkeypatch.setattr(levels.Growth, "of", lambda epsilon, last=growth: last)
            only_last = [None] * (level - 1) + asked[-1:]
            answer = first_broken_level(tables[:level], neighbours, only_last)
            assert answer == (None if held else level)


def test_far_cells_count_as_well():
    """Rows that are constant far out, but with constants too far apart."""
    size = 12
    first = np.full((size, size), 10, dtype=np.int64)
    first[size // 2 :] = 1000
    first[np.arange(size), np.arange(size)] += TOTAL - first.sum(axis=1)
    neighbours = Neighbours.path(size)
    wide = Fraction(60)  # the diagonal needs about ln(2^62 / 10)
    assert first_broken_level([first], neighbours, [wide]) is None
    first[np.arange(size), np.arange(size)] = 0
    first[:, 0] = 10
    first[:, 0] += TOTAL - first.sum(axis=1)
    assert first_broken_level([first], neighbours, [Fraction(4)]) is not None


def test_other_neighbours_are_compared_whole():
    rng = np.random.default_rng(4)
    tables = [make_table(6, "dense", rng) for _ in range(2)]
    products = list(multiply(tables))
    worst = max(
        Fraction(int(p[:, j].max()), int(p[:, j].min())) for p in products[1:] for j in range(6)
    )
    complete = Neighbours.complete(6)
    large = next(Fraction(k, 1000) for k in range(1, 9000) if exp_lower(Fraction(k, 1000)) > worst)
    small = large - Fraction(1, 500)
    assert first_broken_level(tables, complete, [None, large]) is None
    assert first_broken_level(tables, complete, [None, small]) == 2
