"""Released answers as `tallyveil interpret` reads them: a table, and what released it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from tallyveil.cli.common import errors

if TYPE_CHECKING:
    from tallyveil.arrays import Floats, Mask
    from tallyveil.mechanism import Mechanism
    from tallyveil.reading.unbiased import Estimate
    from tallyveil.release.receipt import ColumnRecord
    from tallyveil.release.totals import Adder
    from tallyveil.tables.table import Table

__all__ = ["Released", "Source", "is_wide", "open_released", "read_source", "require_likely"]

MATCHED = (
    "note: this release handed out counts by rank after the draw. What is said here follows from "
    "the certified draw and from which draws became which counts, which the receipt states."
)
GiveCells: TypeAlias = Callable[[slice], list[list[str]]]
"""Gives the cells of further columns, for some rows."""

LONGEST_TEXT = 100 << 20
"""Characters that the labels of one batch may have."""

TEXT_ENDINGS = (".csv", ".tsv", ".tab", ".txt")


@dataclass(frozen=True)
class Released:
    """A released table and what separates its cells; a long one is read batch by batch."""

    table: Table
    delimiter: str

    def read_numbers(self, column: str) -> Floats:
        """The released numbers of a column, one for every row."""
        import numpy as np

        from tallyveil.errors import TableError

        found = [np.zeros(0)]
        for batch in self.table.batches([column]):
            codes = batch.codes(column)
            try:
                numbers = np.array([float(label) for label in codes.labels])
            except ValueError:
                rule = f"Column {column!r} must hold one released number in every row."
                raise TableError(rule) from None
            found.append(numbers[codes.codes])
        return np.concatenate(found)

    def write(self, added: Sequence[str], give: GiveCells) -> Iterator[str]:
        """The table as CSV with one line ending, piece by piece, with further columns."""
        from tallyveil.errors import TableError

        yield self._write_rows([(*self.table.names, *added)])
        start = 0
        for batch in self.table.batches():
            cells = [batch.labels(name) for name in self.table.names]
            if sum(sum(map(len, column)) for column in cells) > LONGEST_TEXT:
                raise TableError("The labels are too long to be written as text.")
            cells += give(slice(start, start + batch.rows))
            yield self._write_rows(zip(*cells, strict=True))
            start += batch.rows

    def _write_rows(self, rows: Iterable[Sequence[str]]) -> str:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue()


@dataclass(frozen=True)
class Source:
    """What released the answers, and the release they are from if there is one.

    `table` is the data file of the release, `column` the name of the answers, and `free` marks
    the rows that are not structural zeros, if there are any.
    """

    mechanism: Mechanism
    column: str | None
    table: Path | None = None
    record: ColumnRecord | None = None
    adder: Adder | None = None
    free: Mask | None = None

    def know(self, confidence: float) -> dict[str, Any]:
        """What `interpret` is told beside the mechanism."""
        if self.record is None:
            return {}
        from tallyveil.release.release import published_sets

        sets = published_sets(self.record, self.mechanism, confidence)
        return {"sets": sets, "open_end": True}

    def estimate_total(self, values: Floats, confidence: float) -> Estimate:
        """The total of the true answers."""
        import numpy as np

        from tallyveil.errors import InfeasibleError
        from tallyveil.reading.unbiased import estimate_total

        record = self.record
        if record is not None and len(values) < sum(record.histogram.rows):
            method = record.method
            if record.at_most or method.by_group or method.adds_up:
                raise InfeasibleError(
                    "Parts of a column that is nested, in strata or fitted to sums cannot be added."
                )
        if record is not None and record.method.adds_up and self.table is not None:
            from tallyveil.release.groups import estimate_total as estimate_published

            folder = self.table.parent
            found = estimate_published(folder, confidence=confidence, column=record.name)
            return cast("Estimate", found)
        if self.adder is None:
            return estimate_total(self.mechanism, values, confidence)
        return self.adder.add(values.astype(np.int64), confidence)


def read_source(path: Path, column: str | None, *, strict: bool) -> Source:
    """What released the answers: a mechanism's file, or a release.

    In a release that matched ranks after its draw, the certified file describes the draw
    alone; there the whole procedure is returned. If `strict`, the column must be one of the
    release; else a release of one column may have been renamed.
    """
    from tallyveil.certified.files import read_mechanism
    from tallyveil.errors import ArgumentError, UsageError
    from tallyveil.mechanism import as_mechanism

    folder = path if path.is_dir() else path.parent
    if not (folder / "receipt.json").is_file():
        return Source(as_mechanism(read_mechanism(path)), column)
    from tallyveil.release.accuracy import WIDEST_PICTURE
    from tallyveil.release.release import load_stage, published_mechanism, read_receipt
    from tallyveil.release.totals import make_adder

    receipt = read_receipt(folder)
    table = folder / Path(receipt.table.file).name
    columns = receipt.columns
    if not path.is_dir():
        columns = tuple(c for c in columns if c.counts_stage.file == path.name)
    if not columns:
        return Source(as_mechanism(read_mechanism(path)), column, table)
    named = [record for record in columns if record.name == column]
    if not named and (len(columns) > 1 or (strict and column is not None)):
        names = ", ".join(record.name for record in columns)
        raise UsageError(f"Give --column with one of the released columns of counts: {names}.")
    record = (named or list(columns))[0]
    whole = published_mechanism(folder, record)
    if whole is None:
        rule = f"have at most {WIDEST_PICTURE} possible counts"
        hint = "Without --released and --prior the whole column can be read."
        raise ArgumentError("--column", rule, record.name, hint)
    if record.method.keeps_distribution or record.at_most:
        errors.print(MATCHED, markup=False)
    adder = make_adder(load_stage(folder, record.counts_stage), record.upper, record.matching)
    free = None
    if receipt.zeros is not None:
        from tallyveil.tables.published import read_published

        free = receipt.zeros.find_free(read_published(table))
    return Source(whole, column or record.name, table, record, adder, free)


def is_wide(folder: Path, column: str | None) -> bool:
    """Whether a column of a release has more possible counts than a matrix is built for."""
    from tallyveil.release.accuracy import WIDEST_PICTURE
    from tallyveil.release.release import read_receipt

    columns = read_receipt(folder).columns
    named = [record for record in columns if column in (None, record.name)]
    return len(named) == 1 and named[0].upper + 1 > WIDEST_PICTURE


def require_likely(file: Path, *, large: bool) -> None:
    """Refuse somebody else's table that is packed out of all proportion, unless it may be large.

    A folder must be that of a release; the error says what else it is.
    """
    from tallyveil.errors import TableError
    from tallyveil.release.release import plain_name, read_receipt
    from tallyveil.tables.published import require_likely_rows
    from tallyveil.tables.text import UnpackedError

    if file.is_dir():
        file /= plain_name(read_receipt(file).table.file)
    if large:
        return
    try:
        require_likely_rows(file)
    except UnpackedError as problem:
        raise TableError(f"{problem} If that is right, say --large.") from None


def open_released(
    file: Path, delimiter: str | None, encoding: str, folder: Path | None = None
) -> Released:
    """Open a released table; that of a release `folder` must be the one its receipt describes."""
    from tallyveil.release.groups import require_described
    from tallyveil.release.release import read_receipt
    from tallyveil.tables.published import read_published

    mark = "\t" if delimiter == "tab" else delimiter or _guess_delimiter(file)
    table = read_published(file, mark, encoding)
    if folder is not None:
        require_described(table, read_receipt(folder))
    return Released(table, mark)


def _guess_delimiter(file: Path) -> str:
    """The mark that the header holds most often; safe to guess, because a release is public."""
    if file.suffix.lower() not in TEXT_ENDINGS or not file.is_file():
        return ","
    with file.open("rb") as text:
        header = text.readline()
    return max(",;\t", key=lambda mark: header.count(mark.encode()))
