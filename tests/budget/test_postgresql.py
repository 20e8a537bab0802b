"""A ledger on a PostgreSQL server: crashes, tampering, roles, formats, and passwords kept quiet."""

import multiprocessing
import os
import re
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

import tallyveil as tv
from tallyveil.budget import postgresql
from tallyveil.budget.chain import Link
from tallyveil.budget.entries import Debit, Stage
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tallyveil.release.options import ReleaseOptions

FORK = multiprocessing.get_context("fork")
PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"


def spend(epsilon):
    return Debit(("n",), (Stage("draw", Fraction(epsilon)),))


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


ALTERED = {
    "a foreign trigger": "CREATE TRIGGER other BEFORE INSERT ON tallyveil.entries FOR EACH ROW "
    "EXECUTE FUNCTION tallyveil.check_entry()",
    "a guard removed": "DROP TRIGGER entries_stay ON tallyveil.entries",
    "a guard switched off": "ALTER TABLE tallyveil.entries DISABLE TRIGGER entries_stay",
    "a guard weakened": "CREATE OR REPLACE FUNCTION tallyveil.refuse() RETURNS trigger "
    "LANGUAGE plpgsql SET search_path = pg_catalog AS $$ BEGIN RETURN NEW; END $$",
    "a rule": "CREATE RULE quiet AS ON INSERT TO tallyveil.entries DO INSTEAD NOTHING",
    "a view": "CREATE VIEW tallyveil.shown AS SELECT * FROM tallyveil.entries",
    "another table": "CREATE TABLE tallyveil.notes (text text)",
    "a column added": "ALTER TABLE tallyveil.entries ADD COLUMN more text",
    "a child table": "CREATE TABLE public.child () INHERITS (tallyveil.entries)",
    "a policy": "CREATE POLICY hide ON tallyveil.entries USING (false)",
    "a condition": "CREATE OR REPLACE TRIGGER head_stays BEFORE DELETE ON tallyveil.head "
    "FOR EACH ROW WHEN (false) EXECUTE FUNCTION tallyveil.refuse()",
}


@pytest.mark.parametrize("statement", ALTERED.values(), ids=ALTERED)
def test_altered_tables_are_refused(server, database, statement):
    book = Ledger.create(server.address(database))
    server.execute(database, statement)
    for use in (book.verify, lambda: book.open("x", 1)):
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
    import psycopg

    with pytest.raises(psycopg.errors.RaiseException, match=r"never|names its last"):
        server.execute(database, statement)
    server.execute(database, "SET session_replication_role = replica", statement)
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/100"))):
        with pytest.raises(LedgerError, match="ledger"):
            use()


def test_the_tables_cannot_be_emptied(server, database, ledger):
    import psycopg

    for table in ("entries", "head"):
        with pytest.raises(psycopg.errors.RaiseException, match="never"):
            server.execute(database, f"TRUNCATE tallyveil.{table}")


def test_the_roles_of_the_page(server, database, ledger):
    """The script of docs/ledger.md: readers read, spenders debit, the owner does the rest."""
    (script,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for role in ("ann", "bob", "eve", "ledger_spender", "ledger_reader"):
        server.execute(database, f"DROP ROLE IF EXISTS {role}")
    for role in ("ann", "bob", "eve"):
        server.execute(database, f"CREATE ROLE {role} LOGIN")
    server.execute(database, *filter(str.strip, script.split(";\n")))
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
    import psycopg

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
        "--allow-duplicates", "--out", "out", f"--ledger={address}", "--dataset",
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
    [
        f"postgresql://ann:{SECRET}@127.0.0.1:1/budgets",
        "postgresql://ann:hunter2@127.0.0.1:1/budgets",
        "postgresql://ann:hunter2%40@127.0.0.1:1/budgets",
        "postgresql://ann@127.0.0.1:1/budgets?password=hunter2",
        "postgresql://ann@127.0.0.1:1/budgets?PASSWORD=hunter2&sslmode=disable",
        "postgresql://ann:hunter2@127.0.0.1:one/budgets",
        "postgresql://ann:hunter2@127.0.0.1:1/budgets?nosuch=hunter2",
        "postgresql://ann:hunter2%zz@127.0.0.1:1/budgets",
        "postgresql:hunter2",
        "postgresql:/ann:hunter2@h/d",
        "mysql://ann:hunter2@127.0.0.1/budgets",
    ],
)
def test_a_password_is_in_no_message_and_no_repr(address, tmp_path):
    options = {"upper": 9, "epsilon": 1, "out": tmp_path / "out", "dataset": "cases"}
    with pytest.raises(LedgerError) as refusal:
        tv.privatize([1, 2], ledger=address, **options)
    shown = []
    problem = refusal.value
    while problem is not None:
        shown.append(str(problem))
        problem = problem.__cause__ or (
            None if problem.__suppress_context__ else problem.__context__
        )
    assert "hunter2" not in " ".join(shown)
    assert "hunter2" not in repr(ReleaseOptions(upper=9, ledger=address))
