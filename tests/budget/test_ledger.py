"""The budget book in every store: exact, append-only, safe with many processes."""

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.budget.entries import Debit, Link, Stage, shown_rational
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import ArgumentError, BudgetError, LedgerError
from tests.budget.conftest import ask_at_once, spend


def test_ten_tenths_fill_a_budget_of_one_exactly(ledger):
    for _ in range(10):
        ledger.debit("cases", spend("0.1"))
    assert ledger.account("cases").remaining_epsilon == 0
    with pytest.raises(BudgetError, match="has 0 of 1 left"):
        ledger.debit("cases", spend(Fraction(1, 10**12)))


def test_overspending_by_any_amount_is_refused_and_spends_nothing(ledger):
    with pytest.raises(BudgetError, match=r"costs epsilon .* has 1 of 1 left. Nothing was spent"):
        ledger.debit("cases", spend(1 + Fraction(1, 10**30)))
    with pytest.raises(BudgetError, match=r"costs delta 1e-05, .* has 1e-06 of 1e-06 left"):
        ledger.debit("cases", spend("0.1", delta="1/100000"))
    assert ledger.account("cases").spent_epsilon == 0
    assert ledger.history("cases") == []


def test_an_entry_says_everything(ledger):
    stages = (Stage("distribution", Fraction(1, 4)), Stage("counts", Fraction(1, 3)))
    debit = Debit(
        ("a", "b"), stages, mechanism=("m" * 64,), certificate=("c" * 64,),
        command="tallyveil privatize", release="r1",
    )  # fmt: skip
    entry = ledger.debit("cases", debit).to_dict()
    (kept,) = [entry.to_dict() for entry in ledger.history("cases")]
    assert kept == json.loads(json.dumps(entry))
    assert kept["epsilon_exact"] == "7/12"
    assert [stage["epsilon_exact"] for stage in kept["stages"]] == ["1/4", "1/3"]
    words = "time dataset columns mechanism certificate command version who release digest"
    for field in words.split():
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


def test_thirty_two_processes_asking_for_twice_the_budget(ledger, place):
    said = ask_at_once(place, spend("1/16"), processes=32)
    assert said.count("spent") == 16
    assert all("0 of 1 left" in text for text in said if text != "spent")
    assert ledger.account("cases").remaining_epsilon == 0
    assert ledger.verify()[0] == 17


def test_a_spender_that_fails_leaves_nothing_behind(ledger, place):
    def work(chain):
        chain.append(Link.after(*chain.head(), "cases", "debit", '{"who": "' + chain.who() + '"}'))
        raise KeyboardInterrupt

    before = ledger.verify()
    with pytest.raises(KeyboardInterrupt):
        ledger.store.write(work)
    assert ledger.verify() == before
    ledger.debit("cases", spend("1/4"))
    assert Ledger.create(place).verify() == ledger.verify()  # making it again changes nothing


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


def test_a_wish_that_is_repeated_from_many_processes_is_paid_for_once(place, ledger):
    said = sorted(ask_at_once(place, spend("0.01", request="one wish"), processes=8))
    assert said.count("spent") == 1
    assert said[0].startswith("This request was debited before, as entry 2 of the ledger.")
    assert ledger.account("cases").spent_epsilon == Fraction(1, 100)
    ledger.debit("cases", spend("0.01", request="another wish"))
    ledger.debit("cases", spend("0.01"))
    ledger.debit("cases", spend("0.01"))
    bodies = [entry.body for entry in ledger.history("cases")]
    assert [body.get("request") for body in bodies] == ["one wish", "another wish", None, None]
