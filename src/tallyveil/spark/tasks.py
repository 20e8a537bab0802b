"""Tasks of executors: stage rows, draw them, count records. Nothing here knows Spark.

A task receives its partition's batches and number, and gives results for the driver. Rows are
drawn from bits that a key and the number of the task decide: an attempt that Spark repeats draws
the same bytes again.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tallyveil.arrays import Integers, count_values
from tallyveil.errors import TableError
from tallyveil.fingerprint import fingerprint
from tallyveil.sampling.entropy import Entropy, SeededNotPrivate
from tallyveil.spark.files import LabelWriter, Piece, Vault
from tallyveil.tables.conditions import RowChooser
from tallyveil.tables.counts import MISSING, read_counts
from tallyveil.tables.labels import normal_label, view_numbers, write_texts
from tallyveil.tables.microdata import Counting, PersonBound, Places, describe_unlisted
from tallyveil.tables.source import Source
from tallyveil.tables.table import Held, Table

if TYPE_CHECKING:
    from tallyveil.release.methods.base import Plan

Batches = Iterable[pa.RecordBatch]

PLACED = "person string, cell int, note binary"
"""Records on their way to the other records of their person, and one note for each task."""

PLACED_SCHEMA = pa.schema([("person", pa.string()), ("cell", pa.int32()), ("note", pa.binary())])

OWN_FORM = "^[0-9A-Za-z_-]*[0-9][0-9A-Za-z_-]*$"
"""Identifiers that are their own normal form, and no missing value: with a digit, without marks."""


def make_entropy(key: bytes, *place: int) -> Entropy:
    """Make the random bits of one place, which nobody without the key can predict.

    AES-256-CTR under a key of this place alone: places are independent of each other, and a task
    that is repeated has the same bits again.
    """
    seed = hashlib.blake2b(repr(place).encode(), key=key, digest_size=32).digest()
    return SeededNotPrivate(int.from_bytes(seed, "big"))


@dataclass(eq=False)
class Staged:
    """A run of rows that a task read, checked and left in the vault.

    `place` marks the run's file and block, where they are known. `first`, `rises` and `falls` tell
    of each column whether its counts are in order.
    """

    number: int
    place: int = 0
    labels: str = ""
    counts: tuple[Piece, ...] = ()
    rows: int = 0
    above: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    rises: tuple[bool, ...] = ()
    falls: tuple[bool, ...] = ()
    program: str = field(default_factory=fingerprint)


def stage_rows(
    batches: Batches,
    number: int,
    *,
    vault: Vault,
    uppers: Mapping[str, int],
    labels: Sequence[str],
    options: Source,
) -> Iterator[Staged]:
    """Read rows once; check every count, and keep what is needed in the vault.

    A further column of the batches, if there is one, marks the place of each row.
    """
    run, names = _Run(vault, uppers, labels), [*uppers, *labels]
    for batch in batches:
        is_marked = batch.num_columns > len(names)
        marks = view_numbers(batch.columns[-1]) if is_marked else None
        for start, stop, place in _cut_runs(marks, batch.num_rows):
            if run.rows and run.place != place:
                yield run.finish(number)
                run = _Run(vault, uppers, labels)
            run.place = place
            rows = pa.Table.from_batches([batch.slice(start, stop - start)]).select(names)
            run.add(Table(Held(rows), options=options))
    yield run.finish(number) if run.rows else Staged(number)


def _cut_runs(marks: NDArray[Any] | None, rows: int) -> Iterator[tuple[int, int, int]]:
    """Cut rows where their mark changes; gives the first and the last of a run, and its mark."""
    if marks is None:
        yield 0, rows, 0
        return
    cuts = [0, *(np.flatnonzero(marks[1:] != marks[:-1]) + 1).tolist(), rows]
    for start, stop in pairwise(cuts):
        yield start, stop, int(marks[start])


class _Run:
    """Rows from one block of a file, or of one partition."""

    def __init__(self, vault: Vault, uppers: Mapping[str, int], labels: Sequence[str]) -> None:
        self.vault, self.uppers, self.labels = vault, uppers, labels
        self.place = self.rows = 0
        self.counts: dict[str, list[NDArray[Any]]] = {name: [] for name in uppers}
        self.above = dict.fromkeys(uppers, 0)
        self.writer: LabelWriter | None = None

    def add(self, table: Table) -> None:
        """Keep some rows."""
        self.rows += table.rows
        for name, upper in self.uppers.items():
            column = read_counts(table, name, upper)
            self.counts[name].append(column.values)
            self.above[name] += column.above
        for batch in table.scan(self.labels) if self.labels else ():
            self.writer = self.writer or LabelWriter(self.vault, batch.schema)
            self.writer.add(batch)

    def finish(self, number: int) -> Staged:
        """Write the remaining rows."""
        columns = [np.concatenate(parts) for parts in self.counts.values()]
        if self.writer is not None:
            self.writer.close()
        return Staged(
            number,
            self.place,
            "" if self.writer is None else self.writer.name,
            tuple(map(self.vault.save, columns)),
            self.rows,
            tuple(self.above.values()),
            tuple(int(column[0]) for column in columns),
            tuple(bool((column[1:] >= column[:-1]).all()) for column in columns),
            tuple(bool((column[1:] <= column[:-1]).all()) for column in columns),
        )


@dataclass(frozen=True, eq=False)
class Drawn:
    """The draws of one run of rows and one column, in the vault; `tally` is confidential."""

    values: Piece
    noisy: Piece | None
    tally: Integers | None


def draw_runs(
    batches: Batches,
    number: int,
    *,
    vault: Vault,
    key: bytes,
    plans: Sequence[Plan],
    tasks: Sequence[Mapping[int, tuple[Piece, ...]]],
) -> Iterator[tuple[int, list[Drawn]]]:
    """Draw every row of some runs once, of every column."""
    from tallyveil.release.methods.base import draw_rows, require_range
    from tallyveil.release.methods.preserve import tally_counts

    for run, pieces in tasks[number].items():
        drawn = []
        for place, (plan, piece) in enumerate(zip(plans, pieces, strict=True)):
            counts = vault.load(piece)
            require_range(counts, plan.task.upper + 1)
            rows = draw_rows(plan, counts, make_entropy(key, place, run))
            noisy = None if rows.noisy is None else vault.save(rows.noisy)
            drawn.append(Drawn(vault.save(rows.values), noisy, tally_counts(plan, counts)))
        yield run, drawn


@dataclass(eq=False)
class Chosen:
    """The records counted in each category: the ones that stay, and all of them.

    `kinds` tell what the columns of conditions hold: see `RowChooser`.
    """

    counts: Integers
    every: Integers
    kinds: list[list[set[bool]]] = field(default_factory=list)
    program: str = field(default_factory=fingerprint)


class _Placing:
    """A search for the category of every record that meets the conditions."""

    def __init__(self, rule: Counting) -> None:
        self.public = Places.of(rule.by, rule.categories, rule.other, rule.bins)
        self.chooser = RowChooser(rule.where)

    def find(self, batch: pa.RecordBatch) -> tuple[NDArray[np.intp], Integers]:
        """Find the records that are counted, and their categories."""
        table = Table(Held(pa.Table.from_batches([batch])))
        met = np.flatnonzero(self.chooser.choose(table))
        places = self.public.find(table)[met]
        if (places < 0).any():
            raise describe_unlisted("A row")
        return met, places


def count_groups(batches: Batches, number: int, rule: Counting) -> Iterator[Chosen]:
    """Count records that Spark has grouped; the last column has the size of each group."""
    placing, counts = _Placing(rule), np.zeros(len(rule.categories), np.int64)
    for batch in batches:
        *names, _ = batch.schema.names
        met, places = placing.find(batch.select(names))
        np.add.at(counts, places, view_numbers(batch.columns[-1])[met])
    yield Chosen(counts, counts, [placing.chooser.kinds])


def place_rows(batches: Batches, rule: Counting, person: str) -> Iterator[pa.RecordBatch]:
    """Place every record and name its person, the last column, in normal form.

    What Spark shuffles then has all records of a person in one partition. A problem travels as a
    note, so that no message of Spark's quotes a record.
    """
    placing, problem = _Placing(rule), None
    try:
        for batch in batches:
            *names, _ = batch.schema.names
            persons = _name_persons(batch.columns[-1], person)
            met, places = placing.find(batch.select(names))
            cells = pa.array(places, pa.int32())
            columns = [persons.take(pa.array(met)), cells, pa.nulls(len(met), pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, schema=PLACED_SCHEMA)
    except TableError as error:
        problem = error
    note = pickle.dumps((problem, placing.chooser.kinds, fingerprint()))
    yield pa.RecordBatch.from_pylist([{"note": note}], schema=PLACED_SCHEMA)


def _name_persons(column: pa.Array, name: str) -> pa.Array:
    """Write identifiers in normal form; a missing one is refused: it is nobody's."""
    texts = write_texts(column).fill_null("")
    odd = pc.invert(pc.match_substring_regex(texts, OWN_FORM))
    if not pc.any(odd).as_py():
        return texts
    labels = texts.filter(odd).dictionary_encode()
    if any(label.strip().lower() in MISSING for label in labels.dictionary.to_pylist()):
        raise TableError(
            f"A row has no value in {name!r}, so nothing says whose it is. Leave such rows out, or "
            "give each of them another value."
        )
    forms = pa.array(list(map(normal_label, labels.dictionary.to_pylist())), pa.string())
    return pc.replace_with_mask(texts, odd, forms.take(labels.indices))


def choose_rows(
    batches: Batches, number: int, bound: PersonBound, key: bytes, size: int
) -> Iterator[Chosen]:
    """Count at most N random records of each person; all of theirs are in this partition.

    Records are sorted first, so a repeated attempt, to which they come in another order, chooses
    alike.
    """
    table = pa.Table.from_batches(batches, PLACED_SCHEMA)
    has_note = pc.is_valid(table["note"])
    notes = [pickle.loads(note) for note in table["note"].filter(has_note).to_pylist()]
    for problem, _, program in notes:
        if problem is not None:
            raise problem
        if program != fingerprint():
            raise TableError("The executors run different versions of Tallyveil.")
    records = table.filter(pc.invert(has_note)).sort_by(
        [("person", "ascending"), ("cell", "ascending")]
    )
    person = records["person"].combine_chunks().dictionary_encode()
    cells = np.concatenate([np.zeros(0, np.int32), *map(view_numbers, records["cell"].chunks)])
    shuffle = make_entropy(key, number).permutation
    persons = view_numbers(person.indices).astype(np.int64)
    stays = replace(bound, shuffle=shuffle).choose(persons, cells, np.ones(len(cells), bool))
    counts, every = count_values(cells[stays], size), count_values(cells, size)
    yield Chosen(counts, every, [kinds for _, kinds, _ in notes])
