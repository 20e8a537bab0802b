"""How long large hierarchies take, and how much memory, for `benchmarks.sums`.

Two steps are timed. The estimate of every sum and whole numbers that add up are what a hierarchy
adds to noise, without a distribution (as sums alone would). The whole step is what a release
does by default between reading the table and writing it: noise is certified and drawn, sums and
the distribution are estimated, counts are handed out so that groups add up, and every sum gets its
interval. Reading, finding the groups from their labels and writing files are timed elsewhere.

`python -m benchmarks.sums` without `--data` measures nothing else.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from benchmarks.measure import Bar, Table, timed
from tallyveil.release.methods.base import Task
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.combine import combine, noise_variance
from tallyveil.sums.grouping import Grouping, Tree
from tallyveil.sums.rounding import round_down_levels

__all__ = ["measure_scale"]

SIZES: tuple[tuple[int, list[int], float | None], ...] = (
    (200_000, [51, 3100], 2.0),
    (1_000_000, [51, 3100, 84_000], None),
    (10_000_000, [51, 3100, 84_000, 240_000], 60.0),
)
"""Rows, groups of every level, and the seconds they may take, where something is promised."""

MOST_MEMORY = 2.0
"""In GB, of the whole process."""

Work = Callable[[], Sequence[np.ndarray]]
"""A step that is timed, and gives the whole numbers of every level."""

EPSILON, UPPER = Fraction(1), 500
"""Of the whole step."""


def measure_scale(quick: bool) -> tuple[Table, list[Bar]]:
    """Both steps for trees of every size, small ones first: the peak of memory is never reset."""
    rows, bars = [], []
    for leaves, chain, limit in SIZES[:1] if quick else SIZES:
        draw = np.random.default_rng(0)
        tree = grow_tree([1, *chain, leaves], draw)
        for step, promised, prepare in (
            ("estimate and whole numbers", "rows", prepare_estimate),
            ("whole, with the distribution", "rows by default", prepare_release),
        ):
            seconds, used, peak, exact = _measure(prepare, tree, draw)
            shown = f"{seconds:.1f} s", f"{used:.1f} s", f"{peak:.2f} GB"
            rows.append((f"{leaves:,}", str(len(tree.sizes)), step, *shown))
            if limit is not None:
                met = seconds < limit and peak < MOST_MEMORY and exact
                promise = f"{leaves:,} {promised} under {limit:g} s and {MOST_MEMORY:g} GB"
                bars.append(Bar(promise, f"{shown[0]}, {shown[2]}", met))
    columns = ("rows", "levels", "step", "time", "processor time", "peak memory")
    return Table("Large hierarchies", columns, rows), bars


def _measure(
    prepare: Callable[[Tree, np.random.Generator], Work], tree: Tree, draw: np.random.Generator
) -> tuple[float, float, float, bool]:
    """Seconds by the clock and of the processor, the peak of memory in GB, whether sums hold."""
    work = prepare(tree, draw)
    start = time.process_time()
    seconds, levels = timed(work)
    used = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return seconds, used, peak, adds_up(tree, levels)


def grow_tree(sizes: Sequence[int], draw: np.random.Generator) -> Tree:
    """A tree with so many nodes in every level; each has a child, the others are spread evenly."""
    parents = [np.zeros(sizes[1], dtype=np.int64)]
    for above, below in pairwise(sizes[1:]):
        some = np.concatenate([np.arange(above), draw.integers(0, above, below - above)])
        parents.append(np.sort(some))
    return Tree(tuple(parents))


def draw_counts(leaves: int, draw: np.random.Generator) -> np.ndarray:
    return draw.poisson(draw.gamma(0.3, 30, leaves))


def adds_up(tree: Tree, levels: Sequence[np.ndarray]) -> bool:
    return all(
        np.array_equal(tree.sum_children(levels[at], at), levels[at - 1])
        for at in range(1, tree.depth + 1)
    )


def prepare_estimate(tree: Tree, draw: np.random.Generator) -> Work:
    """Estimate and whole numbers of sums to which noise was added before."""

    def work() -> Sequence[np.ndarray]:
        return round_down_levels(combine(tree, noisy, variances), uppers, order, tree.depth)

    leaves = tree.sizes[-1]
    sums = tree.sum_up(draw_counts(leaves, draw))
    noisy = [s + (draw.geometric(0.2, len(s)) - draw.geometric(0.2, len(s))) for s in sums]
    uppers = tree.sum_up(np.full(leaves, 10_000))
    order = draw.permutation(leaves)
    variances = [noise_variance(0.22)] * len(tree.sizes)
    return work


def prepare_release(tree: Tree, draw: np.random.Generator) -> Work:
    """The whole step, by default: draws, counts with their distribution, and intervals."""
    counts = np.minimum(draw_counts(tree.sizes[-1], draw), UPPER)
    asked = Hierarchy(columns=tuple(f"level {at}" for at in range(1, tree.depth)))
    groups = Grouping.of(tree)

    def work() -> Sequence[np.ndarray]:
        plan = asked.plan(Task("cases", UPPER, EPSILON, tree.sizes[-1], groups=groups))
        entropy = Entropy()
        (published,) = plan.publish(plan.draw(counts, entropy), entropy)
        asked.describe_levels(groups, EPSILON, UPPER)
        return [*published.sums, published.counts]

    return work
