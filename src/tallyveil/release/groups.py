"""Numbers a reader can add: totals of the true counts with intervals, for any public grouping.

The receipt and the page state totals of groups that a reader will ask for first. Which groups these
are follows from public facts alone: the columns published unchanged, their labels, how many rows
there are and what is published. A long table states none, because they would take a pass over it;
anybody can ask for them. Columns whose labels some writer changes, such as measurements, times,
truth values and text with blanks at its ends, make none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs
from numpy.typing import ArrayLike

from tallyveil.arrays import Integers
from tallyveil.certified.base import Certified
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.matrix import check_confidence
from tallyveil.prior import Prior
from tallyveil.reading.unbiased import Estimate
from tallyveil.reading.unbiased import estimate_total as estimate_drawn
from tallyveil.release.accuracy import CONFIDENCE, make_own_adder
from tallyveil.release.methods.sums import Sums
from tallyveil.release.receipt import ColumnRecord, Receipt
from tallyveil.release.records import MOST_GROUPS, GroupRecord
from tallyveil.release.release import (
    Release,
    load_stage,
    plain_name,
    read_receipt,
    require_described,
)
from tallyveil.release.totals import Adder, MatchedAdder, MatrixAdder, Readable, read_values
from tallyveil.tables.conditions import Condition, RowChooser, parse_conditions
from tallyveil.tables.counts import RowError
from tallyveil.tables.labels import is_number, normal_label, number_together
from tallyveil.tables.published import read_published
from tallyveil.tables.table import Table
from tallyveil.untrusted import read_file

MOST_AT_ONCE = 65_536
"""Totals of longer tables are added up from tallies, batch by batch."""
MOST_ROWS = 100_000
"""Longer tables state no totals of groups: `interpret --by` adds them where they are wanted."""

MOST_COLUMNS = 40
"""Most public columns that are looked at."""

MOST_LINES = 300
"""Most totals in a receipt, of all columns and all kinds of groups together."""

FEW_PAIRS = 1 << 20
"""Most pairs of a group and a count that are tallied in one array; waiting ones are joined."""

LONGEST_LABEL = 80
"""Longer texts are no labels."""

WIDEST_MATCHED = 20_000
"""Up to this count the bias of counts that were matched to ranks is bounded in no time."""

WIDEST_MATRIX = 1001

UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no page can show."""

MISSING = ("", "nan", "nat", "none", "null", "<na>")
"""Words that libraries write for no value."""

WRITTEN_ALIKE = ("string", "integer")
"""Types of columns that every writer keeps apart and together."""

SMALL_CODE = re.compile(r"(-?[1-9][0-9]{0,6}|0)(\.0+)?")
"""Whole numbers that doubles of any length hold exactly."""

CODE = re.compile("-?[0-9]{1,15}")
CLOCK = re.compile("[0-9]:[0-9]{2}:[0-9]{2}")


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
    matched to ranks, make such sums wrong in ways that differ from group to group. What is
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
    released_column = _open(source, column)
    table, receipt, record = released_column.table, released_column.receipt, released_column.record
    names = (by,) if isinstance(by, str) else tuple(by or ())
    conditions = parse_conditions((where,) if isinstance(where, str) else tuple(where or ()))
    if names or conditions:
        _require_parts(record)
    _require_public([condition.column for condition in conditions], receipt, "where")
    _require_public(names, receipt, "by")
    if table.rows > MOST_AT_ONCE and receipt.zeros is None and not record.method.adds_up:
        totals = _add_batches(released_column, names, conditions, confidence)
    else:
        chosen = np.ones(table.rows, dtype=bool)
        for condition in conditions:
            chosen &= condition.holds(table)
        add = record.method.prepare_adding(released_column, confidence, all_rows=not names)
        groups = _group_rows(table, names, np.flatnonzero(chosen))
        totals = {key: add(rows) for key, rows in groups}
    if not totals:
        raise ArgumentError("where", "leave at least one row")
    return totals if names else totals[""]


def _add_batches(
    column: Readable, by: Sequence[str], where: Sequence[Condition], confidence: float
) -> dict[Any, Estimate]:
    """Estimate the total of a long table, or those of its groups, from tallies."""
    record, read = column.record, partial(read_values, record=column.record)
    name = record.name if record.unbiased is None else record.drawn_column
    return {
        key if len(by) > 1 else "".join(key): column.adder.add(part.counts, confidence, part.times)
        for key, part in tally_groups(column.table, by, where, [name], read).items()
    }


def _group_rows(
    table: Table, names: Sequence[str], rows: Integers
) -> Iterator[tuple[Any, Integers]]:
    """Yield the rows of every group and its label or labels, in order of first occurrence."""
    columns = [table.codes(name) for name in names]
    codes = [column.codes[rows] for column in columns]
    for part in split_rows(_number(codes, len(rows))):
        first = rows[part[0]]
        key = tuple(column.labels[column.codes[first]] for column in columns)
        yield key if len(names) > 1 else "".join(key), rows[part]


def split_rows(codes: Integers) -> list[Integers]:
    """List the rows of every code, in order of first occurrence.

    >>> [part.tolist() for part in split_rows(np.array([1, 0, 1]))]
    [[0, 2], [1]]
    """
    starts, sizes = np.unique(codes, return_index=True, return_counts=True)[1:]
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(sizes)[:-1])
    return [parts[group] for group in np.argsort(starts).tolist()]


def estimate_rows(
    folder: str | Path, confidence: float, *, column: str | None = None
) -> tuple[str, list[Estimate], Integers]:
    """Estimate the true count behind every published one, however wide the range.

    Returns the column's name, the estimates there are, and which of them each row has: at least
    0, with an interval that contains the true count in at least `confidence` of all releases.
    """
    check_confidence(confidence)
    released = _open(folder, column)
    record, free = released.record, released.free
    _require_parts(record)
    if record.method.adds_up:
        raise UsageError(
            f"The published values of {record.name!r} were fitted to measured sums. Beyond an "
            "upper bound of 1,000, intervals of their single rows are not worked out; those of "
            "groups are: name them with 'by'."
        )
    counts, places = np.unique(released.values[free], return_inverse=True)
    each = [released.adder.add(np.array([count]), confidence) for count in counts.tolist()]
    each = [
        replace(estimate, value=max(estimate.value, 0.0), low=max(estimate.low, 0.0))
        for estimate in each
    ]
    if free.all():
        return record.name, each, places
    all_places = np.full(len(free), len(each))
    all_places[free] = places
    return record.name, [*each, Estimate(0, 0, 0, 0, 1)], all_places


def _require_parts(record: ColumnRecord) -> None:
    """Refuse columns whose parts cannot be estimated: only their whole total can."""
    if record.hides_parts:
        raise UsageError(
            f"Published values of {record.name!r} cannot be added group by group: "
            f"{record.hides_parts}. Only the total of all rows can be estimated. For sums of "
            "groups release it with 'unbiased'."
        )


def _open(source: Release | str | Path, column: str | None) -> Readable:
    """Open a column of a release, in memory or in its folder."""
    if isinstance(source, Release):
        receipt = source.receipt
        record = _find_column(receipt, column)
        adder = source.figures[receipt.columns.index(record)].adder
        return Readable(source.data, receipt, record, adder, list(source.sums.values()))
    receipt, folder = read_receipt(source), Path(source)
    record, facts = _find_column(receipt, column), receipt.table
    table = read_published(folder / plain_name(facts.file))
    require_described(table, receipt)
    adder = find_adder(record, load_stage(folder, record.counts_stage))
    return Readable(table, receipt, record, adder, read_sums(folder, receipt))


def read_sums(folder: Path, receipt: Receipt) -> list[bytes]:
    """Read the files of a release that adds up, none of any other."""
    files = () if receipt.sums is None else receipt.sums.files
    return [read_file(folder / name) for name in files]


def find_adder(record: ColumnRecord, certified: Certified) -> Adder:
    """Make the adder of a column's published counts from its certified draw."""
    return make_own_adder(certified, record.upper, record.histogram, record.matching)


def _find_column(receipt: Receipt, name: str | None) -> ColumnRecord:
    columns = [c for c in receipt.columns if c.name == name or name is None]
    if len(columns) == 1:
        return columns[0]
    names = "The columns of counts are: " + ", ".join(c.name for c in receipt.columns) + "."
    raise ArgumentError("column", "name one column of counts of the release", name, names)


def _require_public(names: Sequence[str], receipt: Receipt, argument: str) -> None:
    """Refuse groups chosen by released counts: nothing is unbiased in them."""
    public = receipt.table.published_unchanged
    for name in names:
        if name not in public:
            rule = "name columns that were published unchanged"
            hint = f"They are: {', '.join(public) or 'none'}."
            raise ArgumentError(argument, rule, name, hint)


@dataclass(frozen=True, eq=False)
class PublicGroups:
    """Groups of rows that some public columns make, in order of first occurrence."""

    by: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    rows: list[Integers]

    @property
    def is_numbered(self) -> bool:
        """True if every label is a number, as codes of states are."""
        return all(label.isdigit() for labels in self.labels for label in labels)


def list_group_columns(receipt: Receipt) -> tuple[tuple[str, ...], ...]:
    """List the columns, or margins of several, that may make groups; none in a long table."""
    facts = receipt.table
    if facts.rows > MOST_ROWS or all(not _can_tell(c) for c in receipt.columns):
        return ()
    method = receipt.method
    bounds = method.upper_column
    alone = tuple((name,) for name in facts.published_unchanged[:MOST_COLUMNS] if name != bounds)
    together = method.crossed if isinstance(method, Sums) else ()
    return *alone, *(names for names in together if len(names) > 1)


def find_groups(table: Table, receipt: Receipt) -> list[PublicGroups]:
    """Find the groups whose totals the receipt states, each once if two columns make the same.

    Where codes and names make the same groups, the names are taken.
    """
    by_place: dict[bytes, PublicGroups] = {}
    for names in list_group_columns(receipt):
        groups = group_rows(table, names)
        if groups is None or not all(_is_plain(table, name) for name in names):
            continue
        place = np.empty(table.rows, dtype=np.uint8)
        for number, rows in enumerate(groups.rows):
            place[rows] = number
        before = by_place.get(place.tobytes())
        if before is None or (before.is_numbered and not groups.is_numbered):
            by_place[place.tobytes()] = groups
    chosen: list[PublicGroups] = []
    lines = 0
    for groups in by_place.values():
        more = len(groups.rows) * len(receipt.columns)
        if lines + more <= MOST_LINES:
            chosen.append(groups)
            lines += more
    return chosen


def _is_plain(table: Table, name: str) -> bool:
    """Return whether every kind of file gives this column's labels back unchanged."""
    if name not in table.names:
        return False
    kind, labels = table.type_of(name), list(map(str, table.codes(name).labels))
    if kind == "number":
        return all(SMALL_CODE.fullmatch(label) or label.lower() in MISSING for label in labels)
    return kind in WRITTEN_ALIKE and all(label == label.strip() for label in labels)


def group_rows(table: Table, names: Sequence[str]) -> PublicGroups | None:
    """Group rows by columns; None unless there are a few groups of several rows with labels."""
    columns = [table.codes(name) for name in names]
    codes = number_together([column.codes for column in columns])
    if not 2 <= int(codes.max(initial=0)) + 1 <= min(MOST_GROUPS, table.rows // 2):
        return None
    rows = split_rows(codes)
    first = [part[0] for part in rows]
    plain = [
        [plain_label(column.labels[code]) for code in column.codes[first]] for column in columns
    ]
    labels = tuple(tuple(text for text in column if text is not None) for column in plain)
    fits = all(len(column) == len(rows) for column in labels)
    if not fits or len(set(zip(*labels, strict=True))) < len(rows):
        return None
    return PublicGroups(tuple(names), labels, rows)


def plain_label(label: str) -> str | None:
    """Return the one form that a label has in memory and in every kind of file, or None.

    Measurements and times are no labels: each library writes them in another way.

    >>> [plain_label(text) for text in ("KS", "1.0", "None", "0.1", "2026-01-31 12:30:00")]
    ['KS', '1', '', None, None]
    """
    text = normal_label(label)
    if text.lower() in MISSING:
        return ""
    if text.lower() in ("true", "false"):  # some files have 1 and 0
        return None
    if len(text) > LONGEST_LABEL or UNFIT.search(text) or CLOCK.search(text):
        return None
    return text if CODE.fullmatch(text) or not is_number(text) else None


def state_groups(
    table: Table, receipt: Receipt, adders: Sequence[Adder], sums: Sequence[bytes]
) -> Receipt:
    """Return the receipt with the totals of the groups that public columns make.

    `adders` are those of its columns, `sums` the files of a release that adds up.
    """
    groups = find_groups(table, receipt)
    columns = [
        structs.replace(
            record, groups=add_groups(Readable(table, receipt, record, adder, sums), groups)
        )
        for record, adder in zip(receipt.columns, adders, strict=True)
    ]
    return structs.replace(receipt, columns=tuple(columns))


def add_groups(column: Readable, groups: Sequence[PublicGroups]) -> tuple[GroupRecord, ...]:
    """Estimate the totals of a column's groups, except those across measured groups."""
    record, table = column.record, column.table
    if not groups or not (_can_tell(record) and _is_quick(column.adder)):
        return ()
    add = record.method.prepare_adding(column, CONFIDENCE)
    counts = table.counts(record.name) if record.method.adds_up else None
    stated = []
    for group in groups:
        try:
            totals = [add(rows) for rows in group.rows]
        except UsageError:
            continue
        sums = None if counts is None else tuple(int(counts[rows].sum()) for rows in group.rows)
        stated.append(
            GroupRecord(
                by=group.by,
                labels=group.labels,
                rows=tuple(map(len, group.rows)),
                estimate=tuple(round(float(total.value), 6) + 0.0 for total in totals),
                low=tuple(int(total.low) for total in totals),
                high=tuple(int(total.high) for total in totals),
                published=sums,
            )
        )
    return tuple(stated)


def _can_tell(record: ColumnRecord) -> bool:
    """Return whether the column tells the totals of groups at all."""
    return not record.hides_parts and (record.method.adds_up or record.total is not None)


def _is_quick(adder: Adder) -> bool:
    """Return whether adding groups needs little preparation."""
    if isinstance(adder, MatrixAdder):
        return len(adder.mechanism.matrix) <= WIDEST_MATRIX
    return not isinstance(adder, MatchedAdder) or adder.plain.upper <= WIDEST_MATCHED


def restate_groups(
    table: Table, receipt: Receipt, certified: Sequence[Certified], sums: Sequence[bytes]
) -> list[tuple[GroupRecord, ...] | None]:
    """Work out the totals of the groups that a receipt names again, for every column.

    `certified` are what the columns' counts were drawn from. None for a column that names groups
    which its public columns do not make.
    """
    possible, group = list_group_columns(receipt), cache(partial(group_rows, table))
    restated: list[tuple[GroupRecord, ...] | None] = []
    for column, drawn_from in zip(receipt.columns, certified, strict=True):
        by = [stated.by for stated in column.groups]
        if len(set(by)) < len(by) or not set(by) <= set(possible):
            restated.append(None)
            continue
        groups = [rows for names in by if (rows := group(names)) is not None]
        readable = Readable(table, receipt, column, find_adder(column, drawn_from), sums)
        restated.append(add_groups(readable, groups))
    return restated


@dataclass(frozen=True, eq=False)
class GroupTally:
    """The published counts of a group that differ, ascending, and how many rows have each."""

    counts: Integers
    times: Integers


def tally_groups(
    table: Table,
    by: Sequence[str],
    where: Sequence[Condition],
    names: Sequence[str],
    read: Callable[[Table], Integers],
) -> dict[tuple[str, ...], GroupTally]:
    """Tally the rows that meet all conditions, by their labels in the columns `by`.

    Groups come in order of first occurrence. Takes one batch of memory, and a few numbers
    for every pair of a group and a count that occurs.

    Parameters
    ----------
    table : Table
        A released table, whose batches are read once.
    by : sequence of str
        The columns that make groups; without any there is one group, if it has a row.
    where : sequence of Condition
        Conditions that rows meet.
    names : sequence of str
        The columns that `read` reads.
    read : callable
        Gives the published count of every row of a batch.

    Examples
    --------
    >>> from tallyveil.tables.read import read_table
    >>> counts = read_table([3, 0, 3])
    >>> tallied = tally_groups(counts, [], [], ["count"], lambda batch: batch.counts("count"))
    >>> tallied[()].counts.tolist(), tallied[()].times.tolist()
    ([0, 3], [1, 2])
    """
    chooser, tallies, start = RowChooser(where), _Tallies(), 0
    needed = dict.fromkeys((*by, *(condition.column for condition in where), *names))
    for condition in where:
        condition.require_column(table)
    for batch in table.batches(list(needed)):
        try:
            counts = read(batch)
        except RowError as error:
            raise RowError(error.column, start + error.row, error.what) from None
        tallies.add(batch, by, np.flatnonzero(chooser.choose(batch)), counts)
        start += batch.rows
    chooser.require_types()
    return tallies.join()


@dataclass
class _Tallies:
    """Pairs of a group and a count, and how often each has occurred so far."""

    groups: dict[tuple[str, ...], int] = field(default_factory=dict)
    parts: list[Integers] = field(default_factory=list)  # shape (3, pairs): group, count, times
    waiting: int = 0

    def add(self, batch: Table, by: Sequence[str], rows: Integers, counts: Integers) -> None:
        """Count the chosen rows of a batch."""
        if not len(rows):
            return
        columns = [batch.codes(name) for name in by]
        codes = [column.codes[rows] for column in columns]
        numbers = _number(codes, len(rows))
        first = np.full(int(numbers.max()) + 1, len(rows))
        first[numbers[::-1]] = np.arange(len(rows))[::-1]  # the last to be assigned is the first
        group_of = np.zeros(len(first), np.int64)
        for number in np.argsort(first, kind="stable").tolist():
            if (row := first[number]) == len(rows):
                break  # this number and all others do not occur
            parts = zip(columns, codes, strict=True)
            key = tuple(column.labels[group_codes[row]] for column, group_codes in parts)
            group_of[number] = self.groups.setdefault(key, len(self.groups))
        present, values, times = _count_pairs(numbers, counts[rows])
        self.parts.append(np.stack([group_of[present], values, times]))
        self.waiting += len(times)
        if self.waiting > max(FEW_PAIRS, self.parts[0].shape[1]):
            self._merge()

    def _merge(self) -> None:
        """Add up what was counted of every pair, sorted by group and then by count."""
        pairs = np.concatenate(self.parts, axis=1)
        pairs = pairs[:, np.lexsort((pairs[1], pairs[0]))]
        changes = (np.diff(pairs[:2], prepend=-1) != 0).any(axis=0)
        starts = np.flatnonzero(changes)
        self.parts = [np.stack([*pairs[:2, starts], np.add.reduceat(pairs[2], starts)])]
        self.waiting = 0

    def join(self) -> dict[tuple[str, ...], GroupTally]:
        """Return the tally of every group."""
        if not self.groups:
            return {}
        self._merge()
        groups, counts, times = self.parts[0]
        ends = np.flatnonzero(np.diff(groups)) + 1
        pieces = zip(np.split(counts, ends), np.split(times, ends), strict=True)
        return dict(zip(self.groups, (GroupTally(*piece) for piece in pieces), strict=True))


def _number(codes: Sequence[Integers], rows: int) -> Integers:
    """Number rows by what they hold in columns of codes."""
    if not codes:
        return np.zeros(rows, np.int64)
    return codes[0] if len(codes) == 1 else number_together(codes)


def _count_pairs(numbers: Integers, counts: Integers) -> tuple[Integers, Integers, Integers]:
    """Count the pairs of a number and a count that occur."""
    values = None
    top = int(counts.max()) + 1
    if (int(numbers.max()) + 1) * top > FEW_PAIRS:
        values, counts = np.unique(counts, return_inverse=True)
        top = len(values)
    pairs = numbers.astype(np.int64) * top + counts
    if (int(numbers.max()) + 1) * top > FEW_PAIRS:
        pairs_present, times = np.unique(pairs, return_counts=True)
    else:
        tallied = np.bincount(pairs)
        pairs_present = np.flatnonzero(tallied)
        times = tallied[pairs_present]
    position = pairs_present % top
    return pairs_present // top, position if values is None else values[position], times
