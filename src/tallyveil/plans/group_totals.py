"""Totals of any rows of a release that adds up, with intervals, from the estimates in its files.

A group that is made of whole nodes of a level is the sum of their estimates; the tree's
covariances give its variance and the exact distribution of its noise. Where the rows' own draws
are published as well, rows have estimates too, and any group can be added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from tallyveil.arrays import Floats, Integers, Mask
from tallyveil.errors import UsageError
from tallyveil.plans.adding import make_estimate
from tallyveil.reading.unbiased import Estimate
from tallyveil.request.hierarchy import HierarchyRequest, LevelBudget, describe_tree, split_levels
from tallyveil.sums.combine import (
    Combined,
    Measurement,
    find_half_width,
    find_half_widths,
    join_totals,
)
from tallyveil.sums.grouping import Grouping, Margins, sum_by

__all__ = ["GroupTotals", "MeasuredTree", "list_trees"]


@dataclass(frozen=True, eq=False)
class MeasuredTree:
    """A tree of measured sums: variances, what was measured, and the levels that have files."""

    combined: Combined
    measured: Sequence[Measurement]
    levels: Sequence[int]


def list_trees(
    asked: HierarchyRequest, grouping: Grouping, epsilon: Fraction, upper: int
) -> list[MeasuredTree]:
    """The tree of a hierarchy, or for each margin one whose total was not measured."""
    tree = grouping.part
    budget = split_levels(asked, tree.sizes, epsilon, upper)
    if not isinstance(tree, Margins):
        combined = describe_tree(tree, budget, upper, asked.exact_level)
        measured = _list_measurements(budget, upper, asked.exact_level)
        return [MeasuredTree(combined, measured, range(tree.depth))]
    found = []
    for margin in range(tree.depth):
        alone = budget.of_margin(margin)
        combined = describe_tree(tree.tree(margin), alone, 1, -1)
        found.append(MeasuredTree(combined, _list_measurements(alone, 1, -1), (1,)))
    return found


def _list_measurements(budget: LevelBudget, upper: int, exact_level: int) -> list[Measurement]:
    found = [(level, float(part), 1) for level, part in enumerate(budget.levels) if part]
    if budget.distribution and exact_level < 0:
        found.append((0, float(budget.distribution), upper))
    return found


@dataclass(frozen=True, eq=False)
class GroupTotals:
    """Adds rows of a column that adds up.

    Attributes
    ----------
    trees : sequence of MeasuredTree
        What was measured; see `list_trees`.
    stated : sequence of array of float
        The estimates of every file's sums, those of structural zeros left out.
    upper : int
        The largest count of a row.
    draws : array of int, shape (rows,), or None
        The rows' noisy counts, where they are published.
    """

    trees: Sequence[MeasuredTree]
    stated: Sequence[Floats]
    upper: int
    draws: Integers | None

    @cached_property
    def _known(self) -> list[dict[int, Floats]]:
        """For each tree, the estimates there are, by level."""
        files = iter(self.stated)
        known = [{level: next(files) for level in tree.levels} for tree in self.trees]
        if self.draws is not None:
            for tree, levels in zip(self.trees, known, strict=True):
                levels[tree.combined.tree.depth] = self._estimate_rows(tree, levels)
        return known

    def add_all(self, confidence: float) -> Estimate:
        """The total of all rows, as accurately as all trees together have it."""
        rows = self.trees[0].combined.tree.sizes[-1]
        if any(len(one.measured) < 2 for one in self.trees) or len(self.trees) < 2:
            return self.add(np.ones(rows, dtype=bool), confidence)
        totals = np.array([float(known[1].sum()) for known in self._known])
        trees = [(one.combined, one.measured) for one in self.trees]
        value, deviation, half = join_totals(trees, totals, confidence)
        return make_estimate(value, deviation, (half, half), rows, self.upper)

    def add(self, inside: Mask, confidence: float) -> Estimate:
        """The total of the rows that are `inside`, as accurately as any of the trees has it."""
        found = [self._add(at, inside, confidence) for at in range(len(self.trees))]
        able = [one for one in found if one is not None]
        if not able:
            raise UsageError(
                "Some of these groups cut through those that were measured, and single rows were "
                "fitted to measured sums. Release the table with this grouping as a level of its "
                "hierarchy, or with 'unbiased', which also publishes the rows' own draws."
            )
        return min(able, key=lambda one: one.standard_error)

    def _add(self, at: int, inside: Mask, confidence: float) -> Estimate | None:
        one = self.trees[at]
        tree, rows = one.combined.tree, int(inside.sum())
        for level, estimates in sorted(self._known[at].items()):
            nodes = tree.spread_down(np.arange(tree.sizes[level]), level, tree.depth)
            members = np.bincount(nodes, minlength=tree.sizes[level])
            part = np.bincount(nodes[inside], minlength=tree.sizes[level])
            whole = (part == members) & (members > 0)
            if part[~whole].any():
                continue
            value = float(estimates[whole].sum())
            if level < tree.depth and whole.sum() == 1:  # as its file says
                deviation, half = (x[whole][0] for x in self._halves(at, level, confidence))
            else:
                asked = one.combined, one.measured, level, whole.astype(float)
                deviation, half = find_half_width(*asked, confidence)
            return make_estimate(value, float(deviation), (half, half), rows, self.upper)
        return None

    @cached_property
    def _halves(self) -> Callable[[int, int, float], tuple[Floats, Floats]]:
        """Standard deviations and half-widths of every node of a tree's level, found once."""

        @cache
        def find(at: int, level: int, confidence: float) -> tuple[Floats, Floats]:
            one = self.trees[at]
            deviations = np.sqrt(np.maximum(one.combined.variances[level], 0))
            return deviations, find_half_widths(one.combined, one.measured, level, confidence)

        return find

    def _estimate_rows(self, one: MeasuredTree, levels: dict[int, Floats]) -> Floats:
        """Every row's draw, corrected by its share of what its group is known to differ by."""
        assert self.draws is not None
        tree, combined = one.combined.tree, one.combined
        parents, above = tree.parents[-1], levels[tree.depth - 1]
        gap = above - sum_by(parents, self.draws, len(above))
        corrected: Floats = self.draws + combined.share(tree.depth) * gap[parents]
        return corrected
