"""Release folders, which appear complete, in one step, or not at all.

Files are written to a hidden folder next to the target, forced to disk and renamed. The name and
the room on disk are reserved before anything is spent: a full disk costs no budget, and of
several processes that want the same folder exactly one goes on to pay.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

from tallyveil.budget.entries import shown_rational
from tallyveil.errors import PackageError

try:
    import fcntl
except ImportError:  # not on Windows: abandoned folders are then left for the user to delete
    fcntl = None  # type: ignore[assignment]

CHECKSUMS = "SHA256SUMS"
DATAPACKAGE, RECEIPT, METHODOLOGY = "datapackage.json", "receipt.json", "METHODOLOGY.html"
RESERVE = "reserve"
BUFFER = 1 << 20
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True)
class FileFacts:
    """The length of a file, and its SHA-256."""

    size: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> FileFacts:
        """Measure a file with this content."""
        return cls(len(content), hashlib.sha256(content).hexdigest())


def list_checksums(sums: Mapping[str, str]) -> str:
    """Write one line per file, sorted by name, as ``sha256sum --check`` reads it."""
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums))


def name_level_folder(level: int, epsilon: Fraction) -> str:
    """Name the folder of one level inside a ladder's folder.

    >>> name_level_folder(2, Fraction(1, 2))
    'level-2-epsilon-0.5'
    """
    exact = shown_rational(epsilon).replace("/", "_")
    return f"level-{level}-epsilon-{exact if len(exact) <= 40 else format(float(epsilon), 'g')}"


@dataclass
class Staging:
    """A hidden folder with room for a release, not yet visible under its own name."""

    target: Path
    hidden: Path
    committed: bool = False
    written: dict[str, dict[str, str]] = field(default_factory=dict)
    """The checksums of files that are there already, by folder and name."""

    def write(self, inner: str, name: str, fill: Callable[[Any], None]) -> FileFacts:
        """Write one file of the folder `inner` as `fill` does it, and hash it on the way."""
        self.free_room()
        folder = self._open(inner)
        with open(folder / name, "xb", buffering=BUFFER) as file:
            hashing = _HashingFile(file)
            fill(hashing)
            file.flush()
            os.fsync(file.fileno())
        facts = FileFacts(hashing.tell(), hashing.digest.hexdigest())
        self.written.setdefault(inner, {})[name] = facts.sha256
        return facts

    def commit(self, folders: Mapping[str, Mapping[str, bytes]]) -> Path:
        """Write everything, force it to disk, and show the folder.

        Parameters
        ----------
        folders : mapping of str to mapping of str to bytes
            The files of each folder inside the release, ``""`` for the release itself; every
            one gets its own checksums, which name what `write` put there as well.
        """
        self.free_room()
        for inner, files in folders.items():
            folder = self._open(inner)
            for name in sorted(files):
                _write(folder / name, files[name])
            sums = {name: FileFacts.of(content).sha256 for name, content in files.items()}
            sums |= self.written.get(inner, {})
            _write(folder / CHECKSUMS, list_checksums(sums).encode())
            _force_names(folder)
        os.chmod(self.hidden, _usual_mode(self.hidden))
        _force_names(self.hidden)
        self._require_own(folders)
        if os.path.lexists(self.target):
            raise _exists(self.target)
        os.rename(self.hidden, self.target)
        self.committed = True
        _force_names(self.target.parent)
        return self.target

    def _require_own(self, folders: Mapping[str, Mapping[str, bytes]]) -> None:
        """Refuse files of others: they would be published."""
        expected = {
            self.hidden / inner / name
            for inner, files in folders.items()
            for name in ("", *files, *self.written.get(inner, {}), CHECKSUMS)
        }
        if set(self.hidden.rglob("*")) - expected:
            raise PackageError(
                f"Something else was put into {str(self.hidden)!r}, so nothing was published. "
                "Leave that folder to Tallyveil."
            )

    def free_room(self) -> None:
        """Give the reserved room to the files that are written now."""
        (self.hidden / RESERVE).unlink(missing_ok=True)

    def _open(self, inner: str) -> Path:
        folder = self.hidden / inner
        folder.mkdir(exist_ok=True)
        return folder


class _HashingFile(io.RawIOBase):
    """A file that counts and hashes the bytes it is given; it cannot go back."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self.file, self.size, self.digest = file, 0, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, content: Any) -> int:
        with memoryview(content) as view:
            self.digest.update(view)
            self.file.write(view)
            self.size += view.nbytes
            return view.nbytes


@contextmanager
def reserve_folder(folder: str | Path, room: int) -> Iterator[Staging]:
    """Reserve a `Staging` for `folder` with `room` bytes; it is removed unless committed.

    Raises `PackageError` before anything is written if the folder exists, cannot be made, is
    being written by another process, or the disk has no room.
    """
    target = require_new_folder(folder)
    parents: list[Path] = []
    lock, place = -1, None
    try:
        parents = _make_parents(target.parent)
        hidden, lock = _take_name(target)
        place = Staging(target, hidden)
        _reserve(hidden / RESERVE, room)
        yield place
    except OSError as problem:
        if place is not None and place.committed:
            raise PackageError(
                f"{str(target)!r} was published, but then the disk failed: {problem.strerror}. "
                "Check it with: tallyveil check"
            ) from problem
        if isinstance(problem, PermissionError):
            raise PackageError(
                f"There is no permission to write in {str(target.parent)!r}."
            ) from problem
        if problem.errno in NO_ROOM:
            raise PackageError(
                f"The disk has no room for the release, which needs about {room:,} bytes at "
                f"{str(target.parent)!r}."
            ) from problem
        raise PackageError(f"{str(target)!r} cannot be written: {problem.strerror}.") from problem
    finally:
        if place is None or not place.committed:
            if place is not None:
                shutil.rmtree(place.hidden, ignore_errors=True)
            for parent in reversed(parents):
                with suppress(OSError):
                    parent.rmdir()
        if lock >= 0:
            os.close(lock)


def require_new_folder(folder: str | Path) -> Path:
    """Return the absolute path of a release folder; refuse one that exists."""
    target = Path(os.path.abspath(folder))
    if os.path.lexists(target):
        raise _exists(target)
    return target


def hide_folder(target: Path) -> Path:
    """Return the path of the hidden folder that becomes a release folder."""
    return target.with_name(f".{target.name}.partial")


def _exists(target: Path) -> PackageError:
    return PackageError(
        f"{str(target)!r} exists already. A release is never overwritten: name a new folder."
    )


def _make_parents(folder: Path) -> list[Path]:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    created = []
    for parent in reversed(missing):
        with suppress(FileExistsError):
            parent.mkdir()
            created.append(parent)
    return created


def _take_name(target: Path) -> tuple[Path, int]:
    """Make the one hidden folder of this target, empty, with a lock that keeps others off it.

    What a killed process left there is deleted: its lock died with it.
    """
    hidden = hide_folder(target)
    while True:
        is_new = _make_new(hidden)
        if fcntl is None:
            if not is_new:
                raise _in_the_way(hidden, "Another process may be writing there; else delete it.")
            return hidden, -1
        lock = _lock_folder(hidden, target)
        if lock is None:  # committed or given up by another process in this very moment
            continue
        if os.path.lexists(target):
            shutil.rmtree(hidden, ignore_errors=True)
            os.close(lock)
            raise _exists(target)
        os.chmod(hidden, 0o700)
        for name in os.listdir(hidden):
            inner = hidden / name
            shutil.rmtree(inner) if inner.is_dir() and not inner.is_symlink() else inner.unlink()
        return hidden, lock


def _make_new(folder: Path) -> bool:
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        return True
    return False


def _lock_folder(hidden: Path, target: Path) -> int | None:
    """Lock a hidden folder; None if it is gone, an error if another process holds it."""
    try:
        lock = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError:  # a pipe, a file, a link: opening some of them would wait for ever
        raise _in_the_way(hidden, "Delete it first.") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.lstat(hidden)):
            return lock
    except BlockingIOError:
        os.close(lock)
        raise PackageError(
            f"Another process is writing a release to {str(target)!r}. Name another folder, or "
            "wait for it."
        ) from None
    except FileNotFoundError:
        pass
    os.close(lock)
    return None


def _in_the_way(hidden: Path, hint: str) -> PackageError:
    return PackageError(f"{str(hidden)!r} is in the way of the release. {hint}")


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


def _usual_mode(folder: Path) -> int:
    """Find the mode of new folders by making one: the umask can only be read by changing it."""
    probe = folder / RESERVE
    probe.mkdir()
    mode = stat.S_IMODE(probe.stat().st_mode) & 0o777
    probe.rmdir()
    return mode
