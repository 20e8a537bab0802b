"""Structural zeros: nothing goes there, nothing is spent there, and `check` knows them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.errors import ArgumentError, TableError
from tallyveil.release.methods.base import Task
from tallyveil.release.methods.hierarchy import Hierarchy
from tallyveil.sums.grouping import Grouping, Tree
from tests.asking import privatize
from tests.attacks.forging import passes

RULE = "sex = F and cause = prostate"
OPTIONS = {"count": "cases", "keep": "all", "upper": 20, "epsilon": 1}
BIRTHS = {**OPTIONS, "count": "births", "upper": 30}
EMPTY = {"structural_zeros": ["sex = M", "region = W"]}


def make_table() -> pd.DataFrame:
    """Men have about six cases of prostate cancer in each place, women none."""
    draw = np.random.default_rng(2)
    rows = [
        (f"p{place}", sex, cause)
        for place in range(60)
        for sex in ("F", "M")
        for cause in ("prostate", "other")
    ]
    table = pd.DataFrame(rows, columns=["place", "sex", "cause"])
    zero = (table["sex"] == "F") & (table["cause"] == "prostate")
    return table.assign(cases=np.where(zero, 0, np.minimum(draw.poisson(6, len(table)), 20)))


@pytest.mark.parametrize("method", ["preserve", "geometric"])
def test_structural_zeros_stay_zero_and_the_release_checks(tmp_path: Path, method: str) -> None:
    table = make_table().sample(frac=1, random_state=1).reset_index(drop=True)
    keys = {**OPTIONS, "method": method, "structural_zeros": RULE}
    release = privatize(table, **keys, out=tmp_path / "r")
    released = release.table
    zero = (released["sex"] == "F") & (released["cause"] == "prostate")
    assert (released.loc[zero, "cases"] == 0).all()
    assert released.loc[~zero, "cases"].sum() > 0
    assert release.receipt.protected_rows == 180
    assert float(release.receipt.epsilon) == 1
    findings = {finding.name: finding for finding in check_package(tmp_path / "r")}
    assert [one for one in findings.values() if not one.ok] == []
    assert f"{zero.sum()} structural zeros are 0" in findings["published counts"].detail
    assert "structural zeros" in (tmp_path / "r" / "METHODOLOGY.html").read_text("utf-8")


def test_men_keep_the_cases_that_women_cannot_have() -> None:
    table = make_table()
    men = (table["sex"] == "M") & (table["cause"] == "prostate")
    truth, gaps = table.loc[men, "cases"].sum(), []
    for extra in ({"structural_zeros": RULE}, {}):
        keys = {**OPTIONS, "epsilon": "1/2", "method": "preserve", **extra}
        sums = [privatize(table, **keys).table.loc[men, "cases"].sum() for _ in range(8)]
        gaps.append(abs(np.mean(sums) - truth))
    assert gaps[0] < gaps[1]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"structural_zeros": "sex = M"}, TableError, "declares to be 0"),
        ({"structural_zeros": ["sex = M", "sex = F"]}, TableError, "nothing to publish"),
        (
            {"structural_zeros": RULE, "keep": ["place", "cause"], "allow_duplicates": True},
            ArgumentError,
            "published unchanged",
        ),
        ({"structural_zeros": "prostate"}, ArgumentError, "'structural_zeros' must be comparisons"),
        (
            {"structural_zeros": [RULE, "cause = prostata"]},
            ArgumentError,
            r"must meet at least one row.*== prostata",
        ),
    ],
)
def test_contradictions_are_refused(options: dict, error: type[Exception], words: str) -> None:
    table = make_table()
    if words == "nothing to publish":
        table["cases"] = 0
    with pytest.raises(error, match=words):
        privatize(table, **{**OPTIONS, **options})


def test_a_count_smuggled_into_a_structural_zero_is_found(tmp_path: Path) -> None:
    privatize(make_table(), **OPTIONS, structural_zeros=RULE, out=tmp_path / "r")
    path = tmp_path / "r" / "data.csv"
    path.write_text(path.read_text("utf-8").replace("F,prostate,0", "F,prostate,3", 1), "utf-8")
    assert not passes(tmp_path / "r")


# -- inside a hierarchy and inside margins -------------------------------------------------------


def make_wards() -> pd.DataFrame:
    """Two regions with wards; nobody is counted in men's rows, and nobody at all in region W."""
    draw = np.random.default_rng(4)
    rows = [
        (region, f"{region}{ward}", sex, age)
        for region, wards in (("N", 4), ("S", 3), ("W", 2))
        for ward in range(wards)
        for sex in "FM"
        for age in range(3)
    ]
    table = pd.DataFrame(rows, columns=["region", "ward", "sex", "age"])
    zero = (table["sex"] == "M") | (table["region"] == "W")
    return table.assign(births=np.where(zero, 0, np.minimum(draw.poisson(7, len(table)), 30)))


def test_zeros_inside_a_hierarchy_receive_nothing_and_everything_adds_up(tmp_path: Path) -> None:
    table = make_wards().sample(frac=1, random_state=3).reset_index(drop=True)
    keys = {**BIRTHS, **EMPTY, "hierarchy": ["region", "ward"]}
    release = privatize(table, **keys, out=tmp_path / "r")
    released = release.table
    zero = (released["sex"] == "M") | (released["region"] == "W")
    assert (released.loc[zero, "births"] == 0).all()
    assert released["births"].between(0, 30).all()
    for level, names in enumerate([[], ["region"], ["region", "ward"]]):
        results = pd.read_csv(tmp_path / "r" / f"sums-{level}.csv")
        sums = released.groupby(names, sort=False)["births"].sum() if names else released["births"]
        assert results["births"].tolist() == (sums.tolist() if names else [sums.sum()])
        if names:
            empty = results[results["region"] == "W"]
            assert len(empty) == (1 if level == 1 else 2)
            beside = [f"births_{word}" for word in ("estimate", "deviation", "low", "high")]
            assert (empty[["births", *beside]] == 0).to_numpy().all()
            assert (results.loc[results["region"] != "W", "births_deviation"] > 0).all()
    assert [finding for finding in check_package(tmp_path / "r") if not finding.ok] == []
    assert release.receipt.sums.measured == (1, 2, 7, 21)


def test_a_row_that_only_zeros_stand_beside_is_given_away_by_an_exact_sum(tmp_path: Path) -> None:
    table = make_wards().query("age == 0").drop(columns="age")
    options = {**BIRTHS, **EMPTY, "hierarchy": ["region", "ward"], "invariant": "ward"}
    with pytest.warns(UserWarning, match="exact counts of 7 rows"):
        release = privatize(table, **options, out=tmp_path / "r")
    assert release.receipt.sums.exact_rows == 7
    assert release.table["births"].tolist() == table["births"].tolist()
    assert all(finding.ok for finding in check_package(tmp_path / "r"))


@pytest.mark.parametrize("margins", ["region,age+sex", "sex,age,ward"])
def test_zeros_inside_margins_receive_nothing_and_rows_meet_them(
    tmp_path: Path, margins: str
) -> None:
    keys = {**BIRTHS, **EMPTY, "upper": 200, "margins": margins}
    release = privatize(make_wards(), **keys, out=tmp_path / "r")
    released = release.table
    zero = (released["sex"] == "M") | (released["region"] == "W")
    assert (released.loc[zero, "births"] == 0).all()
    for index, names in enumerate(margins.split(",")):
        results = pd.read_csv(tmp_path / "r" / f"sums-{index}.csv")
        sums = released.groupby(names.split("+"), sort=False)["births"].sum()
        assert results["births"].tolist() == sums.tolist()
        assert index > 1 or (results["births_missed"] == 0).all()
    assert [finding for finding in check_package(tmp_path / "r") if not finding.ok] == []


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(-1, 2))
def test_any_tree_with_zeros_adds_up(seed: int, rows: int, exact: int) -> None:
    draw = np.random.default_rng(seed)
    fine = draw.integers(0, 1 + rows // 3, rows)
    tree = Tree.of_columns([fine // 3, fine])
    free = draw.random(rows) < 0.6
    free[draw.integers(rows)] = True
    upper = int(draw.integers(1, 30))
    counts = np.where(free, np.minimum(draw.poisson(draw.gamma(0.5, 8, rows)), upper), 0)
    exact_name = ("total", "a", "b")[min(exact, tree.depth - 1)] if exact >= 0 else ""
    keys, grouping = Hierarchy(columns="a,b", invariant=exact_name), Grouping.of(tree, free)
    epsilon = Fraction(int(draw.integers(1, 40)), 10)
    plan = keys.plan(Task("n", upper, epsilon, int(free.sum()), groups=grouping, free=free))
    entropy = tv.SeededNotPrivate(seed)
    (published,) = plan.publish(plan.draw(counts, entropy), entropy)
    values = published.values
    assert not values[~free].any()
    assert values.min() >= 0
    assert values.max() <= upper
    for level, sums in enumerate(tree.sum_up(values)[:-1]):
        assert published.sums[level].tolist() == sums.tolist()
        empty = grouping.fill(level, np.ones(grouping.part.sizes[level])) == 0
        assert not published.estimates[level][empty].any()
    if exact_name:
        truth = tree.sum_up(counts)[keys.exact_level]
        assert published.sums[keys.exact_level].tolist() == truth.tolist()


def test_zeros_cost_nothing_and_move_the_budget_to_the_other_groups() -> None:
    options, table = {**BIRTHS, "hierarchy": "ward"}, make_wards()
    with_zeros = privatize(table, **options, **EMPTY)
    free = table[(table["sex"] == "F") & (table["region"] != "W")]
    without = privatize(free, **options)
    stages = [
        [(stage.name, stage.epsilon) for stage in result.receipt.columns[0].stages]
        for result in (with_zeros, without)
    ]
    assert stages[0] == stages[1]
