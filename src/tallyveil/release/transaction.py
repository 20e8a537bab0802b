"""One transaction for every caller: reserve room, debit, draw, write, in this order.

A full disk costs no budget, nothing is drawn before it is paid for, and a folder appears whole
or not at all. What is drawn is what was certified, hashed into the ledger and shipped.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from tallyveil.budget.entries import Debit, Entry, Stage, say_spent
from tallyveil.budget.ledger import Ledger
from tallyveil.certified.ladder import Ladder
from tallyveil.errors import ArgumentError, UsageError, forgetting_causes
from tallyveil.release.accuracy import Figures, Outcome
from tallyveil.release.column import PublishedColumn
from tallyveil.release.folder import Staging, hide_folder, require_new_folder, reserve_folder
from tallyveil.release.groups import state_groups
from tallyveil.release.methods.base import DISTRIBUTION, Plan, PlannedStage
from tallyveil.release.options import ReleaseOptions
from tallyveil.release.page import confidential_report
from tallyveil.release.plan import Opened, ReleasePlan, Rows, open_table, plan_release
from tallyveil.release.receipt import ColumnRecord, Program, Receipt
from tallyveil.release.records import (
    DrawnRecord,
    LedgerRecord,
    StageRecord,
    TableRecord,
)
from tallyveil.release.release import Release, write_releases
from tallyveil.sampling.entropy import Entropy
from tallyveil.tables.table import Table

Progress = Callable[[str], None]
"""Called with the name of every step as it begins."""


@forgetting_causes()
def publish_table(
    table: Any,
    options: ReleaseOptions,
    *,
    command: str,
    progress: Progress = lambda _: None,
    show_plan: Callable[[ReleasePlan], None] = lambda _: None,
    request: str = "",
    home: Rows | None = None,
) -> tuple[Release, ...]:
    """Publish a table as `options` ask: the one road to a release.

    Parameters
    ----------
    table : path, table, array or Opened
        See `tv.privatize`; a request with its table where that is opened already.
    options : ReleaseOptions
        The options of the release.
    command : str
        What called, for the ledger.
    progress : callable
        Called with the name of every step as it begins.
    show_plan : callable
        Called with the plan before anything is spent; for the publisher's eyes.
    request : str
        Names the wish, where the caller may repeat it: a ledger debits one name once.
    home : Rows, optional
        Where the rows are; in the table unless given.

    Returns
    -------
    tuple of Release
        One release, or one for each level of a ladder, least private first.
    """
    if options.ledger is not None and options.out is None:
        raise UsageError(
            "A ledger is debited before anything is drawn, so the release folder must be "
            "reserved first: give 'out' as well."
        )
    _check_places(options)
    account = open_account(options)
    entropy = Entropy.fresh(options.entropy)
    progress("reading and checking the table")
    opened = table if isinstance(table, Opened) else open_table(table, options)
    plan = plan_release(opened, options.entropy, home)
    show_plan(plan)
    progress("reserving room")
    reserved = _reserve(options, plan), _reserve_report(options)
    with say_spent() as spent, reserved[0] as place, reserved[1] as report:
        name = str(uuid.uuid4())
        progress("debiting the ledger")
        entry = None if account is None else _debit(account, plan, command, name, request)
        spent.append(entry)
        progress("drawing")
        published = plan.draw(entropy)
        progress("packing")
        head = {
            "release": name,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "private": entropy.private,
            "ledger": None if entry is None else LedgerRecord.of(entry),
        }
        releases = tuple(
            _build_release(plan, level, dict(zip(published, columns, strict=True)), head)
            for level, columns in enumerate(zip(*published.values(), strict=True))
        )
        if report is not None:  # before the folder appears: an error says that nothing did
            _write_report(report, _compare_with_truth(plan, releases[0]))
        if place is not None:
            releases = write_releases(place, releases, plan.home)
        else:  # nothing of the confidential file may stay within reach
            releases = tuple(replace(release, data=release.data.hold()) for release in releases)
    return releases


def require_possible(options: ReleaseOptions, plan: ReleasePlan) -> None:
    """Refuse what `publish_table` would refuse of targets and budget; nothing is spent.

    A folder need not be named yet: nothing is drawn that would have to be written.
    """
    _check_places(options)
    account = open_account(options)
    if account is not None:
        ledger, dataset = account
        ledger.require_covered(dataset, _make_debit(plan, "", "", ""))


def _check_places(options: ReleaseOptions) -> None:
    """Refuse a folder or a confidential report that cannot be written, or would be published."""
    if options.out is not None:
        require_new_folder(options.out)  # and again, without a gap, when it is reserved and made
    if options.output.confidential_report is None:
        return
    report = _find_place(options.output.confidential_report)
    if options.out is not None:
        target = _find_place(os.path.abspath(options.out))
        if {target, hide_folder(target)} & {report, *report.parents}:
            raise UsageError("The confidential report must lie outside the release folder.")
    if os.path.lexists(report) or not report.parent.is_dir():
        raise _bad_report(report)


def _find_place(path: str) -> Path:
    """Return the path of a new file or folder without links on the way to it."""
    return Path(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def open_account(options: ReleaseOptions) -> tuple[Ledger, str] | None:
    """Open the ledger to debit, with the dataset's name in it; None without a ledger."""
    book = options.ledger
    if book is None and options.dataset is None:
        return None
    if book is None or options.dataset is None:
        missing = "ledger" if book is None else "dataset"
        raise UsageError(f"A ledger and a dataset belong together: give the {missing} as well.")
    if not isinstance(book, (str, Path, Ledger)):
        raise ArgumentError("ledger", "be a Ledger, a path or an address", book)
    ledger = book if isinstance(book, Ledger) else Ledger(book)
    ledger.account(options.dataset)  # an unknown dataset is refused before the table is read
    return ledger, options.dataset


def _reserve(options: ReleaseOptions, plan: ReleasePlan) -> AbstractContextManager[Staging | None]:
    if options.out is None:
        return nullcontext()
    return reserve_folder(options.out, plan.count_bytes())


def _debit(
    account: tuple[Ledger, str], plan: ReleasePlan, command: str, release: str, request: str
) -> Entry:
    """Spend the whole cost in one entry, which names everything certified."""
    ledger, dataset = account
    return ledger.debit(dataset, _make_debit(plan, command, release, request))


def _make_debit(plan: ReleasePlan, command: str, release: str, request: str) -> Debit:
    return Debit(
        tuple(column.name for column in plan.request.columns),
        tuple(Stage(name, epsilon) for name, epsilon in plan.charges),
        plan.delta,
        mechanism=tuple(stage.sha256 for stage in plan.stages),
        certificate=tuple(str(stage.certified.certificate["digest"]) for stage in plan.stages),
        command=command,
        release=release,
        request=request,
    )


def _build_release(
    plan: ReleasePlan, level: int, columns: Mapping[str, PublishedColumn], head: Mapping[str, Any]
) -> Release:
    """Build the release of one level (the only one, 0, unless there is a ladder)."""
    request = plan.request
    named = [published.name_columns(name) for name, published in columns.items()]
    data = plan.build_table({name: c for part in named for name, c in part.items()})
    files, at_most = ProofFiles(), dict(pairwise(request.nested))
    records, figures = [], []
    for column in plan.columns:
        name, stages = column.task.name, _list_stages(column, level)
        described = _describe(column, stages, columns[name], files, at_most.get(name, ""))
        records.append(described[0])
        figures.append(described[1])
    receipt = Receipt(
        **head,
        format="tallyveil-receipt",
        version=1,
        program=Program.this(),
        unit=request.unit,
        disjoint=request.disjoint,
        table=_describe_table(data, plan, records),
        columns=tuple(records),
        level=level + 1 if request.method.levels else 0,
        sums=plan.sums,
        strata=plan.strata,
        zeros=plan.zeros,
        about=request.options.about,
    ).state()
    published = [columns[column.task.name] for column in plan.columns]
    sums = plan.method.write_files(plan.columns, published, data)
    receipt = state_groups(data, receipt, [part.adder for part in figures], list(sums.values()))
    return Release(data, receipt, dict(columns), tuple(figures), files.content, sums)


def _list_stages(plan: Plan, level: int) -> tuple[PlannedStage, ...]:
    """List the stages behind one level: of a ladder, only what its readers may see."""
    ladder = plan.counts_stage.certified
    if not isinstance(ladder, Ladder):
        return plan.stages
    part = ladder.level(level + 1)
    cost = part.exact_epsilon * plan.task.unit.multiplier
    return (PlannedStage(plan.task.name, plan.counts_stage.kind, part, cost),)


def _describe(
    plan: Plan,
    stages: tuple[PlannedStage, ...],
    published: PublishedColumn,
    files: ProofFiles,
    at_most: str,
) -> tuple[ColumnRecord, Figures]:
    task, method, certified = plan.task, plan.method, stages[-1].certified
    cost = certified.exact_epsilon if isinstance(certified, Ladder) else plan.epsilon
    outcome = Outcome(
        certified,
        plan.find(DISTRIBUTION),
        published.histogram,
        published.matching,
        task.upper,
        cost,
        moved=bool(at_most) or method.moves_counts,
        signed=published.signed,
    )
    figures = method.describe(outcome)
    has_draws = published.unbiased is not None
    record = ColumnRecord(
        name=task.name,
        upper=task.upper,
        method=method.for_receipt(),
        why=plan.why,
        epsilon=cost,
        stages=tuple(files.add(stage) for stage in stages),
        solver=plan.solver,
        histogram=published.histogram,
        matching=published.matching,
        unbiased=DrawnRecord.of(task.name, certified, published.signed) if has_draws else None,
        at_most=at_most,
        missed=published.largest_missed,
        **figures.state(),
    )
    return record, figures


def _describe_table(data: Table, plan: ReleasePlan, records: Sequence[ColumnRecord]) -> TableRecord:
    request = plan.request
    columns = (*data.index_names, *data.names)
    counted = {name for record in records for name in record.columns}
    return TableRecord(
        rows=data.rows,
        kind=data.kind,
        file=f"data.{data.format}",
        columns=columns,
        published_unchanged=tuple(name for name in columns if name not in counted),
        row_order=plan.layout.row_order,
        counted_by=request.by if request.microdata else (),
        where=tuple(str(condition) for condition in request.where),
        other=request.options.microdata.other or "",
        missing=request.options.source.na_values,
        missing_rows=plan.missing,
        bins={name: bins.write() for name, bins in request.bins.items()},
    )


class ProofFiles:
    """Mechanism and certificate files by name; equal ones share one file."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self._suffixes: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    def add(self, stage: PlannedStage) -> StageRecord:
        """Keep the files of a stage and describe them."""
        kind = "" if stage.kind == "counts" else "-" + re.sub("[^A-Za-z0-9]+", "-", stage.kind)
        if stage.sha256 not in self._suffixes:
            number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._suffixes[stage.sha256] = kind + (f"-{number}" if number > 1 else "")
        suffix = self._suffixes[stage.sha256]
        file, certificate_file = f"mechanism{suffix}.json", f"certificate{suffix}.json"
        self.content[file] = stage.mechanism_bytes
        self.content[certificate_file] = stage.certificate_bytes
        certificate = stage.certified.certificate
        return StageRecord(
            name=stage.name,
            epsilon=stage.epsilon,
            file=file,
            sha256=stage.sha256,
            mechanism=stage.certified.name,
            certified_epsilon=stage.certified.exact_epsilon,
            certificate_file=certificate_file,
            digest=certificate["digest"],
            achieved_epsilon=certificate["achieved_epsilon"],
            delta=stage.certified.exact_delta,
        )


@contextmanager
def _reserve_report(options: ReleaseOptions) -> Iterator[IO[str] | None]:
    """Open the confidential report for its owner only; remove it if the release fails."""
    if options.output.confidential_report is None:
        yield None
        return
    path = Path(options.output.confidential_report)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        raise _bad_report(path) from None
    with open(handle, "w", encoding="utf-8", newline="\n") as file:
        try:
            yield file
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _write_report(file: IO[str], text: str) -> None:
    """Write the whole report now; closing its file then writes nothing."""
    try:
        file.write(text)
        file.flush()
    except OSError as problem:
        raise UsageError(
            f"The confidential report cannot be written: {problem.strerror}. Nothing was published."
        ) from None


def _bad_report(path: Path) -> UsageError:
    return UsageError(
        "The confidential report must be a new file in a folder that exists and can be written. "
        f"Got {str(path)!r}."
    )


def _compare_with_truth(plan: ReleasePlan, release: Release) -> str:
    released = {name: column.counts for name, column in release.published.items()}
    truth = plan.read_truth()
    intervals = {
        column.name: figures.accuracy.interval
        for column, figures in zip(release.receipt.columns, release.figures, strict=True)
    }
    facts = release.receipt, truth, released, intervals
    return confidential_report(*facts, left_out=plan.reading.left_out, bounds=plan.bounds)
