"""The demo's table: invented counties with invented cases, the same every time."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tallyveil.sampling.entropy import SeededNotPrivate

__all__ = ["counts_of", "demo_csv"]

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


def demo_csv(rows: int = 1200) -> str:
    """A CSV of county, region, population and cases; rows at most 1,500."""
    source = SeededNotPrivate(2026)
    uniform = (source.words(3 * rows) >> np.uint64(11)).astype(float) / 2.0**53 + 2.0**-54
    normal = np.array([NormalDist().inv_cdf(u) for u in uniform[: 2 * rows]])
    population = np.round(np.exp(10.2 + 1.1 * normal[:rows]) / 100).astype(int) * 100 + 300
    rate = population * 6e-5 * np.exp(0.9 * normal[rows:])
    cases = [_poisson(r, u) for r, u in zip(rate, uniform[2 * rows :], strict=True)]
    names = [f"{first}{last}" for first in FIRST_WORDS.split() for last in LAST_WORDS.split()]
    chosen = sorted(source.permutation(len(names))[:rows].tolist())
    lines = ["county,region,population,cases"]
    for at, (name, people, ill) in enumerate(zip(chosen, population, cases, strict=True)):
        lines.append(f"{names[name]},{REGIONS[at % len(REGIONS)]},{people},{ill}")
    return "\n".join(lines) + "\n"


def _poisson(rate: float, uniform: float) -> int:
    """The smallest k whose Poisson cumulative probability reaches `uniform`."""
    k, mass = 0, float(np.exp(-rate))
    total = mass
    while total < uniform and k < 10 * (rate + 10):
        k += 1
        mass *= rate / k
        total += mass
    return k


def counts_of(text: str) -> NDArray[np.int64]:
    """The cases in a demo CSV."""
    return np.array([int(line.rsplit(",", 1)[1]) for line in text.splitlines()[1:]])
