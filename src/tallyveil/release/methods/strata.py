"""Method strata: preserve within public groups of rows, each with its own distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tallyveil.arrays import Integers, Mask, freeze
from tallyveil.errors import TableError
from tallyveil.estimate.histogram import estimate_strata
from tallyveil.estimate.ranks import match_ranks, round_histogram
from tallyveil.release.column import Histogram, Matching, PublishedColumn
from tallyveil.release.methods.base import (
    Check,
    Counts,
    Labels,
    Method,
    Plan,
    Task,
    read_columns,
    require,
)
from tallyveil.release.methods.preserve import Preserve, RankedDraws, draw_ranked
from tallyveil.structs import set_field
from tallyveil.tables.labels import number_together

if TYPE_CHECKING:
    from tallyveil.release.receipt import Receipt
    from tallyveil.sampling.entropy import Entropy
    from tallyveil.tables.table import Table

MOST_STRATA = 1000
"""Each has an estimate; more would take hours."""


class Strata(Method, frozen=True, tag="strata"):
    """Keep the distribution of counts within each stratum, and in the whole table.

    Each row is in one stratum, so all strata together cost one person what one of them costs.

    Attributes
    ----------
    columns : tuple of str
        Public columns whose labels make the strata.
    """

    brief: ClassVar[str] = (
        "noise on every count, then adjusted to keep the distribution in each group"
    )
    words: ClassVar[str] = (
        "Noise was added to every count and, if measured, to the distribution of counts within "
        "each public group of rows. Rows of each group were then ranked by their noisy counts, and "
        "the released counts assigned in that order, so that every group, and the whole table, "
        "follows the estimated distribution."
    )
    steps: ClassVar[tuple[str, ...]] = (
        "Noise was added to every count, and the result kept within the range.",
        "The distribution within each group was estimated from these noisy values alone, the "
        "closer to that of the whole table the more alike groups are, and reconciled with that of "
        "the whole.",
        "Rows of each group were ranked by their noisy counts, ties in random order, and "
        "counts with that distribution were assigned in this order. This step uses no "
        "confidential data.",
    )
    reason: ClassVar[str] = "strata were requested"
    matches: ClassVar[bool] = True
    keeps_distribution: ClassVar[bool] = True
    by_group: ClassVar[bool] = True
    offers_unbiased: ClassVar[bool] = True

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        set_field(self, "columns", read_columns(self.columns, "strata"))
        super().__post_init__()

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns that make the groups."""
        return self.columns

    def group(
        self, labels: Labels, order: Integers | None = None, free: Mask | None = None
    ) -> Integers:
        """Number every row's stratum, in the order of their labels."""
        numbers = number_together([labels.read(name, "strata").codes for name in self.columns])
        if int(numbers.max()) >= MOST_STRATA:
            raise TableError(f"There are more than {MOST_STRATA:,} strata: name coarser columns.")
        return freeze(numbers)

    def stages(self, task: Task) -> list[tuple[str, Fraction]]:
        """Share the budget as `preserve` does, as if there were one stratum."""
        return Preserve().stages(task)

    def draw(self, plan: Plan, counts: Counts, entropy: Entropy) -> tuple[RankedDraws, ...]:
        """Draw noisy rows and a noisy cumulative histogram of every stratum."""
        return tuple(draw_ranked(plan, counts[rows], entropy) for rows in _split(plan.task))

    def publish(
        self, plan: Plan, draws: tuple[RankedDraws, ...], entropy: Entropy
    ) -> tuple[PublishedColumn, ...]:
        """Estimate the histograms, round them, and match ranks within every stratum."""
        private = [part.private for part in draws]
        cells, histograms = estimate_strata(private)
        matched = []
        for stratum, histogram in zip(private, histograms, strict=True):
            order = entropy.permutation(stratum.records)
            rounded = round_histogram(histogram, stratum.records)
            matched.append(match_ranks(stratum, cells, rounded, order))
        counts = _join(plan.task, matched)
        values = _join(plan.task, [stratum.values for stratum in private])
        unclamped = [part.noisy for part in draws if part.noisy is not None]
        noisy = _join(plan.task, unclamped) if unclamped else None
        figures = Histogram.count(counts), Matching.of(values, counts)
        return (PublishedColumn(counts, *figures, noisy, values),)

    def list_checks(self, folder: Path, read: Callable[[], Table], receipt: Receipt) -> list[Check]:
        """List the check that the stated strata are those of the data."""

        def check() -> str:
            strata = int(self.group(Labels(read())).max()) + 1
            require(strata == receipt.strata, "the strata of the data are not the stated ones")
            return f"{strata} strata by {', '.join(self.columns)}"

        return [("strata", check)]


def _split(task: Task) -> list[Mask]:
    """Mark the free rows of every stratum that has some."""
    strata = task.groups if task.free is None else task.groups[task.free]
    return [strata == number for number in np.unique(strata)]


def _join(task: Task, parts: Sequence[Counts]) -> Integers:
    """Join the values of all strata's rows, in the order of the table."""
    masks = _split(task)
    rows = np.empty(len(masks[0]), dtype=np.int64)
    for mask, values in zip(masks, parts, strict=True):
        rows[mask] = values
    return freeze(rows)
