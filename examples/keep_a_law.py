"""Three mechanisms that see the same skewed counts: two of them give the same law back.

Run: python examples/keep_a_law.py keep_a_law.png

Truncated geometric noise flattens a skewed law. The transport optimum and Algorithm 1 of paper
002 return exactly the law that goes in; transport does so with the least error there is.
"""

from __future__ import annotations

import sys

import numpy as np

import tallyveil as tv
from tallyveil.figures import heatmaps


def main(path: str = "keep_a_law.png") -> dict[str, float]:
    law = 1.0 / (np.arange(13) + 1.0)
    law /= law.sum()
    query, epsilon = tv.Query.count(12), 0.5
    shown = {
        "geometric": tv.geometric(query, epsilon),
        "transport": tv.transport(query, epsilon, source=law, target=law),
        "Algorithm 1": tv.papers.greedy_fixed_point(law, epsilon, selector="sandwich"),
    }
    moved = {name: tv.wasserstein(law, law @ m.matrix) for name, m in shown.items()}
    for name, m in shown.items():
        error = m.expected_loss("absolute", law)
        print(f"{name:>12}: a count is off by {error:.3f}, the law moves by {moved[name]:.3f}")
    titles = [f"{name}: law moves {moved[name]:.2f}" for name in shown]
    heatmaps([m.matrix for m in shown.values()], titles, path)
    return moved


if __name__ == "__main__":
    main(*sys.argv[1:])
