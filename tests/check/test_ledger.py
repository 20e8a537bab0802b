"""`check --ledger`: whether the entry that paid for a release is there, and the same."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app
from tallyveil.fingerprint import fingerprint
from tests.asking import privatize

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


def look(folder, book, *words):
    command = ["check", str(folder), "--ledger", str(book), "--dataset", "cases", *words]
    done = CliRunner().invoke(app, command)
    (line,) = (line for line in done.output.splitlines() if "ledger:" in line)
    return done.exit_code, line


@pytest.mark.parametrize("name", ["paid", "levels"])
def test_a_release_that_was_paid_for_is_found(place, name):
    code, line = look(place / name, place / "budget.db")
    assert (code, "found: entry" in line) == (0, True), line


def test_another_ledger_and_no_ledger_are_not_found(place):
    for folder, book in (("paid", "other.db"), ("unpaid", "budget.db")):
        code, line = look(place / folder, place / book)
        assert code == 1
        assert "not found" in line


def test_a_receipt_that_names_another_entry_is_different(place, tmp_path):
    folder = shutil.copytree(place / "paid", tmp_path / "release")
    data = json.loads((folder / "receipt.json").read_text())
    for change, word in (({"digest": "0" * 64}, "different"), ({"entry": 7}, "different")):
        changed = data | {"ledger": data["ledger"] | change}
        (folder / "receipt.json").write_text(json.dumps(changed, indent=1))
        code, line = look(folder, place / "budget.db")
        assert code == 1
        assert word in line


def test_the_two_options_go_together(place):
    done = CliRunner().invoke(app, ["check", str(place / "paid"), "--ledger", "x.db"])
    assert isinstance(done.exception, tv.UsageError)


def test_check_says_in_words_what_it_shows_and_what_it_cannot(place):
    said = CliRunner().invoke(app, ["check", str(place / "paid")]).output
    for words in (
        "counts in 40 rows: count 0 to 9",
        "changes counts by at most 2 in all",
        "one person, counted at most 2 times",
        f"fingerprint {fingerprint()}: this very program",
        "No check can show:",
        "really drawn",
    ):
        assert words in said
    page = (place / "paid" / "METHODOLOGY.html").read_text(encoding="utf-8")
    assert fingerprint() in page
    assert "pip install" not in page
