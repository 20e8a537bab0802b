"""What a receipt says of the parts of a release: columns, the table, the ledger."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tallyveil.arrays import Integers
from tallyveil.budget.accounting import ACCOUNTINGS, SMALLEST_DELTA
from tallyveil.budget.entries import Entry
from tallyveil.documents.group_record import GroupRecord, read_groups
from tallyveil.documents.stages import StageRecord, amount
from tallyveil.exact import LARGEST_EPSILON
from tallyveil.release.column import Histogram, Matching
from tallyveil.release.methods.base import DISTRIBUTION, Method
from tallyveil.release.methods.margins import describe_missed
from tallyveil.release.methods.preserve import LARGEST_TRADEOFF, describe_tradeoff, moves_counts
from tallyveil.release.methods.registry import find_kind
from tallyveil.release.methods.sums import MOST_STAGES
from tallyveil.release.nested import describe_limit
from tallyveil.request.budget_split import PLAIN, Tradeoff
from tallyveil.request.fields import read_amount, read_text, read_texts, read_whole, refusal
from tallyveil.request.ranges import NO_UPPER, OPEN_RANGE, SIGNED_RANGE

__all__ = [
    "ColumnRecord",
    "LedgerRecord",
    "LevelRecord",
]

ONLY_ROWS = (
    "Single counts were protected with noise. Sums that are not exact were added up from them: at "
    "this epsilon noise of their own would not make them more accurate. The published counts add "
    "up to the published sums."
)

TERMS = ("accounting", "total_epsilon", "total_delta")
"""What the record says of an account that does not simply add."""

DIGEST = re.compile("[0-9a-f]{64}")

DISTRIBUTION_STEP = (
    "Noise was added to the table's cumulative histogram (how many rows have at most j)."
)


@dataclass(frozen=True)
class ColumnRecord:
    """What the receipt says of one column; `accuracy` is that of `Accuracy.to_dict`."""

    name: str
    upper: int
    method: str
    why: str
    epsilon: Fraction
    stages: tuple[StageRecord, ...]
    loss: str
    properties: tuple[str, ...]
    solver: str
    accuracy: Mapping[str, Any]
    histogram: Histogram
    spread: tuple[float, ...] | None
    matching: Matching | None = None
    total: Mapping[str, float] | None = None
    unbiased: Mapping[str, Any] | None = None
    at_most: str = ""
    """The column whose published count no row exceeds, where columns are nested."""
    tradeoff: Tradeoff | None = None
    """What one unit of distribution error is worth in errors of counts, where it was given."""
    optimality: Mapping[str, float] | None = None
    """Expected errors, and the least that any private release could have, where known."""
    groups: tuple[GroupRecord, ...] = ()
    """Totals of the groups that public columns make."""
    missed: tuple[int, ...] | None = None
    """By how much each margin is missed at most; None without margins."""

    @property
    def kind(self) -> type[Method]:
        """What the method is; a `PackageError` if there is none of this name."""
        return find_kind(self.method)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the released table that hold what was drawn."""
        if self.unbiased is None or self.signed:
            return (self.name,)
        return self.name, self.drawn_column

    @property
    def drawn_column(self) -> str:
        """The column that holds every row's draw before the clamp, if one does."""
        return "" if self.unbiased is None else read_text(self.unbiased["column"])

    @property
    def words(self) -> str:
        """What was done to every count, in a sentence."""
        if self.signed:
            return (
                "Two-sided geometric noise was added to every count, and what came out is "
                "published with its sign."
            )
        if self.kind.adds_up and len(self.stages) == 1:
            return ONLY_ROWS
        return self.kind.words

    @property
    def drawn_variance(self) -> float:
        """The variance of those draws; 0 if none are published."""
        return 0.0 if self.unbiased is None else float(self.unbiased["variance"])

    @property
    def signed(self) -> bool:
        """Whether the column itself holds the draws, negative ones too."""
        return self.drawn_column == self.name

    @property
    def moved(self) -> bool:
        """Whether counts were changed after they were drawn, or handed out by rank."""
        return bool(self.at_most) or moves_counts(self.tradeoff)

    @property
    def hides_parts(self) -> str:
        """Why published values do not tell the sums of groups, in words; empty where they do."""
        if self.unbiased is not None:
            return ""
        if self.kind.by_group:
            return (
                "they were handed out within strata, so the same value tells different things in "
                "different groups"
            )
        if self.at_most:
            return f"keeping them below {self.at_most} moved some groups more than others"
        return ""

    @property
    def bounded(self) -> bool:
        """Whether there was an upper bound; without one, only the ceiling `NO_UPPER` holds."""
        return self.upper != NO_UPPER

    @property
    def is_best(self) -> bool:
        """Whether the counts themselves are the best guess for every row."""
        return self.tradeoff == 0

    @property
    def measures_distribution(self) -> bool:
        """Whether a stage measured the distribution."""
        return any(stage.kind == DISTRIBUTION for stage in self.stages)

    @property
    def range_words(self) -> str:
        """The possible counts, in words."""
        if self.bounded:
            return f"0 to {self.upper:,}"
        return SIGNED_RANGE if self.signed else OPEN_RANGE

    @property
    def counts_stage(self) -> StageRecord:
        """The stage that drew the counts."""
        return self.stages[-1]

    @property
    def steps(self) -> tuple[str, ...]:
        """What was done to the column, in sentences."""
        steps = (*((DISTRIBUTION_STEP,) if self.measures_distribution else ()), *self.kind.steps)
        if self.missed is not None:
            steps = *steps, describe_missed(self.missed)
        own = (describe_limit(self.at_most, self.kind.matches),) if self.at_most else ()
        return *steps, *own, *describe_tradeoff(self.tradeoff)

    @property
    def prior(self) -> str:
        """The prior that a design minimised the loss under."""
        return "uniform" if self.kind.designed else "not used"

    def is_made_from(self, draws: Integers, counts: Integers) -> bool:
        """Whether `counts` are what the draws before the clamp were published as."""
        clamped = draws.clip(0, self.upper)
        if self.matching is None:
            return bool((clamped == counts).all())
        return Matching.of(clamped, counts) == self.matching

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name,
            "upper": self.upper,
            "method": self.method,
            "why": self.why,
            **amount(self.epsilon),
            "stages": [stage.to_dict() for stage in self.stages],
            **self.counts_stage.files(),
            "loss": self.loss,
            "prior": self.prior,
            "properties": list(self.properties),
            "solver": self.solver,
            "accuracy": dict(self.accuracy),
            "distribution": {
                "counts": list(self.histogram.counts),
                "rows": list(self.histogram.rows),
                "spread": None if self.spread is None else list(self.spread),
            },
            "matching": None if self.matching is None else self.matching.to_dict(),
            "total": None if self.total is None else dict(self.total),
            **({} if self.optimality is None else {"optimality": dict(self.optimality)}),
            "groups": [group.to_dict() for group in self.groups],
            "unbiased": None if self.unbiased is None else dict(self.unbiased),
            **({"at_most": self.at_most} if self.at_most else {}),
            **({} if self.missed is None else {"missed": list(self.missed)}),
            **({} if self.tradeoff is None else {"tradeoff": str(self.tradeoff)}),
            "post_processing": list(self.steps),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ColumnRecord:
        """The record that `to_dict` wrote."""
        upper = read_whole(data["upper"], 1, NO_UPPER)
        spread, matching = data["distribution"]["spread"], data.get("matching")
        tradeoff = data.get("tradeoff")
        if not 1 <= len(data["stages"]) <= MOST_STAGES:
            raise refusal("a few stages for each column")
        return cls(
            read_text(data["name"]),
            upper,
            read_text(data["method"]),
            read_text(data["why"]),
            read_amount(data["epsilon_exact"]),
            tuple(StageRecord.from_dict(stage) for stage in data["stages"]),
            read_text(data["loss"]),
            read_texts(data["properties"]),
            read_text(data["solver"]),
            {**data["accuracy"]},
            _read_histogram(data["distribution"], upper),
            None if spread is None else tuple(map(float, spread)),
            None if matching is None else _read_matching(matching, upper),
            _read_figures(data["total"]),
            _read_unbiased(data["unbiased"]),
            read_text(data.get("at_most", "")),
            None if tradeoff is None else _read_tradeoff(tradeoff),
            _read_figures(data.get("optimality")),
            read_groups(data["groups"]),
            _read_missed(data["missed"]) if data["method"] == "margins" else None,
        )


@dataclass(frozen=True)
class LevelRecord:
    """Which level of a ladder this is, and what the levels are, least private first."""

    level: int
    epsilons: tuple[Fraction, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"level": self.level, "epsilons": [str(epsilon) for epsilon in self.epsilons]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LevelRecord:
        """The record that `to_dict` wrote."""
        epsilons = tuple(read_amount(text) for text in data["epsilons"])
        return cls(read_whole(data["level"], 1, len(epsilons)), epsilons)


@dataclass(frozen=True)
class LedgerRecord:
    """The ledger's entry that paid for the release.

    Where debits do not simply add up, `accounting` says how they do, and the totals what all
    releases of the dataset keep together.
    """

    dataset: str
    entry: int
    digest: str
    accounting: str = "pure"
    total_epsilon: Fraction = Fraction(0)
    total_delta: Fraction = Fraction(0)

    @classmethod
    def of(cls, entry: Entry) -> LedgerRecord:
        """What a receipt says of a ledger's entry."""
        terms = {name: entry.body[name] for name in TERMS if name in entry.body}
        head = {"dataset": entry.dataset, "entry": entry.sequence, "digest": entry.digest}
        return cls.from_dict(head | terms)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        head = {"dataset": self.dataset, "entry": self.entry, "digest": self.digest}
        terms = {name: str(getattr(self, name)) for name in TERMS}
        return head if self.accounting == "pure" else head | terms

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LedgerRecord:
        """Read the record of a receipt."""
        head = (
            read_text(data["dataset"]),
            read_whole(data["entry"], 1),
            _read_digest(data["digest"]),
        )
        if TERMS[0] not in data:
            return cls(*head)
        accounting = read_text(data["accounting"])
        if accounting not in ACCOUNTINGS[1:]:
            raise refusal("a way of accounting")
        epsilon, delta = read_amount(data["total_epsilon"]), read_amount(data["total_delta"])
        if epsilon > LARGEST_EPSILON or not SMALLEST_DELTA <= delta < 1:
            raise refusal("a total budget")
        return cls(*head, accounting, epsilon, delta)


def _read_wholes(values: Any, least: int, most: int = 2**62) -> tuple[int, ...]:
    return tuple(read_whole(value, least, most) for value in values)


def _read_figures(values: Any) -> dict[str, float] | None:
    return None if values is None else {**values}


def _read_unbiased(values: Any) -> dict[str, Any] | None:
    if values is None:
        return None
    return {**values, "column": read_text(values["column"]), "variance": float(values["variance"])}


def _read_missed(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not values:
        raise refusal("by how much each margin is missed")
    return _read_wholes(values, 0)


def _read_histogram(data: Mapping[str, Any], upper: int) -> Histogram:
    counts, rows = _read_wholes(data["counts"], 0, upper), _read_wholes(data["rows"], 1)
    if not counts or list(counts) != sorted(set(counts)) or len(counts) != len(rows):
        raise refusal("every count that occurs, once")
    return Histogram(counts, rows)


def _read_matching(data: Mapping[str, Any], upper: int) -> Matching:
    pairs = {name: _read_wholes(data[name], 0, upper) for name in ("draws", "counts")}
    return Matching.from_dict({**pairs, "rows": _read_wholes(data["rows"], 1)})


def _read_tradeoff(value: Any) -> Tradeoff:
    if value == PLAIN:
        return PLAIN
    tradeoff = Fraction(0) if value == "0" else read_amount(value)
    if tradeoff > LARGEST_TRADEOFF:
        raise refusal("a tradeoff")
    return tradeoff


def _read_digest(value: Any) -> str:
    if not DIGEST.fullmatch(read_text(value)):
        raise refusal("a SHA-256 digest")
    return str(value)
