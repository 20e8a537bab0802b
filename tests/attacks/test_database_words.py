"""What a database says while it works through confidential rows is never repeated."""

import gc
import tempfile
import traceback

import duckdb
import pytest

import tallyveil as tv
from tests.asking import privatize
from tests.budget import server as postgresql

SECRET = "Anna-Schmidt"
QUIET = "may quote data and is not shown"
MISUSED = {  # functions and types that quote what they cannot read
    "duckdb": (
        *("CAST(name AS INTEGER)", "error(name)", "strptime(name, '%Y')", "json(name)"),
        *("(SELECT name FROM held, range(2))", "name::ENUM('a')", "name::UUID", "from_hex(name)"),
        *("regexp_matches(name, '(' || name)", "date_part(name, DATE '2020-01-01')"),
        *("date_trunc(name, DATE '2020-01-01')", "timezone(name, now())", "format('{:d}', name)"),
        *("printf('%d', name)", "make_timestamp(n, n, 99, n, n, n)"),
    ),
    "postgresql": (
        *("name::regclass", "name::regtype", "name::regproc", "name::regrole", "nextval(name)"),
        *("name::int", "current_setting(name)", "date_part(name, now())", "name::json"),
        *(
            "date_trunc(name, now())",
            "to_tsvector(name::regconfig, 'x')",
            "now() AT TIME ZONE name",
        ),
        *("encode('a'::bytea, name)", "has_table_privilege(name, 'SELECT')"),
        *("pg_get_serial_sequence(name, 'x')", "query_to_xml(name, true, true, '')"),
    ),
}
HELD = f"CREATE TABLE held AS SELECT CAST('{SECRET}' AS text) AS name, 1 AS n"


@pytest.fixture(scope="module")
def duck(tmp_path_factory):
    path = tmp_path_factory.mktemp("duck") / "held.db"
    with duckdb.connect(path) as database:
        database.execute(HELD)
    return f"duckdb:{path}"


@pytest.fixture(scope="module")
def server():
    postgresql.require_server()
    running = postgresql.Server()
    running.execute("postgres", HELD)
    yield running
    running.stop()


@pytest.mark.parametrize("kind", MISUSED)
def test_no_value_is_quoted(kind, request):
    if kind == "duckdb":
        address = request.getfixturevalue("duck")
    else:
        address = request.getfixturevalue("server").network_address("postgres")
    for misuse in MISUSED[kind]:
        query = f"SELECT {misuse} AS word, n FROM held"
        with pytest.raises(tv.TableError) as refused:
            privatize(address, sql=query, count="n", keep="all", upper=9, epsilon=1)
        assert QUIET in str(refused.value), misuse
        seen = "".join(traceback.format_exception(refused.value))  # with --debug, causes are shown
        assert SECRET.lower() not in seen.lower(), misuse


@pytest.mark.parametrize(("keep", "written"), [("all", True), ("all", False), (None, True)])
def test_no_answer_stays_on_the_disk(keep, written, duck, tmp_path, monkeypatch):
    """Not even while its release is held, and not where the release was refused."""
    spool, out = tmp_path / "spool", tmp_path / "out" if written else None
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    keys = {"sql": "SELECT * FROM held", "count": "n", "upper": 9, "epsilon": 1, "out": out}
    try:
        release = privatize(duck, **keys, keep=keep)
    except tv.TableError:
        assert keep is None
    else:
        assert len(release.table) == 1
    gc.collect()
    assert list(spool.iterdir()) == []
