"""Three mechanisms for a count, side by side.

Run: python examples/three_mechanisms.py docs/images/three_mechanisms.png
"""

import sys

import tallyveil as tv
from tallyveil.figures import heatmaps


def main(path: str = "three_mechanisms.png") -> None:
    q = tv.Query.count(8)
    shown = [
        tv.geometric(q, epsilon=0.5),
        tv.design(q, epsilon=0.5, properties=["weakly_honest", "column_monotone"]).mechanism,
        tv.fair(q, epsilon=0.5),
    ]
    titles = ["geometric", "designed: monotone", "fair"]
    heatmaps([m.matrix for m in shown], titles, path)
    for title, m in zip(titles, shown, strict=True):
        truth = 1 - m.error_probability()
        print(
            f"{title:>20}: tells the truth {truth:.1%}, off by {m.expected_loss():.2f} on average"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
