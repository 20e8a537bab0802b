"""Private folders: whose they are, how long they live, and what a killed process leaves."""

import os
import signal
import subprocess
import sys

from tallyveil.tables.spool import PREFIX, make_private, open_new


class Owner:
    pass


def test_a_folder_is_its_owners_and_goes_with_it(tmp_path):
    owner = Owner()
    folder = make_private(tmp_path, owner)
    os.close(open_new(folder / "rows"))
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "rows").stat().st_mode & 0o777 == 0o600
    del owner
    assert not any(tmp_path.iterdir())


def test_folders_in_use_are_left_alone_and_abandoned_ones_removed(tmp_path):
    words = (
        "import sys, time; from pathlib import Path; from tallyveil.tables.spool import *\n"
        "owner = type('Owner', (), {})()\n"
        "folder = make_private(Path(sys.argv[1]), owner)\n"
        "(folder / 'rows').write_text('secret')\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", words, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout.readline() == "ready\n"
    (theirs,) = tmp_path.iterdir()
    owners = [Owner()]
    make_private(tmp_path, owners[0])
    assert (theirs / "rows").read_text() == "secret"
    other.send_signal(signal.SIGKILL)
    other.wait()
    other.stdout.close()
    assert theirs.exists()
    owners.append(Owner())
    make_private(tmp_path, owners[1])
    assert not theirs.exists()
    assert len(list(tmp_path.iterdir())) == len(owners)


def test_a_fork_removes_nothing(tmp_path):
    owner = Owner()
    folder = make_private(tmp_path, owner)
    child = os.fork()
    if not child:
        del owner
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.is_dir()


def test_what_is_no_folder_of_ours_stays(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}file").touch()
    owner = Owner()
    make_private(tmp_path, owner)
    assert (tmp_path / "elsewhere" / "kept").exists()
    assert (tmp_path / f"{PREFIX}file").exists()
