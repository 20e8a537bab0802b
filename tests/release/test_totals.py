"""Totals of groups: intervals hold at least as often as they say, for every method and size."""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tallyveil as tv
from tallyveil.errors import ArgumentError, PackageError, UsageError
from tallyveil.reading.unbiased import _reach_of_laplace_sum, reach_of_sum
from tallyveil.release.totals import GeometricAdder, MatrixAdder
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize

ROWS = 1200
STATES = np.array([f"state {i % 24:02d}" for i in range(ROWS)])


def table(upper):
    """Every state has another level: zeros here, hundreds there, one of few rows."""
    level = (np.arange(ROWS) % 24) / 6
    tail = np.floor(level * 0.5 / (1 - ((np.arange(ROWS) * 7919) % ROWS + 0.5) / ROWS) ** 0.9)
    counts = np.minimum(tail, 3 * upper).astype(int)
    return pd.DataFrame({"area": np.arange(ROWS), "state": STATES, "cases": counts})


def publish(frame, **options):
    return privatize(frame, **{"count": "cases", "keep": "all", "epsilon": 1, **options})


@pytest.mark.parametrize("epsilon", ["1/4", "1", "3"])
@pytest.mark.parametrize(
    ("method", "upper"),
    [("geometric", 40), ("preserve", 40), ("geometric", 2000), ("preserve", 2000), ("fair", 40)],
)
def test_intervals_of_states_hold(method, upper, epsilon):
    """24 states in 12 releases: at least 95 % less four standard errors of 288 (0.013 each)."""
    frame = table(upper)
    true = frame.cases.clip(upper=upper).groupby(frame.state).sum()
    held, errors, complete, keys = [], [], [], {"epsilon": epsilon, "method": method}
    for seed in range(12):
        rel = publish(frame, upper=upper, **keys, entropy=SeededNotPrivate(seed))
        estimates = tv.estimate_total(rel, by="state")
        assert list(estimates) == list(dict.fromkeys(STATES))
        held += [
            estimates[state].low <= total <= estimates[state].high for state, total in true.items()
        ]
        errors.append([estimates[state].value - total for state, total in true.items()])
        complete.append(tv.estimate_total(rel))
    assert np.mean(held) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / len(held))
    stated = np.array([one.standard_error for one in complete])
    missed = np.array([one.value for one in complete]) - true.sum()
    assert abs(missed.mean()) <= 4 * stated.mean() / np.sqrt(len(complete)), "the whole is unbiased"
    if method != "preserve":  # no state is wrong on average
        seen = np.array(errors)
        assert (np.abs(seen.mean(axis=0)) <= 5 * seen.std(axis=0) / np.sqrt(12) + 0.5).all()


def draw_groups(certified, adder, kind, seed):
    """Estimates of 1,000 groups of the same few rows; so many hold the truth, less 4 errors."""
    true = np.tile(kind.astype(int), 1000)
    drawn = certified.release(true, SeededNotPrivate(seed)).reshape(-1, len(kind))
    estimates = [adder.add(group, 0.95) for group in drawn]
    assert np.mean([one.low <= kind.sum() <= one.high for one in estimates]) >= 0.95 - 4 * 0.0069
    return estimates


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 12, 60])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_small_groups_are_covered_too(rows, epsilon):
    """All zero, all one, and mixed; four standard errors."""
    a = np.exp(-epsilon)
    certified = tv.certify_geometric(tv.Query.count(20), str(epsilon))
    for kind in (np.zeros(rows), np.ones(rows), np.arange(rows) % 3 * 5.0, np.full(rows, 20.0)):
        estimates = draw_groups(certified, GeometricAdder(20, epsilon), kind, rows)
        value = np.array([one.value for one in estimates])
        assert abs(value.mean() - kind.sum()) <= 4 * value.std() / np.sqrt(1000)
        bound = np.sqrt(2 * a * rows) / (1 - a)
        assert all(one.standard_error <= bound * (1 + 1e-9) for one in estimates)


@pytest.mark.parametrize(
    ("rows", "make"), [(1, tv.fair), (20, tv.fair), (3, tv.exponential), (80, tv.exponential)]
)
def test_any_matrix_with_an_unbiased_estimator_is_added(rows, make):
    mechanism = make(tv.Query.count(6), 1)
    for kind in (np.zeros(rows), np.full(rows, 3.0), np.arange(rows) % 7.0):
        draw_groups(tv.certify(mechanism), MatrixAdder(mechanism), kind, rows)


@pytest.mark.parametrize("published", [[9], [0], [9, 9], [0, 0, 0]])
def test_an_estimate_lies_inside_its_own_interval(published):
    """Also where all rows are at an end of the range, such as the one district of a capital."""
    estimates = GeometricAdder(9, 0.5).add(np.array(published), 0.5)
    assert estimates.low <= estimates.value <= estimates.high


def test_a_matrix_without_an_unbiased_estimator_gives_what_no_row_contradicts():
    estimates = MatrixAdder(tv.uniform(tv.Query.count(6), 1)).add(np.array([3, 4]), 0.95)
    assert (estimates.low, estimates.high) == (0, 12)
    assert np.isnan(estimates.standard_error)


@pytest.mark.parametrize("rows", [1, 2, 7, 300])
def test_the_reach_of_a_sum_is_its_quantile(rows):
    """Against sums of plain noise, 20,000 of them; four standard errors."""
    reach = reach_of_sum(rows, 0.5, 0.95)
    noise = tv.geometric_noise(20_000 * rows, "0.5", SeededNotPrivate(1)).reshape(-1, rows)
    inside = np.abs(noise.sum(axis=1))
    assert (inside <= reach).mean() >= 0.95 - 4 * 0.00154
    assert (inside <= reach - 1).mean() <= 0.95 + 4 * 0.00154


@pytest.mark.parametrize("rows", [1, 2, 3, 40, 1999])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-6])
def test_continuous_noise_reaches_as_far_as_wide_geometric_noise(rows, confidence):
    """Never less, and more by a relative epsilon^2 and one step of rounding at the most."""
    for epsilon in (0.05, 0.01):
        exact = reach_of_sum(rows, epsilon, confidence)
        bound = math.ceil(_reach_of_laplace_sum(rows, confidence) / epsilon)
        assert exact <= bound <= exact * (1 + epsilon**2) + 1


def test_folder_release_and_command_line_agree(tmp_path):
    frame = table(60)
    for method in ("preserve", "geometric"):
        folder = tmp_path / method
        rel = publish(frame, upper=60, method=method, out=folder)
        estimates = tv.estimate_total(folder, by=["state"], where="area < 600")
        assert estimates == tv.estimate_total(rel, by="state", where=["area < 600"])
        assert estimates["state 03"].groups == 25
        words = ["interpret", str(folder), "--by", "state", "--where", "area < 600", "--json"]
        command = [sys.executable, "-m", "tallyveil", *words]
        done = subprocess.run(command, capture_output=True, check=True)
        message = json.loads(done.stdout)["groups"]
        assert [one["low"] for one in message] == [one.low for one in estimates.values()]
        total, stated = tv.estimate_total(folder), rel.receipt.columns[0].total
        assert (total.value, total.low, total.high) == pytest.approx(
            (stated.value, stated.low, stated.high), abs=1e-6
        )
        page = (folder / "METHODOLOGY.html").read_text()
        assert f"interval {round(total.low):,} to {round(total.high):,}" in page
        assert all(finding.ok for finding in tv.check_package(folder))


def test_levels_of_a_ladder_are_added():
    for rel in privatize([0, 3, 5, 2] * 50, epsilons=[2, 1], upper=9):
        total = tv.estimate_total(rel)
        assert abs(total.value - 500) <= 6 * total.standard_error


@pytest.mark.parametrize(
    ("values", "options", "error", "words"),
    [
        ((), {"by": "cases"}, ArgumentError, "published unchanged"),
        ((), {"where": "cases > 3"}, ArgumentError, "published unchanged"),
        ((), {"by": "county"}, ArgumentError, "published unchanged"),
        ((), {"where": "area > 99999"}, ArgumentError, "at least one row"),
        ((), {"column": "nope"}, ArgumentError, "one column of counts"),
        (([1, 2],), {}, UsageError, "holds its own"),
    ],
)
def test_groups_that_the_noise_chose_are_refused(values, options, error, words):
    with pytest.raises(error, match=words):
        tv.estimate_total(publish(table(40), upper=40), *values, **options)
    with pytest.raises(UsageError, match="for releases"):
        tv.estimate_total(tv.geometric(tv.Query.count(3), 1), [1], by="state")


@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_structural_zeros_add_nothing(method):
    frame = table(40)
    frame.loc[frame.state == "state 00", "cases"] = 0
    rel = publish(frame, upper=40, method=method, structural_zeros="state == 'state 00'")
    estimates = tv.estimate_total(rel, by="state")["state 00"]
    assert (estimates.value, estimates.low, estimates.high, estimates.groups) == (0, 0, 0, 50)
    complete, stated = tv.estimate_total(rel), rel.receipt.columns[0].total
    assert (complete.low, complete.high) == (stated.low, stated.high)


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
            estimates = list(tv.estimate_total(source, by=by).values())
            stated = read_rows(release.sums[f"sums-{level}.csv"])
            assert [one.value for one in estimates] == [
                float(row["cases_estimate"]) for row in stated
            ]
            for one, row in zip(estimates, stated, strict=True):
                deviation = float(row["cases_deviation"])
                assert one.standard_error == pytest.approx(deviation, abs=0.0005)
                assert one.low <= max(float(row["cases_low"]), 0) + 1
                assert one.high >= float(row["cases_high"]) - 1
    complete = tv.estimate_total(release)
    assert complete.value == float(read_rows(release.sums["sums-0.csv"])[0]["cases_estimate"])


def test_all_margins_together_tell_the_total_of_the_table(tmp_path: Path) -> None:
    keys = {**OPTIONS, "epsilon": "1/5", "margins": "county,age"}
    release = privatize(make_table(), **keys, out=tmp_path / "r")
    assert len(release.receipt.columns[0].stages) == 3
    estimates = tv.estimate_total(release)
    stated = [read_rows(content) for content in release.sums.values()]
    totals = [sum(float(row["cases_estimate"]) for row in rows) for rows in stated]
    assert min(totals) < estimates.value < max(totals)
    assert estimates == tv.estimate_total(tmp_path / "r") == tv.estimate_total(release, where=())
    some = [tv.estimate_total(release, by=by) for by in ("region", "age")]
    alone = [sum(one.standard_error**2 for one in groups.values()) ** 0.5 for groups in some]
    assert estimates.standard_error < min(alone)


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


FAST = ["regions of a hierarchy", "ages across a hierarchy"]
SLOW = [pytest.param(name, 150, marks=pytest.mark.slow) for name in KINDS]


@pytest.mark.parametrize(("name", "runs"), [*((name, 25) for name in FAST), *SLOW])
def test_any_group_is_right_on_average_and_inside_its_interval(name: str, runs: int) -> None:
    """Releases of one kind; other bounds than Student's are four standard errors away.

    Student's t of a mean over the releases passes its bound with a chance of 1e-6 for each group.
    """
    keys, by = KINDS[name]
    table = make_table()
    if name == "zeros":
        table.loc[table["county"] == "c3", "cases"] = 0
    truth = table.groupby(by, sort=False)["cases"].sum().to_numpy()
    values, errors, inside = [], [], []
    for _ in range(runs):
        release = privatize(table, **OPTIONS, **keys)
        estimates = list(tv.estimate_total(release, by=by).values())
        values.append([one.value for one in estimates])
        errors.append([one.standard_error for one in estimates])
        inside.append([one.low <= t <= one.high for one, t in zip(estimates, truth, strict=True)])
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


@pytest.mark.parametrize("content", [b"abc", b"nan", b"1_000.000", b"\xff\xfe", "short", "empty"])
def test_a_broken_file_of_sums_is_an_error_in_words(tmp_path: Path, content: bytes | str) -> None:
    release = privatize(make_table(), **OPTIONS, hierarchy="state", out=tmp_path / "r")
    path = tmp_path / "r" / "sums-1.csv"
    good = path.read_bytes()
    if isinstance(content, bytes):
        estimate = read_rows(release.sums["sums-1.csv"])[0]["cases_estimate"].encode()
        path.write_bytes(good.replace(estimate, content, 1))
    else:
        path.write_bytes(b"" if content == "empty" else b"".join(good.splitlines(True)[:-1]))
    with pytest.raises(PackageError, match="files of sums"):
        tv.estimate_total(tmp_path / "r", by="state")
    assert not all(finding.ok for finding in tv.check_package(tmp_path / "r"))
