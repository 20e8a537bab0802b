"""A table before and after: what a department holds, and what it publishes.

Run: python examples/before_after.py before_after.png
"""

from __future__ import annotations

import sys

import matplotlib
import numpy as np

import tallyveil as tv

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

SHOWN, ROWS, UPPER = 12, 1200, 60
TRUE, PUBLISHED, INK = "#b9c4cc", "#2f6f9f", "#22303c"


def main(target: str) -> None:
    """Publish an invented table and draw its first rows and its histogram beside the truth."""
    invent = np.random.default_rng(8)  # for the invented table only: a release draws its own bits
    true = np.minimum(invent.negative_binomial(0.7, 0.13, ROWS), UPPER)
    published = tv.privatize(true, upper=UPPER, epsilon=1).table
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4.2), gridspec_kw={"width_ratios": [1.15, 1]}, layout="constrained"
    )
    at = np.arange(SHOWN)
    left.barh(at - 0.2, true[:SHOWN], 0.36, color=TRUE, label="true (confidential)")
    left.barh(at + 0.2, published[:SHOWN], 0.36, color=PUBLISHED, label="published")
    left.set(yticks=at, yticklabels=[f"County {i + 1}" for i in at], xlabel="cases")
    left.invert_yaxis()
    left.set_title(f"Twelve of {ROWS:,} counties", loc="left", fontsize=11)
    counts = np.arange(16)
    width = 0.4
    right.bar(counts - width / 2, np.bincount(true, minlength=16)[:16], width, color=TRUE)
    right.bar(counts + width / 2, np.bincount(published, minlength=16)[:16], width, color=PUBLISHED)
    right.set(xlabel="cases", ylabel="counties")
    right.set_title("How many counties have each count", loc="left", fontsize=11)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, length=0)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.savefig(target, dpi=110)
    print(f"{target}: {np.mean(true == published):.0%} of the counties have their true count.")


if __name__ == "__main__":
    main(*sys.argv[1:])
