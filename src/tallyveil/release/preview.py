"""What a release would cost, how accurate it would be, and what other methods would give.

Nothing is drawn from the publisher's counts, and no budget is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec

from tallyveil.release.methods.base import Plan
from tallyveil.release.options import KEEP_ALL, Microdata, ReleaseOptions
from tallyveil.release.plan import Opened, ReleasePlan, Rows, open_table, plan_column, plan_release
from tallyveil.release.receipt import LARGE_DELTA, WEAK_EPSILON, promise
from tallyveil.release.request import Request, check_options
from tallyveil.release.simulate import (
    INVENTED_ROWS,
    MOST_ROWS,
    InventedRows,
    compare_methods,
    invent_table,
    list_groups,
    simulate,
)
from tallyveil.release.transaction import Say, require_possible
from tallyveil.release.unit import charge_columns, charge_delta
from tallyveil.tables.source import Source


@dataclass(frozen=True)
class Preview:
    """What is known before anything is drawn.

    Attributes
    ----------
    request : Request
        The options, checked.
    stages : tuple of (str, Fraction)
        What one unit is charged for.
    columns : tuple of dict
        JSON-ready: name, method, why, upper, whether counts are signed, and what the method says
        of its accuracy.
    outside : str
        Which sums the promise does not cover, in words.
    simulated : tuple of dict
        What several releases did to invented or public counts; see `simulate`.
    methods : tuple of dict
        What other methods cost and gave on the same counts; see `compare_methods`.
    """

    request: Request
    stages: tuple[tuple[str, Fraction], ...]
    columns: tuple[dict[str, Any], ...]
    outside: str = ""
    simulated: tuple[dict[str, Any], ...] = ()
    methods: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of(cls, plan: ReleasePlan) -> Preview:
        """What a plan says."""
        outside = plan.method.describe_outside(plan.sums)
        columns = tuple(map(_describe, plan.columns))
        return cls(plan.request, plan.charges, columns, outside)

    @property
    def epsilon(self) -> Fraction:
        """The whole cost for one unit."""
        return sum((epsilon for _, epsilon in self.stages), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The whole slack for one unit."""
        request = self.request
        each = request.delta + request.unit.delta
        return charge_delta({c.name: each for c in request.columns}, request.disjoint)

    @property
    def promise(self) -> str:
        """What is promised, in words."""
        return promise(self.epsilon, self.request.unit, delta=self.delta, outside=self.outside)


def preview_release(options: ReleaseOptions, rows: int | None = None) -> Preview:
    """Plan from the public arguments alone: neither the table nor a ledger is opened."""
    request = check_options(options)
    rows = len(request.categories) or rows
    plans = [plan_column(request, column, rows) for column in request.columns]
    stages = [(stage.column, stage.name, stage.epsilon) for plan in plans for stage in plan.stages]
    charges = charge_columns(stages, request.disjoint)
    return Preview(request, charges, tuple(map(_describe, plans)))


def preview_table(
    table: Path | str | None,
    options: ReleaseOptions,
    *,
    rows: int | None = None,
    like: Path | None = None,
) -> Preview:
    """Plan for a table whose counts are not read, and try the plan on other counts.

    Parameters
    ----------
    table : path, address or None
        Names, types and the labels of public columns are read, and refused as a release would.
        None to plan from the options alone, for `rows` rows.
    options : ReleaseOptions
        The options of the release.
    rows : int, optional
        How many rows to plan for where no table is given.
    like : path, optional
        A public table with the same columns to try the plan on; invented counts otherwise.

    Returns
    -------
    Preview
        With what was simulated.
    """
    home: Rows
    if table is None:
        seen = preview_release(options, rows)
        tried, home = _invent(options, seen.request, rows), InventedRows(seen.request)
    else:
        opened = open_table(table, options)
        home = InventedRows(opened.request)
        plan = plan_release(opened, home=home)
        require_possible(options, plan)
        seen, tried = Preview.of(plan), (options, _shorten(opened))
    if like is not None:
        tried, home = (options, open_table(like, options)), Rows()
    return seen if tried is None else _try_out(seen, *tried, home)


def preview_labels(table: Path | str, options: ReleaseOptions) -> Preview:
    """Plan from the labels of a table's public columns, which say how a hierarchy is measured.

    No count is read.
    """
    opened = open_table(table, options)
    return Preview.of(plan_release(opened, home=InventedRows(opened.request)))


def simulate_release(
    table: Path | str, options: ReleaseOptions, rows: int | None, cells: Sequence[int]
) -> list[dict[str, Any]]:
    """Several releases of invented counts with these options; see `simulate`.

    The table is opened only for the labels of groups, where groups were asked for.
    """
    _, opened = _open_trial(table, options, rows)
    return simulate(plan_release(opened, home=InventedRows(opened.request)), cells=cells)


def compare_release(
    table: Path | str,
    options: ReleaseOptions,
    rows: int | None,
    say: Say = lambda _: None,
) -> list[dict[str, Any]]:
    """What every method would cost and give on the same invented counts; see `compare_methods`."""
    fitting, opened = _open_trial(table, options, rows)
    home = InventedRows(opened.request)
    groups = list_groups(plan_release(opened, home=home))
    return compare_methods(opened, fitting, home, groups, say=say)


def _open_trial(
    table: Path | str, options: ReleaseOptions, rows: int | None
) -> tuple[ReleaseOptions, Opened]:
    """An invented table and options for it; the publisher's own where groups need its labels."""
    invented = _invent(options, check_options(options), rows)
    return invented or (options, _shorten(open_table(table, options)))


def remark_on_cost(cost: Fraction, delta: Fraction = Fraction(0)) -> str | None:
    """A remark for the publisher where a cost, or a delta, protects little, else None."""
    if delta > LARGE_DELTA:
        return (
            f"Delta {float(delta):g} protects little: with that chance the promise may fail. A "
            "usual choice is far below one in the number of people, such as 1e-6."
        )
    if cost <= WEAK_EPSILON:
        return None
    return f"Epsilon {float(cost):g} protects little: most releases use 1 or less in total."


def _try_out(seen: Preview, options: ReleaseOptions, opened: Opened, home: Rows) -> Preview:
    """The same with what the plan, and other methods, do to counts that are not confidential."""
    plan = plan_release(opened, home=home)
    groups, request = list_groups(plan), plan.request
    used = {str(column["method"]) for column in seen.columns}
    plain = len(used) == 1 and not (request.method.signed or request.delta)
    return replace(
        seen,
        simulated=tuple(simulate(plan, groups)),
        methods=tuple(compare_methods(opened, options, home, groups, used.pop() if plain else "")),
    )


def _shorten(opened: Opened) -> Opened:
    """The first rows of a long table of counts."""
    if opened.source.rows <= MOST_ROWS or opened.request.categories:
        return opened
    return replace(opened, source=opened.source.slice(0, MOST_ROWS))


def _invent(
    options: ReleaseOptions, request: Request, rows: int | None
) -> tuple[ReleaseOptions, Opened] | None:
    """An invented table and options for it, or None where labels decide what would be done."""
    if request.method.public_columns:
        return None
    fitting = msgspec.structs.replace(
        options,
        count=[column.name for column in request.columns],
        keep=KEEP_ALL,
        by=(),
        categories=None,
        microdata=Microdata(),
        source=Source(),
        counts=msgspec.structs.replace(options.counts, structural_zeros=()),
        unit=msgspec.structs.replace(
            options.unit, id_column=None, contributions=request.unit.contributions
        ),
    )
    size = len(request.categories) or rows or INVENTED_ROWS
    request_of_trial = check_options(fitting)
    return fitting, Opened(request_of_trial, invent_table(request_of_trial, min(size, MOST_ROWS)))


def _describe(plan: Plan) -> dict[str, Any]:
    """What is known of one column; JSON-ready."""
    return {
        "name": plan.task.name,
        "method": plan.method.name,
        "why": plan.why,
        "upper": plan.task.upper,
        "signed": plan.method.signed,
        **plan.method.preview(plan),
    }
