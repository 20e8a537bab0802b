"""The methods of release by name, and what everybody but their draws must know of each.

How a method draws is in `tallyveil.plans.methods`, what it draws from in
`tallyveil.plans.plan`. Requests, receipts, pages and checks ask here instead of comparing names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tallyveil.errors import PackageError

__all__ = ["ASKED_FOR", "COUNTS", "DISTRIBUTION", "KINDS", "MethodKind", "find_kind"]

DISTRIBUTION, COUNTS = "distribution", "counts"
"""The kinds of stages that spend."""


@dataclass(frozen=True)
class MethodKind:
    """What a method is, in words and in facts.

    Attributes
    ----------
    words : str
        What was done, for the methodology page.
    steps : tuple of str
        What was done, sentence by sentence, where `words` do not say it all.
    asked_for : bool
        Whether a publisher can ask for it by name.
    keeps_distribution : bool
        Whether ranks are matched to an estimated distribution after drawing.
    designed : bool
        Whether it minimises a loss and keeps properties that the publisher names.
    promises_accuracy : bool
        Whether an accuracy for every true count can be promised before anything is drawn.
    levels : bool
        Whether it publishes several privacy levels.
    adds_up : bool
        Whether it measures the levels of a hierarchy and publishes their sums.
    together : bool
        Whether it is certified for all moves of one unit together, which are in one row.
    by_group : bool
        Whether ranks are matched within public groups, so that a count tells another draw in each.
    """

    words: str
    steps: tuple[str, ...] = ()
    asked_for: bool = True
    keeps_distribution: bool = False
    designed: bool = False
    promises_accuracy: bool = False
    levels: bool = False
    adds_up: bool = False
    together: bool = False
    by_group: bool = False

    @property
    def matches(self) -> bool:
        """Whether rows are given other counts than they drew."""
        return self.keeps_distribution or self.adds_up


SUM_STEPS = (
    "Noise was added to every count and to the sums of every level that is worth its cost.",
    "All of them were combined into the best unbiased estimate that adds up.",
    "From the grand total down, sums were made whole numbers of at least 0 that add up exactly.",
)

KINDS: Mapping[str, MethodKind] = {
    "preserve": MethodKind(
        "Individual counts were protected with noise, and so was all that was learnt of the "
        "table's distribution of counts. Rows were then ranked by their noisy counts, and the "
        "published counts handed out in that order so that the table follows the protected "
        "distribution.",
        (
            "Noise was added to every count, and the result kept inside the range.",
            "From what was drawn, and nothing else, the distribution of counts was estimated.",
            "Rows were ranked by their noisy counts, ties in random order, and counts with "
            "exactly that distribution were handed out in this order. This step looks at no "
            "confidential value.",
        ),
        keeps_distribution=True,
    ),
    "strata": MethodKind(
        "Individual counts were protected with noise, and so was all that was learnt of their "
        "distribution within each public group of rows. Rows of each group were then ranked by "
        "their noisy counts, and the published counts handed out in that order so that every "
        "group, and the whole table, follows the protected distribution.",
        (
            "Noise was added to every count, and the result kept inside the range.",
            "From what was drawn, and nothing else, the distribution within each group was "
            "estimated, the nearer to that of the whole table the more alike groups are, and "
            "reconciled with that of the whole.",
            "Rows of each group were ranked by their noisy counts, ties in random order, and "
            "counts with that distribution were handed out in this order. This step looks at no "
            "confidential value.",
        ),
        asked_for=False,
        keeps_distribution=True,
        by_group=True,
    ),
    "geometric": MethodKind(
        "Every count was replaced by a random one near it (two-sided geometric noise, kept "
        "inside the range).",
        promises_accuracy=True,
    ),
    "canonical": MethodKind(
        "Every count was replaced by a random one near it (canonical noise, which has no far "
        "tails, kept inside the range).",
        asked_for=False,
    ),
    "staircase": MethodKind(
        "Every count was replaced by a random one near it (staircase noise, made for all "
        "contributions of one unit to a row together, and kept inside the range).",
        asked_for=False,
        together=True,
    ),
    "fair": MethodKind(
        "Every count was replaced by a random one near it, with the same chance of reporting the "
        "truth for every true count.",
        promises_accuracy=True,
    ),
    "design": MethodKind(
        "Every count was replaced by a random one near it, drawn from a table of probabilities "
        "computed to make the expected error as small as privacy allows.",
        designed=True,
    ),
    "ladder": MethodKind(
        "Every count was replaced by a random one near it, at several levels of privacy at once, "
        "each drawn from the one before. These are the counts of one level.",
        (
            "Counts of the least private level were drawn from the true ones, and those of every "
            "further level from the level before, never from the true ones again.",
        ),
        asked_for=False,
        levels=True,
    ),
    "hierarchy": MethodKind(
        "Sums of every level of a hierarchy, single counts and their distribution were protected "
        "with noise. The published counts add up exactly to the published sums, and follow the "
        "protected distribution.",
        (
            *SUM_STEPS,
            "From what was drawn, and nothing else, the distribution of counts was estimated.",
            "Rows were ranked by what they are expected to be, and counts with that distribution "
            "were handed out so that every group has its sum; single units settled the rest.",
        ),
        asked_for=False,
        keeps_distribution=True,
        adds_up=True,
    ),
    "margins": MethodKind(
        "Sums of every margin and single counts were protected with noise. The published counts "
        "add up to the published margins.",
        (
            "Noise was added to every count and, where they are worth their cost, to the sums of "
            "every margin.",
            "Each margin was combined with the sums of its rows, and made whole numbers of at "
            "least 0 with one total.",
        ),
        asked_for=False,
        adds_up=True,
    ),
    "file": MethodKind(
        "Every count was replaced by a random one, drawn from a table of probabilities that the "
        "publisher supplied and that was certified for this release.",
        asked_for=False,
    ),
}

ASKED_FOR = ("auto", *(name for name, kind in KINDS.items() if kind.asked_for))
"""What can be given as `method`, apart from a mechanism file."""


def find_kind(name: str) -> MethodKind:
    """The method that a receipt names."""
    if name not in KINDS:
        raise PackageError("The receipt names a method that does not exist.")
    return KINDS[name]
