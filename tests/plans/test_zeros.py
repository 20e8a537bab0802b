"""Structural zeros: nothing goes there, nothing is spent there, and `check` knows them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.errors import ArgumentError, TableError, UsageError

RULE = "sex = F and cause = prostate"


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
@pytest.mark.parametrize("order", ["input", "sorted"])
def test_structural_zeros_stay_zero_and_the_release_checks(
    tmp_path: Path, method: str, order: str
) -> None:
    table = make_table().sample(frac=1, random_state=1).reset_index(drop=True)
    release = tv.privatize(
        table,
        count="cases",
        keep="all",
        upper=20,
        epsilon=1,
        method=method,
        order=order,
        zero=RULE,
        out=tmp_path / "r",
    )
    released = release.table
    zero = (released["sex"] == "F") & (released["cause"] == "prostate")
    assert (released.loc[zero, "cases"] == 0).all()
    assert released.loc[~zero, "cases"].sum() > 0
    assert release.receipt.protected_rows == 180
    assert float(release.receipt.epsilon) == 1
    assert [found for found in check_package(tmp_path / "r") if not found.ok] == []
    assert "whatever the data say" in (tmp_path / "r" / "METHODOLOGY.html").read_text("utf-8")


def test_men_keep_the_cases_that_women_cannot_have() -> None:
    table = make_table()
    options = {"count": "cases", "keep": "all", "upper": 20, "epsilon": "1/2", "method": "preserve"}
    men = (table["sex"] == "M") & (table["cause"] == "prostate")
    gaps = {
        name: np.mean(
            [
                tv.privatize(table, **options, **extra).table.loc[men, "cases"].sum()
                - table.loc[men, "cases"].sum()
                for _ in range(8)
            ]
        )
        for name, extra in (("plain", {}), ("zeros", {"zero": RULE}))
    }
    assert abs(gaps["zeros"]) < abs(gaps["plain"])


def test_contradictions_are_refused_before_anything_is_spent(tmp_path: Path) -> None:
    table = make_table()
    options = {"count": "cases", "upper": 20, "epsilon": 1}
    with pytest.raises(TableError, match="declares to be 0"):
        tv.privatize(table, **options, keep="all", zero="sex = M")
    with pytest.raises(TableError, match="nothing to publish"):
        tv.privatize(table.assign(cases=0), **options, keep="all", zero=["sex = M", "sex = F"])
    with pytest.raises(ArgumentError, match="published unchanged"):
        tv.privatize(
            table,
            **options,
            keep=["place", "cause"],
            drop="sex",
            allow_duplicates=True,
            zero=RULE,
        )
    with pytest.raises(ArgumentError, match="'zero' must be comparisons"):
        tv.privatize(table, **options, keep="all", zero="prostate")
    with pytest.raises(UsageError, match="hierarchy"):
        tv.privatize(table, **options, keep="all", zero=RULE, hierarchy=["place"])


def test_a_count_smuggled_into_a_structural_zero_is_found(tmp_path: Path) -> None:
    from tallyveil.publish.folder import CHECKSUMS, checksums_text

    folder = tmp_path / "r"
    tv.privatize(
        make_table(), count="cases", keep="all", upper=20, epsilon=1, zero=RULE, out=folder
    )
    text = (folder / "data.csv").read_text("utf-8")
    (folder / "data.csv").write_text(text.replace("F,prostate,0", "F,prostate,3", 1), "utf-8")
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != CHECKSUMS}
    (folder / CHECKSUMS).write_text(checksums_text(files), "utf-8")
    assert not all(found.ok for found in check_package(folder))


def test_a_rule_that_no_row_meets_is_refused() -> None:
    options = {"count": "cases", "keep": "all", "upper": 20, "epsilon": 1}
    with pytest.raises(ArgumentError, match=r"must meet at least one row.*== prostata"):
        tv.privatize(make_table(), **options, zero=[RULE, "cause = prostata"])
