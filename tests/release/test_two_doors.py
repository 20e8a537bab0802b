"""The command line and Python are two doors to one road: same folder, ledger, receipt, error."""

import inspect
import re
import shlex

import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli import app as program
from tallyveil.release import transaction
from tests.asking import FixedEntropy, privatize

ROWS = 300
COUNT = "--count cases --upper 9 --epsilon 1"
PROPERTIES = ["row_monotone", "fair"]
REQUESTS = {
    "preserve": (COUNT, {}),
    "exact epsilon": ("--count cases --upper 9 --epsilon 1/3", {"epsilon": "1/3"}),
    "geometric": (
        "--count cases --upper 40 --epsilon 0.3 --method geometric",
        {"upper": 40, "epsilon": "0.3", "method": "geometric"},
    ),
    "fair, refused above": (
        "--count cases --upper 12 --epsilon 2 --method fair",
        {"upper": 12, "epsilon": 2, "method": "fair"},
    ),
    "design": (
        f"{COUNT} --method design --set method.loss=squared"
        " --set method.properties=row_monotone --set method.properties=fair",
        {"method": "design", "loss": "squared", "properties": PROPERTIES},
    ),
    "within": (
        "--count cases --upper 9 --within 2 --set budget.confidence=0.9",
        {"epsilon": None, "accuracy": 2, "confidence": 0.9},
    ),
    "changed record, two cells": (
        f"{COUNT} --contributions 2 --set unit.neighbours=replace_one",
        {"neighbours": "replace_one", "contributions": 2},
    ),
    "two columns": (
        "--count cases --count tests --upper 9 --upper 12 --epsilon 1/2 --epsilon 1/4",
        {"count": ["cases", "tests"], "upper": [9, 12], "epsilon": ["1/2", "1/4"]},
    ),
    "one column kept": (f"{COUNT} --keep county", {"keep": "county"}),
    "disjoint columns": (
        "--count cases --count tests --upper 9 --epsilon 1/2 --epsilon 1/4 "
        "--set unit.disjoint=cases,tests",
        {"count": ["cases", "tests"], "epsilon": ["1/2", "1/4"], "disjoint": ["cases", "tests"]},
    ),
    "counts first": (f"{COUNT} --priority 1/4", {"priority": "1/4"}),
    "balanced": (f"{COUNT} --priority balanced", {"priority": "balanced"}),
    "a delta": (f"{COUNT} --set budget.delta=1e-6", {"delta": "1e-6"}),
    "several in one row": (
        f"{COUNT} --contributions 3 --set unit.spread=one_row",
        {"contributions": 3, "spread": "one_row"},
    ),
    "in different rows": (
        "--count cases --upper 9 --epsilon 0.02 --contributions 50 "
        "--set budget.delta=1e-6 --set unit.spread=distinct_rows",
        {"contributions": 50, "delta": "1e-6", "epsilon": "0.02", "spread": "distinct_rows"},
    ),
    "events": (f"{COUNT} --unit event", {"kind": "event"}),
    "microdata": (
        "--by county --categories {categories} --where 'tests > 2' --upper 9 --epsilon 1",
        {"count": None, "by": "county", "categories": "{categories}", "where": "tests > 2"},
    ),
}
ERRORS = {
    "no public columns named": (f"{COUNT} --contributions 1", {"keep": None, "contributions": 1}),
    "disjoint from nothing": (f"{COUNT} --set unit.disjoint=cases", {"disjoint": "cases"}),
    "a count kept": (f"{COUNT} --keep cases", {"keep": "cases"}),
    "no epsilon": ("--count cases --upper 9", {"epsilon": None}),
    "no column": ("--count nothing --upper 9 --epsilon 1", {"count": "nothing"}),
    "bad epsilon": ("--count cases --upper 9 --epsilon x", {"epsilon": "x"}),
    "bad upper": ("--count cases --upper ten --epsilon 1", {"upper": "ten"}),
    "unknown method": (f"{COUNT} --method x", {"method": "x"}),
    "properties without design": (
        f"{COUNT} --method fair --set method.properties=fair",
        {"method": "fair", "properties": ["fair"]},
    ),
    "overspent": ("--count cases --upper 9 --epsilon 50", {"epsilon": 50}),
    "unknown dataset": (f"{COUNT} --dataset x", {"dataset": "x"}),
}


def keep(words):
    """Requests that say nothing of other columns say that all are public."""
    return [] if re.search("--keep|--contributions 1|--by", words) else ["--keep", "all"]


@pytest.fixture(autouse=True)
def fixed(monkeypatch):
    """The same bits and the same name for both doors."""
    monkeypatch.setattr(transaction, "Entropy", FixedEntropy)
    monkeypatch.setattr(transaction.uuid, "uuid4", lambda: "one-name")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "cases.csv"
    lines = [f"c{i},{(i * i) % 7 + i % 4},{(i * 5) % 11}" for i in range(ROWS)]
    path.write_text("county,cases,tests\n" + "\n".join(lines) + "\n")
    (tmp_path / "categories.txt").write_text("".join(f"c{i}\n" for i in range(ROWS)))
    return path


def through_the_command_line(table, words, folder):
    book = open_ledger(folder.with_suffix(".db"))
    words = words.format(categories=table.with_name("categories.txt"))
    values = [*shlex.split(words), *keep(words), "--out", str(folder)]
    values += ["--ledger", str(book.store.path)]
    if "--dataset" not in values:
        values += ["--dataset", "cases"]
    return book, CliRunner().invoke(program.app, ["privatize", str(table), *values])


def through_python(table, options, folder):
    book = open_ledger(folder.with_suffix(".db"))
    values = {"count": "cases", "upper": 9, "epsilon": 1, "dataset": "cases", **options}
    if not {"keep", "by"} & set(options):
        values["keep"] = "all"
    if values.get("categories"):
        values["categories"] = str(table.with_name("categories.txt"))
    try:
        return book, privatize(table, out=folder, ledger=book, **values)
    except tv.TallyveilError as problem:
        return book, problem


def open_ledger(path):
    book = tv.Ledger.create(path)
    book.open("cases", 10, "1e-5")
    return book


def files_of(folder):
    """Every file's bytes, without the time and the ledger's digest (which hashes the time)."""
    varying = re.compile(rb"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
    findings = {}
    for path in sorted(folder.iterdir()):
        ledger = rb'(digest |"entry": 2,\n  "digest": ")[0-9a-f]{16,64}(?=\xe2|")'
        findings[path.name] = re.sub(ledger, b"*", varying.sub(b"*", path.read_bytes()))
    findings.pop("SHA256SUMS")
    return findings


@pytest.mark.parametrize("name", REQUESTS)
def test_both_doors_leave_the_same_folder_and_the_same_debit(table, tmp_path, name):
    words, options = REQUESTS[name]
    first, ran = through_the_command_line(table, words, tmp_path / "first")
    second, released = through_python(table, options, tmp_path / "second")
    assert ran.exit_code == 0, ran.output
    assert isinstance(released, tv.Release), released
    assert files_of(tmp_path / "first") == files_of(tmp_path / "second")
    entries = [book.history("cases")[0].body for book in (first, second)]
    for entry in entries:
        del entry["time"], entry["command"]
    assert entries[0] == entries[1]
    for folder in ("first", "second"):
        assert all(finding.ok for finding in tv.check_package(tmp_path / folder))


@pytest.mark.parametrize("name", ERRORS)
def test_both_doors_refuse_with_the_same_sentence_and_spend_nothing(table, tmp_path, name):
    words, options = ERRORS[name]
    first, ran = through_the_command_line(table, words, tmp_path / "first")
    second, problem = through_python(table, options, tmp_path / "second")
    assert type(ran.exception) is type(problem)
    assert str(ran.exception).replace("first", "second") == str(problem)
    for book, folder in ((first, "first"), (second, "second")):
        assert book.history("cases") == []
        assert not (tmp_path / folder).exists()


def test_ladders_travel_the_same_road(table, tmp_path):
    words = ["--count", "cases", "--keep", "all", "--upper", "9", "--epsilons", "2,1/2"]
    book = open_ledger(tmp_path / "first.db")
    account = ["--ledger", str(book.store.path), "--dataset", "cases"]
    account += ["--out", str(folder := tmp_path / "first")]
    ran = CliRunner().invoke(program.app, ["ladder", str(table), *words, *account])
    assert ran.exit_code == 0, ran.output
    through_python(table, {"epsilons": [2, "1/2"]}, tmp_path / "second")
    for level in ("level-1-epsilon-2", "level-2-epsilon-0.5"):
        assert files_of(folder / level) == files_of(tmp_path / "second" / level)
    assert [entry.epsilon for entry in book.history("cases")] == [2]
    assert all(finding.ok for finding in tv.check_package(folder))


def test_every_option_has_one_home():
    """Python takes exactly the keys of a request, in at most 20 parameters."""
    keys = set(tv.ReleaseOptions.__struct_fields__) - {"dry_run"}
    parameters = set(inspect.signature(tv.privatize).parameters)
    assert parameters == keys | {"table"}
    assert len(parameters) <= 20
    levels = set(inspect.signature(tv.privatize_levels).parameters)
    assert levels == parameters - {"epsilon", "method", "budget"} | {"epsilons"}
