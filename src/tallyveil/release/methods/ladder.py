"""Method ladder: several privacy levels, each drawn from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from tallyveil.arrays import freeze
from tallyveil.certified.base import Certified
from tallyveil.certified.ladder import Ladder as CertifiedLadder
from tallyveil.certified.ladder import check_levels
from tallyveil.errors import ArgumentError
from tallyveil.release.column import Histogram, PublishedColumn
from tallyveil.release.methods.base import (
    LEAST_EPSILON,
    MOST_DIGITS,
    Counts,
    Method,
    Plan,
    Task,
    require,
)
from tallyveil.structs import set_field

if TYPE_CHECKING:
    from tallyveil.release.receipt import ColumnRecord, Receipt
    from tallyveil.sampling.entropy import Entropy


class Ladder(Method, frozen=True, tag="ladder"):
    """Release several privacy levels; all together cost what the least private one does.

    Attributes
    ----------
    epsilons : tuple of str
        The epsilon of each level as an exact number, strictly decreasing.
    """

    brief: ClassVar[str] = "noise on every count, less private levels first"
    words: ClassVar[str] = (
        "Every count was replaced by a random one near it, at several levels of privacy at once, "
        "each drawn from the one before. These are the counts of one level."
    )
    steps: ClassVar[tuple[str, ...]] = (
        "Counts of the least private level were drawn from the true ones, and those of every "
        "further level from the level before, never from the true ones again.",
    )
    reason: ClassVar[str] = "several privacy levels were requested"
    takes: ClassVar[tuple[str, ...]] = ()

    epsilons: Any

    def __post_init__(self) -> None:
        parts = self.epsilons
        levels = check_levels(parts.split(",") if isinstance(parts, str) else parts)
        short = all(level.denominator < 10**MOST_DIGITS for level in levels)
        if levels[-1] < LEAST_EPSILON or not short:
            rule = f"be at least {float(LEAST_EPSILON):g}, in at most {MOST_DIGITS} digits"
            raise ArgumentError("epsilons", rule)
        set_field(self, "epsilons", tuple(map(str, levels)))
        super().__post_init__()

    @property
    def levels(self) -> tuple[Fraction, ...]:
        """The epsilons as numbers."""
        return tuple(map(Fraction, self.epsilons))

    def certify(self, task: Task, epsilon: Fraction) -> Certified:
        """Certify every level given the one before."""
        return CertifiedLadder(task.query, self.levels)

    def draw(self, plan: Plan, counts: Counts, entropy: Entropy) -> list[Counts]:
        """Draw every row once for each level; only the first draw looks at the counts."""
        ladder: Any = plan.counts_stage.certified
        entropy.rekey()
        drawn: list[Counts] = ladder.draw_positions(counts, entropy)
        return drawn

    def publish(
        self, plan: Plan, draws: list[Counts], entropy: Entropy
    ) -> tuple[PublishedColumn, ...]:
        """Publish the draws themselves, one column for each level."""
        return tuple(PublishedColumn(freeze(level), Histogram.count(level)) for level in draws)

    def check_proofs(
        self, column: ColumnRecord, certified: Sequence[Certified], receipt: Receipt
    ) -> None:
        """Raise a `PackageError` unless it was drawn from the levels up to that of the receipt."""
        super().check_proofs(column, certified, receipt)
        last = certified[-1]
        right = isinstance(last, CertifiedLadder) and last.epsilons == self.levels[: receipt.level]
        require(right, f"{column.name} was drawn at other levels than the receipt says")
