"""The plan of a release: everything that can fail, before anything is spent.

A plan holds the confidential counts and the very certified objects that draw, that the ledger
hashes and that the folder ships. Nothing has been drawn. Where the rows are, in a table here or
elsewhere, only `Rows` knows: it reads counts, draws for them, and writes what is published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tallyveil.arrays import Integers, Mask, freeze
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.release.column import PublishedColumn, keep_order, name_unbiased
from tallyveil.release.methods.base import Labels, Method, Plan, PlannedStage, Task
from tallyveil.release.methods.sums import Sums
from tallyveil.release.options import ReleaseOptions
from tallyveil.release.records import ROW_ORDERS, SumsRecord, ZerosRecord, find_free, meets_rule
from tallyveil.release.request import ColumnRequest, Request, check_options
from tallyveil.release.unit import charge_columns, charge_delta
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.grouping import Grouping
from tallyveil.tables.counts import (
    LARGEST,
    ColumnCounts,
    clip_counts,
    leave_out_missing,
    read_counts,
)
from tallyveil.tables.duplicates import Repeats
from tallyveil.tables.frames import rename_array
from tallyveil.tables.labels import require_own_names
from tallyveil.tables.microdata import PersonBound, place_categories
from tallyveil.tables.read import read_table
from tallyveil.tables.subtotals import find_totals
from tallyveil.tables.table import CountArray, Table
from tallyveil.tables.text import delimiter_hint
from tallyveil.untrusted import escape_controls

if TYPE_CHECKING:
    from tallyveil.release.folder import FileFacts, Staging

ARRAY = "array"
"""The kind of a table that is a plain array of counts."""

LARGEST_BOUND = 10**15
"""Up to here every format writes a whole number in plain digits."""

ReadCounts: TypeAlias = Callable[[Table, str, int], ColumnCounts]
"""Function that reads the counts of a table's column, cut to an upper bound, or invents them."""

MOST_UNCHANGED = 1000
"""A table with more other columns than this must name the public ones."""

MOST_SHOWN = 12
"""Most names that an error lists."""

NUMBER = re.compile(r"[+-]?[0-9][0-9.,]*")
"""A name that may be a count: the first row where the header is missing."""

Totals: TypeAlias = Mapping[str, tuple[str | None, int]]


@dataclass(frozen=True, eq=False)
class Opened:
    """A request and the table it is about, read as the request declares.

    `missing` rows were left out because a count was declared missing.
    """

    request: Request
    source: Table
    missing: int = 0


@dataclass(frozen=True, eq=False)
class Layout:
    """The published columns, and the order of rows.

    `grouped` rows are built anew, one for each public category; `order` is None where rows
    stay as they are.
    """

    keep: tuple[str, ...]
    row_order: str
    order: Integers | None = None
    grouped: bool = False

    @classmethod
    def of_categories(cls, request: Request) -> Layout:
        """Lay out the rows of the public list, in its order."""
        keep = (*request.by, *(column.name for column in request.columns))
        return cls(keep, ROW_ORDERS["categories"], grouped=True)


@dataclass(frozen=True, eq=False)
class Reading:
    """Every count column, how the table is published and, of microdata, what was counted.

    `every` are the rows of each category before each person's were bounded; `left_out` how many of
    how many rows bounding left out.
    """

    counts: Mapping[str, ColumnCounts]
    layout: Layout
    every: Integers | None = None
    left_out: tuple[int, int] | None = None


class Rows:
    """Rows of counts in a table. Subclasses have them elsewhere, or invent them."""

    is_invented = False

    def read(self, opened: Opened, entropy: Entropy) -> Reading:
        """Validate every count and top-code it at its bound, once."""
        request, source = opened.request, opened.source
        if request.microdata:
            return _count_microdata(request, source, entropy)
        return Reading(*read_columns(source, request, self.read_counts))

    def read_counts(self, table: Table, name: str, upper: int) -> ColumnCounts:
        """Read the counts of one column."""
        return read_counts(table, name, upper)

    def draw(self, plan: ReleasePlan, entropy: Entropy) -> dict[str, tuple[PublishedColumn, ...]]:
        """Draw and post-process every column, once for each level."""
        published = {}
        for column in plan.columns:
            name = column.task.name
            draws = column.draw(plan.counts[name].values, entropy)
            published[name] = column.publish(draws, entropy)
        return published

    def write(self, place: Staging, folder: str, file: str, data: Table) -> FileFacts:
        """Write the data of a release into its folder."""
        return place.write(folder, file, data.write)


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """A request with its rows. Holds the confidential counts; nothing is drawn.

    Attributes
    ----------
    request, source, missing : Request, Table, int
        See `Opened`.
    reading : Reading
        The counts, cut to their bounds, and how they are published.
    method : Method
        What was asked for; each column has the method that was chosen.
    columns : tuple of Plan
        How each column is drawn, from what, and what that costs.
    groups, free, bounds
        Of public labels: the method's groups, the rows that are not structural zeros, and the
        largest count of every row; None without them.
    home : Rows
        Where the rows are.
    """

    request: Request
    source: Table
    reading: Reading
    method: Method
    columns: tuple[Plan, ...]
    groups: Any = None
    free: Mask | None = None
    bounds: Integers | None = None
    missing: int = 0
    home: Rows = field(default_factory=Rows)

    @property
    def counts(self) -> Mapping[str, ColumnCounts]:
        """The true counts of every column, clamped when they were read, to a public bound."""
        return self.reading.counts

    @property
    def layout(self) -> Layout:
        """The published columns and rows."""
        return self.reading.layout

    @property
    def rows(self) -> int:
        """The number of rows that will be published."""
        return len(next(iter(self.counts.values())).values)

    @property
    def charges(self) -> tuple[tuple[str, Fraction], ...]:
        """The charges to one unit, by name."""
        stages = [(stage.column, stage.name, stage.epsilon) for stage in self.stages]
        return charge_columns(stages, self.request.disjoint)

    @property
    def delta(self) -> Fraction:
        """The delta that one unit is charged for; 0 for pure privacy."""
        composed = self.request.unit.delta
        if not (self.request.delta or composed):
            return Fraction(0)
        drawn = {plan.task.name: plan.counts_stage.certified.exact_delta for plan in self.columns}
        deltas = {name: delta + composed for name, delta in drawn.items()}
        return charge_delta(deltas, self.request.disjoint)

    @property
    def stages(self) -> tuple[PlannedStage, ...]:
        """Every stage, in the order of drawing."""
        return tuple(stage for plan in self.columns for stage in plan.stages)

    @property
    def sums(self) -> SumsRecord | None:
        """The record of the sums that rows add up to; None without them."""
        if not isinstance(self.method, Sums):
            return None
        return self.method.record(self.groups, self.bounds)

    @property
    def strata(self) -> int:
        """The number of strata; 0 without them."""
        return int(self.groups.max()) + 1 if self.method.by_group else 0

    @property
    def zeros(self) -> ZerosRecord | None:
        """The record of structural zeros; None without them."""
        return None if self.free is None else ZerosRecord.of(self.request.zeros, self.free)

    def draw(self, entropy: Entropy) -> dict[str, tuple[PublishedColumn, ...]]:
        """Draw every column and keep nested ones below one another."""
        published = self.home.draw(self, entropy)
        certified = {plan.task.name: plan.counts_stage.certified for plan in self.columns}
        nested = {name: float(certified[name].exact_epsilon) for name in self.request.nested}
        return published | keep_order(nested, published, self.free, entropy)

    def read_truth(self) -> dict[str, Integers]:
        """Read the true counts, not top-coded, row for row; for the data holder's eyes only."""
        request = self.request
        if self.reading.every is not None:
            (column,) = request.columns
            return {column.name: self.reading.every}
        truth = {name: self.source.counts(name) for name in self.counts}
        if not self.layout.grouped:
            return truth
        places = place_rows(self.source, request)
        sums = {name: np.zeros(len(request.categories), dtype=np.int64) for name in truth}
        for name, counts in truth.items():
            np.add.at(sums[name], places, counts)
        return sums

    def build_table(self, counts: Mapping[str, CountArray]) -> Table:
        """Build the published table with these counts, which are public by now."""
        built = _build(self.source, self.request, self.layout, counts)
        return replace(built, format=self.request.options.output.format or built.format)

    def count_bytes(self) -> int:
        """Bound the size of the release, before anything is drawn."""
        uppers = {column.name: column.upper for column in self.request.columns}
        proofs = sum(len(s.mechanism_bytes) + len(s.certificate_bytes) for s in self.stages)
        figures = 200 * sum(min(2 * self.rows, upper + 1) for upper in uppers.values())
        if isinstance(self.groups, Grouping):  # labels, and five numbers for each column and sum
            figures += sum(self.groups.full.sizes[:-1]) * (2000 + 200 * len(uppers))
        levels = max(1, len(self.method.levels))
        figures += 24 * self.rows * len(uppers) * self.method.unbiased
        fullest = {
            name: np.full(self.rows, upper, np.min_scalar_type(upper))
            for name, upper in uppers.items()
        }
        more = {name_unbiased(name): fullest[name] for name in fullest if self.method.unbiased}
        built = self.build_table(fullest | more)
        size = built.require_writable()
        if not self.layout.grouped:  # labels are measured once
            self.source.facts.update(built.facts)
        return levels * (size + proofs + figures + (4 << 20))


def open_table(table: Any, options: ReleaseOptions) -> Opened:
    """Check a request and read its table; its counts are not looked at."""
    is_path = isinstance(table, (str, Path))
    early = check_options(options) if is_path else None
    source = read_table(table, options.source)
    request = early or check_options(options, array=source.kind == ARRAY)
    if source.kind == ARRAY:
        if len(request.columns) > 1:
            raise ArgumentError("count", "be one name, or left out, for an array of counts")
        source = rename_array(source, request.columns[0].name)
    if source.rows == 0 and not request.categories:
        raise TableError(
            "The table has no rows, and no list of categories says which it could have."
        )
    declared = request.options.source
    if source.kind == ARRAY:
        if declared.writes_numbers:
            raise UsageError("An array holds numbers: leave out how they are written.")
        return Opened(request, source)
    missing = 0
    if declared.na_values:
        counted = [column.name for column in request.columns if column.name in source.names]
        source, missing = leave_out_missing(source, counted, declared.na_values)
        if source.rows == 0:
            raise TableError("Every row has a code for a missing count: nothing is left.")
    return Opened(request, replace(source, options=declared), missing)


def plan_release(
    opened: Opened, entropy: Entropy | None = None, home: Rows | None = None
) -> ReleasePlan:
    """Read and check every count and plan the draws; nothing is spent.

    Parameters
    ----------
    opened : Opened
        The request and its table.
    entropy : Entropy, optional
        Chooses which rows of a person stay; never published.
    home : Rows, optional
        Where the rows are; in the table unless given.
    """
    request, source, home = opened.request, opened.source, home or Rows()
    reading = home.read(opened, entropy or Entropy())
    bounds = _find_bounds(source, request, reading.layout)
    if bounds is not None:
        cut = {name: column.cut(bounds) for name, column in reading.counts.items()}
        reading = replace(reading, counts=cut)
    if not home.is_invented:  # invented counts contradict no bound
        _require_covered(reading.counts, request)
    layout, counts = reading.layout, reading.counts
    _require_free_names(source, request, layout)
    free = _find_free(source, request, counts, layout) if request.zeros else None
    if free is not None and home.is_invented:
        counts = {name: column.keep_only(free) for name, column in counts.items()}
        reading = replace(reading, counts=counts)
    elif free is not None:
        _require_zeros(counts, free)
    method = request.method
    labels = Labels(source, request.categories if layout.grouped else (), request.by)
    groups = method.group(labels, layout.order, free)
    rows = len(next(iter(counts.values())).values)
    unit = request.unit
    if unit.separate and unit.bound == "stated" and unit.contributions > rows:
        rule = f"be at most {rows:,}, the published rows, if no two contributions are in one"
        raise ArgumentError("contributions", rule, unit.contributions)
    facts = {"groups": groups, "free": free, "bounds": bounds}
    columns = tuple(plan_column(request, column, rows, **facts) for column in request.columns)
    return ReleasePlan(
        request, source, reading, method, columns, **facts, missing=opened.missing, home=home
    )


def plan_column(
    request: Request,
    column: ColumnRequest,
    rows: int | None,
    *,
    groups: Any = None,
    free: Mask | None = None,
    bounds: Integers | None = None,
) -> Plan:
    """Plan one column, everything certified; `rows` is None if they are not known."""
    task = Task(
        column.name,
        column.upper,
        column.epsilon,
        rows if free is None else int(free.sum()),
        request.unit,
        request.delta,
        groups,
        free=free,
        bounds=bounds,
    )
    method, why = request.method.choose(task, request.why)
    return method.plan(task, why)


def _build(
    source: Table, request: Request, layout: Layout, counts: Mapping[str, CountArray]
) -> Table:
    """Build the published table with these counts, in the format of the input."""
    if layout.grouped:
        return source.build_grouped(request.by, request.categories, counts)
    return source.build_released(counts, layout.keep, layout.order)


def _count_microdata(request: Request, source: Table, entropy: Entropy) -> Reading:
    """Count records into the public categories.

    Which rows of a person stay is chosen with secure random bits, and itself never published.
    """
    (column,), unit, left_out = request.columns, request.unit, None
    person = request.options.unit.id_column
    if person is None:
        counts = every = request.counting.count(source)
    else:
        bound = PersonBound(person, unit.contributions, unit.separate, entropy.permutation)
        counts, every = request.counting.count_bounded(source, bound)
        left_out = int((every - counts).sum()), int(every.sum())
    cut = {column.name: clip_counts(counts, column.upper)}
    return Reading(cut, Layout.of_categories(request), every, left_out)


def _find_bounds(source: Table, request: Request, layout: Layout) -> Integers | None:
    """Read the largest count of every row, where a public column states it."""
    name = request.method.upper_column
    if not name:
        return None
    if layout.grouped or name not in layout.keep:
        rule = "name a column of the table that is published unchanged next to its rows"
        raise ArgumentError("upper_column", rule, name)
    if request.options.source.writes_numbers:
        raise UsageError(
            "A 'method.upper_column' is released unchanged, and must be written in plain "
            "digits: leave out how numbers are written."
        )
    bounds = read_counts(source, name, LARGEST).values.astype(np.int64)
    if int(bounds.max()) > LARGEST_BOUND:
        raise ArgumentError("upper_column", f"hold numbers of at most {LARGEST_BOUND:,}", name)
    return freeze(bounds)


def _find_free(
    source: Table, request: Request, counts: Mapping[str, ColumnCounts], layout: Layout
) -> Mask:
    """Find the rows that are not structural zeros, in the order of the counts."""
    public = [condition.column for rule in request.zeros for condition in rule]
    index = () if layout.grouped else source.index_names
    hidden = sorted(set(public) - ({*index, *layout.keep} - set(counts)))
    if hidden:
        raise ArgumentError(
            "structural_zeros", "name columns that are published unchanged", hidden[0]
        )
    empty = {name: np.zeros_like(column.values) for name, column in counts.items()}
    published = _build(source, request, layout, empty)
    for rule in request.zeros:
        if not meets_rule(rule, published).any():
            got = " and ".join(map(str, rule))
            raise ArgumentError(
                "structural_zeros", "meet at least one row of the published table", got=got
            )
    free = find_free(request.zeros, published)
    if layout.order is not None:
        there = free
        free = np.empty_like(there)
        free[layout.order] = there
    return free


def _require_free_names(source: Table, request: Request, layout: Layout) -> None:
    """Refuse unbiased columns of an array, and those whose names the table has already."""
    if request.method.unbiased and source.kind == ARRAY:
        raise UsageError("An array has no room for an unbiased column: give a table.")
    taken = {*source.names, *source.index_names, *request.by}
    added = [name_unbiased(column.name) for column in request.columns if request.method.unbiased]
    for name in added:
        if name in taken:
            raise UsageError(f"The table has a column {name!r} already: rename it first.")
    require_own_names((*(() if layout.grouped else source.index_names), *layout.keep, *added))


def _require_covered(counts: Mapping[str, ColumnCounts], request: Request) -> None:
    """Refuse counts above the bound where sums are exact: top-coding would change the sums."""
    method = request.method
    if not (isinstance(method, Sums) and method.exact_level >= 0):
        return
    for column in request.columns:
        if counts[column.name].above:
            name = method.upper_column
            bound = f"{column.upper}" + (f" or their row's {name!r}" if name else "")
            raise TableError(
                f"Column {column.name!r} has counts above the upper bound {bound}, and exact sums "
                "allow no top-coding. Raise the bound to one that is publicly known."
            )


def read_columns(
    source: Table, request: Request, read: ReadCounts
) -> tuple[dict[str, ColumnCounts], Layout]:
    """Read every count column of a table of counts, and how it is published."""
    keep = choose_columns(source, request)
    uppers = {column.name: column.upper for column in request.columns}
    source.require_publishable(n for n in (*source.index_names, *keep) if n not in uppers)
    public = tuple(name for name in (*source.index_names, *keep) if name not in uppers)
    keys = request.by or public
    is_searched = keys and not request.options.counts.allow_duplicates
    repeats = Repeats(source, keys) if is_searched else None
    totals = find_totals(source, public, repeats.add if repeats else None)
    _require_no_totals(totals, request, public)
    if repeats is not None and _have_categories(source, request, keys):
        repeats.require_none()
    del repeats  # its hashes make room for counts
    counts = {name: read(source, name, upper) for name, upper in uppers.items()}
    if request.categories:
        return _arrange_categories(source, request, counts, keep)
    return counts, Layout(keep, ROW_ORDERS["input"])


def _have_categories(source: Table, request: Request, keys: Sequence[str]) -> bool:
    """Return whether public columns name categories; a kept measurement alone does not."""
    if request.keep_all or request.by or request.method.public_columns:
        return True
    labels = [name for name in keys if name in source.index_names]
    numbers = ("integer", "number")
    return bool(labels) or not keys or any(source.type_of(name) not in numbers for name in keys)


def choose_columns(source: Table, request: Request) -> tuple[str, ...]:
    """Choose the columns of the release, in the table's own order."""
    for column in request.columns:
        if column.name not in source.names:
            raise _no_such_column(column.name, source, delimiter_hint(source.names))
    counted = {column.name for column in request.columns}
    public = (*(request.keep or ()), *request.by, *request.method.public_columns)
    for name in public:
        if name not in (*source.names, *source.index_names):
            raise _no_such_column(name, source)
    named = counted | set(public)
    unnamed = [name for name in (*source.index_names, *source.names) if name not in named]
    if unnamed and request.keep is None:
        raise TableError(
            f"Name the public columns to release with 'keep' ({_list_names(unnamed)}), or use "
            "keep='all'."
        )
    if not request.keep_all and (hidden := [n for n in source.index_names if n not in named]):
        raise TableError(
            f"The index {hidden[0]!r} of the table would be released. Name it in 'keep', or leave "
            "it out with reset_index(drop=True)."
        )
    keep = tuple(name for name in source.names if request.keep_all or name in named)
    if len(keep) - len(counted) > MOST_UNCHANGED:
        raise TableError(
            f"The table would publish {len(keep) - len(counted):,} other columns unchanged, "
            f"and the limit is {MOST_UNCHANGED:,}. Name the public ones "
            "in 'keep'."
        )
    return keep


def _arrange_categories(
    source: Table, request: Request, counts: dict[str, ColumnCounts], keep: tuple[str, ...]
) -> tuple[dict[str, ColumnCounts], Layout]:
    """Order rows by the public categories, with a count of 0 where a row is missing.

    Whether rows are built anew depends on the names of the columns alone, never on whether
    every category has a row: that is confidential.
    """
    places, size = place_rows(source, request), len(request.categories)
    words = ROW_ORDERS["categories"]
    if {*source.index_names, *keep} - set(counts) == set(request.by):
        uppers = {column.name: column.upper for column in request.columns}
        filled = {name: c.collect(places, size, uppers[name]) for name, c in counts.items()}
        return filled, Layout((*request.by, *filled), words, grouped=True)
    if request.options.microdata.other is not None:
        raise UsageError(
            "Rows of several categories cannot share a cell while other columns are released: "
            "leave those columns out of 'keep', or leave out 'other'."
        )
    if len(places) != size:
        raise TableError(
            "The table has no row for some category of the public list, and columns that a new "
            "row could not fill. Add the missing rows, with counts of 0, or leave those columns "
            "out of 'keep'."
        )
    return counts, Layout(keep, words, np.argsort(places))


def place_rows(source: Table, request: Request) -> Integers:
    """Find the place in the public list of every row of a table of counts."""
    return place_categories(source, request.by, request.categories, request.other_place)


def _require_no_totals(totals: Totals, request: Request, public: Sequence[str]) -> None:
    """Refuse rows that seem to repeat others: everybody in them is counted more than once.

    `totals` is what `find_totals` finds in the columns that are published.
    """
    often, reason = 1, ""
    for name in public:
        total, levels = totals[name]
        if total is not None or levels > 1:
            often *= max(levels, 2)
            what = f"a row labelled {total!r}" if total else "labels that are parts of others"
            reason = reason or f"Column {name!r} has {what}"
    if often <= request.unit.contributions or request.options.counts.allow_totals:
        return
    times = "twice" if often == 2 else f"{often} times"
    raise TableError(
        f"{reason}, which may count everyone {times}. Remove it (release totals with 'hierarchy'), "
        f"use unit.contributions={often}, or counts.allow_totals=True if nobody is counted twice."
    )


def _no_such_column(name: str, source: Table, hint: str = "") -> TableError:
    if any(NUMBER.fullmatch(other.strip()) for other in source.names):
        return TableError(
            f"No column named {name!r}. Names are not shown, because some are numbers: perhaps "
            "the file has no line with names at its top. Add one, or see `tallyveil inspect`."
        )
    return TableError(f"No column named {name!r}. Columns: {_list_names(source.names)}.{hint}")


def _list_names(names: Sequence[str]) -> str:
    shown = escape_controls(", ".join(names[:MOST_SHOWN]))
    return shown + (f" and {len(names) - MOST_SHOWN:,} more" if len(names) > MOST_SHOWN else "")


def _require_zeros(counts: Mapping[str, ColumnCounts], free: Mask) -> None:
    """Refuse a count in a row that must be 0, without saying which."""
    for name, column in counts.items():
        if column.values[~free].any():
            raise TableError(
                f"Column {name!r} has a count above 0 in a row that 'counts.structural_zeros' "
                "declares to be 0. Correct the table, or narrow the condition."
            )
