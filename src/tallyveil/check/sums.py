"""Check the sums of a release: they add up, and their files say what follows from the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tallyveil.arrays import Floats, Integers
from tallyveil.check.estimates import ROUND_OFF, require_rounded
from tallyveil.documents.receipt import Receipt
from tallyveil.documents.records import ColumnRecord
from tallyveil.plans.sum_files import (
    LevelAccuracy,
    SumsRecord,
    describe_levels,
    format_numbers,
    read_estimates,
    read_stated,
    write_level,
)
from tallyveil.plans.zeros import find_grouping
from tallyveil.publish.reopen import require
from tallyveil.request.hierarchy import MISSED
from tallyveil.request.strata import find_strata
from tallyveil.sums.grouping import EXACT_MARGINS, Grouping, Margins, Tree, measure_missed
from tallyveil.tables.table import Table
from tallyveil.untrusted import read_file

__all__ = ["check_strata", "check_sums"]

_Built: TypeAlias = tuple[Integers, list[str], LevelAccuracy, Integers | None]

EMPTY = "a group of structural zeros is stated to have an estimate"


def check_sums(root: Path, table: Table, receipt: Receipt) -> str:
    """Every level's file, built again from the released counts and the estimates it states."""
    record = receipt.sums
    require(record is not None, "the receipt does not state its hierarchy")
    assert record is not None
    grouping = find_grouping(record.request, table, receipt.zeros)
    tree = grouping.full
    same = SumsRecord.of_table(record.request, grouping, table) == record
    require(same, "the hierarchy of the data is not the stated one")
    contents = [read_file(root / file) for file in record.files]
    worst = 0
    built: list[dict[str, _Built]] = [{} for _ in contents]
    for column in receipt.columns:
        counts = table.counts(column.name)
        bounds = np.full(len(counts), column.upper)
        if record.request.bounds:
            bounds = np.minimum(table.counts(record.request.bounds), bounds)
        require(bool((counts <= bounds).all()), f"a count of {column.name} lies above its bound")
        sums = tree.sum_up(counts)
        sizes = enumerate(contents)
        stated = [read_estimates(one, column.name, record.sizes[at]) for at, one in sizes]
        missed: list[Integers] = []
        if isinstance(tree, Margins):
            missed = [_read_missed(content, column.name) for content in contents]
            _require_met(grouping, column, sums, missed)
            worst = max(worst, *measure_missed(missed))
        else:
            _require_additive(tree, stated)
        for level, estimates in enumerate(stated):
            require(_fits_zeros(grouping, level, estimates), EMPTY)
            if level <= record.request.exact_level:
                exact = bool((sums[level] == estimates).all())
                require(exact, f"an exact sum of {column.name} is not the one of the data")
        fitted = [one - gap for one, gap in zip(sums, missed, strict=False)] or sums[:-1]
        asked = record.request, grouping, column
        require_rounded(*asked, stated=stated, fitted=fitted, bounds=bounds)
        accuracy = describe_levels(record.request, grouping, column.epsilon, column.upper)
        for level, estimates in enumerate(stated):
            gap = missed[level] if missed else None
            built[level][column.name] = (sums[level], format_numbers(estimates), accuracy, gap)
    for level, content in enumerate(contents):
        expected = write_level(level, record, tree, table, built[level])
        require(content == expected, f"{record.files[level]} does not add up to the data")
    if isinstance(tree, Margins):
        misses = f", and miss one by {worst:,} at most" if worst else ""
        return f"rows meet {len(contents)} margins as stated{misses}"
    words = f", no row above its {record.request.bounds}" if record.request.bounds else ""
    words += f"; outside the promise: {record.outside}" if record.outside else ""
    return f"{len(contents)} levels add up exactly{words}"


def _fits_zeros(grouping: Grouping, level: int, estimates: Floats) -> bool:
    """Whether groups of structural zeros are stated to be 0; their intervals follow."""
    filled = grouping.fill(level, np.ones(grouping.part.sizes[level], dtype=bool))
    return not estimates[~filled].any()


def _read_missed(content: bytes, column: str) -> Integers:
    """By how much a margin is stated to be missed."""
    return np.array([int(text) for text in read_stated(content, column, MISSED)], dtype=np.int64)


def _require_met(
    grouping: Grouping, column: ColumnRecord, sums: Sequence[Integers], missed: Sequence[Integers]
) -> None:
    """Margins that can be met are met."""
    crossed = isinstance(grouping.part, Margins) and grouping.part.crosses()
    free = not crossed or bool((sums[-1] == column.upper).any())
    met = free or not any(gap.any() for gap in missed[:EXACT_MARGINS])
    require(met, f"a margin of {column.name} is missed that can be met")
    said = not missed or column.missed == measure_missed(missed)
    require(said, f"{column.name} misses its margins by other amounts than the receipt states")


def _require_additive(tree: Tree, values: Sequence[Floats]) -> None:
    """Stated estimates add up, as far as their printed digits tell."""
    for level in range(1, len(values)):
        children = np.bincount(tree.parents[level - 1], minlength=tree.sizes[level - 1])
        gap = tree.sum_children(values[level], level) - values[level - 1]
        near = bool((np.abs(gap) <= ROUND_OFF * (1 + children)).all())
        require(near, "the stated estimates do not add up")


def check_strata(table: Table, receipt: Receipt) -> str:
    """The stated strata are those of the data, and their columns were drawn within them."""
    record = receipt.strata
    require(record is not None, "the receipt does not state its strata")
    assert record is not None
    found = int(find_strata(record.columns, table).max()) + 1
    require(found == record.strata, "the strata of the data are not the stated ones")
    return f"{record.strata} strata by {', '.join(record.columns)}"
