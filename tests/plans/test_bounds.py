"""Rows with a bound of their own, such as a population: no published count lies above it."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.release.methods.base import Task
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sums.grouping import Grouping, Tree
from tests.asking import privatize

OPTIONS = {
    "count": "cases",
    "upper": 30,
    "epsilon": 1,
    "hierarchy": "state",
    "upper_column": "people",
}


def make_table(rows: int = 60) -> pd.DataFrame:
    draw = np.random.default_rng(4)
    people = draw.integers(0, 9, rows)
    return pd.DataFrame(
        {
            "state": [f"s{row % 6}" for row in range(rows)],
            "county": [f"c{row}" for row in range(rows)],
            "people": people,
            "cases": draw.integers(0, people + 1),
        }
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 80),
    upper=st.integers(1, 40),
    epsilon=st.sampled_from(["1/50", "1/2", "3"]),
    exact=st.booleans(),
)
def test_rows_stay_inside_their_bounds_and_add_up(
    *, seed: int, rows: int, upper: int, epsilon: str, exact: bool
) -> None:
    draw = np.random.default_rng(seed)
    groups = np.unique(draw.integers(0, 5, rows), return_inverse=True)[1]
    tree = Tree.of_columns([groups])
    bounds = draw.integers(0, upper + 1, rows)
    counts = draw.integers(0, bounds + 1)
    level = "total" if exact else ""
    task = Task("n", upper, Fraction(epsilon), rows, groups=Grouping.of(tree), bounds=bounds)
    plan, entropy = Hierarchy(columns="state", invariant=level).plan(task), SeededNotPrivate(seed)
    (published,) = plan.publish(plan.draw(np.minimum(counts, upper), entropy), entropy)
    assert (published.values >= 0).all()
    assert (published.values <= bounds).all()
    sums = tree.sum_up(published.values)
    for said, added in zip(published.sums, sums, strict=False):
        assert said.tolist() == added.tolist()
    if exact:
        assert int(published.values.sum()) == int(counts.sum())


def test_a_release_keeps_its_bounds_and_says_so(tmp_path: Path) -> None:
    table = make_table()
    release = privatize(table, **OPTIONS, keep="county", out=tmp_path / "r")
    assert (release.table["cases"] <= release.table["people"]).all()
    assert sorted(release.table["people"]) == sorted(table["people"])
    found = {one.name: one for one in tv.check_package(tmp_path / "r")}
    assert all(one.ok for one in found.values())
    assert "no row above its people" in found["sums"].detail
    assert "exceeds the public column people" in (tmp_path / "r" / "METHODOLOGY.html").read_text(
        "utf-8"
    )
    assert release.receipt.to_dict()["hierarchy"]["bounds"] == "people"


def test_rows_beside_bounds_of_0_are_alone_with_their_exact_sum(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "state": ["b", "b", "a", "a", "c", "c"],
            "county": list("uvwxyz"),
            "people": [9, 0, 5, 5, 0, 0],
            "cases": [7, 0, 3, 2, 0, 0],
        }
    )
    asked = {**OPTIONS, "keep": "county", "invariant": "state"}
    with pytest.warns(UserWarning, match="the exact count of 1 row that is the only one"):
        release = privatize(table, **asked, out=tmp_path / "r")
    said = release.receipt.to_dict()["hierarchy"]
    assert said["exact_rows"] == 1
    assert "the exact count of 1 row" in said["outside_the_promise"]
    assert all(found.ok for found in tv.check_package(tmp_path / "r"))
    assert tv.estimate_total(tmp_path / "r", by="state")["b"].value == 7


def test_structural_zeros_and_bounds_go_together() -> None:
    table = make_table()
    table.loc[table["state"] == "s1", "cases"] = 0
    release = privatize(table, **OPTIONS, keep="county", structural_zeros="state = s1")
    assert (release.table["cases"] <= release.table["people"]).all()
    assert not release.table.loc[release.table["state"] == "s1", "cases"].any()


def test_larger_counts_are_cut_before_anything_is_drawn() -> None:
    table = make_table()
    more = table.assign(cases=table["people"] + 5)
    less = table.assign(cases=table["people"])
    made = [
        privatize(one, **OPTIONS, keep="county", entropy=SeededNotPrivate(3)).table["cases"]
        for one in (more, less)
    ]
    assert made[0].tolist() == made[1].tolist()


def test_larger_counts_are_refused_where_none_may_be_cut() -> None:
    table = make_table().assign(cases=9)
    with pytest.raises(TableError, match="upper bound 30 or their row's 'people'"):
        privatize(table, **OPTIONS, keep="county", invariant="state")


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"hierarchy": None}, UsageError, "'bounds' goes with 'hierarchy'"),
        ({"upper_column": "cases"}, ArgumentError, "neither a level nor a count"),
        ({"upper_column": "state"}, ArgumentError, "neither a level nor a count"),
        ({"upper_column": "people,county"}, ArgumentError, "be one public column"),
        ({"upper_column": "population"}, TableError, "no column 'population'"),
        (
            {"upper_column": "county", "keep": "people"},
            TableError,
            "'county' must hold a whole number",
        ),
        ({"hierarchy": None, "margins": "state,county"}, UsageError, "'bounds' and 'one_row'"),
    ],
)
def test_bounds_that_cannot_be_are_refused(
    asked: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        privatize(make_table(), **{**OPTIONS, "keep": "county", **asked})


def test_microdata_have_no_column_of_bounds() -> None:
    people = pd.DataFrame({"state": ["a", "b"] * 20, "people": 3})
    asked = {"by": "state", "categories": ["a", "b", "c"], "count": None}
    with pytest.raises((ArgumentError, UsageError), match="bounds"):
        privatize(people, **{**OPTIONS, **asked})


def test_a_forged_bound_is_found(tmp_path: Path) -> None:
    privatize(make_table(), **OPTIONS, keep="county", out=tmp_path / "r")
    path = tmp_path / "r" / "receipt.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["hierarchy"]["bounds"] = "cases"
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    assert not all(one.ok for one in tv.check_package(tmp_path / "r"))


@pytest.mark.parametrize("form", ["parquet", "arrow", "dta", "xlsx"])
@pytest.mark.parametrize(
    "asked",
    [{"upper_column": "people"}, {"structural_zeros": "people = 99"}, {"unbiased": True}],
    ids=["bounds", "zero", "unbiased"],
)
def test_every_format_checks(tmp_path: Path, form: str, asked: dict[str, object]) -> None:
    table = make_table()
    table.loc[3, ["people", "cases"]] = 99, 0
    options = {**OPTIONS, "upper_column": None, "keep": "all", **asked}
    privatize(table, **options, format=form, out=tmp_path / "r")
    assert [one for one in tv.check_package(tmp_path / "r") if not one.ok] == []
    assert len(tv.estimate_total(tmp_path / "r", by="state")) == 6


def test_the_confidential_report_tells_what_bounds_cut(tmp_path: Path) -> None:
    table = make_table().assign(people=2, cases=10)
    path = tmp_path / "truth.html"
    privatize(table, **OPTIONS, keep="county", confidential_report=path, out=tmp_path / "r")
    text = path.read_text(encoding="utf-8")
    assert "60 (100.0%)" in text
    assert "480 of 600" in text
    assert "more than their own bound" in text


@pytest.mark.parametrize(
    ("people", "asked", "words"),
    [
        (["1,000"] * 60, {"thousands": ","}, "plain digits"),
        ([1e16] * 60, {}, "numbers of at most"),
    ],
)
def test_bounds_that_no_check_could_read_are_refused(
    people: list[object], asked: dict[str, str], words: str
) -> None:
    table = make_table().assign(people=people)
    with pytest.raises((ArgumentError, UsageError), match=words):
        privatize(table, **OPTIONS, keep="county", **asked)
