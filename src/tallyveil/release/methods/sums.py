"""Measured sums of hierarchies and margins, with their files, totals and check.

Every count is measured, and every level whose sums gain enough from it; rows are fitted so that
everything adds up. The sums of a level are published as a file, with their estimates before
rounding. Measurements are not published, so estimates cannot be worked out again; but rounding can:
it leaves a forger of estimates no more room than it takes itself.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.certified.base import Certified
from tallyveil.certified.certify import certify_noise
from tallyveil.certified.mechanism import CertifiedNoise
from tallyveil.errors import PackageError, UsageError
from tallyveil.mechanisms.geometric import noise_variance
from tallyveil.reading.unbiased import Estimate
from tallyveil.release.accuracy import CONFIDENCE, Figures, Outcome, describe_matched
from tallyveil.release.column import PublishedColumn
from tallyveil.release.methods.base import (
    COUNTS,
    DISTRIBUTION,
    Check,
    Counts,
    Labels,
    Method,
    Plan,
    Task,
    require,
)
from tallyveil.release.methods.preserve import noisy_cumulative
from tallyveil.release.records import SumsLevel, SumsRecord
from tallyveil.release.totals import GroupTotals, MeasuredTree, Readable
from tallyveil.sums.combine import Combined, combine, find_half_widths
from tallyveil.sums.grouping import Grouping, Margins, Tree, measure_missed
from tallyveil.sums.rounding import is_rounded
from tallyveil.tables.table import Table, read_signed
from tallyveil.tables.write import render_texts
from tallyveil.untrusted import read_file

if TYPE_CHECKING:
    from tallyveil.release.receipt import ColumnRecord, Receipt
    from tallyveil.sampling.entropy import Entropy

BESIDE = ("estimate", "deviation", "low", "high")
"""The columns next to each sum: its estimate before rounding, deviation and interval."""

MISSED = "missed"
"""Next to the sums of a margin: by how much the rows lie above what they were fitted to."""

MOST_STAGES = 43
"""Of one count: every level, the grand total, the distribution and the counts."""

DECIMALS = 3
PRINTED = re.compile(rf"-?[0-9]{{1,18}}\.[0-9]{{{DECIMALS}}}")
"""A real number in the files."""

ROUND_OFF = 0.0006
"""The largest gap of a printed estimate from the sum of printed ones, for each added one."""

FARTHEST = 60
"""The farthest, in standard deviations and in units: fewer than one of 10^25 draws go on."""

EMPTY = "a group of structural zeros is stated to have an estimate"


@dataclass(frozen=True)
class LevelBudget:
    """The epsilon of each level, 0 where it is not measured, and of the distribution."""

    levels: tuple[Fraction, ...]
    distribution: Fraction

    @property
    def only_rows(self) -> bool:
        """True if only the rows themselves are measured."""
        return not (self.distribution or any(self.levels[:-1]))

    def of_margin(self, margin: int) -> LevelBudget:
        """Return the budget of one margin: no grand total, its groups, the rows."""
        return LevelBudget((Fraction(0), self.levels[margin], self.levels[-1]), Fraction(0))


def describe_tree(tree: Tree, budget: LevelBudget, upper: int, exact_level: int) -> Combined:
    """Work out the variances of all estimates, which depend on no draw; estimates are 0."""
    zeros = [np.zeros(size) for size in tree.sizes]
    return combine(tree, *list_measured(zeros, budget, upper, exact_level))


def list_measured(
    values: Sequence[Any], budget: LevelBudget, upper: int, exact_level: int, total: float = 0.0
) -> tuple[list[Any], list[float | None]]:
    """List the measurements of every level and their variances; `total` is the distribution's.

    A noisy cumulative histogram also measures the grand total, sum (N - C_j), with `upper`
    independent noises.
    """
    measured: list[Any] = []
    variances: list[float | None] = []
    for level, epsilon in enumerate(budget.levels):
        is_known = epsilon > 0 or level == exact_level
        measured.append(values[level] if is_known else None)
        variances.append(noise_variance(epsilon) if epsilon else 0.0 if is_known else None)
    if budget.distribution and exact_level < 0:
        totals, variance = np.array([total]), upper * noise_variance(budget.distribution)
        if variances[0] is not None:
            weight = variance / (variance + variances[0])
            totals = weight * measured[0] + (1 - weight) * totals
            variance = weight * variances[0]
        measured[0], variances[0] = totals, variance
    return measured, variances


@dataclass(frozen=True, eq=False)
class SumDraws:
    """All that was drawn from the confidential table, and sums that are public.

    `levels` holds the noisy sums of every measured level, exact ones where they are public,
    None elsewhere; `totals` the noisy cumulative histogram, or None.
    """

    levels: tuple[Integers | None, ...]
    totals: Integers | None = None


@dataclass(frozen=True, eq=False)
class PublishedSums(PublishedColumn):
    """A published column with the sums of every level above the rows, and their estimates.

    `missed` says by how much the rows of each margin lie above the whole number they were
    fitted to.
    """

    sums: tuple[Integers, ...] = ()
    estimates: tuple[Floats, ...] = field(default=(), repr=False)
    missed: tuple[Integers, ...] = ()

    @property
    def largest_missed(self) -> tuple[int, ...] | None:
        """By how much each margin is missed at most; None where there are no margins."""
        return measure_missed(self.missed) if self.missed else None

    def fill(self, grouping: Grouping) -> PublishedSums:
        """Fill in 0 for the sums of groups of structural zeros."""
        levels = (self.sums, self.estimates, self.missed)
        sums, estimates, missed = map(grouping.fill_levels, levels)
        return replace(self, sums=sums, estimates=estimates, missed=missed)

    def list_levels(self, accuracy: LevelAccuracy) -> list[LevelColumn]:
        """List the columns of each level's file."""
        texts = map(format_numbers, self.estimates)
        parts = zip_longest(self.sums, texts, self.missed)
        return [LevelColumn(sums, text, accuracy, missed) for sums, text, missed in parts]


@dataclass(frozen=True, eq=False)
class LevelAccuracy:
    """Standard deviations and half-widths of the intervals of one column, level by level."""

    deviations: tuple[Floats, ...]
    halves: tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class LevelColumn:
    """The columns of a level's file for a count column; `estimates` are as printed."""

    sums: Integers
    estimates: Sequence[str]
    accuracy: LevelAccuracy
    missed: Integers | None = None


class Sums(Method, frozen=True):
    """Counts that add up to sums of public groups, which are released as well.

    One person is in one row, hence in one group of each level, and moves one entry of the
    cumulative histogram: the cost is the sum of the epsilons of all noises.
    """

    matches: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    offers_unbiased: ClassVar[bool] = True
    beside: ClassVar[tuple[str, ...]] = BESIDE
    """The further columns of each sum in its files."""

    @property
    def exact_level(self) -> int:
        """The number of the finest exact level, -1 for none."""
        return -1

    @property
    def crossed(self) -> tuple[tuple[str, ...], ...]:
        """Public columns that make groups together; none in a hierarchy."""
        return ()

    def name_levels(self, depth: int) -> tuple[str, ...]:
        """Name the levels above the rows."""
        raise NotImplementedError

    def list_labels(self, level: int) -> tuple[str, ...]:
        """List the public columns whose labels name the groups of a level."""
        raise NotImplementedError

    def split(self, sizes: Sequence[int], epsilon: Fraction, upper: int) -> LevelBudget:
        """Share `epsilon` between the levels; looks at public sizes only."""
        raise NotImplementedError

    def list_trees(self, grouping: Grouping, epsilon: Fraction, upper: int) -> list[MeasuredTree]:
        """Return the measurements as trees: one for a hierarchy, one for each margin."""
        raise NotImplementedError

    def count_alone(self, grouping: Grouping, bounds: Integers | None = None) -> int:
        """Count the rows that are the only ones of their group, where sums of groups are exact."""
        return 0

    # -- the record of the groups ------------------------------------------------------------------

    def record(self, grouping: Grouping, bounds: Integers | None = None) -> SumsRecord:
        """Build the receipt's record of these groups; `bounds` are the largest counts of rows."""
        measured = tuple(grouping.part.sizes) if grouping.places else ()
        alone = self.count_alone(grouping, bounds)
        return self._describe(tuple(grouping.full.sizes), alone, measured)

    def fits(self, record: SumsRecord) -> bool:
        """Return whether some table could have this record with this method."""
        return self._describe(record.sizes, record.exact_rows, record.measured) == record

    def _describe(
        self, sizes: tuple[int, ...], alone: int, measured: tuple[int, ...]
    ) -> SumsRecord:
        names = self.name_levels(len(sizes) - 1)
        levels = tuple(
            SumsLevel(name=name, file=name_file(level), sums=size)
            for level, (name, size) in enumerate(zip(names, sizes[:-1], strict=False))
        )
        return SumsRecord(levels=levels, rows=sizes[-1], exact_rows=alone, measured=measured)

    def describe_outside(self, record: SumsRecord | None) -> str:
        """Name the sums that the guarantee does not cover; empty if it covers all."""
        if record is None or self.exact_level < 0:
            return ""
        names = [level.name for level in record.levels]
        below = " and ".join(names[1 : self.exact_level + 1])
        sums = f" and the exact sums by {below}" if below else ""
        words = f"the exact total{sums}, which the publisher declared public"
        alone = record.exact_rows
        return f"{words}, and with them {describe_alone(alone)}" if alone else words

    # -- before anything is drawn ----------------------------------------------------------------

    def stages(self, task: Task) -> list[tuple[str, Fraction]]:
        """List every level that is measured, the distribution, and the counts."""
        budget = self.split(task.sizes, task.epsilon, task.upper)
        names = self.name_levels(len(task.sizes) - 1)
        parts = zip(names, budget.levels, strict=False)
        stages = [(level_stage(name), part) for name, part in parts if part]
        if budget.distribution:
            stages.append((DISTRIBUTION, budget.distribution))
        return [*stages, (COUNTS, budget.levels[-1])]

    def plan(self, task: Task, why: str = "") -> Plan:
        """Certify everything and draw nothing."""
        if task.groups is None:
            raise UsageError(
                "How a hierarchy shares its epsilon depends on the table's public labels: a dry "
                "run, which opens no table, cannot plan it."
            )
        return super().plan(task, why)

    def certify(self, task: Task, epsilon: Fraction) -> Certified:
        """Certify noise without bounds: rows are clamped after they were added up."""
        return certify_noise(epsilon)

    def preview(self, plan: Plan) -> dict[str, Any]:
        """Describe the accuracy of the rows' draws, and of sums before they are rounded."""
        task = plan.task
        accuracy = self.describe_levels(task.groups, plan.epsilon, task.upper)
        names = self.name_levels(task.groups.full.depth)
        levels = [
            {
                "level": name,
                "sums": len(deviations),
                "deviation": float(np.mean(deviations)),
                "half_width": float(np.max(halves)),
            }
            for name, deviations, halves in zip(
                names, accuracy.deviations, accuracy.halves, strict=False
            )
        ]
        return {**super().preview(plan), "levels": levels}

    def note(self, plans: Sequence[Plan]) -> str:
        """Note that no grouping gets a share of epsilon."""
        if any(len(plan.stages) > 1 for plan in plans):
            return ""
        return "At this epsilon, totals added up from rows are as accurate as separate ones."

    # -- the draw --------------------------------------------------------------------------------

    def list_noises(self, plan: Plan) -> list[CertifiedNoise | None]:
        """List the noise of every level and of the rows; None for a level that is not measured."""
        names = self.name_levels(len(plan.task.sizes) - 1)
        return [plan.find(kind) for kind in (*map(level_stage, names), COUNTS)]

    def find_budget(self, plan: Plan) -> LevelBudget:
        """Return the epsilon of each level, and of the distribution."""
        first = plan.find(DISTRIBUTION)
        levels = (Fraction(0) if n is None else n.exact_epsilon for n in self.list_noises(plan))
        return LevelBudget(tuple(levels), Fraction(0) if first is None else first.exact_epsilon)

    def draw(self, plan: Plan, counts: Counts, entropy: Entropy) -> SumDraws:
        """Draw noisy sums of every measured level, noisy rows and a cumulative histogram."""
        entropy.rekey()
        sums = plan.task.groups.part.sum_up(counts.astype(np.int64))
        levels: list[Integers | None] = []
        for level, noise in enumerate(self.list_noises(plan)):
            if noise is not None:
                levels.append(freeze(noise.release(sums[level], entropy)))
            else:
                levels.append(sums[level] if level == self.exact_level else None)
        totals, noise = None, plan.find(DISTRIBUTION)
        if noise is not None:
            histogram = np.bincount(counts, minlength=plan.task.upper + 1)
            totals = noisy_cumulative(histogram, noise, entropy)
        return SumDraws(tuple(levels), totals)

    # -- what is published -----------------------------------------------------------------------

    def describe(self, outcome: Outcome) -> Figures:
        """Work out the figures of single counts; the files of sums tell totals better."""
        return replace(describe_matched(outcome, bounded=False), total=None)

    def describe_levels(self, grouping: Grouping, epsilon: Fraction, upper: int) -> LevelAccuracy:
        """Work out the accuracy of the estimates above the rows, which depends on no draw."""
        deviations: list[Floats] = []
        halves: list[Floats] = []
        for tree in self.list_trees(grouping, epsilon, upper):
            for level in tree.levels:
                deviations.append(np.sqrt(np.maximum(tree.combined.variances[level], 0)))
                halves.append(find_half_widths(tree.combined, tree.measured, level, CONFIDENCE))
        return LevelAccuracy(grouping.fill_levels(deviations), grouping.fill_levels(halves))

    def write_files(
        self, plans: Sequence[Plan], columns: Sequence[PublishedColumn], table: Table
    ) -> dict[str, bytes]:
        """Write the file of every level above the rows."""
        task = plans[0].task
        grouping = self.group(Labels(table), free=task.free)
        levels: list[dict[str, LevelColumn]] = [{} for _ in task.groups.full.sizes[:-1]]
        for plan, column in zip(plans, columns, strict=True):
            accuracy = self.describe_levels(grouping, plan.epsilon, plan.task.upper)
            if isinstance(column, PublishedSums):
                for level, stated in zip(levels, column.list_levels(accuracy), strict=True):
                    level[plan.task.name] = stated
        return {
            name_file(level): self.write_level(level, grouping.full, table, stated)
            for level, stated in enumerate(levels)
        }

    def write_level(
        self, level: int, tree: Tree | Margins, table: Table, columns: Mapping[str, LevelColumn]
    ) -> bytes:
        """Write the file of one level: its labels, and each column's sums, estimates and intervals.

        `tree` has its rows in the order of the released `table`, which has the labels.
        """
        names = self.list_labels(level)
        first = np.unique(tree.group_rows(level), return_index=True)[1]
        labels = [
            np.array(table.codes(n).labels, dtype=object)[table.codes(n).codes[first]]
            for n in names
        ]
        header = list(names)
        parts: list[Any] = list(labels)
        for name, column in columns.items():
            header += [name, *(f"{name}_{word}" for word in BESIDE)]
            values = np.array([float(text) for text in column.estimates])
            half = column.accuracy.halves[level]
            numbers = (column.accuracy.deviations[level], values - half, values + half)
            parts += [column.sums.tolist(), column.estimates, *map(format_numbers, numbers)]
            if column.missed is not None:
                header.append(f"{name}_{MISSED}")
                parts.append(column.missed.tolist())
        return render_texts(header, [list(map(str, part)) for part in parts])

    # -- a release that is read back -------------------------------------------------------------

    def prepare_adding(
        self, column: Readable, confidence: float, all_rows: bool = False
    ) -> Callable[[Integers], Estimate]:
        """Return the function that estimates the total of some rows from their numbers."""
        record, sums, table = column.record, column.receipt.sums, column.table
        grouping = self._group_published(table, column.receipt)
        assert sums is not None
        stated = [
            grouping.take(level, read_estimates(content, record.name, sums.sizes[level]))
            for level, content in enumerate(column.sums)
        ]
        has_draws, free = record.unbiased is not None, column.free
        draws = read_signed(table, record.drawn_column)[free] if has_draws else None
        trees = self.list_trees(grouping, record.epsilon, record.upper)
        totals = GroupTotals(trees, stated, record.upper, draws, free)
        return partial(totals.add_rows, confidence, all_rows)

    def check_proofs(
        self, column: ColumnRecord, certified: Sequence[Certified], receipt: Receipt
    ) -> None:
        """Raise a `PackageError` unless every stage was noise on whole numbers."""
        noises = all(isinstance(stage, CertifiedNoise) for stage in certified)
        require(noises, f"a stage of {column.name} is not noise on whole numbers")

    def list_checks(self, folder: Path, read: Callable[[], Table], receipt: Receipt) -> list[Check]:
        """List the check that builds every level's file again."""
        return [("sums", lambda: self._check_sums(folder, read(), receipt))]

    def _check_sums(self, folder: Path, table: Table, receipt: Receipt) -> str:
        record = receipt.sums
        assert record is not None
        grouping = self._group_published(table, receipt)
        contents = [read_file(folder / file) for file in record.files]
        worst = 0
        built: list[dict[str, LevelColumn]] = [{} for _ in contents]
        for column in receipt.columns:
            counts = table.counts(column.name)
            bounds = np.full(len(counts), column.upper)
            if self.upper_column:
                bounds = np.minimum(table.counts(self.upper_column), bounds)
            require(bool((counts <= bounds).all()), f"a count of {column.name} is above its bound")
            sums = grouping.full.sum_up(counts)
            stated = [
                read_estimates(content, column.name, record.sizes[level])
                for level, content in enumerate(contents)
            ]
            missed = self.check_levels(column, grouping, sums, stated, contents)
            for level, estimates in enumerate(stated):
                filled = grouping.fill(level, np.ones(grouping.part.sizes[level], dtype=bool))
                require(not estimates[~filled].any(), EMPTY)  # intervals follow
                if level <= self.exact_level:
                    exact = bool((sums[level] == estimates).all())
                    require(exact, f"an exact sum of {column.name} is not the one of the data")
            fitted = [added - gap for added, gap in zip(sums, missed, strict=False)] or sums[:-1]
            self._require_rounded(grouping, column, stated, fitted, bounds)
            accuracy = self.describe_levels(grouping, column.epsilon, column.upper)
            for level, estimates in enumerate(stated):
                gap = missed[level] if missed else None
                texts = format_numbers(estimates)
                built[level][column.name] = LevelColumn(sums[level], texts, accuracy, gap)
            worst = max(worst, *(measure_missed(missed) if missed else (0,)))
        for level, content in enumerate(contents):
            expected = self.write_level(level, grouping.full, table, built[level])
            require(content == expected, f"{record.files[level]} does not add up to the data")
        return self.say_checked(record, worst)

    def _group_published(self, table: Table, receipt: Receipt) -> Grouping:
        """Group the rows of a published table, as its receipt must state."""
        free = None if receipt.zeros is None else receipt.zeros.find_free(table)
        grouping: Grouping = self.group(Labels(table), free=free)
        bounds = table.counts(self.upper_column) if self.upper_column else None
        same = receipt.sums == self.record(grouping, bounds)
        require(same, "The hierarchy of the data is not the stated one.")
        return grouping

    def check_levels(
        self,
        column: ColumnRecord,
        grouping: Grouping,
        sums: Sequence[Integers],
        stated: Sequence[Floats],
        contents: Sequence[bytes],
    ) -> list[Integers]:
        """Refuse what files of this method cannot say; returns by how much each level is missed."""
        raise NotImplementedError

    def say_checked(self, record: SumsRecord, worst: int) -> str:
        """Describe the result of a check of the files."""
        raise NotImplementedError

    def find_total(
        self, grouping: Grouping, column: ColumnRecord, estimates: Sequence[Floats]
    ) -> float | None:
        """Estimate the grand total; None where the rows' distribution gave a better one."""
        raise NotImplementedError

    def _require_rounded(
        self,
        grouping: Grouping,
        column: ColumnRecord,
        stated: Sequence[Floats],
        fitted: Sequence[Integers],
        bounds: Integers,
    ) -> None:
        """Raise a `PackageError` unless sums follow from the estimates that are stated with them.

        Parameters
        ----------
        grouping, column : Grouping, ColumnRecord
            The groups of the data, and the column.
        stated, fitted : sequence of array
            For each file the estimates, and the whole numbers that rows were fitted to.
        bounds : array of int, shape (rows,)
            The largest count of every row.
        """
        part, trees = grouping.part, self.list_trees(grouping, column.epsilon, column.upper)
        estimates = [grouping.take(*level_values) for level_values in enumerate(stated)]
        numbers = [grouping.take(*level_values) for level_values in enumerate(fitted)]
        most = part.sum_up(grouping.take(len(part.sizes) - 1, bounds))
        levels = [(tree.combined, level) for tree in trees for level in tree.levels]
        for (combined, level), estimated, sums, uppers in zip(
            levels, estimates, numbers, most, strict=False
        ):
            far = FARTHEST * (1 + np.sqrt(np.maximum(combined.variances[level], 0)))
            inside = bool(((-far <= estimated) & (estimated <= uppers + far)).all())
            require(inside, f"an estimate of {column.name} is one that no noise gives")
            if level:
                parents, spread = combined.tree.parents[level - 1], combined.spread[level]
                fits = is_rounded(sums, estimated, spread, parents, uppers=uppers, off=ROUND_OFF)
                require(fits, f"sums of {column.name} do not follow from the stated estimates")
        tops = numbers if isinstance(part, Margins) else numbers[:1]
        require(len({int(top.sum()) for top in tops}) == 1, "the margins have different totals")
        total, best = int(tops[0].sum()), self.find_total(grouping, column, estimates)
        if best is not None:
            slack = 0.5 + ROUND_OFF * (1 + max(map(len, tops))) + 1e-14 * total
            near = abs(total - min(max(best, 0), int(most[0].sum()))) <= slack
            require(near, f"the total of {column.name} does not follow from the stated estimates")


def describe_alone(rows: int) -> str:
    """Name the counts that exact sums give away."""
    if rows == 1:
        return "the exact count of 1 row that is the only one of its group"
    return f"the exact counts of {rows:,} rows that are the only ones of their groups"


def level_stage(name: str) -> str:
    """Name the kind of the stage that measured a level."""
    return f"sums by {name}"


def name_file(level: int) -> str:
    """Name the file of a level."""
    return f"sums-{level}.csv"


def format_numbers(values: Floats) -> list[str]:
    """Write real numbers as the files have them.

    >>> format_numbers(np.array([1.25, -0.0001]))
    ['1.250', '0.000']
    """
    return [f"{value + 0.0:.{DECIMALS}f}" for value in np.round(values, DECIMALS).tolist()]


def read_stated(content: bytes, column: str, word: str = "estimate") -> list[str]:
    """Read a further column of a count column's sums from a file, as text."""
    rows = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    place = rows[0].index(f"{column}_{word}")
    return [row[place] for row in rows[1:]]


def read_estimates(content: bytes, column: str, sums: int) -> Floats:
    """Read the estimates of a column from a file of sums, or raise a `PackageError`."""
    try:
        texts = read_stated(content, column)
    except (ValueError, LookupError, csv.Error):
        texts = []
    printed = len(texts) == sums and all(PRINTED.fullmatch(text) for text in texts)
    values = np.array([float(text) for text in texts if printed])
    if not printed or format_numbers(values) != texts:
        raise PackageError(f"The files of sums do not hold the estimates of {column!r}.")
    return values
