"""The two forms of a data file, and how large each can be.

CSV is UTF-8, with commas, line feeds, and quotation marks only where they are needed. Parquet has
row groups of a fixed size, plain values without dictionaries, and no metadata. What is written
depends on the published rows alone, never on the batches that they come in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from tallyveil.tables.labels import fill_empty, make_texts, write_texts

FORMATS = ("csv", "parquet")
"""What a table is written as, by the ending of the file."""

SPECIAL = (b'"', b",", b"\n", b"\r")
"""Cells with one of these are quoted."""

KINDS = ("", "integer", "number", "string")
"""Types of text that is read from a file, each able to hold those before it."""

ODD_CELL = '[",\r\n]'
MOST_AT_ONCE = 1 << 28
"""Bytes of text that are joined at once; Arrow's offsets have 31 bits."""

GROUP_ROWS, FEW_COLUMNS = 1 << 20, 8
"""Rows of a group of a Parquet file with this many columns; fewer for more columns."""

WIDEST_COUNT = 20
"""Digits of a count, with a sign."""

CELL_BYTES = 20
"""A value and its length take fewer bytes in a Parquet file, unless it is text."""


class TextFacts(NamedTuple):
    """The cells of a column as text: their bytes, whether some need quotation marks, their kind.

    The kind is the Frictionless type of text that was read from a file, else "".
    """

    size: int = 0
    quotes: int = 0
    longest: int = 0
    odd: bool = False
    kind: str = ""

    @classmethod
    def of(cls, texts: Any, kind: str) -> TextFacts:
        """Measure an Arrow array of text."""
        import pyarrow.compute as pc

        lengths = pc.binary_length(texts)
        content = view_text(texts)
        if b"\0" in content:
            raise ValueError("no file of a spreadsheet holds a zero byte")
        return cls(
            pc.sum(lengths).as_py() or 0,
            content.count(b'"'),
            pc.max(lengths).as_py() or 0,
            any(mark in content for mark in SPECIAL),
            kind,
        )

    @classmethod
    def of_integers(cls, numbers: Any) -> TextFacts:
        """Bound the text of an Arrow array of whole numbers, as if each were the longest."""
        import pyarrow.compute as pc

        ends = pc.min_max(numbers).as_py().values()
        longest = max((len(str(end)) for end in ends if end is not None), default=0)
        return cls(longest * len(numbers), 0, longest)

    def join(self, other: TextFacts) -> TextFacts:
        """Return the facts of two parts of a column together."""
        return TextFacts(
            self.size + other.size,
            self.quotes + other.quotes,
            max(self.longest, other.longest),
            self.odd or other.odd,
            max(self.kind, other.kind, key=KINDS.index),
        )


def view_text(texts: Any) -> bytes:
    """Return the bytes of an Arrow array of text, joined; a missing value has none."""
    import numpy as np

    _, offsets, content = texts.buffers()
    if content is None or not len(texts):
        return b""
    ends = np.frombuffer(offsets, np.int32, len(texts) + 1, 4 * texts.offset)
    return memoryview(content)[int(ends[0]) : int(ends[-1])].tobytes()


def render_names(names: Sequence[str]) -> bytes:
    """Write the header of a CSV file."""
    return render_texts((), [[name] for name in names])


def render_texts(names: Sequence[str], columns: Sequence[Sequence[str]]) -> bytes:
    """Write a CSV file of columns of texts.

    >>> render_texts(["a", "b"], [["x,y", ""], ["1", "2"]])
    b'a,b\\n"x,y",1\\n,2\\n'
    """
    import pyarrow as pa

    header = render_names(names) if names else b""
    places = list(map(str, range(len(columns))))
    return header + render_csv(pa.RecordBatch.from_arrays(list(map(make_texts, columns)), places))


def render_csv(batch: Any) -> bytes:
    """Write the rows of a batch as lines of a CSV file.

    >>> import pyarrow as pa
    >>> render_csv(pa.RecordBatch.from_pydict({"a": ["x,y", None], "b": [1, 2]}))
    b'"x,y",1\\n,2\\n'
    """
    import pyarrow.compute as pc

    empty, quotes, comma, feed = make_texts(["", '""', ",", "\n"])
    if batch.nbytes > MOST_AT_ONCE and batch.num_rows > 1:
        half = batch.num_rows // 2
        return render_csv(batch.slice(0, half)) + render_csv(batch.slice(half))
    texts = [_quote(fill_empty(write_texts(column))) for column in batch.columns]
    if len(texts) == 1:
        texts = [pc.if_else(pc.equal(texts[0], empty), quotes, texts[0])]
    rows = pc.binary_join_element_wise(*texts, comma) if len(texts) > 1 else texts[0]
    return view_text(pc.binary_join_element_wise(rows, empty, feed))


def _quote(texts: Any) -> Any:
    """Put quotation marks around the cells that need them."""
    import pyarrow.compute as pc

    content = view_text(texts)
    if not any(mark in content for mark in SPECIAL):
        return texts
    doubled = pc.replace_substring(texts, '"', '""') if b'"' in content else texts
    quote, empty = make_texts(['"', ""])
    quoted = pc.binary_join_element_wise(quote, doubled, quote, empty)
    return pc.if_else(pc.match_substring_regex(texts, ODD_CELL), quoted, texts)


def write_csv(file: IO[bytes], names: Sequence[str], batches: Iterable[Any]) -> None:
    """Write a CSV file batch by batch."""
    file.write(render_names(names))
    for batch in batches:
        file.write(render_csv(batch))


def bound_csv(labels: Mapping[str, TextFacts], rows: int, counts: int) -> int:
    """Bound the rows of a CSV file: its labels as measured, and the widest counts."""
    size = rows * counts * (WIDEST_COUNT + 1)
    for fact in labels.values():
        size += fact.size + fact.quotes + rows * (3 if fact.odd or len(labels) == 1 else 1)
    return size


def write_parquet(file: IO[bytes], schema: Any, batches: Iterable[Any]) -> None:
    """Write a Parquet file in row groups of a fixed size."""
    import pyarrow as pa

    size = choose_group_rows(len(schema))
    with open_parquet(file, schema) as writer:
        for group in _regroup(batches, size):
            writer.write_table(pa.Table.from_batches(group, schema).combine_chunks(), size)


def open_parquet(file: Any, schema: Any) -> Any:
    """Open a writer of the one form of Parquet files."""
    import pyarrow.parquet as pq

    return pq.ParquetWriter(
        file,
        schema,
        version="2.6",
        compression="snappy",
        use_dictionary=False,
        write_statistics=False,
        store_schema=False,
        data_page_version="1.0",
    )


def choose_group_rows(columns: int) -> int:
    """Choose the rows of a group: 2^20, halved whenever the columns double beyond eight."""
    return GROUP_ROWS >> max(0, (columns - 1) // FEW_COLUMNS).bit_length()


def _regroup(batches: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Cut batches so that all groups but the last have `size` rows."""
    group: list[Any] = []
    rows = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, size - rows)
            group.append(part)
            start, rows = start + part.num_rows, rows + part.num_rows
            if rows == size:
                yield group
                group, rows = [], 0
    if group:
        yield group


def bound_parquet(labels: Mapping[str, TextFacts], rows: int, counts: int) -> int:
    """Bound a Parquet file; Snappy can lengthen what it cannot compress by a sixth."""
    columns = len(labels) + counts
    size = sum(fact.size for fact in labels.values()) + rows * columns * CELL_BYTES
    groups = rows // choose_group_rows(columns) + 1
    return size + size // 6 + (groups * columns << 12) + (1 << 16)
