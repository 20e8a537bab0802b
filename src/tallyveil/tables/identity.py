"""A file that is read more than once must be the same file every time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tallyveil.errors import TableError

__all__ = ["FileIdentity"]


@dataclass(frozen=True)
class FileIdentity:
    """Which file lies at a path, and when it was changed last."""

    path: Path
    facts: tuple[int, ...]

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """The file that lies there now."""
        found = os.stat(path)
        times = found.st_mtime_ns, found.st_ctime_ns
        return cls(path, (found.st_dev, found.st_ino, found.st_size, *times))

    def require_same(self) -> None:
        """Raise a `TableError` if another file lies there now, or if it was written to."""
        try:
            same = FileIdentity.of(self.path) == self
        except OSError:
            same = False
        if not same:
            raise TableError(
                "The table was changed while it was read, so its rows may no longer be those that "
                "were checked. Nothing was published. Start again when nobody writes to it."
            )
