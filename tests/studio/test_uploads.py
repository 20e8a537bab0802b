"""Files that a browser sends: inside their folder, within their limits, gone with their run."""

import asyncio
import io
import os
import stat
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from tallyveil.studio.uploads import Uploads, hold_folder, unpack_zip
from tallyveil.studio.wording import RefusedError


def zipped(*files, mode=None):
    """A zip of (name, content) pairs; a name may come twice."""
    packed = io.BytesIO()
    ignored = warnings.catch_warnings(action="ignore")
    with ignored, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            item = zipfile.ZipInfo(name)
            item.compress_type = zipfile.ZIP_DEFLATED
            if mode is not None:
                item.external_attr = mode << 16
            archive.writestr(item, content)
    return packed.getvalue()


def run(work):
    """Run a coroutine in a thread of its own: a browser's tests keep a loop going in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def send(*parts, pause=0.0):
    for part in parts:
        yield part
        await asyncio.sleep(pause)


@pytest.fixture
def start(tmp_path):
    """Start the uploads of a run; all runs end with the test."""
    runs = []

    def start_run(**limits):
        runs.append(Uploads(**limits, base=tmp_path / "own"))
        return runs[-1]

    yield start_run
    for uploads in runs:
        uploads.close()
    assert not (tmp_path / "own").exists()


INSIDE = "A name points outside its folder"
PLAIN = "something other than plain files"
UNREADABLE = "not a readable zip"
BAD_ZIPS = {
    "up": (zipped(("../../evil.txt", "x")), INSIDE),
    "up in the middle": (zipped(("a/../../evil.txt", "x")), INSIDE),
    "absolute": (zipped(("/etc/evil", "x")), INSIDE),
    "backslash": (zipped(("..\\evil.txt", "x")), INSIDE),
    "a drive": (zipped(("C:evil.txt", "x")), INSIDE),
    "too deep": (zipped(("a/b/c/d/e", "x")), INSIDE),
    "a link": (zipped(("link", "/etc/passwd"), mode=stat.S_IFLNK | 0o777), PLAIN),
    "a pipe": (zipped(("pipe", ""), mode=stat.S_IFIFO | 0o600), PLAIN),
    "too many": (zipped(*((f"f{i}", "") for i in range(300))), "more than 200 files"),
    "a control": (zipped(("a\x1b[31m", "x")), "A name cannot be written"),
    "a bomb": (zipped(("zeros", b"\0" * (30 << 20))), "too large"),
    "one name twice": (zipped(("a", "1"), ("a", "2")), "two files of one name"),
    "none": (b"PK\x03\x04 not a zip", UNREADABLE),
    "cut off": (zipped(("a.csv", "x" * 5000))[:-40], UNREADABLE),
    "empty": (b"", UNREADABLE),
}


@pytest.mark.parametrize("kind", BAD_ZIPS)
def test_a_bad_zip_is_refused_and_leaves_nothing(tmp_path, kind):
    archive = tmp_path / "a.zip"
    content, message = BAD_ZIPS[kind]
    archive.write_bytes(content)
    with pytest.raises(RefusedError, match=message):
        unpack_zip(archive, tmp_path / "out", 1 << 20)
    assert list(tmp_path.rglob("*")) == [archive]


def test_a_slow_sender_is_given_up(start):
    uploads = start(patience=0.05)
    target = uploads.new_folder() / "t.csv"
    with pytest.raises(RefusedError, match="too slowly"):
        run(uploads.receive(send(b"a,b\n", b"1,2\n", pause=5), target))
    assert not target.exists()


def test_two_uploads_at_once_share_one_limit(start):
    uploads = start(largest=100, most=150)

    async def send_both():
        targets = [uploads.new_folder() / name for name in "ab"]
        sent = (uploads.receive(send(*[b"x" * 10] * 10), target) for target in targets)
        return await asyncio.gather(*sent, return_exceptions=True)

    assert any("no room" in str(end) for end in run(send_both()))
    saved = sum(p.stat().st_size for p in uploads.folder.rglob("*") if p.is_file())
    assert saved == 150 - uploads.room
    assert saved <= 150
    with pytest.raises(RefusedError, match="at most 100 bytes"):
        run(uploads.receive(send(b"x" * 101), uploads.new_folder() / "c"))


def test_what_is_unpacked_is_counted_and_given_back_once(start):
    uploads = start(largest=10_000, most=10_000)
    place = uploads.new_folder()
    sent = send(zipped(("zeros.csv", b"0" * 5000)))
    size = run(uploads.receive(sent, place / "a.zip"))
    unpack_zip(place / "a.zip", place / "unpacked", uploads.room)
    uploads.count(place)
    assert uploads.room == 10_000 - size - 5000
    uploads.remove(place)
    uploads.remove(place)
    assert uploads.room == 10_000


def test_what_a_killed_run_left_is_removed_unless_a_release_is_still_made(start):
    killed, alive = start(), start()
    (killed.new_folder() / "table.csv").write_text("area,cases\n")
    worker = hold_folder(killed.folder)  # a process that was paid for, and outlives the studio
    os.close(killed._lock)  # what the system does when a process dies
    killed._lock = -1
    start()
    assert killed.folder.exists()
    os.close(worker)
    fresh = start()
    assert not killed.folder.exists()
    assert alive.folder.exists()
    assert stat.S_IMODE(fresh.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(fresh.base.stat().st_mode) == 0o700


def test_a_folder_that_somebody_prepared_is_refused(tmp_path):
    (tmp_path / "own").symlink_to(tmp_path)
    with pytest.raises(RefusedError, match="in the way"):
        Uploads(base=tmp_path / "own")
