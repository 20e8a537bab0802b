"""Attacks on a ledger through its PostgreSQL server: what accounts, schemas and rows may try."""

import re
import time
from fractions import Fraction
from pathlib import Path

import pytest

from tallyveil.budget.entries import Debit, Link, Stage
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
MOST_SECONDS = 5


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


@pytest.fixture
def mallory(server, database, ledger):
    """An account that may debit, as docs/ledger.md grants it; gives a connection."""
    import psycopg

    (script,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    roles = ("mallory", "bob", "ledger_spender", "ledger_reader")
    for role in roles:
        server.execute(database, f"DROP ROLE IF EXISTS {role}")
    for role in ("mallory", "bob"):
        server.execute(database, f"CREATE ROLE {role} LOGIN")
    statements = script.replace("TO ann", "TO mallory").split(";\n")
    server.execute(database, *filter(str.strip, statements))
    with psycopg.connect(server.address(database, "mallory"), autocommit=True) as connection:
        yield connection
    server.execute(database, "DROP OWNED BY mallory, ledger_spender, ledger_reader")
    server.execute(database, f"DROP ROLE {', '.join(roles)}")


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
    import psycopg

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
    import psycopg

    for statement in statements:
        mallory.execute(statement)
    with pytest.raises(psycopg.Error):
        append(mallory, "debit", f'{{"who": "{who}", "epsilon": "1/100"}}', "cases")
    assert ledger.verify()[0] == 2


def test_a_spender_adds_no_entry_that_nobody_can_read(ledger, mallory):
    import psycopg

    with pytest.raises(psycopg.Error, match="too long"):
        append(mallory, "debit", '{"who": "mallory", "x": "' + "x" * 3_000_000 + '"}', "cases")
    assert ledger.verify()[0] == 2


FUNCTION = (
    "CREATE FUNCTION evil.{name} RETURNS pg_catalog.{gives} LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'stolen'; END $$"
)
FUNCTIONS = {
    "hashtext(pg_catalog.text)": "int4",
    "to_regclass(pg_catalog.text)": "regclass",
    "pg_advisory_xact_lock(pg_catalog.int4)": "void",
    "current_setting(pg_catalog.text)": "text",
    "max(pg_catalog.int4)": "int4",
    "md5(pg_catalog.text)": "text",
    "format_type(pg_catalog.oid, pg_catalog.int4)": "text",
    "pg_get_triggerdef(pg_catalog.oid)": "text",
}


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


PASS = "LANGUAGE plpgsql SET search_path = pg_catalog AS $$ BEGIN RETURN {row}; END $$"
SWAPPED = {
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


@pytest.mark.parametrize("statements", SWAPPED.values(), ids=SWAPPED)
def test_what_only_looks_like_the_tables_is_refused(server, database, ledger, statements):
    server.execute(database, *statements)
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/100"))):
        with pytest.raises(LedgerError, match=r"were altered.*Nothing was spent"):
            use()


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
    "no document": "x",
    "null": "null",
    "a list": "[]",
    "a number": "7",
    "no amount": "{}",
    "an amount with an exponent": '{"epsilon": "1e400000000", "stages": []}',
    "an amount of many digits": '{"epsilon": "1/' + "3" * 5000 + '", "stages": []}',
    "an amount that is none": '{"epsilon": NaN, "stages": []}',
    "a negative amount": '{"epsilon": "-1", "stages": []}',
    "amounts in a list": '{"epsilon": ["1"], "stages": [["1"]]}',
    "a key twice": '{"epsilon": "1/2", "epsilon": "1/100", "stages": []}',
    "deep": "[" * 100_000 + "]" * 100_000,
    "a long number": "9" * 100_000,
    "very long": '{"epsilon": "1/2", "x": "' + "x" * 5_000_000 + '"}',
}


@pytest.mark.parametrize("kind", ["debit", "open", "odd"])
@pytest.mark.parametrize("body", LIES.values(), ids=LIES)
def test_rows_that_lie_end_in_words(server, database, ledger, body, kind):
    """The owner of a server can write anything, also with digests that hold."""
    import psycopg

    with psycopg.connect(server.address(database), autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        append(connection, kind, body, "cases")
    start = time.process_time()
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/100"))):
        with pytest.raises(LedgerError) as refused:
            use()
        assert len(str(refused.value)) < 1000
    assert time.process_time() - start < MOST_SECONDS


def test_what_a_server_says_is_kept_short(ledger):
    said = str(ledger.store._explain(None, "x" * 10**6 + "\nmore", False))
    assert len(said) < 1000
