"""A released table with its receipt: ready to use, ready to be written to a folder."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from tallyveil.arrays import Floats
from tallyveil.documents.files import FileFacts, build_files
from tallyveil.documents.receipt import Receipt
from tallyveil.plans.accuracy import Figures
from tallyveil.plans.methods import PublishedCounts
from tallyveil.publish.folder import Staging, name_level_folder, reserve_folder
from tallyveil.request.ranges import WIDE
from tallyveil.sampling.marks import mark_table
from tallyveil.tables.published import reopen_released
from tallyveil.tables.table import Table

__all__ = ["Release", "write_releases"]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A released table and everything that goes with it; nothing in it is confidential.

    Attributes
    ----------
    data : Table
        The released table.
    receipt : Receipt
        What was promised, spent and done; ``receipt.to_dict()`` is the JSON document.
    published : dict of str to PublishedCounts
        The counts of every count column and their histogram.
    figures : tuple of Figures
        Accuracy, spread and matrix of every count column, in the receipt's order.
    proofs : dict of str to bytes
        The mechanism and certificate files by name.
    sums : dict of str to bytes
        With a hierarchy, the files of its levels by name: the published sums, their estimates
        before rounding, standard deviations and intervals.
    """

    data: Table
    receipt: Receipt
    published: dict[str, PublishedCounts]
    figures: tuple[Figures, ...]
    proofs: dict[str, bytes]
    sums: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def table(self) -> Any:
        """The released table, of the kind that came in (a path gives a pyarrow table)."""
        table = self.data.native()
        return table if self.receipt.private else mark_table(table)

    @property
    def distribution(self) -> Any:
        """The share of rows with each count, shape (upper + 1,); by name for several columns.

        In a wide range, and without an upper bound, up to the largest published count.
        """
        shares: dict[str, Floats] = {
            column.name: column.histogram.spread_out(
                (column.histogram.largest if column.upper > WIDE else column.upper) + 1
            )
            / sum(column.histogram.rows)
            for column in self.receipt.columns
        }
        return shares if len(shares) > 1 else next(iter(shares.values()))

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The content of every file of the release folder but the checksums."""
        content = self.data.to_bytes()
        return {self.receipt.table.file: content, **self.describe(FileFacts.of(content))}

    def describe(self, written: FileFacts) -> dict[str, bytes]:
        """The content of every other file, for data that are `written` already."""
        matrices = [f.mechanism.matrix if f.mechanism else None for f in self.figures]
        parts = {"proofs": self.proofs, "sums": self.sums}
        return build_files(self.data, written, self.receipt, matrices, parts)

    def save(self, folder: str | Path) -> Path:
        """Write the release folder, complete or not at all; `folder` must not exist yet."""
        files = self.files
        room = sum(map(len, files.values())) + 4096 * len(files)
        with reserve_folder(folder, room) as place:
            return place.commit({"": files})

    def __getstate__(self) -> dict[str, Any]:
        """Copy the published table itself, whether or not its file is a long one."""
        return {**self.__dict__, "data": self.data.hold()}

    def __repr__(self) -> str:
        names = ", ".join(self.published)
        mark = "" if self.receipt.private else ", NOT PRIVATE"
        epsilon = float(self.receipt.epsilon)
        return f"<Release of {names}: {self.data.rows:,} rows, epsilon={epsilon:g}{mark}>"

    def _repr_html_(self) -> str:
        """The promise, the cost and a bar chart per column, for notebooks."""
        from tallyveil.documents import svg

        receipt = self.receipt
        parts = [f"<p><b>{escape(repr(self)[1:-1])}</b></p>"]
        if receipt.warning:
            parts.append(f"<p><b>{escape(receipt.warning)}</b></p>")
        parts.append(f"<p>{escape(receipt.promise)}</p>")
        for column in receipt.columns:
            parts.append(
                f"<p><b>{escape(column.name)}</b>: {escape(column.method)}, counts "
                f"{column.range_words}. Whiskers: twice the standard error of the protection.</p>"
            )
            parts.append(svg.bar_chart(column.histogram, column.spread, column.name))
        return f'<div style="max-width:44rem">{"".join(parts)}</div>'


def write_releases(place: Staging, releases: tuple[Release, ...]) -> tuple[Release, ...]:
    """Write the release folder, or a folder for each level inside it: the data first, batch by
    batch, then what describes them. Releases of large tables refer to what was written.
    """
    names = [""]
    if releases[0].receipt.ladder is not None:
        epsilons = [release.receipt.columns[0].epsilon for release in releases]
        names = [name_level_folder(level, e) for level, e in enumerate(epsilons, start=1)]
    folders = {}
    for inner, release in zip(names, releases, strict=True):
        facts = place.write(inner, release.receipt.table.file, release.data.write)
        folders[inner] = release.describe(facts)
    folder = place.commit(folders)
    return tuple(
        replace(release, data=_reopen(release, folder / inner))
        for inner, release in zip(names, releases, strict=True)
    )


def _reopen(release: Release, folder: Path) -> Table:
    """The table after it was written: the published file, where that is not in memory."""
    return release.data.reopen(lambda: reopen_released(folder / release.receipt.table.file))
