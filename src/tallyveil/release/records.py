"""Parts of a receipt, typed: each has one form, which msgspec reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, get_origin

import msgspec
import numpy as np
from msgspec import Meta

from tallyveil.arrays import Mask, freeze
from tallyveil.budget.accounting import SMALLEST_DELTA
from tallyveil.budget.entries import Entry
from tallyveil.certified.base import Certified
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedNoise
from tallyveil.errors import ArgumentError, PackageError, TableError, UsageError
from tallyveil.exact import LARGEST_EPSILON, exact_rational
from tallyveil.release.column import name_unbiased
from tallyveil.tables.conditions import Condition, parse_conditions
from tallyveil.tables.microdata import Bins, read_bins
from tallyveil.tables.table import Table

MOST_GROUPS = 60
"""Most groups of one kind whose totals a receipt states."""

MOST_KINDS = 2000
"""Most kinds of groups in a receipt."""

LONGEST_AMOUNT = 2000
"""Most characters of an exact amount; a longer one is not read."""

FARTHEST = 2.0**80
"""No total of counts lies beyond this."""

ROW_ORDERS = {
    "categories": "that of the public list of categories",
    "input": "that of the input",
}
"""The orders of rows that a receipt can state."""

NONE = Fraction(0)
MISFIT = "The receipt lacks a part, or a part has the wrong form."

Whole: TypeAlias = Annotated[int, Meta(ge=0, le=2**62)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=2**62)]
Real: TypeAlias = Annotated[float, Meta(ge=-FARTHEST, le=FARTHEST)]
Digest: TypeAlias = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Texts: TypeAlias = tuple[str, ...]
Wholes: TypeAlias = tuple[Whole, ...]
Confidence: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]
"""A probability strictly between 0 and 1."""


class Record(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Base of the parts of a receipt; a part at its default is not written."""


def to_plain(record: Any) -> Any:
    """Return a record as JSON-ready data."""
    return msgspec.json.decode(msgspec.json.encode(record, enc_hook=_write_value))


def from_plain(data: Any, kind: Any) -> Any:
    """Read a record from JSON data, or raise a `PackageError`."""
    try:
        return msgspec.convert(data, kind, dec_hook=_read_value)
    except msgspec.ValidationError as problem:
        cause = problem.__cause__
        raise (cause if isinstance(cause, PackageError) else PackageError(MISFIT)) from None
    except (ArgumentError, UsageError, ArithmeticError, TypeError, ValueError):
        raise PackageError(MISFIT) from None


def _write_value(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a receipt cannot hold {type(value).__name__}")


def _read_value(kind: Any, value: Any) -> Any:
    if kind is Fraction:
        return _read_amount(value)
    if get_origin(kind) is np.ndarray:
        return freeze(np.array(msgspec.convert(value, list[Whole]), np.int64))
    raise TypeError(f"a receipt cannot hold {kind}")


def _read_amount(text: Any) -> Fraction:
    """Return an exact amount of at least 0, in the one form that the program writes."""
    short = isinstance(text, str) and len(text) < LONGEST_AMOUNT
    value = exact_rational(text) if short else Fraction(-1)
    if value < 0 or str(value) != text:
        raise ValueError("not an exact amount")
    return value


class StageRecord(Record, frozen=True, kw_only=True):
    """One step that spent: its cost, and the files that prove it.

    Attributes
    ----------
    name : str
        The column and what the stage was for.
    epsilon, delta : Fraction
        What it cost; a unit that has a delta is counted once, so delta is that of the mechanism.
    file, sha256, mechanism, certified_epsilon
        The mechanism's file, its digest, its name, and the epsilon proved.
    certificate_file, digest, achieved_epsilon
        The certificate's file, its digest, and the largest epsilon met in the matrix.
    """

    name: str
    epsilon: Fraction
    file: str
    sha256: Digest
    mechanism: str
    certified_epsilon: Fraction
    certificate_file: str
    digest: str
    achieved_epsilon: float | None
    delta: Fraction = NONE

    def __post_init__(self) -> None:
        if not self.delta:
            msgspec.structs.force_setattr(self, "delta", NONE)
        if not (self.epsilon and self.certified_epsilon):
            raise ValueError("an epsilon of 0")

    @property
    def kind(self) -> str:
        """The purpose of the stage: the part of its name after the column's."""
        return self.name.rpartition(": ")[2]


class TableRecord(Record, frozen=True, kw_only=True):
    """The released table as a whole.

    Attributes
    ----------
    other : str
        The label of the cell for all categories that are not listed; empty if there is none.
    missing, missing_rows : tuple of str, int
        Codes for missing counts, and how many rows were left out because of one.
    bins : dict
        The public limits of every column that was counted by ranges.
    """

    rows: Positive
    kind: str
    file: str
    columns: Texts
    published_unchanged: Texts
    row_order: str
    counted_by: Texts = ()
    where: Texts = ()
    other: str = ""
    missing: Texts = ()
    missing_rows: Whole = 0
    bins: dict[str, list[float | int]] = {}

    def __post_init__(self) -> None:
        ranges = self.ranges
        one_form = {name: part.write() for name, part in ranges.items()} == self.bins
        if not (set(ranges) <= set(self.counted_by) and one_form):
            raise PackageError("The receipt states ranges that it cannot have.")
        if self.missing_rows and not self.missing:
            raise PackageError("The receipt states missing rows without a code for them.")

    @property
    def ranges(self) -> dict[str, Bins]:
        """The ranges of every column that was counted by ranges."""
        return read_bins(self.bins)

    def list_ranges(self, name: str) -> tuple[str, ...]:
        """List the labels that a column counted by ranges can have; none for any other column."""
        if name not in self.bins:
            return ()
        labels = self.ranges[name].labels
        return labels + ((self.other,) if self.other not in ("", *labels) else ())


class AccuracyRecord(Record, frozen=True, kw_only=True):
    """Bias, error and interval of released counts, for some true counts."""

    confidence: Confidence
    exact: bool
    true_count: Wholes
    bias: tuple[float, ...]
    rmse: tuple[float, ...]
    interval_low: tuple[int, ...]
    interval_high: tuple[int, ...]


class OptimalityRecord(Record, frozen=True, kw_only=True):
    """The expected error of a column, and the least of any private release.

    `least_error_same_distribution` is that of the best release that keeps the distribution.
    """

    expected_error: Real
    least_error: Real
    least_error_same_distribution: Real


class TotalRecord(Record, frozen=True, kw_only=True):
    """The estimated sum of the true counts of a column."""

    confidence: Confidence
    value: float
    standard_error: float
    low: float
    high: float


class DrawnRecord(Record, frozen=True, kw_only=True):
    """The column that holds every row's draw before the clamp, and the variance of its noise."""

    column: str
    variance: float

    @classmethod
    def of(cls, name: str, certified: Certified, signed: bool) -> DrawnRecord | None:
        """Return the record of a count column, or None unless it was drawn with geometric noise.

        Every row's draw is its true count, cut at the upper bound, plus that noise. So it is right
        on average, and its variance is that of the noise, for every count.
        """
        if not isinstance(certified, (CertifiedGeometric, CertifiedNoise)):
            return None
        column = name if signed else name_unbiased(name)
        return cls(column=column, variance=float(certified.noise.variance))


class GroupRecord(Record, frozen=True, kw_only=True):
    """Estimated totals of the groups that public columns make, in the order of the table.

    Attributes
    ----------
    by : tuple of str
        The columns whose values make the groups.
    labels : tuple of tuple of str
        For each of these columns, the label of every group.
    rows : tuple of int
        How many rows each group has.
    estimate, low, high : tuple of numbers
        The estimated sums of true counts, and intervals that contain the true sum in at least 95%
        of all releases.
    published : tuple of int, or None
        The sums of the published counts, where these may be added.
    """

    by: Texts
    labels: tuple[Texts, ...]
    rows: tuple[Positive, ...]
    estimate: tuple[Real, ...]
    low: tuple[Annotated[int, Meta(ge=-(2**62), le=2**62)], ...]
    high: Wholes
    published: Wholes | None = None

    def __post_init__(self) -> None:
        parts = (*self.labels, self.estimate, self.low, self.high, self.published or self.rows)
        named = 0 < len(set(self.by)) == len(self.by) == len(self.labels)
        sized = all(len(part) == len(self.rows) for part in parts)
        if not (named and sized and 2 <= len(self.rows) <= MOST_GROUPS):
            raise PackageError("The receipt must state one total for each of a few groups.")

    @property
    def groups(self) -> list[str]:
        """The name of each group."""
        parts = zip(*self.labels, strict=True)
        return [" · ".join(label or "(empty)" for label in names) for names in parts]


class LedgerRecord(Record, frozen=True, kw_only=True):
    """The ledger's entry that paid for the release.

    Where debits do not simply add up, `accounting` says how they do, and the totals what all
    releases of the dataset keep together.
    """

    dataset: str
    entry: Positive
    digest: Digest
    accounting: Literal["pure", "exact", "zcdp"] = "pure"
    total_epsilon: Fraction | None = None
    total_delta: Fraction | None = None

    def __post_init__(self) -> None:
        totals = (self.total_epsilon, self.total_delta)
        if self.accounting == "pure":
            fits = totals == (None, None)
        else:
            epsilon, delta = (total or NONE for total in totals)
            fits = 0 < epsilon <= LARGEST_EPSILON and SMALLEST_DELTA <= delta < 1
        if not fits:
            raise PackageError("The receipt must state the total budget of its account.")

    @classmethod
    def of(cls, entry: Entry) -> LedgerRecord:
        """Return what a receipt says of a ledger's entry."""
        terms = ("accounting", "total_epsilon", "total_delta")
        facts = {name: entry.body[name] for name in terms if name in entry.body}
        head = {"dataset": entry.dataset, "entry": entry.sequence, "digest": entry.digest}
        record: LedgerRecord = from_plain(head | facts, LedgerRecord)
        return record


class SumsLevel(Record, frozen=True, kw_only=True):
    """One level above the rows: its name, the file of its sums, and how many there are."""

    name: str
    file: str
    sums: Positive


class SumsRecord(Record, frozen=True, kw_only=True):
    """The sums that released counts add up to.

    Attributes
    ----------
    levels : tuple of SumsLevel
        From the coarsest to the finest.
    rows : int
        The rows of the table, which the finest level is made of.
    exact_rows : int
        How many rows are the only ones of a group whose sum is exact.
    measured : tuple of int
        With structural zeros: how many sums of each level, and rows, were measured.
    """

    levels: tuple[SumsLevel, ...]
    rows: Positive
    exact_rows: Whole = 0
    measured: tuple[Positive, ...] = ()

    def __post_init__(self) -> None:
        fits = not self.measured or len(self.measured) == len(self.sizes)
        smaller = zip(self.measured, self.sizes, strict=False)
        fits = fits and all(part <= size for part, size in smaller) and self.measured != self.sizes
        if not (self.levels and fits and all(size <= self.rows for size in self.sizes)):
            raise PackageError("The receipt's sums contradict themselves.")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of sums of each level, and of rows."""
        return (*(level.sums for level in self.levels), self.rows)

    @property
    def files(self) -> tuple[str, ...]:
        """The file of each level above the rows."""
        return tuple(level.file for level in self.levels)


ZeroRule: TypeAlias = tuple[Condition, ...]
"""Conditions that a row meets together if it is a structural zero."""


def find_free(rules: Sequence[ZeroRule], table: Table) -> Mask:
    """Find the rows of a published table that are not structural zeros; at least one must be."""
    free = np.ones(table.rows, dtype=bool)
    for rule in rules:
        free &= ~meets_rule(rule, table)
    if not free.any():
        raise TableError("Every row is a structural zero: there is nothing to publish.")
    return freeze(free)


def meets_rule(rule: ZeroRule, table: Table) -> Mask:
    """Find the rows of a published table that meet a rule."""
    met: Mask = np.logical_and.reduce([condition.holds(table) for condition in rule])
    return met


class ZerosRecord(Record, frozen=True, kw_only=True):
    """Structural zeros in the receipt: the rules as text, and how many rows meet one."""

    rules: Texts
    rows: Whole

    def __post_init__(self) -> None:
        one_form = all(_write(parse_conditions([text])) == text for text in self.rules)
        if not (self.rules and one_form):
            raise PackageError("The receipt's structural zeros contradict themselves.")

    @classmethod
    def of(cls, rules: Sequence[ZeroRule], free: Mask) -> ZerosRecord:
        """Return the record of these rules."""
        return cls(rules=tuple(map(_write, rules)), rows=int((~free).sum()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the rules refer to."""
        return tuple(condition.column for condition in parse_conditions(self.rules))

    def find_free(self, table: Table) -> Mask:
        """Find the rows of the published table that are not structural zeros."""
        return find_free([parse_conditions([text]) for text in self.rules], table)


def _write(rule: ZeroRule) -> str:
    """Write a rule so that it can be read again."""
    return " and ".join(map(_write_condition, rule))


def _write_condition(condition: Condition) -> str:
    quote = '"' if "'" in condition.value else "'"
    return f"{condition.column} {condition.sign} {quote}{condition.value}{quote}"
