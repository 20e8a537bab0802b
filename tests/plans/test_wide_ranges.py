"""Ranges to a billion and signed counts: nothing grows with the range, and every page is true."""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.release.methods.preserve import count_cells
from tallyveil.request.ranges import NO_UPPER, WIDE
from tests.asking import privatize

RNG = np.random.default_rng(5)
COUNTS = np.minimum(np.round(np.exp(RNG.normal(5, 3, 2000))), 9_000_000).astype(np.int64)
TABLE = pa.table({"place": [f"p{i}" for i in range(2000)], "n": COUNTS})


def release(out=None, **options):
    return privatize(TABLE, **{"count": "n", "keep": "all", "epsilon": 1, "out": out, **options})


def check(folder):
    found = tv.check_package(folder)
    assert all(finding.ok for finding in found), [f for f in found if not f.ok]


@pytest.mark.parametrize("method", ["preserve", "geometric"])
@pytest.mark.parametrize("upper", [10_000_000, NO_UPPER - 1])
def test_a_wide_range_costs_what_its_rows_cost(tmp_path, upper, method):
    release(upper=9, method=method)  # libraries are loaded once
    tracemalloc.start()
    made = release(tmp_path / "out", upper=upper, method=method)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6
    assert sum(len(content) for content in made.files.values()) < 1e6
    (column,) = made.receipt.columns
    assert (column.upper, column.bounded, column.method) == (upper, True, method)
    released = made.published["n"].counts
    assert np.abs(np.sort(released) - np.sort(COUNTS)).mean() < 0.02 * COUNTS.mean() + 3
    check(tmp_path / "out")
    total = tv.estimate_total(tmp_path / "out")
    assert abs(total.value - COUNTS.sum()) < 6 * total.standard_error


def test_counts_are_cut_at_a_wide_bound(tmp_path):
    upper = 2_000_000
    made = release(tmp_path / "out", upper=upper, method="geometric", epsilon=20)
    assert made.published["n"].counts.tolist() == np.minimum(COUNTS, upper).tolist()
    assert (
        "Counts above 2,000,000, if any, were replaced by 2,000,000"
        in made.files["METHODOLOGY.html"].decode()
    )
    check(tmp_path / "out")


def test_a_receipt_cannot_move_a_wide_bound(tmp_path):
    made = release(upper=10**7, method="geometric")
    for key, value in (("upper", 2 * 10**7), ("upper", WIDE), ("upper", 10**9)):
        folder = tmp_path / f"{key}-{value}"
        made.save(folder)
        receipt = json.loads((folder / "receipt.json").read_text())
        receipt["columns"][0][key] = value
        (folder / "receipt.json").write_text(json.dumps(receipt, indent=1) + "\n")
        assert not all(finding.ok for finding in tv.check_package(folder))


@pytest.mark.parametrize(("method", "most"), [("fair", "5,000"), ("design", "5,000")])
def test_a_table_of_probabilities_has_a_narrow_range(method, most):
    with pytest.raises(ArgumentError, match=f"'upper' must be at most {most} for the method"):
        release(upper=WIDE + 1, method=method)
    with pytest.raises(ArgumentError, match="when 'within' is given"):
        release(upper=WIDE + 1, accuracy=3, epsilon=None)
    with pytest.raises(ArgumentError, match="'upper' must be at most 999,999,999"):
        release(upper=NO_UPPER)


def test_cells_do_not_grow_with_the_range():
    assert count_cells(WIDE) == WIDE + 1
    assert count_cells(WIDE + 1) == count_cells(NO_UPPER) == 256


def test_signed_counts_are_published_as_drawn(tmp_path):
    table = pa.table({"place": [f"p{i}" for i in range(4000)], "n": np.zeros(4000, np.int64)})
    made = privatize(
        table, "n", keep="all", epsilon="0.5", method="geometric", signed=True, out=tmp_path / "out"
    )
    values = made.table.column("n").to_numpy()
    a = np.exp(-0.5)
    variance = 2 * a / (1 - a) ** 2
    assert values.min() < 0 < values.max()
    # the mean of 4,000 draws of this variance, and the mean of their squares
    assert abs(values.mean()) < 5 * np.sqrt(variance / 4000)
    (column,) = made.receipt.columns
    assert column.signed
    assert column.columns == ("n",)
    assert column.unbiased == {"column": "n", "variance": pytest.approx(variance, rel=1e-9)}
    assert column.accuracy["bias"] == [0.0] * len(column.accuracy["bias"])
    low, high = column.accuracy["interval_low"][0], column.accuracy["interval_high"][0]
    inside = ((values >= low) & (values <= high)).mean()
    assert inside > 0.95 - 5 * np.sqrt(0.05 * 0.95 / 4000)
    page = made.files["METHODOLOGY.html"].decode()
    assert "with its sign" in page
    assert "Do not set negative ones to 0" in page
    assert "pushed inwards" not in page
    field = json.loads(made.files["datapackage.json"])["resources"][0]["schema"]["fields"][1]
    assert field["constraints"] == {"required": True}
    check(tmp_path / "out")
    groups = tv.estimate_total(tmp_path / "out", where="place != p0")
    assert abs(groups.value) < 6 * groups.standard_error
    text = (tmp_path / "out" / "receipt.json").read_text()
    (tmp_path / "out" / "receipt.json").write_text(text.replace('"column": "n"', '"column": "m"'))
    assert not all(finding.ok for finding in tv.check_package(tmp_path / "out"))


def test_without_a_sign_values_are_floored_and_the_page_says_what_that_does(tmp_path):
    made = release(tmp_path / "out", method="geometric", unbiased=True)
    values = made.table.column("n").to_numpy()
    draws = made.table.column("n_unbiased").to_numpy()
    assert (values == draws.clip(0)).all()
    assert draws.min() < 0
    assert "sums of many small ones are too large" in made.files["METHODOLOGY.html"].decode()
    check(tmp_path / "out")


def test_an_array_can_be_signed():
    made = privatize([0] * 500, epsilon="0.2", signed=True)
    assert min(made.table) < 0


@pytest.mark.parametrize(
    "options", [{"upper": 9}, {"upper": 9, "method": "geometric"}, {"method": "preserve"}]
)
def test_what_cannot_be_signed_is_refused(options):
    with pytest.raises(UsageError, match="Signed counts"):
        release(signed=True, **options)
    with pytest.raises(UsageError):
        release(signed=True, unbiased=True, method="geometric")
