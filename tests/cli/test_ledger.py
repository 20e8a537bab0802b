"""Accounts that compose, from the command line to the page."""

import json
from fractions import Fraction

import tallyveil as tv
from tallyveil.budget.ledger import Ledger


def test_a_planned_account_from_init_to_page(tallyveil, cases, tmp_path):
    book = ("--ledger", tmp_path / "budget.db", "--dataset", "cases")
    total = ("--epsilon", "1", "--delta", "1e-6")
    tallyveil("ledger", "init", *book, *total, "--accounting", "exact", check=0)
    planned = tallyveil("ledger", "plan", *book, "--stages", 100, "--json", check=0)
    each = json.loads(planned.stdout)["epsilons_exact"][0]
    assert Fraction(each) >= Fraction("0.023")
    release = ("privatize", cases, "--count", "cases", "--keep", "all", "--upper", 9)
    paid = (*release, "--method", "geometric", *book)
    out = tmp_path / "release"
    tallyveil(*paid, "--epsilon", each, "--out", out, check=0)
    assert "together keep epsilon 1 with a delta of 1e-06" in (out / "METHODOLOGY.html").read_text()
    assert tallyveil("check", out, check=0)
    refused = tallyveil(*paid, "--epsilon", "0.5", "--out", tmp_path / "other")
    assert refused.returncode != 0
    assert "99 free places" in " ".join(refused.stderr.split())
    assert not (tmp_path / "other").exists()


def test_a_plan_asks_for_one_kind_of_amount(tallyveil, tmp_path):
    book = ("--ledger", tmp_path / "budget.db", "--dataset", "cases")
    total = ("--epsilon", "2", "--delta", "1e-6")
    tallyveil("ledger", "init", *book, *total, "--accounting", "exact", check=0)
    for words in ("", "--stages 2 --epsilons 1,1", "--epsilons 0.1x1000000", "--stages 0"):
        tallyveil(f"ledger plan {words}", *book, check=2)
    tallyveil("ledger", "plan", *book, "--epsilons", "0.1x12,0.5", check=0)
    shown = tallyveil("ledger", "show", "--ledger", tmp_path / "budget.db", check=0).stdout
    assert "exact" in shown
    assert "a plan of 13 places, 0 of them taken. Free: 12 of epsilon 0.1, 1 of eps" in shown


def test_free_places_and_found_debits_are_said(tallyveil, cases, tmp_path):
    book = Ledger.create(tmp_path / "budget.db")
    book.open("cases", 2, "1e-6", "exact")
    place = ("--ledger", tmp_path / "budget.db")
    assert "'cases' has no plan yet" in tallyveil("ledger", "show", *place, check=0).stdout
    book.plan("cases", [Fraction(1, 10)] * 3 + [Fraction(1, 2)])
    folder, paid = tmp_path / "release", {"ledger": book, "dataset": "cases"}
    options = {"count": "cases", "keep": ["county", "fips", "rate"], "method": "geometric"}
    tv.privatize(cases, **options, epsilon="0.05", upper=9, out=folder, **paid)
    shown = tallyveil("ledger", "show", *place, check=0).stdout
    assert "1 of them taken. Free: 2 of epsilon 0.1, 1 of epsilon 0.5." in shown
    (account,) = json.loads(tallyveil("ledger", "show", *place, "--json", check=0).stdout)
    assert (account["planned_places"], account["free_places"]) == (4, ["1/10", "1/10", "1/2"])
    verify = ("ledger", "verify", *place, "--release", folder)
    text = tallyveil(*verify, check=0).stdout
    assert "Found: entry 3 of 'cases' is the debit of this release." in " ".join(text.split())
    assert json.loads(tallyveil(*verify, "--json", check=0).stdout)["entry"] == 3
