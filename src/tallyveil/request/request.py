"""A request, checked and made definite before the table is opened. Every word of it is public."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tallyveil.arrays import Integers, Mask
from tallyveil.certified.ladder import check_levels
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import exact_epsilon
from tallyveil.loss import Loss
from tallyveil.properties import check_names
from tallyveil.query import Query
from tallyveil.release.methods.registry import ASKED_FOR, METHODS
from tallyveil.request.about import About, check_about
from tallyveil.request.arguments import (
    check_epsilon,
    list_given,
    read_names,
    read_per_column,
    require_one_of,
    require_switches,
    require_text,
)
from tallyveil.request.budget_split import Tradeoff
from tallyveil.request.counted import (
    COUNT_OF_ROWS,
    check_bins,
    check_categories,
    check_columns,
    check_zeros,
)
from tallyveil.request.forms import check_form
from tallyveil.request.hierarchy import HierarchyRequest
from tallyveil.request.nested import check_nested
from tallyveil.request.options import ReleaseOptions
from tallyveil.request.ranges import (
    NO_UPPER,
    OPEN_METHODS,
    WIDE,
    WIDEST_MATRIX,
    check_upper,
    require_narrow,
)
from tallyveil.request.slack import check_delta, keep_worthy_delta, separate_moves
from tallyveil.request.strata import check_strata
from tallyveil.request.sums import check_hierarchy
from tallyveil.request.tradeoff import check_tradeoff
from tallyveil.request.unit import PrivacyUnit, check_disjoint, check_unit
from tallyveil.sums.grouping import Grouping
from tallyveil.tables.bins import Bins
from tallyveil.tables.categories import Label, find_category
from tallyveil.tables.conditions import Condition, parse_conditions
from tallyveil.tables.counting import Counting
from tallyveil.tables.form import Form

__all__ = ["ColumnRequest", "Request", "check_options"]

ORDERS = ("input", "sorted")
MOST_COUNTS = 1000
"""How many columns of counts a release may have."""

NARROW = 1000
"""Up to this upper bound an accuracy is solved for in the range itself."""

KEEP_ALL = "all"
"""Given for `keep`: the publisher says that every other column is public."""


@dataclass(frozen=True)
class ColumnRequest:
    """One count column: its upper bound, `NO_UPPER` for none, and its epsilon."""

    name: str
    upper: int
    epsilon: Fraction


@dataclass(frozen=True)
class Request:
    """A checked request; `tv.privatize` says what each part means."""

    columns: tuple[ColumnRequest, ...]
    levels: tuple[Fraction, ...]
    method: str
    why: str
    loss: Loss
    properties: tuple[str, ...]
    unit: PrivacyUnit
    disjoint: tuple[tuple[str, ...], ...]
    by: tuple[str, ...]
    person: str | None
    where: tuple[Condition, ...]
    categories: tuple[Label, ...]
    other: str | None
    bins: Mapping[str, Bins]
    order: str
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    keep_all: bool
    allow_duplicates: bool
    allow_totals: bool
    microdata: bool
    hierarchy: HierarchyRequest | None = None
    grouping: Grouping | None = None
    bounds: Integers | None = None
    zeros: tuple[tuple[Condition, ...], ...] = ()
    free: Mask | None = None
    unbiased: bool = False
    nested: tuple[str, ...] = ()
    strata: tuple[str, ...] = ()
    groups: Integers | None = None
    tradeoff: Tradeoff | None = None
    signed: bool = False
    form: Form = field(default_factory=Form)
    format: str | None = None
    about: About = field(default_factory=About)
    delta: Fraction = Fraction(0)

    @property
    def multiplier(self) -> int:
        """By how much one unit can move counts: what every epsilon is multiplied with."""
        return self.unit.multiplier

    @property
    def other_place(self) -> int | None:
        """Where in the list of categories everything goes that is not listed."""
        return None if self.other is None else find_category(self.categories, self.other)

    @property
    def counting(self) -> Counting:
        """Which rows of microdata are counted, and where."""
        return Counting(self.by, self.categories, self.where, self.other_place, self.bins)


def check_options(options: ReleaseOptions, array: bool = False) -> Request:
    """Check everything that can be checked without the table.

    Parameters
    ----------
    options : ReleaseOptions
        What was asked for.
    array : bool
        Whether the table is a plain array of counts, which needs no column name.

    Returns
    -------
    Request
        One upper bound and one epsilon per count column, whichever way they were given.
    """
    require_text(options)
    require_switches(options)
    require_one_of("order", options.order, ORDERS)
    by, counted = read_names(options.by, "by"), read_names(options.count, "count")
    microdata = bool(by) and not counted
    check_columns(options, by, counted, microdata or array)
    bins = check_bins(options, by, microdata)
    if len(counted) > MOST_COUNTS:
        rule, got = f"name at most {MOST_COUNTS:,} columns of counts", f"{len(counted):,}"
        raise ArgumentError("count", rule, got=got, hint="Publish the others by themselves.")
    names = counted or (COUNT_OF_ROWS,)
    uppers = read_per_column(options.upper, names, "upper", check_upper)
    hierarchy, strata = check_hierarchy(options, names), check_strata(options, names)
    method, why = _check_method(options)
    preserves, tradeoff = check_tradeoff(options)
    if preserves and method == "auto":
        method, why = "preserve", "a priority or a tradeoff was asked for"
    if strata:
        method, why = "strata", "strata were asked for"
    if hierarchy is not None:
        method, why = hierarchy.method, hierarchy.why
        if NO_UPPER in uppers:
            needs = "Margins need" if hierarchy.margins else "A hierarchy needs"
            raise UsageError(f"{needs} a public upper bound: give 'upper' as a number.")
    if NO_UPPER in uppers and method not in (*OPEN_METHODS, "ladder"):
        hint = "The methods preserve and geometric need none."
        raise ArgumentError("upper", f"be given for the method {method!r}", hint=hint)
    unit = check_unit(options, by, microdata)
    delta = check_delta(options, uppers, unit)
    categories = check_categories(options, by)
    if options.separate_rows:
        unit = separate_moves(options, unit, delta, len(categories))
        delta = Fraction(0)
        method, why = "geometric", "contributions of one unit are in different rows"
    if delta and method != "design":
        method, why = "canonical", "a delta was asked for; the distribution of counts is not kept"
    if options.one_row:
        method, why = "geometric", "all contributions of one unit are in one row"
    require_narrow(uppers, method)
    levels = () if options.levels is None else _check_levels(options, uppers)
    form, written = check_form(options, microdata)
    if options.signed and (options.unbiased or options.nested):
        raise UsageError("Signed counts are unbiased by themselves, and keep no order.")
    epsilons = (levels[0],) * len(names) if levels else _find_epsilons(options, method, uppers)
    unit = keep_worthy_delta(unit, epsilons)
    return Request(
        tuple(map(ColumnRequest, names, uppers, epsilons)),
        levels,
        method,
        why,
        options.loss,
        _check_properties(options, method),
        unit,
        check_disjoint(options.disjoint, counted),
        by,
        None if options.person is None else str(options.person),
        parse_conditions(list_given(options.where)),
        categories,
        None if options.other is None else str(options.other),
        bins,
        options.order,
        *_check_kept(options, names),
        options.allow_duplicates,
        options.allow_totals,
        microdata,
        hierarchy,
        zeros=check_zeros(options),
        unbiased=options.unbiased,
        nested=check_nested(options, counted),
        strata=strata,
        tradeoff=tradeoff,
        signed=options.signed,
        form=form,
        format=written,
        about=check_about(options),
        delta=delta,
    )


def _check_method(options: ReleaseOptions) -> tuple[str, str]:
    """The method asked for, and why it is used."""
    text = str(options.method)
    if text not in ASKED_FOR and not os.path.isfile(text):
        rule = f"be one of {', '.join(ASKED_FOR)}, or the path of a mechanism file"
        raise ArgumentError("method", rule, text)
    if options.levels is not None:
        if text != "auto":
            raise UsageError("Levels are drawn one from the other: leave 'method' out.")
        return "ladder", "several privacy levels were asked for"
    if options.within is not None and text == "auto":
        return "geometric", "it keeps the wanted accuracy for every true count"
    if options.signed and text == "auto":
        return "geometric", "signed counts were asked for"
    return text, "asked for"


def _check_levels(options: ReleaseOptions, uppers: tuple[int, ...]) -> tuple[Fraction, ...]:
    given: Any = options.levels
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, (list, tuple)):
        raise ArgumentError("levels", "be a list of numbers, least private first", given)
    if options.epsilon is not None or options.within is not None:
        raise UsageError("Give either one epsilon (or accuracy), or several levels.")
    if NO_UPPER in uppers:
        raise UsageError("Levels need a public upper bound: give 'upper' as a number.")
    levels = [part.strip() if isinstance(part, str) else part for part in parts or ()]
    return tuple(check_epsilon(level, "levels") for level in check_levels(levels))


def _check_properties(options: ReleaseOptions, method: str) -> tuple[str, ...]:
    properties = check_names(options.properties)
    designed = method in METHODS and METHODS[method].designed
    if properties and not designed:
        raise UsageError("Properties are kept by the method 'design' only: ask for it as well.")
    if not _is_default(options, "loss") and not designed:
        raise UsageError("A loss is for the method 'design' only: ask for it as well.")
    if not _is_default(options, "confidence") and options.within is None:
        raise UsageError("'confidence' goes with 'within': how sure the accuracy must be.")
    return properties


def _is_default(options: ReleaseOptions, name: str) -> bool:
    given, default = getattr(options, name), getattr(ReleaseOptions, name)
    return type(given) is type(default) and given == default


def _check_kept(
    options: ReleaseOptions, counts: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The other columns that are published, those that are not, and whether the rest is."""
    keep, drop = read_names(options.keep, "keep"), read_names(options.drop, "drop")
    needed = check_hierarchy(options, counts)
    both = sorted(
        (set(keep) | set(needed.public if needed else check_strata(options, counts))) & set(drop)
    )
    if both:
        raise UsageError(f"Column {both[0]!r} cannot be kept and dropped at once.")
    counted = sorted(set(drop) & set(counts))
    if counted:
        raise UsageError(f"Column {counted[0]!r} is a count to be published: do not drop it.")
    return tuple(name for name in keep if name != KEEP_ALL), drop, KEEP_ALL in keep


def _find_epsilons(
    options: ReleaseOptions, method: str, uppers: tuple[int, ...]
) -> tuple[Fraction, ...]:
    """The epsilon of each column, as given or as the wanted accuracy needs it."""
    if options.within is None:
        if options.epsilon is None:
            hint = "Smaller is more private; 1.0 is a usual start."
            raise ArgumentError("epsilon", "be given, or 'within' instead of it", hint=hint)
        names = read_names(options.count, "count") or (COUNT_OF_ROWS,)
        return read_per_column(options.epsilon, names, "epsilon", check_epsilon)
    if options.epsilon is not None:
        raise UsageError("Give either 'epsilon' or 'within'.")
    able = [name for name, kind in METHODS.items() if kind.promises_accuracy]
    if method not in able:
        hint = "They alone can promise an accuracy for every true count beforehand."
        rule = f"be used with the methods {' or '.join(able)}"
        raise ArgumentError("within", rule, method, hint)
    return tuple(_solve_epsilon(options, method, upper) for upper in uppers)


def _solve_epsilon(options: ReleaseOptions, method: str, upper: int) -> Fraction:
    """The smallest epsilon that is accurate enough, whatever the true count."""
    from tallyveil.reading.precision import epsilon_for

    if upper > WIDE or options.within is None:
        rule = f"be a number of at most {WIDE:,} when 'within' is given"
        raise ArgumentError("upper", rule)
    is_number = isinstance(options.within, (int, float)) and math.isfinite(options.within)
    if method == "geometric" and upper > NARROW and is_number:
        # far from both ends a count errs as its noise does: a narrower range has the same worst
        upper = min(upper, max(NARROW, 2 * math.ceil(options.within) + 2))
    if upper > WIDEST_MATRIX:
        rule = f"be a number of at most {WIDEST_MATRIX // 2 - 1:,} where the range is wide"
        raise ArgumentError("within", rule, options.within)
    query = Query.count(upper)
    wanted = epsilon_for(query, options.within, options.confidence, mechanism=method)
    return exact_epsilon(wanted)
