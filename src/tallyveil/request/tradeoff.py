"""How much error of single counts an error of their distribution is worth, as a publisher says it.

The frontier between the two is in docs/theory.md. A tradeoff decides which share of epsilon the
distribution gets and, below 1, how far counts follow the best guess for their row instead of the
rank that keeps the distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from tallyveil.budget.entries import shown_rational
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import exact_rational
from tallyveil.request.arguments import require_one_of, require_short
from tallyveil.request.budget_split import PLAIN, Tradeoff
from tallyveil.request.options import ReleaseOptions

__all__ = [
    "BEST_USE",
    "LARGEST_TRADEOFF",
    "PRIORITIES",
    "check_tradeoff",
    "describe_tradeoff",
    "leave_out_excluded",
    "moves_counts",
    "show_tradeoff",
]

PRIORITIES: Mapping[str, Tradeoff | None] = {
    "distribution": None,
    "balanced": PLAIN,
    "counts": Fraction(1, 4),
}
"""The tradeoffs that have names; None is the share and the matching of earlier releases."""

PRESERVING = ("auto", "preserve")
"""The methods that a priority or a tradeoff can be given with."""

LARGEST_TRADEOFF = 1000
BEST_USE = "best guess for each row; not to be summed, averaged or tabulated"


def check_tradeoff(options: ReleaseOptions) -> tuple[bool, Tradeoff | None]:
    """Whether anything was asked that only the method preserve has, and the tradeoff."""
    if options.priority is not None:
        require_one_of("priority", options.priority, tuple(PRIORITIES))
    if options.priority is not None and options.tradeoff is not None:
        raise UsageError("Give either 'priority' or 'tradeoff': a priority is a tradeoff by name.")
    asked = options.priority is not None or options.tradeoff is not None
    if not asked:
        return False, None
    tradeoff = PRIORITIES[options.priority] if options.priority is not None else None
    if options.tradeoff is not None:
        tradeoff = require_short(exact_rational(options.tradeoff, "tradeoff"), "tradeoff")
        if not 0 <= tradeoff <= LARGEST_TRADEOFF:
            hint = "1 keeps the estimated distribution; less is nearer to the single counts."
            rule = f"lie in 0..{LARGEST_TRADEOFF}"
            raise ArgumentError("tradeoff", rule, options.tradeoff, hint)
    if str(options.method) not in PRESERVING or options.levels is not None:
        raise UsageError(
            "'priority' and 'tradeoff' are for the method preserve at one level, which estimates "
            "the distribution: ask for it."
        )
    if options.signed:
        raise UsageError(
            "Signed counts are published as drawn: leave out 'priority' and 'tradeoff', which "
            "say how counts are handed out after the draw, or leave out 'signed'."
        )
    if options.hierarchy or options.margins:
        place = "inside a hierarchy" if options.hierarchy else "with margins"
        raise UsageError(f"'priority' and 'tradeoff' are not offered {place}.")
    if options.nested and moves_counts(tradeoff):
        raise UsageError(
            "Nested columns are handed out by rank: leave out tradeoffs below 1, and the "
            "priorities balanced and counts."
        )
    if options.within is not None:
        raise UsageError("'within' goes with other methods: give 'epsilon' instead.")
    return True, tradeoff


def leave_out_excluded(asked: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a request file, without those that the options `given` instead exclude.

    A priority and a tradeoff exclude each other, and both exclude other methods than preserve.

    >>> leave_out_excluded({"priority": "balanced", "epsilon": 1}, {"tradeoff": "0.5"})
    {'epsilon': 1}
    """
    tradeoffs = {"priority", "tradeoff"}
    excluded: set[str] = set()
    if tradeoffs & given.keys():
        excluded |= tradeoffs
        if str(asked.get("method", "auto")) not in PRESERVING:
            excluded.add("method")
    if str(given.get("method", "auto")) not in PRESERVING:
        excluded |= tradeoffs
    return {name: value for name, value in asked.items() if name not in excluded}


def moves_counts(tradeoff: Tradeoff | None) -> bool:
    """Whether counts are moved towards the best guess after they were handed out by rank."""
    return isinstance(tradeoff, str) or (tradeoff is not None and tradeoff < 1)


def describe_tradeoff(tradeoff: Tradeoff | None) -> tuple[str, ...]:
    """What was done to counts at a tradeoff below 1, as a step of the page; else nothing."""
    if isinstance(tradeoff, str):
        step = (
            "Where the estimated distribution says that such counts would err more than plain "
            "noise at the same epsilon, counts far from what their row's noisy count says were "
            "moved towards it, the least likely first, until they no longer would."
        )
        return (step,)
    if tradeoff is None or not moves_counts(tradeoff):
        return ()
    share = shown_rational(tradeoff)
    part = f"the central part, of probability {share}," if tradeoff else "the middle"
    step = (
        f"Where such a count lay outside {part} of what the row's noisy count and the estimated "
        "distribution say of it, it was moved to the nearest end. So the table follows the "
        "estimated distribution in part only, and single counts err less."
    )
    return (step,)


def show_tradeoff(tradeoff: Tradeoff) -> str:
    """A tradeoff as a page shows it."""
    if isinstance(tradeoff, str):
        return "the largest at which single counts err no more than plain noise"
    return shown_rational(tradeoff)
