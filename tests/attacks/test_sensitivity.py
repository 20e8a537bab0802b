"""What one person moves, measured where it counts: at every certified draw of a release.

Two tables that differ by one unit are released, and everything that is given to a certified object
is written down. A draw that is certified at epsilon for one step loses at most epsilon times the
steps between what it was given from the one table and from the other; all of them together must
lose no more than the receipt promises, and the ledger was charged. Nothing here believes what a
plan says of its own sensitivity.
"""

import random
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tallyveil.plans import prepared

import tallyveil as tv
from tallyveil.certified.ladder import Ladder
from tallyveil.certified.mechanism import CertifiedGeometric, CertifiedMechanism, CertifiedNoise

ROWS = 24
SEXES, AREAS = ["f", "m"], ["n", "e", "s", "w"]
PLACE = {"keep": "all", "upper": 6, "epsilon": "1/2"}
TWO = {**PLACE, "count": ["cases", "tests"]}
OPTIONS = {
    "geometric": {**PLACE, "method": "geometric"},
    "preserve": {**PLACE, "method": "preserve"},
    "fair": {**PLACE, "method": "fair"},
    "design": {**PLACE, "method": "design"},
    "epsilons": {**PLACE, "epsilons": ["1/2", "1/4"], "epsilon": None},
    "delta": {**PLACE, "delta": "1e-3"},
    "delta, design": {**PLACE, "delta": "1e-2", "method": "design"},
    "delta, two": {**TWO, "delta": "1e-3"},
    "delta, disjoint": {**TWO, "delta": "1e-3", "disjoint": ["cases", "tests"]},
    "one row": {**PLACE, "contributions": 3, "spread": "one_row", "epsilon": 1},
    "one row, small epsilon": {**PLACE, "contributions": 3, "spread": "one_row", "epsilon": "1/9"},
    "several rows": {**PLACE, "contributions": 3, "method": "preserve"},
    "changed": {**PLACE, "contributions": 2, "neighbours": "replace_one", "method": "preserve"},
    "events": {**PLACE, "kind": "event", "neighbours": "replace_one"},
    "strata": {**PLACE, "strata": "state", "contributions": 2},
    "hierarchy": {**PLACE, "hierarchy": "region,state", "contributions": 2},
    "weights": {**PLACE, "hierarchy": "state", "weights": [1, 5, 1]},
    "upper_column": {
        **PLACE,
        "hierarchy": "region,state",
        "upper_column": "people",
        "contributions": 2,
    },
    "margins": {**PLACE, "margins": "state,half", "contributions": 2},
    "zeros": {**PLACE, "structural_zeros": "place = p0", "method": "preserve"},
    "zeros, sums": {**PLACE, "structural_zeros": "place = p0", "hierarchy": "region,state"},
    "nested": {**TWO, "nested": "tests,cases", "contributions": 2, "method": "preserve"},
    "disjoint": {**TWO, "disjoint": ["cases", "tests"], "contributions": 3, "method": "preserve"},
    "disjoint, changed": {
        **TWO,
        "disjoint": ["cases", "tests"],
        "neighbours": "replace_one",
        "epsilon": ["1/2", "1/3"],
    },
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
    "private bound": {"upper": "auto", "upper_epsilon": 1, "contributions": 2},
    "other": {"categories": {"sex": ["f"], "area": ["n"]}, "other": "rest", "contributions": 2},
}


class Spy:
    """Everything that certified objects were given, in order."""

    def __init__(self, monkeypatch):
        self.given = []
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
            self.given.append((certified, np.array(values, dtype=np.int64)))
            return original(certified, values, *rest, **more)

        monkeypatch.setattr(kind, name, spy)

    def take(self):
        given, self.given = self.given, []
        return given


@pytest.fixture
def spy(monkeypatch):
    found = prepared.find_upper  # later draws depend on the bound, which costs by itself
    monkeypatch.setattr(prepared, "find_upper", lambda *given: found(*given) and 6)
    return Spy(monkeypatch)


def width_of(certified):
    """How far one step of a certified draw reaches: several for noise made for several moves."""
    relation = getattr(getattr(certified, "query", None), "neighbours", None)
    return 1 if relation is None else relation.width


def measure(first, second):
    """The loss and the delta of two runs: certified amounts, times the steps between them."""
    assert len(first) == len(second)
    epsilon = delta = Fraction(0)
    for (certified, before), (same, after) in zip(first, second, strict=True):
        assert certified.exact_epsilon == same.exact_epsilon
        steps = -(-abs(before - after) // width_of(certified))
        epsilon += certified.exact_epsilon * int(steps.sum())
        delta += certified.exact_delta * int(steps.sum())
    return epsilon, delta


def judge(spy, tables, options):
    """The share of the promised epsilon that a pair loses, which may not exceed 1."""
    runs = []
    for table in tables:
        publish = tv.privatize_levels if "levels" in options else tv.privatize
        made = publish(table, entropy=tv.SeededNotPrivate(1), **options)
        release = made[0] if "levels" in options else made
        runs.append(spy.take())
    epsilon, delta = measure(*runs)
    assert epsilon <= release.receipt.epsilon
    assert delta <= release.receipt.delta
    return epsilon / release.receipt.epsilon


def counted(rng):
    return pd.DataFrame(
        {
            "place": [f"p{at}" for at in range(ROWS)],
            "state": [f"s{at % 4}" for at in range(ROWS)],
            "region": [f"r{at % 2}" for at in range(ROWS)],
            "half": ["ab"[at // 4 % 2] for at in range(ROWS)],
            "people": [at % 8 for at in range(ROWS)],
            "cases": [0, *(rng.randrange(12) for _ in range(ROWS - 1))],
            "tests": [0, *(rng.randrange(9) for _ in range(ROWS - 1))],
        }
    )


def move(frame, rng, options, sign):
    """What one unit adds to a table of counts, or takes away from it."""
    frame = frame.copy()
    columns, often = options["count"], options.get("contributions", 1)
    together = rng.randrange(1, ROWS)
    moves = [(column, together) for column in columns for _ in range(often)]
    if options.get("disjoint"):  # each contribution is in one of them
        moves = [(rng.choice(columns), together) for _ in range(often)]
    for column, row in moves:
        at = row if options.get("one_row") else rng.choice([row, rng.randrange(1, ROWS)])
        frame.loc[at, column] = max(0, frame.loc[at, column] + sign)
    return frame


@pytest.mark.parametrize("name", OPTIONS)
def test_a_person_in_a_table_of_counts_costs_no_more_than_was_promised(name, spy):
    rng = random.Random(name)
    options = {"count": ["cases"], **OPTIONS[name]}
    most = Fraction(0)
    for _ in range(6):
        first = counted(rng)
        second = move(first, rng, options, rng.choice([1, -1]))
        if options.get("neighbours") == "replace_one":
            second = move(move(first, rng, options, -1), rng, options, 1)
        used = ["place", "state", "region", "half", "people", *options["count"]]
        most = max(most, judge(spy, (first[used], second[used]), options))
    assert most > 0  # the spy has seen the person


@pytest.mark.parametrize("name", MICRO)
def test_a_person_in_microdata_costs_no_more_than_was_promised(name, spy):
    rng = random.Random(name)
    base = {"by": ["sex", "area"], "categories": {"sex": SEXES, "area": AREAS}}
    options = {**base, "upper": 9, "epsilon": "1/2", **MICRO[name]}
    often = options.get("contributions") or 1
    most = Fraction(0)
    for _ in range(6):
        others = [somebody(rng, f"p{at}") for at in range(40)]
        own = [somebody(rng, "x") for _ in range(9 if "person" in options else often)]
        if options.get("one_row"):
            own = own[:1] * often
        mine = others + own
        rng.shuffle(mine)
        pair = [others, mine]
        if options.get("neighbours") == "replace_one":
            changed = [somebody(rng, "x") for _ in own]
            pair = [mine, [changed.pop() if row["who"] == "x" else row for row in mine]]
        most = max(most, judge(spy, [pd.DataFrame(rows) for rows in pair], options))
    assert most > 0


def somebody(rng, who):
    return {
        "sex": rng.choice(SEXES),
        "area": rng.choice(AREAS),
        "age": rng.randrange(99),
        "who": who,
    }


def test_the_measure_would_notice(spy):
    """A person in more rows than stated loses more than was promised, and is seen to."""
    rng = random.Random(3)
    first = counted(rng)
    second = first.copy()
    second.loc[5:9, "cases"] = [1, 0, 1, 0, 1]
    first.loc[5:9, "cases"] = [0, 1, 0, 1, 0]
    with pytest.raises(AssertionError):
        judge(spy, (first, second), {**OPTIONS["preserve"], "count": "cases"})
