"""The least count error for every distribution error, and where familiar mechanisms lie.

Run: python examples/frontier.py frontier.png

At a large epsilon plain noise has a smaller error than any release that keeps the distribution. The
curve says how much error one unit of distribution error is worth; no private release lies below it.
Releases that know nothing of the distribution beforehand have to learn it: they lie above.
"""

from __future__ import annotations

import sys

import numpy as np

import tallyveil as tv

PRIORITIES = ("distribution", "balanced", "counts")


def publish(table: np.ndarray, epsilon: int, priority: str) -> tuple[float, float]:
    """Error and distance of ten releases that know nothing of the table but what they draw."""
    entropy, found = tv.SeededNotPrivate(1), []
    for _ in range(10):
        options = {"method": {"name": "preserve", "priority": priority}, "entropy": entropy}
        made = tv.privatize(table, upper=50, epsilon=epsilon, **options).table
        away = np.abs(made - table), np.abs(np.sort(made) - np.sort(table))
        found.append([part.mean() for part in away])
    error, distance = np.mean(found, axis=0)
    return float(error), float(distance)


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
    table = np.repeat(np.arange(51), np.rint(shares * 50_000).astype(int))
    np.random.default_rng(1).shuffle(table)
    releases = {f"ours, {name}": publish(table, epsilon, name) for name in PRIORITIES}
    print(f"{curve}")
    print(f"plain noise: a count is off by {error:.3f}, the distribution by {found['plain']:.3f}")
    print(f"with that count error no private release is nearer than {found['least']:.3f}")
    curve.plot(path, releases)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
