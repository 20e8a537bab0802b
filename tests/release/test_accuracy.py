"""The stated accuracy is the true one: every figure is measured on tables like real ones.

Tables are generated: many zeros, long tails, few rows and many, ranges of 40, 2,000 and 1,000,000.
Where a figure is exact the tolerance is rounding; where it is measured, it is four standard errors.
"""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli import app as program
from tallyveil.release.accuracy import (
    describe_optimality,
    estimate_spread,
    expect_matched,
    geometric_accuracy,
    matched_mechanism,
    predict_release,
)
from tallyveil.release.column import Matching
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize


def shuffled(counts):
    return counts[SeededNotPrivate(1).permutation(len(counts))]


def quantiles(rows):
    return (np.arange(rows) + 0.5) / rows


def cases(rows=4000, top=40):
    """Cases by county: many zeros, a long tail."""
    tail = np.floor(6 * (-np.log(1 - quantiles(rows))) ** 1.3)
    return shuffled(np.minimum(tail, top).astype(int))


def murders(rows=3000, top=2000):
    """Half zeros, and a tail so heavy that a handful of rows holds a quarter of the total."""
    tail = np.floor(0.7 / (1 - quantiles(rows)) ** 0.8 - 0.7).astype(int)
    return shuffled(np.minimum(tail, top))


def sparse(rows=3000):
    """Nineteen rows in twenty are zero."""
    counts = np.zeros(rows, dtype=int)
    counts[: rows // 20] = np.arange(rows // 20) % 13 + 1
    return shuffled(counts)


def areas(rows=100):
    """Few rows, middling counts."""
    return shuffled((np.arange(rows) ** 2 % 37).astype(int))


def populations(rows=800):
    """Counts from a dozen to a million."""
    return shuffled(np.floor(10 ** (1 + 5 * quantiles(rows))).astype(int))


TABLES = {
    "cases, 40": (cases(), 40),
    "cases, 2,000": (cases(), 2000),
    "murders, 40, top-coded": (murders(), 40),
    "murders, 2,000": (murders(), 2000),
    "sparse, 40": (sparse(), 40),
    "100 areas, 40": (areas(), 40),
    "8 rows, 40": (areas(8), 40),
    "populations, 1,000,000": (populations(), 1_000_000),
    "murders, 1,000,000": (murders(), 1_000_000),
}
CLASSES = [(0, 0), (1, 2), (3, 9), (10, 29), (30, 99), (100, 10**7)]


RUNS = 14


def release_often(true, upper, epsilon, runs, method="preserve"):
    """Return the published counts, the stated accuracy and the columns of releases from seeds."""
    keys = {"upper": upper, "epsilon": epsilon, "method": method}
    every = [tv.privatize(true, **keys, entropy=SeededNotPrivate(seed)) for seed in range(runs)]
    counts = np.array([release.table for release in every])
    accuracy = [release.figures[0].accuracy for release in every]
    return counts, accuracy, [release.receipt.columns[0] for release in every]


def classes_of(clipped):
    """The rows of every class of counts that occurs."""
    masks = {f"{first}..{last}": (clipped >= first) & (clipped <= last) for first, last in CLASSES}
    return {name: rows for name, rows in masks.items() if rows.any()}


@pytest.mark.parametrize("upper", [1, 2, 7, 40])
@pytest.mark.parametrize("epsilon", ["1/20", "1/2", "1", "3", "20"])
def test_the_formulas_agree_with_the_matrix(upper, epsilon):
    exact = Fraction(epsilon)
    mechanism = tv.geometric(tv.Query.count(upper), exact)
    figures = geometric_accuracy(upper, exact)
    np.testing.assert_allclose(figures.bias, mechanism.bias(), atol=1e-9)
    np.testing.assert_allclose(figures.rmse, mechanism.rmse(), atol=1e-9)
    np.testing.assert_array_equal(figures.interval, mechanism.interval(0.95))


@pytest.mark.parametrize("epsilon", ["1", "1/4"])
@pytest.mark.parametrize("name", [name for name in TABLES if "1,000,000" not in name])
def test_stated_figures_of_preserved_tables_are_seen(name, epsilon):
    """Intervals hold; bias and error are estimates: right within a tenth of the error itself.

    So they are for the rows of every class of counts, and spreads for the counts that occur. Rows
    of one run are not independent, so runs are compared: the tolerance is four standard errors.
    """
    true, upper = TABLES[name]
    clipped = np.minimum(true, upper)
    released, stated, columns = release_often(true, upper, epsilon, RUNS)
    bias, rmse = (
        np.array([getattr(one, part)[clipped] for one in stated]) for part in ("bias", "rmse")
    )
    require_covered(released, stated, clipped)
    for kind, rows in classes_of(clipped).items():
        error = (released - clipped)[:, rows]
        typical = np.sqrt((rmse[:, rows] ** 2).mean())
        gap = (error - bias[:, rows]).mean(axis=1)
        assert abs(gap.mean()) <= 4 * gap.std() / np.sqrt(RUNS) + 0.1 * typical, kind
        gap = (error**2 - rmse[:, rows] ** 2).mean(axis=1)
        slack = 4 * gap.std() / np.sqrt(RUNS) + 0.2 * typical**2
        assert abs(gap.mean()) <= slack, (kind, typical)
    require_spread(columns, np.bincount(clipped, minlength=upper + 1))


def require_covered(released, stated, clipped):
    """Require that 95% of the rows of every class of counts lie in their intervals."""
    low, high = np.moveaxis([one.interval[clipped] for one in stated], 2, 0)
    inside, runs = (released >= low) & (released <= high), len(released)
    for kind, rows in classes_of(clipped).items():
        share = inside[:, rows].mean(axis=1)
        chance = np.sqrt(0.95 * 0.05 / (runs * rows.sum()))
        margin = 4 * max(share.std() / np.sqrt(runs), chance)
        assert share.mean() >= 0.95 - margin, (kind, share.mean())


def require_spread(columns, expected):
    """Require that 95% of the counts that occur have the rows expected within their whiskers."""
    held = []
    for column in columns:
        gap = np.abs(np.array(column.histogram.rows) - expected[list(column.histogram.counts)])
        held.append((gap <= np.array(column.spread) + 0.5).mean())
    assert np.mean(held) >= 0.95 - 4 * np.std(held) / np.sqrt(len(held))


@pytest.mark.parametrize("name", [name for name in TABLES if "1,000,000" in name])
def test_intervals_in_wide_ranges_hold(name):
    true, upper = TABLES[name]
    released, stated, _ = release_often(true, upper, "1/2", 3)
    require_covered(released, stated, true)


@pytest.mark.parametrize("name", ["cases, 40", "murders, 2,000", "sparse, 40"])
def test_intervals_and_spreads_of_geometric_noise_hold(name):
    """Whiskers are around the expected rows, not the true ones."""
    true, upper = TABLES[name]
    clipped = np.minimum(true, upper)
    released, stated, columns = release_often(true, upper, 1, RUNS, "geometric")
    require_covered(released, stated, clipped)
    matrix = tv.geometric(tv.Query.count(upper), 1).matrix
    require_spread(columns, np.bincount(clipped, minlength=upper + 1) @ matrix)


OTHERS = {
    "best guesses": {"priority": 0},
    "a quarter": {"priority": "1/4"},
    "ranks": {"priority": 1},
    "balanced": {"priority": "balanced"},
    "open": {"upper": None},
    "nested, ranked": {"nested": "few,cases", "method": "preserve"},
    "nested, lowered": {"nested": "few,cases", "method": "geometric"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_intervals_hold_whatever_is_asked_for(name):
    options = {"upper": 40, "epsilon": "1/2", "count": ["few", "cases"], **OTHERS[name]}
    true = cases(1200)
    table = pd.DataFrame({"area": range(len(true)), "cases": true, "few": true // 3})
    if "nested" not in options:
        options["count"], table = "cases", table[["area", "cases"]]
    true = table[table.columns[-1]].to_numpy()
    seeds = map(SeededNotPrivate, range(10))
    every = [privatize(table, **options, keep="area", entropy=seed) for seed in seeds]
    released = np.array([release.table.iloc[:, -1] for release in every])
    require_covered(released, [release.figures[0].accuracy for release in every], true)


@pytest.mark.parametrize("upper", [40, 2000, 1_000_000])
def test_bias_and_error_of_geometric_noise_are_exact_at_any_range(upper):
    """40,000 draws of each true count; four standard errors."""
    certified = tv.certify_geometric(tv.Query.count(upper), "1/2")
    figures = geometric_accuracy(upper, Fraction(1, 2))
    for true in (0, 1, 5, upper // 2, upper - 1, upper):
        error = certified.release(np.full(40_000, true), SeededNotPrivate(true)) - true
        assert abs(error.mean() - figures.bias[true]) <= 4 * error.std() / 200
        squared = error.astype(float) ** 2
        assert abs(squared.mean() - figures.rmse[true] ** 2) <= 4 * squared.std() / 200
        low, high = figures.interval[true]
        assert ((error + true >= low) & (error + true <= high)).mean() >= 0.95 - 4 * 0.0011


def test_more_budget_for_the_distribution_means_less_spread():
    histogram = np.bincount(cases(), minlength=41)
    wide = estimate_spread(histogram, Fraction(0), Fraction(1))
    narrow = estimate_spread(histogram, Fraction(1, 2), Fraction(1))
    assert (narrow < wide).all()


COUNTS = np.random.default_rng(3).geometric(0.3, 900) - 1
AWAY = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))


@pytest.mark.parametrize(
    "options",
    [
        {"method": "preserve", "upper": 30},
        {"method": "preserve"},
        {"method": "geometric", "upper": 30},
        {"method": "geometric"},
        {"method": "fair", "upper": 30},
        {"priority": "counts", "upper": 30},
        {"priority": "balanced", "upper": 30},
    ],
)
def test_no_release_is_expected_to_be_better_than_the_bound(options):
    release = privatize(COUNTS, epsilon="1/2", entropy=SeededNotPrivate(1), **options)
    facts = release.receipt.columns[0].optimality
    assert 0 < facts.least_error <= facts.least_error_same_distribution * (1 + 1e-9)
    assert facts.least_error <= facts.expected_error + 1e-6


def test_rank_matching_of_all_draws_attains_the_bound():
    """With the exact remap of `transport` the expected error is the least there is."""
    rows = np.array([400, 300, 200, 100])
    shares = rows / rows.sum()
    for delta in (0, "0.05"):
        result = tv.transport(tv.Query.count(3), 1, shares, delta=delta)
        error = float(shares @ (result.matrix * AWAY[:4, :4]).sum(axis=1))
        facts = describe_optimality(error, shares, Fraction(1), Fraction(delta))
        assert facts.expected_error == pytest.approx(facts.least_error_same_distribution)


@pytest.mark.parametrize("epsilon", ["1/50", "1/2", "3"])
def test_the_bounds_are_the_ends_of_the_frontier(epsilon):
    shares = np.bincount(COUNTS) / len(COUNTS)
    shares[3] = 0
    shares /= shares.sum()
    curve = tv.frontier(tv.Query.count(len(shares) - 1), epsilon, shares, tradeoffs=[0.0, 1.0])
    facts = describe_optimality(9.0, shares, Fraction(epsilon))
    assert describe_optimality(0.1, np.ones(1), Fraction(epsilon)) is None, "a column of zeros"
    assert facts.least_error == pytest.approx(curve.error[0], abs=1e-6)
    assert facts.least_error_same_distribution == pytest.approx(curve.error[1], abs=1e-6)


@pytest.mark.parametrize("delta", ["0.01", "0.2"])
def test_with_a_delta_no_mechanism_of_a_program_is_below_the_bound(delta):
    shares = np.array([0.5, 0.2, 0.2, 0.1])
    facts = describe_optimality(9.0, shares, Fraction(1), Fraction(delta))
    best = tv.design(tv.Query.count(3), 1, "absolute", prior=shares, delta=delta)
    error = float(shares @ (best.mechanism.matrix * AWAY[:4, :4]).sum(axis=1))
    assert facts.least_error == pytest.approx(error, abs=1e-5)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(2)])
def test_the_error_of_matched_counts_is_that_of_their_matrix(epsilon):
    draws = np.array([0, 0, 1, 3, 3, 7, 7, 9])
    matching = Matching.of(draws, np.array([0, 1, 1, 2, 4, 6, 6, 8]))
    shares = np.bincount(draws, minlength=11) / len(draws)
    result = matched_mechanism(10, epsilon, matching)
    error = float(shares @ (result.matrix * AWAY[:11, :11]).sum(axis=1))
    assert expect_matched(shares, epsilon, matching) == pytest.approx(error, rel=1e-9)


def test_wide_ranges_signed_columns_and_deltas_have_bounds():
    wide = COUNTS * 700 + np.arange(len(COUNTS)) * 13 % 700
    tables = {
        "wide": (wide, {"method": "preserve", "upper": 20_000}),
        "plain": (wide, {"method": "geometric", "upper": 20_000}),
        "open": (wide, {"method": "preserve"}),
        "heavy tail": (np.append(COUNTS, [650, 700]), {"method": "preserve"}),
        "delta": (COUNTS, {"upper": 30, "delta": "1e-6"}),
        "signed": (COUNTS, {"method": "geometric", "signed": True}),
    }
    for counts, options in tables.values():
        release = privatize(counts, epsilon=1, entropy=SeededNotPrivate(1), **options)
        facts = release.receipt.columns[0].optimality
        assert 0 < facts.least_error <= facts.expected_error + 1e-6
        measured = np.abs(release.table - counts).mean()
        assert facts.expected_error == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"upper": 30, "epsilon": 1}, ["No method with epsilon 1 for a change of one count"]),
        (
            {"upper": 9, "epsilon": "1.1", "contributions": 2},
            ["epsilon 2.2)", "No method with epsilon 1.1 for a change of one count by one"],
        ),
    ],
)
def test_the_folder_and_the_page_state_it_for_a_move_of_one_count(options, words, tmp_path):
    """The epsilon is that of such a move, and not what the whole release costs."""
    privatize(COUNTS, out=tmp_path / "r", **options)
    assert [finding.detail for finding in tv.check_package(tmp_path / "r") if not finding.ok] == []
    page = " ".join((tmp_path / "r" / "METHODOLOGY.html").read_text().split())
    assert all(one in page for one in words)
    receipt = json.loads((tmp_path / "r" / "receipt.json").read_text())
    assert receipt["columns"][0]["optimality"]["least_error"] > 0


def test_a_dry_run_predicts_errors_of_the_right_size():
    """Within a factor of three of what 10 releases have, and the bound below the noise itself."""
    words = "privatize x.csv --count n --keep all --upper 30 --epsilon 0.5 --dry-run --set"
    command = [*words.split(), "dry_run.rows=900"]
    done = CliRunner().invoke(program.app, [*command, "--json"])
    facts = json.loads(done.stdout)["columns"][0]["prediction"]
    errors, distances = [], []
    for seed in range(10):
        keys = {"upper": 30, "epsilon": "1/2", "entropy": SeededNotPrivate(seed)}
        result = np.asarray(privatize(COUNTS, **keys).table)
        errors.append(np.abs(result - COUNTS).mean())
        distances.append(np.abs(np.sort(result) - np.sort(COUNTS)).mean())
    assert facts["error"] / 3 < np.mean(errors) < 3 * facts["error"]
    assert facts["distance"] / 3 < np.mean(distances) < 3 * facts["distance"]
    assert 0 < facts["bound_of_distance"] <= 30 / 900 / np.sinh(0.5)
    text = CliRunner().invoke(program.app, command).stdout
    assert "in any private release" in " ".join(text.split())


def test_predictions_are_finite_at_the_ends():
    for epsilon in (Fraction(1, 1000), Fraction(20), Fraction(700)):
        for rows, cells in ((1, 2), (10**8, 256), (50, 1000)):
            facts = predict_release(epsilon, epsilon * Fraction(9, 10), rows, cells)
            assert all(np.isfinite(value) for value in facts.values())
