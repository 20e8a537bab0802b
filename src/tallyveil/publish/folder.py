"""A release folder appears complete, in one step, or not at all.

Files are written to a hidden folder beside the target, forced to disk and renamed. The room
on disk is reserved before anything is spent, so that a full disk costs no budget.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tallyveil.budget.entries import shown_rational
from tallyveil.errors import PackageError

try:
    import fcntl
except ImportError:  # not on Windows: abandoned folders are then left for the user to delete
    fcntl = None  # type: ignore[assignment]

__all__ = ["CHECKSUMS", "Staging", "checksums_text", "name_level_folder", "reserve_folder"]

CHECKSUMS = "SHA256SUMS"
RESERVE = "reserve"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def checksums_text(files: Mapping[str, bytes]) -> str:
    """One line per file, sorted by name, as ``sha256sum --check`` reads it."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))


def name_level_folder(level: int, epsilon: Fraction) -> str:
    """The folder of one level inside a ladder's folder.

    >>> name_level_folder(2, Fraction(1, 2))
    'level-2-epsilon-0.5'
    """
    exact = shown_rational(epsilon).replace("/", "_")
    return f"level-{level}-epsilon-{exact if len(exact) <= 40 else format(float(epsilon), 'g')}"


@dataclass(frozen=True)
class Staging:
    """A hidden folder with room for a release, not yet visible under its own name."""

    target: Path
    hidden: Path

    def commit(self, folders: Mapping[str, Mapping[str, bytes]]) -> Path:
        """Write everything, force it to disk, and show the folder.

        Parameters
        ----------
        folders : mapping of str to mapping of str to bytes
            The files of each folder inside the release, ``""`` for the release itself; every
            one gets its own checksums.
        """
        (self.hidden / RESERVE).unlink()
        mode = 0o777 & ~_umask()
        for inner, files in folders.items():
            folder = self.hidden / inner
            if inner:
                folder.mkdir(mode=0o700)
            for name in sorted(files):
                _write(folder / name, files[name])
            _write(folder / CHECKSUMS, checksums_text(files).encode())
            _force_names(folder)
            if inner:
                os.chmod(folder, mode)
        _force_names(self.hidden)
        os.chmod(self.hidden, mode)
        if os.path.lexists(self.target):
            raise _exists(self.target)
        os.rename(self.hidden, self.target)
        _force_names(self.target.parent)
        return self.target


@contextmanager
def reserve_folder(folder: str | Path, room: int) -> Iterator[Staging]:
    """A `Staging` for `folder` with `room` bytes reserved; removed again unless committed.

    Raises `PackageError` before anything is written if the folder exists, cannot be made, or
    the disk has no room.
    """
    target = Path(os.path.abspath(folder))
    if os.path.lexists(target):
        raise _exists(target)
    made: list[Path] = []
    lock, committed = -1, False
    hidden = target
    try:
        made = _make_parents(target.parent)
        _remove_abandoned(target)
        hidden, lock = _hidden_folder(target)
        _reserve(hidden / RESERVE, room)
        yield Staging(target, hidden)
        committed = not hidden.exists()
    except PermissionError as problem:
        raise PackageError(
            f"There is no permission to write in {str(target.parent)!r}."
        ) from problem
    except OSError as problem:
        if problem.errno in NO_ROOM:
            raise PackageError(
                f"The disk has no room for the release, which needs about {room:,} bytes at "
                f"{str(target.parent)!r}."
            ) from problem
        raise PackageError(f"{str(target)!r} cannot be written: {problem.strerror}.") from problem
    finally:
        if not committed:
            if hidden != target:
                shutil.rmtree(hidden, ignore_errors=True)
            for parent in reversed(made):
                with suppress(OSError):
                    parent.rmdir()
        if lock >= 0:
            os.close(lock)


def _exists(target: Path) -> PackageError:
    return PackageError(
        f"{str(target)!r} exists already. A release is never overwritten: name a new folder."
    )


def _make_parents(folder: Path) -> list[Path]:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    made = []
    for parent in reversed(missing):
        with suppress(FileExistsError):
            parent.mkdir()
            made.append(parent)
    return made


def _hidden_folder(target: Path) -> tuple[Path, int]:
    """A new hidden folder and the lock that shows this process is alive."""
    while True:
        hidden = Path(tempfile.mkdtemp(".partial", f".{target.name}.", target.parent))
        if fcntl is None:
            return hidden, -1
        lock = os.open(hidden, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if hidden.exists():  # else another process took it for abandoned before the lock
            return hidden, lock
        os.close(lock)


def _remove_abandoned(target: Path) -> None:
    """Delete hidden folders that a killed process left behind for the same target."""
    if fcntl is None:
        return
    for hidden in target.parent.glob(f".{_literal(target.name)}.*.partial"):
        with suppress(OSError):
            lock = os.open(hidden, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(hidden, ignore_errors=True)
            finally:
                os.close(lock)


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _reserve(path: Path, room: int) -> None:
    with open(path, "xb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, max(room, 1))
        else:
            file.truncate(max(room, 1))


def _write(path: Path, content: bytes) -> None:
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _force_names(folder: Path) -> None:
    """Force the folder's own list of names to disk, where the system allows it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
