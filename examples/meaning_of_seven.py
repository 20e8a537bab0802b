"""What a released 7 says about the truth, with an interval that is right for whole numbers.

Run: python examples/meaning_of_seven.py meaning_of_seven.png
"""

from __future__ import annotations

import sys

import tallyveil as tv


def main(path: str = "meaning_of_seven.png") -> tuple[float, float]:
    mechanism = tv.geometric(tv.Query.count(40), epsilon=0.5)
    seven = tv.posterior(mechanism, released=7)
    low, high = seven.interval(0.95)
    print(f"released 7 at epsilon 0.5: the truth lies in {low:g} to {high:g} with 95%")
    print(f"most likely {seven.mode:g}, mean {seven.mean:.2f}, sd {seven.standard_deviation:.2f}")
    seven.plot(path=path)
    return low, high


if __name__ == "__main__":
    main(*sys.argv[1:])
