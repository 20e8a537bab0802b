"""A folder appears complete or not at all."""

import errno
import os

import pytest

from tallyveil.errors import PackageError
from tallyveil.release import folder as package
from tallyveil.release.folder import CHECKSUMS, reserve_folder


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def occupy(path, kind, target="nowhere"):
    make = {"folder": path.mkdir, "file": path.touch, "pipe": lambda: os.mkfifo(path)}
    make.get(kind, lambda: path.symlink_to(target))()


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
    monkeypatch.setattr(package, name, full)
    with (
        pytest.raises(PackageError, match="no room"),
        reserve_folder(tmp_path / "out", 10) as place,
    ):
        place.commit({"": {"x": b"1"}})
    assert names(tmp_path) == []


def test_a_failure_after_the_folder_appeared_says_so(tmp_path, monkeypatch):
    real = package._force_names
    force = lambda folder: full() if folder == tmp_path else real(folder)  # noqa: E731
    monkeypatch.setattr(package, "_force_names", force)
    with (
        pytest.raises(PackageError, match="was published, but then the disk failed"),
        reserve_folder(tmp_path / "out", 10) as place,
    ):
        place.commit({"": {"x": b"1"}})
    assert names(tmp_path / "out") == [CHECKSUMS, "x"]


@pytest.mark.parametrize("inner", ["", "level-1"])
@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_others_put_into_the_hidden_folder_is_never_published(tmp_path, kind, inner):
    with (  # noqa: PT012
        pytest.raises(PackageError, match="Something else was put into"),
        reserve_folder(tmp_path / "out", 10) as place,
    ):
        (place.hidden / inner).mkdir(exist_ok=True)
        occupy(place.hidden / inner / ".secret", kind, tmp_path)
        place.commit({inner: {"x": b"1"}})
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "file", "broken link"])
def test_what_exists_is_never_touched(tmp_path, kind):
    target = tmp_path / "out"
    occupy(target, kind)
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


def test_what_a_killed_process_left_is_removed(tmp_path):
    dead = tmp_path / ".out.partial"
    (dead / "level-1").mkdir(parents=True)
    (dead / "data.csv").write_text("half")
    (dead / "level-1" / "data.csv").write_text("half")
    (dead / "link").symlink_to(tmp_path)
    dead.chmod(0o755)
    with reserve_folder(tmp_path / "out", 10) as place:
        assert names(place.hidden) == ["reserve"]
        assert place.hidden.stat().st_mode & 0o777 == 0o700
        place.commit({"": {"x": b"1"}})
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == [CHECKSUMS, "x"]


@pytest.mark.parametrize("kind", ["pipe", "file", "link"])
def test_what_is_in_the_way_is_named_and_left_alone(tmp_path, kind):
    hidden = tmp_path / ".out.partial"
    (tmp_path / "other").mkdir()
    occupy(hidden, kind, tmp_path / "other")
    with pytest.raises(PackageError, match=r"\.out\.partial' is in the way"):
        reserve_folder(tmp_path / "out", 10).__enter__()
    assert os.path.lexists(hidden)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_folders_get_the_usual_modes_and_the_umask_is_never_changed(tmp_path, monkeypatch, mask):
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")
            with reserve_folder(tmp_path / "out", 10) as place:
                place.commit({"": {"x": b"1"}, "level-1": {"x": b"1"}})
    finally:
        os.umask(before)
    for folder in (tmp_path / "out", tmp_path / "out" / "level-1"):
        assert folder.stat().st_mode & 0o777 == 0o777 & ~mask
    assert (tmp_path / "out" / "x").stat().st_mode & 0o777 == 0o666 & ~mask
