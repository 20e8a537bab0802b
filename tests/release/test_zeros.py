"""Structural zeros: nothing goes there, nothing is spent there, and `check` knows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tallyveil.check.package import check_package
from tallyveil.errors import ArgumentError, TableError
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
    release = privatize(make_table(), **OPTIONS, structural_zeros=RULE, out=tmp_path / "r")
    assert "structural zeros" in release.files["METHODOLOGY.html"].decode()
    details = {finding.name: finding.detail for finding in check_package(tmp_path / "r")}
    assert "60 structural zeros are 0" in details["published counts"]
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
    assert with_zeros.receipt.sums.measured == (1, 7, 21)
