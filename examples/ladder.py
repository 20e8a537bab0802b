"""One count at three privacy levels: for the ministry, for researchers, for the public.

Run: python examples/ladder.py
"""

from __future__ import annotations

import tallyveil as tv


def main() -> list[list[int]]:
    ladder = tv.Ladder(tv.Query.count(40), epsilons=[2.0, 1.0, 0.5])
    released = ladder.release([17, 0, 3, 40])
    for rung, values in zip(ladder.rungs, released, strict=True):
        within = tv.accuracy(ladder.query, rung.epsilon)
        print(f"epsilon {float(rung.epsilon):g}: {values.tolist()}, within {within:g} in 95 %")
    print("every level verified in exact integers:", ladder.verify())
    print("together they cost epsilon", float(ladder.epsilons[0]))

    small = tv.Ladder(tv.Query.count(4), epsilons=[2.0, 1.0, 0.5])
    print("coalitions of readers, enumerated:", small.verify_coalitions())
    return released.tolist()


if __name__ == "__main__":
    main()
