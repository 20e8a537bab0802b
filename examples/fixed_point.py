"""Three mechanisms for the same skewed counts: two of them return the same distribution.

Run: python examples/fixed_point.py fixed_point.png

Truncated geometric noise flattens a skewed distribution. The transport optimum and Algorithm 1 of
Kohli and Laskowski (2026) return exactly the distribution that goes in; transport does so with
the least error there is.
"""

from __future__ import annotations

import sys

import numpy as np

import tallyveil as tv
from tallyveil.notebook import heatmaps


def main(path: str = "fixed_point.png") -> dict[str, float]:
    shares = 1.0 / (np.arange(13) + 1.0)
    shares /= shares.sum()
    query, epsilon = tv.Query.count(12), 0.5
    shown = {
        "geometric": tv.geometric(query, epsilon),
        "transport": tv.transport(query, epsilon, source=shares, target=shares),
        "Algorithm 1": tv.papers.greedy_fixed_point(shares, epsilon, selector="sandwich"),
    }
    moved = {name: tv.wasserstein(shares, shares @ m.matrix) for name, m in shown.items()}
    for name, m in shown.items():
        error = m.expected_loss("absolute", shares)
        print(f"{name:>12}: a count is off by {error:.3f}, the distribution by {moved[name]:.3f}")
    titles = [f"{name}: moved by {moved[name]:.2f}" for name in shown]
    heatmaps([m.matrix for m in shown.values()], titles, path)
    return moved


if __name__ == "__main__":
    main(*sys.argv[1:])
