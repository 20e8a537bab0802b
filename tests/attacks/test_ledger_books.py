"""Attacks on the ledger: edited books, amounts that are no amounts, look-alike names."""

import json
import os
import sqlite3
import threading
from fractions import Fraction

import pytest

from tallyveil.budget.entries import Debit, Link, Stage
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import ArgumentError, LedgerError


@pytest.fixture
def ledger(tmp_path):
    book = Ledger.create(tmp_path / "budget.db")
    book.open("cases", 1)
    book.debit("cases", spend("1/2"))
    return book


def spend(epsilon):
    return Debit(("n",), (Stage("draw", Fraction(epsilon)),))


def edit(ledger, *scripts):
    connection = sqlite3.connect(ledger.store.path, isolation_level=None)
    for script in scripts:
        connection.executescript(script)
    connection.close()


def write_link(ledger, kind, body, dataset="cases"):
    """Append what the program would not: any text, in a chain that holds."""

    def work(chain):
        length, previous = chain.head()
        text = body if isinstance(body, str) else json.dumps(body)
        chain.append(Link.after(length, previous, dataset, kind, text))

    ledger.store.write(work)


BAD_AMOUNTS = [
    float("nan"), float("inf"), -float("inf"), "nan", "inf", 0, -1, "-1/2", "0.0", True, None,
    "", "1e9999", "1/0", Fraction(1, 10**4400), Fraction(10**4400), Fraction(1, 10**500),
]  # fmt: skip


BAD_DELTAS = [float("nan"), float("inf"), -1, "x", Fraction(1, 10**4400)]


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [*((amount, 0) for amount in BAD_AMOUNTS), *(("1/4", delta) for delta in BAD_DELTAS)],
)
def test_an_amount_that_is_no_amount_is_refused_and_spends_nothing(ledger, epsilon, delta):
    for make in (
        lambda: Debit(("n",), (Stage("draw", epsilon),), delta),
        lambda: Debit(("n",), (Stage("draw", "1/4"), Stage("more", epsilon)), delta),
    ):
        with pytest.raises(ArgumentError):
            ledger.debit("cases", make())
    assert ledger.account("cases").spent_epsilon == Fraction(1, 2)
    assert ledger.verify()[0] == 2


def test_numbers_are_spent_as_they_are_written(ledger):
    ledger.debit("cases", Debit(("n",), (Stage("a", 0.1), Stage("b", "0.2"))))
    assert ledger.account("cases").spent_epsilon == Fraction(8, 10)


BAD_BODIES = {
    "stages do not add up": {"epsilon": "1/10", "delta": "0",
                             "stages": [{"name": "a", "epsilon": "1/5"}]},
    "no stages": {"epsilon": "1/10", "delta": "0", "stages": []},
    "a negative stage": {"epsilon": "1/10", "delta": "0",
                         "stages": [{"name": "a", "epsilon": "1/5"},
                                    {"name": "b", "epsilon": "-1/10"}]},
    "a negative amount": {"epsilon": "-1/4", "delta": "0",
                          "stages": [{"name": "a", "epsilon": "-1/4"}]},
    "nothing spent": {"epsilon": "0", "delta": "0", "stages": [{"name": "a", "epsilon": "0"}]},
    "not a number": {"epsilon": "nan", "delta": "0", "stages": [{"name": "a", "epsilon": "nan"}]},
    "NaN": '{"epsilon": NaN, "delta": "0", "stages": [{"name": "a", "epsilon": NaN}]}',
    "never ending": {"epsilon": "1e400000000", "delta": "0",
                     "stages": [{"name": "a", "epsilon": "1e400000000"}]},
    "not reduced": {"epsilon": "2/20", "delta": "0", "stages": [{"name": "a", "epsilon": "1/10"}]},
    "no amount": {"delta": "0", "stages": [{"name": "a", "epsilon": "1/10"}]},
    "a list": [1],
    "deep": "[" * 100_000,
}  # fmt: skip


BAD_ENTRIES = {
    **{name: ("debit", body, "Entry 3 .* is damaged") for name, body in BAD_BODIES.items()},
    "a second total": ("open", {"epsilon": "100", "delta": "0"}, "out of order"),
    "a refund": ("refund", {"epsilon": "1/2", "delta": "0"}, "damaged"),
    "an overdraft": ("debit", {"epsilon": "3", "delta": "0",
                               "stages": [{"name": "a", "epsilon": "3"}]}, "out of order|damaged"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "body", "words"), BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_a_bad_entry_is_noticed_by_the_next_debit(ledger, kind, body, words):
    write_link(ledger, kind, body)
    for use in (ledger.verify, lambda: ledger.debit("cases", spend("1/100"))):
        with pytest.raises(LedgerError, match=words):
            use()


FOREIGN = {
    "a trigger that undoes debits": "CREATE TRIGGER undo AFTER INSERT ON entries BEGIN "
    "UPDATE head SET length = length; END",
    "a view": "CREATE VIEW entries_shown AS SELECT * FROM entries",
    "another table": "CREATE TABLE notes (text)",
    "another index": "CREATE INDEX by_kind ON entries (kind)",
    "a guard removed": "DROP TRIGGER entries_stay",
    "a guard weakened": "DROP TRIGGER entries_keep; CREATE TRIGGER entries_keep BEFORE UPDATE ON "
    "entries WHEN 0 BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END",
    "a column added": "ALTER TABLE entries ADD COLUMN more TEXT",
    "a table replaced by a view": "DROP TRIGGER head_grows; ALTER TABLE head RENAME TO real_head; "
    "CREATE VIEW head AS SELECT * FROM real_head",
}


@pytest.mark.parametrize("script", FOREIGN.values(), ids=FOREIGN)
def test_altered_tables_are_refused_whoever_altered_them(ledger, script):
    edit(ledger, script)
    before = ledger.store.path.read_bytes()
    for use in (
        ledger.verify,
        lambda: ledger.debit("cases", spend("1/100")),
        lambda: Ledger.create(ledger.store.path),
    ):
        with pytest.raises(LedgerError, match=r"were altered.*Nothing was spent"):
            use()
    assert ledger.store.path.read_bytes() == before


def test_values_of_another_type_are_noticed(ledger):
    guards = "DROP TRIGGER entries_keep"
    edit(ledger, guards, "UPDATE entries SET body = CAST(body AS BLOB) WHERE sequence = 2")
    edit(
        ledger,
        "CREATE TRIGGER entries_keep BEFORE UPDATE ON entries\n"
        "    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END",
    )
    with pytest.raises(LedgerError, match="Entry 2 of the ledger was changed"):
        ledger.debit("cases", spend("1/100"))


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_a_new_ledger_is_its_owners_alone_and_the_umask_is_left_alone(tmp_path, mask):
    before = os.umask(mask)
    try:
        Ledger.create(tmp_path / "budget.db").open("cases", 1)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "budget.db").stat().st_mode & 0o777 == 0o600


def test_making_a_ledger_never_opens_up_what_other_threads_make(tmp_path):
    """A moment with another umask would show in the files of other threads."""
    before, stop, modes = os.umask(0o077), threading.Event(), set()

    def make_files():
        number = 0
        while not stop.is_set():
            number += 1
            path = tmp_path / f"other-{number}"
            path.touch()
            modes.add(path.stat().st_mode & 0o777)

    worker = threading.Thread(target=make_files)
    worker.start()
    try:
        for number in range(20):
            Ledger.create(tmp_path / f"{number}.db")
    finally:
        stop.set()
        worker.join()
        os.umask(before)
    assert modes == {0o600}


def test_a_link_to_nowhere_is_not_followed(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "elsewhere.db")
    with pytest.raises(LedgerError):
        Ledger.create(tmp_path / "link.db")
    assert not (tmp_path / "elsewhere.db").exists()


LOOK_ALIKES = [
    "Cases", "CASES", " cases", "cases ", "ca ses ", "ca  ses", "c\u0430ses", "\u0441ases",
    "cases\u200b", "ca\u200dses", "cases\ufeff", "cases\u00ad", "ca\u2060ses", "cases\u3164",
    "cases\ufe0f", "cases\u034f", "\uff43ases", "\U0001d41cases", "case\u017f", "cases\u00a0",
    "cases\t", "c\u03b1ses", "\u0441\u0430\u0455\u0435\u0455", "cases\u2800", "cases\x00",
]  # fmt: skip


@pytest.mark.parametrize("name", LOOK_ALIKES, ids=ascii)
def test_a_name_that_looks_like_another_is_no_second_budget(ledger, name):
    with pytest.raises(ArgumentError, match="dataset"):
        ledger.open(name, 1)
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.debit(name, spend("1/100"))
    assert [account.dataset for account in ledger.accounts()] == ["cases"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("tests 10", "tests lO"),
        ("mail", "maiI"),
        ("cas\u00e9", "case\u0301"),
        ("2026", "\u0662\u0660\u0662\u0666"),
        ("a-b", "a\u2013b"),
        ("Ω", "ω"),
    ],
)
def test_pairs_that_look_alike(tmp_path, first, second):
    book = Ledger.create(tmp_path / "budget.db")
    book.open(first, 1)
    with pytest.raises(ArgumentError, match="dataset"):
        book.open(second, 1)


def test_names_of_many_languages_are_welcome(tmp_path):
    book = Ledger.create(tmp_path / "budget.db")
    names = ["Fälle 2026", "cases_2", "случаи", "περιστατικά", "病例 2026 A", "데이터", "ケース数",
             "حالات", "मामले", "cases (weekly), 65+", "case"]  # fmt: skip
    for name in names:
        book.open(name, 1)
    assert [account.dataset for account in book.accounts()] == names


def test_the_right_name_is_suggested(ledger):
    with pytest.raises(LedgerError, match=r"'c\\u0430ses' is not in .*; 'cases' is, which looks"):
        ledger.account("c\u0430ses")
