"""Places where nothing can be written: a clear error, nothing written, nothing debited."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = ["--count", "cases", "--keep", "all", "--upper", "9", "--epsilon", "1"]
# A limit on the size of any one file looks to the program like a disk without room.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
from tallyveil.cli import main
sys.argv = ["tallyveil", *sys.argv[1:]]
main()
"""


def test_a_disk_without_room(cases, tmp_path, ledger, history):
    words = ["privatize", cases, *WORDS, "--ledger", ledger, "--dataset", "cases", "--out"]
    disk = tmp_path / "disk"
    disk.mkdir()
    command = [sys.executable, "-c", LIMITED, *map(str, words), str(disk / "release")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert list(disk.iterdir()) == []
    assert "no room" in done.stderr
    assert history() == []


# Root may write anywhere, so become somebody who may not; but first load every module once,
# because nobody may read them.
AS_NOBODY = """
import os, sys
from tallyveil.cli import main
words = sys.argv[2:]
try:
    sys.argv = ["tallyveil", *words[:-1], sys.argv[1]]
    main()
except SystemExit as done:
    assert done.code == 0
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
sys.argv = ["tallyveil", *words]
main()
"""


def test_a_place_without_write_permission(cases):
    with tempfile.TemporaryDirectory() as place:
        closed = Path(place, "closed")
        closed.mkdir(mode=0o555)
        table = shutil.copy(cases, place)
        words = ["privatize", table, *WORDS, "--out", str(closed / "release")]
        program = [str(Path(sys.executable).with_name("tallyveil"))]
        if os.geteuid() == 0:
            os.chmod(place, 0o755)
            program = [sys.executable, "-c", AS_NOBODY, str(Path(place, "first"))]
        done = subprocess.run(
            [*program, *map(str, words)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1, done.stderr
        assert "no permission to write" in done.stderr
        assert list(closed.iterdir()) == []
