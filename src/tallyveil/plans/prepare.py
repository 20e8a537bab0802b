"""A request meets its table: everything that can fail, before anything is spent.

What `prepare` returns holds the confidential counts; nothing has been drawn from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, Mask
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.plans.distributed import (
    Place,
    StagedDraws,
    read_distributed,
    require_taken,
    share_plans,
)
from tallyveil.plans.layout import ROW_ORDERS, Layout, place_rows, read_columns
from tallyveil.plans.plan import ColumnPlan, PlannedStage, plan_column, plan_search
from tallyveil.plans.unbiased import name_unbiased
from tallyveil.plans.upper import CEILING, find_upper
from tallyveil.plans.zeros import find_free, meets_rule, require_zero
from tallyveil.request.forms import check_form
from tallyveil.request.hierarchy import find_groups
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.request import Request, check_options
from tallyveil.request.slack import charge_delta
from tallyveil.request.strata import find_strata
from tallyveil.request.tradeoff import name_best
from tallyveil.request.unit import charge_columns
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.grouping import Grouping
from tallyveil.tables.array import ArrayTable
from tallyveil.tables.base import CountArray, Table
from tallyveil.tables.categories import (
    count_rows,
    select_rows,
)
from tallyveil.tables.convert import convert_table
from tallyveil.tables.counts import ColumnCounts, clip_counts
from tallyveil.tables.declared import declare_numbers, leave_out_missing
from tallyveil.tables.distributed import DistributedTable
from tallyveil.tables.persons import bound_rows, identify_persons
from tallyveil.tables.source import read_table, require_own_names

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """A request that was checked against its table. Holds the confidential counts."""

    request: Request
    source: Table
    counts: Mapping[str, ColumnCounts]
    searches: Mapping[str, PlannedStage]
    plans: tuple[ColumnPlan, ...]
    layout: Layout
    left_out: tuple[int, int] | None = None
    """Of how many rows that were to be counted how many were left out, to bound each person's."""

    missing: int = 0
    """How many rows were left out because a count was declared missing."""

    tasks: StagedDraws | None = None
    """What draws the rows of a table on other machines."""

    @property
    def rows(self) -> int:
        """How many rows will be published."""
        return len(next(iter(self.counts.values())).values)

    @property
    def stages(self) -> tuple[tuple[str, Fraction], ...]:
        """What one unit is charged for, as far as it is known before anything is drawn.

        Where the upper bound is found privately, how the column's epsilon is shared between
        distribution and counts is known only after that, but not what it costs.
        """
        planned = {plan.name: plan for plan in self.plans}
        found: list[tuple[str, str, Fraction]] = []
        for column in self.request.columns:
            search = self.searches.get(column.name)
            if search is not None:
                found.append((column.name, search.name, search.epsilon))
                cost = column.epsilon * self.request.multiplier
                found.append((column.name, f"{column.name}: distribution and counts", cost))
            else:
                stages = planned[column.name].stages
                found += [(column.name, stage.name, stage.epsilon) for stage in stages]
        return charge_columns(found, self.request.disjoint)

    @property
    def delta(self) -> Fraction:
        """The delta that one unit is charged for; 0 for pure privacy."""
        deltas = {p.name: p.counts_stage.certified.exact_delta for p in self.plans}
        return charge_delta(deltas, self.request.disjoint) if self.request.delta else Fraction(0)

    @property
    def certified(self) -> tuple[PlannedStage, ...]:
        """Every stage that is certified before anything is drawn."""
        return (
            *self.searches.values(),
            *(stage for plan in self.plans for stage in plan.stages),
        )

    def clamp_to(self, plan: ColumnPlan) -> CountArray:
        """The counts a plan draws from: clamped when they were read, to a public bound.

        Only a bound that was found privately is known later, and clamps once more.
        """
        values = self.counts[plan.name].values
        return np.minimum(values, plan.upper) if plan.upper_source == "private" else values

    def complete_plans(self, entropy: Entropy) -> tuple[ColumnPlan, ...]:
        """All plans in order; private upper bounds are drawn here, and paid for already."""
        planned = {plan.name: plan for plan in self.plans}
        plans = []
        for column in self.request.columns:
            search = self.searches.get(column.name)
            if search is None:
                plans.append(planned[column.name])
                continue
            noise: Any = search.certified
            found = find_upper(self.counts[column.name].values, noise, CEILING, entropy)
            plans.append(plan_column(self.request, column, self.rows, search=search, found=found))
        return tuple(plans)

    def read_truth(self) -> dict[str, Integers]:
        """The true counts, not top-coded, row for row; for the data holder's eyes only."""
        request = self.request
        if request.microdata:
            (column,) = request.columns
            counted = count_rows(
                self.source,
                request.by,
                request.categories,
                request.where,
                other=request.other_place,
                bins=request.bins,
            )
            return {column.name: counted}
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
        return convert_table(made, self.request.format)

    def count_bytes(self) -> int:
        """An upper bound on the size of the release, known before anything is drawn."""
        uppers = {column.name: column.upper or CEILING for column in self.request.columns}
        proofs = sum(len(s.mechanism_bytes) + len(s.certificate_bytes) for s in self.certified)
        figures = 200 * sum(min(2 * self.rows, upper + 1) for upper in uppers.values())
        grouping = self.request.grouping
        if grouping is not None:  # labels, and five numbers for each column and sum
            figures += sum(grouping.whole.sizes[:-1]) * (2000 + 200 * len(uppers))
        levels = max(1, len(self.request.levels))
        figures += 24 * self.rows * len(uppers) * (self.request.unbiased + self.request.best)
        return levels * (self._bound_data(uppers) + proofs + figures + (4 << 20))

    def _bound_data(self, uppers: Mapping[str, int]) -> int:
        if isinstance(self.source, DistributedTable):
            return self.source.bound_room(len(uppers))
        fullest = {
            name: np.full(self.rows, upper, np.min_scalar_type(upper))
            for name, upper in uppers.items()
        }
        try:
            return self.build_table(fullest).largest_size()
        except UnicodeEncodeError:  # a format that is not written as text of one encoding
            raise TableError("A label has a character that cannot be written.") from None

    def open_place(self, place: Place | None) -> None:
        """Try the place where other machines draw, if they do, before anything is spent."""
        if self.tasks is not None:
            self.tasks.open(place)


def prepare(table: Any, options: ReleaseOptions) -> Prepared:
    """Check a request, its table and every count, and plan the draws; nothing is spent.

    Parameters
    ----------
    table : path, table or array
        See `tv.privatize`.
    options : ReleaseOptions
        What is asked for.

    Returns
    -------
    Prepared
        Ready for the transaction.
    """
    is_path = isinstance(table, (str, Path))
    early = check_options(options) if is_path else None
    source = read_table(table, early.form if early else check_form(options, False)[0])
    request = early or check_options(options, array=isinstance(source, ArrayTable))
    if isinstance(source, DistributedTable):
        return _prepare_distributed(source, request, options)
    if isinstance(source, ArrayTable):
        source = _name_array(source, request)
    if source.rows == 0 and not request.categories:
        raise TableError(
            "The table has no rows, and no list of categories says which it could have."
        )
    left_out, missing = None, 0
    if not isinstance(source, ArrayTable):
        source, missing = _read_as_declared(source, request)
    elif request.form.writes_numbers:
        raise UsageError("An array holds numbers: leave out how they are written.")
    if request.microdata:
        counts, layout, left_out = _count_microdata(source, request, options.entropy or Entropy())
    else:
        counts, layout = read_columns(source, request)
    _require_covered(counts, request)
    _require_room_beside(source, request, layout)
    if request.strata:
        categories = request.categories if layout.grouped else ()
        groups = find_strata(request.strata, source, categories, request.by)
        request = replace(request, groups=groups)
    if request.zeros:
        request = replace(request, free=_find_free(source, request, counts, layout))
    if request.hierarchy is not None:
        categories = request.categories if layout.grouped else ()
        found = find_groups(request.hierarchy, source, categories, request.by, layout.order)
        request = replace(request, grouping=Grouping.of(found, request.free))
    rows = len(next(iter(counts.values())).values)
    known = [column for column in request.columns if column.upper is not None]
    prepared = Prepared(
        request,
        source,
        counts,
        {c.name: plan_search(request, c) for c in request.columns if c.upper is None},
        tuple(plan_column(request, column, rows) for column in known),
        layout,
        left_out,
        missing,
    )
    for column in request.columns:
        if column.upper is None:  # what cannot be certified at any bound fails before the debit
            plan_column(request, column, rows, search=prepared.searches[column.name], found=1)
    return prepared


def _name_array(source: ArrayTable, request: Request) -> ArrayTable:
    """An array as a table with its one column."""
    if len(request.columns) > 1:
        raise ArgumentError("count", "be one name, or left out, for an array of counts")
    return replace(source, name=request.columns[0].name)


def _prepare_distributed(
    source: DistributedTable, request: Request, options: ReleaseOptions
) -> Prepared:
    """A table on other machines, with its histograms for counts."""
    require_taken(options)
    counts, layout = read_distributed(source, request)
    _require_covered(counts, request)
    require_own_names(layout.keep)
    plans = tuple(plan_column(request, column, source.rows) for column in request.columns)
    tasks, shared = share_plans(source, layout, plans)
    return Prepared(request, source, counts, {}, shared, layout, tasks=tasks)


def _read_as_declared(source: Table, request: Request) -> tuple[Table, int]:
    """The table with its counts read as declared, and how many rows hold a code in their place."""
    counted = [column.name for column in request.columns if column.name in source.names]
    missing = 0
    if request.form.missing:
        source, missing = leave_out_missing(source, counted, request.form.missing)
        if source.rows == 0:
            raise TableError("Every row has a code for a missing count: nothing is left.")
    return declare_numbers(source, request.form), missing


def _count_microdata(
    source: Table, request: Request, entropy: Entropy
) -> tuple[dict[str, ColumnCounts], Layout, tuple[int, int] | None]:
    """Rows counted into the public categories, and how many were left out to bound each person's.

    The choice of rows is made with secure random bits and is itself never published.
    """
    (column,) = request.columns
    stays, left_out = None, None
    if request.person is not None:
        persons, met = identify_persons(source, request.person), select_rows(source, request.where)
        order = entropy.permutation(source.rows)
        stays = bound_rows(persons, met, request.unit.contributions, order)
        left_out = int(met.sum() - stays.sum()), int(met.sum())
    counted = count_rows(
        source,
        request.by,
        request.categories,
        request.where,
        stays=stays,
        other=request.other_place,
        bins=request.bins,
    )
    counts = {column.name: clip_counts(counted, column.upper or CEILING)}
    layout = Layout((*request.by, column.name), ROW_ORDERS["categories"], grouped=True)
    return counts, layout, left_out


def _find_free(
    source: Table, request: Request, counts: Mapping[str, ColumnCounts], layout: Layout
) -> Mask:
    """The rows that are not structural zeros, in the order of the counts."""
    public = [condition.column for rule in request.zeros for condition in rule]
    hidden = sorted(set(public) - (set(layout.keep) - set(counts)))
    if hidden:
        raise ArgumentError("zero", "name columns that are published unchanged", hidden[0])
    empty = {name: np.zeros_like(column.values) for name, column in counts.items()}
    if layout.grouped:
        published = source.build_grouped(request.by, request.categories, empty)
    else:
        published = source.build_released(empty, layout.keep, layout.order)
    for rule in request.zeros:
        if not meets_rule(rule, published).any():
            got = " and ".join(map(str, rule))
            raise ArgumentError("zero", "meet at least one row of the published table", got=got)
    free = find_free(request.zeros, published)
    if layout.order is not None:
        there = free
        free = np.empty_like(there)
        free[layout.order] = there
    for name, column in counts.items():
        require_zero(name, column.values, free)
    return free


def _require_room_beside(source: Table, request: Request, layout: Layout) -> None:
    """Refuse a column beside the counts that the table has no room or no free name for."""
    names = [name_unbiased] * request.unbiased + [name_best] * request.best
    if names and isinstance(source, ArrayTable):
        what = "an unbiased column" if request.unbiased else "a column of best guesses"
        raise UsageError(f"An array has no room for {what}: give a table.")
    taken = {*source.names, *source.index_names, *request.by}
    beside = [name(column.name) for name in names for column in request.columns]
    for made in beside:
        if made in taken:
            raise UsageError(f"The table has a column {made!r} already: rename it first.")
    require_own_names((*(() if layout.grouped else source.index_names), *layout.keep, *beside))


def _require_covered(counts: Mapping[str, ColumnCounts], request: Request) -> None:
    exact = "" if request.hierarchy is None else request.hierarchy.exact
    if request.above == "top_code" and not exact:
        return
    for column in request.columns:
        if counts[column.name].above:
            raise TableError(
                f"Column {column.name!r} has counts above the upper bound {column.upper}. Raise "
                "the bound to one that is publicly known, or let them be top-coded."
            )
