"""What each property costs: the smallest error there is, for a count from 0 to 20.

Run: python examples/price_of_properties.py price_of_properties.png

Every design comes with a certified lower bound, so a difference between two curves is the
price of a property and not a failure to find something better.
"""

from __future__ import annotations

import sys

import tallyveil as tv
from tallyveil.notebook import Curve, Panel, panels
from tallyveil.properties import SEVEN

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)
SETS = {
    "no property": (),
    "column monotone": ("column_monotone",),
    "fair": ("fair",),
    "all seven": SEVEN,
}


def main(path: str = "price_of_properties.png") -> dict[str, list[float]]:
    query = tv.Query.count(20)
    found = {
        name: [tv.design(query, epsilon, properties=wanted).objective for epsilon in EPSILONS]
        for name, wanted in SETS.items()
    }
    ratios = [
        Curve(name, EPSILONS, [a / b for a, b in zip(values, found["no property"], strict=True)])
        for name, values in found.items()
    ]
    parts = [
        Panel(
            "Smallest mean absolute error",
            [Curve(name, EPSILONS, values) for name, values in found.items()],
            "epsilon",
            "error",
            log="xy",
        ),
        Panel("Relative to no property", ratios, "epsilon", "ratio", log="x"),
    ]
    panels(parts, path)
    for name, values in found.items():
        print(f"{name:>16}: " + "  ".join(f"{value:6.3f}" for value in values))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
