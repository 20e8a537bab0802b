"""Composition against brute force and mathematics, and accounts that never grant too much."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction
from time import process_time

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallyveil.budget.accounting import (
    compose,
    concentrated_cost,
    concentrated_delta,
    share_epsilon,
)
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import ArgumentError, BudgetError, LedgerError
from tests.budget.conftest import spend

MILLIONTH = Fraction(1, 10**6)


def enumerate_delta(epsilons: list[Fraction], epsilon: Fraction) -> mpmath.mpf:
    """The hockey-stick divergence of randomized responses, summed over all sign patterns."""
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(epsilons)):
            loss = sum(sign * e for sign, e in zip(signs, epsilons, strict=True))
            chance = mpmath.mpf(1)
            for sign, e in zip(signs, epsilons, strict=True):
                chance /= 1 + mpmath.exp(-sign * mpmath.mpf(e.numerator) / e.denominator)
            if loss > epsilon:
                gap = epsilon - loss
                total += chance * (1 - mpmath.exp(mpmath.mpf(gap.numerator) / gap.denominator))
        return total


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.fractions(Fraction(1, 50), Fraction(3), max_denominator=60), min_size=1, max_size=6
    ),
    st.fractions(0, 1, max_denominator=100),
)
def test_never_below_and_hardly_above_the_truth(epsilons, share) -> None:
    together, at = compose(epsilons), share * sum(epsilons)
    truth, found = enumerate_delta(epsilons, at), together.delta(at)
    with mpmath.workdps(60):
        excess = mpmath.mpf(found.numerator) / found.denominator - truth
    assert excess >= 0
    on_grid = all(2 * epsilon % together.step == 0 for epsilon in epsilons)
    # a loss between two places of the grid costs at most step^2 / 8 of its probability
    allowed = 1e-40 if on_grid else len(epsilons) * float(together.step) ** 2 / 8 + 1e-40
    assert excess <= allowed


def test_epsilon_and_delta_of_many_columns_belong_together() -> None:
    together = compose([Fraction(1, 10)] * 100)
    epsilon = together.epsilon(MILLIONTH)
    assert together.delta(epsilon) <= MILLIONTH < together.delta(epsilon - MILLIONTH / 1000)
    assert together.epsilon(Fraction(0)) == 10  # pure privacy: plain addition
    assert compose([]).delta(Fraction(0)) == 0
    each = share_epsilon(100, Fraction(1), MILLIONTH)
    assert each >= Fraction(23, 1000)  # 2.3 times the hundredth that addition gives
    assert compose([each] * 100).delta(Fraction(1)) <= MILLIONTH
    assert compose([each + MILLIONTH] * 100).delta(Fraction(1)) > MILLIONTH
    assert share_epsilon(7, Fraction(1), Fraction(0)) == Fraction(1, 7)


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "20", "300"])
def test_the_zcdp_cost_is_that_of_randomized_response(epsilon) -> None:
    exact = Fraction(epsilon)
    with mpmath.workdps(400):
        e = mpmath.mpf(epsilon)
        cost = concentrated_cost(exact)
        bound = mpmath.mpf(cost.numerator) / cost.denominator
        assert 0 <= bound - e * mpmath.tanh(e / 2) < mpmath.mpf(2) ** -150
        for order in (1.0001, 1.5, 2, 7, 80):
            x = mpmath.log(mpmath.cosh((order - 0.5) * e) / mpmath.cosh(e / 2)) / (order - 1)
            assert x <= order * bound


@pytest.mark.parametrize(
    ("rho", "epsilon"), [("0.02", "1"), ("0.5", "4"), ("2", "20"), ("0.0001", "0.1")]
)
def test_zcdp_delta_is_a_bound_close_to_the_best_order(rho, epsilon) -> None:
    def at(order):
        grown = mpmath.exp((order - 1) * (order * mpmath.mpf(rho) - mpmath.mpf(epsilon)))
        return grown * (1 - 1 / order) ** order / (order - 1)

    best = min(at(1 + mpmath.mpf(1.02) ** k) for k in range(-300, 500))
    found = float(concentrated_delta(Fraction(rho), Fraction(epsilon)))
    assert 0.999 * float(best) <= found <= min(1, 1.01 * float(best))


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="greater than 0"):
        compose([Fraction(1), Fraction(0)])
    for times in (0, 10_001, 10**5, True, 2.5, "3"):
        with pytest.raises(ArgumentError, match="whole number from 1 to 10,000"):
            share_epsilon(times, Fraction(1), MILLIONTH)


@pytest.mark.parametrize("kind", [float, str, Decimal, Fraction])
def test_numbers_of_every_kind_mean_what_they_print_as(kind) -> None:
    tenth, millionth = kind("0.1"), kind("0.000001")
    exact = compose([Fraction(1, 10)] * 3 + [Fraction(2)])
    found = compose([tenth] * 3 + [2])
    assert found == exact
    assert found.delta(tenth) == exact.delta(Fraction(1, 10))
    assert found.epsilon(millionth) == exact.epsilon(MILLIONTH)
    assert share_epsilon(20, tenth, millionth) == share_epsilon(20, Fraction(1, 10), MILLIONTH)


@pytest.mark.parametrize("wrong", [None, "x", float("nan"), object(), [1]])
def test_other_things_are_refused_in_words(wrong) -> None:
    loss = compose([1])
    calls = [
        lambda: compose(wrong if wrong != [1] else [[1]]), lambda: compose([wrong]),
        lambda: loss.delta(wrong), lambda: loss.epsilon(wrong),
        lambda: share_epsilon(3, wrong, MILLIONTH), lambda: share_epsilon(3, 1, wrong),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ArgumentError):
            call()


def test_many_different_epsilons_are_composed_to_five_digits() -> None:
    """On a grid too fine to be kept; the reference has every loss in its place, in doubles."""
    pick, parts = random.Random(7), 1024
    places = [pick.randint(5, 200) for _ in range(80)]
    chances = np.zeros(2 * sum(places) + 1)
    chances[sum(places)] = 1.0
    for place in places:
        up = 1 / (1 + math.exp(-place / parts))
        chances = up * np.roll(chances, place) + (1 - up) * np.roll(chances, -place)
    losses = np.arange(-sum(places), sum(places) + 1) / parts
    found = compose([Fraction(place, parts) for place in places]).epsilon(MILLIONTH)

    def delta(epsilon: float) -> float:
        gaps = np.minimum(0, epsilon - losses)
        return float(chances @ -np.expm1(gaps))

    assert delta(float(found)) <= 1e-6 < delta(float(found) * (1 - 1e-5))


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
    with pytest.raises(BudgetError, match=r"costs rho .* of 0.0243.* left"):
        book.debit("cases", spend("0.02"))
    rho = sum(map(concentrated_cost, granted))
    assert concentrated_delta(rho, Fraction(1)) <= MILLIONTH
    assert concentrated_delta(rho + concentrated_cost(Fraction("0.02")), Fraction(1)) > MILLIONTH
    assert sum(granted) > 2  # more than twice what addition grants
    assert compose(granted).delta(Fraction(1)) <= MILLIONTH  # exact composition agrees
    account = book.account("cases")
    assert account.spent_epsilon <= 1
    book.debit("cases", spend(account.remaining_epsilon))
    with pytest.raises(BudgetError, match="stages of delta 0"):
        book.debit("cases", spend("0.0001", delta=MILLIONTH))


def test_a_zcdp_account_tells_no_more_than_the_sum_of_what_was_spent(book):
    """Both figures hold at the account's delta: the smaller is told, first the sum, then zCDP's."""
    book.open("cases", 3, "1e-6", accounting="zcdp")
    told = []
    for _ in range(40):
        book.debit("cases", spend("0.06"))
        told.append(book.account("cases").spent_epsilon)
    assert told[0] == Fraction("0.06")
    sums = [Fraction("0.06") * (at + 1) for at in range(40)]
    assert all(one <= added for one, added in zip(told, sums, strict=True))
    rho = 40 * concentrated_cost(Fraction("0.06"))
    assert concentrated_delta(rho, told[-1]) <= MILLIONTH
    assert told[-1] < sums[-1]


@pytest.mark.parametrize("total", ["1/10", 1, 700])
@pytest.mark.parametrize("spent", ["1e-12", "1e-6", "1e-3"])
def test_a_small_debit_of_a_zcdp_account_is_told_at_once(book, total, spent):
    """What it spent was worked out from a power of e with billions of terms."""
    book.open("cases", total, "1e-6", accounting="zcdp")
    book.debit("cases", spend(spent))
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
