"""What a release would do to a table, tried on invented or public counts, and what others would.

Nothing here reads the counts of the publisher's table: its rows and the labels of its public
columns are taken, and counts are invented for them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tallyveil.arrays import Floats, Integers, freeze
from tallyveil.errors import TableError, TallyveilError
from tallyveil.release.demo import counts_of, demo_csv, other_cases, some_of
from tallyveil.release.layout import Layout
from tallyveil.release.methods.registry import METHODS, PLAIN_METHODS
from tallyveil.release.methods.sums import Sums
from tallyveil.release.options import KEEP_ALL, Budget, ReleaseOptions
from tallyveil.release.plan import Opened, Reading, ReleasePlan, Rows, plan_release
from tallyveil.release.request import Request, check_options
from tallyveil.release.transaction import Say
from tallyveil.sampling.entropy import Entropy
from tallyveil.sums.grouping import sum_by
from tallyveil.tables.counts import HINTS, ColumnCounts, clip_counts
from tallyveil.tables.microdata import identify_persons
from tallyveil.tables.table import CountArray, Table

INVENTED_ROWS = 1200
"""Rows of the invented table where nobody says how many there are."""

MOST_ROWS = 50_000
"""Of a longer table, the first rows are simulated."""

LEAST_RUNS, MOST_RUNS, SECONDS = 3, 20, 0.5
"""Releases that are simulated: fewer than the most where they take more processor time."""

GROUP = 30
"""How many rows the groups have whose sums are compared where no groups were named."""

WIDEST = {"fair": 1000, "design": 100}
"""Up to these upper bounds a method is tried unless it was asked for: others take long."""

CELLS = (0, 1, 2, 3, 4, 5, 6, 11, 21, 51, 101, 201, 501, 1001, 2001, 5001, 10_001)
"""Where the bars of a simulated histogram begin."""

LEAST_SHARE, MOST_SHARE = 0.02, 0.25
"""What part of an invented column the one nested in it has."""

NUMBER_TYPES = ("integer", "number", "any")


def invent_counts(request: Request, rows: int) -> dict[str, Integers]:
    """So many invented counts for every column, most of them small, the same every time.

    Columns go together as those of one table do, and none is a copy of another. A nested column
    counts some of those in the next: as many as the upper bounds of both say, at most a quarter.
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
    """A table of invented counts in the columns that are asked for."""
    counts = invent_counts(request, rows)
    labels = [(f"row {row}",) for row in range(1, rows + 1)]
    return Table.of_categories([""], labels, counts)


class InventedRows(Rows):
    """Rows with invented counts; of a table itself only types are looked at,
    and labels.
    """

    is_invented = True

    def __init__(self, request: Request) -> None:
        self.request = request
        self.invent = cache(partial(invent_counts, request))

    def read(self, opened: Opened, entropy: Entropy) -> Reading:
        """Invented counts; of microdata, one for every category."""
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
        """Invented counts for a column that could hold counts."""
        kind = table.type_of(name)
        if kind not in NUMBER_TYPES and not self.request.options.source.writes_numbers:
            raise TableError(
                f"Count column {name!r} has the type {kind}; counts must be whole numbers of at "
                f"least 0.{HINTS['text']}"
            )
        return clip_counts(self.invent(table.rows)[name], upper)


def simulate(
    plan: ReleasePlan,
    groups: Mapping[str, Integers] | None = None,
    cells: Sequence[int] = CELLS,
) -> list[dict[str, Any]]:
    """Several releases of counts that are invented or public, and their errors.

    Parameters
    ----------
    plan : ReleasePlan
        Planned for a table whose counts are not confidential.
    groups : mapping of str to array of int, optional
        Every row's group, by what the groups are called; by default those that were asked for.
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
    """Every row's group, by what the groups are called: those that were named, and all rows."""
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
    """How far several releases of one column lie from it."""
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
    """Mean and standard error over the runs, four digits each."""
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return {"mean": _short(np.mean(values)), "standard_error": _short(error)}


def _short(value: Any) -> float:
    return float(f"{float(value):.4g}")


def _count_cells(
    true: Integers, runs: Sequence[Integers], cells: Sequence[int]
) -> dict[str, list[Any]]:
    """How many rows have counts of each cell, before and after; `spread` is that of one run."""
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
    say: Say = lambda _: None,
) -> list[dict[str, Any]]:
    """What every other method would cost and give at the same epsilon.

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
    say : callable
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
        say(name)
        try:
            _require_narrow(name, opened.request)
            trial = dataclasses.replace(opened, request=check_options(alternative))
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
        raise TableError(f"Not tried: beyond an upper bound of {widest:,} it takes long.")


def _list_alternatives(
    request: Request, options: ReleaseOptions, already: str
) -> list[tuple[str, ReleaseOptions]]:
    """Other methods by name, with the options that make sense for each; epsilon stays."""
    public = dict.fromkeys((*(request.keep or ()), *options.method.public_columns))
    keep: Any = KEEP_ALL if request.keep_all else tuple(public) if options.count else None
    spread = options.unit.spread if options.unit.spread == "one_row" else "any"
    plain = replace(
        options,
        epsilon=[column.epsilon for column in request.columns],
        keep=keep,
        budget=Budget(),
        unit=replace(options.unit, spread=spread),
    )
    makers = {name: METHODS[name]() for name in PLAIN_METHODS if name not in ("auto", already)}
    chosen = options.method
    if chosen.name in makers:
        unsigned = {"signed": False} if chosen.name == "geometric" else {}
        makers[chosen.name] = replace(chosen, unbiased=False, **unsigned)
    anywhere = replace(plain, unit=replace(plain.unit, spread="any"))
    return [
        (name, replace(plain if name == "geometric" else anywhere, method=method))
        for name, method in makers.items()
    ]
