"""Methods of release: options, one plan, one draw, published columns, checks.

A method's file holds all that is particular to it: requests, receipts, pages and checks ask the
method. A new one needs its file, a line of `methods.registry` and a page.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Mask, freeze
from tallyveil.certified.base import Certified
from tallyveil.certified.certify import certify_geometric, certify_noise
from tallyveil.certified.ladder import Ladder as CertifiedLadder
from tallyveil.certified.mechanism import CertifiedAnswers, CertifiedGeometric, CertifiedNoise
from tallyveil.errors import ArgumentError, CertificationError, PackageError, TableError, UsageError
from tallyveil.query import Query
from tallyveil.reading.unbiased import Estimate
from tallyveil.release.accuracy import (
    FARTHEST_NOISE,
    REACH,
    Figures,
    Outcome,
    describe_drawn,
    describe_matched,
    expected_accuracy,
)
from tallyveil.release.column import WIDE, Histogram, PublishedColumn, spread_out
from tallyveil.release.records import SumsRecord, to_plain
from tallyveil.release.split import Tradeoff
from tallyveil.release.totals import Readable
from tallyveil.release.unit import PrivacyUnit
from tallyveil.structs import Struct
from tallyveil.sums.grouping import Grouping
from tallyveil.tables.labels import Codes, encode_text

if TYPE_CHECKING:
    from tallyveil.release.receipt import ColumnRecord, Receipt
    from tallyveil.sampling.entropy import Entropy
    from tallyveil.tables.table import Table

LIMITED_KEYS = ("epsilon", "budget.accuracy", "budget.delta", "counts.nested", "unit.spread")
"""The keys of a request that not every method takes."""

DISTRIBUTION, COUNTS = "distribution", "counts"
"""The kinds of stages that all methods share."""

LEAST_EPSILON = Fraction(1, 10**8)
"""Shares of less could not be certified in 62-bit integers."""

MOST_DIGITS = 300
"""Digits of an amount below its fraction bar."""

LEAST_OPEN_RATE = Fraction(REACH, FARTHEST_NOISE)
"""Smallest epsilon of noise on counts in a wide range or none: figures cover all of it."""

Counts: TypeAlias = NDArray[Any]
"""True counts of one column, in 0..upper, in any integer type."""

Check: TypeAlias = tuple[str, Callable[[], str]]
"""A check of a folder: its name, and a function that describes the result, or raises."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of public columns: those of a table, or of its public list of categories."""

    table: Table | None
    categories: Sequence[tuple[str, ...]] = ()
    by: tuple[str, ...] = ()

    def read(self, name: str, argument: str) -> Codes:
        """Return a column's labels, row for row, for the argument that names it."""
        if self.categories:
            if name not in self.by:
                raise ArgumentError(argument, f"name columns of 'by': {', '.join(self.by)}", name)
            return encode_text([label[self.by.index(name)] for label in self.categories])
        table = self.table
        if table is None or name not in (*table.names, *table.index_names):
            raise TableError(f"No column named {name!r}, which '{argument}' names.")
        return table.codes(name)


@dataclass(frozen=True, eq=False)
class Task:
    """One column that is to be released; public facts only.

    Attributes
    ----------
    name, upper, epsilon : str, int, Fraction
        The column, the largest count, and the cost of one move of one count by one.
    rows : int or None
        How many rows are drawn; None in a dry run that knows no table.
    unit, delta : PrivacyUnit and Fraction
        Who is protected, and the slack.
    groups : any
        The result of `Method.group` for public labels.
    sizes : tuple of int
        Of a method that adds up, how many nodes of each level are measured; those of `groups`
        where they are known.
    free : mask or None
        The rows that are not structural zeros.
    bounds : array of int or None
        The largest count of every row, where a public column says it.
    """

    name: str
    upper: int
    epsilon: Fraction
    rows: int | None = None
    unit: PrivacyUnit = field(default_factory=PrivacyUnit)
    delta: Fraction = Fraction(0)
    groups: Any = None
    sizes: tuple[int, ...] = ()
    free: Mask | None = None
    bounds: Integers | None = None

    def __post_init__(self) -> None:
        if isinstance(self.groups, Grouping):
            object.__setattr__(self, "sizes", self.groups.part.sizes)

    @property
    def query(self) -> Query:
        """The counts that can be published."""
        return Query.count(self.upper)


@dataclass(frozen=True, eq=False)
class PlannedStage:
    """A step that spends: the noise it draws from, and its cost to one person.

    Attributes
    ----------
    column : str
        The count column it is about.
    kind : str
        ``"distribution"``, ``"counts"`` or that of a level of sums.
    certified : Certified
        The mechanism. Its file and certificate go into the release folder.
    epsilon : Fraction
        The cost to one person.
    """

    column: str
    kind: str
    certified: Certified
    epsilon: Fraction

    @property
    def name(self) -> str:
        """The stage as receipts and ledgers call it."""
        return f"{self.column}: {self.kind}"

    @cached_property
    def mechanism_bytes(self) -> bytes:
        """The content of the mechanism's file."""
        return self.certified.to_json().encode()

    @cached_property
    def certificate_bytes(self) -> bytes:
        """The content of the certificate's file."""
        return self.certified.certificate_json().encode()

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the mechanism's file."""
        return hashlib.sha256(self.mechanism_bytes).hexdigest()


@dataclass(frozen=True, eq=False)
class Plan:
    """The draws of a column, their mechanisms and their cost, before any count is touched.

    `stages` are in the order of drawing, the counts last. They hold the very objects that draw,
    that the ledger hashes and that the folder ships.
    """

    task: Task
    method: Method
    why: str
    epsilon: Fraction
    stages: tuple[PlannedStage, ...]
    solver: str = "closed form"

    @property
    def counts_stage(self) -> PlannedStage:
        """The stage that draws the counts themselves."""
        return self.stages[-1]

    def find(self, kind: str) -> CertifiedNoise | None:
        """Find the noise of a stage; None if there is no such stage."""
        for stage in self.stages:
            if stage.kind == kind and isinstance(stage.certified, CertifiedNoise):
                return stage.certified
        return None

    def draw(self, counts: Counts, entropy: Entropy) -> Any:
        """Draw all rows but structural zeros: the only step that sees true counts."""
        free = self.task.free
        require_range(counts, self.task.upper + 1)
        return self.method.draw(self, counts if free is None else counts[free], entropy)

    def publish(self, draws: Any, entropy: Entropy) -> tuple[PublishedColumn, ...]:
        """Make the published column of the draws, or one for each level of a ladder."""
        published, free = self.method.publish(self, draws, entropy), self.task.free
        return published if free is None else tuple(spread_out(part, free) for part in published)


@dataclass(frozen=True, eq=False)
class RowDraws:
    """Every row's draw inside the range and, where it is published, before the clamp."""

    values: NDArray[Any]
    noisy: Integers | None = None


class Method(Struct, frozen=True, kw_only=True, tag_field="name"):
    """A way to release a column of counts.

    Attributes
    ----------
    unbiased : bool
        Release the column NAME_unbiased as well: each row's noisy count before it was clamped or
        ranked. It can be negative, is right on average and costs nothing more.
    """

    brief: ClassVar[str] = ""
    """The treatment of every count in a few words, for the screen."""
    words: ClassVar[str] = ""
    """The treatment of every count, for the methodology page."""
    steps: ClassVar[tuple[str, ...]] = ()
    """Its steps, sentence by sentence, where `words` do not say it all."""
    good_for: ClassVar[str] = ""
    """The use that it suits best, where it is compared with others."""
    reason: ClassVar[str] = "requested"
    """Why it is used, if it was named."""
    closed_form: ClassVar[str] = "geometric"
    """The closed form of `reading.precision` that its draws are as accurate as."""
    matches: ClassVar[bool] = False
    """Whether rows are published with other counts than they drew."""
    keeps_distribution: ClassVar[bool] = False
    """Whether the published counts follow an estimated distribution."""
    by_group: ClassVar[bool] = False
    """Whether ranks are matched within public groups: a count tells another draw in each."""
    adds_up: ClassVar[bool] = False
    """Whether it measures public groups and publishes their sums."""
    together: ClassVar[bool] = False
    """Whether it is certified for all moves of one unit together, which are in one row."""
    widest: ClassVar[int] = WIDE
    """The largest upper bound it takes; `NO_UPPER` if it needs none."""
    takes: ClassVar[tuple[str, ...]] = ("epsilon",)
    """The keys that it takes, among `LIMITED_KEYS`."""
    with_delta: ClassVar[bool] = False
    """Whether its mechanism may have a delta."""
    offers_unbiased: ClassVar[bool] = False
    """Whether it draws geometric noise, which can be released before the clamp as well."""

    unbiased: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.unbiased and not self.offers_unbiased:
            raise UsageError(
                "An unbiased column is made from geometric noise: use the method geometric or "
                "preserve, strata, a hierarchy or margins."
            )

    @property
    def name(self) -> str:
        """The name that requests and receipts write."""
        return str(self.__struct_config__.tag)

    @property
    def public_columns(self) -> tuple[str, ...]:
        """Public columns that make groups; they are published unchanged."""
        return ()

    @property
    def upper_column(self) -> str:
        """The public column with the largest count of every row; empty for none."""
        return ""

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The epsilons of its levels, where it publishes several."""
        return ()

    def for_receipt(self) -> Any:
        """Return the method as a receipt states it: with nothing that is the publisher's alone."""
        return self

    @property
    def signed(self) -> bool:
        """True if counts are published as drawn, negative ones too."""
        return False

    @property
    def loss_and_prior(self) -> str:
        """The loss and prior of its design, for the record of the page."""
        return "not used"

    @property
    def tradeoff(self) -> Tradeoff | None:
        """The worth of one unit of distribution error in errors of counts, where it was given."""
        return None

    @property
    def moves_counts(self) -> bool:
        """True if counts are moved towards a best guess after they were matched to ranks."""
        tradeoff = self.tradeoff
        return isinstance(tradeoff, str) or (tradeoff is not None and tradeoff < 1)

    def describe_outside(self, record: SumsRecord | None) -> str:
        """Name the sums that the guarantee does not cover; empty if it covers all."""
        return ""

    # -- before anything is drawn ----------------------------------------------------------------

    def group(self, labels: Labels, order: Integers | None = None, free: Mask | None = None) -> Any:
        """Group rows by public labels; `check` does it again for the published table.

        `order` is that of the published rows, which numbers the groups.
        """
        return None

    def choose(self, task: Task, why: str) -> tuple[Method, str]:
        """Choose the method that is used, from public sizes alone, and say why."""
        return self, why

    def stages(self, task: Task) -> list[tuple[str, Fraction]]:
        """List kind and epsilon of every stage, the counts last, as a receipt must show them."""
        return [(COUNTS, task.epsilon)]

    def charge(self, unit: PrivacyUnit, epsilon: Fraction) -> Fraction:
        """Return the cost to one unit of a stage that is certified at `epsilon`."""
        return epsilon if self.together else unit.charge(epsilon)

    def certify(self, task: Task, epsilon: Fraction) -> Certified:
        """Certify the mechanism of the counts."""
        return certify_rows(task, epsilon)

    def plan(self, task: Task, why: str = "") -> Plan:
        """Certify everything and draw nothing."""
        return self.build_plan(task, why, self.certify(task, self.stages(task)[-1][1]))

    def build_plan(self, task: Task, why: str, certified: Certified, **facts: Any) -> Plan:
        """Build the plan of a column whose counts are drawn from `certified`."""
        *others, (last, _) = self.stages(task)
        drawn = [*((kind, certify_noise(part)) for kind, part in others), (last, certified)]
        stages = tuple(
            PlannedStage(task.name, kind, noise, self.charge(task.unit, noise.exact_epsilon))
            for kind, noise in drawn
        )
        return Plan(task, self, why, facts.pop("epsilon", task.epsilon), stages, **facts)

    def preview(self, plan: Plan) -> dict[str, Any]:
        """Describe the accuracy that is known before the draw; JSON-ready."""
        accuracy = expected_accuracy(plan.counts_stage.certified, plan.task.upper)
        return {"accuracy": to_plain(accuracy.record())}

    def note(self, plans: Sequence[Plan]) -> str:
        """Warn the publisher before anything is spent; empty where there is no need."""
        return ""

    # -- the draw, and what follows from it ------------------------------------------------------

    def draw(self, plan: Plan, counts: Counts, entropy: Entropy) -> Any:
        """Draw every row once; each row is one person's only row."""
        entropy.rekey()
        return draw_rows(plan, counts, entropy)

    def publish(self, plan: Plan, draws: Any, entropy: Entropy) -> tuple[PublishedColumn, ...]:
        """Publish the draws themselves."""
        values = freeze(draws.values)
        counted = Histogram.count(values)
        return (PublishedColumn(values, counted, unbiased=draws.noisy, signed=self.signed),)

    def write_files(
        self, plans: Sequence[Plan], columns: Sequence[PublishedColumn], table: Table
    ) -> dict[str, bytes]:
        """Build further files of the release, by name."""
        return {}

    def describe(self, outcome: Outcome) -> Figures:
        """Work out the figures of a column, for its publisher and for its check alike."""
        return describe_matched(outcome) if self.matches else describe_drawn(outcome)

    # -- a release that is read back -------------------------------------------------------------

    def check_proofs(
        self, column: ColumnRecord, certified: Sequence[Certified], receipt: Receipt
    ) -> None:
        """Raise a `PackageError` unless its stages were drawn from what this method draws from."""
        *others, last = certified
        noises = all(isinstance(other, CertifiedNoise) for other in others)
        require(noises, f"a stage of {column.name} is not noise on whole numbers")
        fits = column.upper <= WIDE or (isinstance(last, CertifiedNoise) and self.widest > WIDE)
        require(fits, f"{column.name} was not drawn with noise on all whole numbers")
        if column.upper <= WIDE:
            fits = isinstance(last, (CertifiedAnswers, CertifiedLadder))
            require(fits, f"{column.name} was not drawn as counts")
            same = getattr(last, "query", None) == self.find_query(column, receipt)
            require(same, f"the mechanism of {column.name} is not for 0 to {column.upper}")
        is_ladder = isinstance(last, CertifiedLadder)
        require(is_ladder == bool(self.levels), f"{column.name} has another method")

    def find_query(self, column: ColumnRecord, receipt: Receipt) -> Query:
        """Return the query that counts in a narrow range must be certified for."""
        return Query.count(column.upper)

    def list_checks(self, folder: Path, read: Callable[[], Table], receipt: Receipt) -> list[Check]:
        """List the checks that only a folder of this method needs."""
        return []

    def prepare_adding(
        self, column: Readable, confidence: float, all_rows: bool = False
    ) -> Callable[[Integers], Estimate]:
        """Return the function that estimates the total of some rows from their numbers.

        With `all_rows`, all margins together tell the total of all rows.
        """
        return partial(column.add, confidence)


def certify_rows(task: Task, epsilon: Fraction) -> CertifiedGeometric | CertifiedNoise:
    """Certify geometric noise for every row: clamped, or without bounds in a wide range."""
    if task.upper <= WIDE:
        return certify_geometric(task.query, epsilon)
    if epsilon < LEAST_OPEN_RATE:  # figures would leave out noise that is drawn
        rule = f"leave the counts at least {float(LEAST_OPEN_RATE):g} where their range is wide"
        hint = f"Use a larger epsilon, or an upper bound of at most {WIDE:,}."
        raise ArgumentError("epsilon", rule, got=f"{float(epsilon):g}", hint=hint)
    return certify_noise(epsilon)


def draw_rows(plan: Plan, counts: Counts, entropy: Entropy) -> RowDraws:
    """Draw every row once; noise is clamped to 0..upper, which depends on the draw alone.

    The certificate proves the noise on all whole numbers, so the draws before the clamp are as
    private as those after it, and are kept where they are published.
    """
    certified: Any = plan.counts_stage.certified
    keep = plan.method.unbiased or plan.method.signed
    if isinstance(certified, CertifiedNoise):
        noisy: Any = certified.release(counts, entropy)
        unclamped = freeze(np.asarray(noisy, np.int64)) if keep else None
        return RowDraws(noisy.clip(0, plan.task.upper), unclamped)
    if not keep:
        return RowDraws(certified.draw_positions(counts, entropy))
    noisy = freeze(certified.draw_unbounded(counts, entropy))
    return RowDraws(certified.clamp(noisy), noisy)


def require_range(counts: Counts, size: int) -> None:
    """Refuse counts that were not clamped: a draw for one would not be the certified one."""
    if len(counts) and int(counts.max()) >= size:
        raise CertificationError("Counts must be clamped to their range before they are drawn.")


def require(holds: bool, problem: str) -> None:
    """Raise a `PackageError` unless something holds."""
    if not holds:
        raise PackageError(problem)


def list_names(names: Any, argument: str, separator: str = ",") -> list[Any]:
    """List names from a sequence, or from one text with separators between them."""
    if isinstance(names, str):
        return names.split(separator)
    if not isinstance(names, Iterable):
        raise ArgumentError(argument, "name columns, as text or as a list", names)
    return list(names)


def read_columns(columns: str | Iterable[str], argument: str) -> tuple[str, ...]:
    """Return column names from a sequence, or from one text with commas between them.

    >>> read_columns("state, county", "hierarchy")
    ('state', 'county')
    """
    names = tuple(str(part).strip() for part in list_names(columns, argument))
    if not all(names) or not names:
        raise ArgumentError(argument, "name at least one column", got="an empty name")
    if len(set(names)) != len(names):
        raise ArgumentError(argument, "name every column once", got=", ".join(names))
    return names
