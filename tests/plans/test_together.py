"""Columns ranked by each other's draws: distributions stay, errors fall, documents say it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.sampling.entropy import SeededNotPrivate

TWO = ["first", "second"]


def make_table(rows: int = 600) -> pd.DataFrame:
    draw = np.random.default_rng(6)
    rate = draw.gamma(0.6, 12, rows)
    one, two = (np.minimum(draw.poisson(rate), 60) for _ in range(2))
    return pd.DataFrame(
        {"row": range(rows), "state": np.arange(rows) % 5, TWO[0]: one, TWO[1]: two}
    )


def release(table: Any, seed: int | None = None, **extra: Any) -> tv.results.Release:
    options = {"count": TWO, "upper": 60, "epsilon": "1/2", "keep": "all", "together": True}
    given = {} if seed is None else {"entropy": SeededNotPrivate(seed)}
    return tv.privatize(table, **{**options, **given, **extra})


@pytest.mark.parametrize("extra", [{}, {"unbiased": True}, {"zero": "state = 3"}])
def test_the_release_says_it_and_checks(tmp_path: Path, extra: dict[str, Any]) -> None:
    table = make_table()
    if "zero" in extra:
        table.loc[table["state"] == 3, TWO] = 0
    made = release(table, out=tmp_path / "r", **extra)
    assert [column.told_by for column in made.receipt.columns] == TWO[::-1]
    assert [column.method for column in made.receipt.columns] == ["preserve"] * 2
    assert float(made.receipt.epsilon) == 1.0, "it costs nothing more"
    assert [found for found in check_package(tmp_path / "r") if not found.ok] == []
    page = (tmp_path / "r" / "METHODOLOGY.html").read_text("utf-8")
    assert "Rows were ranked by their draws of this column and of second together." in page
    if "zero" in extra:
        assert (made.table.loc[made.table["state"] == 3, TWO] == 0).all().all()


def test_errors_of_both_fall_and_distributions_stay() -> None:
    table, errors, apart = make_table(), [], []
    for number in range(4):
        seed = number
        both, alone = release(table, seed).table, release(table, seed, together=False).table
        for name in TWO:  # the same draws: the same bits are used before counts are handed out
            assert sorted(both[name]) == sorted(alone[name])
        errors.append([np.abs(both[name] - table[name]).mean() for name in TWO])
        apart.append([np.abs(alone[name] - table[name]).mean() for name in TWO])
    assert (np.mean(errors, axis=0) < 0.95 * np.mean(apart, axis=0)).all()


def test_columns_apart_are_released_as_without_it() -> None:
    table = make_table()
    table["second"] = np.random.default_rng(7).permutation(table["second"])
    seed = 7
    made, alone = release(table, seed), release(table, seed, together=False)
    assert [column.told_by for column in made.receipt.columns] == ["", ""]
    assert made.table.equals(alone.table)


def test_sums_of_groups_need_the_draws() -> None:
    table = make_table()
    made = release(table)
    with pytest.raises(UsageError, match="were ranked together with second"):
        tv.estimate_total(made, by="state", column="first")
    page = made.files["METHODOLOGY.html"].decode()
    assert "rows were ranked together with second" in page
    assert "--by" not in page
    whole = tv.estimate_total(made, column="first")
    assert whole.low <= table["first"].sum() <= whole.high
    shown = release(table, unbiased=True)
    groups = tv.estimate_total(shown, by="state", column="first")
    assert len(groups) == 5


@pytest.mark.parametrize("changed", ["", "third"])
def test_a_forged_partner_is_found(tmp_path: Path, changed: str) -> None:
    release(make_table(), out=tmp_path / "r")
    receipt = tmp_path / "r" / "receipt.json"
    data = json.loads(receipt.read_text("utf-8"))
    data["columns"][0]["told_by"] = changed
    receipt.write_text(json.dumps(data, indent=2), "utf-8")
    assert [found for found in check_package(tmp_path / "r") if not found.ok]


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ({"nested": TWO}, "'together' and 'nested'"),
        ({"hierarchy": "state"}, "'together' and 'hierarchy'"),
        ({"strata": "state"}, "'together' and 'strata'"),
        ({"best": True}, "'together' and 'best'"),
        ({"tradeoff": "1/2"}, "'together' and 'tradeoff'"),
        ({"method": "geometric"}, "method preserve"),
    ],
)
def test_what_does_not_go_with_it_is_refused(extra: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        release(make_table(), **extra)


def test_one_column_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'together' must be given for several columns"):
        release(make_table(), count="first")
