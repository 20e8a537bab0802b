"""Releases without an upper bound: nothing below the ceiling is top-coded, and pages say so."""

import json

import numpy as np
import pytest

import tallyveil as tv
from tallyveil.certified.mechanism import CertifiedNoise
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.estimate.draws import growing_thresholds
from tallyveil.release.release import read_receipt
from tallyveil.request.ranges import NO_UPPER
from tests.asking import privatize

RNG = np.random.default_rng(3)
COUNTS = RNG.negative_binomial(0.4, 0.02, 3000)
COUNTS[:2] = 40_000, 7_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return privatize(COUNTS, epsilon=1).save(tmp_path_factory.mktemp("open") / "release")


def test_one_person_crosses_at_most_one_threshold():
    thresholds = growing_thresholds(NO_UPPER)
    near = np.concatenate([np.arange(400), *(thresholds[50:, None] + np.arange(-2, 3)).T])
    for count in near.tolist():
        moved = (thresholds >= count + 1).astype(int) - (thresholds >= count)
        assert np.abs(moved).sum() <= 1


def test_nothing_is_top_coded():
    released = privatize(COUNTS, epsilon=1)
    assert released.table[:2] == pytest.approx(COUNTS[:2], rel=0.1)
    assert released.table.min() >= 0
    assert released.table.sum() == pytest.approx(COUNTS.sum(), rel=0.01)
    (column,) = released.receipt.columns
    assert (column.method, column.bounded) == ("preserve", False)
    assert released.distribution.sum() == pytest.approx(1)
    assert len(released.distribution) == released.table.max() + 1


def test_both_stages_draw_unbounded_certified_noise_and_add_up():
    (column,) = privatize(COUNTS, epsilon="0.7").receipt.columns
    assert [stage.kind for stage in column.stages] == ["distribution", "counts"]
    assert sum(stage.certified_epsilon for stage in column.stages) == column.epsilon


def test_the_folder_checks_and_its_page_says_so(folder):
    assert all(finding.ok for finding in tv.check_package(folder))
    page = (folder / "METHODOLOGY.html").read_text(encoding="utf-8")
    assert (
        "No upper bound was set; counts above 1,000,000,000, if any, were replaced by it." in page
    )
    assert "top-cod" not in page
    assert isinstance(tv.load(folder / "mechanism.json"), CertifiedNoise)


@pytest.mark.parametrize(
    ("key", "value"), [("upper", 10**6), ("upper", 10**9 - 1), ("method", "fair")]
)
def test_a_receipt_that_misstates_the_bound_fails(folder, tmp_path, key, value):
    import hashlib
    import shutil

    forged = tmp_path / "forged"
    shutil.copytree(folder, forged)
    receipt = json.loads((forged / "receipt.json").read_text())
    receipt["columns"][0][key] = value
    (forged / "receipt.json").write_text(json.dumps(receipt, indent=1) + "\n")
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(forged.iterdir())
        if path.name != "SHA256SUMS"
    ]
    (forged / "SHA256SUMS").write_text("\n".join(sums) + "\n")
    assert not all(finding.ok for finding in tv.check_package(forged))


@pytest.mark.parametrize("rows", [1, 30, 100])
def test_few_rows_get_noise_and_stay_above_zero(rows, tmp_path):
    counts = COUNTS[:rows]
    released = privatize(counts, epsilon=1)
    assert released.receipt.columns[0].method == "geometric"
    assert released.table.min() >= 0
    assert np.abs(released.table - counts).max() < 60
    folder = released.save(tmp_path / "few")
    assert all(finding.ok for finding in tv.check_package(folder))


def test_preserve_works_for_few_rows_when_asked_for(tmp_path):
    for rows in (1, 3, 40):
        released = privatize(COUNTS[:rows], epsilon="0.5", method="preserve")
        assert len(released.table) == rows
        assert all(f.ok for f in tv.check_package(released.save(tmp_path / str(rows))))


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
    assert all(finding.ok for finding in tv.check_package(tmp_path / "r"))


@pytest.mark.parametrize("signed", [False, True])
def test_counts_above_the_ceiling_count_as_that_and_every_page_says_so(signed, tmp_path):
    asked = {"epsilon": 20, "method": "geometric", "signed": signed}
    large = privatize([10**10, 1, 2, 5], out=tmp_path / "large", **asked)
    small = privatize([7, 1, 2, 5], **asked)
    assert abs(large.table[0] - NO_UPPER) < 10
    words = "counts above 1,000,000,000, if any, were replaced by it"
    for release in (large, small):  # what is said is public, and depends on no count
        assert words in release.files["METHODOLOGY.html"].decode()
        assert "no count was cut off" not in release.files["METHODOLOGY.html"].decode()
        assert "1,000,000,000" in release.receipt.columns[0].range_words
    assert all(finding.ok for finding in tv.check_package(tmp_path / "large"))


def test_the_confidential_report_does_not_ask_for_a_larger_ceiling(tmp_path):
    report = tmp_path / "report.html"
    privatize([10**10, 1, 2, 5], epsilon=1, out=tmp_path / "r", confidential_report=report)
    text = report.read_text(encoding="utf-8")
    assert "1 rows have more than 1,000,000,000, the largest published. Top-coding took" in text
    assert "A larger bound" not in text


def test_the_ceiling_is_no_upper_bound():
    with pytest.raises(ArgumentError, match="Left out, counts up to 1,000,000,000"):
        privatize([10**9, 1], epsilon=1, upper=10**9)


def test_large_epsilon_spends_nothing_on_the_distribution(tmp_path):
    released = privatize(COUNTS, epsilon=6)
    assert [stage.kind for stage in released.receipt.columns[0].stages] == ["counts"]
    assert np.abs(np.sort(released.table) - np.sort(COUNTS)).mean() < 1
    assert all(f.ok for f in tv.check_package(released.save(tmp_path / "large")))


@pytest.mark.parametrize("method", ["fair", "design"])
def test_methods_with_a_matrix_need_a_bound(method):
    with pytest.raises(ArgumentError, match="upper"):
        privatize(COUNTS, epsilon=1, method=method)


def test_levels_and_accuracy_need_a_bound():
    with pytest.raises(UsageError, match="upper"):
        privatize(COUNTS, epsilons=[2, 1])
    with pytest.raises(ArgumentError, match="upper"):
        privatize(COUNTS, accuracy=3)


def test_the_stated_intervals_hold():
    released = privatize(COUNTS, epsilon=1)
    interval = released.figures[0].accuracy.interval
    inside = [
        interval[true, 0] <= out <= interval[true, 1]
        for true, out in zip(COUNTS, released.table, strict=True)
        if true < len(interval)
    ]
    # at least 95 % by construction; 3,000 rows have a standard error of 0.4 %
    assert np.mean(inside) > 0.95 - 4 * 0.004


def test_two_columns_may_differ(tmp_path):
    import pyarrow as pa

    table = pa.table({"a": COUNTS, "b": np.minimum(COUNTS, 50)})
    released = privatize(table, ["a", "b"], upper=[None, 50], epsilon=1, allow_duplicates=True)
    first, second = released.receipt.columns
    assert (first.bounded, second.bounded) == (False, True)
    folder = released.save(tmp_path / "two")
    assert all(finding.ok for finding in tv.check_package(folder))
    assert read_receipt(folder).columns[0].upper == NO_UPPER


@pytest.mark.parametrize("upper", [None, 2_000_000])
@pytest.mark.parametrize("method", ["geometric", "preserve"])
def test_noise_beyond_what_figures_cover_is_refused_before_the_debit(method, upper, tmp_path):
    ledger = tv.Ledger.create(tmp_path / "budget.db")
    ledger.open("d", epsilon=1)
    options = {"upper": upper, "method": method, "dataset": "d", "out": tmp_path / "out"}
    with pytest.raises(tv.errors.ArgumentError, match=r"'epsilon' must .*at least 2e-05.*upper"):
        privatize(np.array([3, 0, 12]), epsilon="1e-7", ledger=tmp_path / "budget.db", **options)
    assert ledger.account("d").remaining_epsilon == 1


@pytest.mark.parametrize("options", [{}, {"upper": 999_999_999}, {"priority": "counts"}])
def test_tables_without_any_small_count_are_published_and_check(options, tmp_path):
    """No draw lies where figures are stated: they are those of the draw itself."""
    counts = np.random.default_rng(1).integers(600_000, 40_000_000, 1300)
    folder = tmp_path / "release"
    made = privatize(counts, epsilon=1, method="preserve", out=folder, **options)
    assert np.abs(made.table - counts).max() < 100
    assert [found.detail for found in tv.check_package(folder) if not found.ok] == []
    accuracy = read_receipt(folder).columns[0].accuracy
    assert (accuracy["interval_low"][0], accuracy["exact"]) == (0, False)
    assert accuracy["interval_high"][0] < 20
