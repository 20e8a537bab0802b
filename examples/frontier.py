"""The least count error for every distribution error, and where familiar mechanisms lie.

Run: python examples/frontier.py frontier.png

At a large epsilon plain noise has a smaller error than any release that keeps the distribution. The
curve says how much error one unit of distribution error is worth; no private release lies below it.
Releases of generated tables, on average, show what the knob `priority` does.
"""

from __future__ import annotations

import sys

import numpy as np

import tallyveil as tv

PRIORITIES = ("distribution", "balanced", "counts")
TABLES = 4


def main(path: str = "frontier.png") -> dict[str, float]:
    shares = (np.arange(51) + 1.0) ** -1.6
    shares /= shares.sum()
    query, epsilon = tv.Query.count(50), 2
    curve = tv.frontier(query, epsilon, shares)
    plain = tv.geometric(query, epsilon)
    error = plain.expected_loss("absolute", shares)
    found = {
        "plain": tv.wasserstein(shares, shares @ plain.matrix),
        "least": curve.bound_distance(error),
    }
    print(f"{curve}")
    print(f"plain noise: a count is off by {error:.3f}, the distribution by {found['plain']:.3f}")
    print(f"with that count error no private release is nearer than {found['least']:.3f}")
    points = {f"released, {name}": measure(shares, epsilon, name) for name in PRIORITIES}
    for name, (own, distance) in points.items():
        print(f"{name}: a count is off by {own:.3f}, the distribution by {distance:.3f}")
    curve.plot(path, points)
    return found


def measure(shares: np.ndarray, epsilon: float, priority: str) -> tuple[float, float]:
    """Mean error and distance of released tables whose rows have this distribution."""
    found = []
    for seed in range(TABLES):
        counts = np.random.default_rng(seed).choice(len(shares), 20_000, p=shares)
        asked = {"upper": len(shares) - 1, "epsilon": epsilon, "priority": priority}
        made = np.asarray(tv.privatize(counts, **asked).table)
        apart = np.abs(np.sort(made) - np.sort(counts)).mean()
        found.append((np.abs(made - counts).mean(), apart))
    error, distance = np.mean(found, axis=0)
    return float(error), float(distance)


if __name__ == "__main__":
    main(*sys.argv[1:])
