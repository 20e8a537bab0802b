"""`tallyveil privatize`: the main job, from the outside."""

import csv
import json
import re
import stat

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil.budget.ledger import Ledger
from tallyveil.check.package import check_package

FILES = {
    "data.csv",
    "datapackage.json",
    "mechanism.json",
    "certificate.json",
    "mechanism-distribution.json",
    "certificate-distribution.json",
    "METHODOLOGY.html",
    "receipt.json",
    "SHA256SUMS",
}
COUNT = "privatize --count cases --upper 9"
BASE = f"{COUNT} --epsilon 1 --keep all"


def receipt(folder):
    return json.loads((folder / "receipt.json").read_text())


def checked(folder):
    assert [finding for finding in check_package(folder) if not finding.ok] == []


def rows(path, delimiter=","):
    with open(path, newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_the_main_job(tallyveil, cases, tmp_path, ledger, history):
    out = tmp_path / "release"
    done = tallyveil(f"{BASE} --dataset cases --ledger", ledger, cases, "--out", out, check=0)
    assert {path.name for path in out.iterdir()} == FILES
    before, after = rows(cases), rows(out / "data.csv")
    assert before[0] == after[0]
    assert len(before) == len(after)
    for old, new in zip(before[1:], after[1:], strict=True):
        assert (old[0], old[1], old[3]) == (new[0], new[1], new[3])
        assert new[2] in set("0123456789")
    lines = [
        f"Released 300 rows to {out}/ (9 files).",
        "",
        "Privacy    epsilon 1 in total, for one person counted at most once in each count column",
        "Budget     dataset 'cases': 1 of 2 spent",
        "Method     cases: noise on every count, then adjusted to keep the distribution of counts",
    ]
    assert done.stdout.splitlines()[:5] == lines
    accuracy = r"Accuracy cases: off by [0-9.]+ on average; at least 95% of the time a true 0 is"
    assert re.search(accuracy, " ".join(done.stdout.split()))
    assert "Public     county, fips, rate (unchanged)" in done.stdout
    assert f"Next       tallyveil check {out}\n" in done.stdout
    tallyveil("check", out, check=0)
    (entry,) = history()
    assert entry["epsilon"] == 1.0
    assert entry["columns"] == ["cases"]
    paid = {"dataset": "cases", "entry": entry["entry"], "digest": entry["digest"]}
    assert receipt(out)["ledger"] == paid
    listed = tallyveil("ledger history --dataset cases --json --ledger", ledger, check=0)
    assert json.loads(listed.stdout) == [entry]
    (column,) = receipt(out)["columns"]
    assert entry["mechanism"] == [stage["sha256"] for stage in column["stages"]]
    words = ("ledger verify --ledger", ledger, "--release", out)
    assert "2 entries" in tallyveil(*words, check=0).stdout
    assert not [path for path in tmp_path.iterdir() if "partial" in path.name]


def test_json_is_all_there_is_on_standard_output(tallyveil, cases, tmp_path):
    out = tmp_path / "release"
    done = tallyveil(f"{BASE} --json", cases, "--out", out, check=0)
    assert json.loads(done.stdout)["receipt"] == receipt(out)


def test_a_refused_debit_leaves_nothing_behind(tallyveil, cases, tmp_path, ledger, history):
    paid = ("--ledger", ledger, "--dataset", "cases", "--out")
    words = (f"{COUNT} --epsilon 1.5 --keep all", cases, *paid)
    tallyveil(*words, tmp_path / "one", check=0)
    refused = tallyveil(*words, tmp_path / "two", check=1)
    assert refused.stderr == (
        "error: This release costs epsilon 1.5, but dataset 'cases' has 0.5 of 2 left. Nothing was "
        "spent. Lower the cost to 0.5 or less.\n"
    )
    assert not (tmp_path / "two").exists()
    assert len(history()) == 1


def test_the_whole_cost_is_stated_and_debited(tallyveil, cases, tmp_path):
    """Other options are in `tests/release/test_two_doors.py`."""
    book, out = Ledger.create(tmp_path / "budget.db"), tmp_path / "release"
    book.open("d", 6)
    paid = ("--ledger", tmp_path / "budget.db", "--dataset", "d", "--out", out)
    tallyveil(f"{BASE} --set unit.neighbours=replace_one --contributions 3", cases, *paid, check=0)
    assert book.account("d").spent_epsilon == receipt(out)["statement"]["epsilon"] == 6
    names = [stage["name"] for stage in receipt(out)["columns"][0]["stages"]]
    assert names == ["cases: distribution", "cases: counts"]
    checked(out)


def test_a_mechanism_of_ones_own_is_drawn_from(tallyveil, cases, tmp_path):
    tv.certify(tv.geometric(tv.Query.count(9), "1/2")).save(tmp_path / "m.json")
    out = tmp_path / "release"
    tallyveil(f"{BASE} --method m.json", cases, "--out", out, cwd=tmp_path, check=0)
    (column,) = receipt(out)["columns"]
    assert (column["method"]["name"], column["epsilon"]) == ("file", "1/2")
    checked(out)


def test_the_confidential_report_stays_outside(tallyveil, cases, tmp_path):
    out, report = tmp_path / "release", tmp_path / "secret.html"
    words = (BASE, cases, "--out", out, "--confidential-report")
    (tmp_path / ".release.partial").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    for folder in (out, tmp_path / ".release.partial", tmp_path / "link" / ".release.partial"):
        inside = tallyveil(*words, folder / "secret.html", check=2)
        assert "outside the release folder" in inside.stderr
        assert not out.exists()
    done = tallyveil(*words, report, check=0)
    assert "CONFIDENTIAL" in done.stderr
    text = report.read_text()
    assert text.count("CONFIDENTIAL") >= 4
    assert '<table class="sheet"><thead><tr><th><div class="mark">CONFIDENTIAL' in text
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    assert {path.name for path in out.iterdir()} == FILES
    again = (BASE, cases, "--out", tmp_path / "y", "--confidential-report", report)
    assert "new file" in tallyveil(*again, check=2).stderr


def test_parquet_keeps_its_types(tallyveil, tmp_path):
    when = pa.array(range(60), pa.date32())
    counts = pa.array([i % 5 for i in range(60)], pa.int16())
    table = pa.table({"when": when, "cases": counts, "name": ["a", "b"] * 30})
    coded = table.set_column(2, "name", table["name"].dictionary_encode())
    path, out = tmp_path / "t.parquet", tmp_path / "release"
    pq.write_table(coded, path)
    tallyveil(BASE, path, "--out", out, check=0)
    released = pq.read_table(out / "data.parquet")
    assert released.schema == table.schema.set(1, pa.field("cases", pa.int64(), nullable=False))
    assert released.drop_columns("cases").equals(table.drop_columns("cases"))
    checked(out)


def test_no_column_leaves_unnamed(tallyveil, cases, tmp_path):
    words = (f"{COUNT} --epsilon 1", cases, "--out", tmp_path / "a")
    refused = tallyveil(*words, check=1)
    assert refused.stderr == (
        "error: Name the public columns to release with --keep (county, fips, rate), or use "
        "--keep all.\n"
    )
    done = tallyveil(*words, "--keep", "fips", check=0)
    assert "Public     fips (unchanged)\nNot released  county, rate\n" in done.stdout
    assert "Budget     no ledger: other releases of this data are not tracked" in done.stdout
    assert rows(tmp_path / "a" / "data.csv")[0] == ["fips", "cases"]
    tallyveil(*words, "--keep", "all", "--keep", "fips", check=2)


@pytest.mark.parametrize("flag", ["--hierarchy", "--out", "--within", "--contributions"])
def test_a_flag_of_one_value_is_given_once(tallyveil, cases, tmp_path, flag):
    done = tallyveil(f"{BASE} {flag} 1 {flag} 2", cases, "--out", tmp_path / "x", check=2)
    assert f"Give {flag} once" in done.stderr
    assert list(tmp_path.glob("*/receipt.json")) == []
