"""The unit is what the receipt says: persons, events, rows of one person, disjoint columns."""

import itertools
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.check.ledger import check_ledger
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.release.methods.base import Plan
from tallyveil.release.release import read_receipt
from tallyveil.release.unit import PrivacyUnit, charge_columns
from tallyveil.tables.microdata import bound_rows, keep_apart
from tests.asking import privatize
from tests.attacks.forging import checks, passes, read, write

FRAME = pd.DataFrame(
    {
        "county": [f"c{i}" for i in range(60)],
        "cases_m": [i % 5 for i in range(60)],
        "cases_f": [i % 3 for i in range(60)],
        "deaths": [i % 2 for i in range(60)],
    }
)
OPTIONS = {"count": ["cases_m", "cases_f", "deaths"], "upper": 9, "keep": "county"}
OPTIONS["epsilon"] = [1, "1/2", "1/4"]


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (PrivacyUnit(), "one person, counted at most once in each count column"),
        (PrivacyUnit(contributions=3), "one person, counted at most 3 times in each count column"),
        (
            PrivacyUnit(of_rows=True),
            "one person, with at most one record in the confidential table",
        ),
        (
            PrivacyUnit(contributions=4, of_rows=True),
            "one person, with at most 4 records in the confidential table",
        ),
        (PrivacyUnit("event"), "one single event, such as a visit or a test, and not a person"),
    ],
)
def test_the_words_say_which_unit(unit, words):
    assert unit.name == words
    assert ("event" in unit.change) == (unit.kind == "event")
    assert all("cell" not in text for text in (unit.name, unit.moves))


def test_events_say_so_everywhere(tmp_path):
    keys = {"keep": "county", "upper": 9, "epsilon": 1, "kind": "event"}
    rel = privatize(FRAME, "deaths", **keys, out=tmp_path / "out")
    assert "Including or excluding any one event changes" in rel.receipt.promise
    page = rel.files["METHODOLOGY.html"].decode()
    assert "guarantee is for one single event" in page
    assert checks(tmp_path / "out")


def test_disjoint_columns_are_charged_once(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    account = {"ledger": book, "dataset": "cases"}
    account |= {"disjoint": ["cases_f", "cases_m"], "out": tmp_path / "out"}
    rel = privatize(FRAME, **OPTIONS, **account)
    assert rel.receipt.epsilon == 1 + Fraction(1, 4)
    assert rel.receipt.disjoint == (("cases_m", "cases_f"),)
    assert book.account("cases").spent_epsilon == Fraction(5, 4)
    assert "charged once" in rel.files["METHODOLOGY.html"].decode()
    assert "parallel over cases_m, cases_f" in rel.receipt.composition
    assert checks(tmp_path / "out")
    assert read_receipt(tmp_path / "out") == rel.receipt
    both = privatize(FRAME, **OPTIONS, disjoint=["cases_m,cases_f"], neighbours="replace_one")
    assert both.receipt.epsilon == 2 * (1 + Fraction(1, 4))
    three = privatize(FRAME, **OPTIONS, disjoint=[OPTIONS["count"]])
    assert three.receipt.epsilon == 1
    assert privatize(FRAME, **OPTIONS).receipt.epsilon == Fraction(7, 4)


def test_what_a_moving_person_costs_is_the_worst_of_all_moves():
    """Every way to spread the moves of one unit over the columns, against the charge."""
    costs = {"a": Fraction(1), "b": Fraction(2), "c": Fraction(1, 3)}
    stages = [(name, f"{name}: counts", cost) for name, cost in costs.items()]
    for often, neighbours in itertools.product((1, 2, 3), ("add_remove", "replace_one")):
        moves = PrivacyUnit("person", neighbours, often).multiplier
        worst = max(
            sum(costs[name] for name in chosen) for chosen in itertools.product(costs, repeat=moves)
        )
        scaled = [(column, name, cost * moves) for column, name, cost in stages]
        (charged,) = charge_columns(scaled, [tuple(costs)])
        assert charged[1] == worst


@pytest.mark.parametrize(
    "groups",
    [["cases_m"], ["cases_m,nothing"], [["cases_m", "cases_f"], ["cases_f", "deaths"]], ["county"]],
)
def test_groups_that_are_none_are_refused(groups):
    with pytest.raises(tv.ArgumentError, match="disjoint"):
        privatize(FRAME, **OPTIONS, disjoint=groups)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "household"},
        {"bound": "enforced"},
        {"contributions": True},
        {"disjoint": [["cases_m"]]},
        {"disjoint": [["cases_f", "cases_m"]]},
        {"disjoint": [["cases_m", "cases_f"]]},
        {"disjoint": [["cases_m", "x"]]},
        {"disjoint": [["cases_m", "cases_f"], ["cases_f", "deaths"]]},
        {"disjoint": [[]]},
    ],
)
def test_a_receipt_with_a_unit_that_cannot_be_does_not_check(tmp_path, change):
    folder = privatize(FRAME, **OPTIONS).save(tmp_path / "out")
    write(folder, read(folder) | change)
    assert not passes(folder)


def test_the_words_know_how_many_columns_a_person_is_in():
    frame = pd.DataFrame({"area": ["a", "b"], "m": [1, 2], "f": [0, 3]})
    ask = {"count": ["m", "f"], "keep": "area", "upper": 5, "epsilon": 1}
    two = privatize(frame, **ask).receipt
    assert two.unit_moves == "adding or removing one person changes one count by one in each column"
    apart = privatize(frame, **ask, disjoint=["m", "f"]).receipt
    assert apart.unit_moves == "adding or removing one person changes one count by one"
    assert apart.unit_name.endswith("and in only one of m, f")
    assert any("in only one of m, f" in limit for limit in apart.unit_limits)
    one = privatize(frame, **{**ask, "count": "m"}).receipt
    assert one.unit_moves == one.unit.moves


COUNTS = [(i * i) % 23 for i in range(150)]
DELTA = Fraction(1, 10**6)


def publish(tmp_path, **options):
    folder = tmp_path / "release"
    keys = {"upper": 30, "epsilon": "0.02", "contributions": 50, "delta": "0.000001"}
    return folder, privatize(COUNTS, out=folder, spread="distinct_rows", **{**keys, **options})


# -- the guarantee -------------------------------------------------------------------------------


def needed_delta(pairs, epsilon):
    """The least delta at which independent draws from pairs of distributions have `epsilon`.

    By going through all outcomes: sum over them of max(0, p - e^epsilon q).
    """
    total = 0.0
    for outcome in itertools.product(*(range(len(p)) for p, _ in pairs)):
        p = np.prod([pair[0][at] for pair, at in zip(pairs, outcome, strict=True)])
        q = np.prod([pair[1][at] for pair, at in zip(pairs, outcome, strict=True)])
        total += max(0.0, p - np.exp(epsilon) * q)
    return total


@pytest.mark.parametrize("epsilon", ["1/4", "1", "2"])
@pytest.mark.parametrize("moves", [2, 3, 4])
def test_every_way_to_move_different_rows_keeps_what_is_charged(epsilon, moves):
    """Every outcome of every pair of tables, on 0..2: moves up, down, mixed, and fewer."""
    delta = Fraction(1, 20)
    charged = PrivacyUnit(contributions=moves, delta=delta).charge(Fraction(epsilon))
    assert charged <= moves * Fraction(epsilon)
    matrix = tv.certify_geometric(tv.Query.count(2), epsilon).mechanism.matrix
    steps = [(0, 1), (1, 0), (1, 2), (2, 1)]
    ways = list(itertools.combinations_with_replacement(steps, moves))
    most = max(
        needed_delta([(matrix[a], matrix[b]) for a, b in way[:used]], float(charged))
        for way in ways
        for used in range(1, moves + 1)
    )
    assert most <= float(delta) * (1 + 1e-9)


def test_the_charge_is_tight_for_noise_without_bounds():
    """Geometric noise loses exactly plus or minus epsilon: less could not be charged."""
    epsilon, moves, delta = Fraction(1, 2), 5, Fraction(1, 50)
    charged = float(PrivacyUnit(contributions=moves, delta=delta).charge(epsilon))
    keep = 1 / (1 + np.exp(-float(epsilon)))
    coin = (np.array([keep, 1 - keep]), np.array([1 - keep, keep]))
    assert charged < moves * epsilon
    assert needed_delta([coin] * moves, charged) == pytest.approx(float(delta), rel=1e-6)
    assert needed_delta([coin] * moves, charged - 1e-4) > float(delta)


def test_the_charge_agrees_with_dp_accounting():
    from dp_accounting.pld import privacy_loss_distribution as pld

    for moves, epsilon in ((16, "0.05"), (50, "0.02"), (100, "0.1")):
        ours = PrivacyUnit(contributions=moves, delta=DELTA).charge(Fraction(epsilon))
        one = pld.from_discrete_laplace_mechanism(
            float(epsilon), sensitivity=1, value_discretization_interval=1e-4
        )
        theirs = one.self_compose(moves).get_epsilon_for_delta(1e-6)
        assert float(ours) == pytest.approx(theirs, rel=1e-6)
        assert float(ours) >= theirs * (1 - 1e-9)


# -- the release ---------------------------------------------------------------------------------


COMPOSED = ["changes at most 50 counts, each by one", "50 draws composed"]
NOTHING_GAINED = [
    "would gain less than a hundredth. Every epsilon is multiplied by 5, and delta is",
    "changes at most 5 counts, each by one",
]


@pytest.mark.parametrize("gains", [True, False])
def test_it_is_charged_stated_and_checked_and_not_spent_where_it_gains_too_little(tmp_path, gains):
    ledger = tv.Ledger.create(tmp_path / "ledger.db")
    ledger.open("data", "5", "0.00001" if gains else 0)  # of 0 a delta would be refused
    changes = {} if gains else {"epsilon": 1, "contributions": 5}
    folder, release = publish(tmp_path, **changes, ledger=ledger, dataset="data")
    receipt, account = release.receipt, ledger.account("data")
    assert (account.spent_epsilon, account.spent_delta) == (receipt.epsilon, receipt.delta)
    assert check_ledger(folder, ledger, "data").ok
    charged = PrivacyUnit(contributions=50, delta=DELTA).charge(Fraction(1, 50))
    assert charged < Fraction(3, 5)
    assert (receipt.epsilon, receipt.delta) == ((charged, DELTA) if gains else (5, 0))
    (stage,) = receipt.columns[0].stages
    assert receipt.method.name == "geometric"
    assert stage.certified_epsilon == (Fraction(1, 50) if gains else 1)
    assert checks(folder)
    assert read_receipt(folder) == receipt
    document = json.loads((folder / "receipt.json").read_text())
    unit, statement = document["unit"], document["statement"]
    assert (unit["separate"], unit["delta"]) == (True, "1/1000000" if gains else "0")
    assert statement["dp_flavor"]["name"] == ("Approximate DP" if gains else "Pure DP")
    assert "no two in the same row" in statement["privacy_loss"]["privacy_unit"]
    page = (folder / "METHODOLOGY.html").read_text()
    assert all(words in page for words in (COMPOSED if gains else NOTHING_GAINED))
    assert ("multiplied by" in page) != gains


def test_several_columns_add_up_and_a_changed_unit_moves_twice_as_many():
    """A delta that gains enough for one column is spent for all of them."""
    table = pd.DataFrame({"a": COUNTS, "b": COUNTS})
    keys = {"count": ["a", "b"], "upper": 30, "delta": "0.000001", "spread": "distinct_rows"}
    changed = {"contributions": 25, "neighbours": "replace_one"}
    receipt = privatize(table, **keys, **changed, epsilon="0.02").receipt
    one = PrivacyUnit(contributions=50, delta=DELTA).charge(Fraction(1, 50))
    assert (receipt.epsilon, receipt.delta) == (2 * one, 2 * DELTA)
    uneven = privatize(table, **keys, epsilon=["0.02", "1"], contributions=50)
    assert uneven.receipt.delta == 2 * DELTA


# -- made true -----------------------------------------------------------------------------------


def test_what_stays_of_one_person_is_in_different_cells():
    rng = np.random.default_rng(1)
    persons, cells = rng.integers(0, 40, 2000), rng.integers(0, 30, 2000)
    counted, order = rng.random(2000) < 0.8, rng.permutation(2000)
    apart = keep_apart(persons, cells, counted, order)
    stays = bound_rows(persons, apart, 7, order)
    assert not (stays & ~counted).any()
    clipped = list(zip(persons[stays].tolist(), cells[stays].tolist(), strict=True))
    assert len(set(clipped)) == len(clipped)
    for person in range(40):
        there = np.unique(cells[counted & (persons == person)])
        assert stays[persons == person].sum() == min(7, len(there))
    others = persons != 3  # what is chosen of others does not depend on one person
    without = bound_rows(persons, keep_apart(persons, cells, counted & others, order), 7, order)
    assert (without[others] == stays[others]).all()


def test_a_person_is_counted_once_in_each_cell(tmp_path):
    """Of 40 persons with five rows in each of three cells, every cell counts 40.

    That was asked for, whatever a delta gains; here it gains too little and is not spent.
    """
    rows = [(p, c) for p in range(40) for c in "abc" for _ in range(5)]
    keys = {"by": "place", "categories": list("abcd"), "id_column": "who", "upper": 300}
    keys |= {"epsilon": 20, "delta": "0.000001", "spread": "distinct_rows", "contributions": 3}
    result = privatize(pd.DataFrame(rows, columns=["who", "place"]), **keys, out=tmp_path / "r")
    assert (result.receipt.epsilon, result.receipt.delta) == (60, 0)
    assert result.table["count"].tolist() == [40, 40, 40, 0]  # noise of one in 2e9
    assert result.receipt.unit.bound == "enforced"
    assert checks(tmp_path / "r")


@pytest.mark.parametrize(
    ("most", "cells", "delta"),
    [(10, 10, "1/1000"), (20, 10, "1/1000"), (100, 10, "1/1000"), (5000, 10, "1/1000"), (20, 1, 0)],
)
def test_nobody_is_charged_for_more_rows_than_there_are_cells(most, cells, delta, tmp_path):
    """Forty persons with one row in each cell."""
    names = [f"c{c}" for c in range(cells)]
    rows = [(p, name) for p in range(40) for name in names]
    keys = {"by": "place", "categories": names, "id_column": "who", "upper": 300, "epsilon": "0.1"}
    keys |= {"delta": "0.001", "spread": "distinct_rows", "contributions": most}
    table = pd.DataFrame(rows, columns=["who", "place"])
    receipt = privatize(table, **keys, out=tmp_path / "r").receipt
    charged = PrivacyUnit(contributions=cells, delta=Fraction(delta)).charge(Fraction(1, 10))
    assert receipt.epsilon == charged < Fraction(95, 100)
    assert receipt.delta == Fraction(delta)
    assert receipt.unit.contributions == cells
    assert checks(tmp_path / "r")


# -- little to gain ------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_one_person_moves_so_many_counts_by_one_each(monkeypatch, neighbours):
    """What is drawn from, with and without a person who has many rows, several in one cell."""
    values = []
    draw = Plan.draw

    def spy(method, counts, entropy):
        values.append(np.array(counts, dtype=np.int64))
        return draw(method, counts, entropy)

    monkeypatch.setattr(Plan, "draw", spy)
    rng, places = np.random.default_rng(2), list("abcdefgh")
    keys = {"by": "place", "categories": places, "id_column": "who", "contributions": 4}
    keys |= {"neighbours": neighbours, "epsilon": "1/2", "delta": "0.01", "upper": 40}
    keys |= {"spread": "distinct_rows"}
    moved = []
    for _ in range(20):
        others = [(f"p{at}", rng.choice(places)) for at in range(30)]
        mine, changed = ([("x", rng.choice(places)) for _ in range(12)] for _ in range(2))
        first = others + (changed if neighbours == "replace_one" else [])
        for rows in (first, others + mine):
            privatize(pd.DataFrame(rows, columns=["who", "place"]), **keys)
        before, after = values[-2:]
        assert np.abs(after - before).max() <= 1
        moved.append(np.abs(after - before).sum())
    assert max(moved) <= (8 if neighbours == "replace_one" else 4)
    assert max(moved) >= 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": None}, "nothing to compose"),
        ({"contributions": None}, "nothing to compose"),
        ({"method": "preserve"}, "'budget.delta' does not go with the method 'preserve'"),
        ({"method": "design"}, "only with 'auto' and 'geometric'"),
        ({"contributions": 1001}, "at most 1,000"),
        ({"contributions": 151}, "at most 150, the published rows"),
        ({"delta": "0.3"}, "'delta' must be smaller"),
    ],
)
def test_what_it_does_not_cover_is_refused(options, words, tmp_path):
    with pytest.raises((ArgumentError, UsageError), match=words):
        publish(tmp_path, **options)
