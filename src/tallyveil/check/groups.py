"""Check the totals of groups that a receipt states: each is worked out again from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from tallyveil.certified.base import Certified
from tallyveil.check.findings import is_same_total
from tallyveil.documents.group_record import GroupRecord
from tallyveil.documents.receipt import Receipt
from tallyveil.publish.by_group import add_groups, group_rows, list_asked
from tallyveil.publish.reopen import require
from tallyveil.publish.totals import make_own_adder
from tallyveil.tables.table import Table
from tallyveil.untrusted import read_file

__all__ = ["check_groups"]


def check_groups(
    root: Path, table: Table, receipt: Receipt, certified: Sequence[Sequence[Certified]]
) -> str:
    """Every total that is stated follows from published counts, for groups of public columns."""
    files = () if receipt.sums is None else receipt.sums.files
    sums = [read_file(root / name) for name in files]
    asked, group, kinds = list_asked(receipt), cache(partial(group_rows, table)), 0
    for column, made in zip(receipt.columns, certified, strict=True):
        stated = column.groups
        by = [one.by for one in stated]
        known = len(set(by)) == len(by) and set(by) <= set(asked)
        require(known, f"the groups of {column.name} are not those of public columns")
        found = add_groups(
            table,
            receipt,
            column,
            [rows for names in by if (rows := group(names)) is not None],
            adder=make_own_adder(column, made[-1]),
            sums=sums,
        )
        same = len(stated) == len(found) and all(map(_agree, stated, found))
        require(same, f"the totals of groups of {column.name} are not those of the data")
        kinds += len(stated)
    return f"totals of {kinds} {'kind' if kinds == 1 else 'kinds'} of groups as worked out again"


def _agree(stated: GroupRecord, found: GroupRecord) -> bool:
    """Whether two records say the same; doubles differ between processors in their last digits."""
    return replace(stated, estimate=found.estimate) == found and is_same_total(
        stated.estimate, found.estimate
    )
