"""Totals of groups: intervals hold at least as often as they say, for every method and size."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.reading.unbiased import _reach_of_laplace_sum, reach_of_sum
from tallyveil.release.totals import GeometricAdder, MatrixAdder
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize

ROWS = 1200
STATES = np.array([f"state {i % 24:02d}" for i in range(ROWS)])


def table(upper):
    """Every state has another level: zeros here, hundreds there, one of few rows."""
    import pandas as pd

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
    held, errors, whole = [], [], []
    for seed in range(12):
        entropy = SeededNotPrivate(seed)
        rel = publish(frame, upper=upper, epsilon=epsilon, method=method, entropy=entropy)
        found = tv.estimate_total(rel, by="state")
        assert list(found) == list(dict.fromkeys(STATES))
        held += [found[state].low <= total <= found[state].high for state, total in true.items()]
        errors.append([found[state].value - total for state, total in true.items()])
        whole.append(tv.estimate_total(rel))
    assert np.mean(held) >= 0.95 - 4 * np.sqrt(0.05 * 0.95 / len(held))
    stated = np.array([one.standard_error for one in whole])
    missed = np.array([one.value for one in whole]) - true.sum()
    assert abs(missed.mean()) <= 4 * stated.mean() / np.sqrt(len(whole)), "the whole is unbiased"
    if method != "preserve":  # no state is wrong on average
        seen = np.array(errors)
        assert (np.abs(seen.mean(axis=0)) <= 5 * seen.std(axis=0) / np.sqrt(12) + 0.5).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 12, 60])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_small_groups_are_covered_too(rows, epsilon):
    """1,000 groups of a few rows, all zero, all one, and mixed; four standard errors (0.0069)."""
    a = np.exp(-epsilon)
    for kind in (np.zeros(rows), np.ones(rows), np.arange(rows) % 3 * 5.0, np.full(rows, 20.0)):
        true = np.tile(kind.astype(int), 1000)
        certified = tv.certify_geometric(tv.Query.count(20), str(epsilon))
        drawn = certified.release(true, SeededNotPrivate(rows)).reshape(-1, rows)
        adder = GeometricAdder(20, epsilon)
        found = [adder.add(group, 0.95) for group in drawn]
        held = [one.low <= kind.sum() <= one.high for one in found]
        assert np.mean(held) >= 0.95 - 4 * 0.0069
        value = np.array([one.value for one in found])
        assert abs(value.mean() - kind.sum()) <= 4 * value.std() / np.sqrt(1000)
        bound = np.sqrt(2 * a * rows) / (1 - a)
        assert all(one.standard_error <= bound * (1 + 1e-9) for one in found)


@pytest.mark.parametrize("rows", [1, 3, 20, 80])
@pytest.mark.parametrize("make", [tv.fair, tv.exponential], ids=["fair", "exponential"])
def test_any_matrix_with_an_unbiased_estimator_is_added(rows, make):
    mechanism = make(tv.Query.count(6), 1)
    draw = tv.certify(mechanism)
    for kind in (np.zeros(rows), np.full(rows, 3.0), np.arange(rows) % 7.0):
        true = np.tile(kind.astype(int), 1000)
        drawn = draw.release(true, SeededNotPrivate(rows)).reshape(-1, rows)
        held = [
            one.low <= kind.sum() <= one.high
            for one in (MatrixAdder(mechanism).add(group, 0.95) for group in drawn)
        ]
        assert np.mean(held) >= 0.95 - 4 * 0.0069


@pytest.mark.parametrize("published", [[9], [0], [9, 9], [0, 0, 0]])
def test_an_estimate_lies_inside_its_own_interval(published):
    """Also where all rows are at an end of the range, such as the one district of a capital."""
    found = GeometricAdder(9, 0.5).add(np.array(published), 0.5)
    assert found.low <= found.value <= found.high


def test_a_matrix_without_an_unbiased_estimator_gives_what_no_row_contradicts():
    found = MatrixAdder(tv.uniform(tv.Query.count(6), 1)).add(np.array([3, 4]), 0.95)
    assert (found.low, found.high) == (0, 12)
    assert np.isnan(found.standard_error)


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
        found = tv.estimate_total(folder, by=["state"], where="area < 600")
        assert found == tv.estimate_total(rel, by="state", where=["area < 600"])
        assert found["state 03"].groups == 25
        words = ["interpret", str(folder), "--by", "state", "--where", "area < 600", "--json"]
        command = [sys.executable, "-m", "tallyveil", *words]
        done = subprocess.run(command, capture_output=True, check=True)
        told = json.loads(done.stdout)["groups"]
        assert [one["low"] for one in told] == [one.low for one in found.values()]
        total, stated = tv.estimate_total(folder), rel.receipt.columns[0].total
        assert (total.value, total.low, total.high) == pytest.approx(
            (stated["value"], stated["low"], stated["high"]), abs=1e-6
        )
        page = (folder / "METHODOLOGY.html").read_text()
        assert f"interval {round(total.low):,} to {round(total.high):,}" in page
        assert all(finding.ok for finding in tv.check_package(folder))


def test_levels_of_a_ladder_are_added():
    for rel in privatize([0, 3, 5, 2] * 50, epsilons=[2, 1], upper=9):
        total = tv.estimate_total(rel)
        assert abs(total.value - 500) <= 6 * total.standard_error


def test_groups_that_the_noise_chose_are_refused():
    rel = publish(table(40), upper=40)
    for options in ({"by": "cases"}, {"where": "cases > 3"}, {"by": "county"}):
        with pytest.raises(ArgumentError, match="published unchanged"):
            tv.estimate_total(rel, **options)
    with pytest.raises(ArgumentError, match="at least one row"):
        tv.estimate_total(rel, where="area > 99999")
    with pytest.raises(ArgumentError, match="one column of counts"):
        tv.estimate_total(rel, column="nope")
    with pytest.raises(UsageError, match="holds its own"):
        tv.estimate_total(rel, [1, 2])
    with pytest.raises(UsageError, match="for releases"):
        tv.estimate_total(tv.geometric(tv.Query.count(3), 1), [1], by="state")


@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_structural_zeros_add_nothing(method):
    frame = table(40)
    frame.loc[frame.state == "state 00", "cases"] = 0
    rel = publish(frame, upper=40, method=method, structural_zeros="state == 'state 00'")
    found = tv.estimate_total(rel, by="state")["state 00"]
    assert (found.value, found.low, found.high, found.groups) == (0, 0, 0, 50)
    whole, stated = tv.estimate_total(rel), rel.receipt.columns[0].total
    assert (whole.low, whole.high) == (stated["low"], stated["high"])
