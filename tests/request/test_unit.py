"""The unit is what the receipt says: persons, events, rows of one person, disjoint columns."""

import itertools
import json
from fractions import Fraction
from math import exp

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.release.release import read_receipt
from tallyveil.request.unit import PrivacyUnit, charge_columns
from tests.asking import privatize

FRAME = pd.DataFrame(
    {
        "county": [f"c{i}" for i in range(60)],
        "cases_m": [i % 5 for i in range(60)],
        "cases_f": [i % 3 for i in range(60)],
        "deaths": [i % 2 for i in range(60)],
    }
)
OPTIONS = {
    "count": ["cases_m", "cases_f", "deaths"],
    "epsilon": [1, "1/2", "1/4"],
    "upper": 9,
    "keep": "county",
}


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (PrivacyUnit(), "one person, counted at most once in each count column"),
        (PrivacyUnit(contributions=3), "one person, counted at most 3 times in each count column"),
        (PrivacyUnit(of_rows=True), "one person, with at most one row in the confidential table"),
        (
            PrivacyUnit(contributions=4, of_rows=True),
            "one person, with at most 4 rows in the confidential table",
        ),
        (PrivacyUnit("event"), "one single event, such as a visit or a test, and not a person"),
    ],
)
def test_the_words_say_which_unit(unit, words):
    assert unit.name == words
    assert ("event" in unit.change) == (unit.kind == "event")
    assert all("cell" not in said for said in (unit.name, unit.moves, unit.alternative))


def test_five_rows_in_one_cell_cost_five_times():
    """Exact enumeration: rows of one person in one cell are within the receipt's promise."""
    matrix = tv.geometric(tv.Query.count(9), 0.5).matrix
    worst = max(np.log(matrix[i] / matrix[i - 5]).max() for i in range(5, 10))
    unit = PrivacyUnit(contributions=5, of_rows=True)
    assert 2 < worst <= unit.multiplier * 0.5 + 1e-9


def test_events_say_so_everywhere(tmp_path):
    rel = privatize(
        FRAME,
        "deaths",
        keep="county",
        upper=9,
        epsilon=1,
        kind="event",
        out=tmp_path / "out",
    )
    assert "Including or excluding any one event changes" in rel.receipt.promise
    page = rel.files["METHODOLOGY.html"].decode()
    assert "guarantee is for one single event" in page
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))


def test_disjoint_columns_are_charged_once(tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    account = {"ledger": book, "dataset": "cases"}
    rel = privatize(
        FRAME, **OPTIONS, **account, disjoint=["cases_f", "cases_m"], out=tmp_path / "out"
    )
    assert rel.receipt.epsilon == 1 + Fraction(1, 4)
    assert rel.receipt.disjoint == (("cases_m", "cases_f"),)
    assert book.account("cases").spent_epsilon == Fraction(5, 4)
    assert "charged once" in rel.files["METHODOLOGY.html"].decode()
    assert "parallel over cases_m, cases_f" in rel.receipt.composition
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))
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


def test_moving_from_one_column_to_the_other_stays_within_the_charge():
    """Exact matrices: one record leaves a cell of one column and enters one of the other."""
    first = tv.geometric(tv.Query.count(4), 0.5).matrix
    second = tv.geometric(tv.Query.count(4), 0.25).matrix
    ratio = max((first[i] / first[i - 1]).max() for i in range(1, 5)) * max(
        (second[i - 1] / second[i]).max() for i in range(1, 5)
    )
    assert ratio <= exp(2 * 0.5) * (1 + 1e-9)


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
        {"disjoint": [["cases_m", "x"]]},
        {"disjoint": [["cases_m", "cases_f"], ["cases_f", "deaths"]]},
        {"disjoint": [[]]},
    ],
)
def test_a_receipt_with_a_unit_that_cannot_be_does_not_check(tmp_path, change):
    rel = privatize(FRAME, **OPTIONS)
    document = rel.receipt.to_dict() | change
    rel.save(tmp_path / "out")
    (tmp_path / "out" / "receipt.json").write_text(json.dumps(document, indent=1) + "\n")
    found = {finding.name: finding.ok for finding in tv.check_package(tmp_path / "out")}
    assert found["receipt"] is False


def test_calling_columns_disjoint_afterwards_contradicts_the_total(tmp_path):
    rel = privatize(FRAME, **OPTIONS)
    document = rel.receipt.to_dict() | {"disjoint": [["cases_m", "cases_f"]]}
    rel.save(tmp_path / "out")
    (tmp_path / "out" / "receipt.json").write_text(
        json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    )
    found = {finding.name: finding.ok for finding in tv.check_package(tmp_path / "out")}
    assert found["receipt"] is False


def test_the_words_know_how_many_columns_a_person_is_in():
    table = {"area": ["a", "b"], "m": [1, 2], "f": [0, 3]}
    frame = pd.DataFrame(table)
    ask = {"count": ["m", "f"], "keep": "area", "upper": 5, "epsilon": 1}
    two = privatize(frame, **ask).receipt
    assert two.unit_moves == "adding or removing one person changes one count by one in each column"
    apart = privatize(frame, **ask, disjoint=["m", "f"]).receipt
    assert apart.unit_moves == "adding or removing one person changes one count by one"
    assert apart.unit_name.endswith("and in only one of m, f")
    assert any("in only one of m, f" in limit for limit in apart.unit_limits)
    one = privatize(frame, count="m", keep="area", upper=5, epsilon=1).receipt
    assert one.unit_moves == one.unit.moves
