"""Method hierarchy: totals of every level of a hierarchy, and counts that add up to them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallyveil.arrays import Floats, Integers, Mask, freeze
from tallyveil.errors import ArgumentError, TableError
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_directly, estimate_histogram
from tallyveil.mechanisms.geometric import noise_variance
from tallyveil.release.column import Histogram, Matching
from tallyveil.release.methods.base import (
    Labels,
    Plan,
    list_names,
    read_columns,
    require,
)
from tallyveil.release.methods.sums import (
    ROUND_OFF,
    LevelBudget,
    PublishedSums,
    SumDraws,
    Sums,
    describe_tree,
    list_measured,
)
from tallyveil.release.split import rows_tell
from tallyveil.release.totals import MeasuredTree
from tallyveil.structs import set_field
from tallyveil.sums.combine import Combined, Measurement, combine
from tallyveil.sums.grouping import Grouping, Tree
from tallyveil.sums.rounding import (
    expect_counts,
    fit_bounds,
    hand_out,
    round_down_levels,
    tilt_to_total,
)
from tallyveil.sums.shares import share_budget
from tallyveil.tables.labels import Codes, number_together

if TYPE_CHECKING:
    from tallyveil.release.receipt import ColumnRecord
    from tallyveil.release.records import SumsRecord
    from tallyveil.sampling.entropy import Entropy

TOTAL = "total"
TOTAL_WORDS = (TOTAL, "nation", "all")
"""The names that the grand total may have."""

MOST_LEVELS = 40
"""The largest number of columns of a hierarchy."""

MANY, POWER = 300, 1 / 6
"""From this number of rows for each possible count the distribution gets its whole share,
and with fewer a share that falls with this power: rows and groups then gain more from it."""


class Hierarchy(Sums, frozen=True, tag="hierarchy"):
    """Release totals of every level as well; released counts add up to them exactly.

    Attributes
    ----------
    columns : tuple of str
        Public columns from coarse to fine.
    invariant : str
        The finest level whose totals are public already and released exactly, outside the
        guarantee; "total" for the grand total alone, empty for none.
    weights : tuple of float, or None
        How much the error of each level counts, from the grand total to the rows. It decides which
        share of epsilon each level gets.
    upper_column : str
        A public column with the largest count of each row, such as its population. It is released
        unchanged; larger counts are top-coded.
    """

    brief: ClassVar[str] = "noise on totals and counts, then adjusted so that counts add up"
    words: ClassVar[str] = (
        "Sums of every level of a hierarchy, single counts and their distribution were protected "
        "with noise. The published counts add up exactly to the published sums, and follow the "
        "protected distribution."
    )
    steps: ClassVar[tuple[str, ...]] = (
        "Noise was added to every count and to the sums of every level that is worth its cost.",
        "All of them were combined into the best unbiased estimate that adds up.",
        "From the grand total down, sums were made whole numbers of at least 0 that add up "
        "exactly.",
        "The distribution of counts was estimated from these noisy values alone.",
        "Rows were ranked by what they are expected to be, and counts with that distribution "
        "were assigned; they were then raised or lowered by one until every group had its sum.",
    )
    reason: ClassVar[str] = "a hierarchy was requested"
    keeps_distribution: ClassVar[bool] = True

    columns: tuple[str, ...]
    invariant: str = ""
    weights: tuple[float, ...] | None = None
    upper_column: str = ""

    def __post_init__(self) -> None:
        set_field(self, "columns", read_columns(self.columns, "hierarchy"))
        if len(self.columns) > MOST_LEVELS:
            rule = f"have at most {MOST_LEVELS} columns"
            raise ArgumentError("hierarchy", rule, got=f"{len(self.columns)}")
        if any(": " in name for name in self.columns):
            rule = "name columns without a colon and a space in their names"
            raise ArgumentError("hierarchy", rule)
        if TOTAL in self.columns:
            rule = f"not name a column {TOTAL!r}: the sum of all rows has this name"
            raise ArgumentError("hierarchy", rule, hint="Rename that column first.")
        set_field(self, "invariant", _read_invariant(self.invariant, self.columns))
        set_field(self, "weights", _read_weights(self.weights))
        super().__post_init__()
        if self.upper_column in self.columns:
            rule = "name a public column that is no level"
            raise ArgumentError("upper_column", rule, self.upper_column)

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns that make the groups, and the one that bounds every row."""
        return (*self.columns, self.upper_column) if self.upper_column else self.columns

    @property
    def exact_level(self) -> int:
        """The number of the finest exact level, -1 for none."""
        return (TOTAL, *self.columns).index(self.invariant) if self.invariant else -1

    def name_levels(self, depth: int) -> tuple[str, ...]:
        """Name the levels above the rows."""
        return (TOTAL, *self.columns)[:depth]

    def list_labels(self, level: int) -> tuple[str, ...]:
        """List the public columns whose labels name the groups of a level."""
        return self.columns[:level]

    def fits(self, record: SumsRecord) -> bool:
        """Return whether some table could have this record with this method."""
        weighted = self.weights is None or len(self.weights) == len(record.sizes)
        return weighted and self.exact_level < len(record.levels) and super().fits(record)

    # -- before anything is drawn ----------------------------------------------------------------

    def group(
        self, labels: Labels, order: Integers | None = None, free: Mask | None = None
    ) -> Grouping:
        """Build the tree of the table's rows.

        Nodes are numbered in the order of the published rows, so their order tells nothing else;
        the last level has the order of the table itself.
        """
        columns = [labels.read(name, "hierarchy") for name in self.columns]
        listed = labels.by if labels.categories else ()
        for level, (coarse, fine) in enumerate(pairwise(columns)):
            _require_one_parent(coarse, fine, self.columns[level : level + 2], listed)
        codes = [column.codes if order is None else column.codes[order] for column in columns]
        tree = Tree.of_columns(codes)
        if self.exact_level >= tree.depth:  # the rows themselves, which is no release at all
            rule = "name a level above the rows, and this column tells all rows apart"
            raise ArgumentError("invariant", rule, self.invariant)
        if order is not None:
            last = np.empty_like(tree.parents[-1])
            last[order] = tree.parents[-1]
            tree = Tree((*tree.parents[:-1], freeze(last)))
        return Grouping.of(tree, free)

    def split(self, sizes: Sequence[int], epsilon: Fraction, upper: int) -> LevelBudget:
        """Share `epsilon` between the distribution and the levels; looks at public sizes only."""
        first = epsilon * _share_distribution(epsilon, sizes[-1], upper + 1)
        rest = epsilon - first
        shares = share_budget(
            sizes,
            float(rest),
            self.weights,
            total_variance=upper * noise_variance(first) if first else None,
            exact=self.exact_level,
            upper=upper if self.weights is None else None,
        )
        return LevelBudget(tuple(share * rest for share in shares), first)

    def list_trees(self, grouping: Grouping, epsilon: Fraction, upper: int) -> list[MeasuredTree]:
        """Return the one tree with all its measurements."""
        tree: Any = grouping.part
        budget = self.split(tree.sizes, epsilon, upper)
        combined = describe_tree(tree, budget, upper, self.exact_level)
        measured: list[Measurement]
        measured = [(level, float(part), 1) for level, part in enumerate(budget.levels) if part]
        if budget.distribution and self.exact_level < 0:
            measured.append((0, float(budget.distribution), upper))
        return [MeasuredTree(combined, measured, range(tree.depth))]

    def count_alone(self, grouping: Grouping, bounds: Integers | None = None) -> int:
        """Count the rows that are the only ones of their group, where sums of groups are exact.

        Their counts are published exactly, too. Labels say which rows these are.
        Structural zeros in a row's group, and rows whose public bound is 0, hide nothing of it.
        """
        tree: Any = grouping.part
        if self.exact_level < 0:
            return 0
        rows = tree.group_rows(self.exact_level)
        if bounds is not None:
            rows = rows[grouping.take(tree.depth, bounds) > 0]
        return int((np.bincount(rows) == 1).sum())

    # -- the draw, and what follows from it ------------------------------------------------------

    def publish(self, plan: Plan, draws: SumDraws, entropy: Entropy) -> tuple[PublishedSums, ...]:
        """Combine what was drawn, and round it so that everything adds up."""
        task, grouping = plan.task, plan.task.groups
        tree, budget = grouping.part, self.find_budget(plan)
        combined = self._combine(tree, draws, budget, task.upper)
        order = entropy.permutation(tree.sizes[-1])
        bounds = _find_bounds(plan)
        noisy: Any = draws.levels[-1]
        values = np.clip(noisy, 0, task.upper)
        shares = _estimate(values, draws, budget, task.upper)
        uppers, total = tree.sum_up(bounds), None
        if self.exact_level < 0 and budget.only_rows:
            # nearer to the truth than the sum of all draws, noise at 0 being told apart
            total = float(tree.sizes[-1] * (shares @ np.arange(len(shares))))
        levels = round_down_levels(combined, uppers, order, tree.depth - 1, total)
        groups, totals = tree.parents[-1], levels[-1]
        histogram = tilt_to_total(shares, len(values), int(totals.sum()))
        epsilon = float(budget.levels[-1])
        expected = expect_counts(values, shares, epsilon, groups, totals, ties=order)
        expected = np.minimum(expected, bounds)
        counts = hand_out(expected, histogram, groups, totals, order)
        counts = fit_bounds(counts, expected, groups, totals, bounds=bounds, order=order)
        column = PublishedSums(
            freeze(counts),
            Histogram.count(counts),
            Matching.of(values, counts),
            noisy if self.unbiased else None,
            sums=tuple(freeze(level) for level in levels[: tree.depth]),
            estimates=combined.estimates[: tree.depth],
        )
        return (column.fill(grouping),)

    def _combine(self, tree: Tree, draws: SumDraws, budget: LevelBudget, upper: int) -> Combined:
        """Combine all measurements into the best estimate of all levels."""
        rows = tree.sizes[-1]
        total = 0.0 if draws.totals is None else float(rows * upper - draws.totals.sum())
        measured = list_measured(draws.levels, budget, upper, self.exact_level, total)
        return combine(tree, *measured)

    # -- a release that is read back -------------------------------------------------------------

    def check_levels(
        self,
        column: ColumnRecord,
        grouping: Grouping,
        sums: Sequence[Integers],
        stated: Sequence[Floats],
        contents: Sequence[bytes],
    ) -> list[Integers]:
        """Refuse estimates that do not add up, as far as their printed digits tell."""
        tree: Any = grouping.full
        for level in range(1, len(stated)):
            children = np.bincount(tree.parents[level - 1], minlength=tree.sizes[level - 1])
            gap = tree.sum_children(stated[level], level) - stated[level - 1]
            near = bool((np.abs(gap) <= ROUND_OFF * (1 + children)).all())
            require(near, "the stated estimates do not add up")
        return []

    def find_total(
        self, grouping: Grouping, column: ColumnRecord, estimates: Sequence[Floats]
    ) -> float | None:
        """Estimate the grand total; None where the rows' distribution gave a better one."""
        budget = self.split(grouping.part.sizes, column.epsilon, column.upper)
        if self.exact_level < 0 and budget.only_rows:
            return None
        return float(estimates[0][0])

    def say_checked(self, record: SumsRecord, worst: int) -> str:
        """Describe the result of a check of the files."""
        words = f", no row above its {self.upper_column}" if self.upper_column else ""
        outside = self.describe_outside(record)
        words += f"; outside the guarantee: {outside}" if outside else ""
        return f"{len(record.files)} levels add up exactly{words}"


def _find_bounds(plan: Plan) -> Integers:
    """Return the largest count of every free row."""
    task = plan.task
    most = np.full(task.sizes[-1], task.upper)
    if task.bounds is None:
        return freeze(most)
    bounds = task.bounds if task.free is None else task.bounds[task.free]
    return freeze(np.minimum(bounds, most))


def _estimate(values: Integers, draws: SumDraws, budget: LevelBudget, upper: int) -> Floats:
    """Estimate the share of rows with each count from the rows and the histogram.

    Rows without a histogram are so near the truth that a smooth model would only blur them.
    """
    size = upper + 1
    private = PrivateDraws(values, budget.levels[-1], draws.totals, budget.distribution, size)
    estimate = estimate_directly if draws.totals is None else estimate_histogram
    shares: Floats = estimate(private).spread_out(size) / len(values)
    return shares


def _share_distribution(epsilon: Fraction, records: int, size: int) -> Fraction:
    """Choose the share of the distribution: 0.08 + 0.2 exp(-3 epsilon), 0 where rows tell it.

    Less than without groups, because their sums help to estimate it, and less where there are
    few rows for each possible count.
    """
    if rows_tell(epsilon, records, size):
        return Fraction(0)
    many = min(1.0, (records / (MANY * size)) ** POWER)
    return Fraction(round(many * (0.08 + 0.2 * math.exp(-3 * epsilon)) * 10**6), 10**6)


def _require_one_parent(
    coarse: Codes, fine: Codes, names: Sequence[str], listed: Sequence[str]
) -> None:
    """Refuse a finer label that occurs under two coarser ones.

    `listed` are the columns of the public list that says which labels go together, if one does.
    """
    above, below = names
    first = np.full(len(fine.values), -1, dtype=np.int64)
    first[fine.codes] = coarse.codes
    if not np.array_equal(first[fine.codes], coarse.codes):
        pairs = number_together([coarse.codes, fine.codes])
        if listed and int(pairs.max()) + 1 == len(coarse.values) * len(fine.values):
            raise TableError(
                f"The list of categories has every label of {below!r} under every label of "
                f"{above!r}. If every {below} lies in one {above}, list the combinations that "
                f"exist: 'categories' may be a CSV file with the header {','.join(listed)}. If "
                f"not, leave {below!r} out of the hierarchy, or name both in 'margins'."
            )
        if len(fine.values) < len(coarse.values):
            raise TableError(
                f"A label of {below!r} occurs under two labels of {above!r}, which has more labels "
                f"than {below!r}. Name the columns of a hierarchy from coarse to fine, such as "
                "state,county."
            )
        raise TableError(
            f"A label of {below!r} occurs under two labels of {above!r}. Every {below} must lie in "
            f"one {above}: make the labels of {below!r} distinct, for example with the one of "
            f"{above!r} before each. Where the two cross, as ages and sexes do, leave {below!r} "
            "out of the hierarchy, or name both in 'margins'."
        )


def _read_invariant(invariant: str | Iterable[str], columns: tuple[str, ...]) -> str:
    """Return the finest level that is exact: of several, the last."""
    if not invariant:
        return ""
    levels = (TOTAL, *columns)
    names = [str(part).strip() for part in list_names(invariant, "invariant")]
    names = [TOTAL if name in TOTAL_WORDS and name not in columns else name for name in names]
    for name in names:
        if name not in levels:
            rule = f"name levels of the hierarchy: {', '.join(levels)}"
            raise ArgumentError("invariant", rule, name)
    return max(names, key=levels.index)


def _read_weights(weights: Any) -> tuple[float, ...] | None:
    if weights is None or (isinstance(weights, str) and not weights):
        return None
    parts = weights.split(",") if isinstance(weights, str) else weights
    try:
        numbers = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        raise ArgumentError("weights", "be numbers, such as 1,4,1", weights) from None
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise ArgumentError("weights", "be finite numbers of at least 0", weights)
    return numbers
