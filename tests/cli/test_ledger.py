"""Accounts that compose, from the command line to the page."""

import json
from fractions import Fraction


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
    tallyveil("ledger", "plan", *book, check=2)
    tallyveil("ledger", "plan", *book, "--stages", 2, "--epsilons", "1,1", check=2)
    tallyveil("ledger", "plan", *book, "--epsilons", "0.1x1000000", check=2)
    tallyveil("ledger", "plan", *book, "--stages", 0, check=2)
    tallyveil("ledger", "plan", *book, "--epsilons", "0.1x12,0.5", check=0)
    shown = tallyveil("ledger", "show", "--ledger", tmp_path / "budget.db", check=0).stdout
    assert "exact" in shown
