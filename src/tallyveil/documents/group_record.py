"""What a receipt says of groups: the total of every group that a public column makes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tallyveil.request.fields import read_texts, read_whole, refusal

__all__ = ["MOST_GROUPS", "GroupRecord", "read_groups"]

MOST_GROUPS = 60
"""So many groups of one kind have a table on the page."""

MOST_KINDS = 2000
"""More kinds of groups than this are in no receipt."""

FARTHEST = 2**80
"""No total of counts lies beyond this."""


@dataclass(frozen=True)
class GroupRecord:
    """Estimated totals of the groups that some public columns make, in the order of the table.

    Attributes
    ----------
    by : tuple of str
        The columns whose values make the groups.
    labels : tuple of tuple of str
        For each of these columns, the label of every group.
    rows : tuple of int
        How many rows each group has.
    estimate : tuple of float
        The estimated sum of the true counts.
    low, high : tuple of int
        An interval that contains the true sum in at least 95 % of all releases. It reaches below
        0 where the estimate does.
    published : tuple of int, or None
        The sums of the published counts, where these may be added.
    """

    by: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    rows: tuple[int, ...]
    estimate: tuple[float, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    published: tuple[int, ...] | None = None

    @property
    def groups(self) -> list[str]:
        """What each group is called."""
        parts = zip(*self.labels, strict=True)
        return [" · ".join(label or "(empty)" for label in one) for one in parts]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        found: dict[str, Any] = {
            "by": list(self.by),
            "labels": [list(labels) for labels in self.labels],
            "rows": list(self.rows),
            "estimate": list(self.estimate),
            "low": list(self.low),
            "high": list(self.high),
        }
        return found | ({} if self.published is None else {"published": list(self.published)})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GroupRecord:
        """The record that `to_dict` wrote, or a `PackageError`."""
        by = read_texts(data["by"])
        labels = tuple(read_texts(one) for one in _read_list(data["labels"]))
        published = data.get("published", ())
        made = cls(
            by,
            labels,
            tuple(read_whole(one, 1) for one in _read_list(data["rows"])),
            tuple(_read_real(one) for one in _read_list(data["estimate"])),
            tuple(read_whole(one, -FARTHEST, FARTHEST) for one in _read_list(data["low"])),
            tuple(read_whole(one, 0, FARTHEST) for one in _read_list(data["high"])),
            None
            if "published" not in data
            else tuple(read_whole(one, 0, FARTHEST) for one in _read_list(published)),
        )
        size = len(made.rows)
        parts = (*labels, made.estimate, made.low, made.high, made.published or made.rows)
        named = 0 < len(set(by)) == len(by) == len(labels)
        if not (named and 2 <= size <= MOST_GROUPS and all(len(part) == size for part in parts)):
            raise refusal("one total for each of a few groups")
        return made


def read_groups(data: Any) -> tuple[GroupRecord, ...]:
    """The totals of a column's groups in a receipt, or a `PackageError`."""
    if len(_read_list(data)) > MOST_KINDS:
        raise refusal("a few kinds of groups")
    return tuple(GroupRecord.from_dict(one) for one in data)


def _read_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise refusal("a list")
    return value


def _read_real(value: Any) -> float:
    if type(value) is not float or not math.isfinite(value) or abs(value) > FARTHEST:
        raise refusal("a number")
    return value
