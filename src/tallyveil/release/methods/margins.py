"""Method margins: totals over columns that cross, and counts that add up to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallyveil.arrays import Floats, Integers, Mask, freeze
from tallyveil.errors import ArgumentError
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_histogram
from tallyveil.release.column import Histogram, Matching
from tallyveil.release.methods.base import Labels, Plan, Task, list_names, require
from tallyveil.release.methods.sums import (
    BESIDE,
    MISSED,
    LevelBudget,
    PublishedSums,
    SumDraws,
    Sums,
    describe_tree,
    list_measured,
    read_stated,
)
from tallyveil.release.totals import MeasuredTree
from tallyveil.structs import set_field
from tallyveil.sums.combine import Combined, combine
from tallyveil.sums.grouping import (
    EXACT_MARGINS,
    Grouping,
    Tree,
    measure_missed,
    rake,
    round_to_margins,
)
from tallyveil.sums.grouping import Margins as MarginGroups
from tallyveil.sums.rounding import expect_alone, round_family, round_total, weigh_totals
from tallyveil.sums.shares import share_margins
from tallyveil.tables.labels import number_together

if TYPE_CHECKING:
    from tallyveil.release.receipt import ColumnRecord
    from tallyveil.release.records import SumsRecord
    from tallyveil.sampling.entropy import Entropy


class Margins(Sums, frozen=True, tag="margins"):
    """Release crossing margins as well; released counts add up to them.

    Attributes
    ----------
    columns : tuple of tuple of str
        The public columns of each margin, such as "age+sex,education".
    """

    brief: ClassVar[str] = "noise on margins and counts, then adjusted so that counts add up"
    words: ClassVar[str] = (
        "Sums of every margin and single counts were protected with noise. The published counts "
        "add up to the published margins."
    )
    steps: ClassVar[tuple[str, ...]] = (
        "Noise was added to every count and, where they are worth their cost, to the sums of "
        "every margin.",
        "Each margin was combined with the sums of its rows, and made whole numbers of at "
        "least 0 with one total.",
    )
    reason: ClassVar[str] = "margins were requested"
    beside: ClassVar[tuple[str, ...]] = (*BESIDE, MISSED)

    columns: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        margins = _read_margins(self.columns)
        names = tuple(chain.from_iterable(margins))
        written = ", ".join("+".join(margin) for margin in margins)
        if len(margins) < 2 or not all(names):
            hint = "For groups inside groups, or one grouping alone, name a hierarchy."
            rule = "name at least two margins, such as age+sex,education"
            raise ArgumentError("margins", rule, got=written, hint=hint)
        if len(set(names)) != len(names):
            hint = "Margins that share a column must agree on its sums, and noisy ones do not."
            raise ArgumentError("margins", "name every column once", got=written, hint=hint)
        if any(": " in name for name in names):
            rule = "name columns without a colon and a space in their names"
            raise ArgumentError("margins", rule, got=written)
        set_field(self, "columns", margins)
        super().__post_init__()

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns that make the groups."""
        return tuple(chain.from_iterable(self.columns))

    @property
    def crossed(self) -> tuple[tuple[str, ...], ...]:
        """The columns of every margin, which make groups together."""
        return self.columns

    def name_levels(self, depth: int) -> tuple[str, ...]:
        """Name the margins."""
        return tuple("+".join(names) for names in self.columns)

    def list_labels(self, level: int) -> tuple[str, ...]:
        """List the public columns whose labels name the groups of a margin."""
        return self.columns[level]

    # -- before anything is drawn ----------------------------------------------------------------

    def group(
        self, labels: Labels, order: Integers | None = None, free: Mask | None = None
    ) -> Grouping:
        """Group rows by every margin; groups are numbered in the order of the published rows."""
        groups = []
        for names in self.columns:
            codes = number_together([labels.read(name, "margins").codes for name in names])
            tree = Tree.of_columns([codes if order is None else codes[order]])
            if tree.depth == 1:
                rule = "group several rows together, and this margin tells all rows apart"
                raise ArgumentError("margins", rule, "+".join(names))
            group = tree.parents[1]
            if order is not None:
                in_table = np.empty_like(group)
                in_table[order] = group
                group = in_table
            groups.append(freeze(group))
        return Grouping.of(MarginGroups(tuple(groups)), free)

    def split(self, sizes: Sequence[int], epsilon: Fraction, upper: int) -> LevelBudget:
        """Share `epsilon` between the margins and the rows; looks at public sizes only."""
        parts = share_margins(sizes, float(epsilon), upper=upper)
        return LevelBudget(tuple(part * epsilon for part in parts), Fraction(0))

    def list_trees(self, grouping: Grouping, epsilon: Fraction, upper: int) -> list[MeasuredTree]:
        """Return for each margin a tree whose total was not measured."""
        margins: Any = grouping.part
        budget = self.split(margins.sizes, epsilon, upper)
        trees = []
        for margin in range(margins.depth):
            part = budget.of_margin(margin)
            combined = describe_tree(margins.tree(margin), part, 1, -1)
            measured = [(level, float(part), 1) for level, part in enumerate(part.levels) if part]
            trees.append(MeasuredTree(combined, measured, (1,)))
        return trees

    def plan(self, task: Task, why: str = "") -> Plan:
        """Certify everything, unless margins cannot be met together."""
        apart = None if task.groups is None else task.groups.part.find_apart()
        if apart is not None:
            names = " and ".join("+".join(self.columns[margin]) for margin in apart)
            raise ArgumentError(
                "margins",
                "cross, so that noisy sums of both can be met",
                got=f"{names}, where some groups of both share no row with any other group",
                hint="For groups inside groups name a hierarchy.",
            )
        return super().plan(task, why)

    # -- the draw, and what follows from it ------------------------------------------------------

    def publish(self, plan: Plan, draws: SumDraws, entropy: Entropy) -> tuple[PublishedSums, ...]:
        """Round margins to whole numbers with one total, and fit rows to them."""
        task, rows = plan.task, draws.levels[-1]
        margins, upper, noisy = task.groups.part, task.upper, np.asarray(rows)
        order = entropy.permutation(len(noisy))
        combined = [self._combine(plan, draws, margin) for margin in range(margins.depth)]
        targets = _round_margins(margins, combined, order, upper)
        values = np.clip(noisy, 0, upper)
        budget = self.find_budget(plan)
        expected = _expect(values, budget.levels[-1], upper)
        counts = round_to_margins(rake(expected, margins, targets, upper), margins, targets, upper)
        sums = margins.sum_up(counts)[:-1]
        column = PublishedSums(
            freeze(counts),
            Histogram.count(counts),
            Matching.of(values, counts),
            rows if self.unbiased else None,
            sums=tuple(freeze(part) for part in sums),
            estimates=tuple(part.estimates[1] for part in combined),
            missed=tuple(freeze(s - t) for s, t in zip(sums, targets, strict=True)),
        )
        return (column.fill(task.groups),)

    def _combine(self, plan: Plan, draws: SumDraws, margin: int) -> Combined:
        """Combine a margin's measurement, if any, with the sums of its rows, by precision."""
        values = [None, draws.levels[margin], draws.levels[-1]]
        budget = self.find_budget(plan).of_margin(margin)
        measured = list_measured(values, budget, plan.task.upper, -1)
        return combine(plan.task.groups.part.tree(margin), *measured)

    # -- a release that is read back -------------------------------------------------------------

    def check_levels(
        self,
        column: ColumnRecord,
        grouping: Grouping,
        sums: Sequence[Integers],
        stated: Sequence[Floats],
        contents: Sequence[bytes],
    ) -> list[Integers]:
        """Refuse margins that can be met and are not; returns by how much each is missed."""
        missed = [_read_missed(content, column.name) for content in contents]
        part: Any = grouping.part
        free = not part.crosses() or bool((sums[-1] == column.upper).any())
        met = free or not any(gap.any() for gap in missed[:EXACT_MARGINS])
        require(met, f"a margin of {column.name} is missed that can be met")
        same = column.missed == measure_missed(missed)
        require(same, f"{column.name} misses its margins by other amounts than the receipt states")
        return missed

    def find_total(
        self, grouping: Grouping, column: ColumnRecord, estimates: Sequence[Floats]
    ) -> float | None:
        """Estimate the grand total from all margins, weighted by precision."""
        trees = self.list_trees(grouping, column.epsilon, column.upper)
        totals = np.array([sums.sum() for sums in estimates])
        return weigh_totals(totals, [tree.combined for tree in trees])

    def say_checked(self, record: SumsRecord, worst: int) -> str:
        """Describe the result of a check of the files."""
        misses = f", and miss one by {worst:,} at most" if worst else ""
        return f"rows meet {len(record.files)} margins as stated{misses}"


def _round_margins(
    margins: MarginGroups, combined: Sequence[Combined], order: Integers, upper: int
) -> list[Integers]:
    """Round every margin to whole numbers of at least 0, all with the same total."""
    totals = np.array([part.estimates[0][0] for part in combined])
    total = np.array([round_total(weigh_totals(totals, combined), len(order) * upper)])
    rounded = []
    for part, groups in zip(combined, margins.groups, strict=True):
        size = part.tree.sizes[1]
        uppers = np.bincount(groups, minlength=size) * upper
        free = order[order < size]
        family = part.upward[1], part.spread[1], part.tree.parents[0], total
        rounded.append(round_family(*family, uppers=uppers, order=free))
    return rounded


def _expect(values: Integers, epsilon: Fraction, upper: int) -> Floats:
    """Return the expected count of each row, given its draw and all other draws."""
    size = upper + 1
    estimate = estimate_histogram(PrivateDraws(values, epsilon, None, Fraction(0), size))
    return expect_alone(values, estimate.spread_out(size) / len(values), float(epsilon))


def _read_missed(content: bytes, column: str) -> Integers:
    """Read by how much a margin is stated to be missed."""
    return np.array([int(text) for text in read_stated(content, column, MISSED)], dtype=np.int64)


def describe_missed(missed: Sequence[int]) -> str:
    """Describe how rows were fitted to margins, and by how much they miss each at most.

    >>> describe_missed((0, 0, 2)).split(". ")[1:3]
    ['Met exactly: margins 1, 2', 'Met as closely as the cells allow: margin 3 within 2']
    """
    exact = [f"{number}" for number, most in enumerate(missed, 1) if not most]
    near = [f"margin {number} within {most:,}" for number, most in enumerate(missed, 1) if most]
    met = f"Met exactly: {'margin' if len(exact) == 1 else 'margins'} {', '.join(exact)}."
    parts = [
        "Rows were raked to the margins and rounded by a linear program.",
        *([met] if exact and near else ["Every margin is met exactly."] if exact else []),
        *([f"Met as closely as the cells allow: {', '.join(near)}."] if near else []),
        "The files of the margins say by how much every group is missed.",
    ]
    return " ".join(parts)


def _read_margins(margins: str | Iterable[str | Iterable[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the columns of every margin, from text or from lists of columns.

    >>> _read_margins("age+sex, edu"), _read_margins([["age", "sex"], "edu"])
    ((('age', 'sex'), ('edu',)), (('age', 'sex'), ('edu',)))
    """
    names = (list_names(part, "margins", "+") for part in list_names(margins, "margins"))
    return tuple(tuple(str(name).strip() for name in margin) for margin in names)
