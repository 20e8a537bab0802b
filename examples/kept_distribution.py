"""A table whose distribution survives: ours beside plain truncated geometric noise.

Run: python examples/kept_distribution.py kept_distribution.png

Invented cases in 3,000 areas, most of them without any. Both releases cost epsilon 0.5. The
comparison with the truth is for the holder of the data: it is no part of a release.
"""

from __future__ import annotations

import sys

import numpy as np

import tallyveil as tv
from tallyveil.notebook import Curve, Panel, panels

UPPER, EPSILON, SHOWN = 30, 0.5, 13


def main(path: str = "kept_distribution.png") -> dict[str, float]:
    cases = np.minimum(np.random.default_rng(7).geometric(0.35, 3_000) - 1, UPPER)
    plain = tv.certify(tv.geometric(tv.Query.count(UPPER), EPSILON))
    tables = {
        "true": cases,
        "tallyveil": tv.privatize(cases, upper=UPPER, epsilon=EPSILON).table,
        "plain geometric noise": plain.release(cases),
    }
    shares = {
        name: tv.papers.distribution_of_counts(table, UPPER) for name, table in tables.items()
    }
    counts = np.arange(SHOWN)
    bars = [Curve(name, counts, 100 * share[:SHOWN]) for name, share in shares.items()]
    title = f"3,000 areas at epsilon {EPSILON:g}"
    panels([Panel(title, bars, "cases", "% of areas", kind="bar")], path, columns=2)
    found = {}
    for name in list(tables)[1:]:
        found[name] = tv.wasserstein(shares["true"], shares[name])
        off = np.abs(tables[name] - cases).mean()
        print(f"{name:>22}: distribution off by {found[name]:.3f}, a count by {off:.2f}")
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
