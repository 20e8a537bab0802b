"""`tallyveil privatize --dry-run`: what would happen, without reading a count."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tallyveil.cli.app import app

OPTIONS = "--count cases --upper 12 --epsilon 1 --keep all --dry-run"
BASE = OPTIONS.split()


def write_table(path, seed):
    """Three states of 20 counties, with counts that depend on the seed."""
    lines = ["state,county,kind,cases"]
    for state in "NSW":
        for n in range(20):
            lines.append(f"{state},{state}{n},{'ab'[n % 2]},{(seed * n + ord(state)) % 12}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "t.csv", 1)


@pytest.fixture(autouse=True)
def few_runs(monkeypatch):
    monkeypatch.setattr("tallyveil.release.preview.SECONDS", 0.0)


def show(*words):
    done = CliRunner().invoke(app, ["privatize", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def plan(*words):
    return json.loads(show(*words, "--json"))


def public(answer):
    """What a dry run says that was not drawn."""
    before = [np.trim_zeros(column["histogram"]["before"]) for column in answer["simulated"]]
    refused = [method.get("refused") for method in answer["methods"]]
    return answer["epsilon"], answer["stages"], answer["columns"], before, refused


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--hierarchy", "state"),
        ("--set", "method.name=strata", "--set", "method.columns=state"),
        ("--set", "counts.structural_zeros=state = N"),
    ],
)
def test_it_does_not_depend_on_any_count(tmp_path, words):
    first, other = write_table(tmp_path / "a.csv", 1), write_table(tmp_path / "b.csv", 13)
    odd = tmp_path / "c.csv"
    odd.write_text(first.read_text().replace(",0\n", ",00\n").replace(",3\n", ",many\n"))
    answer = public(plan(first, *BASE, *words))
    assert answer == public(plan(other, *BASE, *words)) == public(plan(odd, *BASE, *words))


def test_a_column_that_can_hold_no_count_is_refused(tallyveil, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"cases": [True, False]}), path)
    done = tallyveil("privatize", path, *BASE, check=1)
    assert "'cases' must hold whole numbers; it holds true and false" in done.stderr


def test_nobody_is_counted_for_microdata(tallyveil, tmp_path):
    words = ("--by", "age", "--bins", "age=0,18,65", "--epsilon", "1", "--dry-run")
    path, plans = tmp_path / "t.csv", []
    for ages in ([3, 40, 41], [70] * 500):
        path.write_text("age\n" + "".join(f"{age}\n" for age in ages))
        plans.append(public(plan(path, *words)))
    assert plans[0] == plans[1]
    done = tallyveil("privatize", path, *words, "--where", "height > 3", check=1)
    assert "names a column that is not there" in done.stderr
    done = tallyveil("privatize --id-column id --contributions 2", path, *words, check=1)
    assert "No column named 'id'" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--count case", "No column named 'case'"),
        ("--count cases --hierarchy state,planet", "No column named 'planet'"),
        ("--count cases --categories N,S --by state", "repeats the category"),
        ("--count cases --ledger no.db --dataset x --out new", "There is no ledger"),
        ("--count cases --out .", "exists already"),
    ],
)
def test_it_refuses_what_a_release_would_refuse(tallyveil, table, words, message):
    words = f"privatize --upper 12 --epsilon 1 --keep all {words}"
    done = tallyveil(f"{words} --dry-run", table, cwd=table.parent)
    assert done.returncode in (1, 2)
    assert message in done.stderr
    words += "" if "--out" in words else " --out new"
    refused = tallyveil(words, table, cwd=table.parent)
    assert refused.returncode == done.returncode
    assert refused.stderr == done.stderr


def test_a_budget_that_does_not_suffice_is_found_and_not_touched(
    tallyveil, table, ledger, history, tmp_path
):
    words = ("--ledger", ledger, "--dataset", "cases")
    dear = OPTIONS.replace("--epsilon 1", "--epsilon 5")
    done = tallyveil(f"privatize {dear}", table, *words, check=1)
    assert "costs epsilon 5, but dataset 'cases' has 2 of 2 left" in done.stderr
    tallyveil("privatize", table, *BASE, *words, check=0)
    tallyveil("privatize", table, *BASE, *words, "--out", tmp_path / "new", check=0)
    assert history() == []
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "levels", "parts"),
    [
        ("--hierarchy state", {"total": 1, "state": 3}, ["total", "state"]),
        ("--margins state,kind", {"state": 3, "kind": 2}, ["total", "state", "kind"]),
    ],
)
def test_totals_are_planned_and_compared(table, words, levels, parts):
    """Figures of counts are those that a receipt states for the draws, cut to the range."""
    answer = plan(table, *BASE, *words.split())
    (column,) = answer["columns"]
    assert {level["level"]: level["sums"] for level in column["levels"]} == levels
    assert all(level["half_width"] > level["deviation"] > 0 for level in column["levels"])
    assert sum(stage["epsilon"] for stage in answer["stages"]) == pytest.approx(1, abs=1e-9)
    methods = answer["methods"]
    assert [m["method"] for m in methods] == ["preserve", "geometric", "fair", "design"]
    for method in methods:
        assert method["epsilon"] == 1
        assert [part["name"] for part in method["columns"][0]["sums"]] == parts
    accuracy = column["accuracy"]
    assert accuracy["true_count"] == list(range(13))
    assert max(accuracy["interval_high"]) <= 12
    assert accuracy["bias"][0] > 0 > accuracy["bias"][12]
    assert max(accuracy["rmse"]) <= 12
    shown = show(table, *BASE, *words.split())
    assert "state: 3 totals, standard deviation" in shown
    assert f"{words.split()[0].strip('-')}, as planned" in shown
    assert "±" in shown


def test_signed_counts_are_not_floored(table):
    words = OPTIONS.replace("--upper 12", "--method geometric --set method.signed=true").split()
    answer = plan(table, *words)
    accuracy = answer["columns"][0]["accuracy"]
    assert accuracy["interval_low"][0] < 0
    assert set(accuracy["bias"]) == {0}
    assert answer["simulated"][0]["histogram"]["from"][0] < 0
    shown = show(table, *words)
    assert "counts of any sign" in shown


def test_without_a_file_or_with_rows_nothing_is_opened(tallyveil, tmp_path):
    shown = show(*BASE)
    assert "neither the data nor a budget was touched" in shown
    few = plan(tmp_path / "none.csv", *BASE, "--set", "dry_run.rows=10")
    assert few["columns"][0]["method"] == "geometric"
    assert few["simulated"][0]["rows"] == 10
    assert plan(*BASE)["columns"][0]["method"] == "preserve"
    done = tallyveil("privatize", tmp_path / "none.csv", *BASE, check=1)
    assert "There is no file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_public_table_can_be_tried_instead(tallyveil, table, tmp_path):
    public_table = write_table(tmp_path / "last_year.csv", 7)
    like = ("--set", f"dry_run.like={public_table}")
    answer = plan(table, *BASE, *like)
    counts = [int(line.split(",")[3]) for line in public_table.read_text().splitlines()[1:]]
    before = answer["simulated"][0]["histogram"]["before"]
    assert before[0] == counts.count(0)
    assert sum(before) == 60
    shown = show(table, *BASE, *like)
    assert "the public counts of last_year.csv" in shown
    done = tallyveil("privatize", table, *BASE[:-1], *like, "--out", "x", check=2)
    assert "--set dry_run.like go with --dry-run only" in done.stderr


def test_a_request_is_kept_only_if_it_is_accepted(tallyveil, table, tmp_path):
    saved = tmp_path / "release.toml"
    words = ("--save-request", saved)
    tallyveil("privatize", table, *BASE, "--hierarchy", "planet", *words, check=1)
    assert not saved.exists()
    tallyveil("privatize", table, *BASE, *words, check=0)
    assert saved.exists()
    assert "Tried" in tallyveil("run", saved, "--dry-run", check=0).stdout
