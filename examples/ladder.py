"""One count at three privacy levels: for the ministry, for researchers, for the public.

Run: python examples/ladder.py ladder.png
"""

from __future__ import annotations

import sys

import tallyveil as tv
from tallyveil.notebook import Curve, Panel, panels


def main(path: str | None = None) -> list[list[int]]:
    ladder = tv.Ladder(tv.Query.count(40), epsilons=[2.0, 1.0, 0.5])
    released = ladder.release([17, 0, 3, 40])
    for rung, values in zip(ladder.rungs, released, strict=True):
        within = tv.accuracy(ladder.query, rung.epsilon)
        print(f"epsilon {float(rung.epsilon):g}: {values.tolist()}, within {within:g} in 95%")
    print("every level verified in exact integers:", ladder.verify().ok)
    print("together they cost epsilon", float(ladder.epsilons[0]))

    small = tv.Ladder(tv.Query.count(4), epsilons=[2.0, 1.0, 0.5])
    print("coalitions of readers, enumerated:", small.verify_coalitions())
    if path is not None:
        draw(ladder, 17, path)
    return released.tolist()


def draw(ladder: tv.Ladder, count: int, path: str) -> None:
    """Draw the distribution of every level's release when the truth is `count`."""
    shown = slice(max(0, count - 10), count + 11)
    answers = ladder.query.outputs[shown]
    curves = []
    for level, epsilon in enumerate(ladder.epsilons):
        weights, total = ladder.distribution(level)
        shares = [100 * int(weight) / total for weight in weights[count][shown]]
        curves.append(Curve(f"epsilon {float(epsilon):g}", answers, shares))
    title = f"A true {count} at three levels"
    panels([Panel(title, curves, "released", "%", marks=[count])], path, columns=2)


if __name__ == "__main__":
    main(*sys.argv[1:])
