"""Measure what one person moves at every certified draw of a release.

Two tables that differ by one unit are released, and every input of a certified object is recorded.
A draw certified at epsilon for one step loses at most epsilon times the steps between its inputs
from the two tables; all of them together must lose no more than the receipt states, and the ledger
was charged. Nothing here relies on what a plan says of its own sensitivity.
"""

import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tallyveil as tv
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedMechanism, CertifiedNoise
from tests.asking import privatize

ROWS = 24
SEXES, AREAS = ["f", "m"], ["n", "e", "s", "w"]
PLACE = {"keep": "all", "upper": 6, "epsilon": "1/2"}
TWO = {**PLACE, "count": ["cases", "tests"]}
DISJOINT = {**TWO, "disjoint": ["cases", "tests"]}
SUMS = {**PLACE, "hierarchy": "region,state", "contributions": 2}
OPTIONS = {
    "geometric": {**PLACE, "method": "geometric"},
    "preserve": {**PLACE, "method": "preserve"},
    "fair": {**PLACE, "method": "fair"},
    "design": {**PLACE, "method": "design"},
    "epsilons": {**PLACE, "epsilons": ["1/2", "1/4"], "epsilon": None},
    "delta": {**PLACE, "delta": "1e-3"},
    "delta, design": {**PLACE, "delta": "1e-2", "method": "design"},
    "delta, two": {**TWO, "delta": "1e-3"},
    "delta, disjoint": {**DISJOINT, "delta": "1e-3"},
    "one row": {**PLACE, "contributions": 3, "spread": "one_row", "epsilon": 1},
    "one row, small epsilon": {**PLACE, "contributions": 3, "spread": "one_row", "epsilon": "1/9"},
    "several rows": {**PLACE, "contributions": 3, "method": "preserve"},
    "changed": {**PLACE, "contributions": 2, "neighbours": "replace_one", "method": "preserve"},
    "events": {**PLACE, "kind": "event", "neighbours": "replace_one"},
    "strata": {**PLACE, "strata": "state", "contributions": 2},
    "hierarchy": SUMS,
    "weights": {**PLACE, "hierarchy": "state", "weights": [1, 5, 1]},
    "upper_column": {**SUMS, "upper_column": "people"},
    "margins": {**PLACE, "margins": "state,half", "contributions": 2},
    "zeros": {**PLACE, "structural_zeros": "place = p0", "method": "preserve"},
    "zeros, sums": {**PLACE, "structural_zeros": "place = p0", "hierarchy": "region,state"},
    "nested": {**TWO, "nested": "tests,cases", "contributions": 2, "method": "preserve"},
    "disjoint": {**DISJOINT, "contributions": 3, "method": "preserve"},
    "disjoint, changed": {**DISJOINT, "neighbours": "replace_one", "epsilon": ["1/2", "1/3"]},
    "unbiased": {**PLACE, "unbiased": True, "method": "preserve"},
    "signed": {**PLACE, "upper": None, "signed": True},
    "no upper": {**PLACE, "upper": None, "method": "preserve", "contributions": 2},
    "a wide range": {**PLACE, "upper": 5_000_000, "method": "preserve"},
    "priority": {**PLACE, "priority": "1/3"},
    "several epsilons": {**TWO, "epsilon": ["1/2", 2], "upper": [6, 40]},
}
MICRO = {
    "rows": {"contributions": 3},
    "persons": {"id_column": "who", "contributions": 2},
    "persons, changed": {"id_column": "who", "contributions": 2, "neighbours": "replace_one"},
    "one cell": {"contributions": 4, "spread": "one_row", "epsilon": 1},
    "events": {"kind": "event"},
    "ranges": {"by": ["age", "sex"], "bins": {"age": [0, 18, 65]}, "categories": {"sex": SEXES}},
    "margins": {"margins": "sex,area"},
    "strata": {"strata": "sex", "contributions": 2},
    "delta": {"delta": "1e-4"},
    "signed": {"upper": None, "signed": True},
    "other": {"categories": {"sex": ["f"], "area": ["n"]}, "other": "rest", "contributions": 2},
}


class Spy:
    """The inputs of certified objects, in order."""

    def __init__(self, monkeypatch):
        self.inputs = []
        for kind, name in (
            (CertifiedNoise, "release"),
            (CertifiedGeometric, "draw_unbounded"),
            (CertifiedMechanism, "draw_positions"),
            (Ladder, "draw_positions"),
        ):
            self.watch(monkeypatch, kind, name)

    def watch(self, monkeypatch, kind, name):
        original = getattr(kind, name)

        def spy(certified, values, *rest, **more):
            self.inputs.append((certified, np.array(values, dtype=np.int64)))
            return original(certified, values, *rest, **more)

        monkeypatch.setattr(kind, name, spy)

    def take(self):
        inputs, self.inputs = self.inputs, []
        return inputs


@pytest.fixture
def spy(monkeypatch):
    return Spy(monkeypatch)


def find_width(certified):
    """Return how far one step of a certified draw reaches: several with a wider relation."""
    relation = getattr(getattr(certified, "query", None), "neighbours", None)
    return 1 if relation is None else relation.width


def measure(first, second):
    """Return the loss and the delta of two runs: certified amounts times steps."""
    assert len(first) == len(second)
    epsilon = delta = Fraction(0)
    for (certified, before), (same, after) in zip(first, second, strict=True):
        assert certified.exact_epsilon == same.exact_epsilon
        steps = -(-abs(before - after) // find_width(certified))
        epsilon += certified.exact_epsilon * int(steps.sum())
        delta += certified.exact_delta * int(steps.sum())
    return epsilon, delta


def judge(spy, tables, options):
    """Return the share of the stated epsilon that a pair loses; it may not exceed 1."""
    runs = []
    for table in tables:
        released = privatize(table, entropy=tv.SeededNotPrivate(1), **options)
        receipt = (released[0] if "epsilons" in options else released).receipt
        runs.append(spy.take())
    epsilon, delta = measure(*runs)
    assert epsilon <= receipt.epsilon
    assert delta <= receipt.delta
    return epsilon / receipt.epsilon


def make_counts(rng):
    return pd.DataFrame(
        {
            "place": [f"p{row}" for row in range(ROWS)],
            "state": [f"s{row % 4}" for row in range(ROWS)],
            "region": [f"r{row % 2}" for row in range(ROWS)],
            "half": ["ab"[row // 4 % 2] for row in range(ROWS)],
            "people": [3 + row % 5 for row in range(ROWS)],
            "cases": [0, *(rng.randrange(8) for _ in range(ROWS - 1))],
            "tests": [0, *(rng.randrange(5) for _ in range(ROWS - 1))],
        }
    )


def move(frame, rng, options, sign):
    """Add what one unit contributes to a table of counts, or take it away."""
    frame = frame.copy()
    columns, contributions = options["count"], options.get("contributions", 1)
    shared = rng.randrange(1, ROWS)
    moved = columns * contributions
    if options.get("disjoint"):  # each contribution is in one of them
        moved = [rng.choice(columns) for _ in range(contributions)]
    for column in moved:
        one_row = options.get("spread") == "one_row"
        row = shared if one_row else rng.choice([shared, rng.randrange(1, ROWS)])
        frame.loc[row, column] = max(0, frame.loc[row, column] + sign)
    return frame


@pytest.mark.parametrize("name", OPTIONS)
def test_a_person_in_a_table_of_counts_costs_no_more_than_stated(name, spy):
    rng = random.Random(name)
    options = {"count": ["cases"], **OPTIONS[name]}
    most = Fraction(0)
    for _ in range(6):
        first = make_counts(rng)
        second = move(first, rng, options, rng.choice([1, -1]))
        if options.get("neighbours") == "replace_one":
            second = move(move(first, rng, options, -1), rng, options, 1)
        used = ["place", "state", "region", "half", "people", *options["count"]]
        most = max(most, judge(spy, (first[used], second[used]), options))
    assert most > 0  # the spy has seen the person


@pytest.mark.parametrize("name", MICRO)
def test_a_person_in_microdata_costs_no_more_than_stated(name, spy):
    rng = random.Random(name)
    base = {"by": ["sex", "area"], "categories": {"sex": SEXES, "area": AREAS}}
    options = {**base, "upper": 9, "epsilon": "1/2", **MICRO[name]}
    contributions = 9 if "id_column" in options else options.get("contributions", 1)
    most = Fraction(0)
    for _ in range(6):
        others = [make_record(rng, f"p{person}") for person in range(40)]
        records = [make_record(rng, "x") for _ in range(contributions)]
        if options.get("spread") == "one_row":
            records = records[:1] * contributions
        everyone = others + records
        rng.shuffle(everyone)
        pair = [others, everyone]
        if options.get("neighbours") == "replace_one":
            changed = [make_record(rng, "x") for _ in records]
            pair = [everyone, [changed.pop() if r["who"] == "x" else r for r in everyone]]
        most = max(most, judge(spy, [pd.DataFrame(rows) for rows in pair], options))
    assert most > 0


def make_record(rng, who):
    return {
        "sex": rng.choice(SEXES),
        "area": rng.choice(AREAS),
        "age": rng.randrange(99),
        "who": who,
    }


def test_the_measure_would_notice(spy):
    """A person in more rows than stated loses more than stated, and the measure notices."""
    first = make_counts(random.Random(3))
    second = first.copy()
    second.loc[5:9, "cases"] = [1, 0, 1, 0, 1]
    first.loc[5:9, "cases"] = [0, 1, 0, 1, 0]
    with pytest.raises(AssertionError):
        judge(spy, (first, second), {**OPTIONS["preserve"], "count": "cases"})
