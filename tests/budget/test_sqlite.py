"""A ledger in a SQLite file: what is no ledger, tampering, formats."""

import sqlite3

import pytest

from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tests.budget.conftest import spend


@pytest.fixture
def ledger(tmp_path):
    book = Ledger.create(tmp_path / "budget.db")
    book.open("cases", 1, "1e-6")
    return book


def test_what_is_not_a_ledger_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="no ledger at"):
        Ledger(tmp_path / "none.db").account("x")
    text = tmp_path / "text.db"
    text.write_text("county,cases\n" * 400)
    before = text.read_bytes()
    for use in (lambda: Ledger(text).account("x"), lambda: Ledger.create(text)):
        with pytest.raises(LedgerError, match="not a Tallyveil ledger"):
            use()
    assert text.read_bytes() == before
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    with pytest.raises(LedgerError, match="not a Tallyveil ledger"):
        Ledger.create(other)
    with pytest.raises(LedgerError, match="an address of another kind"):
        Ledger("nosuch://somewhere")
    with pytest.raises(LedgerError, match="folder"):
        Ledger.create(tmp_path / "missing" / "budget.db")


def tamper(ledger, *statements):
    """What somebody does who may write the file: drop the guards, edit, put the guards back."""
    connection = sqlite3.connect(ledger.store.path, isolation_level=None)
    guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    guards = guards.fetchall()
    for name, _ in guards:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        assert connection.execute(statement).rowcount == 1
    for _, script in guards:
        connection.execute(script)
    connection.close()


TAMPERING = {
    "smaller amount": "UPDATE entries SET body = replace(body, '1/5', '1/50') WHERE sequence = 3",
    "bigger total": "UPDATE entries SET body = replace(body, '\"1\"', '\"9\"') WHERE sequence = 1",
    "other dataset": "UPDATE entries SET dataset = 'x' WHERE sequence = 3",
    "first removed": "DELETE FROM entries WHERE sequence = 2",
    "last removed": "DELETE FROM entries WHERE sequence = 4",
    "digest": "UPDATE entries SET digest = '00' WHERE sequence = 4",
    "head": "UPDATE head SET length = 3",
    "not json": "UPDATE entries SET body = 'x' WHERE sequence = 4",
}


@pytest.mark.parametrize("statement", TAMPERING.values(), ids=TAMPERING)
def test_tampering_is_found(ledger, statement):
    for _ in range(3):
        ledger.debit("cases", spend("1/5"))
    assert ledger.verify()[0] == 4
    tamper(ledger, statement)
    uses = (
        ledger.verify, ledger.accounts, ledger.history, lambda: ledger.account("cases"),
        lambda: ledger.debit("cases", spend("1/100")), lambda: ledger.open("another", 1),
        lambda: ledger.close("cases"),
    )  # fmt: skip
    for use in uses:
        with pytest.raises(LedgerError, match="ledger"):
            use()


def test_the_database_itself_refuses_changes(ledger):
    connection = sqlite3.connect(ledger.store.path)
    for statement in (
        "DELETE FROM entries",
        "UPDATE entries SET body = ''",
        "DELETE FROM head",
        "UPDATE head SET length = 0",
    ):
        with pytest.raises(sqlite3.IntegrityError, match=r"never|names its last entry"):
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("version", [0, 2, 99])
def test_another_format_is_left_alone(ledger, version):
    with sqlite3.connect(ledger.store.path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/4"))):
        with pytest.raises(LedgerError, match=rf"format {version};.*Nothing was spent"):
            use()
