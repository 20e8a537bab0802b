"""Private folders for rows that one step leaves on a disk for the next.

Only their owner can look inside. A folder goes with what it was made for, at exit at the latest;
what a killed process left is removed by the next that needs one there: its lock died with it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: what a killed process leaves is then not removed
    fcntl = None  # type: ignore[assignment]

__all__ = ["make_private", "open_new"]

PREFIX = ".tallyveil-rows-"


def make_private(parent: Path, owner: object) -> Path:
    """Make a folder that only this user can read, for as long as `owner` lives."""
    _remove_abandoned(parent)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))  # mode 0700
        lock = _take(folder)
        if lock is not None:
            weakref.finalize(owner, _remove, folder, lock, os.getpid())
            return folder


def open_new(path: Path) -> int:
    """Open a file that does not exist, for its owner only."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _take(folder: Path) -> int | None:
    """The lock on a folder; None where another process has it, or has removed the folder."""
    if fcntl is None:
        return -1
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.lstat(folder)):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _remove_abandoned(parent: Path) -> None:
    """Remove this user's folders that no process holds."""
    if fcntl is None:
        return
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and (lock := _take(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)


def _remove(folder: Path, lock: int, process: int) -> None:
    if os.getpid() != process:  # a fork has the folder of another
        return
    shutil.rmtree(folder, ignore_errors=True)
    if lock >= 0:
        os.close(lock)
