"""The check of a release folder's files: exactly those that are listed, and none changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from tallyveil.release.folder import CHECKSUMS
from tallyveil.release.methods.base import require
from tallyveil.untrusted import read_file

Hashed: TypeAlias = Callable[[Path], tuple[int, str]]
"""Gives the size of a file and its SHA-256."""

MOST_FILES = 10_000
"""Files a release folder may have."""


def check_files(root: Path, hashed: Hashed) -> str:
    """Every file is listed with its checksum, and every listed file is there."""
    present = {path.name for path in islice(root.iterdir(), MOST_FILES + 1)}
    require(len(present) <= MOST_FILES, f"the folder has more than {MOST_FILES:,} files")
    require(CHECKSUMS in present, f"{CHECKSUMS} is missing")
    for name in present:
        regular = stat.S_ISREG(os.lstat(root / name).st_mode)
        require(regular, f"{name} is not a plain file")
    listed: dict[str, str] = {}
    for line in read_file(root / CHECKSUMS).decode("utf-8").splitlines():
        value, _, name = line.partition("  ")
        plain = "/" not in name and "\\" not in name and name not in listed
        require(plain, f"{CHECKSUMS} has a line that is not a plain file name")
        listed[name] = value
    one_form = "".join(f"{listed[name]}  {name}\n" for name in sorted(listed))
    require(read_file(root / CHECKSUMS) == one_form.encode(), f"{CHECKSUMS} has another form")
    odd = sorted(set(listed) ^ (present - {CHECKSUMS}))
    require(not odd, f"{odd[:1]} is in the folder or in {CHECKSUMS}, but not in both")
    for name, value in listed.items():
        _, digest = hashed(root / name)
        require(digest == value, f"{name} was changed: its checksum does not match")
    return f"{len(listed)} files, none missing, none changed, none added"
