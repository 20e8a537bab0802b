"""Releases without an upper bound: nothing below the ceiling is top-coded, and pages say so."""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.certified.mechanism import CertifiedNoise
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.estimate.draws import growing_thresholds
from tallyveil.release.column import NO_UPPER, WIDE
from tallyveil.release.release import read_receipt
from tests.asking import privatize
from tests.attacks.forging import checks, passes, put, read, write

RNG = np.random.default_rng(3)
COUNTS = RNG.negative_binomial(0.4, 0.02, 3000)
COUNTS[:2] = 40_000, 7_000_000


def test_one_person_crosses_at_most_one_threshold():
    thresholds = growing_thresholds(NO_UPPER)
    near = np.concatenate([np.arange(400), *(thresholds[50:, None] + np.arange(-2, 3)).T])
    for count in near.tolist():
        moved = (thresholds >= count + 1).astype(int) - (thresholds >= count)
        assert np.abs(moved).sum() <= 1


def test_nothing_is_top_coded_and_the_page_says_so(tmp_path):
    released = privatize(COUNTS, epsilon=1, out=tmp_path / "r")
    assert released.table[:2] == pytest.approx(COUNTS[:2], rel=0.1)
    assert released.table.min() >= 0
    assert released.table.sum() == pytest.approx(COUNTS.sum(), rel=0.01)
    (column,) = released.receipt.columns
    assert (column.method.name, column.bounded) == ("preserve", False)
    assert released.distribution.sum() == pytest.approx(1)
    assert len(released.distribution) == released.table.max() + 1
    assert checks(tmp_path / "r")
    page = released.files["METHODOLOGY.html"].decode()
    words = "No upper bound was set; counts above 1,000,000,000, if any, were replaced by it."
    assert words in page
    assert "top-cod" not in page
    assert isinstance(tv.load(tmp_path / "r" / "mechanism.json"), CertifiedNoise)


WIDE_BOUND = {"upper": 10**7, "method": "geometric"}


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ({}, "upper", 10**6),
        ({}, "upper", 10**9 - 1),
        ({}, "method", "fair"),
        (WIDE_BOUND, "upper", 2 * 10**7),
        (WIDE_BOUND, "upper", WIDE),
        (WIDE_BOUND, "upper", 10**9),
    ],
)
def test_a_receipt_that_misstates_the_bound_fails(tmp_path, options, key, value):
    release(tmp_path / "r", **options)
    write(tmp_path / "r", put(read(tmp_path / "r"), ("columns", 0, key), value))
    assert not passes(tmp_path / "r")


@pytest.mark.parametrize("rows", [1, 3, 30, 40, 100])
def test_few_rows_get_noise_and_stay_above_zero(rows, tmp_path):
    counts = COUNTS[:rows]
    released = privatize(counts, epsilon=1, out=tmp_path / "few")
    assert released.receipt.method.name == "geometric"
    assert released.table.min() >= 0
    assert np.abs(released.table - counts).max() < 60
    assert checks(tmp_path / "few")
    named = privatize(counts, epsilon="0.5", method="preserve", out=tmp_path / "named")
    assert len(named.table) == rows
    assert checks(tmp_path / "named")


MEASURED = "The distribution was measured at public thresholds"


@pytest.mark.parametrize(
    ("options", "measured"),
    [
        ({"epsilon": 1}, True),
        ({"epsilon": "0.1", "priority": 0}, False),
        ({"epsilon": 20, "method": "preserve"}, False),
        ({"epsilon": "0.01", "method": "preserve"}, False),
        ({"epsilon": 20, "method": "preserve", "upper": 2_000_000}, False),
    ],
)
def test_a_page_says_that_the_distribution_was_measured_only_where_it_was(
    options, measured, tmp_path
):
    release = privatize(COUNTS, out=tmp_path / "r", **options)
    kinds = [stage.kind for stage in release.receipt.columns[0].stages]
    assert ("distribution" in kinds) == measured
    assert (MEASURED in (tmp_path / "r" / "METHODOLOGY.html").read_text("utf-8")) == measured
    assert checks(tmp_path / "r")


@pytest.mark.parametrize("signed", [False, True])
def test_counts_above_the_ceiling_count_as_that_and_every_page_says_so(signed, tmp_path):
    keys = {"epsilon": 20, "method": "geometric", "signed": signed}
    large = privatize([10**10, 1, 2, 5], out=tmp_path / "large", **keys)
    small = privatize([7, 1, 2, 5], **keys)
    assert abs(large.table[0] - NO_UPPER) < 10
    words = "counts above 1,000,000,000, if any, were replaced by it"
    for release in (large, small):  # what is said is public, and depends on no count
        assert words in release.files["METHODOLOGY.html"].decode()
        assert "no count was cut off" not in release.files["METHODOLOGY.html"].decode()
        assert "1,000,000,000" in release.receipt.columns[0].range_words
    assert checks(tmp_path / "large")


def test_the_confidential_report_does_not_ask_for_a_larger_ceiling(tmp_path):
    report = tmp_path / "report.html"
    privatize([10**10, 1, 2, 5], epsilon=1, out=tmp_path / "r", confidential_report=report)
    text = report.read_text(encoding="utf-8")
    assert "1 row has more than 1,000,000,000, the largest released count. Top-coding took" in text
    assert "A larger bound" not in text


MATRIX = "'upper' must be at most 5,000 for the method"
ACCURACY = {"upper": 10**6, "method": "geometric", "epsilon": None}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"upper": 10**9}, "Left out, counts up to 1,000,000,000"),
        ({"upper": NO_UPPER}, "'upper' must be at most 999,999,999"),
        ({"method": "fair"}, "upper"),
        ({"method": "design"}, "upper"),
        ({"method": "fair", "upper": 5001}, MATRIX),
        ({"method": "design", "upper": 5001}, MATRIX),
        ({"epsilons": [2, 1]}, "'upper' must"),
        ({"accuracy": 3, "epsilon": None}, "'upper' must"),
        ({"accuracy": 3, "epsilon": None, "upper": WIDE + 1}, "when 'accuracy' is given"),
        ({**ACCURACY, "accuracy": 3000}, "'accuracy' must be"),
        ({**ACCURACY, "accuracy": float("inf")}, "'accuracy' must be"),
        ({**ACCURACY, "accuracy": float("nan")}, "'accuracy' must be"),
        ({**ACCURACY, "accuracy": "x"}, "'accuracy' must be"),
        ({"signed": True, "upper": 9}, "Signed counts"),
        ({"signed": True, "upper": 9, "method": "geometric"}, "Signed counts"),
        ({"signed": True, "unbiased": True, "method": "geometric"}, "unbiased already"),
    ],
)
def test_ranges_that_cannot_be_are_refused(options, words):
    with pytest.raises(UsageError if "signed" in options else ArgumentError, match=words):
        release(**options)


def test_two_columns_may_differ(tmp_path):
    table = pa.table({"a": COUNTS, "b": np.minimum(COUNTS, 50)})
    options = {"upper": [None, 50], "epsilon": 1, "allow_duplicates": True}
    released = privatize(table, ["a", "b"], **options, out=tmp_path / "two")
    assert [column.bounded for column in released.receipt.columns] == [False, True]
    assert checks(tmp_path / "two")
    assert read_receipt(tmp_path / "two").columns[0].upper == NO_UPPER


@pytest.mark.parametrize("upper", [None, 2_000_000])
@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_noise_beyond_what_figures_cover_is_refused_before_the_debit(method, upper, paid):
    with pytest.raises(ArgumentError, match=r"'epsilon' must .*at least 2e-05.*upper"):
        privatize(np.array([3, 0, 12]), epsilon="1e-7", upper=upper, method=method, **paid)


@pytest.mark.parametrize("options", [{}, {"upper": 999_999_999}, {"priority": "counts"}])
def test_tables_without_any_small_count_are_published_and_check(options, tmp_path):
    """No draw lies where figures are stated: they are those of the draw itself."""
    counts = np.random.default_rng(1).integers(600_000, 40_000_000, 1300)
    folder = tmp_path / "release"
    result = privatize(counts, epsilon=1, method="preserve", out=folder, **options)
    assert np.abs(result.table - counts).max() < 100
    assert checks(folder)
    accuracy = read_receipt(folder).columns[0].accuracy
    assert (accuracy.interval_low[0], accuracy.exact) == (0, False)
    assert accuracy.interval_high[0] < 20


RNG = np.random.default_rng(5)
WIDE_COUNTS = np.minimum(np.round(np.exp(RNG.normal(5, 3, 2000))), 9_000_000).astype(np.int64)
TABLE = pa.table({"place": [f"p{i}" for i in range(2000)], "n": WIDE_COUNTS})


def release(out=None, **options):
    return privatize(TABLE, **{"count": "n", "keep": "all", "epsilon": 1, "out": out, **options})


@pytest.mark.parametrize("method", ["preserve", "geometric"])
@pytest.mark.parametrize("upper", [10_000_000, NO_UPPER - 1])
def test_a_wide_range_costs_what_its_rows_cost(tmp_path, upper, method):
    release(upper=9, method=method)  # libraries are loaded once
    tracemalloc.start()
    result = release(tmp_path / "out", upper=upper, method=method)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6
    assert sum(len(content) for content in result.files.values()) < 1e6
    (column,) = result.receipt.columns
    assert (column.upper, column.bounded, column.method.name) == (upper, True, method)
    released = result.published["n"].counts
    assert np.abs(np.sort(released) - np.sort(WIDE_COUNTS)).mean() < 0.02 * WIDE_COUNTS.mean() + 3
    assert checks(tmp_path / "out")
    total = tv.estimate_total(tmp_path / "out")
    assert abs(total.value - WIDE_COUNTS.sum()) < 6 * total.standard_error


def test_counts_are_cut_at_a_wide_bound(tmp_path):
    upper = 2_000_000
    result = release(tmp_path / "out", upper=upper, method="geometric", epsilon=20)
    assert result.published["n"].counts.tolist() == np.minimum(WIDE_COUNTS, upper).tolist()
    page = result.files["METHODOLOGY.html"].decode()
    assert "Counts above 2,000,000, if any, were replaced by 2,000,000" in page
    assert checks(tmp_path / "out")


def test_signed_counts_are_published_as_drawn(tmp_path):
    table = pa.table({"place": [f"p{i}" for i in range(4000)], "n": np.zeros(4000, np.int64)})
    result = privatize(
        table, "n", keep="all", epsilon="0.5", method="geometric", signed=True, out=tmp_path / "out"
    )
    values = result.table.column("n").to_numpy()
    a = np.exp(-0.5)
    variance = 2 * a / (1 - a) ** 2
    assert values.min() < 0 < values.max()
    # the mean of 4,000 draws of this variance, and the mean of their squares
    assert abs(values.mean()) < 5 * np.sqrt(variance / 4000)
    (column,) = result.receipt.columns
    assert column.signed
    assert column.columns == ("n",)
    assert (column.unbiased.column, column.signed) == ("n", True)
    assert column.unbiased.variance == pytest.approx(variance, rel=1e-9)
    assert set(column.accuracy.bias) == {0.0}
    low, high = column.accuracy.interval_low[0], column.accuracy.interval_high[0]
    inside = ((values >= low) & (values <= high)).mean()
    assert inside > 0.95 - 5 * np.sqrt(0.05 * 0.95 / 4000)
    page = result.files["METHODOLOGY.html"].decode()
    assert "with its sign" in page
    assert "Do not set negative ones to 0" in page
    assert "pushed inwards" not in page
    field = json.loads(result.files["datapackage.json"])["resources"][0]["schema"]["fields"][1]
    assert field["constraints"] == {"required": True}
    assert checks(tmp_path / "out")
    groups = tv.estimate_total(tmp_path / "out", where="place != p0")
    assert abs(groups.value) < 6 * groups.standard_error


def test_without_a_sign_values_are_floored_and_the_page_says_what_that_does(tmp_path):
    result = release(tmp_path / "out", method="geometric", unbiased=True)
    values = result.table.column("n").to_numpy()
    draws = result.table.column("n_unbiased").to_numpy()
    assert (values == draws.clip(0)).all()
    assert draws.min() < 0
    assert "sums of many small ones are too large" in result.files["METHODOLOGY.html"].decode()
    assert checks(tmp_path / "out")


@pytest.mark.parametrize("upper", [1001, 20_000, 10**6])
def test_a_wide_range_needs_the_epsilon_of_a_narrow_one(upper):
    """Far from both ends a count errs as its noise does; a matrix of 7 TB was asked for."""
    narrow, wide = (
        privatize([1, 2, 3] * 9, upper=most, method="geometric", accuracy=3).receipt.epsilon
        for most in (40, upper)
    )
    assert wide == narrow
