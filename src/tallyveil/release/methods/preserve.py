"""Method preserve: noisy rows are ranked and receive counts with the estimated distribution.

The tradeoff decides which share of epsilon the distribution gets and, below 1, how far counts
follow the best guess for their row instead of the rank that keeps the distribution; the frontier
between the two is in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallyveil.arrays import Integers, count_values, freeze
from tallyveil.budget.entries import shown_rational
from tallyveil.certified.mechanism import CertifiedNoise
from tallyveil.errors import ArgumentError
from tallyveil.estimate.draws import PrivateDraws, growing_thresholds
from tallyveil.estimate.histogram import estimate_histogram
from tallyveil.estimate.ranks import find_row_limits, hand_out_ranks, keep_error, round_histogram
from tallyveil.exact import exact_rational
from tallyveil.release.accuracy import predict_release
from tallyveil.release.column import NO_UPPER, WIDE, Histogram, Matching, PublishedColumn
from tallyveil.release.methods.base import (
    COUNTS,
    DISTRIBUTION,
    MOST_DIGITS,
    Counts,
    Method,
    Plan,
    RowDraws,
    Task,
    draw_rows,
)
from tallyveil.release.split import PLAIN, Tradeoff, choose_split
from tallyveil.structs import set_field

if TYPE_CHECKING:
    from tallyveil.sampling.entropy import Entropy

PRIORITIES: Mapping[str, Tradeoff | None] = {
    "distribution": None,
    "balanced": PLAIN,
    "counts": Fraction(1, 4),
}
"""The tradeoffs that have names; None keeps exactly the estimated distribution."""

LARGEST_TRADEOFF = 1000
BEST_USE = "best guess for each row; not to be summed, averaged or tabulated"

ROWS_PER_COUNT = 5
"""Rows for each possible count that a plan without a table assumes."""


@dataclass(frozen=True, eq=False)
class RankedDraws:
    """A draw for every row, a noisy cumulative histogram, and rows before the clamp if kept."""

    private: PrivateDraws
    noisy: Integers | None = None


class Preserve(Method, frozen=True, tag="preserve"):
    """Keep the distribution of counts.

    Attributes
    ----------
    priority : str or number
        What matters most: "distribution", "balanced" (errors of cells are about those of plain
        noise) or "counts"; or how much error of cells one unit of distribution error is worth.
        At 0 each row gets its best guess; from 1 on counts have exactly the estimated
        distribution.
    """

    brief: ClassVar[str] = "noise on every count, then adjusted to keep the distribution of counts"
    words: ClassVar[str] = (
        "Noise was added to every count and, if measured, to the distribution of counts. Rows were "
        "then ranked by their noisy counts, and the released counts assigned in that order, so "
        "that the table follows the estimated distribution."
    )
    steps: ClassVar[tuple[str, ...]] = (
        "Noise was added to every count, and the result kept within the range.",
        "The distribution of counts was estimated from these noisy values alone.",
        "Rows were ranked by their noisy counts, ties in random order, and counts with "
        "exactly that distribution were assigned in this order. This step uses no "
        "confidential data.",
    )
    good_for: ClassVar[str] = (
        "Maps, histograms and models of the whole table: the table keeps its shape."
    )
    matches: ClassVar[bool] = True
    keeps_distribution: ClassVar[bool] = True
    widest: ClassVar[int] = NO_UPPER
    takes: ClassVar[tuple[str, ...]] = ("epsilon", "counts.nested")
    offers_unbiased: ClassVar[bool] = True

    priority: str | int | float = "distribution"

    def __post_init__(self) -> None:
        set_field(self, "priority", read_priority(self.priority))
        super().__post_init__()

    @property
    def tradeoff(self) -> Tradeoff | None:
        """The priority as a number, `PLAIN`, or None for the whole distribution."""
        name = str(self.priority)
        return PRIORITIES[name] if name in PRIORITIES else Fraction(name)

    def stages(self, task: Task) -> list[tuple[str, Fraction]]:
        """List the distribution, where it is worth a share, and the counts."""
        cells = count_cells(task.upper)
        records = ROWS_PER_COUNT * cells if task.rows is None else task.rows
        split = choose_split(self.tradeoff, task.epsilon, records=records, size=cells)
        first = [(DISTRIBUTION, split.epsilon1)] if split.epsilon1 else []
        return [*first, (COUNTS, split.epsilon2)]

    def preview(self, plan: Plan) -> dict[str, Any]:
        """Describe the accuracy of the draws and, where rows are known, of published counts."""
        figures, rows = super().preview(plan), plan.task.rows
        if rows is None:
            return figures
        part = plan.counts_stage.certified.exact_epsilon
        cells = count_cells(plan.task.upper)
        return {**figures, "prediction": predict_release(plan.epsilon, part, rows, cells)}

    def draw(self, plan: Plan, counts: Counts, entropy: Entropy) -> RankedDraws:
        """Draw every row, and a noisy cumulative histogram."""
        return draw_ranked(plan, counts, entropy)

    def publish(
        self, plan: Plan, draws: RankedDraws, entropy: Entropy
    ) -> tuple[PublishedColumn, ...]:
        """Estimate the histogram, round it, and match ranks."""
        private, tradeoff = draws.private, self.tradeoff
        estimate = estimate_histogram(private)
        histogram = round_histogram(estimate.histogram, private.records)
        counts = hand_out_ranks(private, estimate.cells, histogram, entropy)
        exact = estimate.cells.single and not self.moves_counts
        if isinstance(tradeoff, str):
            counts = keep_error(private, estimate, counts, plan.epsilon, entropy)
        elif tradeoff is not None and self.moves_counts:
            counts = counts.clip(*find_row_limits(private, estimate, float(tradeoff)))
        counts = freeze(counts)
        published = Histogram.of(histogram) if exact else Histogram.count(counts)
        matching = Matching.of(private.values, counts)
        column = PublishedColumn(counts, published, matching, draws.noisy, private.values)
        return (column,)


def draw_ranked(plan: Plan, counts: Counts, entropy: Entropy) -> RankedDraws:
    """Draw every row, then the cumulative histogram at every count or at public thresholds.

    One person's only row is in one of each, so both cost one person what one row of them costs.
    """
    entropy.rekey()
    rows = draw_rows(plan, counts, entropy)
    return draw_distribution(plan, rows, tally_counts(plan, counts), entropy)


def tally_counts(plan: Plan, counts: Counts) -> Integers | None:
    """Count what the distribution is made from; counts of parts of a table add up.

    The histogram of true counts or, in a wide range, how many are at most each public threshold;
    None where the distribution is not drawn.
    """
    if plan.find(DISTRIBUTION) is None:
        return None
    thresholds = _list_thresholds(plan.task.upper)
    if thresholds is None:
        return count_values(counts, plan.task.upper + 1)
    return np.searchsorted(np.sort(counts), thresholds, side="right")


def draw_distribution(
    plan: Plan, rows: RowDraws, tally: Integers | None, entropy: Entropy
) -> RankedDraws:
    """Add the noisy cumulative histogram to the draws of all rows, from what `tally_counts` saw."""
    thresholds, noise = _list_thresholds(plan.task.upper), plan.find(DISTRIBUTION)
    totals, epsilon1 = None, Fraction(0)
    if noise is not None and tally is not None:
        epsilon1 = noise.exact_epsilon
        if thresholds is None:
            totals = noisy_cumulative(tally, noise, entropy)
        else:
            totals = freeze(noise.release(tally, entropy))
    epsilon2, size = plan.counts_stage.certified.exact_epsilon, plan.task.upper + 1
    private = PrivateDraws(freeze(rows.values), epsilon2, totals, epsilon1, size, thresholds)
    return RankedDraws(private, rows.noisy)


def _list_thresholds(upper: int) -> Integers | None:
    """Return the public thresholds of a wide range; None where every count is one."""
    return growing_thresholds(upper) if upper > WIDE else None


def noisy_cumulative(histogram: Integers, noise: CertifiedNoise, entropy: Entropy) -> Integers:
    """Add certified noise to the cumulative histogram C_j = #{rows with count <= j}, j < n - 1.

    A count that goes from i to i+1 lowers C_i by one and leaves every other C_j unchanged. So
    one person moves one entry by one, which is what the noise is certified for. So it is
    with any other set of public thresholds: a count that moves by one crosses one at most.
    """
    totals = np.cumsum(histogram)[:-1]
    return freeze(np.asarray(noise.release(totals, entropy))) if len(totals) else totals


def count_cells(upper: int) -> int:
    """Count the cells of the distribution: one for each count, or for each public threshold.

    >>> count_cells(20), count_cells(10**9)
    (21, 256)
    """
    return len(growing_thresholds(upper)) + 1 if upper > WIDE else upper + 1


def describe_tradeoff(tradeoff: Tradeoff | None) -> tuple[str, ...]:
    """Describe how counts were moved at a tradeoff below 1, as a step of the page."""
    if isinstance(tradeoff, str):
        step = (
            "Where such counts were expected to have a larger error than plain noise at the same "
            "epsilon, those far from their row's noisy count were moved towards it, the least "
            "likely first, until the expected error was as small."
        )
        return (step,)
    if tradeoff is None or tradeoff >= 1:
        return ()
    share = shown_rational(tradeoff)
    part = f"the central part, of probability {share}," if tradeoff else "the middle"
    step = (
        f"Where such a count lay outside {part} of its distribution given the row's noisy count, "
        "it was moved to the nearest end. The table therefore follows the estimated distribution "
        "in part only, and single counts are more accurate."
    )
    return (step,)


def show_tradeoff(tradeoff: Tradeoff) -> str:
    """Write a tradeoff as a page shows it."""
    if isinstance(tradeoff, str):
        return "the largest at which errors of counts are those of plain noise at most"
    return shown_rational(tradeoff)


def read_priority(priority: str | int | float | Fraction) -> str:
    """Return a priority in its one form: a name, or an exact number as text.

    >>> read_priority(0.25), read_priority("balanced")
    ('1/4', 'balanced')
    """
    names = ", ".join(PRIORITIES)
    if isinstance(priority, str) and priority in PRIORITIES:
        return priority
    if isinstance(priority, str) and not any(symbol.isdigit() for symbol in priority):
        raise ArgumentError("priority", f"be one of {names}, or a number", priority)
    tradeoff = exact_rational(priority, "priority")
    if not 0 <= tradeoff <= LARGEST_TRADEOFF or tradeoff.denominator >= 10**MOST_DIGITS:
        rule = f"be one of {names}, or lie in 0..{LARGEST_TRADEOFF} in at most {MOST_DIGITS} digits"
        raise ArgumentError("priority", rule, priority)
    return str(tradeoff)
