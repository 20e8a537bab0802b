"""Rows on a Spark cluster, behind the calls of `tallyveil.release.plan.Rows`.

A table of counts is read once, into a private folder next to the release that all executors share.
They draw every row there; what follows needs draws and public labels alone, and happens here.
Records are counted there, and the counts of the public categories released here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tallyveil.arrays import freeze
from tallyveil.errors import TableError, UsageError
from tallyveil.fingerprint import fingerprint
from tallyveil.release.column import PublishedColumn
from tallyveil.release.methods.base import Method, RowDraws
from tallyveil.release.methods.preserve import Preserve, draw_distribution
from tallyveil.release.options import ReleaseOptions
from tallyveil.release.plan import (
    Layout,
    Opened,
    Reading,
    ReleasePlan,
    Rows,
    choose_columns,
    read_columns,
)
from tallyveil.release.request import Request, check_options
from tallyveil.sampling.entropy import Entropy
from tallyveil.spark import jobs
from tallyveil.spark.files import Piece, StagedRows, Vault
from tallyveil.spark.tasks import (
    Chosen,
    Drawn,
    Staged,
    choose_rows,
    count_groups,
    draw_runs,
    place_rows,
    stage_rows,
)
from tallyveil.tables.conditions import RowChooser
from tallyveil.tables.counts import ColumnCounts, clip_counts
from tallyveil.tables.microdata import PersonBound
from tallyveil.tables.read import read_table

ADVICE = (
    "needs all rows in one place. Count the rows on the cluster, bring the table of counts here "
    "(frame.toArrow()) and release it with tv.privatize."
)
KEY = 32
LARGEST_BLOCK = 1 << 48

Result = TypeVar("Result", Staged, Chosen)


class ClusterRows(Rows):
    """The rows of a Spark frame.

    Parameters
    ----------
    frame : DataFrame
        It is read once, or counted in one job.
    options : ReleaseOptions
        The options of the release.
    """

    def __init__(self, frame: Any, options: ReleaseOptions) -> None:
        jobs.require_encryption(frame)
        self.frame, self.options = frame, options
        self.vault: Vault | None = None
        self.parts: list[Staged] = []

    def open(self) -> Opened:
        """Check the request against names and types of the columns."""
        request = check_options(self.options)
        table = read_table(jobs.read_empty(self.frame), self.options.source)
        if not request.microdata:
            _require_by_row(request, self.options)
        rows = StagedRows(table.rows_in.schema)
        return Opened(
            request, replace(table, rows_in=rows, options=request.options.source, format="parquet")
        )

    def close(self) -> None:
        """Remove what was staged."""
        if self.vault is not None:
            self.vault.remove()

    def read(self, opened: Opened, entropy: Entropy) -> Reading:
        """Stage the rows of a table of counts, or count records in the public categories."""
        if opened.request.microdata:
            return self._count(opened, entropy)
        parents = Path(str(self.options.out)).absolute().parents
        folder = next(path for path in parents if path.is_dir())
        self.vault = Vault.make(folder, self)
        return self._stage(opened, self.vault)

    def _stage(self, opened: Opened, vault: Vault) -> Reading:
        request, source = opened.request, opened.source
        keep = choose_columns(source, request)
        source.require_readable(keep)
        uppers = {column.name: column.upper for column in request.columns}
        labels = tuple(name for name in keep if name not in uppers)
        task = partial(
            stage_rows, vault=vault, uppers=uppers, labels=labels, options=request.options.source
        )
        files = jobs.list_files(self.frame)
        names = [*uppers, *labels]
        staged = _require_program(jobs.run(self.frame, names, task, mark_files=bool(files)))
        self.parts = sorted((part for part in staged if part.rows), key=partial(_find_place, files))
        rows = sum(part.rows for part in self.parts)
        if not rows:
            raise TableError(
                "The table has no rows, and no list of categories says which it could have."
            )
        vault.require_seen([part.labels for part in self.parts])
        assert isinstance(source.rows_in, StagedRows)
        source.rows_in.fill(vault, [part.labels for part in self.parts], rows)
        counts = {name: self._stand_in(place, rows) for place, name in enumerate(uppers)}
        return Reading(*read_columns(source, request, lambda _, name, __: counts[name]))

    def _stand_in(self, place: int, rows: int) -> ColumnCounts:
        """Return as many zeros as there are counts, which stay on the cluster."""
        values, parts = np.zeros(rows, np.uint8), [part for part in self.parts if part.rows > 1]
        rises = all(part.rises[place] for part in parts)
        falls = all(part.falls[place] for part in parts)
        is_constant = rises and falls and len({part.first[place] for part in parts}) < 2
        values[-1] = (rises or falls) and not is_constant
        return ColumnCounts(freeze(values), sum(part.above[place] for part in self.parts))

    def _count(self, opened: Opened, entropy: Entropy) -> Reading:
        request, source = opened.request, opened.source
        rule, unit, (column,) = request.counting, request.unit, request.columns
        rule.count(source)  # refuses columns that are not there
        names = list(dict.fromkeys((*rule.by, *(condition.column for condition in rule.where))))
        left_out = None
        person = request.options.unit.id_column
        if person is None:
            counted = jobs.group_rows(self.frame, names, partial(count_groups, rule=rule))
        else:
            bound = PersonBound(person, unit.contributions, unit.separate, np.arange)
            rule.count_bounded(source, bound)
            key = entropy.octets(KEY).tobytes()
            place = partial(place_rows, rule=rule, person=bound.column)
            choose = partial(choose_rows, bound=bound, key=key, size=len(rule.categories))
            counted = jobs.run_by_person(self.frame, [*names, bound.column], place, choose)
        chooser = RowChooser(rule.where)
        for part in _require_program(counted):
            for kinds in part.kinds:
                chooser.kinds = [old | new for old, new in zip(chooser.kinds, kinds, strict=True)]
        chooser.require_types()
        counts = np.sum([part.counts for part in counted], axis=0)
        every = np.sum([part.every for part in counted], axis=0)
        if person is not None:
            left_out = int((every - counts).sum()), int(every.sum())
        cut = {column.name: clip_counts(counts, column.upper)}
        return Reading(cut, Layout.of_categories(request), every, left_out)

    def draw(self, plan: ReleasePlan, entropy: Entropy) -> dict[str, tuple[PublishedColumn, ...]]:
        """Draw every row on the cluster; from here on only draws are known."""
        vault = self.vault
        if vault is None:  # records were counted
            return super().draw(plan, entropy)
        tasks: dict[int, dict[int, tuple[Piece, ...]]] = {}  # as many as read the rows
        for run, part in enumerate(self.parts):
            tasks.setdefault(part.number, {})[run] = part.counts
        key, listed = entropy.octets(KEY).tobytes(), list(tasks.values())
        task = partial(draw_runs, vault=vault, key=key, plans=plan.columns, tasks=listed)
        results: list[tuple[int, list[Drawn]]] = jobs.run_numbered(self.frame, len(tasks), task)
        results.sort(key=itemgetter(0))
        if [run for run, _ in results] != list(range(len(self.parts))):
            raise TableError("Not every part of the table was drawn once. Nothing was published.")
        published = {}
        for place, column in enumerate(plan.columns):
            drawn = [columns[place] for _, columns in results]
            rows = RowDraws(
                _join(vault, [part.values for part in drawn]),
                _join(vault, [part.noisy for part in drawn if part.noisy is not None]),
            )
            draws: Any = rows
            if isinstance(column.method, Preserve):
                tallies = [part.tally for part in drawn if part.tally is not None]
                tally = np.sum(tallies, axis=0) if tallies else None
                draws = draw_distribution(column, rows, tally, entropy)
            published[column.task.name] = column.publish(draws, entropy)
        return published


def _join(vault: Vault, pieces: Sequence[Piece]) -> Any:
    """Read the draws of all parts, in the order of publication."""
    return np.concatenate(list(map(vault.load, pieces))) if pieces else None


def _find_place(files: Mapping[int, int], part: Staged) -> tuple[int, int]:
    """Order rows by files and blocks: Spark's own order follows from the sizes of files."""
    for mark, file in files.items():
        if 0 <= (block := part.place ^ mark) < LARGEST_BLOCK:
            return file, block
    return len(files), 0


def _require_program(results: Sequence[Result]) -> Sequence[Result]:
    """Refuse executors that run another program than this one."""
    if {result.program for result in results} - {fingerprint()}:
        raise UsageError(
            "The executors run another version of Tallyveil: install this one there as well."
        )
    return results


def _require_by_row(request: Request, options: ReleaseOptions) -> None:
    """Refuse what cannot be done by tasks that see some of the rows."""
    if options.out is None:
        raise UsageError("Rows are staged next to the release folder: give 'out'.")
    method = request.method
    together = {
        "counts.nested": request.nested,
        "counts.structural_zeros": request.zeros,
        "categories": request.categories,
        "source.na_values": request.options.source.na_values,
        "output.confidential_report": options.output.confidential_report,
    }
    for name, value in together.items():
        if value:
            raise UsageError(f"'{name}' {ADVICE}")
    if type(method).draw not in (Method.draw, Preserve.draw):
        raise UsageError(f"The method {method.name} {ADVICE}")
