"""Tables on other machines: whose rows stay there and are drawn there, and whose are brought here.

True counts are drawn on the machines that hold them (`tallyveil.plans.apart`); what comes here is
the true histogram, for its certified noise, and how many rows have each draw.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, cast

from tallyveil.arrays import Integers
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.plans.apart import DrawnApart, RowDraws, choose_range
from tallyveil.plans.layout import ROW_ORDERS, Layout, choose_columns, require_no_totals
from tallyveil.plans.plan import ColumnPlan
from tallyveil.plans.upper import CEILING
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.request import Request
from tallyveil.sampling.entropy import Entropy
from tallyveil.sampling.seal import ReleaseSeal
from tallyveil.tables.base import CountArray
from tallyveil.tables.counting import Counting, PersonBound
from tallyveil.tables.counts import ColumnCounts
from tallyveil.tables.distributed import KEPT, DistributedTable, PrivateRoom, StagedRows
from tallyveil.tables.spool import make_private

__all__ = ["ADDRESS", "Place", "StagedDraws", "require_place", "stays_apart"]

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
"""How an address begins, such as hdfs://; of two strokes a path keeps one."""


class Place(Protocol):
    """Where a release is written: has a private folder, and room that was reserved."""

    def open_private(self) -> Path:
        """A folder that only its owner can read, removed when the release is done."""

    def free_room(self) -> None:
        """Give the reserved room to what is written now."""


def require_place(options: ReleaseOptions) -> None:
    """Refuse a request without a release folder that all machines can see."""
    if options.out is None:
        hint = "It must lie on a file system that all of them share."
        raise ArgumentError("out", "be given for tables on many machines", hint=hint)
    if ADDRESS.match(str(options.out)):
        rule = "be a path under which all machines see the folder, not an address"
        raise ArgumentError("out", rule, str(options.out))


def stays_apart(request: Request, options: ReleaseOptions) -> bool:
    """Whether rows can be drawn and published where they are; else they are brought together.

    That depends on what is asked for alone. Rows that are put in order, added up, compared with
    one another after they are drawn, or written in another format are needed in one place.
    """
    together = (
        request.categories,
        request.hierarchy,
        request.strata,
        request.zeros,
        request.nested,
        request.together,
        request.order != "input",
        request.format not in (None, "parquet"),
        request.form.missing,
        request.form.writes_numbers,
        isinstance(request.tradeoff, str),
        options.confidential_report,
        options.entropy,
    )
    return not any(asked is not None and bool(asked) for asked in together)


@dataclass(eq=False)
class StagedDraws:
    """Every row of a table drawn once, for all columns together."""

    source: DistributedTable
    out: Path
    seal: ReleaseSeal = field(default_factory=ReleaseSeal.fresh)
    draws: RowDraws | None = None
    kept: Path | None = None
    place: Place | None = None
    folder: Path | None = None
    staged: StagedRows | None = None

    @staticmethod
    def list_ordered(counts: Mapping[str, ColumnCounts]) -> list[str]:
        """Count columns in whose order the rows of every partition stand; confidential."""
        found = {name: cast("Any", column.values) for name, column in counts.items()}
        return [name for name, values in found.items() if values.ordered]

    def make_room(self) -> PrivateRoom:
        """A private folder beside the release to come, which other machines are to see."""
        there = (parent for parent in self.out.absolute().parents if parent.is_dir())
        try:
            self.kept = make_private(next(there), self)
        except OSError:
            raise UsageError(f"'out' cannot be written: {str(self.out)!r}.") from None
        return PrivateRoom(self.kept, self.seal, int(Entropy().words(1)[0]))

    def read(self, request: Request) -> tuple[dict[str, ColumnCounts], Layout]:
        """Check every count and label where they are; give histograms and how rows are published.

        What was checked is kept, encrypted, beside the folder to come: the table is not read again.
        """
        ranges = {c.name: choose_range(c.upper or CEILING) for c in request.columns}
        keep = choose_columns(self.source, request)
        public = tuple(name for name in keep if name not in ranges)
        keys = () if request.allow_duplicates else request.by or public
        tallied, facts = self.source.survey(ranges, public, keys, self.make_room())
        if self.source.rows == 0:
            raise TableError("The table has no rows.")
        require_no_totals(facts, request, public)
        counts = {
            name: ColumnCounts(cast("CountArray", found), above)
            for name, (found, above) in tallied.items()
        }
        return counts, Layout(keep, ROW_ORDERS["partitions"])

    def count(self, counting: Counting, bound: PersonBound | None) -> tuple[Integers, Integers]:
        """Count rows of microdata where they are: so many of each person, and all of them."""
        room = self.make_room()
        if bound is not None:
            found = self.source.count_bounded(counting, bound, room)
        else:
            found = (self.source.count_cells(counting, room),) * 2
        self.forget()
        return found

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
            if self.place is None or self.folder is None or self.draws is None:
                raise UsageError("Rows are drawn after a place for them was opened.")
            self.place.free_room()
            self.staged = self.source.stage(self.folder, self.draws)
        return self.staged

    def share_plans(self, plans: tuple[ColumnPlan, ...]) -> tuple[ColumnPlan, ...]:
        """The same plans, for rows that other machines draw."""
        self.draws = RowDraws.of({plan.name: (plan.method, plan.upper) for plan in plans})
        return tuple(
            replace(plan, method=DrawnApart(plan.name, plan.upper, plan.method, self.draw))
            for plan in plans
        )
