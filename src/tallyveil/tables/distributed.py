"""What the rest of the package knows of a table whose rows stay on other machines.

Jobs look at the rows where they are. What comes back grows with the range of the counts, or with
the number of parts of the table, never with its rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NoReturn, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers, Tally, count_values, tally_values
from tallyveil.errors import TableError, UsageError
from tallyveil.tables.base import CountArray, Order, Table
from tallyveil.tables.codes import Codes
from tallyveil.tables.counting import Counting, PersonBound

__all__ = [
    "KEPT",
    "CountRange",
    "DistributedCounts",
    "DistributedTable",
    "DrawRows",
    "Drawn",
    "HandOut",
    "HandedOut",
    "LabelFacts",
    "PartFacts",
    "PartedTable",
    "PrivateRoom",
    "Seal",
    "StagedRows",
    "Tallied",
    "Words",
    "choose_kind",
    "count_part_rows",
    "list_slices",
    "name_parts",
    "refuse_changed",
]

PART_ROWS, MOST_PARTS = 1 << 20, 5000
"""Rows of a part of a published table, and about how many parts it has at the most."""

KEPT = "table"
"""Where rows that were looked at are kept, inside the private folder of a release."""

Words: TypeAlias = NDArray[np.uint64]

HandOut: TypeAlias = Callable[[CountArray, Words | None], CountArray]
"""Gives the published count of every row by its draw and its word."""

Drawn: TypeAlias = tuple[str, int]
"""A column of draws: of which column of counts, and of which level (0 where there is one)."""


class DrawRows(Protocol):
    """Draws the rows of a batch where they are, each once."""

    @property
    def kinds(self) -> Mapping[Drawn, np.dtype[Any]]:
        """The columns of draws in order, and the types that they are kept in."""

    def __call__(
        self, counts: Mapping[str, CountArray]
    ) -> Mapping[Drawn, tuple[CountArray, Words | None, Integers | Tally]]:
        """Give every row's draw, a random word where ranks are matched, and rows in each bin."""


@dataclass(frozen=True)
class CountRange:
    """Up to where a column of counts is taken as it is, and how the true counts are tallied.

    With `thresholds` in the cells that these begin after, one more than there are of them.
    """

    upper: int
    thresholds: Integers | None = None

    @property
    def size(self) -> int:
        """How many possible counts, or cells, there are."""
        return (self.upper if self.thresholds is None else len(self.thresholds)) + 1

    def tally(self, counts: CountArray) -> Integers | Tally:
        """How many rows have each count, or are in each cell."""
        if self.thresholds is None:
            return tally_values(counts, self.size)
        return count_values(np.searchsorted(self.thresholds, counts), self.size)


LabelFacts: TypeAlias = dict[str, tuple[str | None, int]]
"""For each public column a label that stands for all others, and the levels of nested ones."""

Tallied: TypeAlias = dict[str, "tuple[DistributedCounts, int]"]
"""For each column of counts its histogram, and how many lie above."""


class Seal(Protocol):
    """Encrypts what is written to disk between two jobs, under a key of this release alone."""

    def close(self, content: bytes | memoryview) -> bytes:
        """Encrypt."""

    def open(self, content: bytes) -> bytes:
        """Decrypt, or raise if it is not what was encrypted."""


@dataclass(frozen=True)
class PrivateRoom:
    """A private folder that other machines see, what encrypts there, and a key for hashes."""

    folder: Path
    seal: Seal
    key: int = field(default=0, repr=False)


@dataclass(frozen=True, eq=False)
class DistributedCounts:
    """A column of confidential counts on other machines: rows of each count, or in each cell.

    `ordered` says whether every partition is in the order of these counts.
    """

    histogram: Integers
    ordered: bool = False

    def __len__(self) -> int:
        return int(self.histogram.sum())

    def cut(self, upper: int) -> DistributedCounts:
        """The same with every count above `upper` taken as that."""
        above = self.histogram[upper:].sum()
        return replace(self, histogram=np.append(self.histogram[:upper], above))


@dataclass(frozen=True, eq=False)
class HandedOut:
    """A published column that tasks hand out by rows' draws, and how many rows each count has.

    Where nothing was counted, `rows` is None.
    """

    staged: Any
    drawn: Drawn
    hand_out: HandOut
    rows: Tally | None = None

    def astype(self, _: Any) -> NoReturn:
        """Refuse: the counts are in the release folder."""
        _refuse_rows()


@dataclass(frozen=True)
class PartFacts:
    """One file of a published table."""

    name: str
    size: int
    sha256: str


class StagedRows(Protocol):
    """Rows with their draws, drawn once and kept in a private folder."""

    @property
    def bins(self) -> Mapping[Drawn, Integers | Tally]:
        """How many rows are in each bin, by column of draws."""

    def count_digits(
        self, drawn: Drawn, prefixes: Sequence[tuple[int, int, int, int]]
    ) -> list[tuple[Integers, Integers]]:
        """Which next digits occur, and in how many rows (`tallyveil.estimate.steps`)."""


class _ElsewhereTable(Table):
    """A table whose rows stay on other machines."""

    kind = "parquet"
    extension = "parquet"

    def slice(self, start: int, stop: int) -> Table:
        """Refuse: rows are not brought here."""
        _refuse_rows()

    def counts(self, name: str) -> Integers:
        """Refuse: counts are not brought here."""
        _refuse_rows()

    def codes(self, name: str) -> Codes:
        """Refuse: labels are not brought here."""
        _refuse_rows()

    def build_grouped(
        self, by: Sequence[str], labels: Sequence[tuple[Any, ...]], counts: Mapping[str, CountArray]
    ) -> Table:
        """Refuse: a list of categories is not for a table on other machines."""
        _refuse_rows()

    def to_bytes(self) -> bytes:
        """Refuse: the table is no single file."""
        _refuse_rows()


class DistributedTable(_ElsewhereTable):
    """A table on other machines; leaves as a folder of Parquet files."""

    @abstractmethod
    def survey(
        self,
        ranges: Mapping[str, CountRange],
        labels: Sequence[str],
        keys: Sequence[str],
        room: PrivateRoom,
    ) -> tuple[Tallied, LabelFacts]:
        """Look at every row, once: check counts, look at `labels`, and keep both, encrypted.

        Refuses two rows with the same labels of `keys`.
        """

    @abstractmethod
    def count_cells(self, counting: Counting, room: PrivateRoom) -> Integers:
        """Count rows of microdata in public categories."""

    @abstractmethod
    def count_bounded(
        self, counting: Counting, bound: PersonBound, room: PrivateRoom
    ) -> tuple[Integers, Integers]:
        """The same with so many rows of each person, and with all of them."""

    @abstractmethod
    def bring(self, names: Sequence[str], room: PrivateRoom) -> Table:
        """Bring some columns of all rows here, in the order of the partitions."""

    @abstractmethod
    def bound_room(self, counts: int) -> int:
        """Bound the bytes that so many count columns take, published and drawn, with labels."""

    @abstractmethod
    def require_seen(self, folder: Path) -> None:
        """Refuse a folder where other machines cannot write files that are seen here."""

    @abstractmethod
    def stage(self, folder: Path, draw: DrawRows) -> StagedRows:
        """Draw every row once, into `folder`, which has what `survey` kept under `KEPT`."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows were looked at."""


class PartedTable(_ElsewhereTable):
    """A published table that is written as a folder of files by other machines."""

    @property
    @abstractmethod
    def parts(self) -> int:
        """How many files there are."""

    @abstractmethod
    def write_parts(self, folder: Path) -> list[PartFacts]:
        """Write every file into a folder that is there, and give the facts of each, in order."""

    def build_released(
        self, counts: Mapping[str, CountArray], keep: Sequence[str], order: Order = None
    ) -> Table:
        """Refuse: it is published already."""
        _refuse_rows()

    def write(self, file: IO[bytes]) -> None:
        """Refuse: the table is no single file."""
        _refuse_rows()


def choose_kind(uppers: Iterable[int]) -> np.dtype[Any]:
    """The type in which counts, or draws, up to these are kept."""
    return np.dtype(np.uint16 if max(uppers) < 1 << 16 else np.uint32)


def count_part_rows(rows: int) -> int:
    """How many rows each part has: it follows from the number of rows alone.

    >>> count_part_rows(20_000_000), count_part_rows(10**11)
    (1048576, 20971520)
    """
    return PART_ROWS * -(-max(rows, 1) // (PART_ROWS * MOST_PARTS))


def name_parts(count: int) -> tuple[str, ...]:
    """The names of the files of a published folder.

    >>> name_parts(2)
    ('part-00000.parquet', 'part-00001.parquet')
    """
    return tuple(f"part-{number:05d}.parquet" for number in range(count))


def refuse_changed() -> NoReturn:
    """Stop where two machines saw other rows of what should be one table."""
    raise TableError(
        "The table gave other rows while it was read. Nothing was published. Write it to files "
        "first, and start again when nobody changes them."
    )


def _refuse_rows() -> NoReturn:
    raise UsageError("The rows of this table are not brought here: read the release folder.")


def list_slices(rows: Sequence[int], size: int) -> Iterator[list[tuple[int, int, int]]]:
    """Cut consecutive batches of so many `rows` into parts of `size`: (batch, start, stop) each.

    >>> list(list_slices([3, 4], 5))
    [[(0, 0, 3), (1, 0, 2)], [(1, 2, 4)]]
    """
    part: list[tuple[int, int, int]] = []
    free = size
    for batch, length in enumerate(rows):
        start = 0
        while start < length:
            stop = min(length, start + free)
            part.append((batch, start, stop))
            free -= stop - start
            start = stop
            if not free:
                yield part
                part, free = [], size
    if part:
        yield part
