"""A release tried beforehand: its cost and accuracy, on invented or public counts.

Nothing is drawn from the publisher's counts, and no budget is touched.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.errors import TableError, TallyveilError
from tallyveil.release.demo import counts_of, demo_csv, other_cases, some_of
from tallyveil.release.methods.base import Plan
from tallyveil.release.methods.registry import METHODS, PLAIN_METHODS
from tallyveil.release.methods.sums import Sums
from tallyveil.release.options import KEEP_ALL, Budget, Microdata, ReleaseOptions
from tallyveil.release.plan import (
    Layout,
    Opened,
    Reading,
    ReleasePlan,
    Rows,
    open_table,
    plan_column,
    plan_release,
)
from tallyveil.release.receipt import promise
from tallyveil.release.request import Request, check_options
from tallyveil.release.transaction import Progress, require_possible
from tallyveil.release.unit import charge_columns, charge_delta
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.grouping import sum_by
from tallyveil.tables.counts import ColumnCounts, clip_counts, require_numeric
from tallyveil.tables.microdata import identify_persons
from tallyveil.tables.source import Source
from tallyveil.tables.table import CountArray, Table

INVENTED_ROWS = 1200
"""Rows of the invented table where nobody says how many there are."""

MOST_ROWS = 50_000
"""Of a longer table, the first rows are simulated."""

LEAST_RUNS, MOST_RUNS, SECONDS = 3, 20, 0.5
"""Releases that are simulated: fewer than the most where they take more processor time."""

GROUP = 30
"""Rows of each group whose sum is compared where no groups were named."""

WIDEST = {"fair": 1000, "design": 100}
"""Up to these upper bounds a method is tried unless it was asked for: others take long."""

CELLS = (0, 1, 2, 3, 4, 5, 6, 11, 21, 51, 101, 201, 501, 1001, 2001, 5001, 10_001)
"""Starts of the bars of a simulated histogram."""

LEAST_SHARE, MOST_SHARE = 0.02, 0.25
"""Shares of an invented column that the one nested in it has."""


@dataclass(frozen=True)
class Preview:
    """Facts of a release that are known before anything is drawn.

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
        Sums that the guarantee does not cover, as text.
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
        """Summarise a plan."""
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
        """The guarantee as a sentence."""
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
        plan = _plan_invented(opened)
        home = plan.home
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
    return Preview.of(_plan_invented(opened))


def simulate_release(
    table: Path | str, options: ReleaseOptions, rows: int | None, cells: Sequence[int]
) -> list[dict[str, Any]]:
    """Release invented counts several times with these options; see `simulate`.

    The table is opened only for the labels of groups, where groups were requested.
    """
    _, opened = _open_trial(table, options, rows)
    return simulate(_plan_invented(opened), cells=cells)


def compare_release(
    table: Path | str,
    options: ReleaseOptions,
    rows: int | None,
    progress: Progress = lambda _: None,
) -> list[dict[str, Any]]:
    """Try every method on the same invented counts; see `compare_methods`."""
    fitting, opened = _open_trial(table, options, rows)
    plan = _plan_invented(opened)
    return compare_methods(opened, fitting, plan.home, list_groups(plan), progress=progress)


def _plan_invented(opened: Opened) -> ReleasePlan:
    return plan_release(opened, home=InventedRows(opened.request))


def _open_trial(
    table: Path | str, options: ReleaseOptions, rows: int | None
) -> tuple[ReleaseOptions, Opened]:
    """Invent a table and options for it; take the publisher's own where groups need its labels."""
    invented = _invent(options, check_options(options), rows)
    return invented or (options, _shorten(open_table(table, options)))


def _try_out(seen: Preview, options: ReleaseOptions, opened: Opened, home: Rows) -> Preview:
    """Try the plan, and other methods, on counts that are not confidential."""
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
    """Take the first rows of a long table of counts."""
    if opened.source.rows <= MOST_ROWS or opened.request.categories:
        return opened
    return replace(opened, source=opened.source.slice(0, MOST_ROWS))


def _invent(
    options: ReleaseOptions, request: Request, rows: int | None
) -> tuple[ReleaseOptions, Opened] | None:
    """Invent a table and options for it, or return None where labels decide the plan."""
    if request.method.public_columns:
        return None
    fitting = structs.replace(
        options,
        count=[column.name for column in request.columns],
        keep=KEEP_ALL,
        by=(),
        categories=None,
        microdata=Microdata(),
        source=Source(),
        counts=structs.replace(options.counts, structural_zeros=()),
        unit=structs.replace(
            options.unit, id_column=None, contributions=request.unit.contributions
        ),
    )
    size = len(request.categories) or rows or INVENTED_ROWS
    request_of_trial = check_options(fitting)
    return fitting, Opened(request_of_trial, invent_table(request_of_trial, min(size, MOST_ROWS)))


def _describe(plan: Plan) -> dict[str, Any]:
    """Describe what is known of one column; JSON-ready."""
    return {
        "name": plan.task.name,
        "method": plan.method.name,
        "why": plan.why,
        "upper": plan.task.upper,
        "signed": plan.method.signed,
        **plan.method.preview(plan),
    }


def invent_counts(request: Request, rows: int) -> dict[str, Integers]:
    """Invent counts for every column, most of them small, the same every time.

    Columns go together as those of one table do, and none is a copy of another. A nested column
    counts some of those in the next: as many as the upper bounds of both state, at most a quarter.
    """
    uppers = {column.name: column.upper for column in request.columns}
    counts = {
        n: _invent_column(number) for number, n in enumerate(uppers) if n not in request.nested[:-1]
    }
    for number, (small, large) in enumerate(reversed([*pairwise(request.nested)]), len(uppers)):
        share = uppers[small] / uppers[large]
        share = min(max(share, LEAST_SHARE), MOST_SHARE)
        counts[small] = some_of(counts[large], share, number)
    return {name: np.resize(counts[name], rows) for name in uppers}


@cache
def _invent_column(number: int) -> Integers:
    return freeze(other_cases(number) if number else counts_of(demo_csv()))


def invent_table(request: Request, rows: int) -> Table:
    """Invent a table of counts in the requested columns."""
    counts = invent_counts(request, rows)
    labels = [(f"row {row}",) for row in range(1, rows + 1)]
    return Table.of_categories([""], labels, counts)


class InventedRows(Rows):
    """Rows with invented counts; of the table only types and labels are read."""

    is_invented = True

    def __init__(self, request: Request) -> None:
        self.request = request
        self.invent = cache(partial(invent_counts, request))

    def read(self, opened: Opened, entropy: Entropy) -> Reading:
        """Invent counts; of microdata, one for every category."""
        request, source = opened.request, opened.source
        if not request.microdata:
            return super().read(opened, entropy)
        nobody = source.slice(0, 0)
        if request.options.unit.id_column is not None:
            identify_persons(nobody, request.options.unit.id_column)
        request.counting.count(nobody)
        (column,) = request.columns
        empty = np.zeros(len(request.categories), dtype=np.int64)
        cells = nobody.build_grouped(request.by, request.categories, {column.name: empty})
        counts = {column.name: self.read_counts(cells, column.name, column.upper)}
        return Reading(counts, Layout.of_categories(request))

    def read_counts(self, table: Table, name: str, upper: int) -> ColumnCounts:
        """Invent counts for a column whose type allows counts; no cell is read."""
        require_numeric(table.rows_in.schema.field(name).type, name)
        return clip_counts(self.invent(table.rows)[name], upper)


def simulate(
    plan: ReleasePlan,
    groups: Mapping[str, Integers] | None = None,
    cells: Sequence[int] = CELLS,
) -> list[dict[str, Any]]:
    """Release counts that are invented or public several times, and measure the errors.

    Parameters
    ----------
    plan : ReleasePlan
        Planned for a table whose counts are not confidential.
    groups : mapping of str to array of int, optional
        Every row's group, by the name of the grouping; by default the requested ones.
    cells : sequence of int
        Where the cells of the histogram begin.

    Returns
    -------
    list of dict
        JSON-ready, for each column: `name`, `runs`, `rows`; `error`, how far a published count
        is off on average, `distance`, that of the sorted columns, and `sums`, that of sums by
        group, each a `mean` with its `standard_error` over the runs; and the `histogram`.
    """
    entropy = Entropy()
    began = time.process_time()
    drawn_columns: dict[str, list[NDArray[Any]]] = {c.name: [] for c in plan.request.columns}
    for run in range(MOST_RUNS):
        if run >= LEAST_RUNS and time.process_time() - began > SECONDS:
            break
        drawn = plan.draw(entropy)
        for name, levels in drawn.items():
            drawn_columns[name].append(levels[0].name_columns(name)[name].astype(np.int64))
    groups_of_rows = list_groups(plan) if groups is None else groups
    return [
        _measure_column(name, plan.counts[name].values, runs, groups_of_rows, cells)
        for name, runs in drawn_columns.items()
    ]


def list_groups(plan: ReleasePlan) -> dict[str, Integers]:
    """List every row's group, by the name of the grouping: the named ones, and all rows."""
    rows, method = plan.rows, plan.method
    groups = {"total": np.zeros(rows, dtype=np.int64)}
    if isinstance(method, Sums):
        tree = plan.groups.full
        for level, name in enumerate(method.name_levels(tree.depth)):
            groups[name] = tree.group_rows(level)
    elif plan.groups is not None:
        groups["+".join(method.public_columns)] = plan.groups
    elif rows > GROUP:
        groups[f"{GROUP} rows"] = np.arange(rows) // GROUP
    return groups


def _measure_column(
    name: str,
    values: CountArray,
    runs: Sequence[Integers],
    groups: Mapping[str, Integers],
    cells: Sequence[int],
) -> dict[str, Any]:
    """Measure how far several releases of one column lie from it."""
    true = values.astype(np.int64)
    ordered = np.sort(true)
    sums = []
    for group, places in groups.items():
        size = int(places.max()) + 1
        true_sums = sum_by(places, true, size)
        off = [np.abs(sum_by(places, run, size) - true_sums).mean() for run in runs]
        sums.append({"name": group, "sums": size, "error": _average(off)})
    return {
        "name": name,
        "runs": len(runs),
        "rows": len(true),
        "error": _average([np.abs(run - true).mean() for run in runs]),
        "distance": _average([np.abs(np.sort(run) - ordered).mean() for run in runs]),
        "sums": sums,
        "histogram": _count_cells(true, runs, cells),
    }


def _average(values: Sequence[Any]) -> dict[str, float]:
    """Return mean and standard error over the runs, four digits each."""
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return {"mean": _short(np.mean(values)), "standard_error": _short(error)}


def _short(value: Any) -> float:
    return float(f"{float(value):.4g}")


def _count_cells(
    true: Integers, runs: Sequence[Integers], cells: Sequence[int]
) -> dict[str, list[Any]]:
    """Count the rows in each cell, before and after; `spread` is that of one run."""
    largest = max(int(true.max()), *(int(run.max()) for run in runs))
    starts = [start for start in cells if start <= largest]
    edges = np.array([*starts, largest + 1])
    low = min(0, *(int(run.min()) for run in runs))
    if low < 0:
        starts, edges = [low, *starts], np.array([low, *edges])
    after: Floats = np.array([np.histogram(run, edges)[0] for run in runs], dtype=float)
    return {
        "from": starts,
        "to": [int(high) - 1 for _, high in pairwise(edges)],
        "before": np.histogram(true, edges)[0].tolist(),
        "after": [_short(rows) for rows in after.mean(axis=0)],
        "spread": [_short(rows) for rows in after.std(axis=0, ddof=1)],
    }


def compare_methods(
    opened: Opened,
    options: ReleaseOptions,
    home: Rows,
    groups: Mapping[str, Integers],
    already: str = "",
    *,
    progress: Progress = lambda _: None,
) -> list[dict[str, Any]]:
    """Try every other method at the same epsilon.

    Parameters
    ----------
    opened : Opened
        The table and the request.
    options : ReleaseOptions
        The same as the publisher wrote it.
    home : Rows
        Gives invented or public counts for the table.
    groups : mapping of str to array of int
        Groups of rows whose sums are compared; see `list_groups`.
    already : str
        A method that was tried already, as it would be here.
    progress : callable
        Called with the name of each method before it is tried.

    Returns
    -------
    list of dict
        JSON-ready: `method`, `epsilon` and `columns` as `simulate` gives them; or `refused`,
        why a method does not do this, or why it was not tried.
    """
    compared = []
    for name, alternative in _list_alternatives(opened.request, options, already):
        facts: dict[str, Any] = {"method": name}
        progress(name)
        try:
            _require_narrow(name, opened.request)
            trial = replace(opened, request=check_options(alternative))
            plan = plan_release(trial, home=home)
            facts["epsilon"] = float(sum(epsilon for _, epsilon in plan.charges))
            facts["columns"] = [
                {key: value for key, value in column.items() if key != "histogram"}
                for column in simulate(plan, groups)
            ]
        except TallyveilError as problem:
            facts["refused"] = str(problem)
        compared.append(facts)
    return compared


def _require_narrow(name: str, request: Request) -> None:
    """Refuse to try a method that would take long."""
    widest = WIDEST.get(name)
    if widest and any(c.upper > widest for c in request.columns):
        raise TableError(f"Skipped: slow for an upper bound above {widest:,}.")


def _list_alternatives(
    request: Request, options: ReleaseOptions, already: str
) -> list[tuple[str, ReleaseOptions]]:
    """List other methods by name, with the options that make sense for each; epsilon stays."""
    public = dict.fromkeys((*(request.keep or ()), *options.method.public_columns))
    keep: Any = KEEP_ALL if request.keep_all else tuple(public) if options.count else None
    spread = options.unit.spread if options.unit.spread == "one_row" else "any"
    plain = structs.replace(
        options,
        epsilon=[column.epsilon for column in request.columns],
        keep=keep,
        budget=Budget(),
        unit=structs.replace(options.unit, spread=spread),
    )
    makers = {name: METHODS[name]() for name in PLAIN_METHODS if name not in ("auto", already)}
    chosen = options.method
    if chosen.name in makers:
        unsigned = {"signed": False} if chosen.name == "geometric" else {}
        makers[chosen.name] = structs.replace(chosen, unbiased=False, **unsigned)
    anywhere = structs.replace(plain, unit=structs.replace(plain.unit, spread="any"))
    return [
        (name, structs.replace(plain if name == "geometric" else anywhere, method=method))
        for name, method in makers.items()
    ]
