"""A folder appears complete or not at all."""

import errno
import os
import threading

import pytest

from tallyveil.errors import PackageError
from tallyveil.publish import folder as package
from tallyveil.publish.folder import CHECKSUMS, reserve_folder


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_commit_shows_everything_at_once(tmp_path):
    with reserve_folder(tmp_path / "a" / "b" / "out", 100) as place:
        assert not (tmp_path / "a" / "b" / "out").exists()
        folder = place.commit({"": {"x.txt": b"hello", "y": b""}})
    assert names(folder) == [CHECKSUMS, "x.txt", "y"]
    assert names(tmp_path / "a" / "b") == ["out"]
    assert os.system(f"cd {folder} && sha256sum --check --quiet {CHECKSUMS}") == 0


def test_folders_inside_a_folder_appear_together(tmp_path):
    with reserve_folder(tmp_path / "out", 100) as place:
        folder = place.commit({"one": {"x": b"1"}, "two": {"x": b"2"}})
    assert names(folder) == ["one", "two"]
    assert names(folder / "two") == [CHECKSUMS, "x"]
    assert (folder / "one").stat().st_mode == folder.stat().st_mode


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_when_the_work_fails(tmp_path, error):
    with pytest.raises(error), reserve_folder(tmp_path / "new" / "out", 100):
        raise error
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["_write", "_force_names"])
def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch, name):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(package, name, full)
    with (
        pytest.raises(PackageError, match="no room"),
        reserve_folder(tmp_path / "out", 10) as place,
    ):
        place.commit({"": {"x": b"1"}})
    assert names(tmp_path) == []


def test_a_full_disk_is_noticed_before_the_work_begins(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    reached = []
    with pytest.raises(PackageError, match="no room"), reserve_folder(tmp_path / "out", 10):
        reached.append(True)
    assert not reached
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "file", "broken link"])
def test_what_exists_is_never_touched(tmp_path, kind):
    target = tmp_path / "out"
    if kind == "folder":
        target.mkdir()
    elif kind == "file":
        target.write_text("x")
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(PackageError, match="exists already"), reserve_folder(target, 10):
        pass
    assert names(tmp_path) == ["out"]


def test_somebody_else_may_take_the_name_meanwhile(tmp_path):
    target = tmp_path / "out"
    with (  # noqa: PT012
        pytest.raises(PackageError, match="exists already"),
        reserve_folder(target, 10) as place,
    ):
        target.mkdir()
        place.commit({"": {"x": b"1"}})
    assert names(tmp_path) == ["out"]
    assert names(target) == []


def test_what_a_killed_process_left_is_removed_but_the_living_are_not_disturbed(tmp_path):
    dead = tmp_path / ".out.abc.partial"
    dead.mkdir()
    (dead / "data.csv").write_text("half")
    done, started = threading.Event(), threading.Event()

    def living():
        with reserve_folder(tmp_path / "out", 10) as place:
            started.set()
            done.wait(10)
            assert place.hidden.exists()

    other = threading.Thread(target=living)
    other.start()
    started.wait(10)
    assert not dead.exists()
    with reserve_folder(tmp_path / "out", 10) as place:
        assert len([name for name in names(tmp_path) if "partial" in name]) == 2
        place.commit({"": {"x": b"1"}})
    done.set()
    other.join()
    assert names(tmp_path) == ["out"]
