"""A Chow-Liu tree from private group counts (Cormode et al. 2018, section 8).

Run: python examples/chow_liu.py [--data adult.data.gz] [--epsilon 8]

The tree joins the attributes that tell most about each other: a spanning tree of largest
total mutual information. It needs the table of every pair, each released at
epsilon / (number of pairs). The comparison with the truth is for the holder of the data: it
is no part of the release.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
from group_marginals import ATTRIBUTES, certified_for, people, private_table, true_table

from tallyveil.papers.cormode.learning import build_tree, mutual_information

Edge = tuple[str, str]
PAIRS: list[Edge] = list(combinations(ATTRIBUTES, 2))


def tree(tables: dict[Edge, np.ndarray]) -> list[Edge]:
    """The most informative edges that close no circle."""
    return build_tree({pair: mutual_information(table) for pair, table in tables.items()})


def main(words: list[str] | None = None) -> dict[str, float]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="path of the UCI Adult data (may be gzipped)")
    parser.add_argument("--epsilon", type=Fraction, default=Fraction(8))
    given = parser.parse_args(words)
    data, source = people(given.data)

    exact = {pair: true_table(data, *pair) for pair in PAIRS}
    best = tree(exact)
    worth = {pair: mutual_information(table) for pair, table in exact.items()}
    found = {"not private": sum(worth[pair] for pair in best)}
    print(f"{source}: {len(data['sex'])} people")
    print(f"epsilon {float(given.epsilon):g} in all, {len(PAIRS)} tables")
    print("  not private     " + ", ".join("-".join(pair) for pair in sorted(best)))
    for mechanism in ("geometric", "fair"):
        certified = certified_for(mechanism, given.epsilon / len(PAIRS))
        private = tree({pair: private_table(data, *pair, certified) for pair in PAIRS})
        found[mechanism] = sum(worth[pair] for pair in private)
        print(f"  {mechanism:<15} " + ", ".join("-".join(pair) for pair in sorted(private)))
    print("true mutual information of each tree's edges, in nats:")
    for name, total in found.items():
        print(f"  {name:<15} {total:.3f}")
    return found


if __name__ == "__main__":
    main()
