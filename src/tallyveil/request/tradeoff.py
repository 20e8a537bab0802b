"""How much error of single counts an error of their distribution is worth, as a publisher says it.

The frontier between the two is in docs/theory.md. A tradeoff decides which share of epsilon the
distribution gets and, below 1, how far counts follow the best guess for their row instead of the
rank that keeps the distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import exact_rational
from tallyveil.release.methods.preserve import LARGEST_TRADEOFF, PRIORITIES, moves_counts
from tallyveil.request.arguments import require_one_of, require_short
from tallyveil.request.budget_split import Tradeoff
from tallyveil.request.options import ReleaseOptions

__all__ = [
    "check_tradeoff",
    "leave_out_excluded",
]

PRESERVING = ("auto", "preserve")
"""The methods that a priority or a tradeoff can be given with."""


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
