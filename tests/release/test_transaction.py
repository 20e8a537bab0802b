"""Reserve, debit, draw, write: in this order, and what is proved is what is drawn."""

import hashlib
import json
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedNoise
from tallyveil.release import transaction
from tallyveil.release.methods.base import Plan, Task
from tallyveil.release.methods.design import Fair
from tests.asking import privatize

COUNTS = [i % 7 for i in range(400)]


@pytest.fixture
def book(tmp_path):
    ledger = tv.Ledger.create(tmp_path / "budget.db")
    ledger.open("cases", 2)
    return ledger


def test_a_folder_that_exists_is_refused_before_the_table_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(transaction, "open_table", lambda *_: pytest.fail("the table was read"))
    (tmp_path / "out").mkdir()
    with pytest.raises(tv.PackageError, match="exists already"):
        privatize(COUNTS, upper=9, epsilon=1, out=tmp_path / "out")


def test_a_folder_that_appears_meanwhile_is_refused_before_the_debit(book, tmp_path, monkeypatch):
    def make(*values):
        (tmp_path / "out").mkdir()
        return real(*values)

    real = transaction.plan_release
    monkeypatch.setattr(transaction, "plan_release", make)
    with pytest.raises(tv.PackageError, match="exists already") as refused:
        privatize(COUNTS, upper=9, epsilon=1, out=tmp_path / "out", ledger=book, dataset="cases")
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
    paid = {"ledger": book, "dataset": "cases"} if debited else {}
    with pytest.raises(Exception, match=r"Gone|no room|unforeseen") as failed:
        privatize(COUNTS, upper=9, epsilon=1, out=tmp_path / "out", **paid)
    text = " ".join([str(failed.value), *getattr(failed.value, "__notes__", ())])
    assert ("The budget was spent before that, by entry 2 of the ledger." in text) == debited
    assert (book.account("cases").remaining_epsilon == 1) == debited
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["", " "])
def test_counts_without_a_name_are_refused_before_the_debit(book, tmp_path, name):
    table = pd.DataFrame({"ward": ["A", "B"], name: [1, 2]})
    with pytest.raises(tv.ArgumentError, match="'count' must name columns that have a name"):
        privatize(
            table,
            count=name,
            keep="all",
            upper=9,
            epsilon=1,
            out=tmp_path / "out",
            ledger=book,
            dataset="cases",
        )
    assert book.account("cases").remaining_epsilon == 2


def test_a_ledger_needs_a_folder(book):
    with pytest.raises(tv.UsageError, match="must be reserved first"):
        privatize(COUNTS, upper=9, epsilon=1, ledger=book, dataset="cases")
    assert book.account("cases").remaining_epsilon == 2


def test_a_full_disk_costs_nothing(book, tmp_path, monkeypatch):
    def no_room(path, room):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tallyveil.release.folder._reserve", no_room)
    with pytest.raises(tv.PackageError, match="no room"):
        privatize(COUNTS, upper=9, epsilon=1, out=tmp_path / "o", ledger=book, dataset="cases")
    assert book.account("cases").remaining_epsilon == 2
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("levels", [None, [1, "1/2"]])
def test_the_steps_come_in_order(book, tmp_path, monkeypatch, levels):
    """Room, then debit, then the first draw, then the folder."""
    seen = []

    def watch(home, name, word):
        real = getattr(home, name)

        def watched(*args, **kwargs):
            seen.append(word)
            return real(*args, **kwargs)

        monkeypatch.setattr(home, name, watched)

    watch(transaction, "reserve_folder", "room")
    watch(tv.Ledger, "debit", "debit")
    watch(Plan, "draw", "draw")
    watch(transaction.Staging, "commit", "folder")
    run = tv.privatize if levels is None else tv.privatize_levels
    cost = {"epsilon": 1} if levels is None else {"epsilons": levels}
    run(COUNTS, upper=9, out=tmp_path / "out", ledger=book, dataset="cases", **cost)
    assert seen == ["room", "debit", "draw", "folder"]


def test_what_is_proved_is_what_is_drawn_hashed_and_shipped(book, tmp_path, monkeypatch):
    drawn = []

    def keep(home, name):
        real = getattr(home, name)

        def watched(self, *args, **kwargs):
            drawn.append(self)
            return real(self, *args, **kwargs)

        monkeypatch.setattr(home, name, watched)

    keep(CertifiedGeometric, "draw_positions")
    keep(CertifiedNoise, "release")
    out = tmp_path / "out"
    privatize(COUNTS, upper=9, epsilon=1, out=out, ledger=book, dataset="cases")
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
    real = Plan.draw

    def watched(self, counts, entropy):
        seen.append(counts)
        return real(self, counts, entropy)

    monkeypatch.setattr(Plan, "draw", watched)
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


def test_levels_and_single_releases_have_their_own_functions():
    ladder = {"name": "ladder", "epsilons": [2, 1]}
    with pytest.raises(tv.UsageError, match="privatize_levels"):
        tv.privatize(COUNTS, upper=9, method=ladder)
    with pytest.raises(tv.UsageError, match=r"epsilon.*Perhaps you mean 'epsilons'"):
        tv.privatize_levels(COUNTS, upper=9, epsilon=1)
    with pytest.raises(tv.UsageError, match="missing a required argument: 'epsilons'"):
        tv.privatize_levels(COUNTS, upper=9)
    with pytest.raises(tv.ArgumentError, match="strictly decreasing"):
        tv.privatize_levels(COUNTS, upper=9, epsilons=[1, 2])


@pytest.mark.parametrize(
    "options",
    [
        {"upper": 9, "epsilon": "1e-12"},
        {"upper": 9, "epsilon": 1, "entropy": "not a source"},
        {"upper": 9, "epsilon": 1, "count": "\udcff"},
    ],
)
def test_what_cannot_be_published_is_refused_before_the_debit(book, tmp_path, options):
    with pytest.raises(tv.TallyveilError):
        privatize(COUNTS, out=tmp_path / "out", ledger=book, dataset="cases", **options)
    assert book.history("cases") == []


def test_levels_with_long_epsilons_have_names_that_fit(tmp_path):
    long = Fraction(10**140 + 1, 10**140)
    privatize(COUNTS, upper=9, epsilons=[long, "1/2"], out=tmp_path / "out")
    assert all(finding.ok for finding in tv.check_package(tmp_path / "out"))


def test_counts_that_were_not_clamped_are_never_drawn():
    """A guard: whoever forgets to clamp gets an error, not a draw that was not certified."""
    plan = Fair().plan(Task("n", 3, Fraction(1)))
    with pytest.raises(tv.CertificationError, match="clamped"):
        plan.draw(np.array([4]), tv.Entropy())


def test_a_mistyped_argument_is_named():
    with pytest.raises(tv.UsageError, match=r"tv.privatize has no argument 'eps'\. Perhaps"):
        tv.privatize(COUNTS, upper=9, eps=1)
    with pytest.raises(tv.UsageError, match=r"'loss'. It belongs to method=\{'name': 'design'"):
        tv.privatize(COUNTS, upper=9, epsilon=1, loss="squared")
    with pytest.raises(tv.UsageError, match=r"'delta'. It belongs to budget=tv.Budget\(delta"):
        tv.privatize(COUNTS, upper=9, epsilon=1, delta="1e-6")
    with pytest.raises(tv.ArgumentError, match="'epsilons' must be a list"):
        tv.privatize_levels(COUNTS, upper=9, epsilons=2)


@pytest.mark.parametrize(
    ("epsilon", "words"), [("1/2", "almost as well"), (3, "to this extent"), (6, "weak protection")]
)
def test_the_promise_says_what_its_epsilon_is_worth(epsilon, words):
    rel = privatize(COUNTS, upper=9, epsilon=epsilon)
    assert words in rel.receipt.promise
    assert ("almost as well" in rel.receipt.promise) == (words == "almost as well")


@pytest.mark.parametrize("what", ["interval", "nothing"])
def test_a_type_that_parquet_has_not_is_refused_before_the_debit(book, tmp_path, what):
    pa = pytest.importorskip("pyarrow")
    number = np.arange(300)
    odd = {
        "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * 300),
        "nothing": pa.array([b""] * 300, pa.binary(0)),
    }[what]
    table = pa.table({"number": number, "odd": odd, "cases": number % 10})
    require_refused(table, book, tmp_path)


def test_a_long_answer_of_such_a_type_is_refused_before_the_debit(book, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(tmp_path / "long.db") as database:
        made = "SELECT i AS number, to_days(i::int) AS odd, i % 10 AS cases FROM range(70000) r(i)"
        database.execute(f"CREATE TABLE long AS {made}")
    require_refused(f"duckdb:{tmp_path / 'long.db'}", book, tmp_path, sql="FROM long")


def require_refused(table, book, tmp_path, **options):
    keys = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1, **options}
    with pytest.raises(tv.TableError, match="'odd'") as refused:
        privatize(table, **keys, out=tmp_path / "out", ledger=book, dataset="cases")
    assert "2147483647" not in str(refused.value)
    assert book.account("cases").remaining_epsilon == 2


@pytest.mark.parametrize(("delta", "weak"), [("1/5", True), ("1/100", True), ("1e-6", False)])
def test_a_large_delta_is_no_strong_promise(delta, weak):
    rel = privatize(COUNTS, upper=9, epsilon=1, delta=delta, method="geometric")
    assert ("weak protection: with a probability of up to 0." in rel.receipt.promise) == weak
    assert ("almost as well" in rel.receipt.promise) != weak
