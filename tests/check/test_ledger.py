"""`check --ledger`: whether the entry that paid for a release is there, and the same."""

import shutil

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.fingerprint import fingerprint
from tests.asking import privatize
from tests.attacks import forging

COUNTS = [k % 5 for k in range(40)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("ledger")
    for name in ("budget.db", "other.db"):
        tv.Ledger.create(place / name).open("cases", 20)
    account = {"ledger": place / "budget.db", "dataset": "cases"}
    privatize(COUNTS, upper=9, epsilon=1, contributions=2, out=place / "paid", **account)
    privatize(COUNTS, upper=9, epsilons=[2, 1], out=place / "levels", **account)
    privatize(COUNTS, upper=9, epsilon=1, out=place / "unpaid")
    return place


def check(folder, book, *words):
    command = ["check", str(folder), "--ledger", str(book), "--dataset", "cases", *words]
    done = CliRunner().invoke(app, command)
    (line,) = (line for line in done.output.splitlines() if "ledger:" in line)
    return done.exit_code, line


@pytest.mark.parametrize(
    ("name", "book", "expected", "words"),
    [
        ("paid", "budget.db", 0, "found: entry"),
        ("levels", "budget.db", 0, "found: entry"),
        ("paid", "other.db", 1, "not found"),
        ("unpaid", "budget.db", 1, "not found"),
    ],
)
def test_the_entry_of_a_release_is_looked_up(place, name, book, expected, words):
    code, line = check(place / name, place / book)
    assert (code, words in line) == (expected, True), line


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"entry": 7}])
def test_a_receipt_that_names_another_entry_is_different(place, tmp_path, change):
    folder = shutil.copytree(place / "paid", tmp_path / "release")
    data = forging.read(folder)
    forging.write(folder, data | {"ledger": data["ledger"] | change})
    code, line = check(folder, place / "budget.db")
    assert (code, "different" in line) == (1, True), line


def test_the_two_options_go_together(place):
    done = CliRunner().invoke(app, ["check", str(place / "paid"), "--ledger", "x.db"])
    assert isinstance(done.exception, tv.UsageError)


def test_check_states_what_it_shows_and_what_it_cannot(place):
    output = CliRunner().invoke(app, ["check", str(place / "paid")]).output
    for words in (
        "counts in 40 rows: count 0 to 9",
        "changes counts by at most 2 in all",
        "one person, counted at most 2 times",
        f"fingerprint {fingerprint()}: this very program",
        "No check can show:",
        "really drawn",
    ):
        assert words in output
    page = (place / "paid" / "METHODOLOGY.html").read_text(encoding="utf-8")
    assert fingerprint() in page
    assert "pip install" not in page
