"""Totals of groups of releases that add up: any groups, right on average, in their intervals."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tallyveil as tv
from tallyveil.errors import PackageError, UsageError
from tests.asking import privatize

OPTIONS = {"count": "cases", "keep": "all", "upper": 30, "epsilon": 1}


def make_table() -> pd.DataFrame:
    """Six states in three regions, which are no level; ages cut through all of them."""
    draw = np.random.default_rng(6)
    rows = range(72)
    return pd.DataFrame(
        {
            "region": ["ABC"[row // 24] for row in rows],
            "state": [f"s{row // 12}" for row in rows],
            "county": [f"c{row // 4}" for row in rows],
            "age": [f"{row % 4}0" for row in rows],
            "cases": np.minimum(draw.poisson(draw.gamma(0.7, 9, 72)), 30),
        }
    )


def read_rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def test_groups_of_a_level_are_what_its_file_says(tmp_path: Path) -> None:
    release = privatize(make_table(), **OPTIONS, hierarchy="state,county", out=tmp_path / "r")
    for level, by in ((1, "state"), (2, ["state", "county"]), (2, "county")):
        for source in (release, tmp_path / "r"):
            found = list(tv.estimate_total(source, by=by).values())
            stated = read_rows(release.sums[f"sums-{level}.csv"])
            assert [one.value for one in found] == [float(row["cases_estimate"]) for row in stated]
            for one, row in zip(found, stated, strict=True):
                assert one.standard_error == pytest.approx(
                    float(row["cases_deviation"]), abs=0.0005
                )
                assert one.low <= max(float(row["cases_low"]), 0) + 1
                assert one.high >= float(row["cases_high"]) - 1
    whole = tv.estimate_total(release)
    assert whole.value == float(read_rows(release.sums["sums-0.csv"])[0]["cases_estimate"])


def test_all_margins_together_tell_the_total_of_the_table(tmp_path: Path) -> None:
    asked = {**OPTIONS, "epsilon": "1/5", "margins": "county,age"}
    release = privatize(make_table(), **asked, out=tmp_path / "r")
    assert len(release.receipt.columns[0].stages) == 3
    found = tv.estimate_total(release)
    stated = [read_rows(content) for content in release.sums.values()]
    totals = [sum(float(row["cases_estimate"]) for row in rows) for rows in stated]
    assert min(totals) < found.value < max(totals)
    assert found == tv.estimate_total(tmp_path / "r") == tv.estimate_total(release, where=())
    some = [tv.estimate_total(release, by=by) for by in ("region", "age")]
    alone = [sum(one.standard_error**2 for one in groups.values()) ** 0.5 for groups in some]
    assert found.standard_error < min(alone)


def test_margins_that_were_not_measured_tell_the_total_of_the_rows(tmp_path: Path) -> None:
    release = privatize(make_table(), **{**OPTIONS, "epsilon": 4}, margins="state,age")
    assert len(release.receipt.columns[0].stages) == 1
    rows = read_rows(release.sums["sums-1.csv"])
    assert tv.estimate_total(release).value == sum(float(row["cases_estimate"]) for row in rows)


KINDS = {
    "regions of a hierarchy": ({"hierarchy": "state,county"}, "region"),
    "ages across a hierarchy": ({"hierarchy": "state,county", "unbiased": True}, "age"),
    "ages and regions": ({"hierarchy": "state", "unbiased": True}, ["age", "region"]),
    "exact states": ({"hierarchy": "state", "invariant": "state", "unbiased": True}, "age"),
    "regions of margins": ({"margins": "state,age"}, "region"),
    "counties across margins": ({"margins": "state,age", "unbiased": True}, "county"),
    "strata": ({"strata": "region", "unbiased": True}, "age"),
    "zeros": (
        {"hierarchy": "state,county", "structural_zeros": "county = c3", "unbiased": True},
        "age",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_any_group_is_right_on_average_and_inside_its_interval(name: str) -> None:
    simulate(name, 150)


@pytest.mark.parametrize("name", ["regions of a hierarchy", "ages across a hierarchy"])
def test_groups_of_a_hierarchy_are_right_on_average(name: str) -> None:
    simulate(name, 25)


def simulate(name: str, runs: int) -> None:
    """Releases of one kind; other bounds than Student's are four standard errors away.

    Student's t of a mean over the releases passes its bound with a chance of 1e-6 for each group.
    """
    asked, by = KINDS[name]
    table = make_table()
    if name == "zeros":
        table.loc[table["county"] == "c3", "cases"] = 0
    truth = table.groupby(by, sort=False)["cases"].sum().to_numpy()
    values, errors, inside = [], [], []
    for _ in range(runs):
        release = privatize(table, **OPTIONS, **asked)
        found = list(tv.estimate_total(release, by=by).values())
        values.append([one.value for one in found])
        errors.append([one.standard_error for one in found])
        inside.append([one.low <= t <= one.high for one, t in zip(found, truth, strict=True)])
    gap = np.array(values) - truth
    spread = gap.std(axis=0, ddof=1)
    far = stats.t.ppf(1 - 5e-7, runs - 1)
    assert (np.abs(gap.mean(axis=0)) <= far * spread / runs**0.5).all()
    if name != "strata":  # there it is a bound: noise at the ends of the range counts half
        ratio = spread / np.mean(errors, axis=0)
        assert np.abs(ratio - 1).max() < 4 * (1.5 / runs) ** 0.5  # noise with heavier tails
    covered = np.mean(inside)
    assert covered >= 0.95 - 4 * (0.95 * 0.05 / (runs * len(truth))) ** 0.5


def test_groups_that_cut_through_measured_ones_need_the_rows_draws() -> None:
    release = privatize(make_table(), **OPTIONS, hierarchy="state,county")
    with pytest.raises(UsageError, match="or with 'unbiased'"):
        tv.estimate_total(release, by="age")
    some = tv.estimate_total(release, where="region != B")
    assert some.groups == 48


def test_rows_draws_beside_a_hierarchy_are_checked(tmp_path: Path) -> None:
    asked = {"hierarchy": "state,county", "unbiased": True, "structural_zeros": "county = c3"}
    table = make_table()
    table.loc[table["county"] == "c3", "cases"] = 0
    release = privatize(table, **OPTIONS, **asked, out=tmp_path / "r")
    assert all(found.ok for found in tv.check_package(tmp_path / "r"))
    assert not release.table.loc[table["county"] == "c3", "cases_unbiased"].any()
    epsilon = next(s for s in release.receipt.columns[0].stages if s.kind == "counts").epsilon
    a = np.exp(-float(epsilon))
    stated = release.receipt.to_dict()["columns"][0]["unbiased"]["variance"]
    assert stated == pytest.approx(2 * a / (1 - a) ** 2, rel=1e-9)


BROKEN = {
    "empty": b"",
    "a line too few": None,
    "a word": b"abc",
    "not finite": b"nan",
    "another form": b"1_000.000",
    "not text": b"\xff\xfe",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_of_sums_is_an_error_in_words(tmp_path: Path, name: str) -> None:
    release = privatize(make_table(), **OPTIONS, hierarchy="state", out=tmp_path / "r")
    path = tmp_path / "r" / "sums-1.csv"
    lines = path.read_bytes().splitlines(keepends=True)
    estimate = read_rows(release.sums["sums-1.csv"])[0]["cases_estimate"].encode()
    content = BROKEN[name]
    if name == "a line too few":
        content = b"".join(lines[:-1])
    elif name != "empty":
        content = path.read_bytes().replace(estimate, content or b"", 1)
    path.write_bytes(content or b"")
    with pytest.raises(PackageError, match="files of sums"):
        tv.estimate_total(tmp_path / "r", by="state")
    assert not all(found.ok for found in tv.check_package(tmp_path / "r"))
