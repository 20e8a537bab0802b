"""Releases at (epsilon, delta): proved by the program and by a second opinion, paid, stated."""

import json
from fractions import Fraction
from time import process_time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.check.ledger import check_ledger
from tallyveil.cli import app
from tallyveil.errors import ArgumentError, BudgetError, UsageError
from tallyveil.release.receipt import Receipt
from tallyveil.release.release import read_receipt
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize
from tests.attacks.forging import checks, read, reseal, write
from tests.independent import judge

COUNTS = [(i * i) % 7 + i % 4 for i in range(200)]


SQUARES = [(i * i) % 23 for i in range(150)]


def publish(tmp_path, **options):
    folder = tmp_path / "release"
    keys = {"upper": 12, "epsilon": "1/2", "delta": "1/1000"}
    return folder, privatize(COUNTS, out=folder, **{**keys, **options})


def publish_one_row(tmp_path, **options):
    folder = tmp_path / "release"
    keys = {"upper": 30, "epsilon": 1, "contributions": 3, "spread": "one_row"}
    return folder, privatize(SQUARES, out=folder, **{**keys, **options})


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "geometric"}, {"method": "design"}, {"method": "design", "loss": "squared"}],
)
def test_the_folder_proves_its_delta(options, tmp_path):
    folder, release = publish(tmp_path, **options)
    assert checks(folder)
    assert (release.receipt.epsilon, release.receipt.delta) == (Fraction(1, 2), Fraction(1, 1000))
    assert read_receipt(folder) == release.receipt
    statement = json.loads((folder / "receipt.json").read_text())["statement"]
    assert statement["delta_exact"] == "1/1000"
    assert statement["dp_flavor"]["name"] == "Approximate DP"
    assert "0.001 (delta)" in statement["promise"]
    assert "0.001" in (folder / "METHODOLOGY.html").read_text()
    stated = json.loads((folder / "mechanism.json").read_text())
    table = judge.read_table(stated["weights"])
    pairs = judge.pairs(stated["certificate"]["query"])
    worst = judge.largest_delta(table, pairs, Fraction(1, 2))
    assert 0 < worst <= Fraction(1, 1000)
    assert judge.largest_delta(table, pairs, Fraction(2, 5)) > Fraction(1, 1000), "it is tight"


def test_its_far_tails_are_cut_and_it_errs_less():
    """No draw is further off than canonical noise reaches; and the error is below geometric's."""
    plain = tv.geometric(tv.Query.count(200), "1/2")
    cut = tv.canonical(tv.Query.count(200), "1/2", "1/100")
    counts = np.full(2000, 100)
    keys = {"upper": 200, "epsilon": "1/2", "delta": "1/100", "entropy": SeededNotPrivate(1)}
    drawn = np.asarray(privatize(counts, **keys).table)
    reach = np.flatnonzero(cut.matrix[100] > 1e-12)
    assert reach[0] <= drawn.min() <= drawn.max() <= reach[-1]
    assert reach[-1] < 120
    assert np.abs(cut.bias()).max() < 1
    assert cut.rmse()[100] < plain.rmse()[100]


def test_columns_add_up_and_disjoint_ones_take_the_largest(tmp_path):
    frame = pd.DataFrame({"n": range(200), "a": COUNTS, "b": COUNTS})
    keys = {"count": ["a", "b"], "keep": "all", "upper": 12, "epsilon": 1, "delta": "1e-6"}
    both = privatize(frame, **keys)
    assert (both.receipt.epsilon, both.receipt.delta) == (2, Fraction(2, 10**6))
    apart = privatize(frame, disjoint="a,b", **keys)
    assert (apart.receipt.epsilon, apart.receipt.delta) == (1, Fraction(1, 10**6))


@pytest.mark.parametrize("accounting", ["pure", "exact"])
def test_a_ledger_is_debited_for_it(accounting, tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 2, "1/100", accounting=accounting)
    if accounting == "exact":
        book.plan("cases", ["1/2"] * 3)
    options = {"ledger": tmp_path / "budget.db", "dataset": "cases"}
    folder, release = publish(tmp_path, **options)
    spent = book.account("cases").spent_delta
    assert spent >= Fraction(1, 1000)
    assert check_ledger(folder, book, "cases").ok
    assert checks(folder)
    if accounting == "exact":
        assert release.receipt.composed <= Fraction(1, 2)
    with pytest.raises(BudgetError, match="delta"):
        privatize(COUNTS, out=tmp_path / "2", upper=9, epsilon="1/2", delta="1/100", **options)
    assert book.account("cases").spent_delta == spent


def test_a_zcdp_account_refuses_it(tmp_path):
    tv.Ledger.create(tmp_path / "budget.db").open("cases", 2, "1/100", accounting="zcdp")
    with pytest.raises(BudgetError, match="stages of delta 0 only"):
        publish(tmp_path, ledger=tmp_path / "budget.db", dataset="cases")


def test_a_receipt_that_hides_its_delta_is_found_out(tmp_path):
    folder, _ = publish(tmp_path)
    document = read(folder)
    del document["columns"][0]["stages"][0]["delta"]
    write(folder, Receipt.from_dict(document).to_dict())
    reseal(folder)
    findings = {finding.name: finding for finding in tv.check_package(folder)}
    assert "another delta" in findings["certificates"].detail


DELTA, ONE = (publish, (ArgumentError, UsageError)), (publish_one_row, UsageError)
METHODS = "only with 'auto', 'geometric' and 'design'"
GROWS = "grows faster than the contributions of one unit"


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (DELTA, {"delta": 1}, "'delta' must be 0, or lie between"),
        (DELTA, {"delta": "1e-13"}, "'delta' must be 0, or lie between"),
        (DELTA, {"delta": "few"}, "'delta' must be a finite number"),
        (DELTA, {"method": "fair"}, METHODS),
        (DELTA, {"method": "preserve"}, METHODS),
        (DELTA, {"upper": None}, "'upper' must be a number of at most 1,000"),
        (DELTA, {"upper": 1001}, "'upper' must be a number of at most 1,000"),
        (DELTA, {"contributions": 2}, GROWS),
        (DELTA, {"neighbours": "replace_one"}, GROWS),
        (DELTA, {"accuracy": 3, "epsilon": None}, "'budget.accuracy' and 'budget.delta' exclude"),
        (DELTA, {"unbiased": True}, "'budget.delta' and 'method.unbiased' exclude"),
        (ONE, {"contributions": None}, None),
        (ONE, {"neighbours": "replace_one"}, None),
        (ONE, {"method": "fair"}, None),
        (ONE, {"method": "preserve"}, None),
        (ONE, {"priority": "counts"}, None),
        (ONE, {"accuracy": 4, "epsilon": None}, None),
        (ONE, {"delta": "1e-6"}, None),
    ],
)
def test_what_does_not_go_with_a_delta_or_one_row_is_refused(kind, options, words, tmp_path):
    run, error = kind
    with pytest.raises(error, match=words):
        run(tmp_path, **options)
    assert not (tmp_path / "release").exists()


def test_a_delta_of_zero_is_none(tmp_path):
    _, release = publish(tmp_path, delta=0, method="geometric")
    assert release.receipt.method.name == "geometric"
    assert release.receipt.delta == 0


def test_it_costs_the_same_errs_less_and_is_proved_for_all_moves(tmp_path):
    folder, release = publish_one_row(tmp_path)
    column = release.receipt.columns[0]
    assert release.receipt.epsilon == 3
    assert (column.method.name, column.counts_stage.certified_epsilon) == ("staircase", 3)
    assert checks(folder)
    assert read_receipt(folder) == release.receipt
    document = json.loads((folder / "receipt.json").read_text())
    assert document["unit"]["one_row"] is True
    assert "all in one row" in document["statement"]["privacy_loss"]["privacy_unit"]
    page = (folder / "METHODOLOGY.html").read_text()
    assert "changes one count by at most 3" in page
    assert "Every epsilon is multiplied" not in page
    relation = json.loads((folder / "mechanism.json").read_text())["certificate"]["neighbours"]
    assert relation["width"] == 3
    plain = privatize(SQUARES, upper=30, epsilon=1, contributions=3, method="geometric")
    mine, other = release.figures[0].accuracy.rmse, plain.figures[0].accuracy.rmse
    assert np.median(mine) < 0.9 * np.median(other)


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
    folder, release = publish_one_row(tmp_path, **options)
    column = release.receipt.columns[0]
    assert (column.method.name == "geometric") == bool(words)
    assert release.receipt.epsilon == 3 * Fraction(options.get("epsilon", 1))
    assert ("needs" in column.why) == bool(words)
    assert words in column.why
    assert column.why in (folder / "METHODOLOGY.html").read_text()
    assert checks(folder)


DISTINCT = "--contributions 5 --set unit.spread=distinct_rows --set budget.delta=1e-6"
ONE_ROW = "--contributions 4 --set unit.spread=one_row"
NEEDED = "--upper of at most 1,000"


@pytest.mark.parametrize(
    ("options", "words", "noted"),
    [
        (ONE_ROW, NEEDED, True),
        (f"{ONE_ROW} --upper 50", NEEDED, False),
        (DISTINCT, "--set budget.delta is not spent", True),
    ],
)
def test_at_a_screen_a_statement_that_gains_nothing_is_said_to(tmp_path, options, words, noted):
    table = tmp_path / "t.csv"
    table.write_text("id,n\n" + "".join(f"p{i},{count}\n" for i, count in enumerate(SQUARES)))
    keys = f"privatize {table} --count n --keep id --epsilon 1 {options} --out"
    done = CliRunner().invoke(app.app, [*keys.split(), str(tmp_path / "r")])
    assert done.exit_code == 0
    assert (words in " ".join(done.stderr.split())) == noted


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
    keys = {"upper": 9, "epsilon": epsilon, "contributions": often, "spread": "one_row"}
    start = process_time()
    result = privatize([1, 2, 3] * 9, method="geometric", out=tmp_path / "r", **keys)
    assert process_time() - start < 5
    assert result.receipt.columns[0].method.name == method
    assert result.receipt.epsilon == often * Fraction(epsilon)
    assert checks(tmp_path / "r")
