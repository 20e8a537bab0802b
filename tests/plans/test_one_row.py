"""Several contributions in one row: noise made for them together, stated and checked."""

import json
from fractions import Fraction
from time import process_time

import numpy as np
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli import app
from tallyveil.errors import UsageError
from tallyveil.release.release import read_receipt
from tests.asking import privatize

COUNTS = [(i * i) % 23 for i in range(150)]


def publish(tmp_path, **options):
    folder = tmp_path / "release"
    asked = {"upper": 30, "epsilon": 1, "contributions": 3, "spread": "one_row"}
    return folder, privatize(COUNTS, out=folder, **{**asked, **options})


def test_it_costs_the_same_errs_less_and_is_proved_for_all_moves(tmp_path):
    folder, release = publish(tmp_path)
    column = release.receipt.columns[0]
    assert release.receipt.epsilon == 3
    assert (column.method, column.counts_stage.certified_epsilon) == ("staircase", 3)
    assert [found.detail for found in tv.check_package(folder) if not found.ok] == []
    assert read_receipt(folder) == release.receipt
    document = json.loads((folder / "receipt.json").read_text())
    assert document["one_row"] is True
    assert "all in one row" in document["privacy_loss"]["privacy_unit"]
    page = (folder / "METHODOLOGY.html").read_text()
    assert "changes one count by at most 3" in page
    assert "Every epsilon is multiplied" not in page
    relation = json.loads((folder / "mechanism.json").read_text())["certificate"]["neighbours"]
    assert relation["width"] == 3
    plain = privatize(COUNTS, upper=30, epsilon=1, contributions=3, method="geometric")
    own, other = release.figures[0].accuracy.rmse, plain.figures[0].accuracy.rmse
    assert np.median(own) < 0.9 * np.median(other)


def test_small_epsilons_and_wide_ranges_have_plain_noise(tmp_path):
    _, release = publish(tmp_path, epsilon="1/2")
    assert release.receipt.columns[0].method == "geometric"
    assert release.receipt.epsilon == Fraction(3, 2)
    wide = privatize(COUNTS, upper=5000, epsilon=1, contributions=3, spread="one_row")
    assert wide.receipt.columns[0].method == "geometric"
    open_ended = privatize(COUNTS, epsilon=1, contributions=3, spread="one_row")
    assert open_ended.receipt.columns[0].method == "geometric"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"upper": None}, "an upper bound of at most 1,000"),
        ({"upper": 5000}, "an upper bound of at most 1,000"),
        ({"epsilon": "1/2"}, "an epsilon of 2 to"),
        ({}, ""),
    ],
)
def test_plain_noise_says_what_the_other_would_need(tmp_path, options, words):
    folder, release = publish(tmp_path, **options)
    column = release.receipt.columns[0]
    assert (column.method == "geometric") == bool(words)
    assert ("needs" in column.why) == bool(words)
    assert words in column.why
    assert column.why in (folder / "METHODOLOGY.html").read_text()
    assert [found.detail for found in tv.check_package(folder) if not found.ok] == []


@pytest.mark.parametrize(("upper", "noted"), [("", True), ("--upper 50", False)])
def test_at_a_screen_a_statement_that_gains_nothing_is_said_to(tmp_path, upper, noted):
    table = tmp_path / "t.csv"
    table.write_text("id,n\n" + "".join(f"p{i},{count}\n" for i, count in enumerate(COUNTS)))
    words = f"privatize {table} --count n --keep id --epsilon 1 --contributions 4 --one-row {upper}"
    done = CliRunner().invoke(app.app, [*words.split(), "--out", str(tmp_path / "r")])
    assert done.exit_code == 0
    assert ("--upper of at most 1,000" in " ".join(done.stderr.split())) == noted


def test_a_folder_that_drops_the_statement_is_refused(tmp_path):
    folder, _ = publish(tmp_path)
    receipt = (folder / "receipt.json").read_text()
    assert receipt.count('"one_row": true,') == 1
    (folder / "receipt.json").write_text(receipt.replace(' "one_row": true,\n', ""))
    found = {finding.name: finding for finding in tv.check_package(folder)}
    assert "may be in several" in found["budget"].detail


@pytest.mark.parametrize(
    "options",
    [
        {"contributions": None},
        {"neighbours": "replace_one"},
        {"method": "fair"},
        {"method": "preserve"},
        {"priority": "counts"},
        {"accuracy": 4, "epsilon": None},
        {"delta": "1e-6"},
    ],
)
def test_what_does_not_go_with_it_is_refused(options, tmp_path):
    with pytest.raises(UsageError):
        publish(tmp_path, **options)


@pytest.mark.parametrize(
    ("often", "epsilon", "method"),
    [
        (10**6, "1/100000", "staircase"),
        (10**5, "1/10000", "staircase"),
        (3, "300", "geometric"),
        (1000, "1", "geometric"),
    ],
)
@pytest.mark.filterwarnings("ignore:Epsilon")
def test_many_contributions_to_one_row_take_no_time_and_are_not_refused(
    often, epsilon, method, tmp_path
):
    """No count moves by more than its range, and beyond epsilon 700 the noise is geometric."""
    asked = {"upper": 9, "epsilon": epsilon, "contributions": often, "spread": "one_row"}
    start = process_time()
    made = privatize([1, 2, 3] * 9, method="geometric", out=tmp_path / "r", **asked)
    assert process_time() - start < 5
    assert made.receipt.columns[0].method == method
    assert made.receipt.epsilon == often * Fraction(epsilon)
    assert [found.detail for found in tv.check_package(tmp_path / "r") if not found.ok] == []
