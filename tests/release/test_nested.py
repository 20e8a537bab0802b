"""Nested columns: every published row keeps their order, and documents say what that did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.release.column import assign_below
from tests.asking import privatize

NESTED = ["deaths", "hospitalised", "cases"]


def make_table(rows: int = 400) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    cases = np.minimum(draw.poisson(draw.gamma(0.5, 8, rows)), 60)
    hospitalised = draw.binomial(cases, 0.5)
    county, deaths = np.arange(rows), draw.binomial(hospitalised, 0.5)
    table = pd.DataFrame({"county": county, "state": county % 5, "cases": cases})
    return table.assign(deaths=deaths, hospitalised=hospitalised)


def release(table: Any, **extra: Any) -> tv.results.Release:
    options = {"count": NESTED, "upper": 60, "epsilon": "1/2", "keep": "all", "nested": NESTED}
    return privatize(table, **{**options, **extra})


@pytest.mark.parametrize("method", ["preserve", "geometric"])
def test_documents_say_what_the_order_did(tmp_path: Path, method: str) -> None:
    result = release(make_table(), method=method, out=tmp_path / "r")
    assert float(result.receipt.epsilon) == 1.5, "the order costs nothing more"
    details = {finding.name: finding.detail for finding in check_package(tmp_path / "r")}
    assert "no row with more hospitalised than cases" in details["published counts"]
    columns = result.receipt.columns
    assert [column.at_most for column in columns] == ["hospitalised", "cases", ""]
    assert "hospitalised" in columns[0].steps[-1]
    if method == "geometric":  # the largest is published as without the order
        assert columns[2].matching is None
        assert columns[2].spread is not None
    page = (tmp_path / "r" / "METHODOLOGY.html").read_text("utf-8")
    assert "no row exceeds its released count of hospitalised" in page


def test_a_table_that_breaks_the_order_is_released_all_the_same() -> None:
    table = make_table()
    table["deaths"] = 60 - table["cases"]
    with pytest.warns(UserWarning, match="'deaths' above 'hospitalised'"):
        out = release(table, method="geometric").table
    assert (out["deaths"] <= out["hospitalised"]).all()


def test_a_column_far_above_the_one_that_bounds_it_is_released(tmp_path: Path) -> None:
    """Every draw of the smaller column lies beyond the range of the larger, which has one row."""
    table = pd.DataFrame({"cases": [0], "deaths": [10**7]})
    options: dict[str, Any] = {"count": ["cases", "deaths"], "nested": "deaths,cases"}
    with pytest.warns(UserWarning, match="'deaths' above 'cases'"):
        out = privatize(table, **options, epsilon=1, out=tmp_path / "out").table
    assert (out["deaths"] <= out["cases"]).all()
    assert all(finding.ok for finding in check_package(tmp_path / "out"))


def test_where_ranks_are_matched_the_distribution_stays() -> None:
    table = make_table(2000)
    gaps: dict[str, list[float]] = {"nested": [], "plain": []}
    rows: dict[str, list[float]] = {"nested": [], "plain": []}
    for _ in range(5):
        for name, extra in (("nested", {}), ("plain", {"nested": None})):
            out = release(table, method="preserve", **extra).table["deaths"].to_numpy()
            true = table["deaths"].to_numpy()
            gaps[name].append(np.abs(np.sort(out) - np.sort(true)).mean())
            rows[name].append(np.abs(out - true).mean())
    error = np.std(gaps["plain"], ddof=1) + np.std(gaps["nested"], ddof=1)
    assert np.mean(gaps["nested"]) < np.mean(gaps["plain"]) + 3 * error
    assert np.mean(rows["nested"]) < np.mean(rows["plain"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=30))
def test_handing_out_keeps_limits_and_lowers_only_what_it_must(
    rows: list[tuple[int, int, int]],
) -> None:
    drawn, counts, limits = (np.array(column) for column in zip(*rows, strict=True))
    result = assign_below(drawn, counts, limits, np.arange(len(rows)))
    assert (result <= limits).all()
    for value in range(1, 10):  # as many rows as can be have at least this much
        most = min(int((limits >= value).sum()), int((counts >= value).sum()))
        assert (result >= value).sum() == most
    if (np.sort(counts) <= np.sort(limits)).all():
        assert sorted(result) == sorted(counts)
    if (counts <= limits).all() and (np.diff(counts[np.lexsort((counts, drawn))]) >= 0).all():
        assert (result == counts).all()


def test_check_finds_a_row_out_of_order(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    out = release(make_table(), method="geometric", out=folder).table
    # exchange the counts of two rows: every distribution stays, the order does not
    first = int((out["deaths"]).argmax())
    second = int((out["cases"]).argmin())
    deaths = out["deaths"].to_numpy().copy()
    deaths[[first, second]] = deaths[[second, first]]
    out.assign(deaths=deaths).to_csv(folder / "data.csv", index=False, lineterminator="\n")
    details = {finding.name: finding.detail for finding in check_package(folder)}
    assert details["published counts"] == "a row has more of deaths than of hospitalised"


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"nested": "deaths"}, "at least two columns"),
        ({"nested": "deaths,deaths"}, "each once"),
        ({"nested": "deaths,state"}, "name columns of counts"),
        ({"nested": ""}, "at least one column"),
        ({"hierarchy": "state"}, "not go with the method 'hierarchy'"),
        ({"margins": "state,county"}, "not go with the method 'margins'"),
        ({"method": "fair"}, "only with 'auto', 'preserve' and 'geometric'"),
        ({"epsilon": None, "accuracy": 3}, "exclude each other: leave one of them out"),
    ],
)
def test_bad_input_is_refused(tmp_path: Path, extra: dict[str, Any], words: str) -> None:
    with pytest.raises((ArgumentError, UsageError), match=words):
        release(make_table(), out=tmp_path / "r", **extra)
    assert not (tmp_path / "r").exists()


def test_columns_in_the_wrong_order_are_remarked_on_to_the_publisher_alone(tmp_path: Path) -> None:
    table, folder = make_table(), tmp_path / "r"
    with pytest.warns(UserWarning, match="'cases' above 'hospitalised'.* only to you"):
        release(table, nested=NESTED[::-1], out=folder)
    assert not [one for one in folder.iterdir() if b"only to you" in one.read_bytes()]
