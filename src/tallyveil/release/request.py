"""A request, checked and made definite before the table is opened. All of it is public."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.exact import exact_epsilon
from tallyveil.query import Query
from tallyveil.release.column import (
    NO_UPPER,
    WIDE,
    WIDEST_MATRIX,
    check_upper,
)
from tallyveil.release.methods.auto import Auto
from tallyveil.release.methods.base import LIMITED_KEYS, Method
from tallyveil.release.methods.design import Design
from tallyveil.release.methods.geometric import Canonical, Geometric
from tallyveil.release.methods.ladder import Ladder
from tallyveil.release.methods.registry import METHODS, AnyMethod
from tallyveil.release.methods.sums import Sums
from tallyveil.release.options import (
    KEEP_ALL,
    ReleaseOptions,
    check_epsilon,
    flatten,
    require_writable,
)
from tallyveil.release.unit import WIDEST_DELTA, PrivacyUnit, drop_idle_delta, separate_moves
from tallyveil.structs import list_values
from tallyveil.tables.conditions import Condition, parse_conditions
from tallyveil.tables.microdata import (
    Bins,
    Counting,
    Label,
    combine_categories,
    find_category,
    public_categories,
    read_bins,
)
from tallyveil.tables.write import FORMATS

COUNT_OF_ROWS = "count"
"""The name of the column that records are counted into, and of a plain array."""

MOST_COUNTS = 1000
"""Most columns of counts in a release."""

NARROW = 1000
"""Up to this upper bound an accuracy is solved for in the range itself."""

EXCLUDES: Mapping[str, tuple[str, ...]] = {
    "budget.accuracy": ("epsilon", "budget.delta", "counts.nested", "unit.spread"),
    "budget.delta": ("counts.nested", "method.unbiased", "method.signed"),
    "counts.nested": ("unit.spread", "method.signed"),
    "count": ("microdata.where", "microdata.bins"),
}
"""The keys that a key does not go with."""

MICRODATA_EXCLUDES = (
    *("keep", "source.na_values"),
    *("counts.allow_duplicates", "counts.allow_totals", "counts.nested"),
)
"""The keys that mean nothing where records are counted."""


@dataclass(frozen=True)
class ColumnRequest:
    """One count column: its upper bound, `NO_UPPER` for none, and its epsilon."""

    name: str
    upper: int
    epsilon: Fraction


@dataclass(frozen=True)
class Request:
    """A checked request: the options as given, and what follows from them.

    Attributes
    ----------
    options : ReleaseOptions
        The options of the release.
    columns : tuple of ColumnRequest
        One upper bound and one epsilon for each count column.
    method, why : Method and str
        The method that is used, `Auto` where public sizes decide, and why.
    unit : PrivacyUnit
        Who is protected.
    categories, bins, where, zeros
        The public list of categories, ranges and conditions, read.
    delta : Fraction
        The delta of each column; 0 where contributions are composed with it.
    """

    options: ReleaseOptions
    columns: tuple[ColumnRequest, ...]
    method: Method
    why: str
    unit: PrivacyUnit
    categories: tuple[Label, ...]
    bins: Mapping[str, Bins]
    where: tuple[Condition, ...] = ()
    zeros: tuple[tuple[Condition, ...], ...] = ()
    delta: Fraction = Fraction(0)

    @property
    def disjoint(self) -> tuple[tuple[str, ...], ...]:
        """The groups of count columns where a unit is in one only, in the order of columns."""
        names = [column.name for column in self.columns]
        groups = (tuple(n for n in names if n in group) for group in self.options.unit.disjoint)
        return tuple(sorted(groups, key=lambda group: names.index(group[0])))

    @property
    def by(self) -> tuple[str, ...]:
        """The category columns."""
        names: tuple[str, ...] = self.options.by
        return names

    @property
    def microdata(self) -> bool:
        """True if records are counted."""
        return bool(self.by) and not self.options.count

    @property
    def keep(self) -> tuple[str, ...] | None:
        """The columns that are released unchanged; None if nothing is stated."""
        keep = self.options.keep
        return () if keep == KEEP_ALL else keep

    @property
    def keep_all(self) -> bool:
        """True if every other column is released."""
        return bool(self.options.keep == KEEP_ALL)

    @property
    def nested(self) -> tuple[str, ...]:
        """The nested count columns, from the smallest to the largest."""
        return self.options.counts.nested

    @property
    def other_place(self) -> int | None:
        """The place of the category for all other values in the list of categories."""
        other = self.options.microdata.other
        return None if other is None else find_category(self.categories, other)

    @property
    def counting(self) -> Counting:
        """The rule by which records are counted."""
        return Counting(self.by, self.categories, self.where, self.other_place, self.bins)


def check_options(options: ReleaseOptions, array: bool = False) -> Request:
    """Check everything that can be checked without the table.

    Parameters
    ----------
    options : ReleaseOptions
        The options of the release.
    array : bool
        Whether the table is a plain array of counts, which needs no column name.

    Returns
    -------
    Request
        One upper bound and one epsilon per count column, whichever way they were given.
    """
    microdata = bool(options.by) and not options.count
    _check_columns(options, microdata or array)
    _check_combinations(options, microdata)
    names = options.count or (COUNT_OF_ROWS,)
    if len(names) > MOST_COUNTS:
        rule, got = f"name at most {MOST_COUNTS:,} columns of counts", f"{len(names):,}"
        raise ArgumentError("count", rule, got=got, hint="Release the others by themselves.")
    uppers = _read_per_column(options.upper, names, "upper", check_upper)
    bins = read_bins(options.microdata.bins)
    if bins and not set(bins) <= set(options.by):
        raise ArgumentError("bins", "name columns of 'by', where records are counted")
    categories = _read_categories(options, bins)
    unit = _check_unit(options, microdata)
    method, why = _choose_method(options)
    _check_uppers(options, uppers, method)
    delta = Fraction(options.budget.delta)
    if delta and options.unit.spread != "distinct_rows" and unit.multiplier > 1:
        raise UsageError(
            "A 'delta' grows faster than the contributions of one unit. Leave out 'delta', or "
            "'contributions' and 'neighbours'; or set 'spread' to 'distinct_rows', if no two "
            "contributions of one unit are in one row."
        )
    if options.unit.spread == "distinct_rows":
        unit, delta = separate_moves(unit, delta, len(categories)), Fraction(0)
    epsilons = _find_epsilons(options, method.closed_form, names, uppers)
    return Request(
        options,
        tuple(map(ColumnRequest, names, uppers, epsilons)),
        method,
        why,
        drop_idle_delta(unit, epsilons),
        categories,
        bins,
        parse_conditions(options.microdata.where),
        _read_zeros(options),
        delta,
    )


def _check_columns(options: ReleaseOptions, unnamed: bool) -> None:
    """Refuse columns of counts and of categories that do not fit together."""
    by, counted, method = options.by, options.count, options.method
    if any(not name.strip() for name in counted):
        rule, hint = "name columns that have a name", "Give the column of counts one first."
        raise ArgumentError("count", rule, got="an empty name", hint=hint)
    if not counted and not unnamed:
        hint = "For microdata, one record per person, name the columns to count by."
        raise ArgumentError("count", "name the column of counts", hint=hint)
    if set(by) & set(counted):
        raise ArgumentError("by", "name public columns, not a column of counts")
    if shared := sorted(set(counted) & set(list_values(options.keep))):
        rule = f"name public columns, not the count column {shared[0]!r}"
        raise ArgumentError("keep", rule)
    if by and not counted and options.categories is None and not options.microdata.bins:
        raise UsageError(
            "Counting microdata requires 'categories'. List every category, also empty ones: a "
            "category that appears only because someone is in it reveals that person."
        )
    if (options.microdata.where or options.categories is not None) and not by:
        raise ArgumentError("by", "name the category columns that the other options refer to")
    if COUNT_OF_ROWS in by and not counted:
        hint = "Rename that column first."
        rule = f"not name a column {COUNT_OF_ROWS!r}: records are counted into one of this name"
        raise ArgumentError("by", rule, hint=hint)
    for name, columns in (
        ("nested", options.counts.nested),
        ("disjoint", [name for group in options.unit.disjoint for name in group]),
    ):
        if not set(columns) <= set(counted):
            hint = "Name them in 'count' as well."
            raise ArgumentError(name, "name columns of counts", got=", ".join(columns), hint=hint)
    if taken := sorted(set(method.public_columns) & set(counted)):
        rule = f"name public columns such as regions, not the count column {taken[0]!r}"
        raise ArgumentError(method.name, rule)
    if isinstance(method, Sums):
        names = counted or (COUNT_OF_ROWS,)
        added = {f"{name}_{word}" for name in names for word in method.beside}
        if clash := sorted(added & {*method.public_columns, *counted}):
            raise UsageError(
                f"The files of totals have a column {clash[0]!r} already: rename it first."
            )


def _check_combinations(options: ReleaseOptions, microdata: bool) -> None:
    """Refuse keys that do not go with the method, with one another or with microdata."""
    keys, method = flatten(options), options.method
    stated = {key for key in keys if not isinstance(keys[key], (tuple, dict)) or keys[key]}
    for key in LIMITED_KEYS:
        if key in stated and key not in method.takes:
            offered = {n: m for n, m in METHODS.items() if m in get_args(AnyMethod)}
            *names, last = (repr(name) for name, kind in offered.items() if key in kind.takes)
            raise UsageError(
                f"{key!r} does not go with the method {method.name!r}, only with "
                f"{', '.join(names)} and {last}."
            )
    for key, others in EXCLUDES.items():
        for other in others:
            if {key, other} <= stated:
                raise UsageError(
                    f"{key!r} and {other!r} exclude each other: leave one of them out."
                )
    if options.counts.nested and method.moves_counts:
        raise UsageError(
            "'counts.nested' columns are given counts by rank: leave out a 'method.priority' of "
            "balanced, counts or a number below 1."
        )
    for key in MICRODATA_EXCLUDES if microdata else ():
        if key in stated:
            raise UsageError(f"{key!r} is for tables of counts: leave it out for microdata.")
    if options.unit.id_column is not None and not microdata:
        raise UsageError("'unit.id_column' is for microdata: name 'by', and leave out 'count'.")
    is_listed = options.categories is not None or options.microdata.bins
    if options.microdata.other is not None and not is_listed:
        raise UsageError("'microdata.other' goes with 'categories': it counts what is not listed.")
    if options.output.format is not None and options.output.format not in FORMATS:
        raise ArgumentError("format", f"be one of: {', '.join(FORMATS)}", options.output.format)


def _choose_method(options: ReleaseOptions) -> tuple[Method, str]:
    """Return the method that is used and why, as far as it does not depend on the table."""
    method: Method = options.method
    plain = method if isinstance(method, Geometric) else Geometric(unbiased=method.unbiased)
    if options.unit.spread == "distinct_rows":
        return plain, "contributions of one unit are in different rows"
    if options.unit.spread == "one_row":
        return plain, "all contributions of one unit are in one row"
    if options.budget.delta != "0" and not isinstance(method, Design):
        return Canonical(), "a delta was requested; the distribution of counts is not kept"
    if options.budget.accuracy is not None and isinstance(method, Auto):
        return plain, "it keeps the wanted accuracy for every true count"
    return method, method.reason


def _check_uppers(options: ReleaseOptions, uppers: tuple[int, ...], method: Method) -> None:
    """Refuse upper bounds that the method cannot have."""
    has_delta = options.budget.delta != "0" and options.unit.spread != "distinct_rows"
    if has_delta and max(uppers) > WIDEST_DELTA:
        rule = f"be a number of at most {WIDEST_DELTA:,} when a delta is given"
        raise ArgumentError("upper", rule, hint="Mechanisms with a delta are matrices.")
    if max(uppers) <= method.widest:
        return
    if NO_UPPER in uppers:
        hint = "The methods preserve and geometric need none."
        raise ArgumentError("upper", f"be given for the method {method.name!r}", hint=hint)
    rule = f"be at most {method.widest:,} for the method {method.name!r}"
    raise ArgumentError("upper", rule, hint="The methods preserve and geometric go farther.")


def _check_unit(options: ReleaseOptions, microdata: bool) -> PrivacyUnit:
    """Return who is protected, and how often they are counted."""
    unit = options.unit
    if unit.id_column is not None:
        where = parse_conditions(options.microdata.where)
        if unit.id_column in {*options.by, *(condition.column for condition in where)}:
            rule = "name a column that no other option uses: it is secret"
            raise ArgumentError("id_column", rule)
    return PrivacyUnit(
        unit.kind,
        unit.neighbours,
        unit.contributions,
        "stated" if unit.id_column is None else "enforced",
        of_rows=microdata,
        one_row=unit.spread == "one_row",
    )


def _read_categories(options: ReleaseOptions, bins: Mapping[str, Bins]) -> tuple[Label, ...]:
    """Return the public list of categories, with the cell for all others."""
    labels = combine_categories(options.categories, options.by, bins)
    if labels is None:
        return ()
    categories = public_categories(labels, options.by, options.microdata.other)
    require_writable("categories", (part for label in categories for part in label))
    return categories


def _read_zeros(options: ReleaseOptions) -> tuple[tuple[Condition, ...], ...]:
    """Return the rules of structural zeros, one for each text."""
    texts = options.counts.structural_zeros
    try:
        return tuple(parse_conditions([text]) for text in texts)
    except ArgumentError as problem:
        rule = "be comparisons such as 'sex = F and cause = prostate'"
        raise ArgumentError("structural_zeros", rule, got=", ".join(texts)) from problem


def _read_per_column(
    stated: Any, names: tuple[str, ...], argument: str, check: Callable[[Any, str], Any]
) -> tuple[Any, ...]:
    """Return a value for every count column: one for all, a sequence, or a mapping by name."""
    if isinstance(stated, Mapping):
        if set(stated) != set(names):
            raise ArgumentError(argument, f"name exactly the columns {', '.join(names)}")
        return tuple(check(stated[name], argument) for name in names)
    values = list_values(stated) if isinstance(stated, (list, tuple)) else (stated,)
    if len(values) == 1:
        return (check(values[0], argument),) * len(names)
    if len(values) != len(names):
        rule = "be one value"
        if len(names) > 1:
            rule += f", or one for each of the {len(names)} count columns"
        raise ArgumentError(argument, rule, got=f"{len(values)} values")
    return tuple(check(value, argument) for value in values)


def _find_epsilons(
    options: ReleaseOptions, method: str, names: tuple[str, ...], uppers: tuple[int, ...]
) -> tuple[Fraction, ...]:
    """Return the epsilon of each column, as given or as the wanted accuracy needs it."""
    if isinstance(options.method, Ladder):
        return (options.method.levels[0],) * len(names)
    if options.budget.accuracy is not None:
        return tuple(_solve_epsilon(options, method, upper) for upper in uppers)
    if options.epsilon is None:
        hint = "Smaller is more private; 1.0 is a usual start."
        raise ArgumentError("epsilon", "be given, or 'budget.accuracy' instead of it", hint=hint)
    return _read_per_column(options.epsilon, names, "epsilon", check_epsilon)


def _solve_epsilon(options: ReleaseOptions, method: str, upper: int) -> Fraction:
    """Return the smallest epsilon that is accurate enough for every true count."""
    from tallyveil.reading.precision import epsilon_for

    within = options.budget.accuracy
    if upper > WIDE or within is None:
        rule = f"be a number of at most {WIDE:,} when 'accuracy' is given"
        raise ArgumentError("upper", rule)
    if method == "geometric" and upper > NARROW and math.isfinite(within):
        # far from both ends a count errs as its noise does: a narrower range has the same worst
        upper = min(upper, max(NARROW, 2 * math.ceil(within) + 2))
    if upper > WIDEST_MATRIX:
        rule = f"be a number of at most {WIDEST_MATRIX // 2 - 1:,} where the range is wide"
        raise ArgumentError("accuracy", rule, within)
    query = Query.count(upper)
    try:
        epsilon = epsilon_for(query, within, options.budget.confidence, mechanism=method)
    except ArgumentError as problem:
        name = "accuracy" if problem.argument == "within" else problem.argument
        raise ArgumentError(name, problem.rule, problem.value, problem.hint) from None
    return exact_epsilon(epsilon)
