"""What leaves depends on the confidential table through the draws alone: without exceptions.

Tables that differ by one person are published with the draws held fixed (they look at counts that
are not the table's). Then every byte of the folder, the pickled release and every buffer of the
table in memory must be the same, over all engines, formats and options. One pair that differs
shows a way in which the form of a release tells of a person.
"""

import random
from itertools import count as numbers

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tallyveil as tv
from tests.asking import privatize
from tests.attacks.engines import ENGINES, hold

AREAS = ["n", "e", "s", "w"]
SEXES = ["f", "m"]
ONE = {"by": "area", "categories": AREAS}
CELLS = {"by": ["sex", "area"], "categories": {"sex": SEXES, "area": AREAS}}
TWO = {"count": ["cases", "tests"]}
ZERO = {"structural_zeros": "area = e and sex = f"}
MICRO = {  # options for one row per person
    "one column": ONE,
    "two columns": CELLS,
    "bins": {"by": ["age", "sex"], "bins": {"age": [0, 18, 50]}, "categories": {"sex": SEXES}},
    "delta": {**ONE, "delta": "1e-6"},
    "one row": {**ONE, "contributions": 3, "spread": "one_row"},
    "distinct rows": {**CELLS, "contributions": 2, "delta": "0.05", "spread": "distinct_rows"},
    "margins": {**CELLS, "margins": "sex,area"},
    "strata": {**CELLS, "strata": "sex"},
    "zeros": {
        **{"by": ["sex", "area"], "categories": {"sex": [*SEXES, "d"], "area": AREAS}},
        "structural_zeros": "sex = d",
    },
    "signed": {**CELLS, "signed": True, "upper": None},
    "no upper": {**CELLS, "upper": None, "unbiased": True},
    "levels": {**CELLS, "epsilons": [2, 1]},
    "best guesses": {**CELLS, "priority": 0},
    "alone": {**CELLS, "alone": True},
    "condition": {**ONE, "where": "age >= 50 and sex != x"},
    "other": {"by": "area", "categories": AREAS[:3], "other": "elsewhere"},
    "numbers": {"by": "code", "categories": [1, 2, 3], "other": "none"},
    "persons": {**ONE, "id_column": "who", "contributions": 2},
    "events": {**ONE, "kind": "event", "neighbours": "replace_one"},
    "unbiased": {**ONE, "unbiased": True, "method": "geometric"},
    "hierarchy": {
        **{"by": ["sex", "area"], "categories": [(s, f"{s}{a}") for s in SEXES for a in AREAS]},
        **{"other": "rest", "hierarchy": "sex,area", "id_column": "who"},
    },
}
COUNTED = {  # options for a table with one row per category; all columns are kept unless named
    "all": {},
    "few columns": {"keep": ["area"], "allow_duplicates": True},
    "ordered": CELLS,
    "two counts": {**TWO, "disjoint": ["cases", "tests"]},
    "geometric": {"method": "geometric", "contributions": 3},
    "fair": {"method": "fair"},
    "levels": {"epsilons": [2, 1]},
    "unbiased": {"method": "preserve", "unbiased": True},
    "hierarchy": {"hierarchy": "sex"},
    "hierarchy, unbiased": {"hierarchy": "area", "unbiased": True},
    "upper_column": {"hierarchy": "area", "upper_column": "people", "unbiased": True},
    "upper_column, weights": {
        **{"hierarchy": "area", "upper_column": "people", "weights": [1, 5, 1]},
        "contributions": 2,
    },
    "upper_column, zeros": {
        **{"hierarchy": "sex", "upper_column": "people", "unbiased": True, **ZERO},
        "neighbours": "replace_one",
    },
    "balanced": {"priority": "balanced"},
    "best guesses": {"priority": 0},
    "no upper": {"upper": None, "method": "preserve"},
    "zeros": ZERO,
    "delta": {"delta": "1e-6"},
    "delta, two counts": {**TWO, "delta": "1/1000", "disjoint": ["cases", "tests"]},
    "designed": {"method": "design", "delta": "1/100"},
    "one row": {"contributions": 2, "spread": "one_row"},
    "strata": {"strata": "sex,area"},
    "margins": {"margins": "sex,area"},
    "margins, unbiased": {"margins": "sex,area", "unbiased": True, **ZERO},
    "strata, unbiased": {"strata": "sex", "unbiased": True, "structural_zeros": "people = 0"},
    "zeros, hierarchy": {**ZERO, "hierarchy": "area"},
    "signed": {"upper": None, "signed": True, **ZERO},
    "a wide range": {"upper": 10**7, "unbiased": True, "method": "geometric"},
    "alone": {"alone": True},
    "alone, strata": {"alone": True, "strata": "area", "unbiased": True},
    "nested": {**TWO, "nested": "tests,cases", "method": "preserve"},
    "hierarchy of two counts": {
        **{**TWO, "hierarchy": "sex", "upper_column": "people", "format": "parquet"},
        **{"disjoint": ["cases", "tests"]},
    },
    "as csv": {"format": "csv", "unbiased": True},
    "as parquet": {"format": "parquet", "unbiased": True},
}
GROUPED = {  # options for the result of a GROUP BY: a category without people has no row
    "all rows": CELLS,
    "other": {"by": ["sex", "area"], "categories": [("f", "n"), ("m", "s")], "other": "rest"},
}
REFUSED = {  # what public columns decide: neighbouring tables are refused in the same words
    "columns are not named": {"keep": None},
    "no such column": {"keep": ["nowhere"]},
    "rows repeat": {"keep": ["area"]},
    "no row is zero": {"structural_zeros": "area = q"},
    "a zero by a column at home": {"keep": ["area", "sex"], "structural_zeros": "note = 2"},
    "a category is not listed": {"by": "area", "categories": AREAS[:3], "keep": None},
    "no hierarchy": {"hierarchy": "sex,area,label"},
    "text is no count": {"count": "area"},
    "labels are no bounds": {"hierarchy": "sex", "upper_column": "area"},
    "counts are kept as a group": {"strata": "cases"},
    "one row is two": {"contributions": 9000, "spread": "distinct_rows", "delta": "0.01"},
    "a total": {"keep": ["area", "sex", "total"]},
}


def people(rng, size):
    """One row per person; every kind of column that an engine might treat in a way of its own."""
    return [
        {
            "area": rng.choice(AREAS),
            "sex": rng.choice(SEXES),
            "age": rng.randrange(100),
            "code": rng.choice([1, 2, 3]),
            "who": f"p{rng.randrange(size)}",
        }
        for _ in range(size)
    ]


def another_person(rng):
    """Somebody unlike the others where a table can bear it."""
    return {
        "area": rng.choice(AREAS),
        "sex": rng.choice(SEXES),
        "age": rng.choice([0, 49, 50, 10**9]),
        "code": rng.choice([1, 2, 3, None, 99]),
        "who": rng.choice(["p1", "somebody else"]),
    }


def aggregate(rows, *, every):
    """Counts by area and sex; with `every`, also of nobody."""
    keys = [(sex, area) for sex in SEXES for area in AREAS]
    counts = {key: sum((r["sex"], r["area"]) == key for r in rows) for key in keys}
    kept = [key for key in keys if every or counts[key]]
    return {
        "sex": [sex for sex, _ in kept],
        "area": [area for _, area in kept],
        "cases": [counts[key] for key in kept],
    }


NEEDS_SOMEBODY = ("stata", "spss", "sas")
"""Files in which a column without rows has no type."""


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in ("area", "sex", "age", "code", "who")}


def try_micro(compare, rng, name, engine, place):
    rows = people(rng, rng.choice([0, 1, 5, 40]))
    somebody = another_person(rng)
    if rng.random() < 0.3 and rows:  # changed instead of added
        other = [*rows[1:], somebody]
    else:
        other = [*rows, somebody]
        rng.shuffle(other)
    options = MICRO[name]
    if not rows and engine in NEEDS_SOMEBODY:
        rows = people(rng, 1)
    return compare((columns_of(rows), columns_of(other)), options, place, engine)


def count_rows(rng):
    """Counts by area and sex, and the same with more in one cell; other public columns beside."""
    rows = [row for row in people(rng, 60) if (row["area"], row["sex"]) != ("e", "f")]
    first = aggregate(rows, every=True)
    free = [at for at, place in enumerate(zip(first["area"], first["sex"], strict=True))
            if place != ("e", "f")]  # fmt: skip
    first |= {
        "tests": [count % 3 for count in first["cases"]],
        "people": [9 if at in free else 0 for at in range(len(first["area"]))],
        "label": [rng.choice(["x", "y", None]) for _ in first["area"]],
        "note": [rng.choice([1.5, None, 2.0]) for _ in first["area"]],
        "total": ["Total", *map(str, range(1, len(first["area"])))],
    }
    second = {**first, "cases": list(first["cases"])}
    second["cases"][rng.choice(free)] += rng.choice([1, 1, 255, 70_000, 2**40])
    return first, second


def try_counted(compare, rng, name, engine, place):
    pair = count_rows(rng)
    options = {"count": "cases", "keep": "all", **COUNTED[name]}
    unused = {"total"} | ({"tests"} - {*options["count"]})
    unused |= set() if "people" in str(options) else {"people"}  # some bounds lie below counts
    for columns, numbers_at_home in zip(pair, (range(8), map(str, range(8))), strict=True):
        for column in unused:
            del columns[column]
        if options["keep"] != "all":  # what stays at home has any type and value
            columns["home"] = list(numbers_at_home)
    return compare(pair, options, place, engine)


def try_grouped(compare, rng, name, engine, place):
    rows = people(rng, rng.choice([3, 10, 40]))
    first = aggregate(rows, every=False)
    second = aggregate([*rows, another_person(rng)], every=False)
    if rng.random() < 0.5:
        first = {column: first[column] for column in ("cases", "area", "sex")}
        second = {column: second[column] for column in ("cases", "area", "sex")}
    return compare((first, second), {"count": "cases", **GROUPED[name]}, place, engine)


CASES = [
    *((try_micro, name) for name in MICRO),
    *((try_counted, name) for name in COUNTED),
    *((try_grouped, name) for name in GROUPED),
]
EACH = 5
"""With how many engines every option is tried in every run; the long run tries all of them."""


@pytest.mark.parametrize("turn", range(EACH))
@pytest.mark.parametrize(
    ("attempt", "name"), CASES, ids=lambda part: getattr(part, "__name__", part)
)
def test_one_person_changes_nothing_but_the_draws(attempt, name, turn, compare, tmp_path):
    at = CASES.index((attempt, name)) + turn * len(ENGINES) // EACH
    engine = list(ENGINES)[at % len(ENGINES)]
    rng = random.Random(f"{attempt.__name__} {name} {engine}")
    assert attempt(compare, rng, name, engine, tmp_path / "pair") == [], engine


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_thousands_of_pairs(engine, compare, tmp_path):
    rng, at = random.Random(engine), numbers()
    for attempt, name in CASES * 2:
        assert attempt(compare, rng, name, engine, tmp_path / str(next(at))) == [], (attempt, name)


@pytest.mark.parametrize("build", [list, tuple, np.array, pd.Series, pl.Series])
def test_one_person_changes_nothing_of_an_array(build, compare, tmp_path):
    for larger in (2, 2**31, 2**40):
        pair = build([0, 1, 200] * 9), build([0, larger, 200] * 9)
        assert compare(pair, {"unbiased": False}, tmp_path / "place") == []


@pytest.mark.parametrize("name", REFUSED)
def test_neighbouring_tables_are_refused_in_the_same_words(name, tmp_path):
    for at, engine in enumerate(ENGINES):
        words = []
        for columns in count_rows(random.Random(at)):
            place = tmp_path / f"{at}-{len(words)}" / "table"
            source, more = hold(engine, {**columns, "note": [1, 2] * 4}, place)
            options = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1, **more}
            with pytest.raises(tv.TallyveilError) as refused:
                privatize(source, **(options | REFUSED[name]))
            words.append((refused.type, str(refused.value)))
        assert words[0] == words[1], engine


def test_the_comparison_would_notice(compare, tmp_path):
    """Columns that are published differ: so do all the parts that are compared."""
    first = {"area": ["n", "s"], "cases": [1, 2]}
    second = {"area": ["n", "e"], "cases": [1, 2]}
    options = {"count": "cases", "keep": "all"}
    for engine in ENGINES:
        differences = compare((first, second), options, tmp_path / engine, engine)
        assert differences == ["folder", "pickles", "memory", "data"]
