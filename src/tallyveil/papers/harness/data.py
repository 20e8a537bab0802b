"""The data the papers' experiments ran on: read from a path, or generated and labelled so.

No data is shipped. Stand-ins follow the summary figures the papers print (number of rows,
share of zeros, mean), so that the shape of a result can be seen without the real file; they
are made by quantiles or by a seeded stream and hold nobody's data.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import TableError
from tallyveil.sampling.entropy import SeededNotPrivate

__all__ = ["Data", "Sample", "adult", "binomial_draws", "families", "homicides", "schools"]

STAND_IN = "generated stand-in data"

ADULT_BITS: dict[str, Callable[[list[str]], bool]] = {
    "income": lambda row: ">50K" in row[14],
    "gender": lambda row: row[9] == "Male",
    "young": lambda row: int(row[0]) < 30,
    "married": lambda row: row[5].startswith("Married"),
    "degree": lambda row: int(row[4]) >= 13,
    "full_time": lambda row: int(row[12]) >= 40,
    "native": lambda row: row[13] == "United-States",
}
"""Binary columns of UCI Adult; the first three are the targets of paper 000, section 7.2."""

ADULT_SHARES = {  # Pr(bit = 1 | income low), Pr(bit = 1 | income high) for the stand-in
    "gender": (0.61, 0.85),
    "young": (0.37, 0.06),
    "married": (0.34, 0.85),
    "degree": (0.16, 0.50),
    "full_time": (0.72, 0.88),
    "native": (0.89, 0.92),
}
FAMILY_LAW = (0.450, 0.280, 0.125, 0.095, 0.035, 0.010, 0.005)  # mean 2.03; paper 001: 2.02


@dataclass(frozen=True)
class Data:
    """Where the real files are; None means that a stand-in is generated."""

    adult: Path | None = None
    homicides: Path | None = None
    schools: Path | None = None
    families: Path | None = None


@dataclass(frozen=True)
class Sample:
    """Counts (or bits) of one data set and a label that says whether they are real."""

    values: Integers
    label: str
    real: bool


def adult(data: Data, seed: int = 1) -> tuple[dict[str, Integers], str, bool]:
    """Binary columns of UCI Adult in file order, with a label and whether they are real."""
    if data.adult is not None:
        rows = [row for row in _rows(data.adult) if len(row) == 15]
        if not rows:
            raise TableError("The Adult file must hold rows of 15 comma-separated fields.")
        bits = {
            name: np.array([int(is_one(row)) for row in rows], dtype=np.int64)
            for name, is_one in ADULT_BITS.items()
        }
        return bits, f"UCI Adult, {len(rows):,} rows", True
    entropy = SeededNotPrivate(seed)
    size = 32_561
    income = _bits(np.full(size, 0.241), entropy)
    made = {"income": income}
    for name, (low, high) in ADULT_SHARES.items():
        made[name] = _bits(np.where(income == 1, high, low), entropy)
    return made, f"{STAND_IN} in place of UCI Adult", False


def homicides(data: Data) -> Sample:
    """Homicides per US county: 3,136 rows, 53 % zeros, a long tail (002, section 6)."""
    if data.homicides is not None:
        counts = _column(data.homicides, "MURDER")
        return Sample(counts, f"homicides in {len(counts):,} counties", True)
    z = np.array([NormalDist().inv_cdf(u) for u in _quantiles(3_136)])
    counts = np.floor(np.exp(1.75 * (z - 0.066))).astype(np.int64)
    return Sample(counts, f"{STAND_IN} in place of homicides by county", False)


def schools(data: Data) -> Sample:
    """Teachers per school: mildly skewed (002, section 6, used 95,969 public schools)."""
    if data.schools is not None:
        counts = _column(data.schools, "FT_TEACHER")
        return Sample(counts, f"teachers in {len(counts):,} schools", True)
    counts = np.floor(33 * (-np.log1p(-_quantiles(95_969))) ** (1 / 1.3)).astype(np.int64)
    return Sample(counts, f"{STAND_IN} in place of teachers by school", False)


def families(data: Data, seed: int = 1) -> Sample:
    """Family sizes 1 (no family) to 7 (or more) of survey respondents (001, section 4.3.5)."""
    if data.families is not None:
        sizes = _column(data.families, "NPF", missing={"N": 1})
        return Sample(np.clip(sizes, 1, 7), f"family size of {len(sizes):,} persons", True)
    size = 20_000
    cumulative = np.cumsum(FAMILY_LAW)
    sorted_sizes = 1 + np.searchsorted(cumulative[:-1], _quantiles(size))
    shuffled = sorted_sizes[SeededNotPrivate(seed).permutation(size)]
    return Sample(shuffled, f"{STAND_IN} in place of family sizes", False)


def binomial_draws(trials: int, size: int, seed: int = 1) -> Integers:
    """`size` exact draws of Binomial(trials, 1/2): the ones among that many random bits."""
    bits = SeededNotPrivate(seed).octets(trials * size) & np.uint8(1)
    ones: Integers = bits.reshape(size, trials).sum(axis=1, dtype=np.int64)
    return ones


def _quantiles(size: int) -> NDArray[np.float64]:
    return (np.arange(size) + 0.5) / size


def _bits(shares: NDArray[np.float64], entropy: SeededNotPrivate) -> Integers:
    return (entropy.below(10**6, len(shares)) < shares * 10**6).astype(np.int64)


def _rows(path: Path) -> Iterator[list[str]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    return ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)))


def _column(path: Path, name: str, missing: dict[str, int] | None = None) -> Integers:
    rows = _rows(path)
    header = next(rows, [])
    if name not in header:
        raise TableError(f"{path.name} must have a column {name}. Got {', '.join(header)[:200]}.")
    at, known = header.index(name), missing or {}
    cells = [row[at] for row in rows if row]
    try:
        return np.array([known[c] if c in known else int(float(c)) for c in cells], dtype=np.int64)
    except ValueError:
        raise TableError(f"Column {name} of {path.name} must hold whole numbers.") from None
