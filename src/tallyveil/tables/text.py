"""Text files as people have them, read block by block: CSV and TSV, packed or not.

A block is a piece of whole rows. Its lines, quotation marks and widths are checked before pyarrow
splits it into cells, all of them text: what pyarrow accepts silently (mixed line ends, blank lines,
stray quotation marks) is refused. Titles, comments and footnotes are left out only where the owner
declares them; otherwise a message asks about them.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tallyveil.arrays import Integers
from tallyveil.errors import TableError, numbered
from tallyveil.tables.labels import require_own_names
from tallyveil.tables.source import Source
from tallyveil.tables.table import FileIdentity
from tallyveil.untrusted import SMALL, UNLIKELY, open_file

if TYPE_CHECKING:
    import pyarrow as pa

PACKINGS = {".gz": "gzip", ".zst": "zstd"}
"""The ending of each way of packing that is read."""

MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Byte-order marks, and the encodings that they state."""

MARK = b"\xef\xbb\xbf"
"""A byte-order mark in UTF-8; inside a table, a character like any other."""

START = 1 << 16
"""Bytes at the beginning and at the end of a file that are looked at for titles and footnotes."""

BLOCK = 4 << 20
"""Bytes that are split into rows at once."""

HELD = 4 << 20
"""Bytes of rows that are kept, so that a short file is split once."""

LONGEST_ROW = 1 << 24
MOST_COLUMNS = 2**14
"""As many as a sheet of a workbook can have."""

LOOKED_AT = 30
"""Lines that may be titles, or show that others are."""

HEADER = re.compile(rb'(?:[^"\r\n]+|"[^"]*")*')
LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
NUMBER = re.compile(r"[+-]?[\d.,  ']*\d%?")
USUAL_COMMENTS = "#%"
OTHER_DELIMITERS = {";": "';'", "\t": "a tab", "|": "'|'", ",": "','"}
QUOTE, FEED, RETURN = ord('"'), ord("\n"), ord("\r")
DAMAGE = (OSError, EOFError, zlib.error)


class Room(NamedTuple):
    """Limits of what a file may unpack to: bytes and lines."""

    size: int = 2**62
    lines: int = 2**62

    @classmethod
    def of(cls, size: int) -> Room:
        """Allow room for a packed file of `size` bytes.

        Honest tables unpack to 3 to 30 times their size, and their rows take 3 bytes and more.
        """
        more = max(0, size - SMALL)
        return cls(64 * 2**20 + 20 * size + 20 * more, 6_000_000 + size // 2 + 12 * more)


ANY_SIZE = Room()


class UnpackedError(TableError):
    """A file unpacks to more than its size makes likely."""

    def __init__(self) -> None:
        super().__init__(UNLIKELY)


def split_packing(path: Path) -> tuple[str, str]:
    """Split the ending of a file into that of its content and that of its packing.

    >>> split_packing(Path("cases.CSV.gz")), split_packing(Path("cases.csv"))
    (('.csv', '.gz'), ('.csv', ''))
    """
    last = path.suffix.lower()
    if last not in PACKINGS:
        return last, ""
    return path.with_suffix("").suffix.lower(), last


class _Unpacked(io.RawIOBase):
    """Content of a packed file, piece by piece and up to a bound."""

    def __init__(self, raw: IO[bytes], packing: str, room: Room) -> None:
        self.raw, self.packing, self.room = raw, packing, room
        if packing == ".gz":
            self.stream: Any = gzip.GzipFile(fileobj=raw)
        else:
            import pyarrow as pa

            self.stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.raw.fileno()

    def readinto(self, buffer: Any) -> int:
        try:
            part = self.stream.read(min(len(buffer), 1 << 20))
        except DAMAGE:
            raise TableError(
                f"The file cannot be unpacked as {PACKINGS[self.packing]}: it is damaged or cut "
                "short."
            ) from None
        self.room = Room(self.room.size - len(part), self.room.lines - part.count(b"\n"))
        if min(self.room) < 0:
            raise UnpackedError
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self.raw.close()
        super().close()


@dataclass(frozen=True)
class _Content:
    """The bytes of a text, in a file or in memory, unpacked if it is packed."""

    place: Path | bytes
    packing: str = ""
    room: Room = ANY_SIZE

    def open(self) -> IO[bytes]:
        place = self.place
        raw: IO[bytes] = io.BytesIO(place) if isinstance(place, bytes) else open_file(place)
        if not self.packing:
            return raw
        return io.BufferedReader(_Unpacked(raw, self.packing, self.room), 1 << 20)

    def read_start(self) -> bytes:
        with self.open() as stream:
            return stream.read(START)

    def read_end(self) -> bytes:
        """Read the last bytes of a text that is not packed."""
        with self.open() as stream:
            size = stream.seek(0, io.SEEK_END)
            stream.seek(max(0, size - START))
            return stream.read()


def read_start(place: Path | bytes) -> bytes:
    """Read the first bytes of a file."""
    return _Content(place).read_start()


Judge: TypeAlias = Callable[[bytes, Any], None]
"""Looks at the bytes and the cells of a block."""


@dataclass(frozen=True, eq=False)
class TextRows:
    """The rows of a text file, every cell as text."""

    content: _Content
    options: Source
    delimiter: str
    encoding: str
    names: tuple[str, ...] = ()
    count: int = 0
    identity: FileIdentity | None = None
    held: Any = None
    """All rows of a short file."""
    cuts: tuple[tuple[int, int], ...] = ()
    """Bytes and rows of the header and of every block, once they were found."""

    @cached_property
    def schema(self) -> pa.Schema:
        """Names of the columns; all hold text."""
        import pyarrow as pa

        return pa.schema([(name, pa.string()) for name in self.names])

    def scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read some columns block by block."""
        self.require_same()
        if self.held is not None:
            yield from self.held.select(list(names)).to_batches()
            return
        rows = 0
        try:
            with self.content.open() as stream:
                if self.identity is not None:
                    self.identity.require_same(stream.fileno())
                text = self._read_lines(stream)
                cut = _cut_again(text, self.cuts) if self.cuts else _cut_rows(text, self.delimiter)
                blocks = islice(cut, 1, None)  # after the header
                for _, batch in self._parse_blocks(blocks, names):
                    rows += batch.num_rows
                    yield batch
        except (TableError, OSError):
            self.require_same()
            raise
        self.require_same()
        if rows != self.count:
            raise TableError("The file cannot be read again: it holds other rows than before.")

    def require_same(self) -> None:
        """Raise a `TableError` if the file was changed since its rows were counted."""
        if self.identity is not None:
            self.identity.require_same()

    def survey(self, judge: Judge | None = None) -> TextRows:
        """Read the header, check every row, and count them; `judge` looks at every block."""
        import pyarrow as pa

        identity = None
        if isinstance(self.content.place, Path):
            identity = FileIdentity.of(self.content.place)
        held: list[Any] = []
        size = 0
        with self.content.open() as stream:
            if identity is not None:
                identity.require_same(stream.fileno())
            blocks = _cut_rows(self._read_lines(stream), self.delimiter)
            header, _ = next(blocks, (b"", 0))
            opened = replace(self, names=self._read_header(header), identity=identity)
            cuts = [(len(header), 0)]
            for block, batch in opened._parse_blocks(blocks, opened.names):
                cuts.append((len(block), batch.num_rows))
                size += len(block)
                if judge is not None:
                    judge(block, batch)
                if size <= HELD:
                    held.append(batch)
        opened.require_same()
        table = pa.Table.from_batches(held, opened.schema) if size <= HELD else None
        return replace(opened, count=sum(rows for _, rows in cuts), held=table, cuts=tuple(cuts))

    def _read_header(self, line: bytes) -> tuple[str, ...]:
        try:
            text = line.decode()
            cells = next(
                csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, strict=True), []
            )
        except UnicodeDecodeError:
            raise _not_text(self.encoding) from None
        except csv.Error:
            raise TableError("The header of the file is not well-formed text.") from None
        if not any(cells):
            raise TableError("The table is empty: the file holds no header and no rows.")
        if len(cells) > MOST_COLUMNS:
            raise TableError(
                f"The header names more than {MOST_COLUMNS:,} columns. Leave out unneeded columns."
            )
        require_own_names(cells)
        return tuple(cells)

    def _parse_blocks(
        self, blocks: Iterable[tuple[bytes, int]], names: Sequence[str]
    ) -> Iterator[tuple[bytes, Any]]:
        """Yield every block with the cells of some columns."""
        start = 0
        for block, rows in blocks:
            batch = self._parse(block, names, start)
            if batch.num_rows != rows:
                raise _not_text(self.encoding)
            start += rows
            yield block, batch

    def _parse(self, block: bytes, names: Sequence[str], rows: int) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        text = MARK + block if block.startswith(MARK) else block  # pyarrow drops the first mark
        codes = list(map(str, range(len(self.names))))
        place = dict(zip(self.names, codes, strict=True))
        included = [place[name] for name in names]
        try:
            read = arrow_csv.read_csv(
                io.BytesIO(text),
                arrow_csv.ReadOptions(
                    column_names=codes, use_threads=False, block_size=len(text) + 1
                ),
                arrow_csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=False,
                ),
                arrow_csv.ConvertOptions(
                    column_types={code: pa.string() for code in included},
                    include_columns=included,
                ),
            )
        except pa.ArrowException:
            self._refuse_ragged(block, rows)
            raise _not_text(self.encoding) from None
        arrays = [c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in read.columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(names))

    def _refuse_ragged(self, block: bytes, rows: int) -> None:
        """Refuse the first row with more or fewer cells than the header.

        Arrow's own handler of such rows decodes them, and Python prints what cannot be decoded.
        """
        text, width = io.StringIO(block.decode(errors="replace"), newline=""), len(self.names)
        reader = csv.reader(text, delimiter=self.delimiter)
        with suppress(csv.Error):  # a cell of more characters than that module reads
            for number, cells in enumerate(reader, start=rows + 1):
                if len(cells) != width:
                    held, hint = numbered(len(cells), "cell"), delimiter_hint(self.names)
                    raise TableError(
                        f"Row {number} has {held} where the header has {width}.{hint}"
                    ) from None

    def _read_lines(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Read pieces of the text in UTF-8, without titles, comments and footnotes."""
        pieces = _decode(stream, self.encoding)
        if self.options.skipfooter:
            pieces = _drop_footer(pieces, self.options.skipfooter)
        pieces = _drop_first(pieces, self.options.skiprows)
        if self.options.comment is not None:
            pieces = _drop_comments(pieces, self.options.comment.encode())
        return pieces


def _decode(stream: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Recode a text to UTF-8, and line ends of old Macs to line feeds."""
    pieces: Iterator[bytes] = iter(lambda: stream.read(BLOCK), b"")
    if codecs.lookup(encoding).name != "utf-8":
        pieces = _recode(pieces, encoding)
    first = next(pieces, b"")
    pieces = chain([first], pieces)
    end = HEADER.match(first).end()  # type: ignore[union-attr]
    is_mac = first[end : end + 1] == b"\r" and first[end + 1 : end + 2] != b"\n"
    return _convert_mac(pieces) if is_mac else pieces


def _convert_mac(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Convert the line ends of old Macs, outside quotation marks."""
    inside = False
    for piece in pieces:
        content = np.frombuffer(piece, np.uint8).copy()
        outside = np.cumsum(content == QUOTE, dtype=np.uint8) % 2 == inside
        if (outside & (content == FEED)).any():
            raise _mixed_ends()
        content[outside & (content == RETURN)] = FEED
        inside ^= piece.count(b'"') % 2 == 1
        yield content.tobytes()


def _recode(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Decode text; bytes of another encoding are a `TableError`."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError:
        raise _not_text(encoding) from None


def _drop_first(pieces: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Leave out the first lines, and empty ones after them; a quoted cell may hold a line end."""
    start = b""
    for piece in pieces:
        start += piece
        if start.count(b"\n") > count + LOOKED_AT or len(start) > BLOCK:
            break
    if count:
        lines = _split_lines(start.decode("utf-8", errors="surrogateescape"))
        start = "".join(lines[count:]).encode("utf-8", errors="surrogateescape")
    yield start.lstrip(b"\r\n")
    yield from pieces


def _drop_comments(pieces: Iterable[bytes], mark: bytes) -> Iterator[bytes]:
    """Leave out lines that begin with a mark, outside quotation marks, and empty first lines."""
    comment = re.compile(rb"(?m)^[ \t]*" + re.escape(mark) + rb"[^\n]*\n?")
    inside, is_first = False, True
    for piece in _cut_lines(pieces):
        parts, start, counted = [], 0, 0
        for match in comment.finditer(piece) if mark in piece else ():
            inside ^= piece.count(b'"', counted, match.start()) % 2 == 1
            counted = match.start()
            if not inside:
                parts.append(piece[start:counted])
                start = counted = match.end()
        inside ^= piece.count(b'"', counted) % 2 == 1
        rest = b"".join([*parts, piece[start:]])
        rest = rest.lstrip(b"\r\n") if is_first else rest
        is_first = is_first and not rest
        yield rest


def _cut_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Cut a text into pieces of whole lines; the last may lack its line end."""
    rest = b""
    for piece in pieces:
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield rest + piece[:cut]
            rest = piece[cut:]
        else:
            rest += piece
    yield rest


def _drop_footer(pieces: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Leave out the last `count` lines, and empty ones after them."""
    held = b""
    for piece in pieces:
        held += piece
        cut = _find_last_lines(held.rstrip(b"\r\n"), count)
        if cut > 0:
            yield held[:cut]
            held = held[cut:]
    held = held.rstrip(b"\r\n")
    yield held[: _find_last_lines(held, count)]


def _find_last_lines(text: bytes, count: int) -> int:
    """Find where the last `count` lines begin; the end of the text for none."""
    cut = len(text)
    for _ in range(count):
        cut = text.rfind(b"\n", 0, max(cut - 1, 0)) + 1
    return cut


def _cut_rows(pieces: Iterable[bytes], delimiter: str) -> Iterator[tuple[bytes, int]]:
    """Yield the header, then blocks of whole rows, each with its number of rows.

    Rows end at line ends outside quotation marks; empty lines at the end are left out. What pyarrow
    would misread is refused.
    """
    rest, lines = b"", 0
    pairs: bool | None = None  # whether lines end as on Windows
    for piece in chain(pieces, [None]):
        text = rest + (piece or b"")
        if piece is None:
            text = text.rstrip(b"\r\n")
            text += (b"\r\n" if pairs else b"\n") if text else b""
        content = np.frombuffer(text, np.uint8)
        quotes, feeds, returns = (np.flatnonzero(content == mark) for mark in (QUOTE, FEED, RETURN))
        if len(quotes):
            feeds = feeds[np.searchsorted(quotes, feeds) % 2 == 0]
            returns = returns[np.searchsorted(quotes, returns) % 2 == 0]
        if piece is None and len(quotes) % 2:
            raise TableError(
                "The file is not well-formed text: a quotation mark has no partner. Correct it "
                "first."
            )
        filled = len(text.rstrip(b"\r\n"))
        feeds = feeds[: np.searchsorted(feeds, filled) + bool(filled)]
        cut = int(feeds[-1]) + 1 if len(feeds) else 0
        if not cut and len(text) > LONGEST_ROW:
            raise TableError(
                "A row is far too long: a quotation mark seems to have no partner. Correct it "
                "first."
            )
        block, rest = text[:cut], text[cut:]
        if not block:
            continue
        _require_plain(content[:cut], quotes[quotes < cut], ord(delimiter))
        returns = returns[returns < cut]
        if pairs is None:
            pairs = len(returns) > 0
        if not np.array_equal(returns + 1, feeds if pairs else ()):
            raise _mixed_ends()
        empty = np.diff(feeds, prepend=-1) == 1 + pairs
        if empty.any():
            raise TableError(
                f"Row {lines + int(empty.argmax())} is an empty line. Remove it, or leave it out "
                "with 'source.skipfooter' if only notes follow."
            )
        end, rows = 0 if lines else int(feeds[0]) + 1, len(feeds)
        del text, content, quotes, feeds, returns, empty  # not kept while a block is used
        if end:
            yield block[:end], 0
        if end < cut:
            yield block[end:], rows - bool(end)
        lines += rows


def _require_plain(content: NDArray[np.uint8], quotes: Integers, delimiter: int) -> None:
    """Refuse zero bytes, and quotation marks inside cells; inside quoted ones they are double."""
    if (content == 0).any():
        raise TableError(
            "The file is not plain text: it has a zero byte. If it is UTF-16 text, name its "
            "encoding with 'source.encoding'."
        )
    if not len(quotes):
        return
    first, last = quotes[::2], quotes[1::2]
    around = np.pad(content, 1, constant_values=FEED)
    joined = last[:-1] + 1 == first[1:]
    marks = (delimiter, FEED, RETURN)
    begins, ends = np.isin(around[first], marks), np.isin(around[last + 2], marks)
    begins[1:] |= joined
    ends[:-1] |= joined
    if not (begins.all() and ends.all()):
        raise TableError(
            "The file is not well-formed text: a quotation mark is inside a cell. Put the "
            "whole cell in quotation marks, and double the marks inside."
        )


def _cut_again(
    pieces: Iterable[bytes], cuts: Iterable[tuple[int, int]]
) -> Iterator[tuple[bytes, int]]:
    """Yield the header and the blocks of a file that was checked, each with its number of rows."""
    rest, more = b"", iter(pieces)
    for size, rows in cuts:
        parts = [rest]
        missing = size - len(rest)
        while missing > 0 and (piece := next(more, None)) is not None:
            parts.append(piece)
            missing -= len(piece)
        text = b"".join(parts)
        yield text[:size], rows
        rest = text[size:]


def _mixed_ends() -> TableError:
    return TableError(
        "The file mixes line endings (Windows, Unix or old Mac), so rows may be cut in the wrong "
        "place. Save it with one kind of line ending first."
    )


def _not_text(encoding: str) -> TableError:
    return TableError(
        f"The file cannot be read as {encoding} text. Name its encoding with 'source.encoding', "
        "for example latin-1, cp1252 or utf-16."
    )


def open_text(
    place: Path | bytes, options: Source, delimiter: str, packing: str = "", room: Room = ANY_SIZE
) -> TextRows:
    """Open a text file; a message asks about what seems to be a title or a footnote."""
    content = _Content(place, packing, room)
    start = content.read_start()
    encoding = find_encoding(start, options.encoding)
    if not start.strip():
        raise TableError("The table is empty: the file holds no header and no rows.")
    lines = _split_lines(start.decode(encoding, errors="replace").removeprefix("\ufeff"))
    lines = lines[options.skiprows :]

    def ask() -> str:
        titles = _find_titles(lines[:LOOKED_AT], options, delimiter)
        return titles or (_find_footnotes(lines, delimiter) if len(start) < START else "")

    if _has_title(lines, options, delimiter) and (hint := ask()):
        raise TableError(hint.strip())
    try:
        return TextRows(content, options, delimiter, encoding).survey()
    except UnpackedError:
        raise
    except TableError as problem:
        hint = ask()
        if not hint and not packing:
            end = content.read_end().decode(encoding, errors="replace")
            hint = _find_footnotes(_split_lines(end), delimiter)
        raise TableError(f"{problem}{hint}") from None


def open_released(path: Path) -> TextRows:
    """Open a CSV file in the form of releases, to be surveyed."""
    return TextRows(_Content(path), Source(), ",", "utf-8")


def reopen_released(path: Path, names: Sequence[str], rows: int) -> TextRows:
    """Open a CSV file that was just written; only a short one is read at once."""
    opened, identity = open_released(path), FileIdentity.of(path)
    if path.stat().st_size <= HELD:
        return opened.survey()
    return replace(opened, names=tuple(names), count=rows, identity=identity)


def count_packed(path: Path, packing: str, room: Room) -> None:
    """Raise an `UnpackedError` if a packed file unpacks to more than there is room for."""
    with _Content(path, packing, room).open() as stream:
        while stream.read(BLOCK):
            pass


def find_encoding(start: bytes, declared: str) -> str:
    """Find the encoding of a text from its beginning: by its mark, else the declared one.

    >>> find_encoding(b"\\xff\\xfea\\x00", "utf-8"), find_encoding(b"a,b", "latin-1")
    ('utf-16', 'latin-1')
    """
    try:
        codecs.lookup(declared)
    except LookupError:
        raise _not_text(declared) from None
    plain = declared.lower().replace("_", "-")
    for mark, name in MARKS:
        if start.startswith(mark):
            if plain in ("utf-8", "utf8") or plain.startswith(name[:6]):
                return name
            if name != "utf-8-sig":
                break  # in latin-1 these bytes may be letters
            raise TableError(
                f"The file begins with the mark of UTF-8, so it is not {declared} text. Leave "
                "'source.encoding' out."
            )
    half = start[: len(start) // 2 * 2]
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = half[first::2].count(0)
        if len(half) > 16 and zeros > len(half) // 4 and not plain.startswith("utf-16"):
            raise TableError(f"The file seems to be UTF-16 text: give source.encoding={name!r}.")
    return declared


def _split_lines(text: str) -> list[str]:
    """Split text into lines with their ends; a quoted cell may hold the end of a line."""
    lines: list[str] = []
    is_open = False
    for line in filter(None, LINE.findall(text)):
        if is_open:
            lines[-1] += line
        else:
            lines.append(line)
        is_open ^= line.count('"') % 2 == 1
    return lines


def _has_title(lines: Sequence[str], options: Source, delimiter: str) -> bool:
    """Return whether the first line fills its first cell only, as titles in spreadsheets do."""
    for line in lines:
        if line.strip() and not (options.comment and line.lstrip().startswith(options.comment)):
            empty = line.rstrip("\r\n").rstrip(delimiter + " ")
            return line.startswith(empty + delimiter) and len(_fill(line, delimiter)) == 1
    return False


def _find_titles(lines: Sequence[str], options: Source, delimiter: str) -> str:
    """Return a hint if lines before the first full line fill fewer cells, else "".

    A hint starts with a space. It names lines, never what they hold.
    """
    filled = [_fill(line, delimiter) for line in lines]
    widest = max(map(len, filled), default=0)
    header = next((row for row, cells in enumerate(filled) if len(cells) == widest), 0)
    if header == 0 or widest < 2 or any(NUMBER.fullmatch(cell) for cell in filled[header]):
        return ""
    marks = {line.lstrip()[:1] for line in lines[:header] if line.strip()}
    if len(marks) == 1 and (mark := marks.pop()) in USUAL_COMMENTS:
        return f" The first lines seem to be comments: leave them out with source.comment={mark!r}."
    number = options.skiprows + header
    return (
        f" The file seems to begin with a title: line {number + 1} looks like the header. If it "
        f"is, use source.skiprows={number}."
    )


def _find_footnotes(lines: Sequence[str], delimiter: str) -> str:
    """Return a hint if lines after the table fill one cell or none, else ""."""
    empty = next((row for row, line in enumerate(reversed(lines)) if line.strip()), 0)
    widths = [len(_fill(line, delimiter)) for line in lines[: len(lines) - empty]]
    if not widths or widths[0] < 2:
        return ""
    notes = next((row for row, width in enumerate(reversed(widths)) if width > 1), 0)
    if not notes:
        return ""
    return f" The file seems to end with footnotes: leave them out with source.skipfooter={notes}."


def _fill(line: str, delimiter: str) -> list[str]:
    """List the cells of a line that are not empty."""
    try:
        cells = next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells if cell.strip()]


def delimiter_hint(header: Sequence[str]) -> str:
    """Return a hint if a header of one name seems to have another delimiter, else "".

    A hint starts with a space.
    """
    if len(header) != 1:
        return ""
    best = max(OTHER_DELIMITERS, key=header[0].count)
    if best not in header[0]:
        return ""
    return (
        f" The header seems to be separated by {OTHER_DELIMITERS[best]}: "
        f"give source.delimiter={'tab' if best == chr(9) else best!r}."
    )
