"""A released table with its receipt: ready to use, ready to be written to a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tallyveil.publish.bundle import bundle
from tallyveil.publish.folder import staging
from tallyveil.publish.plan import ColumnPlan, Drawn
from tallyveil.tables.base import Table

__all__ = ["Release"]


@dataclass(frozen=True, eq=False)
class Release:
    """A released table and everything that goes with it; nothing in it is confidential."""

    data: Table
    columns: tuple[tuple[ColumnPlan, Drawn], ...]
    receipt: dict[str, Any]

    @cached_property
    def table(self) -> Any:
        """The released table, of the kind that came in (a path gives a pyarrow table)."""
        return self.data.native()

    @property
    def distribution(self) -> Any:
        """The share of rows with each count, shape (upper + 1,); by name for several columns."""
        shares = {
            plan.name: drawn.histogram / drawn.histogram.sum() for plan, drawn in self.columns
        }
        return shares if len(shares) > 1 else next(iter(shares.values()))

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The content of every file of the release folder but the checksums."""
        return bundle(self.data, self.columns, self.receipt)

    def save(self, folder: str | Path) -> Path:
        """Write the release folder, complete or not at all; `folder` must not exist yet."""
        files = self.files
        with staging(folder, sum(map(len, files.values())) + 4096 * len(files)) as place:
            return place.commit(files)
