"""Files that a browser uploads: streamed into a private folder that does not outlive us.

Every run has its own folder, readable by its owner alone. The studio and each of its worker
processes hold a lock on it. It is removed at exit; what a killed run left is removed when the next
one starts, since the locks died with it, but not from under a release that is still being made.
No name that a browser sends becomes part of a path.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import uuid
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tallyveil.studio.wording import RefusedError
from tallyveil.tables.read import ENDINGS, PACKED_ENDINGS
from tallyveil.tables.text import split_packing

try:
    import fcntl
except ImportError:  # not on Windows: what a killed run left is then left for the user to delete
    fcntl = None  # type: ignore[assignment]

TABLE_ENDINGS = ENDINGS + PACKED_ENDINGS
"""What a table's name may end in."""

KNOWN_ENDINGS = (*TABLE_ENDINGS, ".json", ".zip", ".html", "")
MOST_FILES = 200
"""Files a zip, or one folder that is dropped, may hold."""

DEEPEST = 3
"""Folders that may lie inside one another in a zip: its own, and a level's."""

COPY = 1 << 20
UNREADABLE = (zipfile.BadZipFile, RuntimeError, OSError, ValueError, EOFError)
"""Errors that damaged, encrypted or unknown zips end with."""


class Uploads:
    """The private folder of this run.

    Parameters
    ----------
    largest : int
        Bytes that one file may have.
    most : int
        Bytes that all files of this run may have together.
    patience : float
        Seconds that a sender may be silent.
    base : Path, optional
        Where the folders of all runs are; among other temporary files unless given.
    """

    def __init__(
        self,
        largest: int = 1 << 30,
        most: int = 4 << 30,
        patience: float = 30.0,
        base: Path | None = None,
    ) -> None:
        self.largest, self.most, self.patience = largest, most, patience
        owner = os.getuid() if hasattr(os, "getuid") else "user"
        self.base = base or Path(tempfile.gettempdir()) / f"tallyveil-studio-{owner}"
        _make_private(self.base)
        _remove_abandoned(self.base)
        self.folder = self.base / f"run-{uuid.uuid4().hex}"
        self.folder.mkdir(mode=0o700)
        self._lock = hold_folder(self.folder)
        self._taken: dict[Path, int] = {}

    @property
    def room(self) -> int:
        """The number of bytes that may still come."""
        return max(self.most - sum(self._taken.values()), 0)

    def new_folder(self) -> Path:
        """Make an empty folder for one upload."""
        place = self.folder / uuid.uuid4().hex
        place.mkdir(mode=0o700)
        self._taken[place] = 0
        return place

    @contextmanager
    def fill_folder(self) -> Iterator[Path]:
        """Yield a new folder, which is deleted again if filling it fails."""
        folder = self.new_folder()
        try:
            yield folder
        except BaseException:
            self.remove(folder)
            raise

    def count(self, place: Path) -> None:
        """Count the bytes in a folder again, such as those unpacked there."""
        if place in self._taken:
            self._taken[place] = sum(f.stat().st_size for f in place.rglob("*") if f.is_file())

    async def receive(self, stream: AsyncIterator[bytes], target: Path) -> int:
        """Write a stream to the new file `target` and count it; a refusal leaves no file."""
        size, place = 0, self.folder / target.relative_to(self.folder).parts[0]
        try:
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "wb") as file:
                while part := await asyncio.wait_for(anext(stream, b""), self.patience):
                    if size + len(part) > self.largest:
                        raise RefusedError(413, f"A file may have at most {self.largest:,} bytes.")
                    if len(part) > self.room:
                        raise RefusedError(413, "There is no room for more files: close tables.")
                    size += len(part)
                    self._taken[place] += len(part)
                    file.write(part)
        except BaseException as problem:
            target.unlink(missing_ok=True)
            if place in self._taken:
                self._taken[place] -= size
            if isinstance(problem, TimeoutError):
                raise RefusedError(408, "The file came too slowly and was given up.") from None
            raise
        return size

    def remove(self, place: Path) -> None:
        """Delete an upload."""
        if self._taken.pop(place, None) is not None:
            shutil.rmtree(place, ignore_errors=True)

    def close(self) -> None:
        """Delete the whole folder of this run."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        with suppress(OSError):
            self.base.rmdir()


def find_ending(name: str) -> str:
    """Return the ending of a name that was sent, if it is a known one.

    >>> find_ending("Cases 2026.CSV")
    '.csv'
    """
    ending = "".join(split_packing(Path(name.replace("\\", "/"))))
    if ending not in KNOWN_ENDINGS:
        endings = ", ".join(filter(None, KNOWN_ENDINGS))
        raise RefusedError(415, f"Files of this kind are not read. Known endings: {endings}.")
    return ending


def unpack_zip(archive: Path, target: Path, most: int) -> None:
    """Unpack a zip into the new folder `target`.

    Nothing that the archive says of itself is believed: bytes are counted as they come, names
    stay inside, links and other special files are refused.
    """
    target.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(archive) as packed:
            _unpack(packed, target, most)
    except BaseException as problem:
        shutil.rmtree(target, ignore_errors=True)  # half of a zip is not looked at
        if isinstance(problem, FileExistsError):
            raise RefusedError(400, "The zip holds two files of one name.") from None
        if isinstance(problem, UNREADABLE):
            raise RefusedError(400, "The file is not a readable zip.") from None
        raise


def _unpack(packed: zipfile.ZipFile, target: Path, room: int) -> None:
    """Write what a zip holds, of at most `room` bytes."""
    listed = packed.infolist()
    if len(listed) > MOST_FILES:
        raise RefusedError(400, f"The zip holds more than {MOST_FILES} files.")
    for item in listed:
        if item.is_dir():
            continue
        if stat.S_IFMT(item.external_attr >> 16) not in (0, stat.S_IFREG):
            raise RefusedError(400, "The zip holds something other than plain files.")
        place = target.joinpath(*check_inner_name(item.filename))
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with packed.open(item) as source, open(place, "xb") as file:
            while part := source.read(COPY):
                room -= len(part)
                if room < 0:
                    raise RefusedError(413, "What the zip holds is too large.")
                file.write(part)


def check_inner_name(name: str) -> tuple[str, ...]:
    """Return the parts of a name that stays inside its folder, or refuse it.

    >>> check_inner_name("release/receipt.json")
    ('release', 'receipt.json')
    """
    parts = tuple(name.split("/"))
    inside = all(part not in ("", ".", "..") and "\\" not in part for part in parts)
    if not inside or len(parts) > DEEPEST or ":" in name:
        raise RefusedError(400, "A name points outside its folder.")
    if not name.isprintable() or max(map(len, parts)) > 200:
        raise RefusedError(400, "A name cannot be written.")
    return parts


def _make_private(folder: Path) -> None:
    """Make a folder ours alone; one that somebody else prepared is refused."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
    facts = folder.lstat()
    ours = not hasattr(os, "getuid") or facts.st_uid == os.getuid()
    if not stat.S_ISDIR(facts.st_mode) or not ours:
        raise RefusedError(
            500, f"{folder} is in the way: it is not a folder of yours. Delete it first."
        )
    os.chmod(folder, 0o700)


def hold_folder(folder: Path, *, alone: bool = False) -> int:
    """Lock a folder for the life of this process, shared unless `alone`; -1 without locks."""
    if fcntl is None:
        return -1
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise
    return lock


def _remove_abandoned(base: Path) -> None:
    """Delete the folders of runs that did not end in order."""
    if fcntl is None:
        return
    for folder in base.glob("run-*"):
        with suppress(OSError):
            lock = hold_folder(folder, alone=True)
            try:
                shutil.rmtree(folder)
            finally:
                os.close(lock)
