"""Numbers a reader can add: totals of the true counts with intervals, for any public grouping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tallyveil.arrays import Integers, Mask
from tallyveil.certified.base import Certified
from tallyveil.documents.receipt import Receipt
from tallyveil.documents.records import ColumnRecord
from tallyveil.errors import ArgumentError, PackageError, UsageError
from tallyveil.matrix import check_confidence
from tallyveil.plans.accuracy import make_open_adder
from tallyveil.plans.adding import Adder, MatchedAdder, make_adder
from tallyveil.plans.group_totals import GroupTotals, list_trees
from tallyveil.plans.sum_files import SumsRecord, read_estimates
from tallyveil.plans.zeros import find_grouping
from tallyveil.prior import Prior
from tallyveil.publish.release import Release
from tallyveil.publish.reopen import load_stage, plain_name, read_receipt
from tallyveil.publish.tallied import tally_groups
from tallyveil.reading.unbiased import Estimate
from tallyveil.reading.unbiased import estimate_total as estimate_drawn
from tallyveil.request.ranges import WIDE
from tallyveil.tables.conditions import parse_conditions
from tallyveil.tables.labels import number_together
from tallyveil.tables.published import read_published
from tallyveil.tables.table import Table, read_signed
from tallyveil.untrusted import read_file

__all__ = [
    "choose_adder",
    "estimate_rows",
    "estimate_total",
    "make_own_adder",
    "prepare_adding",
    "require_described",
    "split_rows",
]

MOST_AT_ONCE = 65_536
"""Totals of longer tables are added up from tallies, batch by batch."""


def estimate_total(
    source: Any,
    released: ArrayLike | None = None,
    confidence: float = 0.95,
    prior: Prior = None,
    *,
    column: str | None = None,
    by: str | Sequence[str] | None = None,
    where: str | Sequence[str] | None = None,
) -> Any:
    """Estimate the sum of true counts, of a whole release or of every group of its rows.

    Published counts must not simply be added: noise that is cut off at 0, or counts that were
    handed out by rank, make such sums wrong in ways that differ from group to group. What is
    added here depends on how the column was released:

    - noise on every row, and levels: unbiased estimates, with exact quantiles of sums of noise;
    - hierarchies and margins: the estimates in their files, for groups made of measured ones; for
      all groups where the release has unbiased columns; all margins together for the whole table;
    - `preserve`: what the receipt tells of the draws behind the counts; unbiased for the whole
      table, for groups with a bias that is bounded and is part of the interval;
    - any other table of probabilities: its unbiased estimator, with bounded tails for few rows.

    The interval contains the true sum in at least `confidence` of all releases. Counts above
    the upper bound enter as that bound.

    Parameters
    ----------
    source : Release, path of a release folder, Mechanism, Design or certified mechanism
        A release, or what released the values.
    released : array of float, shape (groups,)
        With a mechanism: the released values, at least one. A release holds its own.
    confidence : float
        The level of the interval, strictly between 0 and 1.
    prior : None, "uniform", ("binomial", p) or array of float, shape (n,)
        With a mechanism only; see `unbiased`.
    column : str, optional
        The count column, if the release has several.
    by : str or sequence of str, optional
        Public columns whose values make the groups.
    where : str or sequence of str, optional
        Public conditions on rows, such as ``"state == KS"``.

    Returns
    -------
    Estimate or dict
        Value, standard error and interval; with `by`, one for each group, by its label as text (a
        tuple of labels for several columns), in the order of the table.

    Examples
    --------
    >>> import tallyveil as tv
    >>> tv.estimate_total(tv.geometric(tv.Query.count(9), epsilon=1.0), [3, 4, 5]).value
    12.0
    >>> rel = tv.privatize([0, 3, 0, 7, 1] * 100, upper=9, epsilon=1)
    >>> tv.estimate_total(rel).groups
    500
    """
    if not isinstance(source, (Release, str, Path)):
        if any(option is not None for option in (column, by, where)):
            raise UsageError("'column', 'by' and 'where' are for releases, which have columns.")
        return estimate_drawn(source, [] if released is None else released, confidence, prior)
    if released is not None or prior is not None:
        raise UsageError("A release holds its own values: leave out 'released' and 'prior'.")
    check_confidence(confidence)
    table, receipt, adder, record = _open(source, column)
    names = (by,) if isinstance(by, str) else tuple(by or ())
    texts = (where,) if isinstance(where, str) else tuple(where or ())
    if names or texts:
        _require_parts(record)
    if table.rows > MOST_AT_ONCE and receipt.zeros is None and not record.kind.adds_up:
        return _add_batches(table, receipt, (record, adder), (names, texts), confidence)
    rows = np.flatnonzero(_choose_rows(table, receipt, texts))
    if len(rows) == 0:
        raise ArgumentError("where", "leave at least one row")
    sums = _read_sums(source, receipt)
    known = table, receipt, record, adder
    add = prepare_adding(*known, sums=sums, confidence=confidence, whole=not names)
    if not names:
        return add(rows)
    _require_public(names, receipt, "by")
    return {key: add(part) for key, part in _group_rows(table, names, rows)}


def _add_batches(
    table: Table,
    receipt: Receipt,
    column: tuple[ColumnRecord, Adder],
    choice: tuple[Sequence[str], Sequence[str]],
    confidence: float,
) -> Any:
    """The total of a long table, or those of its groups, from tallies; `choice` is (by, where)."""
    (record, adder), by, conditions = column, choice[0], parse_conditions(choice[1])
    _require_public([condition.column for condition in conditions], receipt, "where")
    _require_public(by, receipt, "by")
    read = partial(_read_published, record=record)
    name = record.name if record.unbiased is None else record.drawn_column
    found = {
        key if len(by) > 1 else "".join(key): adder.add(group.counts, confidence, group.times)
        for key, group in tally_groups(table, by, conditions, [name], read).items()
    }
    if not found:
        raise ArgumentError("where", "leave at least one row")
    return found if by else found[""]


def prepare_adding(
    table: Table,
    receipt: Receipt,
    record: ColumnRecord,
    adder: Adder,
    *,
    sums: Sequence[bytes],
    confidence: float,
    whole: bool = False,
) -> Callable[[Integers], Estimate]:
    """How rows of a column are added: from their numbers to the estimate of their total.

    `sums` are the files of a release that adds up, in the order of its levels. With `whole`, all
    margins together tell the total of all rows; receipts state that of a group as one has it.
    """
    free = np.ones(table.rows, bool) if receipt.zeros is None else receipt.zeros.find_free(table)
    if record.kind.adds_up:
        return partial(_add_sums, _open_sums(sums, table, receipt, record), free, confidence, whole)
    return partial(_add, adder, _read_published(table, record), free, confidence)


def _read_sums(source: Release | str | Path, receipt: Receipt) -> list[bytes]:
    """The files of a release that adds up, none of any other."""
    files = () if receipt.sums is None else receipt.sums.files
    if isinstance(source, Release):
        return [source.sums[name] for name in files]
    return [read_file(Path(source) / name) for name in files]


def _group_rows(
    table: Table, names: Sequence[str], rows: Integers
) -> Iterator[tuple[Any, Integers]]:
    """The rows of every group, with its label or labels, in the order in which they occur first."""
    columns = [table.codes(name) for name in names]
    for part in split_rows(number_together([column.codes[rows] for column in columns])):
        first = rows[part[0]]
        key = tuple(column.labels[column.codes[first]] for column in columns)
        yield (key[0] if len(names) == 1 else key), rows[part]


def split_rows(codes: Integers) -> list[Integers]:
    """The rows of every code, in the order in which codes occur first.

    >>> [part.tolist() for part in split_rows(np.array([1, 0, 1]))]
    [[0, 2], [1]]
    """
    starts, sizes = np.unique(codes, return_index=True, return_counts=True)[1:]
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])
    return [parts[at] for at in np.argsort(starts).tolist()]


def estimate_rows(
    folder: str | Path, confidence: float, *, column: str | None = None
) -> tuple[str, list[Estimate], Integers]:
    """What every published count of a release tells of the true one, however wide its range.

    Returns the column's name, the estimates there are, and which of them each row has: at least
    0, with an interval that contains the true count in at least `confidence` of all releases.
    """
    check_confidence(confidence)
    table, receipt, adder, record = _open(folder, column)
    _require_parts(record)
    if record.kind.adds_up:
        raise UsageError(
            f"The published values of {record.name!r} were fitted to measured sums. Beyond an "
            "upper bound of 1,000, intervals of their single rows are not worked out; those of "
            "groups are: name them with --by."
        )
    published = _read_published(table, record)
    free = None if receipt.zeros is None else receipt.zeros.find_free(table)
    counts, places = np.unique(published if free is None else published[free], return_inverse=True)
    found = [adder.add(np.array([count]), confidence) for count in counts.tolist()]
    found = [replace(one, value=max(one.value, 0.0), low=max(one.low, 0.0)) for one in found]
    if free is None:
        return record.name, found, places
    all_places = np.full(len(published), len(found))
    all_places[free] = places
    return record.name, [*found, Estimate(0, 0, 0, 0, 1)], all_places


def _require_parts(record: ColumnRecord) -> None:
    """Refuse columns whose parts cannot be told: only their whole total can."""
    if record.hides_parts:
        raise UsageError(
            f"Published values of {record.name!r} cannot be added group by group: "
            f"{record.hides_parts}. Only the total of all rows can be estimated. For sums of "
            "groups release it with 'unbiased'."
        )


def _add(
    adder: Adder, published: Integers, free: Mask, confidence: float, rows: Integers
) -> Estimate:
    """The total of some rows; structural zeros are 0 for certain."""
    drawn = rows[free[rows]]
    found = adder.add(published[drawn], confidence) if len(drawn) else Estimate(0, 0, 0, 0, 0)
    return replace(found, groups=len(rows))


def _open_sums(
    contents: Sequence[bytes], table: Table, receipt: Receipt, record: ColumnRecord
) -> GroupTotals:
    """What the files of a release that adds up say, and its rows' draws where it has them."""
    sums = receipt.sums
    assert sums is not None  # the receipt was read, or made, with it
    grouping = find_grouping(sums.request, table, receipt.zeros)
    if SumsRecord.of_table(sums.request, grouping, table) != sums:
        raise PackageError("The hierarchy of the data is not the stated one.")
    stated = []
    for level, content in enumerate(contents):
        values = read_estimates(content, record.name, sums.sizes[level])
        stated.append(grouping.take(level, values))
    draws = None
    if record.unbiased is not None:
        draws = read_signed(table, record.drawn_column)
        draws = draws if receipt.zeros is None else draws[receipt.zeros.find_free(table)]
    trees = list_trees(sums.request, grouping, record.epsilon, record.upper)
    return GroupTotals(trees, stated, record.upper, draws)


def _add_sums(
    totals: GroupTotals, free: Mask, confidence: float, whole: bool, rows: Integers
) -> Estimate:
    """The total of some rows of a release that adds up."""
    inside = np.zeros(len(free), dtype=bool)
    inside[rows] = True
    if whole and inside.all() and free.any():
        return replace(totals.add_all(confidence), groups=len(rows))
    if not (inside & free).any():
        return Estimate(0, 0, 0, 0, len(rows))
    return replace(totals.add(inside[free], confidence), groups=len(rows))


def _open(
    source: Release | str | Path, column: str | None
) -> tuple[Table, Receipt, Adder, ColumnRecord]:
    """The table, the receipt, and how the column is added."""
    if isinstance(source, Release):
        receipt = source.receipt
        record = _find_column(receipt, column)
        figures = source.figures[receipt.columns.index(record)]
        return source.data, receipt, choose_adder(record, figures.adder), record
    receipt = read_receipt(source)
    record = _find_column(receipt, column)
    facts, folder = receipt.table, Path(source)
    table = read_published(folder / plain_name(facts.file))
    require_described(table, receipt)
    adder = make_own_adder(record, load_stage(folder, record.counts_stage))
    return table, receipt, choose_adder(record, adder), record


def make_own_adder(record: ColumnRecord, certified: Certified) -> Adder:
    """The adder of a column, from what its counts were drawn from."""
    if record.upper > WIDE:
        return make_open_adder(certified, record.histogram, record.matching, record.upper)
    return make_adder(certified, record.upper, record.matching)


def require_described(table: Table, receipt: Receipt) -> None:
    """Raise a `PackageError` unless a table has the rows and columns that a receipt states."""
    if table.rows != receipt.table.rows or tuple(table.names) != receipt.table.columns:
        raise PackageError("The data are not the table that the receipt describes.")


def choose_adder(record: ColumnRecord, adder: Adder) -> Adder:
    """Where the draws themselves are published, they are added."""
    drawn = record.unbiased is not None and isinstance(adder, MatchedAdder)
    return adder.plain if drawn and isinstance(adder, MatchedAdder) else adder


def _read_published(table: Table, record: ColumnRecord) -> Integers:
    if record.unbiased is None:
        return table.counts(record.name)
    return read_signed(table, record.drawn_column).clip(0, record.upper)


def _find_column(receipt: Receipt, name: str | None) -> ColumnRecord:
    found = [c for c in receipt.columns if c.name == name or name is None]
    if len(found) == 1:
        return found[0]
    names = "The columns of counts are: " + ", ".join(c.name for c in receipt.columns) + "."
    raise ArgumentError("column", "name one column of counts of the release", name, names)


def _choose_rows(table: Table, receipt: Receipt, texts: Sequence[str]) -> Mask:
    chosen = np.ones(table.rows, dtype=bool)
    conditions = parse_conditions(texts)
    _require_public([condition.column for condition in conditions], receipt, "where")
    for condition in conditions:
        chosen &= condition.holds(table)
    return chosen


def _require_public(names: Sequence[str], receipt: Receipt, argument: str) -> None:
    """Refuse groups that the noise itself has chosen: nothing is unbiased in them."""
    public = receipt.table.published_unchanged
    for name in names:
        if name not in public:
            rule = "name columns that were published unchanged"
            known = f"They are: {', '.join(public) or 'none'}."
            raise ArgumentError(argument, rule, name, known)
