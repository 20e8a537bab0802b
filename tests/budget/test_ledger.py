"""The budget book: exact, append-only, tamper-evident, safe with many processes."""

import json
import multiprocessing
import sqlite3
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.budget import sqlite
from tallyveil.budget.entries import Debit, Stage, shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import ArgumentError, BudgetError, LedgerError


def spend(epsilon, delta=0, columns=("n",)):
    return Debit(columns, (Stage("draw", Fraction(epsilon)),), Fraction(delta))


@pytest.fixture
def ledger(tmp_path):
    book = Ledger.create(tmp_path / "budget.db")
    book.open("cases", 1, "1e-6")
    return book


def test_ten_tenths_fill_a_budget_of_one_exactly(ledger):
    for _ in range(10):
        ledger.debit("cases", spend("0.1"))
    assert ledger.account("cases").remaining_epsilon == 0
    with pytest.raises(BudgetError, match="0 remains of 1"):
        ledger.debit("cases", spend(Fraction(1, 10**12)))


def test_overspending_by_any_amount_is_refused_and_spends_nothing(ledger):
    with pytest.raises(BudgetError, match=r"costs epsilon .*1 remains of 1.*Nothing was spent"):
        ledger.debit("cases", spend(1 + Fraction(1, 10**30)))
    with pytest.raises(BudgetError, match=r"costs delta 1e-05, and 1e-06 remains"):
        ledger.debit("cases", spend("0.1", delta="1/100000"))
    assert ledger.account("cases").spent_epsilon == 0
    assert ledger.history("cases") == []


def test_an_entry_says_everything(ledger):
    stages = (Stage("distribution", Fraction(1, 4)), Stage("counts", Fraction(1, 3)))
    debit = Debit(
        ("a", "b"),
        stages,
        mechanism=("m" * 64,),
        certificate=("c" * 64,),
        command="tallyveil privatize",
        release="r1",
    )
    entry = ledger.debit("cases", debit).to_dict()
    (kept,) = [entry.to_dict() for entry in ledger.history("cases")]
    assert kept == json.loads(json.dumps(entry))
    assert kept["epsilon_exact"] == "7/12"
    assert [stage["epsilon_exact"] for stage in kept["stages"]] == ["1/4", "1/3"]
    for field in (
        "time",
        "dataset",
        "columns",
        "mechanism",
        "certificate",
        "command",
        "version",
        "who",
        "release",
        "digest",
    ):
        assert kept[field], field


def test_datasets_are_separate(ledger):
    ledger.open("deaths", "1/2")
    ledger.debit("deaths", spend("1/2"))
    assert [account.dataset for account in ledger.accounts()] == ["cases", "deaths"]
    assert ledger.account("cases").spent_epsilon == 0
    assert len(ledger.history()) == 1


def test_a_total_is_set_once_and_a_closed_dataset_stays_closed(ledger):
    with pytest.raises(LedgerError, match="set once"):
        ledger.open("cases", 5)
    assert ledger.close("cases").closed
    with pytest.raises(BudgetError, match="closed"):
        ledger.debit("cases", spend("0.1"))
    with pytest.raises(LedgerError, match="closed already"):
        ledger.close("cases")
    assert ledger.verify()[0] == 2


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
    with pytest.raises(LedgerError, match="not known"):
        Ledger("nosuch://somewhere")
    with pytest.raises(LedgerError, match="folder"):
        Ledger.create(tmp_path / "missing" / "budget.db")


def test_an_unknown_dataset_and_bad_amounts_are_refused(ledger):
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.debit("other", spend("0.1"))
    with pytest.raises(ArgumentError, match="stages"):
        ledger.debit("cases", Debit(("n",), ()))
    with pytest.raises(ArgumentError, match="stages"):
        ledger.debit("cases", spend("-0.1"))
    with pytest.raises(ArgumentError, match="dataset"):
        ledger.open("  ", 1)
    with pytest.raises(ArgumentError, match="epsilon"):
        ledger.open("zero", 0)


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
        ledger.verify,
        ledger.accounts,
        ledger.history,
        lambda: ledger.account("cases"),
        lambda: ledger.debit("cases", spend("1/100")),
        lambda: ledger.open("another", 1),
        lambda: ledger.close("cases"),
    )
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


def _ask(path, start, answers):
    start.wait()
    try:
        Ledger(path).debit("cases", spend("1/8"))
        answers.put("spent")
    except BudgetError as refusal:
        answers.put(str(refusal))


def test_sixteen_processes_asking_for_twice_the_budget(ledger):
    context = multiprocessing.get_context("fork")
    start, answers = context.Event(), context.Queue()
    workers = [
        context.Process(target=_ask, args=(ledger.store.path, start, answers)) for _ in range(16)
    ]
    for worker in workers:
        worker.start()
    start.set()
    said = [answers.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert said.count("spent") == 8
    assert all("0 remains of 1" in text for text in said if text != "spent")
    assert ledger.account("cases").remaining_epsilon == 0
    assert ledger.verify()[0] == 9


def test_a_ledger_of_the_first_format_is_upgraded_with_every_entry(tmp_path):
    book = Ledger.create(tmp_path / "new.db")
    book.open("cases", 1)
    book.debit("cases", spend("1/4"))
    rows = sqlite3.connect(book.store.path).execute("SELECT * FROM entries").fetchall()
    old = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    old.executescript(sqlite.MIGRATIONS[0])
    old.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", rows)
    old.execute("INSERT INTO head VALUES (1, ?, ?)", (rows[-1][0], rows[-1][-1]))
    old.execute(f"PRAGMA application_id = {sqlite.APPLICATION_ID}")
    old.execute("PRAGMA user_version = 1")
    old.close()
    ledger = Ledger(tmp_path / "old.db")
    with pytest.raises(LedgerError, match=r"format 1.*tallyveil ledger upgrade.*Nothing was spent"):
        ledger.debit("cases", spend("1/4"))
    assert ledger.upgrade() == (1, 2)
    assert ledger.upgrade() == (2, 2)
    assert ledger.verify() == book.verify()
    ledger.debit("cases", spend("1/4"))
    assert ledger.account("cases").remaining_epsilon == Fraction(1, 2)


def test_a_format_of_the_future_is_left_alone(ledger):
    with sqlite3.connect(ledger.store.path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for use in (ledger.verify, ledger.upgrade, lambda: ledger.debit("cases", spend("1/4"))):
        with pytest.raises(LedgerError, match=r"format 99.*Nothing was spent"):
            use()


@settings(max_examples=20, deadline=None)
@given(st.lists(st.fractions(min_value="1/1000", max_value="1/2"), min_size=1, max_size=8))
def test_never_overspent_and_never_refused_without_reason(tmp_path_factory, amounts):
    book = Ledger.create(tmp_path_factory.mktemp("book") / "budget.db")
    book.open("d", 1)
    spent = Fraction(0)
    for amount in amounts:
        if spent + amount <= 1:
            book.debit("d", spend(amount))
            spent += amount
        else:
            with pytest.raises(BudgetError):
                book.debit("d", spend(amount))
    assert book.account("d").spent_epsilon == spent <= 1
    book.verify()


@given(st.fractions())
def test_amounts_are_shown_exactly(value):
    assert Fraction(shown_rational(value)) == value
