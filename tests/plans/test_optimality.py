"""A release says how far it is from the best there is; bounds are bounds, and check recomputes."""

import json
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli import app as program
from tallyveil.release.accuracy import (
    describe_optimality,
    expect_matched,
    matched_mechanism,
    predict_release,
)
from tallyveil.release.column import Matching
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize

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
    known = release.receipt.columns[0].optimality
    assert 0 < known["least_error"] <= known["least_error_same_distribution"] * (1 + 1e-9)
    assert known["least_error"] <= known["expected_error"] + 1e-6


def test_rank_matching_of_all_draws_attains_the_bound():
    """With the exact remap of `transport` the expected error is the least there is."""
    rows = np.array([400, 300, 200, 100])
    shares = rows / rows.sum()
    for delta in (0, "0.05"):
        made = tv.transport(tv.Query.count(3), 1, shares, delta=delta)
        error = float(shares @ (made.matrix * AWAY[:4, :4]).sum(axis=1))
        known = describe_optimality(error, shares, Fraction(1), Fraction(delta))
        assert known["expected_error"] == pytest.approx(known["least_error_same_distribution"])


@pytest.mark.parametrize("epsilon", ["1/50", "1/2", "3"])
def test_the_bounds_are_the_ends_of_the_frontier(epsilon):
    shares = np.bincount(COUNTS) / len(COUNTS)
    shares[3] = 0
    shares /= shares.sum()
    curve = tv.frontier(tv.Query.count(len(shares) - 1), epsilon, shares, tradeoffs=[0.0, 1.0])
    known = describe_optimality(9.0, shares, Fraction(epsilon))
    assert known["least_error"] == pytest.approx(curve.error[0], abs=1e-6)
    assert known["least_error_same_distribution"] == pytest.approx(curve.error[1], abs=1e-6)


@pytest.mark.parametrize("delta", ["0.01", "0.2"])
def test_with_a_delta_no_mechanism_of_a_program_is_below_the_bound(delta):
    shares = np.array([0.5, 0.2, 0.2, 0.1])
    known = describe_optimality(9.0, shares, Fraction(1), Fraction(delta))
    best = tv.design(tv.Query.count(3), 1, "absolute", prior=shares, delta=delta)
    error = float(shares @ (best.mechanism.matrix * AWAY[:4, :4]).sum(axis=1))
    assert known["least_error"] == pytest.approx(error, abs=1e-5)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20), Fraction(2)])
def test_the_error_of_matched_counts_is_that_of_their_matrix(epsilon):
    draws = np.array([0, 0, 1, 3, 3, 7, 7, 9])
    matching = Matching.of(draws, np.array([0, 1, 1, 2, 4, 6, 6, 8]))
    shares = np.bincount(draws, minlength=11) / len(draws)
    made = matched_mechanism(10, epsilon, matching)
    error = float(shares @ (made.matrix * AWAY[:11, :11]).sum(axis=1))
    assert expect_matched(shares, epsilon, matching) == pytest.approx(error, rel=1e-9)


def test_a_column_of_zeros_has_none():
    assert describe_optimality(0.1, np.ones(1), Fraction(1)) is None


def test_wide_ranges_signed_columns_and_deltas_have_bounds():
    wide = COUNTS * 700 + np.arange(len(COUNTS)) * 13 % 700
    tables = {
        "wide": (wide, {"method": "preserve", "upper": 20_000}),
        "plain": (wide, {"method": "geometric", "upper": 20_000}),
        "open": (wide, {"method": "preserve"}),
        "delta": (COUNTS, {"upper": 30, "delta": "1e-6"}),
        "signed": (COUNTS, {"method": "geometric", "signed": True}),
    }
    for counts, options in tables.values():
        release = privatize(counts, epsilon=1, entropy=SeededNotPrivate(1), **options)
        known = release.receipt.columns[0].optimality
        assert 0 < known["least_error"] <= known["expected_error"] + 1e-6
        measured = np.abs(release.table - counts).mean()
        assert known["expected_error"] == pytest.approx(measured, rel=0.25)


def test_the_folder_and_the_page_state_it(tmp_path):
    folder = tmp_path / "release"
    privatize(COUNTS, upper=30, epsilon=1, out=folder)
    assert [found.detail for found in tv.check_package(folder) if not found.ok] == []
    assert (
        "No method with epsilon 1 for a change of one count"
        in (folder / "METHODOLOGY.html").read_text()
    )
    receipt = json.loads((folder / "receipt.json").read_text())
    assert receipt["columns"][0]["optimality"]["least_error"] > 0


def test_the_page_names_the_epsilon_that_the_bound_is_for(tmp_path):
    """It is that of a move of one count, and not what the whole release costs."""
    folder = tmp_path / "release"
    privatize(COUNTS, upper=9, epsilon="1.1", contributions=2, out=folder)
    page = " ".join((folder / "METHODOLOGY.html").read_text().split())
    assert "epsilon 2.2)" in page
    assert "No method with epsilon 1.1 for a change of one count by one" in page


def test_heavy_tails_have_a_bound_without_an_upper_one():
    counts = np.append(COUNTS, [650, 700])
    known = privatize(counts, epsilon=1, method="preserve").receipt.columns[0].optimality
    assert 0 < known["least_error"] < known["expected_error"]


def test_a_dry_run_predicts_errors_of_the_right_size():
    """Within a factor of three of what 10 releases have, and the bound below the noise itself."""
    words = "privatize x.csv --count n --keep all --upper 30 --epsilon 0.5 --dry-run --rows 900"
    done = CliRunner().invoke(program.app, [*words.split(), "--json"])
    known = json.loads(done.stdout)["columns"][0]["prediction"]
    errors, distances = [], []
    for seed in range(10):
        made = np.asarray(
            privatize(COUNTS, upper=30, epsilon="1/2", entropy=SeededNotPrivate(seed)).table
        )
        errors.append(np.abs(made - COUNTS).mean())
        distances.append(np.abs(np.sort(made) - np.sort(COUNTS)).mean())
    assert known["error"] / 3 < np.mean(errors) < 3 * known["error"]
    assert known["distance"] / 3 < np.mean(distances) < 3 * known["distance"]
    assert 0 < known["bound_of_distance"] <= 30 / 900 / np.sinh(0.5)
    text = CliRunner().invoke(program.app, words.split()).stdout
    assert "in any private release" in " ".join(text.split())


def test_predictions_are_finite_at_the_ends():
    for epsilon in (Fraction(1, 1000), Fraction(20), Fraction(700)):
        for rows, cells in ((1, 2), (10**8, 256), (50, 1000)):
            known = predict_release(epsilon, epsilon * Fraction(9, 10), rows, cells)
            assert all(np.isfinite(value) for value in known.values())
