"""The demo's table: invented counties with invented cases, the same every time."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers
from tallyveil.sampling.entropy import SeededNotPrivate

ROWS, SEED = 1200, 2026
LARGEST_RATE = 500.0
"""Other illnesses are not expected more often than this in one county."""

FIRST_WORDS = """
    Alder Amber Ash Badger Barley Beech Birch Bracken Bramble Clay Clover Copper Crane Dove Elder
    Elm Falcon Fern Flint Fox Gorse Granite Hare Hazel Heron Holly Ivy Juniper Kestrel Lark Linden
    Maple Marl Moss Oak Otter Pine Quarry Raven Reed Rowan Rush Sage Slate Sparrow Swan Thistle
    Willow Wren Yarrow
"""
LAST_WORDS = """
    bank bridge brook bury by combe croft dale den fell field ford gate ham hill holt hurst lea mere
    mouth ness pool shaw stead stoke thorpe ton wick wood worth
"""
REGIONS = ("North", "East", "South", "West", "Lakes", "Coast")


def demo_csv(rows: int = ROWS) -> str:
    """Write a CSV of county, region, population and cases; at most 1,500 rows."""
    source = SeededNotPrivate(SEED)
    uniform = _draw_uniform(source, 3 * rows)
    population, rate = _make_counties(uniform[: 2 * rows])
    cases = [_poisson(r, u) for r, u in zip(rate, uniform[2 * rows :], strict=True)]
    names = [f"{first}{last}" for first in FIRST_WORDS.split() for last in LAST_WORDS.split()]
    chosen = sorted(source.permutation(len(names))[:rows].tolist())
    lines = ["county,region,population,cases"]
    for row, (name, people, ill) in enumerate(zip(chosen, population, cases, strict=True)):
        lines.append(f"{names[name]},{REGIONS[row % len(REGIONS)]},{people},{ill}")
    return "\n".join(lines) + "\n"


def other_cases(number: int) -> Integers:
    """Invent cases of another illness in the same counties, correlated with the first.

    A county's rate is that of the first illness times a factor, from 0.6 to 1.6 in most of them.
    """
    _, rate = _make_counties(_draw_uniform(SeededNotPrivate(SEED), 3 * ROWS)[: 2 * ROWS])
    uniform = _draw_uniform(SeededNotPrivate(SEED + number), 2 * ROWS)
    rates = np.minimum(rate * np.exp(0.5 * _make_normal(uniform[:ROWS])), LARGEST_RATE)
    return np.array([_poisson(r, u) for r, u in zip(rates, uniform[ROWS:], strict=True)])


def some_of(counts: Integers, share: float, number: int) -> Integers:
    """Choose part of the people counted, each with the same chance, and count them."""
    rows = np.repeat(np.arange(len(counts)), counts)
    chosen = _draw_uniform(SeededNotPrivate(SEED + number), len(rows)) < share
    return np.bincount(rows[chosen], minlength=len(counts)).astype(np.int64)


def _draw_uniform(source: SeededNotPrivate, size: int) -> Floats:
    """Draw numbers strictly between 0 and 1."""
    uniform: Floats = (source.words(size) >> np.uint64(11)).astype(float) / 2.0**53 + 2.0**-54
    return uniform


def _make_normal(uniform: Floats) -> Floats:
    return np.array([NormalDist().inv_cdf(u) for u in uniform])


def _make_counties(uniform: Floats) -> tuple[Integers, Floats]:
    """Invent every county's population, and the number of cases expected in it."""
    rows = len(uniform) // 2
    normal = _make_normal(uniform)
    population = np.round(np.exp(10.2 + 1.1 * normal[:rows]) / 100).astype(int) * 100 + 300
    return population, population * 6e-5 * np.exp(0.9 * normal[rows:])


def _poisson(rate: float, uniform: float) -> int:
    """Find the smallest k whose Poisson cumulative probability reaches `uniform`."""
    k, mass = 0, float(np.exp(-rate))
    total = mass
    while total < uniform and k < 10 * (rate + 10):
        k += 1
        mass *= rate / k
        total += mass
    return k


def counts_of(text: str) -> NDArray[np.int64]:
    """Read the cases in a demo CSV."""
    return np.array([int(line.rsplit(",", 1)[1]) for line in text.splitlines()[1:]])
