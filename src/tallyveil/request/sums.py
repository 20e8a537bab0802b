"""Check which sums a release is asked to add up to, before any table is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.release.methods.hierarchy import MOST_LEVELS, TOTAL
from tallyveil.release.methods.sums import BESIDE, MISSED
from tallyveil.request.arguments import list_given, require_writable, split_names
from tallyveil.request.hierarchy import HierarchyRequest
from tallyveil.request.options import ReleaseOptions

__all__ = ["check_hierarchy"]

TOTAL_WORDS = (TOTAL, "nation", "all")
"""What the grand total may be called."""


def check_hierarchy(options: ReleaseOptions, counted: Sequence[str]) -> HierarchyRequest | None:
    """The hierarchy that was asked for, or None; everything that needs no table is checked."""
    columns = split_names(options.hierarchy, "hierarchy")
    margins = _name_margins(options.margins)
    _require_unsigned(options.signed and bool(columns or margins))
    if margins:
        return _check_margins(options, counted, margins)
    if not columns:
        for name in ("invariant", "level_weights", "bounds"):
            if any(str(part) for part in list_given(getattr(options, name))):
                raise UsageError(f"'{name}' goes with 'hierarchy': name its columns as well.")
        return None
    if len(set(columns)) != len(columns):
        raise ArgumentError("hierarchy", "name every column once", got=", ".join(columns))
    if len(columns) > MOST_LEVELS:
        raise ArgumentError(
            "hierarchy", f"have at most {MOST_LEVELS} columns", got=f"{len(columns)}"
        )
    if any(": " in name for name in columns):
        raise ArgumentError("hierarchy", "name columns without a colon and a space in their names")
    if TOTAL in columns:
        rule = f"not name a column {TOTAL!r}: the sum of all rows is called so"
        raise ArgumentError("hierarchy", rule, hint="Rename that column first.")
    beside = {f"{name}_{word}" for name in counted for word in BESIDE}
    if taken := sorted(beside & {*columns, *counted}):
        raise UsageError(f"The files of sums have a column {taken[0]!r} already: rename it first.")
    if set(columns) & set(counted):
        rule = "name public columns such as regions, not a column of counts"
        raise ArgumentError("hierarchy", rule, got=", ".join(columns))
    if str(options.method) != "auto" or options.levels is not None or options.within is not None:
        raise UsageError(
            "A hierarchy has a method of its own, at one epsilon: leave 'method', 'within' and "
            "levels out."
        )
    return HierarchyRequest(
        columns,
        _check_invariant(options.invariant, columns),
        _check_weights(options.level_weights),
        bounds=_check_bounds(options.bounds, columns, counted),
    )


def _require_unsigned(signed: bool) -> None:
    if signed:
        raise UsageError(
            "Signed counts are published as they were drawn, and do not add up to measured sums: "
            "leave 'signed' out, and ask for 'unbiased' to publish the draws beside the counts."
        )


def _name_margins(given: Any) -> tuple[str, ...]:
    """Every margin as one text, its columns joined by plus signs; lists of columns are margins.

    >>> _name_margins([["age", "sex"], "edu"]), _name_margins("age+sex,edu")
    (('age+sex', 'edu'), ('age+sex', 'edu'))
    """
    if given is None or isinstance(given, str):
        return split_names(given, "margins")
    joined = ["+".join(map(str, list_given(names))) for names in list_given(given)]
    require_writable("margins", joined)
    return split_names(joined, "margins")


def _check_margins(
    options: ReleaseOptions, counted: Sequence[str], parts: Sequence[str]
) -> HierarchyRequest:
    """Margins that can be met together: at least two, of different public columns."""
    margins = tuple(tuple(name.strip() for name in part.split("+")) for part in parts)
    columns = tuple(name for margin in margins for name in margin)
    got = ", ".join(parts)
    if len(margins) < 2 or not all(columns):
        hint = "For groups inside groups, or one grouping alone, name a hierarchy."
        rule = "name at least two margins, such as age+sex,education"
        raise ArgumentError("margins", rule, got=got, hint=hint)
    if len(set(columns)) != len(columns):
        hint = "Margins that share a column must agree on its sums, and noisy ones do not."
        raise ArgumentError("margins", "name every column once", got=got, hint=hint)
    beside = {f"{name}_{word}" for name in counted for word in (*BESIDE, MISSED)}
    if taken := sorted(beside & {*columns, *counted}):
        raise UsageError(f"The files of sums have a column {taken[0]!r} already: rename it first.")
    if set(columns) & set(counted) or any(": " in name for name in columns):
        rule = (
            "name public columns, no column of counts, without a colon and a space in their names"
        )
        raise ArgumentError("margins", rule, got=got)
    alone = options.levels is None and options.within is None and options.level_weights is None
    alone = alone and not (options.hierarchy or options.invariant or options.one_row)
    alone = alone and not options.bounds
    if not alone or str(options.method) != "auto":
        raise UsageError(
            "Margins have a method of their own, at one epsilon: leave out 'method', 'within', "
            "levels, 'hierarchy', 'invariant', 'level_weights', 'bounds' and 'one_row'."
        )
    return HierarchyRequest(columns, margins=margins)


def _check_invariant(given: Any, columns: tuple[str, ...]) -> str:
    """The finest level that is exact: of several that were named, the last."""
    names = [TOTAL if n in TOTAL_WORDS and n not in columns else n for n in split_names(given)]
    levels = (TOTAL, *columns)
    for name in names:
        if name not in levels:
            rule = f"name levels of the hierarchy: {', '.join(levels)}"
            raise ArgumentError("invariant", rule, name)
    return max(names, key=levels.index, default="")


def _check_weights(given: Any) -> tuple[float, ...] | None:
    if given is None or (isinstance(given, str) and not given):
        return None
    parts = given.split(",") if isinstance(given, str) else given
    try:
        weights = tuple(float(part) for part in parts)
    except (TypeError, ValueError):
        raise ArgumentError("level_weights", "be numbers, such as 1,4,1", given) from None
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights):
        raise ArgumentError("level_weights", "be finite numbers of at least 0", given)
    return weights


def _check_bounds(given: Any, columns: tuple[str, ...], counted: Sequence[str]) -> str:
    """The one column that bounds every row, neither a level nor a count."""
    names = split_names(given)
    if len(names) > 1 or set(names) & {*columns, *counted}:
        rule = "be one public column that is neither a level nor a count"
        raise ArgumentError("bounds", rule, got=", ".join(names))
    return names[0] if names else ""
