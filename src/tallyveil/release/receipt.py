"""The receipt of a release: guarantee, cost and method, from public facts only.

A `Receipt` holds facts that do not follow from one another, and a statement of what follows from
them; `state` works the statement out again. A receipt that is read must be in its one form, and
its statement must follow from its facts. The parts of the statement that the OpenDP deployments
registry asks for have the names they have there. Nothing here may depend on a confidential value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any, Literal

from msgspec import Meta, field, structs

from tallyveil._version import __version__
from tallyveil.arrays import Integers
from tallyveil.budget.accounting import SMALLEST_DELTA, compose
from tallyveil.budget.entries import shown_rational
from tallyveil.errors import PackageError
from tallyveil.fingerprint import fingerprint, fingerprint_page
from tallyveil.release.column import NO_UPPER, Histogram, Matching
from tallyveil.release.methods.base import DISTRIBUTION
from tallyveil.release.methods.margins import Margins, describe_missed
from tallyveil.release.methods.preserve import describe_tradeoff
from tallyveil.release.methods.registry import RecordedMethod
from tallyveil.release.methods.sums import MOST_STAGES, Sums
from tallyveil.release.options import About
from tallyveil.release.records import (
    MOST_KINDS,
    ROW_ORDERS,
    AccuracyRecord,
    Digest,
    DrawnRecord,
    GroupRecord,
    LedgerRecord,
    OptimalityRecord,
    Positive,
    Record,
    StageRecord,
    SumsRecord,
    TableRecord,
    Texts,
    TotalRecord,
    Whole,
    Wholes,
    ZerosRecord,
    from_plain,
    to_plain,
)
from tallyveil.release.request import MOST_COUNTS
from tallyveil.release.unit import MOST_SEPARATE, PrivacyUnit, charge_columns, charge_delta
from tallyveil.sampling.marks import NOT_PRIVATE
from tallyveil.untrusted import parse_json

RECEIPT_FORMAT = "tallyveil-receipt"
ROUND_OFF = 1e-9
"""Relative slack of composed epsilons that are rounded in another order."""

MOST_COMPOSED = 100
"""More charges than this are added up: composing them would take a reader too long."""

FLOAT_PROTECTION = "privacy is proved and drawn in integers; no float decides it"

WEAK_EPSILON = 5
"""Above this the guarantee itself says that it is weak, and the publisher is warned."""

LARGE_DELTA = Fraction(1, 1000)
"""A delta above this is weak: a release that publishes one row in a thousand unchanged has it."""

OPEN_RANGE = f"from 0, with {NO_UPPER:,} for all above"
SIGNED_RANGE = f"of any sign, true ones above {NO_UPPER:,} taken as that"
"""Ranges of counts without an upper bound, as text."""

ONLY_ROWS = (
    "Single counts were protected with noise. Sums that are not exact were added up from them: at "
    "this epsilon separate noise would not make them more accurate. The published counts add "
    "up to the published sums."
)

ONLY_ROWS_BRIEF = "noise on every count; totals are added up from the result"

SIGNED = (
    "Two-sided geometric noise was added to every count, and the result is published with its sign."
)

DISTRIBUTION_STEP = (
    "Noise was added to the cumulative histogram: how many rows have a count of at most 0, 1, 2 ..."
)


class ColumnRecord(Record, frozen=True, kw_only=True):
    """One released column of counts.

    Attributes
    ----------
    upper : int
        The largest count; `NO_UPPER` where no bound was set.
    method, why : Method, str
        How the column was released, with its options, and why that way.
    epsilon, stages : Fraction, tuple of StageRecord
        What a move of one count by one costs, and the steps that spent.
    properties, solver : tuple of str, str
        The properties of the mechanism, and where it comes from.
    distribution, spread : Histogram, tuple of float
        How many rows have each released count, and twice the standard error of these numbers.
    matching : Matching or None
        Which draws became which counts, where counts are not the draws.
    total, optimality, groups
        Estimated totals, and expected errors with the least possible ones.
    unbiased : DrawnRecord or None
        The column of draws before the clamp, where it is released.
    at_most : str
        The column whose released count no row exceeds, where columns are nested.
    missed : tuple of int or None
        By how much each margin is missed at most; None without margins.
    """

    name: str
    upper: Annotated[int, Meta(ge=1, le=NO_UPPER)]
    method: RecordedMethod
    why: str
    epsilon: Fraction
    stages: Annotated[tuple[StageRecord, ...], Meta(min_length=1, max_length=MOST_STAGES)]
    properties: Texts
    solver: str
    accuracy: AccuracyRecord
    histogram: Histogram = field(name="distribution")
    spread: tuple[float, ...] | None = None
    matching: Matching | None = None
    total: TotalRecord | None = None
    optimality: OptimalityRecord | None = None
    groups: Annotated[tuple[GroupRecord, ...], Meta(max_length=MOST_KINDS)] = ()
    unbiased: DrawnRecord | None = None
    at_most: str = ""
    missed: Wholes | None = None

    def __post_init__(self) -> None:
        counts, rows = self.histogram.counts, self.histogram.rows
        rising = list(counts) == sorted(set(counts)) and len(counts) == len(rows) > 0
        inside = rising and counts[0] >= 0 and counts[-1] <= self.upper and min(rows) >= 1
        if self.matching is not None:
            pairs = (self.matching.draws, self.matching.counts)
            inside = inside and all(part.max(initial=0) <= self.upper for part in pairs)
            inside = inside and self.matching.is_of(self.histogram)
        if not (inside and self.epsilon):
            raise PackageError("The receipt states counts that the column cannot have.")
        if (self.missed is not None) != isinstance(self.method, Margins):
            raise PackageError("The receipt must state by how much each margin is missed.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the released table that hold what was drawn."""
        if self.unbiased is None or self.signed:
            return (self.name,)
        return self.name, self.drawn_column

    @property
    def drawn_column(self) -> str:
        """The column that holds every row's draw before the clamp, if one does."""
        return "" if self.unbiased is None else self.unbiased.column

    @property
    def words(self) -> str:
        """The method of every count, as a sentence."""
        if self.signed:
            return SIGNED
        return ONLY_ROWS if self.only_rows else self.method.words

    @property
    def brief(self) -> str:
        """The method in a few words, for the screen."""
        return ONLY_ROWS_BRIEF if self.only_rows else self.method.brief

    @property
    def only_rows(self) -> bool:
        """True if totals were added up from noisy counts, without noise of their own."""
        return self.method.adds_up and len(self.stages) == 1

    @property
    def drawn_variance(self) -> float:
        """The variance of those draws; 0 if none are published."""
        return 0.0 if self.unbiased is None else self.unbiased.variance

    @property
    def signed(self) -> bool:
        """True if the column itself holds the draws, negative ones too."""
        return self.method.signed

    @property
    def moved(self) -> bool:
        """True if counts were changed after they were drawn, or matched to ranks."""
        return bool(self.at_most) or self.method.moves_counts

    @property
    def hides_parts(self) -> str:
        """The reason why released values do not tell the sums of groups; empty where they do."""
        if self.unbiased is not None:
            return ""
        if self.method.by_group:
            return (
                "they were assigned within strata, so the same value tells different things in "
                "different groups"
            )
        if self.at_most:
            return f"keeping them below {self.at_most} moved some groups more than others"
        return ""

    @property
    def bounded(self) -> bool:
        """True if there was an upper bound; without one, only the ceiling `NO_UPPER` holds."""
        return self.upper != NO_UPPER

    @property
    def measures_distribution(self) -> bool:
        """True if a stage measured the distribution."""
        return any(stage.kind == DISTRIBUTION for stage in self.stages)

    @property
    def range_words(self) -> str:
        """The possible counts, as text."""
        if self.bounded:
            return f"0 to {self.upper:,}"
        return SIGNED_RANGE if self.signed else OPEN_RANGE

    @property
    def counts_stage(self) -> StageRecord:
        """The stage that drew the counts."""
        return self.stages[-1]

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the method, as sentences."""
        method = self.method
        first = (DISTRIBUTION_STEP,) if self.measures_distribution else ()
        missed = () if self.missed is None else (describe_missed(self.missed),)
        limit = (describe_limit(self.at_most, method.matches),) if self.at_most else ()
        return *first, *method.steps, *missed, *limit, *describe_tradeoff(method.tradeoff)

    def is_made_from(self, draws: Integers, counts: Integers) -> bool:
        """Return whether `counts` are what the draws before the clamp were published as."""
        clamped = draws.clip(0, self.upper)
        if self.matching is None:
            return bool((clamped == counts).all())
        return Matching.of(clamped, counts) == self.matching


NUMBERS = ("epsilon", "epsilon_exact", "delta", "delta_exact", "multiplier")
"""The parts of a statement that are no words."""


class Program(Record, frozen=True, kw_only=True):
    """The program that made a release; `page` is the digest of its page's templates."""

    name: Literal["tallyveil"]
    version: str
    fingerprint: Digest
    page: Digest

    @classmethod
    def this(cls) -> Program:
        """Describe this program."""
        digests = {"fingerprint": fingerprint(), "page": fingerprint_page()}
        return cls(name="tallyveil", version=__version__, **digests)


class LossStatement(Record, frozen=True, kw_only=True):
    """The privacy loss, as the registry states it."""

    privacy_unit: str
    privacy_unit_description: str
    privacy_parameters: dict[str, float]


class Statement(Record, frozen=True, kw_only=True):
    """Consequences of the facts of a receipt, for readers and other programs."""

    promise: str
    epsilon: float
    epsilon_exact: Fraction
    delta: float
    delta_exact: Fraction
    multiplier: Positive
    dp_flavor: dict[str, str]
    privacy_loss: LossStatement
    model: dict[str, str]
    accounting: dict[str, str]
    implementation: dict[str, str]
    warning: str = ""


class Receipt(Record, frozen=True, kw_only=True):
    """The facts of a release, and the statement that follows from them.

    Attributes
    ----------
    release, created, private : str, str, bool
        The name of the release, when it was made, and whether its draws are private.
    program : Program
        What made it.
    statement : Statement or None
        What follows from the facts: see `state`.
    unit, disjoint : PrivacyUnit, tuple of tuple of str
        Who is protected, and the groups of columns where a unit is counted in only one.
    table, columns : TableRecord, tuple of ColumnRecord
        The released table, and its columns of counts.
    level : int
        Which level of a ladder this is, the least private first; 0 without a ladder.
    ledger, sums, strata, zeros, about
        The entry that paid, what counts add up to, how many strata there are, structural zeros,
        and what the publisher says.

    Examples
    --------
    >>> import tallyveil as tv
    >>> rel = tv.privatize([0, 3, 0, 7, 1] * 100, upper=9, epsilon=1)
    >>> Receipt.read(rel.receipt.to_json().encode()) == rel.receipt, rel.receipt.epsilon
    (True, Fraction(1, 1))
    """

    format: Literal["tallyveil-receipt"]
    version: Literal[1]
    release: str
    created: str
    private: bool
    program: Program
    statement: Statement | None = None
    unit: PrivacyUnit
    disjoint: tuple[Texts, ...] = ()
    table: TableRecord
    columns: Annotated[tuple[ColumnRecord, ...], Meta(min_length=1, max_length=MOST_COUNTS)]
    level: Whole = 0
    ledger: LedgerRecord | None = None
    sums: SumsRecord | None = None
    strata: Whole = 0
    zeros: ZerosRecord | None = field(name="structural_zeros", default=None)
    about: About = field(default_factory=About)

    def __post_init__(self) -> None:
        for find in (_find_odd_tables, _find_odd_methods, _find_odd_units, _find_odd_accounts):
            for problem in find(self):
                raise PackageError(f"The receipt {problem}.")

    @property
    def method(self) -> RecordedMethod:
        """The method of the first column, and of all columns where it makes groups or levels."""
        return self.columns[0].method

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The epsilons of the levels of a ladder, least private first."""
        return self.method.levels if self.level else ()

    @property
    def protected_rows(self) -> int:
        """The number of rows that are not structural zeros."""
        return self.table.rows - (0 if self.zeros is None else self.zeros.rows)

    @property
    def stages(self) -> tuple[StageRecord, ...]:
        """Every step that spent, column by column."""
        return tuple(stage for column in self.columns for stage in column.stages)

    @property
    def epsilon(self) -> Fraction:
        """The exact cost to one unit; disjoint columns cost the largest of them."""
        return sum(self._charges, Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The delta of the release; 0 for pure privacy."""
        composed = self.unit.delta
        deltas = {column.name: column.counts_stage.delta + composed for column in self.columns}
        return charge_delta(deltas, self.disjoint)

    @property
    def _charges(self) -> tuple[Fraction, ...]:
        """The charges to a ledger, stage by stage."""
        stages = [(c.name, stage.name, stage.epsilon) for c in self.columns for stage in c.stages]
        return tuple(cost for _, cost in charge_columns(stages, self.disjoint))

    @property
    def composed(self) -> Fraction | None:
        """The epsilon that the release keeps at its account's delta, where one is spent."""
        if self.ledger is None or self.ledger.total_delta is None:
            return None
        if len(self._charges) > MOST_COMPOSED:
            return self.epsilon
        rest = self.ledger.total_delta - self.delta
        return compose(self._charges).epsilon(rest) if rest >= SMALLEST_DELTA else self.epsilon

    @property
    def unit_name(self) -> str:
        """The unit as text, with what the publisher states of disjoint columns."""
        only = (f", and in only one of {', '.join(group)}" for group in self.disjoint)
        return self.unit.name + "".join(only)

    @property
    def unit_moves(self) -> str:
        """The change that one unit can make, as text."""
        together = set(self.disjoint)
        alone = [c for c in self.columns if not any(c.name in group for group in together)]
        if len(alone) + len(together) == 1:
            return self.unit.moves
        return f"{self.unit.moves} in each column" + (
            ", disjoint columns taken together" if together else ""
        )

    @property
    def unit_limits(self) -> tuple[str, ...]:
        """Limits of the unit to know before relying on the guarantee."""
        return (
            *self.unit.limits,
            *(
                f"The guarantee covers a {self.unit.kind} that is counted in only one of "
                f"{', '.join(group)}, as the publisher states. One that is counted in several of "
                "them is protected less: their epsilons add up."
                for group in self.disjoint
            ),
        )

    @property
    def outside(self) -> str:
        """Sums that the guarantee does not cover, as text; empty if it covers all."""
        return self.method.describe_outside(self.sums)

    @property
    def promise(self) -> str:
        """The guarantee as a sentence about one unit."""
        words = promise(self.epsilon, self.unit, self.delta, self.outside)
        return words if self.private else f"{NOT_PRIVATE} With private draws: {words}"

    @property
    def warning(self) -> str:
        """The warning on a release that is not private; empty for one that is."""
        return "" if self.private else NOT_PRIVATE

    @property
    def randomness(self) -> str:
        """The source of the random bits."""
        private = "AES-256 in counter mode, keyed by the operating system"
        return private if self.private else "a test seed"

    @property
    def composition(self) -> str:
        """The rule by which the stages' epsilons add up."""
        if self.level:
            return (
                "every level is drawn from the one before, so all together cost what the first does"
            )
        apart = "".join(f"; parallel over {', '.join(group)}" for group in self.disjoint)
        if self.sums is not None:
            return (
                "sequential over count columns, levels and stages, parallel over the sums of each "
                f"level, since a person is in one of them{apart}"
            )
        return f"sequential over count columns and stages, parallel over the rows of each{apart}"

    def state(self) -> Receipt:
        """Return the receipt with the statement that follows from its facts."""
        epsilon, delta, outside = self.epsilon, self.delta, self.outside
        statement = Statement(
            promise=self.promise,
            epsilon=float(epsilon),
            epsilon_exact=epsilon,
            delta=float(delta),
            delta_exact=delta,
            multiplier=self.unit.multiplier,
            dp_flavor={
                "name": "Approximate DP" if delta else "Pure DP",
                "data_domain": "tables with these rows and columns and any whole counts of at "
                "least 0",
                "unprotected_quantities": "the number of rows and every column published unchanged"
                + (f"; {outside}" if outside else "")
                + ("; which rows had no count" if self.table.missing else ""),
            },
            privacy_loss=LossStatement(
                privacy_unit=self.unit_name,
                privacy_unit_description=self.unit_moves,
                privacy_parameters={"epsilon": float(epsilon), "delta": float(delta)},
            ),
            model={
                "model_name": "Central",
                "release_type": "Single release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            accounting={
                "composition": self.composition,
                "post_processing": "every step after the noise looks at noisy values only",
            },
            warning=self.warning,
            implementation={"randomness": self.randomness, "float_protection": FLOAT_PROTECTION},
        )
        return structs.replace(self, statement=statement)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole document, JSON-ready."""
        return dict(to_plain(self))

    def to_json(self) -> str:
        """Return the text of ``receipt.json``."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    @classmethod
    def from_dict(cls, data: Any) -> Receipt:
        """Read the facts of a document, and state what follows from them."""
        if not isinstance(data, dict) or data.get("format") != RECEIPT_FORMAT:
            raise PackageError("This is not the receipt of a Tallyveil release.")
        if type(data.get("version")) is not int or data["version"] != 1:
            raise PackageError("The receipt has a version that this program does not read.")
        facts: Receipt = from_plain({k: v for k, v in data.items() if k != "statement"}, cls)
        return facts.state()

    @classmethod
    def read(cls, content: bytes) -> Receipt:
        """Read ``receipt.json``; refuse another form, or a statement that does not follow.

        Another program may write other sentences about the same facts: of what it wrote, numbers
        are compared.
        """
        try:
            data = parse_json(content, by_line=True)
        except (ValueError, RecursionError):
            raise PackageError("The receipt is no JSON that this program reads.") from None
        receipt = cls.from_dict(data)
        if receipt.program.page != fingerprint_page():
            stated: Statement = from_plain(data.get("statement"), Statement)
            expected: Any = receipt.statement
            numbers = {name: getattr(expected, name) for name in NUMBERS}
            loss = structs.replace(
                stated.privacy_loss,
                privacy_parameters=expected.privacy_loss.privacy_parameters,
            )
            words = {
                name: {key: getattr(stated, name).get(key, "") for key in getattr(expected, name)}
                for name in ("dp_flavor", "model", "accounting", "implementation")
            }
            statement = structs.replace(stated, **numbers, **words, privacy_loss=loss)
            receipt = structs.replace(receipt, statement=statement)
        if receipt.to_json().encode() != content:
            raise PackageError("The receipt contradicts itself, or is not in its one form.")
        return receipt


def _find_odd_tables(receipt: Receipt) -> Iterator[str]:
    """Yield contradictions of the table."""
    table, zeros = receipt.table, receipt.zeros
    if len({column.name for column in receipt.columns}) != len(receipt.columns):
        yield "lists a column twice"
    listed = table.row_order == ROW_ORDERS["categories"]
    if table.row_order not in ROW_ORDERS.values():
        yield "states an order of rows that does not exist"
    if table.counted_by and not (listed and table.counted_by == table.published_unchanged):
        yield "counts rows by other columns than it publishes"
    if table.other and not listed:
        yield "names a cell for other categories without any"
    rules = () if zeros is None else zeros.columns
    public = {name for column in receipt.columns for name in column.method.public_columns}
    if not {*public, *rules} <= {*table.published_unchanged}:
        yield "groups rows by a column that is not published unchanged"


def _find_odd_methods(receipt: Receipt) -> Iterator[str]:
    """Yield contradictions of the methods."""
    methods, sums = [column.method for column in receipt.columns], receipt.sums
    first = receipt.method
    if any(method.adds_up != (sums is not None) for method in methods):
        yield "states sums that are not those of its method"
    if any(method.by_group != bool(receipt.strata) for method in methods):
        yield "states strata that are not those of its method"
    if any(bool(method.levels) != bool(receipt.level) for method in methods):
        yield "states a level that is not one of its method"
    if receipt.level > len(first.levels):
        yield "states a level that its ladder has not"
    together = first.adds_up or first.levels or first.by_group
    if together and any(method != first for method in methods):
        yield "states different groups or levels for its columns"
    if sums is not None and isinstance(first, Sums) and not first.fits(sums):
        yield "states sums that its method has not"


def _find_odd_accounts(receipt: Receipt) -> Iterator[str]:
    """Yield contradictions of the account that paid."""
    account, total = receipt.ledger, receipt.composed
    if account is None or account.total_epsilon is None or total is None:
        return
    if len(receipt.stages) > MOST_COMPOSED:  # added up, which is more than composing them
        return
    if float(total) > float(account.total_epsilon) * (1 + ROUND_OFF):
        yield "costs more than all releases of its account together"


def _find_odd_units(receipt: Receipt) -> Iterator[str]:
    """Yield contradictions of the unit of privacy."""
    unit, names = receipt.unit, [column.name for column in receipt.columns]
    counted = bool(receipt.table.counted_by)
    if unit.of_rows != counted or (
        unit.bound == "enforced" and not (counted and unit.kind == "person")
    ):
        yield "states a unit that its table cannot have"
    adding = unit.bound == "stated" and unit.neighbours == "add_remove"
    if unit.one_row and not (adding and unit.contributions > 1):
        yield "states a unit in one row that cannot be"
    apart = not unit.one_row and 1 < unit.multiplier <= MOST_SEPARATE
    if (unit.separate and not apart) or (unit.delta and not unit.separate) or unit.delta >= 1:
        yield "states a unit in different rows that cannot be"
    grouped = [name for group in receipt.disjoint for name in group]
    ordered = all(
        len(group) > 1 and list(group) == [name for name in names if name in group]
        for group in receipt.disjoint
    )
    firsts = [names.index(group[0]) for group in receipt.disjoint if ordered]
    if not ordered or len(set(grouped)) < len(grouped) or firsts != sorted(firsts):
        yield "calls columns disjoint that are not its own"


def promise(
    epsilon: Fraction,
    unit: PrivacyUnit,
    delta: Fraction = Fraction(0),
    outside: str = "",
) -> str:
    """Return the guarantee as a sentence about one unit.

    The factor is e^epsilon, rounded up so that the sentence never promises too much. `outside` is
    what the guarantee does not cover.
    """
    factor = math.exp(min(float(epsilon), 100.0))
    cents = f"{math.ceil(factor * 100) / 100:.2f}".rstrip("0").rstrip(".") if factor < 1e6 else ""
    slack = f", plus at most {shown_rational(delta)} (delta)" if delta else ""
    bound = f"a factor of at most {cents}" if cents else "up to a very large factor"
    return (
        f"{unit.change} changes the probability of any outcome of this release by {bound} "
        f"(epsilon {shown_rational(epsilon)}){slack}. {_judge(epsilon, delta, unit)}"
        + (f" Outside this guarantee: {outside}." if outside else "")
    )


def _judge(epsilon: Fraction, delta: Fraction, unit: PrivacyUnit) -> str:
    """Explain the factor: the smaller it is, the stronger the sentence."""
    kind = unit.kind
    if delta > LARGE_DELTA:
        return (
            f"This is weak protection: with a probability of up to {shown_rational(delta)}, the "
            f"release may show whether that {kind} was counted."
        )
    if epsilon <= 1:
        absent = f"the {kind} not been included"
        if unit.neighbours == "replace_one":
            absent = f"that {kind}'s data been different" if kind == "person" else "it been another"
        return (
            f"Anything an observer could learn about that {kind} from this release, they could "
            f"have learned almost as well had {absent}."
        )
    if epsilon <= WEAK_EPSILON:
        whose = "their data" if kind == "person" else "it"
        return f"What an observer learns about that {kind} may depend on {whose} to this extent."
    return (
        "This is weak protection: an observer who already knows much may learn almost with "
        f"certainty whether that {kind} was counted."
    )


def describe_limit(at_most: str, by_rank: bool) -> str:
    """Describe how a nested column was kept below the column `at_most`."""
    below = f"no row exceeds its released count of {at_most}"
    if by_rank:
        return (
            f"Counts were assigned again so that {below}, with the same distribution if "
            "possible. Rows were ranked by noisy counts of both columns, if there were enough."
        )
    return f"Noisy counts were lowered so that {below}."
