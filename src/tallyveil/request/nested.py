"""Nested columns as they are asked for: each counts some of those whom the next one counts."""

from __future__ import annotations

from collections.abc import Sequence

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.release.nested import NESTED_METHODS
from tallyveil.request.arguments import split_names
from tallyveil.request.options import ReleaseOptions

__all__ = ["check_nested"]


def check_nested(options: ReleaseOptions, counted: Sequence[str]) -> tuple[str, ...]:
    """The nested columns from the smallest to the largest; none unless they were asked for."""
    names = split_names(options.nested, "nested")
    if not names:
        return ()
    got = ", ".join(names)
    if len(names) < 2 or len(set(names)) != len(names):
        rule = "name at least two columns of counts, each once, such as deaths,cases"
        raise ArgumentError("nested", rule, got=got)
    if not set(names) <= set(counted):
        hint = "Name them in 'count' as well."
        raise ArgumentError("nested", "name columns of counts", got=got, hint=hint)
    if options.hierarchy or options.margins:
        place = "inside a hierarchy" if options.hierarchy else "with margins"
        raise UsageError(f"Nested columns {place} are not offered: sums would not hold.")
    if options.within is not None:
        raise UsageError(
            "'within' promises an accuracy for every count, and nested columns are changed after "
            "the draw: give 'epsilon' instead."
        )
    if options.levels is not None or str(options.method) not in NESTED_METHODS:
        raise UsageError(
            f"Nested columns are released with one of the methods {', '.join(NESTED_METHODS)}, at "
            "one level."
        )
    return names
