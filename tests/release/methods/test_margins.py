"""Margins: rows add up to two exactly, more are stated; checks, refusals, privacy."""

from __future__ import annotations

import csv
import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.check.package import check_package
from tallyveil.cli import app as program
from tallyveil.errors import ArgumentError, TableError, UsageError
from tallyveil.mechanisms.geometric import noise_variance
from tallyveil.release.methods.margins import Margins
from tallyveil.sums.grouping import Grouping, rake, round_to_margins
from tallyveil.sums.grouping import Margins as MarginGroups
from tests.asking import privatize

OPTIONS = {"count": "cases", "upper": 40, "epsilon": 1, "margins": "age+sex,school"}


def make_table() -> pd.DataFrame:
    draw = np.random.default_rng(3)
    rows = list(itertools.product(range(4), "fm", ["none", "some", "much"], range(3)))
    table = pd.DataFrame(rows, columns=["age", "sex", "school", "part"])
    return table.assign(cases=np.minimum(draw.poisson(draw.gamma(0.8, 8, len(table))), 40))


def read_margin(folder: Path, margin: int) -> list[dict[str, str]]:
    with open(folder / f"sums-{margin}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


MEASURED = ("sums by age+sex", "sums by school")


@pytest.mark.parametrize(("epsilon", "measured"), [("1/10", MEASURED), (2, ()), (5, ())])
def test_two_margins_are_met_exactly_and_the_folder_checks(
    tmp_path: Path, epsilon: object, measured: tuple[str, ...]
) -> None:
    options = {**OPTIONS, "epsilon": epsilon, "keep": "part"}
    release = privatize(make_table(), **options, out=tmp_path / "r")
    released = release.table
    assert released["cases"].between(0, 40).all()
    for margin, names in enumerate((["age", "sex"], ["school"])):
        rows = read_margin(tmp_path / "r", margin)
        expected = released.groupby(names, sort=False)["cases"].sum().tolist()
        assert [int(row["cases"]) for row in rows] == expected
        assert {row["cases_missed"] for row in rows} == {"0"}
        for row in rows:
            low, middle, high = (float(row[f"cases_{n}"]) for n in ("low", "estimate", "high"))
            assert low <= middle <= high
    assert [finding for finding in check_package(tmp_path / "r") if not finding.ok] == []
    (column,) = release.receipt.columns
    assert column.method.name == "margins"
    assert column.missed == (0, 0)
    assert "Every margin is met exactly." in release.files["METHODOLOGY.html"].decode()
    (finding,) = (finding for finding in check_package(tmp_path / "r") if finding.name == "sums")
    assert "miss one by" not in finding.detail
    assert [stage.kind for stage in column.stages] == [*measured, "counts"]
    assert release.receipt.epsilon == Fraction(str(epsilon))


def test_margins_that_are_not_worth_their_share_are_sums_of_the_rows_draws(tmp_path: Path) -> None:
    options = {**OPTIONS, "epsilon": 2, "keep": "part", "unbiased": True}
    result = privatize(make_table(), **options, out=tmp_path / "r")
    drawn = result.table.groupby("school", sort=False)["cases_unbiased"].sum().tolist()
    rows = read_margin(tmp_path / "r", 1)
    assert [float(row["cases_estimate"]) for row in rows] == drawn
    deviation = (24 * noise_variance(2)) ** 0.5
    assert {row["cases_deviation"] for row in rows} == {f"{deviation:.3f}"}
    assert [finding for finding in check_package(tmp_path / "r") if not finding.ok] == []
    findings = tv.estimate_total(tmp_path / "r", by="school").values()
    assert [one.value for one in findings] == drawn


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(1, 300), min_size=2, max_size=4),
    st.integers(2, 4000),
    st.floats(0.05, 8),
    st.sampled_from([5, 50, 10**6]),
)
def test_no_margin_is_worse_than_the_rows_alone_would_make_it(
    seed: int, sizes: list[int], rows: int, epsilon: float, upper: int
) -> None:
    """Whatever rows its groups have: over all of its groups."""
    draw, names = np.random.default_rng(seed), tuple((str(at),) for at in range(len(sizes)))
    groups = [np.unique(draw.geometric(1 / size, rows), return_inverse=True)[1] for size in sizes]
    grouping = Grouping.of(MarginGroups(tuple(groups)))
    complete = Fraction(epsilon).limit_denominator(999)
    alone = rows * noise_variance(complete)
    for tree in Margins(columns=names).list_trees(grouping, complete, upper):
        assert tree.combined.variances[1].sum() <= alone * (1 + 1e-9)


def test_a_margin_may_be_a_list_of_columns() -> None:
    for margins in (
        [["age", "sex"], ["school"]],
        [("age", "sex"), "school"],
        ["age+sex", "school"],
    ):
        result = privatize(make_table(), **{**OPTIONS, "margins": margins}, keep="part")
        assert result.receipt.method.columns == (("age", "sex"), ("school",))
    with pytest.raises(TableError, match=r"[Nn]o column"):
        privatize(make_table(), **{**OPTIONS, "margins": [["a\ud800"], ["b"]]}, keep="part")


def test_page_receipt_and_check_say_by_how_much_margins_are_missed(tmp_path: Path) -> None:
    """Margins that cross in few rows of small counts, and at a small epsilon cannot be met."""
    table = make_table().iloc[::5].assign(cases=lambda rows: np.minimum(rows["cases"], 3))
    options = {"count": "cases", "upper": 3, "epsilon": "1/5", "margins": "age,sex+school,part"}
    release = privatize(table, **options, entropy=tv.SeededNotPrivate(1), out=tmp_path / "r")
    missed = [
        max(abs(int(row["cases_missed"])) for row in read_margin(tmp_path / "r", margin))
        for margin in range(3)
    ]
    (column,) = release.receipt.columns
    assert column.missed == tuple(missed)
    assert missed[0] or missed[1]
    page = release.files["METHODOLOGY.html"].decode()
    assert "first two margins are met exactly" not in page
    assert f"within {max(missed)}" in page
    (finding,) = (finding for finding in check_package(tmp_path / "r") if finding.name == "sums")
    assert finding.ok
    assert f"miss one by {max(missed)} at most" in finding.detail


def test_margins_are_nearer_than_sums_of_noisy_rows() -> None:
    table = make_table()
    truth = table.groupby("school", sort=False)["cases"].sum().to_numpy()

    def measure(**keys: object) -> float:
        gaps = []
        for seed in range(10):
            keys["entropy"] = tv.SeededNotPrivate(seed)
            options = {"count": "cases", "upper": 40, "epsilon": "1/4", "keep": "all", **keys}
            released = privatize(table, **options).table
            gaps.append(released.groupby("school", sort=False)["cases"].sum().to_numpy() - truth)
        return float(np.sqrt(np.mean(np.square(gaps))))

    assert measure(margins="age+sex,school") < measure(method="geometric")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"margins": "cases,age"}, ArgumentError, "'margins' must .* not the count column"),
        ({"margins": "planet,age"}, TableError, "planet"),
        ({"margins": "age+sex+school+part,wave"}, ArgumentError, "tells all rows apart"),
        ({"margins": "age,decade"}, ArgumentError, "must cross.*name a hierarchy"),
        ({"margins": "sex,school,age,decade"}, ArgumentError, "must cross.*age and decade"),
        ({"upper": None}, ArgumentError, "'upper' must be given for the method 'margins'"),
        ({"margins": "cases_missed,sex"}, UsageError, "column 'cases_missed' already"),
        (
            {"margins": None, "strata": "cases"},
            ArgumentError,
            "'strata' must .* not the count column",
        ),
        ({"margins": None, "strata": "planet"}, TableError, "planet"),
        ({"margins": None, "strata": "age", "upper": None}, ArgumentError, "upper"),
    ],
)
def test_bad_requests_are_refused_before_the_debit(
    paid: dict, change: dict, error: type[Exception], words: str
) -> None:
    table = make_table().assign(wave=1, decade=lambda t: t["age"] // 2)
    with pytest.raises(error, match=words):
        privatize(table, **{**OPTIONS, **paid, "keep": "all", **change})


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 5), st.integers(1, 3))
def test_any_two_crossing_margins_are_met(seed: int, first: int, second: int, each: int) -> None:
    draw = np.random.default_rng(seed)
    grid = np.indices((first, second, each)).reshape(3, -1)
    margins = MarginGroups((grid[0], grid[1]))
    truth = draw.poisson(draw.gamma(0.5, 6, grid.shape[1]))
    targets = margins.sum_up(truth)[:2]
    cells = rake(draw.uniform(0, 9, len(truth)), margins, targets, 1000)
    findings = round_to_margins(cells, margins, targets, 1000)
    assert findings.min() >= 0
    for sums, target in zip(margins.sum_up(findings)[:2], targets, strict=True):
        assert sums.tolist() == target.tolist()


def test_margins_and_strata_of_very_many_columns_keep_their_groups_apart() -> None:
    rows = range(256)
    pairs = {f"c{at}": [str(row // 2 if at else row % 2) for row in rows] for at in range(24)}
    table = pd.DataFrame({**pairs, "cases": 1})
    options = {"count": "cases", "upper": 9, "epsilon": 1, "keep": "half"}
    few = [f"c{at}" for at in range(24)]
    table = pd.concat([table.assign(half=half) for half in "ab"], ignore_index=True)
    keys = {"margins": f"{'+'.join(few)},half"}
    levels = privatize(table, **options, **keys).receipt.sums.levels
    assert [level.sums for level in levels] == [256, 2]
    keys = {"strata": ",".join(few)}
    assert privatize(table, **options, **keys).receipt.strata == 256


@pytest.mark.parametrize(("epsilon", "is_told"), [("1/10", False), (2, True)])
def test_the_publisher_and_the_page_say_that_no_margin_is_measured(
    tmp_path: Path, epsilon: object, is_told: bool
) -> None:
    make_table().to_csv(tmp_path / "t.csv", index=False)
    words = ["--count", "cases", "--upper", "40", "--margins", "age+sex,school", "--keep", "part"]
    words += ["--epsilon", str(epsilon), "--out", str(tmp_path / "r")]
    done = CliRunner().invoke(program.app, ["privatize", str(tmp_path / "t.csv"), *words])
    assert done.exit_code == 0
    assert ("as accurate as separate ones" in " ".join(done.stderr.split())) == is_told
    assert ("noise on margins and counts" in done.stdout) != is_told
    page = " ".join((tmp_path / "r" / "METHODOLOGY.html").read_text(encoding="utf-8").split())
    assert ("Sums that are not exact were added up from them" in page) == is_told
    assert ("Sums of every margin and single counts were protected" in page) != is_told
