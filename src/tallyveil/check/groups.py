"""Check the totals of groups that a receipt states: each is worked out again from the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tallyveil.certified.base import Certified
from tallyveil.check.findings import is_close
from tallyveil.documents.group_record import GroupRecord
from tallyveil.documents.receipt import Receipt
from tallyveil.publish.by_group import add_groups, find_groups
from tallyveil.publish.reopen import require
from tallyveil.publish.totals import make_own_adder
from tallyveil.tables.base import Table
from tallyveil.untrusted import read_file

__all__ = ["check_groups"]


def check_groups(
    root: Path, table: Table, receipt: Receipt, certified: Sequence[Sequence[Certified]]
) -> str:
    """Which groups there are follows from public facts, and their totals from published counts."""
    files = () if receipt.sums is None else receipt.sums.files
    sums = [read_file(root / name) for name in files]
    groups = find_groups(table, receipt)
    kinds = 0
    for column, made in zip(receipt.columns, certified, strict=True):
        adder = make_own_adder(column, made[-1])
        found = add_groups(table, receipt, column, groups, adder=adder, sums=sums)
        stated = column.groups
        assert stated is not None  # receipts of this version have them
        same = len(stated) == len(found) and all(map(_agree, stated, found))
        require(same, f"the totals of groups of {column.name} are not those of the data")
        kinds += len(stated)
    return f"totals of {kinds} {'kind' if kinds == 1 else 'kinds'} of groups as worked out again"


def _agree(stated: GroupRecord, found: GroupRecord) -> bool:
    """Whether two records say the same; doubles differ between processors in their last digits."""
    return replace(
        stated, estimate=found.estimate, low=found.low, high=found.high
    ) == found and all(
        is_close(list(getattr(stated, part)), list(getattr(found, part)))
        for part in ("estimate", "low", "high")
    )
