"""A ledger on a PostgreSQL server: crashes, tampering, roles, formats, passwords, and attacks."""

import multiprocessing
import os
import re
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from tallyveil.budget import postgresql
from tallyveil.budget.entries import Link
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tests.asking import make_options, privatize
from tests.budget.conftest import spend

psycopg = pytest.importorskip("psycopg")
FORK = multiprocessing.get_context("fork")
PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"


@pytest.fixture
def database(server):
    return server.new_database()


@pytest.fixture
def ledger(server, database):
    book = Ledger.create(server.address(database))
    book.open("cases", 1)
    book.debit("cases", spend("1/2"))
    return book


def _spend_for_ever(location, promised):
    book = Ledger(location)
    while True:
        try:
            promised.put(book.debit("cases", spend("1/1000")).digest)
        except LedgerError as problem:
            if not re.search(r"Nothing was spent|may have been spent", str(problem)):
                raise
            time.sleep(0.02)


def test_a_server_killed_in_the_middle_loses_nothing_that_was_promised(server):
    own = type(server)()
    try:
        location = own.address(own.new_database())
        Ledger.create(location).open("cases", 600)
        promised = FORK.Queue()
        workers = [FORK.Process(target=_spend_for_ever, args=(location, promised)) for _ in "abcd"]
        for worker in workers:
            worker.start()
        for pause in (0.3, 0.5):
            promised.get(timeout=60)
            time.sleep(pause)
            own.kill()
            own.start()
        promised.get(timeout=60)
        for worker in workers:
            worker.terminate()
            worker.join()
        digests = set()
        while not promised.empty():
            digests.add(promised.get())
        book = Ledger(location)
        length, _ = book.verify()
        kept = {entry.digest for entry in book.history("cases")}
        assert digests <= kept
        assert len(kept) == length - 1
        assert book.account("cases").spent_epsilon == Fraction(len(kept), 1000)
    finally:
        own.stop()


PASS = "LANGUAGE plpgsql SET search_path = pg_catalog AS $$ BEGIN RETURN {row}; END $$"
ALTERED = {
    "a foreign trigger": [
        "CREATE TRIGGER other BEFORE INSERT ON tallyveil.entries FOR EACH ROW EXECUTE "
        "FUNCTION tallyveil.check_entry()"
    ],
    "a guard removed": ["DROP TRIGGER entries_stay ON tallyveil.entries"],
    "a guard switched off": ["ALTER TABLE tallyveil.entries DISABLE TRIGGER entries_stay"],
    "a guard weakened": [
        "CREATE OR REPLACE FUNCTION tallyveil.refuse() RETURNS trigger LANGUAGE plpgsql SET "
        "search_path = pg_catalog AS $$ BEGIN RETURN NEW; END $$"
    ],
    "a rule": ["CREATE RULE quiet AS ON INSERT TO tallyveil.entries DO INSTEAD NOTHING"],
    "a view": ["CREATE VIEW tallyveil.shown AS SELECT * FROM tallyveil.entries"],
    "another table": ["CREATE TABLE tallyveil.notes (text text)"],
    "a column added": ["ALTER TABLE tallyveil.entries ADD COLUMN more text"],
    "a child table": ["CREATE TABLE public.child () INHERITS (tallyveil.entries)"],
    "a policy": ["CREATE POLICY hide ON tallyveil.entries USING (false)"],
    "a condition": [
        "CREATE OR REPLACE TRIGGER head_stays BEFORE DELETE ON tallyveil.head FOR EACH ROW "
        "WHEN (false) EXECUTE FUNCTION tallyveil.refuse()"
    ],
    "a guard of the same name elsewhere": [
        f"CREATE FUNCTION public.refuse() RETURNS trigger {PASS.format(row='NEW')}",
        "CREATE OR REPLACE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON tallyveil.entries "
        "FOR EACH ROW EXECUTE FUNCTION public.refuse()",
    ],
    "guards that swallow debits": [
        f"CREATE FUNCTION public.check_entry() RETURNS trigger {PASS.format(row='NULL')}",
        f"CREATE FUNCTION public.check_head() RETURNS trigger {PASS.format(row='NULL')}",
        "CREATE OR REPLACE TRIGGER entries_follow BEFORE INSERT ON tallyveil.entries "
        "FOR EACH ROW EXECUTE FUNCTION public.check_entry()",
        "CREATE OR REPLACE TRIGGER head_grows BEFORE UPDATE ON tallyveil.head "
        "FOR EACH ROW EXECUTE FUNCTION public.check_head()",
    ],
    "a guard of one column": [
        "CREATE OR REPLACE TRIGGER entries_stay BEFORE UPDATE OF sequence OR DELETE ON "
        "tallyveil.entries FOR EACH ROW EXECUTE FUNCTION tallyveil.refuse()"
    ],
    "a key of another column": [
        "ALTER TABLE tallyveil.entries DROP CONSTRAINT entries_pkey",
        "ALTER TABLE tallyveil.entries ADD CONSTRAINT entries_pkey PRIMARY KEY (sequence, digest)",
    ],
    "a condition that always holds": [
        "ALTER TABLE tallyveil.head DROP CONSTRAINT head_one_check",
        "ALTER TABLE tallyveil.head ADD CONSTRAINT head_one_check CHECK (true)",
    ],
    "letters that count as the same": [
        "CREATE COLLATION public.same (provider = icu, locale = 'und-u-ks-level1', "
        "deterministic = false)",
        "ALTER TABLE tallyveil.entries ALTER COLUMN dataset TYPE text COLLATE public.same",
    ],
    "a function with its owner's rights": [
        "ALTER FUNCTION tallyveil.check_entry() SECURITY DEFINER"
    ],
    "rows hidden from everybody": ["ALTER TABLE tallyveil.entries FORCE ROW LEVEL SECURITY"],
}  # fmt: skip


@pytest.mark.parametrize("statements", ALTERED.values(), ids=ALTERED)
def test_altered_tables_are_refused_also_if_they_look_the_same(
    server, database, ledger, statements
):
    server.execute(database, *statements)
    uses = (ledger.verify, lambda: ledger.open("x", 1), lambda: ledger.debit("cases", spend("1/9")))
    for use in uses:
        with pytest.raises(LedgerError, match=r"were altered.*Nothing was spent"):
            use()


TAMPERING = {
    "smaller amount": "UPDATE tallyveil.entries SET body = replace(body, '1/2', '1/50') "
    "WHERE sequence = 2",
    "last removed": "DELETE FROM tallyveil.entries WHERE sequence = 2",
    "head": "UPDATE tallyveil.head SET length = 1",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING)
def test_tampering_is_refused_by_the_server_and_found_where_it_was_forced(
    server, database, ledger, statement
):
    for table in ("entries", "head"):
        with pytest.raises(psycopg.errors.RaiseException, match="never"):
            server.execute(database, f"TRUNCATE tallyveil.{table}")
    with pytest.raises(psycopg.errors.RaiseException, match=r"never|names its last"):
        server.execute(database, statement)
    server.execute(database, "SET session_replication_role = replica", statement)
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/100"))):
        with pytest.raises(LedgerError, match="ledger"):
            use()


def grant_roles(server, database, spender, *others):
    """Run the script of docs/ledger.md, with an account that may debit and some that may not."""
    (script,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for role in (spender, *others, "ledger_spender", "ledger_reader"):
        server.execute(database, f"DROP ROLE IF EXISTS {role}")
    for role in (spender, *others):
        server.execute(database, f"CREATE ROLE {role} LOGIN")
    statements = script.replace("TO ann", f"TO {spender}").split(";\n")
    server.execute(database, *filter(str.strip, statements))


def test_the_roles_of_the_page(server, database, ledger):
    """The script of docs/ledger.md: readers read, spenders debit, the owner does the rest."""
    grant_roles(server, database, "ann", "bob", "eve")
    ann, bob, eve = (Ledger(server.address(database, name)) for name in ("ann", "bob", "eve"))
    try:
        entry = ann.debit("cases", spend("1/4"))
        assert entry.body["who"] == "ann"
        assert ann.verify() == bob.verify() == ledger.verify()
        assert bob.account("cases").remaining_epsilon == Fraction(1, 4)
        for use in (
            lambda: bob.debit("cases", spend("1/100")),
            lambda: bob.open("more", 1),
            lambda: bob.close("cases"),
            lambda: ann.open("more", 1),
            lambda: ann.close("cases"),
            lambda: eve.account("cases"),
            lambda: eve.debit("cases", spend("1/100")),
        ):
            with pytest.raises(LedgerError, match=r"may not|only the owner"):
                use()

        def pretend(chain):
            chain.append(Link.after(*chain.head(), "cases", "debit", '{"who": "owner"}'))

        with pytest.raises(LedgerError, match="names the account"):
            ann.store.write(pretend)
        assert ledger.verify()[0] == 3
    finally:
        server.execute(database, "DROP OWNED BY ledger_spender, ledger_reader")
        server.execute(database, "DROP ROLE ann, bob, eve, ledger_spender, ledger_reader")


@pytest.mark.parametrize("version", [0, 2])
def test_another_format_is_left_alone(server, database, ledger, version):
    before = ledger.verify()
    server.execute(database, f"UPDATE tallyveil.format SET version = {version}")
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/4"))):
        with pytest.raises(LedgerError, match=rf"format {version};.*Nothing was spent"):
            use()
    server.execute(database, "UPDATE tallyveil.format SET version = 1")
    assert ledger.verify() == before


def test_what_the_server_asks_to_be_repeated_is_repeated(server, database, ledger):
    tries = []

    def work(chain):
        tries.append(1)
        if len(tries) < 3:
            state = "40001" if len(tries) == 1 else "40P01"
            chain.connection.execute(
                f"DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '{state}'; END $$"
            )
        return "done"

    assert ledger.store.write(work) == "done"
    assert len(tries) == 3


def test_a_lock_that_is_not_given_up_costs_nothing(server, database, ledger, monkeypatch):
    monkeypatch.setattr(postgresql, "PATIENCE", 0.2)
    with psycopg.connect(server.address(database)) as other:
        other.execute("LOCK TABLE tallyveil.head")
        with pytest.raises(LedgerError, match=r"stayed busy.*Nothing was spent"):
            ledger.debit("cases", spend("1/4"))
    assert ledger.account("cases").debits == 1


def test_a_server_that_does_not_force_its_writes_is_refused(server, database, ledger, monkeypatch):
    asked = postgresql._read_one

    def say_off(connection, query):
        return "off" if "'fsync'" in query else asked(connection, query)

    monkeypatch.setattr(postgresql, "_read_one", say_off)
    with pytest.raises(LedgerError, match=r"fsync off.*Nothing was spent"):
        ledger.debit("cases", spend("1/4"))


def test_an_answer_that_is_lost_is_called_uncertain(server, database, ledger):
    """The connection ends while the entry is made final: nobody can say whether it was kept."""

    def work(chain):
        number = chain.connection.info.backend_pid
        server.execute(database, f"SELECT pg_terminate_backend({number}, 5000)")

    with pytest.raises(LedgerError, match=r"may have been spent, and nothing was drawn"):
        ledger.store.write(work)


def test_no_ledger_and_no_server(server, database, tmp_path):
    with pytest.raises(LedgerError, match=r"no ledger at postgresql://owner@.*ledger init"):
        Ledger(server.address(database)).account("cases")
    with pytest.raises(LedgerError, match=r"cannot be used: connection .*Nothing was spent"):
        Ledger(f"postgresql://ann@/budgets?host={tmp_path}").account("cases")
    for address in ("postgresql://h/d?nosuch=1", "postgresql:h/d", "nosuch://h/d"):
        with pytest.raises(LedgerError, match=r"address|neither"):
            Ledger(address).account("cases")


def test_the_command_line(server, database, tmp_path, monkeypatch):
    """Every command that takes a ledger, with a password in the address: it is never shown."""
    address = server.network_address(database)
    (tmp_path / "cases.csv").write_text("cases\n" + "1\n4\n0\n" * 30)

    def run(*words, code=0, **more):
        done = subprocess.run(
            [sys.executable, "-m", "tallyveil", *words],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240,
            env={**os.environ, **more},
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        assert server.password not in done.stdout + done.stderr
        return done.stdout + done.stderr

    common = ("--ledger", address)
    run("ledger", "init", *common, "--dataset", "cases", "--epsilon", "2")
    run("privatize", "cases.csv", "--count", "cases", "--upper", "9", "--epsilon", "1",
        "--set", "counts.allow_duplicates=true", "--out", "out", f"--ledger={address}", "--dataset",
        "cases")  # fmt: skip
    (entry,) = Ledger(address).history("cases")
    assert f"owner:***@127.0.0.1:{server.port}" in entry.body["command"]
    bare = address.replace(f":{server.password}", "")
    run("ledger", "verify", "--ledger", bare, "--release", "out", PGPASSWORD=server.password)
    wrong = address.replace(server.password, "wr0ng-passw0rd")
    assert "wr0ng" not in run("ledger", "show", "--ledger", wrong, code=1)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or server.password.encode() not in path.read_bytes()
    rows = server.execute(database, "SELECT body FROM tallyveil.entries")
    assert server.password not in str(rows)


SECRET = "hunter2/../@x"


@pytest.mark.parametrize(
    "address",
    [f"postgresql://ann:{SECRET}@127.0.0.1:1/budgets",
     "postgresql://ann:hunter2@127.0.0.1:1/budgets",
     "postgresql://ann:hunter2%40@127.0.0.1:1/budgets",
     "postgresql://ann@127.0.0.1:1/budgets?password=hunter2",
     "postgresql://ann@127.0.0.1:1/budgets?PASSWORD=hunter2&sslmode=disable",
     "postgresql://ann:hunter2@127.0.0.1:one/budgets",
     "postgresql://ann:hunter2@127.0.0.1:1/budgets?nosuch=hunter2",
     "postgresql://ann:hunter2%zz@127.0.0.1:1/budgets", "postgresql:hunter2",
     "postgresql:/ann:hunter2@h/d", "mysql://ann:hunter2@127.0.0.1/budgets"],
)  # fmt: skip
def test_a_password_is_in_no_message_and_no_repr(address, tmp_path):
    options = {"upper": 9, "epsilon": 1, "out": tmp_path / "out", "dataset": "cases"}
    with pytest.raises(LedgerError) as refusal:
        privatize([1, 2], ledger=address, **options)
    shown = []
    problem = refusal.value
    while problem is not None:
        shown.append(str(problem))
        problem = problem.__cause__ or (
            None if problem.__suppress_context__ else problem.__context__
        )
    assert "hunter2" not in " ".join(shown)
    assert "hunter2" not in repr(make_options(upper=9, ledger=address))


MOST_SECONDS = 5


@pytest.fixture
def mallory(server, database, ledger):
    """An account that may debit, as docs/ledger.md grants it; gives a connection."""
    grant_roles(server, database, "mallory", "bob")
    with psycopg.connect(server.address(database, "mallory"), autocommit=True) as connection:
        yield connection
    server.execute(database, "DROP OWNED BY mallory, ledger_spender, ledger_reader")
    server.execute(database, "DROP ROLE mallory, bob, ledger_spender, ledger_reader")


def append(connection, kind, body, dataset="more"):
    """Add an entry by hand, as the ledger's own program would."""
    length, digest = connection.execute("SELECT length, digest FROM tallyveil.head").fetchone()
    link = Link.after(length, digest, dataset, kind, body)
    with connection.transaction():
        connection.execute(
            "INSERT INTO tallyveil.entries VALUES (%s, %s, %s, %s, %s, %s)",
            (link.sequence, link.dataset, link.kind, link.body, link.previous, link.digest),
        )
        connection.execute(
            "UPDATE tallyveil.head SET length = %s, digest = %s", (link.sequence, link.digest)
        )


DISGUISES = {
    "nothing": [],
    "a table that passes for the server's list of tables": [
        "CREATE TEMP TABLE pg_class AS SELECT oid, (SELECT oid FROM pg_roles WHERE rolname = "
        "'mallory') AS relowner FROM pg_catalog.pg_class"
    ],
    "a view that passes for it": [
        "CREATE TEMP VIEW pg_class AS SELECT oid, (SELECT oid FROM pg_roles WHERE rolname = "
        "'mallory') AS relowner FROM pg_catalog.pg_class"
    ],
    "a type that passes for a number of the server": ["CREATE DOMAIN pg_temp.oid AS text"],
}


@pytest.mark.parametrize("statements", DISGUISES.values(), ids=DISGUISES)
def test_a_spender_opens_no_budget(ledger, mallory, statements):
    for statement in statements:
        mallory.execute(statement)
    with pytest.raises(psycopg.Error):
        append(mallory, "open", '{"who": "mallory", "epsilon": "1000"}')
    assert ledger.verify()[0] == 2
    with pytest.raises(LedgerError):
        ledger.account("more")


NAMES = {
    "nothing": [],
    "text of one letter": ["CREATE DOMAIN pg_temp.text AS char(1)"],
    "a document that says so": ["CREATE TYPE pg_temp.jsonb AS (who pg_catalog.text)"],
}


@pytest.mark.parametrize("who", ["owner", "m", "", "bob"])
@pytest.mark.parametrize("statements", NAMES.values(), ids=NAMES)
def test_a_spender_signs_with_no_other_name(ledger, mallory, statements, who):
    for statement in statements:
        mallory.execute(statement)
    with pytest.raises(psycopg.Error):
        append(mallory, "debit", f'{{"who": "{who}", "epsilon": "1/100"}}', "cases")
    assert ledger.verify()[0] == 2


def test_a_spender_adds_no_entry_that_nobody_can_read(ledger, mallory):
    with pytest.raises(psycopg.Error, match="too long"):
        append(mallory, "debit", '{"who": "mallory", "x": "' + "x" * 3_000_000 + '"}', "cases")
    assert ledger.verify()[0] == 2


FUNCTION = (
    "CREATE FUNCTION evil.{name} RETURNS pg_catalog.{gives} LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'stolen'; END $$"
)
FUNCTIONS = {
    "hashtext(pg_catalog.text)": "int4", "to_regclass(pg_catalog.text)": "regclass",
    "pg_advisory_xact_lock(pg_catalog.int4)": "void", "current_setting(pg_catalog.text)": "text",
    "max(pg_catalog.int4)": "int4", "md5(pg_catalog.text)": "text",
    "format_type(pg_catalog.oid, pg_catalog.int4)": "text",
    "pg_get_triggerdef(pg_catalog.oid)": "text",
}  # fmt: skip


@pytest.fixture
def evil(server, database):
    """A schema of functions that stand before the server's own; gives the ledger's address."""
    server.execute(database, "CREATE SCHEMA evil", "CREATE DOMAIN evil.text AS varchar(3)")
    for name, gives in FUNCTIONS.items():
        server.execute(database, FUNCTION.format(name=name, gives=gives))
    server.execute(database, "ALTER ROLE owner SET search_path = evil, pg_catalog")
    yield server.address(database)
    server.execute(database, "ALTER ROLE owner RESET search_path", "DROP SCHEMA evil CASCADE")


def test_functions_of_other_schemas_are_not_called(evil):
    book = Ledger.create(evil)
    book.open("cases", 1)
    book.debit("cases", spend("1/2"))
    assert book.verify()[0] == 2
    assert Ledger.create(evil).verify()[0] == 2


def test_an_entry_that_the_server_did_not_keep_is_no_debit(server, database, ledger):
    """Whatever made it vanish: an entry counts once the server has counted it."""

    class Forgetful:
        def __init__(self, connection):
            self.connection = connection

        def execute(self, query, *values):
            kept = "SELECT 1 WHERE false" if query.startswith(("INSERT", "UPDATE")) else query
            return self.connection.execute(kept, *([] if kept != query else values))

    def work(chain):
        chain.connection = Forgetful(chain.connection)
        chain.append(Link.after(*chain.head(), "cases", "debit", '{"who": "owner"}'))

    with pytest.raises(LedgerError, match=r"did not keep the entry.*Nothing was spent"):
        ledger.store.write(work)


LIES = {
    "no document": "x", "null": "null", "a number": "7",
    "an amount of many digits": '{"epsilon": "1/' + "3" * 5000 + '", "stages": []}',
    "amounts in a list": '{"epsilon": ["1"], "stages": [["1"]]}',
    "a key twice": '{"epsilon": "1/2", "epsilon": "1/100", "stages": []}',
    "a long number": "9" * 100_000,
    "very long": '{"epsilon": "1/2", "x": "' + "x" * 5_000_000 + '"}',
}  # fmt: skip


@pytest.mark.parametrize("kind", ["debit", "open", "odd"])
@pytest.mark.parametrize("body", LIES.values(), ids=LIES)
def test_rows_that_lie_end_in_words(server, database, ledger, body, kind):
    """The owner of a server can write anything, also with digests that hold."""
    with psycopg.connect(server.address(database), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        append(connection, kind, body, "cases")
    start = time.process_time()
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/100"))):
        with pytest.raises(LedgerError) as refused:
            use()
        assert len(str(refused.value)) < 1000
    assert time.process_time() - start < MOST_SECONDS
