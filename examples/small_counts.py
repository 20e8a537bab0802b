"""How noise treats small counts: zeros, bias and honesty of three mechanisms.

Run: python examples/small_counts.py small_counts.png

On a bounded range no mechanism is unbiased at both ends. Its bias is known for every true
count, so it can be stated and taken off.
"""

from __future__ import annotations

import sys

import tallyveil as tv
from tallyveil.notebook import Curve, Panel, panels


def main(path: str = "small_counts.png") -> dict[str, list[float]]:
    query, epsilon = tv.Query.count(20), 0.4
    shown = {
        "geometric": tv.geometric(query, epsilon),
        "fair": tv.fair(query, epsilon),
        "designed": tv.design(query, epsilon, properties=["column_monotone"]).mechanism,
    }
    bias = {name: [float(b) for b in m.bias()] for name, m in shown.items()}
    parts = [
        Panel("Bias", [Curve(n, query.inputs, bias[n]) for n in shown], "true count", "bias"),
        Panel(
            "Released as it is",
            [Curve(n, query.inputs, 100 * m.matrix.diagonal()) for n, m in shown.items()],
            "true count",
            "%",
        ),
        Panel(
            "Released as zero",
            [Curve(n, query.inputs, 100 * m.matrix[:, 0]) for n, m in shown.items()],
            "true count",
            "%",
        ),
    ]
    panels(parts, path, columns=2)
    for name, values in bias.items():
        print(
            f"{name:>12}: a true 0 is {values[0]:+.2f} off on average, a true 10 {values[10]:+.2f}"
        )
    return bias


if __name__ == "__main__":
    main(*sys.argv[1:])
