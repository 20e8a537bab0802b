"""A naive Bayes classifier from private group counts (Cormode et al. 2018, section 8).

Run: python examples/naive_bayes.py [--data adult.data.gz] [--epsilon 4]

The model needs one table per attribute: attribute by income. Each is released by every group
at epsilon / (number of tables); the tables compose to epsilon. The comparison with the model
that is not private is for the holder of the data: it is no part of the release.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path

import numpy as np
from group_marginals import ATTRIBUTES, certified_for, people, private_table, true_table

from tallyveil.papers.cormode.learning import classify

CLASS = "income"
FEATURES = [name for name in ATTRIBUTES if name != CLASS]


def accuracy(tables: dict[str, np.ndarray], data: dict[str, np.ndarray]) -> float:
    """Share of people whose class the model learnt from `tables` guesses."""
    by_class = {name: table.T for name, table in tables.items()}
    return float((classify(by_class, data, smoothing=1) == data[CLASS]).mean())


def main(words: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="path of the UCI Adult data (may be gzipped)")
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(4))
    given = parser.parse_args(words)
    data, source = people(given.data)
    size = len(data[CLASS])
    learn = {name: values[: 3 * size // 4] for name, values in data.items()}
    test = {name: values[3 * size // 4 :] for name, values in data.items()}

    exact = {name: true_table(learn, name, CLASS) for name in FEATURES}
    found = {
        "majority class": float(max(np.mean(test[CLASS]), 1 - np.mean(test[CLASS]))),
        "not private": accuracy(exact, test),
    }
    for mechanism in ("geometric", "fair"):
        certified = certified_for(mechanism, given.epsilon / len(FEATURES))
        noisy = {name: private_table(learn, name, CLASS, certified) for name in FEATURES}
        found[mechanism] = accuracy(noisy, test)

    print(f"{source}: {size} people, a quarter kept for the test")
    print(f"epsilon {float(given.epsilon):g} in all, {len(FEATURES)} tables")
    for name, share in found.items():
        print(f"  {name:<15} {share:.3f}")
    return found


if __name__ == "__main__":
    main()
