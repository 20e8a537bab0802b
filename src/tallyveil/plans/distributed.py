"""Tables on other machines: which requests they take, and how their rows are drawn.

`draw` of `tallyveil.plans.methods` sees true counts on the machines that hold them; what comes here
is the true histogram, for its certified noise, and how many rows have each draw.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from tallyveil.arrays import Integers, count_values, freeze
from tallyveil.certified.mechanism import CertifiedGeometric
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_histogram
from tallyveil.estimate.ranks import round_histogram
from tallyveil.estimate.steps import FIRST_BITS, Steps, find_bins, find_steps
from tallyveil.plans.layout import ROW_ORDERS, Layout, choose_columns, require_no_totals
from tallyveil.plans.methods import (
    Independent,
    Preserve,
    PublishedCounts,
    noisy_cumulative,
    require_range,
)
from tallyveil.plans.plan import ColumnPlan
from tallyveil.plans.tallies import Histogram, Matching
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.request import Request
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.seal import ReleaseSeal
from tallyveil.tables.base import CountArray
from tallyveil.tables.counts import ColumnCounts
from tallyveil.tables.distributed import (
    KEPT,
    DistributedCounts,
    DistributedTable,
    HandedOut,
    StagedRows,
)
from tallyveil.tables.spool import make_private

__all__ = ["ADDRESS", "Place", "StagedDraws", "require_place", "require_taken"]

LARGEST_UPPER = 4000
"""The largest upper bound: bins of (draw, first digit) are counted by every task."""

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
"""How an address begins, such as hdfs://; of two strokes a path keeps one."""

METHODS = ("auto", "preserve", "geometric")
TAKEN = frozenset(
    [
        "count",
        "upper",
        "epsilon",
        "within",
        "confidence",
        "method",
        "neighbours",
        "unit",
        "contributions",
        "disjoint",
        "above",
        "by",
        "keep",
        "drop",
        "allow_duplicates",
        "allow_totals",
        "title",
        "publisher",
        "contact",
        "period",
        "licence",
        "out",
        "ledger",
        "dataset",
    ]
)
"""Options that a table on other machines takes."""


class Place(Protocol):
    """Where a release is written: has a private folder, and room that was reserved."""

    def open_private(self) -> Path:
        """A folder that only its owner can read, removed when the release is done."""

    def free_room(self) -> None:
        """Give the reserved room to what is written now."""


def require_taken(options: ReleaseOptions) -> None:
    """Refuse options that a table on other machines does not take, by name.

    A folder need not be named: `require_place` asks for one before anything is read.
    """
    for option in fields(options):
        given = getattr(options, option.name)
        same = type(given) is type(option.default) and given == option.default
        if option.name not in TAKEN and not same:
            raise UsageError(
                f"{option.name!r} is not for tables on many machines: leave it out, or release the "
                "table on one machine, without Spark."
            )
    if str(options.method) not in METHODS:
        rule = "be preserve or geometric for tables on many machines"
        raise ArgumentError("method", rule, str(options.method))
    if options.out is not None and ADDRESS.match(str(options.out)):
        rule = "be a path under which all machines see the folder, not an address"
        raise ArgumentError("out", rule, str(options.out))


def require_place(options: ReleaseOptions) -> None:
    """Refuse a request without a release folder."""
    if options.out is None:
        hint = "It must lie on a file system that all of them share."
        raise ArgumentError("out", "be given for tables on many machines", hint=hint)


def _read(
    source: DistributedTable, request: Request, folder: Path, seal: ReleaseSeal
) -> tuple[dict[str, ColumnCounts], Layout]:
    """Check every count and label where they are; give histograms and how rows are published.

    What was checked is kept in the private `folder`, encrypted: the table is not read again.
    """
    if request.microdata:
        raise UsageError("Microdata are not counted on many machines: count them first.")
    uppers = {}
    for column in request.columns:
        if column.upper is None or column.upper > LARGEST_UPPER:
            rule = f"be a number of at most {LARGEST_UPPER:,} for tables on many machines"
            raise ArgumentError("upper", rule)
        uppers[column.name] = column.upper
    keep = choose_columns(source, request)
    public = tuple(name for name in keep if name not in uppers)
    keys = () if request.allow_duplicates else request.by or public
    place = folder, seal, int(Entropy().words(1)[0])
    tallied, facts = source.survey(uppers, public, keys, place)
    if source.rows == 0:
        raise TableError("The table has no rows.")
    require_no_totals(facts, request, public)
    counts = {
        name: ColumnCounts(cast("CountArray", found), above)
        for name, (found, above) in tallied.items()
    }
    return counts, Layout(keep, ROW_ORDERS["partitions"])


@dataclass(frozen=True)
class _DrawRow:
    """Draws the rows of a batch on the machine that holds them, under a key of its own."""

    certified: Mapping[str, tuple[CertifiedGeometric, bool]]

    def __call__(
        self, counts: Mapping[str, CountArray]
    ) -> dict[str, tuple[CountArray, Any, Integers]]:
        entropy, found = Entropy(), {}
        for name, (certified, matches) in self.certified.items():
            size = certified.query.shape[1]
            require_range(counts[name], certified.query.shape[0])
            drawn = certified.draw_positions(counts[name], entropy)
            if matches:
                words = entropy.words(len(drawn))
                binned = count_values(find_bins(drawn, words), size << FIRST_BITS)
            else:
                words, binned = None, count_values(drawn, size)
            found[name] = drawn, words, binned
        return found


@dataclass(eq=False)
class StagedDraws:
    """Every row of a table drawn once, for all columns together."""

    source: DistributedTable
    seal: ReleaseSeal = field(default_factory=ReleaseSeal.fresh)
    certified: Mapping[str, tuple[CertifiedGeometric, bool]] = field(default_factory=dict)
    kept: Path | None = None
    place: Place | None = None
    folder: Path | None = None
    staged: StagedRows | None = None

    @staticmethod
    def list_ordered(counts: Mapping[str, ColumnCounts]) -> list[str]:
        """Count columns in whose order the rows of every partition stand; confidential."""
        found = {name: cast("Any", column.values) for name, column in counts.items()}
        return [name for name, values in found.items() if values.ordered]

    def read(self, request: Request, out: Path) -> tuple[dict[str, ColumnCounts], Layout]:
        """Check the table, and keep its rows, encrypted, beside the folder `out` to come."""
        there = (parent for parent in out.absolute().parents if parent.is_dir())
        try:
            self.kept = make_private(next(there), self)
        except OSError:
            raise UsageError(f"'out' cannot be written: {str(out)!r}.") from None
        return _read(self.source, request, self.kept, self.seal)

    def forget(self) -> None:
        """Remove the rows that were kept."""
        if self.kept is not None:
            shutil.rmtree(self.kept, ignore_errors=True)

    def open(self, place: Place | None) -> None:
        """Take the rows along to the place where they are drawn, before anything is spent."""
        if place is None or self.kept is None:
            raise UsageError("Rows that are drawn on many machines need a release folder.")
        self.place, self.folder = place, place.open_private()
        self.kept.rename(self.folder / KEPT)
        self.source.require_seen(self.folder)

    def draw(self) -> StagedRows:
        """Draw all rows, once."""
        if self.staged is None:
            if self.place is None or self.folder is None:
                raise UsageError("Rows are drawn after a place for them was opened.")
            self.place.free_room()
            self.staged = self.source.stage(self.folder, _DrawRow(dict(self.certified)))
        return self.staged

    def share_plans(self, plans: tuple[ColumnPlan, ...]) -> tuple[ColumnPlan, ...]:
        """The same plans, for rows that other machines draw."""
        certified = {}
        for plan in plans:
            method: Any = plan.method
            found = method.certified if isinstance(method, (Independent, Preserve)) else None
            if not isinstance(found, CertifiedGeometric):
                rule = "be preserve or geometric for tables on many machines"
                raise ArgumentError("method", rule, plan.method_name)
            certified[plan.name] = found, isinstance(method, Preserve)
        self.certified = certified
        return tuple(
            replace(plan, method=_Shared(plan.name, cast("Any", plan.method), self))
            for plan in plans
        )


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The private draws of a column, counted; the rows that hold them are staged."""

    staged: StagedRows
    bins: Integers
    draws: PrivateDraws


@dataclass(frozen=True, eq=False)
class _Shared:
    """A method whose rows are drawn, and given their counts, on other machines."""

    name: str
    method: Independent | Preserve
    tasks: StagedDraws

    def draw(self, counts: Any, entropy: Entropy) -> _Drawn:
        """Draw all columns where they are, and the noise of the distribution here."""
        found: DistributedCounts = counts
        staged, certified = self.tasks.draw(), self.method.certified
        bins = staged.bins[self.name]
        size = len(found.histogram)
        drawn = bins.reshape(size, -1).sum(axis=1)
        noise = self.method.distribution if isinstance(self.method, Preserve) else None
        totals = None if noise is None else noisy_cumulative(found.histogram, noise, entropy)
        epsilon1 = Fraction(0) if noise is None else noise.exact_epsilon
        draws = PrivateDraws.count(drawn, certified.exact_epsilon, totals, epsilon1)
        return _Drawn(staged, bins, draws)

    def publish(self, draws: _Drawn, entropy: Entropy) -> tuple[PublishedCounts, ...]:
        """The draws themselves, or counts handed out by rank; nothing but draws is looked at."""
        staged, size = draws.staged, draws.draws.size
        if isinstance(self.method, Independent):
            rows = draws.draws.histogram
            column = HandedOut(staged, _keep_draws, rows)
            return (PublishedCounts(cast("Any", column), Histogram.of(rows)),)
        found = estimate_histogram(draws.draws)
        histogram = round_histogram(found.histogram, draws.draws.records)

        def count_digits(prefixes: Any) -> list[tuple[Integers, Integers]]:
            return staged.count_digits(self.name, prefixes)

        steps = find_steps(draws.bins, found.cells, histogram, count_digits)
        rows = np.zeros(size, np.int64)
        np.add.at(rows, steps.counts, steps.rows)
        column = HandedOut(staged, steps.hand_out, freeze(rows))
        matching = _match(steps, size)
        return (PublishedCounts(cast("Any", column), Histogram.of(rows), matching),)


def _keep_draws(drawn: CountArray, _: Any) -> CountArray:
    return drawn


def _match(steps: Steps, size: int) -> Matching:
    """Which draws became which counts, from how many rows each step has."""
    pairs, at = np.unique(steps.draws * size + steps.counts, return_inverse=True)
    rows = np.zeros(len(pairs), np.int64)
    np.add.at(rows, at, steps.rows)
    kept = rows > 0
    pairs, rows = pairs[kept], rows[kept]
    return Matching(freeze(pairs // size), freeze(pairs % size), freeze(rows))
