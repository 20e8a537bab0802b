"""Which program this is: a hash of its own source files, the same wherever it is installed."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

__all__ = ["fingerprint"]

PACKAGE = Path(__file__).parent


@cache
def fingerprint() -> str:
    """SHA-256 over ``<SHA-256 of the file>  <path>`` of every file of the package, by path.

    Without compiled files. ``sha256sum`` gives the same: inside the package,
    ``find . -type f ! -path '*__pycache__*' | sed 's|^./||' | LC_ALL=C sort | xargs sha256sum |
    sha256sum``.

    >>> len(fingerprint())
    64
    """
    whole = hashlib.sha256()
    names = (
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    for name in sorted(names, key=str.encode):
        own = hashlib.sha256((PACKAGE / name).read_bytes()).hexdigest()
        whole.update(f"{own}  {name}\n".encode())
    return whole.hexdigest()
