"""Reserve, debit, draw, write: in this order, and what is proved is what is drawn."""

import hashlib
import json
import os
import pickle
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedNoise
from tallyveil.release import transaction
from tallyveil.release.methods.base import Plan
from tests.asking import privatize

COUNTS = [i % 7 for i in range(400)]


@pytest.fixture
def book(tmp_path):
    ledger = tv.Ledger.create(tmp_path / "budget.db")
    ledger.open("cases", 2)
    return ledger


def pay(book, tmp_path, table=COUNTS, **options):
    """A release that is debited, with the options that are changed."""
    keys = {"upper": 9, "epsilon": 1, "ledger": book, "dataset": "cases", "out": tmp_path / "out"}
    return privatize(table, **{**keys, **options})


def watch(monkeypatch, home, name, see):
    """Call `see` with the arguments of every call of a function, and then the function."""
    real = getattr(home, name)

    def watched(*args, **kwargs):
        see(*args)
        return real(*args, **kwargs)

    monkeypatch.setattr(home, name, watched)


def test_a_folder_that_exists_is_refused_before_the_table_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(transaction, "open_table", lambda *_: pytest.fail("the table was read"))
    (tmp_path / "out").mkdir()
    with pytest.raises(tv.PackageError, match="exists already"):
        privatize(COUNTS, upper=9, epsilon=1, out=tmp_path / "out")


def test_a_folder_that_appears_meanwhile_is_refused_before_the_debit(book, tmp_path, monkeypatch):
    watch(monkeypatch, transaction, "plan_release", lambda *_: (tmp_path / "out").mkdir())
    with pytest.raises(tv.PackageError, match="exists already") as refused:
        pay(book, tmp_path)
    assert "spent" not in str(refused.value)
    assert book.account("cases").remaining_epsilon == 2


@pytest.mark.parametrize(
    "problem", [tv.TableError("Gone."), OSError(28, "No space left"), RuntimeError("unforeseen")]
)
@pytest.mark.parametrize("debited", [True, False])
def test_what_fails_after_the_debit_says_that_the_budget_was_spent(
    book, tmp_path, monkeypatch, problem, debited
):
    def fail(*_):
        raise problem

    problem = type(problem)(*problem.args)
    monkeypatch.setattr(transaction, "write_releases", fail)
    free = {} if debited else {"ledger": None, "dataset": None}
    with pytest.raises(Exception, match=r"Gone|no room|unforeseen") as failed:
        pay(book, tmp_path, **free)
    text = " ".join([str(failed.value), *getattr(failed.value, "__notes__", ())])
    assert ("The budget was spent before that, by entry 2 of the ledger." in text) == debited
    assert (book.account("cases").remaining_epsilon == 1) == debited
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("problem", ["the source is saved again", "no room for the report"])
def test_a_confidential_report_never_fails_after_the_folder_appeared(
    book, tmp_path, monkeypatch, problem
):
    table, report = tmp_path / "t.csv", tmp_path / "secret.html"
    table.write_text("id,n\n" + "".join(f"{i},{i % 7}\n" for i in range(90)))
    real = transaction.Staging.commit

    def commit(place, folders):
        folder = real(place, folders)
        table.write_text("id,n\n1,1\n")
        return folder

    def open_full(handle, *args, **options):
        os.close(handle)
        return open("/dev/full", *args, **options)

    def run():
        return pay(book, tmp_path, table, count="n", keep="id", confidential_report=report)

    if problem == "no room for the report":
        monkeypatch.setattr(transaction, "open", open_full, raising=False)
        with pytest.raises(tv.UsageError, match=r"report cannot be written: No space.*Nothing was"):
            run()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.db", "t.csv"]
        return
    monkeypatch.setattr(transaction.Staging, "commit", commit)
    run()
    assert "CONFIDENTIAL" in report.read_text()


@pytest.mark.parametrize("cost", [{}, {"epsilon": None, "epsilons": [1, "1/2"]}])
def test_the_steps_come_in_order(book, tmp_path, monkeypatch, cost):
    """Room, then debit, then the first draw, then the folder."""
    seen = []
    watch(monkeypatch, transaction, "reserve_folder", lambda *_: seen.append("room"))
    watch(monkeypatch, tv.Ledger, "debit", lambda *_: seen.append("debit"))
    watch(monkeypatch, Plan, "draw", lambda *_: seen.append("draw"))
    watch(monkeypatch, transaction.Staging, "commit", lambda *_: seen.append("folder"))
    pay(book, tmp_path, **cost)
    assert seen == ["room", "debit", "draw", "folder"]


def test_what_is_proved_is_what_is_drawn_hashed_and_shipped(book, tmp_path, monkeypatch):
    drawn, out = [], tmp_path / "out"
    watch(monkeypatch, CertifiedGeometric, "draw_positions", lambda one, *_: drawn.append(one))
    watch(monkeypatch, CertifiedNoise, "release", lambda one, *_: drawn.append(one))
    pay(book, tmp_path)
    hashes = {hashlib.sha256(made.to_json().encode()).hexdigest() for made in drawn}
    shipped = {
        hashlib.sha256(path.read_bytes()).hexdigest() for path in out.glob("mechanism*.json")
    }
    (entry,) = book.history("cases")
    assert len(drawn) == 2
    assert hashes == shipped == set(entry.body["mechanism"])
    digests = {json.loads(p.read_text())["digest"] for p in out.glob("certificate*.json")}
    assert digests == set(entry.body["certificate"])
    for path in out.glob("*.json"):
        if path.name.startswith(("mechanism", "certificate")):
            assert tv.verify(path), path.name


@pytest.mark.parametrize("upper", [9, 255, 256, 70_000])
def test_counts_travel_as_one_compact_array(monkeypatch, upper):
    seen = []
    watch(monkeypatch, Plan, "draw", lambda plan, counts, entropy: seen.append(counts))
    privatize(np.array([3, 10**9, 0]), upper=upper, epsilon=1, method="geometric")
    (counts,) = seen
    assert counts.dtype == np.min_scalar_type(upper)
    assert counts.tolist() == [3, upper, 0]


def test_a_release_is_short_to_look_at_and_can_be_pickled():
    rel = privatize(COUNTS, upper=9, epsilon=1)
    assert repr(rel) == "<Release of count: 400 rows, epsilon=1>"
    assert "<svg" in rel._repr_html_()
    again = pickle.loads(pickle.dumps(rel))
    assert again.table == rel.table
    assert again.receipt == rel.receipt
    assert again.files == rel.files


LADDER = {"method": {"name": "ladder", "epsilons": [2, 1]}}
LOSS = r"'loss'. It belongs to method=\{'name': 'design'"
DELTA = r"'delta'. It belongs to budget=tv.Budget\(delta"
EPS = r"tv.privatize has no argument 'eps'\. Perhaps"


@pytest.mark.parametrize(
    ("call", "options", "error", "words"),
    [
        (tv.privatize, LADDER, tv.UsageError, "privatize_levels"),
        (tv.privatize, {"eps": 1}, tv.UsageError, EPS),
        (tv.privatize, {"epsilon": 1, "loss": "squared"}, tv.UsageError, LOSS),
        (tv.privatize, {"epsilon": 1, "delta": "1e-6"}, tv.UsageError, DELTA),
        (
            tv.privatize_levels,
            {"epsilon": 1},
            tv.UsageError,
            "epsilon.*Perhaps you mean 'epsilons'",
        ),
        (tv.privatize_levels, {}, tv.UsageError, "missing a required argument: 'epsilons'"),
        (tv.privatize_levels, {"epsilons": [1, 2]}, tv.ArgumentError, "strictly decreasing"),
        (tv.privatize_levels, {"epsilons": 2}, tv.ArgumentError, "'epsilons' must be a list"),
    ],
)
def test_mistaken_arguments_are_named(call, options, error, words):
    with pytest.raises(error, match=words):
        call(COUNTS, upper=9, **options)


NAMELESS = "'count' must name columns that have a name"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"epsilon": "1e-12"}, tv.ArgumentError, "epsilon"),
        ({"epsilon": "1." + "1" * 401}, tv.ArgumentError, "epsilon"),
        ({"epsilon": "1e-10", "method": "geometric"}, tv.ArgumentError, "epsilon"),
        ({"epsilons": [1, "1e-11"], "epsilon": None}, tv.ArgumentError, "epsilons"),
        ({"upper": 10**9, "method": "fair"}, tv.ArgumentError, "upper"),
        ({"entropy": "not a source"}, tv.TallyveilError, "entropy"),
        ({"count": "\udcff"}, tv.TallyveilError, "count"),
        ({"count": "", "keep": "all"}, tv.ArgumentError, NAMELESS),
        ({"count": " ", "keep": "all"}, tv.ArgumentError, NAMELESS),
        ({"out": None}, tv.UsageError, "must be reserved first"),
    ],
)
def test_what_cannot_be_published_is_refused_before_the_debit(paid, options, error, words):
    table = (
        pd.DataFrame({"ward": ["A", "B"], options["count"]: [1, 2]})
        if words == NAMELESS
        else COUNTS
    )
    with pytest.raises(error, match=words):
        privatize(table, **{"upper": 9, "epsilon": 1, **paid, **options})


def test_levels_with_long_epsilons_have_names_that_fit(tmp_path):
    long = Fraction(10**140 + 1, 10**140)
    privatize(COUNTS, upper=9, epsilons=[long, "1/2"], out=tmp_path / "out")
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))


WEAK = "weak protection: with a probability of up to 0."


@pytest.mark.parametrize(
    ("options", "words", "strong"),
    [
        ({"epsilon": "1/2"}, "almost as well", True),
        ({"epsilon": 3}, "to this extent", False),
        ({"epsilon": 6}, "weak protection", False),
        ({"delta": "1/5"}, WEAK, False),
        ({"delta": "1/100"}, WEAK, False),
        ({"delta": "1e-6"}, "almost as well", True),
    ],
)
def test_the_promise_says_what_its_epsilon_and_delta_are_worth(options, words, strong):
    method = "geometric" if "delta" in options else "auto"
    promise = privatize(COUNTS, upper=9, method=method, **{"epsilon": 1, **options}).receipt.promise
    assert words in promise
    assert ("almost as well" in promise) == strong
    assert (WEAK in promise) == (words == WEAK)


@pytest.mark.parametrize("kind", ["interval", "nothing", "long answer"])
def test_a_type_that_parquet_has_not_is_refused_before_the_debit(paid, tmp_path, kind):
    number, options = np.arange(300), {}
    if kind == "long answer":
        table, options = f"duckdb:{tmp_path / 'long.db'}", {"sql": "FROM long"}
        rows = "SELECT i AS number, to_days(i::int) AS odd, i % 10 AS cases FROM range(70000) r(i)"
        with duckdb.connect(tmp_path / "long.db") as database:
            database.execute(f"CREATE TABLE long AS {rows}")
    else:
        odd = {
            "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * 300),
            "nothing": pa.array([b""] * 300, pa.binary(0)),
        }[kind]
        table = pa.table({"number": number, "odd": odd, "cases": number % 10})
    with pytest.raises(tv.TableError, match="'odd'") as refused:
        privatize(table, **{**paid, **options}, count="cases", keep="all", upper=9, epsilon=1)
    assert "2147483647" not in str(refused.value)
