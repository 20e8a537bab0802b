"""Reading files from strangers: plain files only, and JSON within limits.

What such a file says of itself may be made to stop its reader. So nothing here waits for a pipe
or a device, and JSON is bounded in depth, digits and parts before it is built.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import unicodedata
from io import BufferedReader
from pathlib import Path
from typing import Any

SMALL = 10 * 2**20
"""Largest file, in bytes, that is read: any content then takes little time and memory."""

UNLIKELY = "The file unpacks to far more than a file of that size should hold."
DEEPEST_JSON = 24
"""Deepest nesting of lists and objects."""

MOST_CONTAINERS = 200_000
"""How many lists and objects a document may have."""

MOST_QUOTES = 10**6
"""How many quotation marks."""

LEAST_LINE = 5
"""Fewest bytes of one value in JSON with a line for each."""

MOST_DIGITS = 4000
LONG_NUMBER = re.compile(rb"[0-9]{%d}" % MOST_DIGITS)
STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\Z)', re.DOTALL)
BRACKET = re.compile(rb"[\[\]{}]")
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that take no room or no ink although they count as printable."""

CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def hash_file(path: str | Path) -> tuple[int, str]:
    """Return the size of a plain file and its SHA-256, in little memory; see `read_file`."""
    with open_file(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return file.tell(), digest


def read_file(path: str | Path) -> bytes:
    """Read a plain file; anything else raises an OSError at once.

    >>> read_file("/dev/null")
    Traceback (most recent call last):
    ...
    OSError: [Errno 22] not a plain file: '/dev/null'
    """
    with open_file(path) as file:
        return file.read()


def open_file(path: str | Path) -> BufferedReader:
    """Open a plain file to read its bytes, without waiting; see `read_file`."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return open(handle, "rb")


def parse_json(content: bytes, *, by_line: bool = False) -> Any:
    """Parse JSON without repeated keys or NaN; raise a ValueError for anything else.

    Parameters
    ----------
    content : bytes
        UTF-8 text.
    by_line : bool
        Whether the text should have a line for every value, as our own documents have: more
        values than that leaves room for are refused before they are built.

    Examples
    --------
    >>> parse_json(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    if content.count(b'"') > MOST_QUOTES:
        raise ValueError("the document has too many parts")
    bare = _leave_out_strings(content)
    containers = bare.count(b"[") + bare.count(b"{")
    if containers > MOST_CONTAINERS:
        raise ValueError("the document has too many parts")
    if by_line and bare.count(b",") > len(content) // LEAST_LINE + 1000:
        raise ValueError("the document is not written with a line for each value")
    if _has_long_number(content):
        raise ValueError("the document has a number of too many digits")
    depth = 0
    for bracket in BRACKET.finditer(bare):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > DEEPEST_JSON:
            raise ValueError("the document is nested too deeply")
    text = content.decode("utf-8")
    return json.loads(text, object_pairs_hook=_refuse_repeats, parse_constant=_refuse_constant)


def _leave_out_strings(content: bytes) -> bytes:
    """Return the text between strings; without backslashes, quotation marks delimit them."""
    if b"\\" in content:
        return STRING.sub(b"", content)
    return b"".join(content.split(b'"')[::2])


def _has_long_number(content: bytes) -> bool:
    """Return True if a number is too long: it would fill a piece of half that length."""
    piece = MOST_DIGITS // 2
    pieces = (content[start : start + piece] for start in range(0, len(content), piece))
    return any(map(bytes.isdigit, pieces)) and LONG_NUMBER.search(content) is not None


def escape_controls(text: str) -> str:
    r"""Escape line ends and characters that control a terminal or hide text.

    >>> escape_controls("a\x1b[31mb\u202e")
    'a\\x1b[31mb\\u202e'
    """
    return CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def remove_invisible(text: str) -> str:
    r"""Remove invisible characters from a name.

    >>> remove_invisible("ca\u200bses")
    'cases'
    """
    return text if text.isascii() and text.isprintable() else "".join(filter(_is_seen, text))


def _is_seen(letter: str) -> bool:
    is_selector = "VARIATION SELECTOR" in unicodedata.name(letter, "")
    unseen = unicodedata.category(letter) in ("Cf", "Cc", "Cs") or letter in INVISIBLE
    return not (unseen or is_selector)


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a name is repeated in one object")
    return entries


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not a number of JSON")
