"""Accounts that add up by exact composition or by zCDP never grant more than they hold."""

from __future__ import annotations

from fractions import Fraction
from time import process_time

import pytest

from tallyveil.budget.accounting import compose, concentrated_cost, concentrated_delta
from tallyveil.budget.entries import Debit, Stage
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import ArgumentError, BudgetError, LedgerError

MILLIONTH = Fraction(1, 10**6)


def spend(*epsilons, delta=0):
    stages = tuple(Stage(f"stage {at}", Fraction(e)) for at, e in enumerate(epsilons))
    return Debit(("n",), stages, Fraction(delta))


@pytest.fixture
def book(tmp_path):
    return Ledger.create(tmp_path / "budget.db")


def test_a_hundred_stages_take_the_hundred_places_of_a_plan(book):
    book.open("cases", 1, "1e-6", accounting="exact")
    book.plan("cases", ["0.024"] * 100)
    for _ in range(10):
        book.debit("cases", spend(*["0.024"] * 10))
    account = book.account("cases")
    assert account.remaining_epsilon == 0
    assert account.spent_epsilon <= 1 < Fraction("2.4")
    assert account.spent_delta <= MILLIONTH
    with pytest.raises(BudgetError, match=r"0 free places .*Nothing was spent"):
        book.debit("cases", spend("0.000001"))
    assert book.verify()[0] == 12


def test_a_stage_takes_the_smallest_place_that_holds_it(book):
    book.open("cases", 2, "1e-6", accounting="exact")
    book.plan("cases", ["0.1", "0.5", "0.3"])
    book.debit("cases", spend("0.2"))
    assert book.account("cases").remaining_epsilon == Fraction(1, 2)
    with pytest.raises(BudgetError, match=r"2 free places of up to epsilon 0\.5"):
        book.debit("cases", spend("0.51"))
    book.debit("cases", spend("0.1", "0.5"))
    assert book.account("cases").remaining_epsilon == 0


def test_a_plan_is_made_once_before_the_first_debit_and_keeps_the_total(book):
    book.open("cases", 1, "1e-6", accounting="exact")
    with pytest.raises(BudgetError, match="needs a plan"):
        book.debit("cases", spend("0.01"))
    with pytest.raises(ArgumentError, match=r"need a delta of .* keep epsilon 1\.2691 "):
        book.plan("cases", ["0.03"] * 100)
    with pytest.raises(ArgumentError, match="at least one"):
        book.plan("cases", [])
    book.plan("cases", ["0.5", "0.5"])
    with pytest.raises(LedgerError, match="made once"):
        book.plan("cases", ["0.01"])
    book.open("other", 1)
    with pytest.raises(LedgerError, match="pure accounting"):
        book.plan("other", ["0.5"])


def test_deltas_of_stages_are_added_to_that_of_the_plan(book):
    book.open("cases", 1, "1e-6", accounting="exact")
    book.plan("cases", ["0.5", "0.5"])  # needs no delta of its own
    book.debit("cases", spend("0.5", delta=MILLIONTH))
    assert book.account("cases").spent_epsilon == Fraction("0.5")  # no delta is left to lower it
    with pytest.raises(BudgetError, match="costs delta"):
        book.debit("cases", spend("0.5", delta=MILLIONTH))


def test_zcdp_adds_rho_and_stops_where_the_promise_would_break(book):
    book.open("cases", 1, "1e-6", accounting="zcdp")
    granted = [Fraction("0.02")] * 121
    for epsilon in granted:
        book.debit("cases", spend(epsilon))
    with pytest.raises(BudgetError, match=r"costs rho .* remains of 0.0243"):
        book.debit("cases", spend("0.02"))
    rho = sum(map(concentrated_cost, granted))
    assert concentrated_delta(rho, Fraction(1)) <= MILLIONTH
    assert concentrated_delta(rho + concentrated_cost(Fraction("0.02")), Fraction(1)) > MILLIONTH
    assert sum(granted) > 2  # more than twice what addition grants
    assert compose(granted).delta(Fraction(1)) <= MILLIONTH  # exact composition agrees
    account = book.account("cases")
    assert account.spent_epsilon <= 1
    book.debit("cases", spend(account.remaining_epsilon))
    with pytest.raises(BudgetError, match="delta of 0"):
        book.debit("cases", spend("0.0001", delta=MILLIONTH))


def test_a_zcdp_account_tells_no_more_than_the_sum_of_what_was_spent(book):
    """Both figures hold at the account's delta: the smaller is told, first the sum, then zCDP's."""
    book.open("cases", 3, "1e-6", accounting="zcdp")
    told = []
    for _ in range(60):
        book.debit("cases", spend("0.02"))
        told.append(book.account("cases").spent_epsilon)
    assert told[0] == Fraction("0.02")
    sums = [Fraction("0.02") * (at + 1) for at in range(60)]
    assert all(one <= added for one, added in zip(told, sums, strict=True))
    rho = 60 * concentrated_cost(Fraction("0.02"))
    assert concentrated_delta(rho, told[-1]) <= MILLIONTH
    assert told[-1] < sums[-1]


@pytest.mark.parametrize("total", ["1/10", 1, 700])
@pytest.mark.parametrize("spent", ["1e-12", "1e-6", "1e-3"])
def test_a_small_debit_of_a_zcdp_account_is_told_at_once(book, total, spent):
    """What it spent was worked out from a power of e with billions of terms."""
    book.open("cases", total, "1e-6", accounting="zcdp")
    book.debit("cases", Debit(("n",), (Stage("draw", Fraction(spent)),)))
    start = process_time()
    account = book.account("cases")
    told = account.spent_epsilon
    assert process_time() - start < 5
    rho = concentrated_cost(Fraction(spent))
    assert told == Fraction(spent) or concentrated_delta(rho, told) <= Fraction(1, 10**6)
    assert told <= min(account.epsilon, Fraction(spent))
    assert account.remaining_epsilon <= account.epsilon


@pytest.mark.parametrize("accounting", ["exact", "zcdp"])
def test_other_accountings_need_a_delta(book, accounting):
    with pytest.raises(ArgumentError, match="delta"):
        book.open("cases", 1, accounting=accounting)
    with pytest.raises(ArgumentError, match="pure, exact, zcdp"):
        book.open("cases", 1, "1e-6", accounting="renyi")
