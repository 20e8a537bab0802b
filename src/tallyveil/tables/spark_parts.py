"""A table of Spark on its way from rows that were looked at to parts that are published."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from tallyveil.arrays import Integers, Tally
from tallyveil.errors import UsageError
from tallyveil.tables import spark_jobs, spark_staging
from tallyveil.tables.base import Table
from tallyveil.tables.distributed import (
    KEPT,
    Drawn,
    HandedOut,
    PartedTable,
    PartFacts,
    PrivateRoom,
    Seal,
    count_part_rows,
    list_slices,
    name_parts,
    refuse_changed,
)
from tallyveil.tables.spark_files import BINS, DRAWS, LABELS, read_pieces

__all__ = ["KeptTable", "SparkParts", "StagedFrame"]


@dataclass(frozen=True)
class KeptTable:
    """Rows that were looked at and are kept, encrypted: two files for each partition."""

    files: tuple[str, ...]
    batch_rows: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    kind: np.dtype[Any]
    label_bytes: int
    seal: Seal

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(map(sum, self.batch_rows))

    def list_files(self, folder: Path) -> tuple[str, ...]:
        """Where the files are, without their endings."""
        return tuple(str(folder / name) for name in self.files)


def _add_counts(parts: Sequence[tuple[Any, Any] | None]) -> tuple[Integers, Integers]:
    """Values and how often they occur, from several parts of a table."""
    held = [part for part in parts if part is not None]
    values = np.concatenate([values for values, _ in held])
    present, at = np.unique(values, return_inverse=True)
    rows = np.zeros(len(present), np.int64)
    np.add.at(rows, at, np.concatenate([rows for _, rows in held]))
    return present.astype(np.int64), rows


@dataclass(frozen=True, eq=False)
class StagedFrame:
    """Rows with their draws in a private folder; a file for each partition of the table."""

    frame: Any
    room: PrivateRoom
    rows: int
    columns: tuple[Drawn, ...]
    files: tuple[spark_staging.StagedFile, ...]
    bins: Mapping[Drawn, Integers | Tally]

    @classmethod
    def read(
        cls,
        frame: Any,
        room: PrivateRoom,
        kept: KeptTable,
        kinds: Mapping[Drawn, np.dtype[Any]],
        drawn: Sequence[tuple[int, str]],
    ) -> StagedFrame:
        """What was drawn: for each number the name of the files of the attempt that counts."""
        names: dict[int, str] = {}
        bins: dict[Drawn, Any] = {}
        for number, name in drawn:
            if number in names:
                refuse_changed()
            names[number] = name
            (counted,) = read_pieces(room.folder / f"{BINS}{name}", kept.seal)
            for column, sizes in pickle.loads(counted).items():
                bins[column] = bins[column] + sizes if column in bins else sizes
        if sorted(names) != list(range(len(kept.files))):
            refuse_changed()
        files = tuple(
            spark_staging.StagedFile(
                f"{label}{LABELS}",
                str(room.folder / f"{DRAWS}{names[number]}"),
                rows,
                tuple(kinds.values()),
                kept.seal,
            )
            for number, (label, rows) in enumerate(
                zip(kept.list_files(room.folder / KEPT), kept.batch_rows, strict=True)
            )
        )
        return cls(frame, room, kept.rows, tuple(kinds), files, bins)

    def count_digits(
        self, drawn: Drawn, prefixes: Sequence[tuple[int, int, int, int]]
    ) -> list[tuple[Integers, Integers]]:
        """Which next digits occur, and in how many rows, for each prefix."""
        at, binned = self.columns.index(drawn), not isinstance(self.bins[drawn], Tally)
        task = spark_staging.CountDigits(self.files, at, binned, tuple(prefixes))
        parts = spark_jobs.collect_numbers(self.frame, task, len(self.files), self.room)
        return [_add_counts(own) for own in zip(*parts, strict=True)]

    def cut_parts(self) -> list[tuple[tuple[int, int, int, int], ...]]:
        """For each part of the published table (file, batch, first row, last row) in order."""
        batch_rows = [file.batch_rows for file in self.files]
        offsets = [0, *accumulate(map(len, batch_rows))]
        whole = [rows for own in batch_rows for rows in own]
        file_of = np.repeat(np.arange(len(self.files)), list(map(len, batch_rows)))
        return [
            tuple(
                (int(file_of[batch]), batch - offsets[file_of[batch]], start, stop)
                for batch, start, stop in part
            )
            for part in list_slices(whole, count_part_rows(self.rows))
        ]


@dataclass(frozen=True, eq=False)
class SparkParts(PartedTable):
    """A published table that tasks write as a folder of Parquet files."""

    source: Table
    staged: StagedFrame
    released: Mapping[str, HandedOut]
    keep: tuple[str, ...]
    path: Path | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns in order."""
        return (*self.keep, *(name for name in self.released if name not in self.keep))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.staged.rows

    @property
    def parts(self) -> int:
        """How many files there are."""
        return -(-self.rows // count_part_rows(self.rows))

    def type_of(self, name: str) -> str:
        """Give the Frictionless type of a column."""
        return "integer" if name in self.released else self.source.type_of(name)

    def write_parts(self, folder: Path) -> list[PartFacts]:
        """Write every file into `folder`, and give the facts of each, in order."""
        names, staged = name_parts(self.parts), self.staged
        expected = {name: own.rows for name, own in self.released.items() if own.rows is not None}
        task = spark_staging.Publish(
            staged.files,
            tuple(staged.cut_parts()),
            {
                n: (staged.columns.index(own.drawn), own.hand_out)
                for n, own in self.released.items()
            },
            {name: int(rows.values[-1]) + 1 for name, rows in expected.items()},
            self.keep,
            (str(staged.room.folder), str(folder)),
            names,
        )
        found, histograms = {}, dict[str, Any]()
        for number, size, sha256, counted in spark_jobs.collect_numbers(
            self.staged.frame, task, len(names), staged.room
        ):
            found[number] = PartFacts(names[number], size, sha256)
            for name, rows in counted.items():
                histograms[name] = histograms[name] + rows if name in histograms else rows
        if sorted(found) != list(range(len(names))) or not all(
            rows.is_same(Tally.of_any(histograms[name])) for name, rows in expected.items()
        ):
            refuse_changed()
        return [found[number] for number in sorted(found)]

    def reopen(self, path: Path) -> Table:
        """Give the same table, now that it lies at `path`."""
        return replace(self, path=path)

    def native(self) -> Any:
        """Give the published table as a DataFrame."""
        if self.path is None:
            raise UsageError("The table is not written yet.")
        return spark_jobs.open_published(self.staged.frame, self.path)
