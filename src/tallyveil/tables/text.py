"""Text files as people have them: byte-order marks, UTF-16, titles, comments and footnotes.

What is not a row of the table is left out only where its owner says so; otherwise it is asked
about. Skipped lines are not published.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from tallyveil.errors import TableError
from tallyveil.tables.form import Form

__all__ = [
    "START",
    "ask_about_lines",
    "find_encoding",
    "has_title",
    "normalize_text",
    "read_start",
]

MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""How a text begins that says its own encoding."""

START = 1 << 16
"""Bytes that are looked at before a file is read."""

LOOKED_AT = 30
"""Lines that may be titles, or show that others are."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")
NUMBER = re.compile(r"[+-]?[\d.,  ']*\d%?")
USUAL_COMMENTS = "#%"


def read_start(source: Path | bytes) -> bytes:
    """Give the first bytes of a file."""
    if isinstance(source, bytes):
        return source[:START]
    with open(source, "rb") as file:
        return file.read(START)


def find_encoding(start: bytes, declared: str) -> str:
    """Find the encoding of a text that begins so: its own mark's, else the declared one.

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
                "--encoding out."
            )
    half = start[: len(start) // 2 * 2]
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = half[first::2].count(0)
        if len(half) > 16 and zeros > len(half) // 4 and not plain.startswith("utf-16"):
            raise TableError(f"The file seems to be UTF-16 text: give --encoding {name}.")
    return declared


def normalize_text(raw: bytes, form: Form, encoding: str) -> bytes:
    """Give the rows of a text file as UTF-8: decoded, without titles, comments and footnotes."""
    try:
        text = raw.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise _not_text(encoding) from None
    if form.is_plain:
        return text.encode()
    lines = _split_lines(text)[form.skip_rows :]
    if form.comment is not None:
        lines = [line for line in lines if not line.lstrip().startswith(form.comment)]
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    kept = lines[: len(lines) - form.skip_footer] if form.skip_footer else lines
    if not kept:
        raise TableError("The table is empty: every line is left out by skipping and comments.")
    return "".join(kept).encode()


def _not_text(encoding: str) -> TableError:
    return TableError(
        f"The file cannot be read as {encoding} text. Name its encoding with --encoding, for "
        "example latin-1, cp1252 or utf-16."
    )


def _split_lines(text: str) -> list[str]:
    """Split text into lines with their ends; a quoted cell may hold the end of a line."""
    found: list[str] = []
    is_open = False
    for match in LINE.finditer(text):
        line = match[0]
        if not line:
            continue
        if is_open:
            found[-1] += line
        else:
            found.append(line)
        is_open ^= line.count('"') % 2 == 1
    return found


def has_title(raw: bytes, form: Form, encoding: str, delimiter: str) -> bool:
    """Whether the first line of a text fills its first cell only, as titles in spreadsheets do."""
    text = raw.decode(encoding, errors="replace").removeprefix("\ufeff")
    for line in _split_lines(text)[form.skip_rows :]:
        if line.strip() and not (form.comment and line.lstrip().startswith(form.comment)):
            empty = line.rstrip("\r\n").rstrip(delimiter + " ")
            return line.startswith(empty + delimiter) and len(_fill(line, delimiter)) == 1
    return False


def ask_about_lines(raw: bytes, form: Form, encoding: str, delimiter: str) -> str:
    """Say what to do about titles or footnotes that a text seems to have; nothing if it has none.

    Either nothing or a sentence that starts with a space. It names lines, never what they hold.
    Of a long text the beginning is looked at.
    """
    text = raw[:START].decode(encoding, errors="replace").removeprefix("\ufeff")
    lines = _split_lines(text)[form.skip_rows :]
    while lines and not lines[-1].strip():
        lines.pop()
    return _find_titles(lines[:LOOKED_AT], form, delimiter) or (
        _find_footnotes(lines, delimiter) if len(raw) < START else ""
    )


def _find_titles(lines: Sequence[str], form: Form, delimiter: str) -> str:
    """Ask about lines before the header: they fill fewer cells than the first full line."""
    filled = [_fill(line, delimiter) for line in lines]
    widest = max(map(len, filled), default=0)
    header = next((at for at, cells in enumerate(filled) if len(cells) == widest), 0)
    if header == 0 or widest < 2 or any(NUMBER.fullmatch(cell) for cell in filled[header]):
        return ""
    marks = {line.lstrip()[:1] for line in lines[:header] if line.strip()}
    if len(marks) == 1 and (mark := marks.pop()) in USUAL_COMMENTS:
        return f" The first lines seem to be comments: leave them out with --comment '{mark}'."
    return (
        f" The file seems to begin with a title: line {form.skip_rows + header + 1} looks like the "
        f"header. If it is, say --skip-rows {form.skip_rows + header}."
    )


def _find_footnotes(lines: Sequence[str], delimiter: str) -> str:
    """Ask about lines after the table: they fill one cell or none."""
    widths = [len(_fill(line, delimiter)) for line in lines]
    if not widths or widths[0] < 2:
        return ""
    notes = next((at for at, width in enumerate(reversed(widths)) if width > 1), 0)
    if not notes:
        return ""
    return (
        f" The file seems to end with footnotes: leave the last {notes} "
        f"line{'s' if notes > 1 else ''} out with --skip-footer {notes}."
    )


def _fill(line: str, delimiter: str) -> list[str]:
    """Give the cells of a line that hold anything."""
    try:
        cells = next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells if cell.strip()]
