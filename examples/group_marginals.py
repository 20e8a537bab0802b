"""What naive_bayes.py and chow_liu.py share: people in groups, and private marginals from them.

Every person belongs to one group of at most GROUP people (a clinic, a street, a school class).
For two attributes, each group releases how many of its people fall into each cell of their
table, through a certified mechanism. Sums of unbiased estimates over all groups give the
private table (Cormode et al. 2018, section 8).
"""

from __future__ import annotations

import csv
import gzip
from fractions import Fraction
from pathlib import Path

import numpy as np

import tallyveil as tv

GROUP = 50
ATTRIBUTES = {
    # Public bands, chosen without looking at the data: a category that appears only because
    # somebody is in it would give that somebody away.
    "income": ("<=50K", ">50K"),
    "age": ("under 30", "30-44", "45-59", "60 and over"),
    "education": ("no diploma", "diploma", "some college", "degree"),
    "marital": ("married", "never married", "was married"),
    "hours": ("under 35", "35-40", "over 40"),
    "sex": ("Female", "Male"),
}


def people(path: Path | None) -> tuple[dict[str, np.ndarray], str]:
    """Each attribute as category numbers, one per person, and where they come from."""
    if path is not None:
        return _adult(path), f"UCI Adult, {path.name}"
    return _stand_in(6000), "STAND-IN DATA, generated; give the path of adult.data for the real"


def _adult(path: Path) -> dict[str, np.ndarray]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) == 15]
    married = {"Married-civ-spouse": 0, "Married-AF-spouse": 0, "Never-married": 1}
    columns = {
        "income": [int(row[14].startswith(">50K")) for row in rows],
        "age": [int(np.searchsorted([30, 45, 60], int(row[0]), side="right")) for row in rows],
        "education": [int(np.searchsorted([9, 10, 13], int(row[4]), side="right")) for row in rows],
        "marital": [married.get(row[5], 2) for row in rows],
        "hours": [int(np.searchsorted([35, 41], int(row[12]), side="right")) for row in rows],
        "sex": [int(row[9] == "Male") for row in rows],
    }
    return {name: np.array(values) for name, values in columns.items()}


def _stand_in(size: int) -> dict[str, np.ndarray]:
    """Invented people with some of the dependence that real ones show."""
    draw = np.random.default_rng(8)
    sex = draw.integers(0, 2, size)
    age = draw.choice(4, size, p=[0.3, 0.35, 0.25, 0.1])
    education = draw.choice(4, size, p=[0.15, 0.35, 0.25, 0.25])
    single = draw.random(size) < np.array([0.7, 0.25, 0.1, 0.05])[age]
    marital = np.where(single, 1, np.where(draw.random(size) < 0.7, 0, 2))
    hours = np.minimum(
        2, draw.choice(3, size, p=[0.2, 0.6, 0.2]) + (draw.random(size) < 0.15 * sex)
    )
    score = -3.2 + 0.9 * education + 1.8 * (marital == 0) + 0.5 * hours + 0.3 * age + 0.3 * sex
    income = draw.random(size) < 1 / (1 + np.exp(-score + 1.0))
    columns = {
        "income": income,
        "age": age,
        "education": education,
        "marital": marital,
        "hours": hours,
        "sex": sex,
    }
    return {name: values.astype(int) for name, values in columns.items()}


def true_table(data: dict[str, np.ndarray], first: str, second: str) -> np.ndarray:
    """Counts of every pair of categories."""
    table = np.zeros((len(ATTRIBUTES[first]), len(ATTRIBUTES[second])))
    np.add.at(table, (data[first], data[second]), 1)
    return table


def private_table(
    data: dict[str, np.ndarray], first: str, second: str, certified: tv.CertifiedMechanism
) -> np.ndarray:
    """The same table from private group counts: every cell of every group is one release.

    One person is in one cell of one group, so adding or removing them changes one count by
    one: the table costs the mechanism's epsilon (changing a record moves two cells: twice).
    """
    shape = (len(ATTRIBUTES[first]), len(ATTRIBUTES[second]))
    group = np.arange(len(data[first])) // GROUP
    cell = data[first] * shape[1] + data[second]
    counts = np.zeros((group[-1] + 1, shape[0] * shape[1]), dtype=np.int64)
    np.add.at(counts, (group, cell), 1)
    released = certified.release(counts.ravel()).reshape(counts.shape)
    mechanism = certified.mechanism
    totals = [tv.estimate_total(mechanism, column).value for column in released.T]
    return np.maximum(np.array(totals).reshape(shape), 0.5)  # no empty or negative cells


def certified_for(name: str, epsilon: Fraction) -> tv.CertifiedMechanism:
    """The certified mechanism for one group's counts."""
    makers = {"geometric": tv.geometric, "fair": tv.fair}
    return tv.certify(makers[name](tv.Query.count(GROUP), epsilon))
