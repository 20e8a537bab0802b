"""Everything up to the draw and the draw itself: check, plan, debit, release.

`prepare` does all that can fail before anything is spent. What it returns holds the
confidential counts; what `Prepared.release` returns does not.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.budget.ledger import Debit, Ledger, Stage, shown_rational
from tallyveil.errors import ArgumentError, BudgetError, TableError
from tallyveil.publish.options import Request, make_request
from tallyveil.publish.plan import ColumnPlan, Drawn, plan_column
from tallyveil.publish.receipt import column_record, make_receipt, table_record
from tallyveil.publish.release import Release
from tallyveil.publish.upper import private_upper
from tallyveil.sampling.entropy import Entropy
from tallyveil.tables.array import ArrayTable
from tallyveil.tables.base import Table
from tallyveil.tables.categories import Label, count_rows, require_distinct, sorted_order
from tallyveil.tables.delimited import delimiter_hint
from tallyveil.tables.source import read_table

__all__ = ["Prepared", "order_remark", "prepare"]

Account = tuple[Ledger, str]
Say = Callable[[str], None]

MOST_UNCHANGED = 1000
"""A table with more other columns than this must name those that are to be published."""

UPPER_CEILING = 10_000
"""No private upper bound lies above this."""


def prepare(
    table: Any, options: Mapping[str, Any], delimiter: str | None = None, encoding: str = "utf-8"
) -> Prepared:
    """Check a request, its table and every count, and plan the draws; nothing is spent.

    `options` are the arguments of `make_request`.
    """
    is_path = isinstance(table, (str, Path))
    early = None if not is_path else make_request(**options)
    source = read_table(table, delimiter, encoding)
    is_array = isinstance(source, ArrayTable)
    request = early or make_request(**{**options, "array": is_array})
    if isinstance(source, ArrayTable):
        if len(request.columns) > 1:
            raise ArgumentError("count", "be one name, or left out, for an array of counts")
        source = replace(source, name=request.columns[0].name)
    if source.rows == 0:
        raise TableError("The table has no rows.")
    if request.microdata:
        counted = count_rows(source, request.by, request.categories, request.where)
        counts = {request.columns[0].name: counted}
        keep, order, grouped = (*request.by, request.columns[0].name), None, True
    else:
        counts = _checked_counts(source, request)
        keep = _published(source, request)
        counts, order, grouped = _arranged(source, request, counts, keep)
    _require_covered(counts, request)
    rows = len(next(iter(counts.values())))
    plans = tuple(
        None
        if column.upper is None
        else plan_column(
            request, column.name, upper=column.upper, epsilon=column.epsilon, rows=rows
        )
        for column in request.columns
    )
    prepared = Prepared(request, source, counts, plans, keep, order, grouped)
    prepared.require_room_for_labels()
    return prepared


@dataclass(frozen=True, eq=False)
class Prepared:
    """A request that was checked against its table. Holds the confidential counts."""

    request: Request
    source: Table
    counts: Mapping[str, Integers]
    plans: tuple[ColumnPlan | None, ...]
    keep: tuple[str, ...]
    order: Integers | None
    grouped: bool

    @property
    def rows(self) -> int:
        """How many rows will be published."""
        return len(next(iter(self.counts.values())))

    @property
    def cost(self) -> Fraction:
        """What the release will cost one person, all stages together."""
        planned = [plan.stages for plan in self.plans if plan is not None]
        known = sum((stage.epsilon for stages in planned for stage in stages), Fraction(0))
        unknown = [column for column in self.request.columns if column.upper is None]
        search = self.request.upper_epsilon or Fraction(0)
        rest = sum((column.epsilon + search for column in unknown), Fraction(0))
        return known + rest * self.request.multiplier

    def require_room_for_labels(self) -> None:
        """Raise a `TableError` if the key columns cannot hold the public labels.

        Anything that could fail after the debit is tried before it.
        """
        if self.grouped:
            try:
                self._built({name: np.zeros_like(held) for name, held in self.counts.items()})
            except Exception:
                raise TableError(
                    f"The public list of categories has a value that the type of "
                    f"{', '.join(self.request.by)} cannot hold. Convert the column to text first."
                ) from None

    def room(self) -> int:
        """An upper bound on the bytes of the release folder, known before anything is drawn."""
        widths = {c.name: c.upper or UPPER_CEILING for c in self.request.columns}
        fullest = {name: np.full(self.rows, upper) for name, upper in widths.items()}
        fixed = sum(len(p.mechanism_bytes) + len(p.certificate_bytes) for p in self.plans if p)
        figures = 200 * sum(upper + 1 for upper in widths.values())
        return len(self._built(fullest).to_bytes()) + fixed + figures + (4 << 20)

    def release(
        self,
        ledger: str | Path | Ledger | None = None,
        dataset: str | None = None,
        *,
        entropy: Entropy | None = None,
        command: str = "tv.privatize",
        say: Say = lambda _: None,
    ) -> Release:
        """Debit, then draw. Nothing is drawn unless the whole cost is covered."""
        account = _account(ledger, dataset)
        name = str(uuid.uuid4())
        if account is not None:
            _require_total(account, self.cost)
        plans, searches = self._completed(account, entropy, command, name)
        entry = None
        if account is not None:
            say("debiting the ledger")
            entry = account[0].debit(account[1], _debit(plans, command, name))
        say("drawing")
        columns = tuple(
            (plan, plan.draw(np.minimum(self.counts[plan.name], plan.upper), entropy))
            for plan in plans
        )
        say("packing")
        data = self._built({plan.name: drawn.counts for plan, drawn in columns})
        private = entropy is None or entropy.private
        receipt = make_receipt(
            release=name,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            request=self.request,
            columns=_column_records(columns, searches, self.request),
            table=table_record(data, self.request, self._row_order()),
            private=private,
            ledger=entry,
        )
        return Release(data, columns, receipt)

    def _completed(
        self, account: Account | None, entropy: Entropy | None, command: str, release: str
    ) -> tuple[list[ColumnPlan], dict[str, Stage]]:
        """All plans, with upper bounds found privately (and paid for) where none is public."""
        plans, searches = [], {}
        for plan, column in zip(self.plans, self.request.columns, strict=True):
            if plan is not None:
                plans.append(plan)
                continue
            each = self.request.upper_epsilon or Fraction(0)
            paid = Stage(f"{column.name}: upper bound", each * self.request.multiplier)
            if account is not None:
                debit = Debit((column.name,), (paid,), command=command, release=release)
                account[0].debit(account[1], debit)
            counts = self.counts[column.name]
            found = private_upper(counts, each, ceiling=UPPER_CEILING, entropy=entropy)
            searches[column.name] = paid
            plans.append(
                plan_column(self.request, column.name, upper=found.upper, epsilon=column.epsilon,
                            rows=self.rows, found_upper=True)
            )  # fmt: skip
        return plans, searches

    def _built(self, counts: Mapping[str, Integers]) -> Table:
        if self.grouped:
            return self.source.grouped(self.request.by, self.request.categories, counts)
        return self.source.released(counts, self.keep, self.order)

    def _row_order(self) -> str:
        if self.request.categories:
            return "that of the public list of categories"
        return "that of the input" if self.order is None else "sorted by the public columns"


def order_remark(prepared: Prepared) -> str | None:
    """What to say if the rows stand in the order of their counts, which would give them away.

    Said to the publisher only. Nothing is said if a public column explains the order.
    """
    if prepared.grouped or prepared.order is not None or prepared.rows < 3:
        return None
    for name, counts in prepared.counts.items():
        steps = np.diff(counts)
        ordered = bool((steps >= 0).all() or (steps <= 0).all())
        if ordered and steps.any() and not _explained(prepared):
            return (
                f"The rows stand in the order of {name!r}, and row order is published. Unless "
                "that order is public, use --order sorted."
            )
    return None


def _explained(prepared: Prepared) -> bool:
    public = [name for name in prepared.keep if name not in prepared.counts]
    return any((np.diff(sorted_order(prepared.source, [name])) == 1).all() for name in public)


def _checked_counts(source: Table, request: Request) -> dict[str, Integers]:
    """Every count column as whole numbers, or an error about the first that is not."""
    for column in request.columns:
        if column.name not in source.names:
            raise TableError(
                f"There is no column {column.name!r}. The columns are: "
                f"{_some(source.names)}.{delimiter_hint(source.names)}"
            )
    counts = {column.name: source.counts(column.name) for column in request.columns}
    for column in request.columns:
        source.require_room(column.name, column.upper or UPPER_CEILING)
    return counts


def _published(source: Table, request: Request) -> tuple[str, ...]:
    """The columns of the release, in the table's own order."""
    counted = {column.name for column in request.columns}
    for name in (*(request.keep or ()), *request.drop, *request.by):
        if name not in (*source.names, *source.index_names):
            raise TableError(f"There is no column {name!r}. The columns are: "
                             f"{_some(source.names)}.")  # fmt: skip
    wanted = set(source.names if request.keep is None else request.keep) - set(request.drop)
    wanted |= counted | (set(request.by) & set(source.names))
    keep = tuple(name for name in source.names if name in wanted)
    if len(keep) - len(counted) > MOST_UNCHANGED:
        raise TableError(
            f"The table would publish {len(keep) - len(counted):,} other columns unchanged, "
            f"more than anybody can review ({MOST_UNCHANGED:,}). Name those that are public "
            "with --keep."
        )
    return keep


def _arranged(
    source: Table, request: Request, counts: dict[str, Integers], keep: Sequence[str]
) -> tuple[dict[str, Integers], Integers | None, bool]:
    """Counts, row order and whether rows are rebuilt, for a table that is aggregated."""
    public = tuple(name for name in (*source.index_names, *keep) if name not in counts)
    keys = request.by or public
    if request.categories or not request.allow_duplicates:
        require_distinct(source, keys)
    if not request.categories:
        if request.order != "sorted":
            return counts, None, False
        if not public:
            raise ArgumentError("order", "be 'input' where there is no other column to sort by")
        every = (*keys, *(name for name in public if name not in keys))
        # rows that no public column tells apart must not keep the order they came in
        return counts, sorted_order(source, every, Entropy().permutation(source.rows)), False
    labels: list[Label] = list(zip(*(source.labels(name) for name in keys), strict=True))
    place = {label: row for row, label in enumerate(labels)}
    listed = set(request.categories)
    for row, label in enumerate(labels, start=1):
        if label not in listed:
            raise TableError(f"Row {row} has a category that is not in the public list.")
    missing = len(listed) - len(place)
    if not missing:
        return counts, np.array([place[label] for label in request.categories]), False
    if set(keep) - set(counts) != set(keys):
        raise TableError(
            "The table has no row for some category of the public list, and columns that a new "
            "row could not fill. Add the missing rows, with counts of 0, or drop those columns."
        )
    filled = {
        name: np.array([values[place[x]] if x in place else 0 for x in request.categories])
        for name, values in counts.items()
    }
    return filled, None, True


def _require_covered(counts: Mapping[str, Integers], request: Request) -> None:
    if request.above == "top_code":
        return
    for column in request.columns:
        if column.upper is None:
            raise ArgumentError("above", "be 'top_code' when upper is 'auto'", "refuse")
        if (counts[column.name] > column.upper).any():
            raise TableError(
                f"Column {column.name!r} has counts above the upper bound {column.upper}. Raise "
                "the bound to one that is publicly known, or let them be top-coded."
            )


def _account(ledger: str | Path | Ledger | None, dataset: str | None) -> Account | None:
    if ledger is None and dataset is None:
        return None
    if ledger is None or dataset is None:
        missing = "ledger" if ledger is None else "dataset"
        raise ArgumentError(missing, "be given: a ledger and a dataset belong together")
    return (ledger if isinstance(ledger, Ledger) else Ledger(ledger)), dataset


def _require_total(account: Account, cost: Fraction) -> None:
    """Refuse a release that the budget cannot cover before its first stage is paid."""
    state = account[0].account(account[1])
    if state.closed:
        raise BudgetError(f"The dataset {state.dataset!r} is closed. Nothing was spent.")
    if cost > state.remaining_epsilon:
        raise BudgetError(
            f"The budget of {state.dataset!r} does not cover this release: it costs epsilon "
            f"{shown_rational(cost)}, and {shown_rational(state.remaining_epsilon)} remains of "
            f"{shown_rational(state.epsilon)}. Nothing was spent."
        )


def _debit(plans: Sequence[ColumnPlan], command: str, release: str) -> Debit:
    return Debit(
        tuple(plan.name for plan in plans),
        tuple(stage for plan in plans for stage in plan.stages),
        mechanism=tuple(plan.mechanism_hash for plan in plans),
        certificate=tuple(str(plan.certified.certificate["digest"]) for plan in plans),
        command=command,
        release=release,
    )


def _column_records(
    columns: Sequence[tuple[ColumnPlan, Drawn]], searches: Mapping[str, Stage], request: Request
) -> list[dict[str, Any]]:
    """The receipt's record of every column; equal mechanisms share one file."""
    files: dict[str, str] = {}
    records = []
    for plan, drawn in columns:
        number = files.setdefault(plan.mechanism_hash, f"-{len(files) + 1}" if files else "")
        search = searches.get(plan.name)
        stages = plan.stages if search is None else (search, *plan.stages)
        records.append(column_record(plan, drawn, stages, number, request.above))
    return records


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:12])
    return shown + (f" and {len(names) - 12:,} more" if len(names) > 12 else "")
