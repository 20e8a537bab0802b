"""Parquet and Feather files, read batch by batch."""

from __future__ import annotations

import mmap as mmap_module
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallyveil.errors import TableError, replacing
from tallyveil.tables.table import BATCH_ROWS, FileIdentity, make_plain, plain_schema, plain_type
from tallyveil.untrusted import SMALL, UNLIKELY

if TYPE_CHECKING:
    import pyarrow as pa

UNPACKED_LEAST, UNPACKED_EACH = 300 << 20, 20
"""Bytes that a file may take in memory at once, and how many more for each of its bytes."""

MOST_ROWS, ROWS_EACH = 50_000_000, 16
"""Rows that a small file may have, and rows for each byte of a larger one."""

MAGIC = b"ARROW1"
MAPPED = 16
"""Batches after which mapped memory is given back: reading a header maps the bytes around it."""

BUFFER = 1 << 20
"""Bytes read at once from each column of a Parquet file."""


@dataclass(frozen=True, eq=False)
class _FileRows:
    """Rows of a file of columns; subclasses read them."""

    identity: FileIdentity
    schema: Any
    count: int
    keeper: object = None
    """What a private file goes with."""

    kind = ""

    def _read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch, as they are stored."""
        raise NotImplementedError

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns batch by batch."""
        self.identity.require_same()
        rows = 0
        try:
            for batch in self._read(names):
                rows += batch.num_rows
                yield make_plain(batch)
        except (TableError, MemoryError):
            raise
        except Exception:
            self.identity.require_same()
            raise describe_damage(self.kind) from None
        if rows != self.count:
            raise describe_damage(self.kind)
        self.identity.require_same()

    def require_same(self) -> None:
        """Raise a `TableError` if the file was changed since its rows were counted."""
        self.identity.require_same()


@dataclass(frozen=True, eq=False)
class ParquetRows(_FileRows):
    """The rows of a Parquet file."""

    kind = "Parquet"

    @classmethod
    def open(cls, path: Path, *, is_ours: bool = False) -> ParquetRows:
        """Open a file; one that holds far more than its size makes likely is refused."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        identity = _identify(path)
        with replacing(partial(describe_damage, cls.kind)), pa.OSFile(str(path)) as source:
            identity.require_same(source.fileno())
            file = pq.ParquetFile(source)
            rows, schema = file.metadata.num_rows, plain_schema(file.schema_arrow)
            if not is_ours:
                _require_likely_rows(rows, path)
                _require_short_text(source, file.schema_arrow)
        identity.require_same()
        return cls(identity, schema, rows)

    def _read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pa.OSFile(str(self.identity.path)) as source:
            self.identity.require_same(source.fileno())
            file = pq.ParquetFile(source, buffer_size=BUFFER, pre_buffer=False)
            yield from file.iter_batches(BATCH_ROWS, columns=list(names), use_threads=False)


@dataclass(frozen=True, eq=False)
class FeatherRows(_FileRows):
    """The rows of a Feather (Arrow IPC) file."""

    kind = "Arrow"

    @classmethod
    def open(cls, path: Path, keeper: object = None) -> FeatherRows:
        """Open a file; one that holds far more than its size makes likely is refused."""
        import pyarrow as pa

        identity = _identify(path)
        with replacing(partial(describe_damage, cls.kind)):
            with pa.OSFile(str(path)) as source:
                identity.require_same(source.fileno())
                schema = plain_schema(pa.ipc.open_file(source).schema)
            with open(path, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
                identity.require_same(file.fileno())
                rows, size = _measure_feather(content)
        if keeper is None:
            _require_likely_rows(rows, path)
            if size > UNPACKED_LEAST + UNPACKED_EACH * path.stat().st_size:
                raise describe_unlikely("write it as Parquet: that is read in batches")
        identity.require_same()
        return cls(identity, schema, rows, keeper)

    def _read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        places = [self.schema.names.index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=places, use_threads=False)
        with pa.OSFile(str(self.identity.path)) as source:
            self.identity.require_same(source.fileno())
            reader = pa.ipc.open_file(source, options=options)
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number).select(list(names))
                for start in range(0, batch.num_rows, BATCH_ROWS):
                    part = batch.slice(start, BATCH_ROWS)
                    _require_short_batch(part)
                    yield part


def _identify(path: Path) -> FileIdentity:
    if not path.stat().st_size:
        raise TableError("The table is empty: the file holds no bytes.")
    return FileIdentity.of(path)


def _require_likely_rows(rows: int, path: Path) -> None:
    """Refuse a file with far more rows than it seems to hold: a row takes some bytes of memory."""
    size = path.stat().st_size
    if rows > (MOST_ROWS if size <= SMALL else ROWS_EACH * size):
        raise describe_unlikely("write it as Parquet without compression and dictionaries")


def _require_short_text(source: Any, schema: Any) -> None:
    """Refuse a file with long texts that many rows share: a batch of them fills the memory."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    names = [f.name for f in schema if plain_type(f.type) == pa.string()]
    with pq.ParquetFile(source, read_dictionary=names, pre_buffer=False) as file:
        for group in range(file.num_row_groups) if names else ():
            part = {"row_groups": [group], "columns": names, "use_threads": False}
            first = next(file.iter_batches(1, **part), None)
            lengths = [
                pc.max(pc.binary_length(column.dictionary)).as_py() or 0
                for column in (() if first is None else first.columns)
                if pa.types.is_dictionary(column.type)
            ]
            if BATCH_ROWS * sum(lengths) > UNPACKED_LEAST:
                for batch in file.iter_batches(BATCH_ROWS, **part):
                    _require_short_batch(batch)


def _require_short_batch(batch: Any) -> None:
    """Refuse a batch whose codes or views refer to texts that fill the memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = 0
    for column in batch.columns:
        if pa.types.is_dictionary(column.type) and plain_type(column.type) == pa.string():
            lengths = pc.binary_length(column.dictionary.cast(pa.large_string()))
            size += pc.sum(pc.take(lengths, column.indices)).as_py() or 0
        elif column.type == pa.string_view():
            views = memoryview(column.buffers()[1]).cast("i")[4 * column.offset :: 4]
            size += sum(views[: len(column)])
    if size > UNPACKED_LEAST:
        raise describe_unlikely("shorten its texts")


def describe_unlikely(hint: str) -> TableError:
    """Describe the error of a file that unpacks to more than its size makes likely."""
    return TableError(f"{UNLIKELY} If that is right, {hint}.")


def describe_damage(kind: str) -> TableError:
    """Describe the error of a file that is not what its kind says."""
    return TableError(f"The file cannot be read as {kind}: it is damaged or cut short.")


def _measure_feather(content: bytes | mmap) -> tuple[int, int]:
    """Measure the rows of an Arrow IPC file, and the bytes that its batches unpack to."""
    try:
        if content[: len(MAGIC)] != MAGIC or content[-len(MAGIC) :] != MAGIC:
            raise ValueError("not an Arrow file")
        (length,) = struct.unpack_from("<i", content, len(content) - 10)
        footer = _FlatTable(content, len(content) - 10 - length)
        parts = [list(_measure_batches(content, footer.structs(part, 24))) for part in (2, 3)]
        return sum(rows for rows, _ in parts[1]), sum(size for part in parts for _, size in part)
    except struct.error:
        raise ValueError("a header points outside the file") from None


def _measure_batches(content: bytes | mmap, blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield rows and size of every batch; give mapped memory back now and then."""
    unneeded = getattr(mmap_module, "MADV_DONTNEED", None)  # not on Windows
    for number, block in enumerate(blocks, start=1):
        yield _measure_batch(content, *struct.unpack_from("<qi4xq", content, block))
        if isinstance(content, mmap) and unneeded is not None and number % MAPPED == 0:
            content.madvise(unneeded)


def _measure_batch(content: bytes | mmap, offset: int, head: int, body: int) -> tuple[int, int]:
    """Measure the rows of a batch, and what it unpacks to: its buffers, and a byte for each row."""
    if offset < 0 or head < 8 or body < 0 or offset + head + body > len(content):
        raise ValueError("a batch lies outside the file")
    message = _FlatTable(content, offset + 8)  # after the mark and the length
    batch = message.table(2)
    if struct.unpack_from("<B", content, message.field(1))[0] == 2:  # a dictionary
        batch = batch.table(1)
    rows = struct.unpack_from("<q", content, batch.field(0))[0] if batch.field(0) else 0
    packed = batch.field(3) != 0
    total = max(rows, 0)
    for buffer in batch.structs(2, 16):
        start, length = struct.unpack_from("<qq", content, buffer)
        if length < 0 or start < 0 or start + length > body:
            raise ValueError("a buffer lies outside its batch")
        if packed and length >= 8:
            (declared,) = struct.unpack_from("<q", content, offset + head + start)
            length = declared if declared >= 0 else length
        total += length
    return max(rows, 0), total


class _FlatTable:
    """A FlatBuffers table: where its fields are, by number."""

    def __init__(self, content: bytes | mmap, pointer: int) -> None:
        self.content = content
        self.start = pointer + struct.unpack_from("<I", content, pointer)[0]
        self.fields = self.start - struct.unpack_from("<i", content, self.start)[0]
        (self.size,) = struct.unpack_from("<H", content, max(self.fields, 0))

    def field(self, number: int) -> int:
        """Return where a field is, or 0 if it is not there."""
        place = 4 + 2 * number
        if self.fields < 0 or place + 2 > self.size:
            return 0
        (offset,) = struct.unpack_from("<H", self.content, self.fields + place)
        return self.start + int(offset) if offset else 0

    def table(self, number: int) -> _FlatTable:
        """Return the table that a field refers to."""
        pointer = self.field(number)
        if not pointer:
            raise ValueError("a header lacks a part")
        return _FlatTable(self.content, pointer)

    def structs(self, number: int, size: int) -> list[int]:
        """List where the structs of a list are, none if it is not there."""
        pointer = self.field(number)
        if not pointer:
            return []
        start = pointer + struct.unpack_from("<I", self.content, pointer)[0]
        (count,) = struct.unpack_from("<I", self.content, start)
        if count * size > len(self.content):
            raise ValueError("a list is longer than the file")
        return [start + 4 + size * k for k in range(count)]
