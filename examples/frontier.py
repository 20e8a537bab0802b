"""The least count error for every distribution error, and where familiar mechanisms lie.

Run: python examples/frontier.py frontier.png

At a large epsilon plain noise has a smaller error than any release that keeps the distribution. The
curve says how much error one unit of distribution error is worth; no private release lies below it.
"""

from __future__ import annotations

import sys

import numpy as np

import tallyveil as tv


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
    curve.plot(path)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
