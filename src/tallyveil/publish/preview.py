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
import numpy as np

from tallyveil.documents.promise import LARGE_DELTA, WEAK_EPSILON, promise
from tallyveil.plans.accuracy import FAR, expected_accuracy, signed_accuracy
from tallyveil.plans.layout import ReadCounts
from tallyveil.plans.methods import count_cells
from tallyveil.plans.optimality import predict_release
from tallyveil.plans.plan import ColumnPlan, plan_column
from tallyveil.plans.prepare import open_table, prepare_opened
from tallyveil.plans.prepared import Opened
from tallyveil.plans.sum_files import SumsRecord, describe_levels
from tallyveil.publish.simulate import (
    INVENTED_ROWS,
    MOST_ROWS,
    compare_methods,
    invent_table,
    list_groups,
    read_invented,
    simulate,
)
from tallyveil.publish.transaction import Say, require_possible
from tallyveil.release.options import KEEP_ALL, Microdata, ReleaseOptions, Source
from tallyveil.request.request import ColumnRequest, Request, check_options
from tallyveil.request.unit import charge_columns, charge_delta
from tallyveil.tables.counts import read_counts

__all__ = [
    "Preview",
    "compare_release",
    "preview_labels",
    "preview_release",
    "preview_table",
    "remark_on_cost",
    "simulate_release",
]


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
        JSON-ready: name, method, why, upper and accuracy.
    simulated : tuple of dict
        What several releases did to invented or public counts; see `simulate`.
    methods : tuple of dict
        What other methods cost and gave on the same counts; see `compare_methods`.
    """

    request: Request
    stages: tuple[tuple[str, Fraction], ...]
    columns: tuple[dict[str, Any], ...]
    simulated: tuple[dict[str, Any], ...] = ()
    methods: tuple[dict[str, Any], ...] = ()

    @property
    def epsilon(self) -> Fraction:
        """The whole cost for one unit."""
        return sum((epsilon for _, epsilon in self.stages), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The whole slack for one unit."""
        asked = self.request
        each = asked.delta + asked.unit.delta
        return charge_delta({c.name: each for c in asked.columns}, asked.disjoint)

    @property
    def promise(self) -> str:
        """What is promised, in words."""
        sums = SumsRecord.of_request(self.request)
        outside = "" if sums is None else sums.outside
        return promise(self.epsilon, self.request.unit, delta=self.delta, outside=outside)


def preview_release(options: ReleaseOptions, rows: int | None = None) -> Preview:
    """Plan from the public arguments alone: neither the table nor a ledger is opened."""
    request = check_options(options)
    return _plan_all(request, len(request.categories) or rows)


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
        What is asked for.
    rows : int, optional
        How many rows to plan for where no table is given.
    like : path, optional
        A public table with the same columns to try the plan on; invented counts otherwise.

    Returns
    -------
    Preview
        With what was simulated.
    """
    if table is None:
        seen = preview_release(options, rows)
        tried = _invent(options, seen.request, rows)
        read = read_invented(seen.request)
    else:
        opened = open_table(table, options)
        read = read_invented(opened.request)
        prepared = prepare_opened(opened, read=read)
        require_possible(options, prepared)
        seen = _plan_all(prepared.request, prepared.rows)
        tried = options, _shorten(opened)
    if like is not None:
        tried, read = (options, open_table(like, options)), read_counts
    return seen if tried is None else _try_out(seen, *tried, read)


def preview_labels(table: Path | str, options: ReleaseOptions) -> Preview:
    """Plan from the labels of a table's public columns, which say how a hierarchy is measured.

    No count is read.
    """
    opened = open_table(table, options)
    prepared = prepare_opened(opened, read=read_invented(opened.request))
    asked = prepared.request
    known = tuple(
        {"name": plan.name, "method": plan.method_name, "why": plan.why, "upper": plan.upper}
        | {"sums": _describe_sums(asked, plan)}
        for plan in prepared.plans
    )
    return Preview(asked, prepared.stages, known)


def simulate_release(
    table: Path | str, options: ReleaseOptions, rows: int | None, cells: Sequence[int]
) -> list[dict[str, Any]]:
    """Several releases of invented counts with these options; see `simulate`.

    The table is opened only for the labels of groups, where groups were asked for.
    """
    _, opened = _open_trial(table, options, rows)
    return simulate(prepare_opened(opened, read=read_invented(opened.request)), cells=cells)


def compare_release(
    table: Path | str,
    options: ReleaseOptions,
    rows: int | None,
    say: Say = lambda _: None,
) -> list[dict[str, Any]]:
    """What every method would cost and give on the same invented counts; see `compare_methods`."""
    asked, opened = _open_trial(table, options, rows)
    read = read_invented(opened.request)
    groups = list_groups(prepare_opened(opened, read=read))
    return compare_methods(opened, asked, read, groups, say=say)


def _open_trial(
    table: Path | str, options: ReleaseOptions, rows: int | None
) -> tuple[ReleaseOptions, Opened]:
    """An invented table and options for it; the publisher's own where groups need its labels."""
    invented = _invent(options, check_options(options), rows)
    return invented or (options, _shorten(open_table(table, options)))


def _describe_sums(asked: Request, plan: ColumnPlan) -> list[dict[str, Any]]:
    """How far off the sums of every level are before they are rounded."""
    record = SumsRecord.of_request(asked)
    if record is None or asked.hierarchy is None or asked.grouping is None:
        return []
    found = describe_levels(asked.hierarchy, asked.grouping, plan.epsilon, plan.upper)
    return [
        {
            "level": name,
            "sums": len(deviations),
            "deviation": float(np.mean(deviations)),
            "half_width": float(np.max(halves)),
        }
        for name, deviations, halves in zip(
            record.names, found.deviations, found.halves, strict=False
        )
    ]


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


def _try_out(seen: Preview, options: ReleaseOptions, opened: Opened, read: ReadCounts) -> Preview:
    """The same with what the plan, and other methods, do to counts that are not confidential."""
    prepared = prepare_opened(opened, read=read)
    groups, asked = list_groups(prepared), prepared.request
    used = {str(known["method"]) for known in seen.columns}
    plain = len(used) == 1 and not (asked.signed or asked.delta)
    return replace(
        seen,
        simulated=tuple(simulate(prepared, groups)),
        methods=tuple(compare_methods(opened, options, read, groups, used.pop() if plain else "")),
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
    if request.hierarchy is not None or request.strata:
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
    asked = check_options(fitting)
    return fitting, Opened(asked, invent_table(asked, min(size, MOST_ROWS)))


def _plan_all(request: Request, rows: int | None) -> Preview:
    planned: list[tuple[str, str, Fraction]] = []
    known = tuple(_plan(request, column, rows, planned) for column in request.columns)
    return Preview(request, charge_columns(planned, request.disjoint), known)


def _plan(
    request: Request,
    column: ColumnRequest,
    rows: int | None,
    stages: list[tuple[str, str, Fraction]],
) -> dict[str, Any]:
    """What is known of one column; adds its stages to `stages`."""
    plan = plan_column(request, column, rows)
    stages += [(column.name, stage.name, stage.epsilon) for stage in plan.stages]
    certified = plan.counts_stage.certified
    if request.signed:
        accuracy = signed_accuracy(certified.exact_epsilon, FAR)
    else:
        accuracy = expected_accuracy(certified, plan.upper)
    known = {
        "name": column.name,
        "method": plan.method_name,
        "why": plan.why,
        "upper": column.upper,
        "signed": request.signed,
        "accuracy": accuracy.to_dict(),
        **({"levels": sums} if (sums := _describe_sums(request, plan)) else {}),
    }
    if plan.method_name != "preserve" or rows is None:
        return known
    predicted = predict_release(
        plan.epsilon, certified.exact_epsilon, rows, count_cells(plan.upper)
    )
    return {**known, "prediction": predicted}
