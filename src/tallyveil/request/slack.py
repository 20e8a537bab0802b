"""Releases with a delta: which there are, and what a unit is charged for several columns.

Counts are drawn with canonical noise (docs/theory.md, section 6) or from a design, each certified
at (epsilon, delta) for one move of one count by one. Moves of one unit that add up would multiply
delta by more than their number, so a unit is counted once here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import exact_rational
from tallyveil.request.arguments import require_short
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.unit import PrivacyUnit

__all__ = [
    "MOST_SEPARATE",
    "WIDEST_SLACK",
    "WITH_DELTA",
    "charge_delta",
    "check_delta",
    "keep_worthy_delta",
    "separate_moves",
]

SMALLEST, LARGEST = Fraction(1, 10**12), Fraction(1, 2)
WIDEST_SLACK = 1000
"""The largest upper bound: mechanisms with a delta are matrices."""

MOST_SEPARATE = 1000
"""So many moves of one unit in different rows are composed at most."""

LEAST_GAIN = Fraction(1, 100)
"""Composing must lower a column's epsilon by this share of it, or no delta is spent."""

WITH_DELTA = ("canonical", "design")
"""The methods that can have a delta."""


def check_delta(options: ReleaseOptions, uppers: Sequence[int], unit: PrivacyUnit) -> Fraction:
    """The delta of each column; 0 where none was asked for."""
    if options.delta is None:
        return Fraction(0)
    delta = require_short(exact_rational(options.delta, "delta"), "delta")
    if delta and not SMALLEST <= delta <= LARGEST:
        hint = "A usual choice is far below one in the number of people, such as 1e-6."
        raise ArgumentError("delta", "be 0, or lie between 1e-12 and 0.5", options.delta, hint)
    if not delta:
        return delta
    if str(options.method) not in ("auto", "geometric", "design") or options.levels is not None:
        raise UsageError("A delta is for the methods geometric and design, at one level.")
    asked = {
        "hierarchy": options.hierarchy,
        "margins": options.margins,
        "strata": options.strata,
        "nested": options.nested,
        "within": options.within,
        "unbiased": options.unbiased,
        "priority": options.priority,
        "tradeoff": options.tradeoff is not None,
    }
    for name, given in asked.items():
        if given:
            raise UsageError(f"'{name}' is not offered with a delta: leave one of them out.")
    if options.separate_rows:
        return delta
    if not all(upper <= WIDEST_SLACK for upper in uppers):
        rule = f"be a number of at most {WIDEST_SLACK:,} when a delta is given"
        raise ArgumentError("upper", rule, hint="Mechanisms with a delta are matrices.")
    if unit.multiplier > 1:
        raise UsageError(
            "A delta grows faster than the moves of one unit: it is for one unit that is counted "
            "once, added or removed. Leave out 'delta', or 'contributions', 'rows_per_person' and "
            "'neighbours'; or say 'separate_rows', where no two contributions are in one row."
        )
    return delta


def separate_moves(
    options: ReleaseOptions,
    unit: PrivacyUnit,
    delta: Fraction,
    cells: int,
) -> PrivacyUnit:
    """The unit whose moves are in different rows, so that they are composed with a delta.

    Of rows in one of the public `cells` one of each person is counted where that is made true
    (`tallyveil.tables.microdata.keep_apart`), so nobody is counted more often than there are cells.
    """
    if not delta or unit.multiplier == 1:
        raise UsageError(
            "'separate_rows' goes with 'delta', and with 'contributions' or 'rows_per_person' of "
            "at least 2: without them there is nothing to compose."
        )
    if unit.bound == "enforced":
        unit = replace(unit, contributions=min(unit.contributions, cells))
    if unit.multiplier > MOST_SEPARATE:
        rule = f"be at most {MOST_SEPARATE:,} moves of one unit with 'separate_rows'"
        raise ArgumentError("contributions", rule, got=f"{unit.multiplier:,}")
    if options.one_row or options.disjoint:
        raise UsageError("'separate_rows' does not go with 'one_row' and 'disjoint'.")
    if str(options.method) not in ("auto", "geometric"):
        raise UsageError("'separate_rows' is for the method geometric, which draws row by row.")
    return replace(unit, delta=delta, separate=True) if unit.multiplier > 1 else unit


def keep_worthy_delta(unit: PrivacyUnit, epsilons: Sequence[Fraction]) -> PrivacyUnit:
    """The unit, without its delta where composing with it gains hardly anything over adding up.

    A delta that leaves nothing of an epsilon is refused.

    >>> few = PrivacyUnit(contributions=5, delta=Fraction(1, 10**6), separate=True)
    >>> keep_worthy_delta(few, [Fraction(1)]).delta, keep_worthy_delta(few, [Fraction(1)]).separate
    (Fraction(0, 1), True)
    """
    if unit.delta and not all(unit.charge(epsilon) for epsilon in epsilons):
        hint, got = "With this one the epsilons would be lost in it.", f"{float(unit.delta):g}"
        raise ArgumentError("delta", "be smaller, so that an epsilon is left", got=got, hint=hint)
    added = replace(unit, delta=Fraction(0))
    little = (unit.charge(e) > (1 - LEAST_GAIN) * added.charge(e) for e in epsilons)
    return added if unit.delta and all(little) else unit


def charge_delta(deltas: Mapping[str, Fraction], disjoint: Sequence[Sequence[str]]) -> Fraction:
    """The delta of a release from that of each column: added, of disjoint columns the largest.

    >>> charge_delta({"a": Fraction(1, 9), "b": Fraction(2, 9)}, [("a", "b")])
    Fraction(2, 9)
    """
    grouped = {name for group in disjoint for name in group}
    alone = sum((delta for name, delta in deltas.items() if name not in grouped), Fraction(0))
    return alone + sum((max(deltas[name] for name in group) for group in disjoint), Fraction(0))
