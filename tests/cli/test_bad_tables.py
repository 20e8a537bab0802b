"""Bad tables and bad places: a clear error, nothing written, nothing debited."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

GOOD = ["county,cases", *(f"c{i},{i % 5}" for i in range(30))]
SECRET = "7919"
"""A count that no message may quote."""


def lines(*changes):
    """The good table with lines replaced."""
    table = list(GOOD)
    for at, text in changes:
        table[at] = text
    return "\n".join(table) + "\n"


WORDS = ("--count", "cases", "--keep", "all", "--upper", "9", "--epsilon", "1")
WIDE = ["county", "cases", *(f"x{i}" for i in range(9998))]
BAD = {  # test_bad_inputs.py has more; here nothing may be debited either
    "negative": (lines((5, f"c4,-{SECRET}")), "Row 5 of count column 'cases' has a negative"),
    "nan": (lines((5, "c4,NaN")), "Row 5 of count column 'cases' has no value"),
    "duplicate categories": (lines((5, "c0,1")), "Row 5 repeats the category"),
    "rows of unequal length": (lines((5, "c4,1,2")), "Row 5 has 3 cells"),
    "10,000 columns": (
        "".join(",".join(row) + "\n" for row in [WIDE, *([f"c{i}"] + ["1"] * 9999 for i in "abc")]),
        "columns",
    ),
}


@pytest.fixture
def refused(tallyveil, ledger, history, tmp_path):
    """Run privatize on a bad input; return the error after checking that nothing happened."""

    def run(table, *options, account=True, code=1, out=None):
        out = out or tmp_path / "release"
        before = {path for path in tmp_path.rglob("*") if "journal" not in path.name}
        epsilon = () if "--epsilon" in options else WORDS[-2:]
        words = ["privatize", table, *WORDS[:-2], *epsilon, "--out", out]
        if account:
            words += ["--ledger", ledger, "--dataset", "cases"]
        done = tallyveil(*words, *options)
        assert done.returncode == code, done.stdout + done.stderr
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert SECRET not in done.stderr
        after = {path for path in tmp_path.rglob("*") if "journal" not in path.name}
        assert after == before
        assert history() == []
        return done.stderr

    return run


@pytest.mark.parametrize("name", BAD)
def test_a_bad_text_table_is_refused(refused, tmp_path, name):
    content, words = BAD[name]
    table = tmp_path / "table.csv"
    table.write_text(content, encoding="utf-8", newline="")
    assert words in refused(table)


def test_a_parquet_file_cut_in_half(refused, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = tmp_path / "table.parquet"
    pq.write_table(pa.table({"county": ["a", "b"], "cases": [1, 2]}), table)
    table.write_bytes(table.read_bytes()[: table.stat().st_size // 2])
    assert "damaged or cut short" in refused(table)


@pytest.fixture
def good(tmp_path):
    table = tmp_path / "good.csv"
    table.write_text(lines())
    return table


def test_categories_outside_the_public_list(refused, good):
    names = ",".join(f"c{i}" for i in range(29))
    assert "Row 30 has a category" in refused(good, "--by", "county", "--categories", names)


def test_an_output_folder_that_exists(refused, good, tmp_path):
    (tmp_path / "release").mkdir()
    assert "exists already" in refused(good)
    assert list((tmp_path / "release").iterdir()) == []


@pytest.mark.parametrize("epsilon", ["1e-999", "0", "-1", "nan", "1e9999999", "one", "1/0"])
def test_an_epsilon_that_is_none(refused, good, epsilon):
    assert "--epsilon must" in refused(good, "--epsilon", epsilon, code=2)


@pytest.mark.parametrize(
    "content", [b"", b"county,cases\n" * 99, b"SQLite format 3\0" + b"x" * 999]
)
def test_a_ledger_that_is_not_one(refused, good, tmp_path, content):
    fake = tmp_path / "fake.db"
    fake.write_bytes(content)
    error = refused(good, "--ledger", fake, "--dataset", "cases", account=False)
    assert "not a Tallyveil ledger" in error
    assert fake.read_bytes() == content


def test_a_ledger_or_dataset_that_is_missing(refused, good, tmp_path, ledger):
    other = ("--ledger", tmp_path / "none.db", "--dataset", "cases")
    assert "no ledger at" in refused(good, *other, account=False)
    assert "'deaths' is not in the ledger" in refused(
        good, "--ledger", ledger, "--dataset", "deaths", account=False
    )
    assert "belong together" in refused(good, "--ledger", ledger, account=False, code=2)


def test_a_file_that_is_missing_or_of_no_known_kind(refused, tmp_path):
    assert "no file" in refused(tmp_path / "none.csv")
    picture = tmp_path / "table.png"
    picture.write_bytes(b"x")
    assert "Known endings" in refused(picture)


# A limit on the size of any one file looks to the program like a disk without room.
LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
from tallyveil.cli import main
sys.argv = ["tallyveil", *sys.argv[1:]]
main()
"""


def test_a_disk_without_room(good, tmp_path, ledger, history):
    words = ["privatize", good, *WORDS, "--ledger", ledger, "--dataset", "cases", "--out"]
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


def test_a_place_without_write_permission(good):
    with tempfile.TemporaryDirectory() as place:
        closed = Path(place, "closed")
        closed.mkdir(mode=0o555)
        table = shutil.copy(good, Path(place, "good.csv"))
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


def test_a_mark_at_the_start_is_not_written_and_duplicates_can_be_allowed(tallyveil, tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "release"
    table.write_bytes(b"\xef\xbb\xbf" + lines((5, "c0,1")).encode())
    keys = ("--set", "source.encoding=utf-8-sig", "--set", "counts.allow_duplicates=true")
    tallyveil("privatize", table, *WORDS, *keys, "--out", out, check=0)
    assert (out / "data.csv").read_bytes().startswith(b"county,cases\n")
    tallyveil("check", out, check=0)
