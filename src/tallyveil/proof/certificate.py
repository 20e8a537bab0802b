"""What was proved, as a small JSON document that anyone can re-check.

The canonical text of a document is JSON with sorted keys, an indent of one and one final
newline. Reading and writing it again gives the same bytes, and `digest` is a SHA-256 over
all the rest, so a change of any byte shows. `docs/certificate.md` lists the fields.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallyveil.proof.decimals import read_table, write_table

__all__ = [
    "CERTIFICATE_FORMAT",
    "INTEGERS",
    "LADDER_FORMAT",
    "MECHANISM_FORMAT",
    "ONE_STEP",
    "VERSION",
    "canonical",
    "digest",
    "is_canonical",
    "lines_sha256",
    "read_rows",
    "rows_text",
    "seal",
    "weights_sha256",
]

CERTIFICATE_FORMAT = "tallyveil-certificate"
MECHANISM_FORMAT = "tallyveil-certified-mechanism"
LADDER_FORMAT = "tallyveil-ladder"
VERSION = 1
WRITER = json.JSONEncoder(sort_keys=True, indent=1, allow_nan=False)

INTEGERS = {"kind": "integers"}
"""The query of noise that is added to whole numbers, none of them bounded."""

ONE_STEP = {"kind": "step", "width": 1}
"""What one person does to such numbers: moves one of them by one."""


def canonical(document: Mapping[str, Any]) -> str:
    """The one text of a document.

    >>> canonical({"b": 1, "a": [2]})
    '{\\n "a": [\\n  2\\n ],\\n "b": 1\\n}\\n'
    """
    return WRITER.encode(document) + "\n"


def is_canonical(document: Mapping[str, Any], content: bytes) -> bool:
    """Whether `content` is the one text of a document, compared part by part.

    >>> is_canonical({"a": 1}, b'{\\n "a": 1\\n}\\n'), is_canonical({"a": 1}, b'{"a": 1}')
    (True, False)
    """
    at = 0
    for part in WRITER.iterencode(document):
        written = part.encode()
        if not content.startswith(written, at):
            return False
        at += len(written)
    return content[at:] == b"\n"


def digest(certificate: Mapping[str, Any]) -> str:
    """SHA-256 of the certificate's canonical text without its own `digest`."""
    rest = {key: value for key, value in certificate.items() if key != "digest"}
    return _hash_parts(part.encode() for part in chain(WRITER.iterencode(rest), ("\n",)))


def seal(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """The certificate with its `digest` filled in."""
    return {**certificate, "digest": digest(certificate)}


def weights_sha256(weights: NDArray[np.int64]) -> str:
    """SHA-256 of the weights as decimal text, one line per row.

    >>> weights_sha256(np.array([[1, 2]])) == hashlib.sha256(b"1 2\\n").hexdigest()
    True
    """
    return _hash_parts(write_table(weights))


def lines_sha256(lines: Sequence[str]) -> str:
    """SHA-256 of the weights whose lines these are: `weights_sha256` of what they say."""
    return _hash_parts((line + "\n").encode() for line in lines)


def _hash_parts(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def rows_text(weights: NDArray[np.int64]) -> list[str]:
    """One line of decimals per row: exact in any JSON reader, unlike large numbers."""
    return [line for part in write_table(weights) for line in part.decode().splitlines()]


def read_rows(lines: Sequence[str]) -> NDArray[np.int64]:
    """The weights that `rows_text` wrote; a ValueError for anything else."""
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("weights must be a list of lines")
    return read_table(lines)
