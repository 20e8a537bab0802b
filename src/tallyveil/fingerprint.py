"""Which program this is, and which page it writes: hashes of the source files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent

SENTENCES = (
    *("release/methods", "release/page.py", "release/receipt.py"),
    *("release/svg.py", "release/templates", "release/unit.py"),
)
"""What writes the sentences and pictures of a release."""


@cache
def fingerprint() -> str:
    """SHA-256 over ``<SHA-256 of the file>  <path>`` of every file of the package, by path.

    Without compiled files, so it is the same wherever the package is installed. ``sha256sum``
    gives the same: inside the package, ``find . -type f ! -path '*__pycache__*' |
    sed 's|^./||' | LC_ALL=C sort | xargs sha256sum | sha256sum``.

    >>> len(fingerprint())
    64
    """
    return _hash_files(PACKAGE.rglob("*"))


@cache
def fingerprint_page() -> str:
    """Return the same over the files behind the sentences and pictures of a release.

    Pages are compared byte for byte by programs with the same one only: another program may write
    other sentences about the same facts.

    >>> fingerprint_page() == fingerprint()
    False
    """
    parts = [PACKAGE / name for name in SENTENCES]
    return _hash_files(path for part in parts for path in (part, *part.rglob("*")))


def _hash_files(paths: Iterable[Path]) -> str:
    names = {path.relative_to(PACKAGE).as_posix() for path in paths if not path.is_dir()}
    lines = (
        f"{hashlib.sha256((PACKAGE / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(names, key=str.encode)
        if "__pycache__" not in name.split("/")
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()
