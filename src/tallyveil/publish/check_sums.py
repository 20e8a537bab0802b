"""Check the sums of a release: they add up, and their files say what follows from the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tallyveil.arrays import Integers
from tallyveil.publish.hierarchy import find_tree
from tallyveil.publish.receipt import Receipt
from tallyveil.publish.reopen import require
from tallyveil.publish.sum_files import (
    LevelAccuracy,
    SumsRecord,
    describe_levels,
    format_numbers,
    read_estimates,
    write_level,
)
from tallyveil.sums.tree import Tree
from tallyveil.tables.base import Table
from tallyveil.untrusted import read_file

__all__ = ["check_sums"]

ROUND_OFF = 0.0006
"""How far a printed estimate may be from the sum of printed ones, for each that is added."""


def check_sums(root: Path, table: Table, receipt: Receipt) -> str:
    """Every level's file, built again from the released counts and the estimates it states."""
    record = receipt.sums
    require(record is not None, "the receipt does not state its hierarchy")
    assert record is not None
    tree = find_tree(record.request, table)
    same = SumsRecord.of(record.request, tree) == record
    require(same, "the hierarchy of the data is not the stated one")
    contents = [read_file(root / file) for file in record.files]
    built: list[dict[str, tuple[Integers, list[str], LevelAccuracy]]] = [{} for _ in contents]
    for column in receipt.columns:
        sums = tree.sum_up(table.counts(column.name))
        accuracy = describe_levels(record, tree, column.epsilon, column.upper)
        stated = [read_estimates(content, column.name) for content in contents]
        _require_additive(tree, stated)
        for level, estimates in enumerate(stated):
            if level <= record.request.exact_level:
                exact = format_numbers(sums[level].astype(float)) == estimates
                require(exact, f"an exact sum of {column.name} is not the one of the data")
            built[level][column.name] = (sums[level], estimates, accuracy)
    for level, content in enumerate(contents):
        expected = write_level(level, record, tree, table, built[level])
        require(content == expected, f"{record.files[level]} does not add up to the data")
    words = f"; outside the promise: {record.outside}" if record.outside else ""
    return f"{len(contents)} levels add up exactly{words}"


def _require_additive(tree: Tree, stated: list[list[str]]) -> None:
    """Stated estimates add up, as far as their printed digits tell."""
    values = [np.array([float(text) for text in level]) for level in stated]
    for level in range(1, len(values)):
        children = np.bincount(tree.parents[level - 1], minlength=tree.sizes[level - 1])
        gap = tree.sum_children(values[level], level) - values[level - 1]
        near = bool((np.abs(gap) <= ROUND_OFF * (1 + children)).all())
        require(near, "the stated estimates do not add up")
