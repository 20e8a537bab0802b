"""Method geometric: two-sided geometric noise on every count.

With a delta the noise is canonical, which has no far tails; where all contributions of one unit
are in one row it is staircase noise, made for all of them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tallyveil.certified.base import Certified
from tallyveil.certified.certify import certify
from tallyveil.errors import UsageError
from tallyveil.exact import LARGEST_EPSILON
from tallyveil.mechanisms.additive import count_moved_by
from tallyveil.query import Query
from tallyveil.release.accuracy import FAR, Figures, Outcome, describe_drawn, signed_accuracy
from tallyveil.release.column import NO_UPPER, WIDE
from tallyveil.release.methods.base import LIMITED_KEYS, Method, Plan, Task, require
from tallyveil.release.records import to_plain

if TYPE_CHECKING:
    from tallyveil.release.receipt import ColumnRecord, Receipt

STAIRCASE_FROM, WIDEST_STAIRCASE = 2, 1000
"""Staircase noise is used from this epsilon of all moves together, and up to this upper bound."""


class Geometric(Method, frozen=True, tag="geometric"):
    """Add two-sided geometric noise to every count.

    Attributes
    ----------
    signed : bool
        Release counts as drawn, negative ones too: each value and each sum of values is then right
        on average. There is no upper bound then.
    """

    brief: ClassVar[str] = "noise on every count"
    words: ClassVar[str] = (
        "Every count was replaced by a random one near it (two-sided geometric noise, kept "
        "within the range)."
    )
    good_for: ClassVar[str] = "Reading single counts, with an accuracy that is promised beforehand."
    widest: ClassVar[int] = NO_UPPER
    takes: ClassVar[tuple[str, ...]] = LIMITED_KEYS
    offers_unbiased: ClassVar[bool] = True

    signed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.signed and self.unbiased:
            raise UsageError("Signed counts are unbiased already: leave out 'unbiased'.")

    def choose(self, task: Task, why: str) -> tuple[Method, str]:
        """Choose staircase noise for all moves of a unit together, or plain noise.

        The former errs less, but is not made for wide ranges, nor at a small or vast epsilon.
        """
        if not task.unit.one_row:
            return self, why
        if task.upper > WIDEST_STAIRCASE:
            needs = f"an upper bound of at most {WIDEST_STAIRCASE:,}"
        elif not STAIRCASE_FROM <= task.epsilon * task.unit.multiplier <= LARGEST_EPSILON:
            needs = f"an epsilon of {STAIRCASE_FROM} to {LARGEST_EPSILON} for all of them"
        else:
            return Staircase(unbiased=self.unbiased), why
        return self, f"{why}; noise made for them together needs {needs}"

    def plan(self, task: Task, why: str = "") -> Plan:
        """Certify everything and draw nothing."""
        if self.signed and task.upper != NO_UPPER:
            raise UsageError(
                "Signed counts are drawn without an upper bound, row by row: leave 'upper' out, "
                "and use the method geometric."
            )
        return super().plan(task, why)

    def preview(self, plan: Plan) -> dict[str, Any]:
        """Describe the accuracy of the column; JSON-ready."""
        if not self.signed:
            return super().preview(plan)
        accuracy = signed_accuracy(plan.counts_stage.certified.exact_epsilon, FAR)
        return {"accuracy": to_plain(accuracy.record())}

    def note(self, plans: Sequence[Plan]) -> str:
        """Name columns whose range is too wide for staircase noise."""
        tasks = [plan.task for plan in plans if plan.task.unit.one_row]
        wide = [task.name for task in tasks if task.upper > WIDEST_STAIRCASE]
        if not wide:
            return ""
        return (
            f"unit.spread='one_row' gains nothing for {', '.join(wide)}: the more accurate noise "
            f"that it allows needs an 'upper' of at most {WIDEST_STAIRCASE:,}. Plain noise is used."
        )


class Canonical(Geometric, frozen=True, tag="canonical"):
    """Add canonical noise, which has a delta and no far tails."""

    brief: ClassVar[str] = "noise without far tails on every count"
    words: ClassVar[str] = (
        "Every count was replaced by a random one near it (canonical noise, which has no far "
        "tails, kept inside the range)."
    )
    widest: ClassVar[int] = WIDE
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "budget.delta")
    offers_unbiased: ClassVar[bool] = False
    with_delta: ClassVar[bool] = True

    def certify(self, task: Task, epsilon: Fraction) -> Certified:
        """Certify the mechanism's table of probabilities."""
        from tallyveil.mechanisms.geometric import canonical

        return certify(canonical(task.query, epsilon, task.delta))


class Staircase(Geometric, frozen=True, tag="staircase"):
    """Add staircase noise, certified for all moves of one unit in one row."""

    brief: ClassVar[str] = "noise made for all contributions of one unit to a row together"
    words: ClassVar[str] = (
        "Every count was replaced by a random one near it (staircase noise, made for all "
        "contributions of one unit to a row together, and kept inside the range)."
    )
    widest: ClassVar[int] = WIDE
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "unit.spread")
    offers_unbiased: ClassVar[bool] = False
    together: ClassVar[bool] = True

    def certify(self, task: Task, epsilon: Fraction) -> Certified:
        """Certify the mechanism's table of probabilities for all moves."""
        from tallyveil.mechanisms.additive import whole_staircase

        moves = task.unit.multiplier
        return certify(whole_staircase(task.upper, moves, epsilon * moves))

    def describe(self, outcome: Outcome) -> Figures:
        """Work out the figures of a column, without bounds, which are for a move by one."""
        return describe_drawn(outcome, bounded=False)

    def check_proofs(
        self, column: ColumnRecord, certified: Sequence[Certified], receipt: Receipt
    ) -> None:
        """Raise a `PackageError` unless the unit's moves are in one row."""
        fits = receipt.unit.one_row
        require(fits, f"{column.name} has noise for one row, and its unit may be in several")
        super().check_proofs(column, certified, receipt)

    def find_query(self, column: ColumnRecord, receipt: Receipt) -> Query:
        """Return the query where one unit moves one count by all its moves."""
        return count_moved_by(column.upper, receipt.unit.multiplier)
