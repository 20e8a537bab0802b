"""Tables from DuckDB and PostgreSQL: the same release as from a file, and no secret anywhere."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil.tables.databases import PREFIX, make_private
from tallyveil.tables.read import read_table
from tallyveil.tables.source import Source
from tests.asking import privatize

_spec = importlib.util.spec_from_file_location(
    "database_server", Path(__file__).parents[1] / "budget" / "server.py"
)
server_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(server_module)

ROWS = 2_000
TABLE = (
    "SELECT i AS id, 'ward ' || i AS ward, CAST(i % 7 AS INTEGER) AS cases, {secret} AS note "
    "FROM {rows}"
)
QUERY = "SELECT ward, cases FROM visits"
OPTIONS = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
WORDS = ("--count", "cases", "--keep", "all", "--upper", 9, "--epsilon", 1)
SECRET = "Anna-Schmidt"


@pytest.fixture(scope="module")
def duck(tmp_path_factory):
    path = tmp_path_factory.mktemp("duck") / "health.db"
    with duckdb.connect(path) as database:
        rows = f"range({ROWS}) AS r(i)"
        database.execute("CREATE TABLE visits AS " + TABLE.format(rows=rows, secret=f"'{SECRET}'"))
    return f"duckdb:{path}"


@pytest.fixture(scope="module")
def server():
    server_module.require_server()
    running = server_module.Server()
    rows = f"generate_series(0, {ROWS - 1}) AS r(i)"
    running.execute(
        "postgres", "CREATE TABLE visits AS " + TABLE.format(rows=rows, secret=f"'{SECRET}'")
    )
    yield running
    running.stop()


@pytest.fixture(params=["duckdb", "postgresql"])
def address(request):
    if request.param == "duckdb":
        return request.getfixturevalue("duck")
    return request.getfixturevalue("server").network_address("postgres")


def run(*words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "tallyveil", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def everything_written(folder):
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_the_release_is_that_of_the_same_table_in_a_file(address, tmp_path):
    counts = pa.array(np.arange(ROWS) % 7, pa.int32())
    wards = pa.array([f"ward {i}" for i in range(ROWS)])
    pq.write_table(pa.table({"ward": wards, "cases": counts}), tmp_path / "visits.parquet")
    first = privatize(
        address, sql=QUERY + " ORDER BY id", entropy=tv.SeededNotPrivate(4), **OPTIONS
    )
    second = privatize(tmp_path / "visits.parquet", entropy=tv.SeededNotPrivate(4), **OPTIONS)
    assert first.table.equals(second.table)
    assert first.table.schema.equals(second.table.schema, check_metadata=True)


def test_microdata_are_counted(address):
    query = "SELECT cases AS kind FROM visits"
    release = privatize(
        address, sql=query, by="kind", categories=[*range(7)], upper=5_000, epsilon=50
    )
    assert abs(np.asarray(release.table["count"]) - ROWS / 7).max() <= 2


def test_decimals_are_counts(duck, server):
    query = "SELECT ward, CAST(cases AS NUMERIC(12, 0)) AS cases FROM visits ORDER BY id"
    assert np.array_equal(read_table(duck, Source(sql=query)).counts("cases"), np.arange(ROWS) % 7)
    text = read_table(server.address("postgres"), Source(sql=query))
    assert text.type_of("cases") == "string"
    assert text.labels("cases")[8] == "1"
    assert np.array_equal(text.counts("cases"), np.arange(ROWS) % 7)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELEC ward", "does not understand the query: .*SELEC"),
        ("SELECT ward FROM nowhere", "does not understand the query: .*nowhere"),
        ("SELECT wart FROM visits", "does not understand the query: .*wart"),
        ("DELETE FROM visits", "must only read"),
        ("CREATE TABLE copy AS SELECT 1 AS one", "must only read"),
        ("SELECT CAST(note AS INTEGER) AS cases FROM visits", "may quote data"),
        ("SELECT 1 AS cases; SELECT 2 AS cases", "single statement|multiple commands"),
        ("SELECT 100 / CAST(substr(note, 1, 1) = 'B' AS INTEGER) FROM visits, x", "understand"),
    ],
)
def test_queries_that_cannot_be_answered(address, query, said):
    with pytest.raises(tv.TableError, match=said) as refused:
        privatize(address, sql=query, **OPTIONS)
    text = str(refused.value)
    assert SECRET not in text
    assert server_module.Server.password not in text
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    assert read_table(address, Source(sql="SELECT count(*) AS n FROM visits")).counts("n") == [ROWS]


def test_a_column_of_several_types_is_named(duck):
    query = "SELECT ward, union_value(a := cases) AS either, cases FROM visits"
    with pytest.raises(tv.TableError, match="The column 'either' has the type"):
        privatize(duck, sql=query, **OPTIONS)


def test_a_query_writes_no_file(duck, tmp_path):
    target = tmp_path / "leak.csv"
    for query in (f"COPY visits TO '{target}'", f"SELECT * FROM read_csv('{__file__}')"):
        with pytest.raises(tv.TableError, match="no other file is touched"):
            read_table(duck, Source(sql=query))
    assert not target.exists()


def test_files_that_are_no_database(tmp_path):
    with pytest.raises(tv.TableError, match=r"There is no database file .*none\.db"):
        read_table(f"duckdb:{tmp_path / 'none.db'}", Source(sql=QUERY))
    assert not list(tmp_path.iterdir())
    (tmp_path / "junk.db").write_text("junk")
    pq.write_table(pa.table({"cases": [1]}), tmp_path / "cases.parquet")
    for name in ("junk.db", "cases.parquet", "."):
        with pytest.raises(tv.TableError, match=r"DuckDB database|no database file"):
            read_table(f"duckdb:{tmp_path / name}", Source(sql=QUERY))


def test_address_and_query_go_together(duck, tmp_path):
    for source, query in ((duck, None), ([1, 2], QUERY), (tmp_path / "cases.csv", QUERY)):
        with pytest.raises(tv.UsageError, match="go together"):
            privatize(source, sql=query, count="cases", upper=9, epsilon=1)


def test_no_password_is_written_or_shown(server, tmp_path):
    """Passwords in the address, right and wrong, in every place that keeps or shows something."""
    ledger, out = tmp_path / "budget.db", tmp_path / "out"
    run("ledger", "init", "--ledger", ledger, "--dataset", "v", "--epsilon", 3)
    words = ["--set", f"source.sql={QUERY}", *WORDS]
    words += ["--ledger", ledger, "--dataset", "v"]
    right = server.network_address("postgres")
    done = run("privatize", right, *words, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    wrong = server.network_address("postgres", password="Wrong-Passw0rd")
    refused = run("privatize", wrong, *words, "--out", tmp_path / "second")
    assert refused.returncode == 1
    assert "The database cannot be reached" in refused.stderr
    assert "password authentication failed" in refused.stderr
    unclear = run("privatize", right.replace("Passw0rd", "p/w@d"), *words, "--out", "x")
    assert "address cannot be read" in unclear.stderr
    shown = run("ledger", "show", "--ledger", ledger, "--json").stdout
    told = "".join(d.stdout + d.stderr for d in (done, refused, unclear)) + shown
    kept = everything_written(tmp_path)
    for secret in (server.password, "Wrong-Passw0rd", "p/w@d-of-the-owner", "of-the-owner"):
        assert secret not in told
        assert secret.encode() not in kept
    assert b"owner:***@" in kept  # the ledger keeps the command, without the password
    assert not (tmp_path / "second").exists()
    assert json.loads(done.stdout)["receipt"]


def test_no_password_in_a_query_is_kept(duck, tmp_path):
    secret, ledger = "hunter2secret", tmp_path / "budget.db"
    run("ledger", "init", "--ledger", ledger, "--dataset", "v", "--epsilon", 3)
    query = f"{QUERY} WHERE 'host=h PassWord={secret}' <> ''"
    words = [*WORDS, "--ledger", ledger, "--dataset", "v", "--out", tmp_path / "out"]
    done = run("privatize", duck, "--set", f"source.sql={query}", *words)
    assert done.returncode == 0, done.stderr
    assert run("check", tmp_path / "out").returncode == 0
    seen = run("inspect", duck, "--set", f"source.sql={query}")
    assert seen.returncode == 0, seen.stderr
    assert secret not in done.stdout + done.stderr + seen.stdout + seen.stderr
    kept = everything_written(tmp_path)
    assert b"PassWord=***" in kept
    assert secret.encode() not in kept


MISPLACED = (
    "privatize ADDRESS --count cases --epsilon 1 --out o",
    "privatize x.csv ADDRESS --count cases --epsilon 1 --out o",
    "ledger init --ledger ADDRESS --dataset v --epsilon 1",
    "ledger show --ledger ADDRESS",
    *(f"{command} ADDRESS" for command in ("inspect", "check", "verify", "run", "report")),
)


@pytest.mark.parametrize("words", MISPLACED)
@pytest.mark.parametrize(
    "address", ["postgresql+psycopg://owner:hunter2secret@h/db", "host=h password=hunter2secret"]
)
def test_no_command_shows_an_address_in_the_wrong_place(words, address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*(address if word == "ADDRESS" else word for word in words.split()))
    assert done.returncode in (1, 2)
    assert done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_password_may_come_from_the_environment(server, tmp_path):
    bare = server.network_address("postgres").replace(f":{server.password}", "")
    words = ["--set", f"source.sql={QUERY}", *WORDS]
    done = run("privatize", bare, *words, "--out", tmp_path / "out", PGPASSWORD=server.password)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("source", "module", "library"),
    [
        ("duckdb:x.db", "duckdb", "duckdb"),
        ("postgresql://a@b/c", "adbc_driver_manager", "adbc-driver-postgresql"),
    ],
)
def test_the_missing_library_is_named(source, module, library, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(tv.MissingExtraError, match=rf"{library}.*\[databases\]"):
        read_table(source, Source(sql=QUERY))


LONG = 150_000
LONG_QUERY = {
    "duckdb": "SELECT i AS id, 'ward ' || i AS ward, i % 7 AS cases FROM range({rows}) AS r(i)",
    "postgresql": "SELECT i AS id, 'ward ' || i AS ward, i % 7 AS cases "
    "FROM generate_series(0, {rows} - 1) AS r(i)",
}


@pytest.fixture
def long_query(address):
    return LONG_QUERY[address.partition(":")[0]].format(rows=LONG)


@pytest.fixture
def spool(tmp_path, monkeypatch):
    """The folder in which answers are kept."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_long_answer_is_kept_in_a_private_file_and_read_in_batches(address, long_query, spool):
    table = read_table(address, Source(sql=long_query))
    (folder,) = spool.iterdir()
    (file,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    assert table.rows == LONG
    assert max(batch.rows for batch in table.batches()) < LONG / 2
    assert np.array_equal(table.counts("cases"), np.arange(LONG) % 7)
    assert table.labels("ward")[LONG - 1] == f"ward {LONG - 1}"
    del table
    assert not any(spool.iterdir())


def test_an_answer_that_does_not_fit_on_the_disk_is_refused_without_its_words(
    address, long_query, spool, monkeypatch
):
    def fail(_):
        raise OSError(28, SECRET)

    monkeypatch.setattr("tallyveil.tables.databases.open_new", fail)
    with pytest.raises(tv.TableError, match="set TMPDIR") as refused:
        read_table(address, Source(sql=long_query))
    assert SECRET not in str(refused.value)


def test_a_long_answer_that_breaks_off_is_refused_and_nothing_of_it_stays(address, spool):
    kind = address.partition(":")[0]
    query = LONG_QUERY[kind].format(rows=LONG)
    broken = f"SELECT id, ward, 10 / (140000 - id) AS cases FROM ({query}) AS a"
    if kind == "duckdb":
        broken = f"SELECT id, ward, CAST(CASE WHEN id = 140000 THEN '{SECRET}' ELSE '1' END AS "
        broken += f"INTEGER) AS cases FROM ({query}) AS a"
    with pytest.raises(tv.TableError, match="may quote data") as refused:
        read_table(address, Source(sql=broken))
    assert SECRET not in str(refused.value)
    del refused
    assert not any(spool.iterdir())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_answer(duck, tmp_path):
    """Three million rows take at most 150 MiB more than three hundred thousand."""
    words = (
        "import sys; from tallyveil.tables.source import Source\n"
        "from tallyveil.tables.read import read_table\n"
        "table = read_table(sys.argv[1], Source(sql=sys.argv[2]))\n"
        "assert sum(batch.rows for batch in table.batches()) == int(sys.argv[3])\n"
        "status = open('/proc/self/status').read()\n"
        "print(int(status.split('VmHWM:')[1].split()[0]) // 1024)"
    )
    peaks = []
    for rows in (300_000, 3_000_000):
        query = LONG_QUERY["duckdb"].format(rows=rows)
        done = subprocess.run(
            [sys.executable, "-c", words, duck, query, str(rows)],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 150


def test_inspect_shows_the_columns_of_a_query_and_no_password(address):
    done = run("inspect", address, "--set", f"source.sql={QUERY}")
    assert done.returncode == 0, done.stderr
    assert "SELECT ward, cases FROM visits: database, 2,000 rows, 2 columns" in done.stdout
    assert "--set 'source.sql=SELECT ward, cases FROM visits'" in done.stdout
    assert server_module.Server.password not in done.stdout + done.stderr
    assert SECRET not in done.stdout + done.stderr


class Owner:
    """What a private folder goes with."""


def test_folders_in_use_are_left_alone_and_abandoned_ones_removed(tmp_path):
    words = (
        "import sys, time; from pathlib import Path\n"
        "from tallyveil.tables.databases import make_private\n"
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
