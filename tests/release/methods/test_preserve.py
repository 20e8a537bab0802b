"""The knob between single counts and their distribution: what it gives, states and refuses."""

import inspect
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.errors import ArgumentError, UsageError
from tallyveil.estimate.draws import PrivateDraws
from tallyveil.release.methods.base import Plan
from tallyveil.release.methods.registry import METHODS
from tallyveil.release.release import read_receipt
from tallyveil.release.split import PLAIN, choose_split, split_budget
from tallyveil.sampling.entropy import SeededNotPrivate
from tests.asking import privatize
from tests.attacks.forging import checks

ROWS = 1200


def table():
    counts = np.random.default_rng(7).geometric(0.25, ROWS) - 1
    return pd.DataFrame({"area": range(ROWS), "state": ["a", "b"] * (ROWS // 2), "cases": counts})


def publish(source=None, **options):
    keys = {"count": "cases", "keep": "all", "upper": 40, "epsilon": "1/2"}
    return privatize(table() if source is None else source, **{**keys, **options})


def measure(released):
    """Distance of the distributions and mean absolute error."""
    true, result = np.array(table().cases), np.array(released)
    return np.abs(np.sort(result) - np.sort(true)).mean(), np.abs(result - true).mean()


def test_less_tradeoff_means_less_error_and_more_distance():
    """Means over 12 releases; the gaps are many standard errors wide."""
    findings = []
    for tradeoff in ("0", "1"):
        keys = {"priority": tradeoff, "epsilon": "1/10"}
        each = [
            measure(publish(**keys, entropy=SeededNotPrivate(i)).table.cases) for i in range(12)
        ]
        findings.append((np.mean(each, axis=0), np.std(each, axis=0) / np.sqrt(12)))
    (near, spread), (matched, other) = findings
    assert near[1] + 4 * np.hypot(spread[1], other[1]) < matched[1]
    assert matched[0] + 4 * np.hypot(spread[0], other[0]) < near[0]


def test_at_zero_every_row_has_its_best_guess():
    matching = publish(priority=0, entropy=SeededNotPrivate(3)).receipt.columns[0].matching
    assert len(set(matching.draws.tolist())) == len(matching.draws)
    assert (np.diff(matching.counts) >= 0).all()


def test_from_one_on_and_by_default_the_distribution_is_kept_exactly():
    """Rows that are matched and not moved: counts rise with draws and no interval is cut."""
    plain = publish(method="preserve", entropy=SeededNotPrivate(4))
    named = publish(priority="distribution", entropy=SeededNotPrivate(4))
    assert list(plain.table.cases) == list(named.table.cases)
    assert named.receipt.columns[0].method.tradeoff is None
    ranked = publish(priority=1, entropy=SeededNotPrivate(4)).receipt.columns[0]
    assert ranked.method.tradeoff == 1
    assert ranked.spread is not None
    assert publish(priority="balanced").receipt.columns[0].method.tradeoff == "plain"
    assert publish(priority="counts").receipt.columns[0].spread is None


@pytest.mark.parametrize(
    "options",
    [
        {"priority": "1/4"},
        {"priority": 0, "upper": None},
        {"priority": "counts", "unbiased": True},
        {"priority": "balanced", "upper": 900},
        {"priority": 20},
        {"priority": "1/2", "structural_zeros": "state == a"},
    ],
)
def test_a_folder_states_it_and_check_works_it_out(options, tmp_path):
    frame = table()
    if "structural_zeros" in options:
        frame.loc[frame.state == "a", "cases"] = 0
    frame.to_csv(tmp_path / "cases.csv", index=False)
    folder = tmp_path / "release"
    release = publish(tmp_path / "cases.csv", out=folder, **options)
    assert checks(folder)
    assert read_receipt(folder) == release.receipt
    column = release.receipt.columns[0]
    split = choose_split(
        column.method.tradeoff,
        "1/2",
        records=release.receipt.protected_rows,
        size=256 if options.get("upper", 40) is None else column.upper + 1,
    )
    assert split.epsilon2 == column.counts_stage.epsilon
    assert release.receipt.epsilon == Fraction(1, 2)
    assert set(tv.estimate_total(folder, by="state")) == {"a", "b"}


@pytest.mark.parametrize(("tradeoff", "marked"), [("0", True), ("1/4", False)])
def test_counts_that_are_best_guesses_are_marked_as_such(tmp_path, tradeoff, marked):
    folder = tmp_path / "release"
    publish(epsilon=1, priority=tradeoff, out=folder)
    assert checks(folder)
    described = json.loads((folder / "datapackage.json").read_text())["resources"][0]["schema"]
    (field,) = (field for field in described["fields"] if field["name"] == "cases")
    assert field["constraints"] == {"required": True, "minimum": 0, "maximum": 40}
    page = (folder / "METHODOLOGY.html").read_text()
    words = "not to be summed, averaged or tabulated"
    assert [words in text for text in (field["description"], page)] == [marked] * 2


def test_balanced_counts_err_no_more_than_plain_noise():
    """Where ranks cost more than plain noise; means over 8 releases."""
    counts = np.random.default_rng(3).binomial(20, 0.5, 4000)
    kinds = {"balanced": {"priority": "balanced"}, "ranked": {"priority": 1}}
    mean, spread, far = {}, {}, {}
    for name, options in {**kinds, "plain": {"method": "geometric"}}.items():
        keys = {"upper": 20, "epsilon": "3/2", **options}
        tables = [privatize(counts, **keys, entropy=SeededNotPrivate(i)).table for i in range(8)]
        errors = [np.abs(table - counts).mean() for table in tables]
        mean[name], spread[name] = np.mean(errors), np.std(errors) / np.sqrt(8)
        far[name] = np.mean([np.abs(np.sort(t) - np.sort(counts)).mean() for t in tables])
    assert mean["balanced"] < mean["plain"] + 4 * np.hypot(spread["balanced"], spread["plain"])
    assert mean["ranked"] > mean["plain"] + 4 * np.hypot(spread["ranked"], spread["plain"])
    assert far["ranked"] < far["balanced"] < far["plain"]


def test_the_estimate_of_the_total_does_not_depend_on_the_knob():
    """All draws are in the receipt, whatever was made of them."""
    one = publish(priority="1/500", entropy=SeededNotPrivate(9))
    two = publish(priority="1/200", entropy=SeededNotPrivate(9))
    assert one.receipt.stages == two.receipt.stages
    assert one.receipt.columns[0].total == two.receipt.columns[0].total


def test_the_share_grows_with_the_tradeoff_and_without_one_the_split_is_the_predicted():
    shares = [
        choose_split(Fraction(tradeoff), "1/4", records=3136, size=51).epsilon1
        for tradeoff in (0, 1, 4, 16, 64)
    ]
    assert shares == sorted(shares)
    assert shares[0] == 0 < shares[-1]
    assert choose_split(None, 1, records=99, size=9) == split_budget(1, records=99, size=9)
    for tradeoff in (Fraction(1), PLAIN):
        for epsilon in ("1/1000", 20, 700):
            for records, size in ((1, 2), (10**8, 2), (50, 10**6)):
                split = choose_split(tradeoff, epsilon, records=records, size=size)
                assert split.epsilon1 + split.epsilon2 == Fraction(epsilon)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"priority": "speed"}, "'priority' must be one of .*, or a number"),
        (
            {"priority": "counts", "epsilon": None, "accuracy": 3},
            "'budget.accuracy' does not go with the method 'preserve'",
        ),
        (
            {"priority": "balanced", "count": ["cases", "area"], "nested": ["cases", "area"]},
            "by rank",
        ),
    ],
)
def test_contradictions_are_refused(options, words):
    with pytest.raises((ArgumentError, UsageError), match=words):
        publish(**options)


COUNTS = np.minimum(np.random.default_rng(0).geometric(0.2, size=400) - 1, 20)


def test_numpys_random_numbers_are_never_used(monkeypatch):
    for name in ("default_rng", "random", "permutation", "geometric", "laplace", "choice"):
        monkeypatch.setattr(np.random, name, None)
    privatize(COUNTS, upper=20, epsilon=1, method="preserve")


def test_publishing_takes_private_draws_and_nothing_else(monkeypatch):
    for method in METHODS.values():
        arguments = list(inspect.signature(method.publish).parameters)
        assert arguments == ["self", "plan", "draws", "entropy"]
    fields = set(PrivateDraws.__dataclass_fields__)
    assert fields == {"values", "epsilon2", "totals", "epsilon1", "size", "thresholds", "weights"}
    seen, draw = [], Plan.draw

    def spy(plan, counts, entropy):
        seen.append((counts, draw(plan, counts, entropy)))
        return seen[-1][1]

    monkeypatch.setattr(Plan, "draw", spy)
    privatize(table().cases.to_numpy(), upper=40, epsilon="1/2", method="preserve")
    ((counts, draws),) = seen
    assert not np.shares_memory(draws.private.values, counts)
    assert not draws.private.values.flags.writeable
    assert not draws.private.totals.flags.writeable


@pytest.mark.parametrize(
    "counts",
    [[7], [0], [20], [4] * 50, [0] * 50, [20] * 50, [0, 20], list(range(21)), COUNTS.tolist()],
)
@pytest.mark.parametrize("epsilon", ["0.01", 1, 30])
@pytest.mark.parametrize("upper", [20, 100_000])
def test_any_table_agrees_with_its_published_histogram(counts, epsilon, upper):
    published = privatize(counts, upper=upper, epsilon=epsilon, method="preserve").published
    released, histogram = published["count"].counts, published["count"].histogram
    assert len(released) == len(counts)
    assert ((released >= 0) & (released <= upper)).all()
    assert np.bincount(released).nonzero()[0].tolist() == list(histogram.counts)
    assert np.bincount(released)[list(histogram.counts)].tolist() == list(histogram.rows)
    if epsilon == 30 and len(counts) < 400:
        assert released.tolist() == counts  # noise has odds of e^-30
