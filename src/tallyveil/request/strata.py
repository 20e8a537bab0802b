"""Strata: public groups of rows within each of which the distribution of counts is kept."""

from __future__ import annotations

from collections.abc import Sequence

from tallyveil.errors import ArgumentError, UsageError
from tallyveil.request.arguments import split_names
from tallyveil.request.options import ReleaseOptions

__all__ = ["check_strata"]


def check_strata(options: ReleaseOptions, counted: Sequence[str]) -> tuple[str, ...]:
    """The columns whose labels are strata; none unless they were asked for."""
    names = split_names(options.strata, "strata")
    if not names:
        return ()
    if len(set(names)) != len(names) or set(names) & set(counted):
        rule = "name public columns such as a region, each once, and no column of counts"
        raise ArgumentError("strata", rule, got=", ".join(names))
    alone = options.levels is None and options.within is None and options.tradeoff is None
    alone = alone and not (options.hierarchy or options.margins)
    alone = alone and not options.nested
    alone = alone and options.priority is None and not options.one_row
    if not alone or str(options.method) not in ("auto", "preserve"):
        raise UsageError(
            "Strata have a method of their own, at one epsilon: leave out 'method', 'within', "
            "levels, 'hierarchy', 'nested', 'priority', 'tradeoff' and 'one_row'."
        )
    return names
