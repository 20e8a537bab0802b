"""Strata: every public group keeps its own distribution, both doors, checks, refusals, privacy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tallyveil.check.package import check_package
from tallyveil.release.methods.strata import Strata
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize

OPTIONS = {"count": "cases", "upper": 30, "epsilon": 1, "strata": "region", "keep": "area"}


def make_table(rows: int = 600) -> pd.DataFrame:
    """A region with many cases and two with few."""
    draw = np.random.default_rng(2)
    region = np.repeat(["city", "land", "sea"], rows // 3)
    mean = np.where(region == "city", 9.0, 0.5)
    cases = np.minimum(draw.poisson(draw.gamma(2, mean / 2)), 30)
    return pd.DataFrame({"region": region, "area": range(len(region)), "cases": cases})


def measure(released: pd.DataFrame, table: pd.DataFrame) -> float:
    """The mean distance of distributions within regions."""
    gaps = [
        np.abs(np.sort(released.loc[rows, "cases"]) - np.sort(table.loc[rows, "cases"])).mean()
        for rows in table.groupby("region").groups.values()
    ]
    return float(np.mean(gaps))


def test_regions_keep_their_own_distributions(tmp_path: Path) -> None:
    table, half = make_table(), {**OPTIONS, "epsilon": "1/2"}
    plain = {**half, "strata": None, "keep": ["area", "region"], "method": "preserve"}

    def average(keys: dict[str, object]) -> float:
        seeds = map(SeededNotPrivate, range(8))
        result = (privatize(table, **keys, entropy=seed).table for seed in seeds)
        return float(np.mean([measure(released, table) for released in result]))

    assert average(half) < 0.7 * average(plain)


def test_the_folder_states_the_strata_and_checks(tmp_path: Path) -> None:
    release = privatize(make_table(), **OPTIONS, out=tmp_path / "r")
    assert all(finding.ok for finding in check_package(tmp_path / "r"))
    assert release.receipt.strata == 3
    (column,) = release.receipt.columns
    assert column.method == Strata(columns="region")
    assert [stage.kind for stage in column.stages] == ["distribution", "counts"]
    assert release.receipt.epsilon == 1
