"""Method hierarchy: rows add up to every level, checks, refusals, and bounds of single rows."""

from __future__ import annotations

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.estimate.histogram import estimate_directly, estimate_histogram
from tallyveil.release.methods.base import Task
from tallyveil.release.methods.hierarchy import Hierarchy, _estimate
from tallyveil.release.preview import preview_table
from tallyveil.sampling.entropy import SeededNotPrivate
from tallyveil.sums.grouping import Grouping, Tree
from tests.asking import make_options, privatize
from tests.attacks.forging import checks

OPTIONS = {"count": "cases", "upper": 40, "epsilon": 1, "hierarchy": ["state", "county"]}


def make_table(rows_per_county: int = 2) -> pd.DataFrame:
    """Three states with 4, 3 and 2 counties, and a few rows in each county."""
    draw = np.random.default_rng(5)
    rows = [
        (state, f"{state}{county}", age)
        for state, counties in (("N", 4), ("S", 3), ("W", 2))
        for county in range(counties)
        for age in range(rows_per_county)
    ]
    table = pd.DataFrame(rows, columns=["state", "county", "age"])
    return table.assign(cases=np.minimum(draw.poisson(draw.gamma(0.8, 8, len(table))), 40))


def read_sums(folder: Path, level: int) -> list[dict[str, str]]:
    with open(folder / f"sums-{level}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_exact_totals_are_published_and_marked_as_outside_the_promise(tmp_path: Path) -> None:
    table = make_table(1)
    release = privatize(table, **OPTIONS, keep=[], invariant="state", out=tmp_path / "r")
    truth = table.groupby("state", sort=False)["cases"].sum().tolist()
    assert [int(row["cases"]) for row in read_sums(tmp_path / "r", 1)] == truth
    words = "the exact total and the exact sums by state"
    findings = {finding.name: finding for finding in check_package(tmp_path / "r")}
    assert findings["sums"].ok
    assert f"outside the guarantee: {words}" in findings["sums"].detail
    assert "Outside the guarantee" in (tmp_path / "r" / "METHODOLOGY.html").read_text("utf-8")
    assert words in release.receipt.statement.dp_flavor["unprotected_quantities"]
    assert f"Outside this guarantee: {words}" in release.receipt.promise
    table.to_csv(tmp_path / "t.csv", index=False)
    keys = make_options(**OPTIONS, keep=[], invariant="state")
    assert preview_table(tmp_path / "t.csv", keys).promise == release.receipt.promise


def test_a_list_of_categories_that_is_a_full_cross_is_called_so(tmp_path: Path) -> None:
    people = pd.DataFrame({"state": list("NNS"), "county": ["N1", "N2", "S1"], "age": [3, 40, 70]})
    keys = {"by": ["state", "county"], "upper": 9, "epsilon": 1, "hierarchy": "state,county"}
    crossed = {"state": ["N", "S"], "county": ["N1", "N2", "S1"]}
    words = r"combinations that exist.*header state,county"
    with pytest.raises(TableError, match=words) as problem:
        privatize(people, **keys, categories=crossed)
    assert "distinct" not in str(problem.value)
    (tmp_path / "counties.csv").write_text("state,county\nN,N1\nN,N2\nS,S1\n")
    result = privatize(people, **keys, categories=tmp_path / "counties.csv")
    assert [level.name for level in result.receipt.sums.levels] == ["total", "state"]
    ages = {**keys, "by": ["state", "age"], "bins": {"age": [0, 18, 65]}, "categories": "N,S"}
    with pytest.raises(TableError, match="leave 'age' out of the hierarchy"):
        privatize(people, **{**ages, "hierarchy": "state,age"})
    assert privatize(people, **{**ages, "hierarchy": "state"}).receipt.sums.sizes == (1, 2, 6)


# -- rows with a largest count of their own -------------------------------------------------------


BOUNDED = {**OPTIONS, "upper": 30, "hierarchy": "state", "upper_column": "people"}
BOUNDED["keep"] = "county"


def make_bounded(rows: int = 60) -> pd.DataFrame:
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


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 80),
    upper=st.integers(1, 40),
    epsilon=st.sampled_from(["1/50", "1/2", "3"]),
    exact=st.integers(-1, 2),
    kind=st.sampled_from(["plain", "zeros", "bounds"]),
)
def test_any_tree_stays_inside_its_bounds_and_adds_up(
    *, seed: int, rows: int, upper: int, epsilon: str, exact: int, kind: str
) -> None:
    draw, entropy = np.random.default_rng(seed), SeededNotPrivate(seed)
    fine = draw.integers(0, 1 + rows // 3, rows)
    tree = Tree.of_columns([fine // 3, fine])
    most = np.full(rows, upper)
    if kind == "bounds":
        most = draw.integers(0, upper + 1, rows)
    if kind == "zeros":
        most[draw.random(rows) < 0.4] = 0
        most[draw.integers(rows)] = upper
    counts = np.minimum(draw.poisson(draw.gamma(0.5, 8, rows)), most)
    free = most > 0 if kind == "zeros" else None
    level = ("total", "a", "b")[min(exact, tree.depth - 1)] if exact >= 0 else ""
    task = Task(
        *("n", upper, Fraction(epsilon), rows if free is None else int(free.sum())),
        groups=Grouping.of(tree, free),
        free=free,
        bounds=most if kind == "bounds" else None,
    )
    method = Hierarchy(columns="a,b", invariant=level)
    plan = method.plan(task)
    (published,) = plan.publish(plan.draw(counts, entropy), entropy)
    assert (published.values >= 0).all()
    assert (published.values <= most).all()
    for at, sums in enumerate(tree.sum_up(published.values)[:-1]):
        assert published.sums[at].tolist() == sums.tolist()
        groups = task.groups
        if free is not None:
            empty = groups.fill(at, np.ones(groups.part.sizes[at])) == 0
            assert not published.estimates[at][empty].any()
    if level:
        truth = tree.sum_up(counts)[method.exact_level]
        assert published.sums[method.exact_level].tolist() == truth.tolist()


def test_a_release_keeps_its_bounds_and_says_so(tmp_path: Path) -> None:
    table = make_bounded()
    release = privatize(table, **BOUNDED, out=tmp_path / "r")
    assert (release.table["cases"] <= release.table["people"]).all()
    assert sorted(release.table["people"]) == sorted(table["people"])
    results = {finding.name: finding for finding in tv.check_package(tmp_path / "r")}
    assert all(one.ok for one in results.values())
    assert "no row above its people" in results["sums"].detail
    page = release.files["METHODOLOGY.html"].decode()
    assert "exceeds the public column people" in page
    assert release.receipt.method.upper_column == "people"


SIX = pd.DataFrame({"state": list("bbaacc"), "county": list("uvwxyz"), "cases": [7, 0, 3, 2, 0, 0]})
MEN = make_table(1).assign(sex="M", cases=0)
WOMEN = make_table(1).assign(sex="F").replace({"cases": 0}, 1)
GIVEN_AWAY = {  # a table, its options, and the counties whose exact counts are given away
    "one row of a group": (SIX.drop(1), {"hierarchy": "state", "keep": "county"}, ["u"]),
    "one row above a bound of 0": (
        SIX.assign(people=[9, 0, 5, 5, 0, 0]),
        {"hierarchy": "state", "upper_column": "people", "keep": "county"},
        ["u"],
    ),
    "rows beside zeros": (
        pd.concat([WOMEN.where(WOMEN["state"] != "W", WOMEN.assign(cases=0)), MEN]),
        {"structural_zeros": ["sex = M", "state = W"], "keep": ["age", "sex"]},
        ["N0", "N1", "N2", "N3", "S0", "S1", "S2"],
    ),
}


@pytest.mark.parametrize("name", GIVEN_AWAY)
def test_exact_sums_that_give_rows_away_say_so_everywhere(name: str, tmp_path: Path) -> None:
    table, changes, counties = GIVEN_AWAY[name]
    level = "county" if len(counties) > 1 else "state"
    options = {**OPTIONS, "invariant": level, **changes}
    words = "exact count of 1 row" if level == "state" else f"exact counts of {len(counties)} rows"
    with pytest.warns(UserWarning, match=words):
        release = privatize(table, **options, out=tmp_path / "r")
    assert release.receipt.sums.exact_rows == len(counties)
    assert words in release.receipt.outside
    assert f"and with them the {words}" in release.files["METHODOLOGY.html"].decode()
    sums = [one.groupby("county")["cases"].sum()[counties] for one in (release.table, table)]
    assert sums[0].tolist() == sums[1].tolist()
    assert checks(tmp_path / "r")


def test_larger_counts_are_cut_before_anything_is_drawn_and_zeros_stay() -> None:
    table = make_bounded()
    zero = table["state"] == "s1"
    more, less = (
        privatize(
            table.assign(cases=(table["people"] + above).where(~zero, 0)),
            **BOUNDED,
            structural_zeros="state = s1",
            entropy=SeededNotPrivate(3),
        ).table
        for above in (5, 0)
    )
    assert more["cases"].tolist() == less["cases"].tolist()
    assert (more["cases"] <= more["people"]).all()
    assert not more.loc[more["state"] == "s1", "cases"].any()


TABLE = make_table(1).assign(people=3)
TWICE = TABLE.assign(county=["S0", *TABLE["county"][1:]])
ABOVE = TABLE.assign(cases=[41, *TABLE["cases"][1:]])
BY = {"by": "state", "categories": ["N", "S", "W"], "count": None, "hierarchy": "state"}
TOP_CODED = "above the upper bound 40, and exact sums allow no top-coding"
PEOPLE = {"hierarchy": "state", "keep": "county", "upper_column": "people"}
CASES = {**PEOPLE, "upper_column": "cases"}
UNKNOWN = {**PEOPLE, "upper_column": "population"}
TEXT = {"hierarchy": "state", "keep": "people", "upper_column": "county"}
EXACT = {**PEOPLE, "invariant": "state"}
DIGITS = TABLE.assign(people="1,000")


@pytest.mark.parametrize(
    ("table", "change", "error", "words"),
    [
        (
            TABLE,
            {"hierarchy": ["cases"]},
            ArgumentError,
            "'hierarchy' must .* not the count column",
        ),
        (TABLE, {"hierarchy": ["planet"]}, TableError, "No column named 'planet'"),
        (TABLE, {"hierarchy": ["county", "state"]}, TableError, "from coarse to fine"),
        (TABLE, {"weights": "1,2"}, ArgumentError, "'weights' must be 3 numbers"),
        (TABLE, {"upper": None}, ArgumentError, "'upper' must be given for the method 'hierarchy'"),
        (TWICE, {}, TableError, "occurs under two labels of 'state'"),
        (ABOVE, {"invariant": "total"}, TableError, TOP_CODED),
        (TABLE, CASES, ArgumentError, "public columns.*not the count column 'cases'"),
        (TABLE, UNKNOWN, TableError, "No column named 'population'"),
        (TABLE, TEXT, TableError, "'county' has text"),
        (DIGITS, {**PEOPLE, "thousands": ","}, UsageError, "plain digits"),
        (TABLE.assign(people=1e16), PEOPLE, ArgumentError, "numbers of at most"),
        (TABLE.assign(cases=9), EXACT, TableError, "upper bound 40 or their row's 'people'"),
        (TABLE, {**BY, "upper_column": "people"}, ArgumentError, "upper_column"),
    ],
)
def test_refusals_come_before_the_debit_and_tell_no_count(
    paid: dict, table: pd.DataFrame, change: dict, error: type[Exception], words: str
) -> None:
    options = {**OPTIONS, "keep": None if "by" in change else [], **paid}
    with pytest.raises(error, match=words) as problem:
        privatize(table, **{**options, **change})
    assert "41" not in str(problem.value)


def test_the_confidential_report_tells_what_bounds_cut(tmp_path: Path) -> None:
    table = make_bounded().assign(people=2, cases=10)
    path = tmp_path / "truth.html"
    privatize(table, **BOUNDED, confidential_report=path, out=tmp_path / "r")
    text = path.read_text(encoding="utf-8")
    assert "60 (100.0%)" in text
    assert "480 of 600" in text
    assert "more than the row’s own bound" in text


UPPER, EPSILON = 600, Fraction(4)


def test_nearly_exact_rows_without_a_histogram_are_not_smoothed():
    """On homicides by county smoothing made rows 1.3 times and distributions 1.6 times as far."""
    random, rows = np.random.default_rng(5), 20_000
    some = random.lognormal(0.3, 1.9, rows).astype(np.int64)
    counts = np.minimum(np.where(random.random(rows) < 0.5, 0, some), UPPER)
    states = np.sort(random.integers(0, 50, rows))
    method, groups = Hierarchy(columns="state"), Grouping.of(Tree.of_columns([states]))
    plan = method.plan(Task("n", UPPER, EPSILON, rows, groups=groups))
    budget = method.find_budget(plan)
    assert not budget.distribution
    draws = plan.draw(counts, SeededNotPrivate(1))
    values = np.clip(draws.levels[-1], 0, UPPER)
    alone = PrivateDraws(values, budget.levels[-1], None, Fraction(0), UPPER + 1)
    assert estimate_histogram(alone).smooth  # or there is nothing to see
    target = estimate_directly(alone).spread_out(UPPER + 1) / rows
    assert np.array_equal(_estimate(values, draws, budget, UPPER), target)
