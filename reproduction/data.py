"""The data of the experiments: read from a folder, or generated and labelled so.

No data is shipped. Stand-ins follow the summary figures that the papers print (number of rows,
share of zeros, mean), so that the shape of a result can be seen without the real file. They are
computed from quantiles or from a seeded stream and describe no real person.
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

from tallyveil.arrays import Floats, Integers
from tallyveil.errors import TableError
from tallyveil.sampling.entropy import SeededNotPrivate

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
"""Binary columns of UCI Adult; Cormode et al. (2018), section 7.2, study the first three."""

ADULT_SHARES = {  # Pr(bit = 1 | income low), Pr(bit = 1 | income high) for the stand-in
    "gender": (0.61, 0.85),
    "young": (0.37, 0.06),
    "married": (0.34, 0.85),
    "degree": (0.16, 0.50),
    "full_time": (0.72, 0.88),
    "native": (0.89, 0.92),
}
FAMILY_SHARES = (0.450, 0.280, 0.125, 0.095, 0.035, 0.010, 0.005)
"""The stand-in's share of families of size 1 to 7; mean 2.03, in Croft et al. (2020) 2.02."""


FILES = {
    "adult": ("adult.data", "adult.data.gz"),
    "homicides": ("homicides_by_county.csv",),
    "schools": ("private_schools_2017_18.csv",),
    "families": ("family_size_acs2019.csv",),
    "bird_flu": ("bird_flu_by_state.csv",),
}
"""The names of the real files in a data folder; README.md describes them."""


@dataclass(frozen=True)
class Sample:
    """The counts of one data set, and a label that says whether they are real."""

    values: Integers
    label: str
    real: bool


def find_file(folder: Path | None, name: str) -> Path | None:
    """Find a data set of `FILES` in a folder; None without the folder or the file."""
    paths = [folder / file for file in FILES[name]] if folder else []
    return next((path for path in paths if path.is_file()), None)


def load_adult(folder: Path | None, seed: int = 1) -> tuple[dict[str, Integers], str, bool]:
    """Load binary columns of UCI Adult in file order, a label, and whether they are real."""
    if path := find_file(folder, "adult"):
        rows = [row for row in _read_rows(path) if len(row) == 15]
        if not rows:
            raise TableError("The Adult file must hold rows of 15 comma-separated fields.")
        bits = {
            name: np.array([int(is_one(row)) for row in rows], dtype=np.int64)
            for name, is_one in ADULT_BITS.items()
        }
        return bits, f"UCI Adult, {len(rows):,} rows", True
    entropy = SeededNotPrivate(seed)
    size = 32_561
    income = _draw_bits(np.full(size, 0.241), entropy)
    bits = {"income": income}
    for name, (low, high) in ADULT_SHARES.items():
        bits[name] = _draw_bits(np.where(income == 1, high, low), entropy)
    return bits, f"{STAND_IN} for UCI Adult", False


def load_homicides(folder: Path | None) -> Sample:
    """Load homicides per US county: 3,136 rows, 53 % zeros (Kohli and Laskowski, section 6)."""
    if path := find_file(folder, "homicides"):
        counts = _read_column(path, "MURDER")
        return Sample(counts, f"homicides in {len(counts):,} counties", True)
    return _stand_in(np.exp(1.75 * (_list_normal(3_136) - 0.066)), "homicides by county")


def load_bird_flu(folder: Path | None) -> Sample:
    """Load human cases of bird flu per US state (Kohli and Laskowski 2026, Figure 1)."""
    if path := find_file(folder, "bird_flu"):
        counts = _read_column(path, "Bird_Flu_Cases")
        return Sample(counts, f"bird flu in {len(counts)} states", True)
    return _stand_in(np.exp(2.6 * (_list_normal(50) - 0.9)), "bird flu by state")


def load_schools(folder: Path | None) -> Sample:
    """Load teachers per school; Kohli and Laskowski (2026) used 95,969 public schools."""
    if path := find_file(folder, "schools"):
        counts = _read_column(path, "FT_TEACHER")
        return Sample(counts, f"teachers in {len(counts):,} schools", True)
    skewed = 33 * (-np.log1p(-_list_quantiles(95_969))) ** (1 / 1.3)
    return _stand_in(skewed, "teachers by school")


def load_families(folder: Path | None, seed: int = 1) -> Sample:
    """Load family sizes, 1 (no family) to 7 (or more), as in Croft et al. (2020), section 4.3.5."""
    if path := find_file(folder, "families"):
        sizes = _read_column(path, "NPF", missing={"N": 1})
        return Sample(np.clip(sizes, 1, 7), f"family size of {len(sizes):,} persons", True)
    size = 20_000
    cumulative = np.cumsum(FAMILY_SHARES)
    sorted_sizes = 1 + np.searchsorted(cumulative[:-1], _list_quantiles(size))
    return _stand_in(sorted_sizes[SeededNotPrivate(seed).permutation(size)], "family sizes")


def draw_binomial(trials: int, size: int, seed: int = 1) -> Integers:
    """Draw Binomial(trials, 1/2) exactly, `size` times: the ones among that many random bits."""
    bits = SeededNotPrivate(seed).octets(trials * size) & np.uint8(1)
    ones: Integers = bits.reshape(size, trials).sum(axis=1, dtype=np.int64)
    return ones


def _stand_in(values: Floats | Integers, what: str) -> Sample:
    return Sample(np.floor(values).astype(np.int64), f"{STAND_IN} for {what}", False)


def _list_quantiles(size: int) -> Floats:
    return (np.arange(size) + 0.5) / size


def _list_normal(size: int) -> Floats:
    """List the quantiles of the normal distribution."""
    return np.array([NormalDist().inv_cdf(u) for u in _list_quantiles(size)])


def _draw_bits(shares: Floats, entropy: SeededNotPrivate) -> Integers:
    return (entropy.below(10**6, len(shares)) < shares * 10**6).astype(np.int64)


def _read_rows(path: Path) -> Iterator[list[str]]:
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    return ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)))


def _read_column(path: Path, name: str, missing: dict[str, int] | None = None) -> Integers:
    rows = _read_rows(path)
    header = next(rows, [])
    if name not in header:
        raise TableError(f"{path.name} must have a column {name}. Got {', '.join(header)[:200]}.")
    position, codes = header.index(name), missing or {}
    cells = [row[position] for row in rows if row]
    try:
        return np.array([codes[c] if c in codes else int(float(c)) for c in cells], dtype=np.int64)
    except ValueError:
        raise TableError(f"Column {name} of {path.name} must hold whole numbers.") from None
