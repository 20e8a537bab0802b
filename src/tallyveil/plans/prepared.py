"""A request that met its table: what is prepared before anything is spent, and draws after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.plans.layout import Layout, place_rows
from tallyveil.plans.methods import PublishedCounts, keep_order, name_unbiased
from tallyveil.plans.plan import ColumnPlan, PlannedStage
from tallyveil.request.request import Request
from tallyveil.request.unit import charge_columns, charge_delta
from tallyveil.sampling.entropy import Entropy
from tallyveil.tables.counts import ColumnCounts
from tallyveil.tables.table import CountArray, Table

__all__ = ["Counted", "Opened", "Prepared"]


@dataclass(frozen=True, eq=False)
class Opened:
    """A request and the table it is about, read as the request declares."""

    request: Request
    source: Table
    missing: int = 0
    """How many rows were left out because a count was declared missing."""


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows of microdata in every category; and how many were left out, of how many."""

    every: Integers
    left_out: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """A request that was checked against its table. Holds the confidential counts."""

    request: Request
    source: Table
    counts: Mapping[str, ColumnCounts]
    plans: tuple[ColumnPlan, ...]
    layout: Layout
    counted: Counted | None = None
    """Of microdata, what was counted."""

    missing: int = 0
    """How many rows were left out because a count was declared missing."""

    @property
    def rows(self) -> int:
        """How many rows will be published."""
        return len(next(iter(self.counts.values())).values)

    @property
    def left_out(self) -> tuple[int, int] | None:
        """How many rows were left out, to bound each person's, of how many."""
        return None if self.counted is None else self.counted.left_out

    @property
    def stages(self) -> tuple[tuple[str, Fraction], ...]:
        """What one unit is charged for."""
        stages = [(stage.column, stage.name, stage.epsilon) for stage in self.certified]
        return charge_columns(stages, self.request.disjoint)

    @property
    def delta(self) -> Fraction:
        """The delta that one unit is charged for; 0 for pure privacy."""
        composed = self.request.unit.delta
        deltas = {p.name: p.counts_stage.certified.exact_delta + composed for p in self.plans}
        asked = self.request.delta or composed
        return charge_delta(deltas, self.request.disjoint) if asked else Fraction(0)

    @property
    def certified(self) -> tuple[PlannedStage, ...]:
        """Every stage, in the order of drawing."""
        return tuple(stage for plan in self.plans for stage in plan.stages)

    def clamp_to(self, plan: ColumnPlan) -> CountArray:
        """The counts a plan draws from: clamped when they were read, to a public bound."""
        return self.counts[plan.name].values

    def draw(self, entropy: Entropy) -> dict[str, tuple[PublishedCounts, ...]]:
        """Every column as it is published, once for each level: drawn, then post-processed."""
        published = {}
        for plan in self.plans:
            draws = plan.method.draw(self.clamp_to(plan), entropy)
            published[plan.name] = plan.method.publish(draws, entropy)
        asked = self.request
        drawn = {plan.name: float(plan.counts_stage.certified.exact_epsilon) for plan in self.plans}
        nested = {name: drawn[name] for name in asked.nested}
        return published | keep_order(nested, published, asked.free, entropy)

    def read_truth(self) -> dict[str, Integers]:
        """The true counts, not top-coded, row for row; for the data holder's eyes only."""
        request = self.request
        if self.counted is not None:
            (column,) = request.columns
            return {column.name: self.counted.every}
        truth = {name: self.source.counts(name) for name in self.counts}
        if not self.layout.grouped:
            return truth
        places = place_rows(self.source, request)
        sums = {name: np.zeros(len(request.categories), dtype=np.int64) for name in truth}
        for name, counts in truth.items():
            np.add.at(sums[name], places, counts)
        return sums

    def build_table(self, counts: Mapping[str, CountArray]) -> Table:
        """The published table with these counts, which are public by now."""
        if self.layout.grouped:
            made = self.source.build_grouped(self.request.by, self.request.categories, counts)
        else:
            made = self.source.build_released(counts, self.layout.keep, self.layout.order)
        return replace(made, format=self.request.format or made.format)

    def count_bytes(self) -> int:
        """An upper bound on the size of the release, known before anything is drawn."""
        uppers = {column.name: column.upper for column in self.request.columns}
        proofs = sum(len(s.mechanism_bytes) + len(s.certificate_bytes) for s in self.certified)
        figures = 200 * sum(min(2 * self.rows, upper + 1) for upper in uppers.values())
        grouping = self.request.grouping
        if grouping is not None:  # labels, and five numbers for each column and sum
            figures += sum(grouping.full.sizes[:-1]) * (2000 + 200 * len(uppers))
        levels = max(1, len(self.request.levels))
        figures += 24 * self.rows * len(uppers) * self.request.unbiased
        return levels * (self._bound_data(uppers) + proofs + figures + (4 << 20))

    def _bound_data(self, uppers: Mapping[str, int]) -> int:
        fullest = {
            name: np.full(self.rows, upper, np.min_scalar_type(upper))
            for name, upper in uppers.items()
        }
        more = {name_unbiased(name): fullest[name] for name in fullest if self.request.unbiased}
        return self.build_table(fullest | more).require_writable()
