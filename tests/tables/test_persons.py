"""The rows of one person are bounded by leaving rows out, at random and person by person."""

from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.errors import TableError
from tallyveil.tables.microdata import bound_rows, identify_persons
from tallyveil.tables.read import read_table
from tests.asking import privatize

VISITS = {
    "who": ["a", "b", "a", "c", "a", "b", "a", "a"],
    "clinic": ["n", "n", "s", "s", "n", "n", "n", "s"],
}


COUNTS = {"count": "clinic", "by": None, "categories": None}


def everything(size):
    return np.ones(size, dtype=bool)


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_every_person_keeps_as_many_rows_as_allowed(most):
    rng = np.random.default_rng(most)
    persons = rng.integers(0, 30, size=200)
    counted = rng.random(200) < 0.7
    stays = bound_rows(persons, counted, most, rng.permutation(200))
    assert not (stays & ~counted).any()
    for person in range(30):
        whose = persons == person
        assert (stays & whose).sum() == min(most, (counted & whose).sum())


def test_nobodys_rows_decide_which_rows_of_others_stay():
    """Every order of the rows: the choices of the others are the same with and without a person."""
    persons = np.array([1, 1, 2, 2, 3])
    others = persons != 2
    for order in permutations(range(5)):
        whole = bound_rows(persons, everything(5), 1, np.array(order))
        kept = [row for row in order if others[row]]
        numbers = np.cumsum(others) - 1
        without = bound_rows(persons[others], everything(3), 1, numbers[np.array(kept)])
        assert whole[others].tolist() == without.tolist()


def test_every_choice_is_equally_likely():
    persons = np.array([1, 1, 1, 2, 2])
    found = {}
    for order in permutations(range(5)):
        stays = bound_rows(persons, everything(5), 1, np.array(order))
        found[tuple(stays.tolist())] = found.get(tuple(stays.tolist()), 0) + 1
    assert len(found) == 6
    assert set(found.values()) == {20}


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "arrow"])
def test_the_bound_holds_and_the_column_never_leaves(tmp_path, kind):
    path = tmp_path / "visits.csv"
    pd.DataFrame(VISITS).to_csv(path, index=False)
    libraries = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
    table = path if kind == "csv" else libraries[kind](VISITS)
    options = {"by": "clinic", "categories": ["n", "s"], "upper": 9, "id_column": "who"}
    rel = privatize(
        table,
        epsilon=60,
        contributions=2,
        out=tmp_path / "out",
        confidential_report=tmp_path / "secret.html",
        **options,
    )
    assert int(np.sum(rel.published["count"].counts)) == 5
    assert rel.receipt.epsilon == 120
    assert rel.receipt.unit.contributions == 2
    assert rel.receipt.unit.bound == "enforced"
    page = rel.files["METHODOLOGY.html"].decode()
    assert "left out at random" in page
    assert "one person with at most 2 records" in rel.receipt.promise
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))
    assert b"who" not in rel.files[rel.receipt.table.file]
    assert "3 of 8 records (37.5%) were left out" in (tmp_path / "secret.html").read_text()
    assert "3 of 8 rows" not in page


def test_conditions_come_before_the_bound():
    """Rows that are not counted anyway do not use up a person's share."""
    frame = pd.DataFrame(VISITS)
    options = {"by": "clinic", "categories": ["n", "s"], "upper": 9, "epsilon": 60}
    bound = {"id_column": "who", "contributions": 2}
    for _ in range(10):
        rel = privatize(frame, where="clinic == s", **bound, **options)
        assert rel.table["count"].tolist() == [0, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id_column": "who", "contributions": 0}, "from 1 to"),
        ({"id_column": "who", "contributions": 2, "kind": "event"}, "to 'person'"),
        ({"id_column": "clinic", "contributions": 2}, "no other option uses"),
        ({"id_column": "who", "contributions": 2, "where": "who == a"}, "no other option uses"),
        ({"id_column": "id", "contributions": 2}, "No column named 'id'"),
        ({"id_column": "who", "contributions": 1, **COUNTS}, "for microdata"),
        ({"kind": "household"}, "one of: person, event"),
    ],
)
def test_what_does_not_fit_together_is_refused(options, message):
    common = {"by": "clinic", "categories": ["n", "s"], "upper": 9, "epsilon": 1}
    with pytest.raises(tv.TallyveilError, match=message):
        privatize(pd.DataFrame(VISITS), **{**common, **options})


def test_a_row_without_a_person_is_refused():
    table = read_table(pd.DataFrame({"who": ["a", None, "b"]}))
    with pytest.raises(TableError, match="Row 2 has no value in 'who'"):
        identify_persons(table, "who")
