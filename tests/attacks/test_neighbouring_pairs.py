"""What leaves depends on the confidential table through the draws alone: without exceptions.

Tables that differ by one person are published with the draws held fixed (they look at counts that
are not the table's). Then every byte of the folder, the pickled release and every buffer of the
table in memory must be the same, over all engines, formats and options. One pair that differs
shows a way in which the form of a release tells of a person.
"""

import random
from itertools import count as numbers

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

AREAS = ["n", "e", "s", "w"]
SEXES = ["f", "m"]
MICRO = {  # options for one row per person
    "one column": {"by": "area", "categories": AREAS},
    "two columns": {"by": ["sex", "area"], "categories": {"sex": SEXES, "area": AREAS}},
    "condition": {"by": "area", "categories": AREAS, "where": "age >= 50 and sex != x"},
    "other": {"by": "area", "categories": AREAS[:3], "other": "elsewhere"},
    "numbers": {"by": "code", "categories": [1, 2, 3], "other": "none"},
    "persons": {"by": "area", "categories": AREAS, "person": "who", "rows_per_person": 2},
    "events": {"by": "area", "categories": AREAS, "unit": "event", "neighbours": "change_one"},
    "unbiased": {"by": "area", "categories": AREAS, "unbiased": True, "method": "geometric"},
    "sums": {
        "by": ["sex", "area"],
        "categories": [(s, f"{s}{a}") for s in SEXES for a in AREAS],
        "other": "rest",
        "hierarchy": "sex,area",
        "person": "who",
        "rows_per_person": 1,
    },
    "private bound": {
        "by": "area",
        "categories": AREAS,
        "upper": "auto",
        "upper_epsilon": 1,
    },
}
COUNTED = {  # options for a table with one row per category
    "input": {"keep": "all"},
    "sorted": {"keep": "all", "order": "sorted"},
    "few columns": {"keep": ["area"], "drop": ["sex", "label", "note"], "allow_duplicates": True},
    "two counts": {"count": ["cases", "tests"], "keep": "all", "disjoint": ["cases", "tests"]},
    "geometric": {"keep": "all", "method": "geometric", "contributions": 3},
    "fair": {"keep": "all", "method": "fair"},
    "private bound": {"keep": "all", "upper": "auto", "upper_epsilon": 1},
    "levels": {"keep": "all", "levels": [2, 1], "epsilon": None},
    "unbiased": {"keep": "all", "method": "preserve", "unbiased": True, "order": "sorted"},
    "hierarchy": {"keep": "all", "hierarchy": "sex", "order": "sorted"},
    "sums": {"keep": "all", "hierarchy": "area", "keep_distribution": False},
    "balanced": {"keep": "all", "method": "preserve", "priority": "balanced"},
    "best guesses": {"keep": "all", "method": "preserve", "tradeoff": 0, "order": "sorted"},
    "no upper": {"keep": "all", "upper": None, "method": "preserve"},
    "no upper by row": {"keep": "all", "upper": None, "order": "sorted"},
    "zeros": {"keep": "all", "zero": "area = e and sex = f"},
    "nested": {"count": ["cases", "tests"], "keep": "all", "nested": "tests,cases"},
}
GROUPED = {  # options for the result of a GROUP BY: a category without people has no row
    "all rows": {"by": ["sex", "area"], "categories": {"sex": SEXES, "area": AREAS}},
    "other": {"by": ["sex", "area"], "categories": [("f", "n"), ("m", "s")], "other": "rest"},
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


ENGINES = {}


def engine(build):
    ENGINES[build.__name__.replace("_", " ")] = build
    return build


@engine
def csv(columns, path):
    pd.DataFrame(columns, dtype=object).to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


@engine
def tsv(columns, path):
    pd.DataFrame(columns, dtype=object).to_csv(path.with_suffix(".tsv"), index=False, sep="\t")
    return path.with_suffix(".tsv")


@engine
def parquet(columns, path):
    pq.write_table(coded_arrow(columns, path), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@engine
def arrow_file(columns, path):
    pa.feather.write_feather(sliced_arrow(columns, path), path.with_suffix(".arrow"), chunksize=3)
    return path.with_suffix(".arrow")


@engine
def plain_arrow(columns, path):
    return pa.table(columns)


@engine
def coded_arrow(columns, path):
    """Dictionaries in the order of first appearance."""
    found = {}
    for name, values in columns.items():
        array = pa.array(values)
        found[name] = array.dictionary_encode() if pa.types.is_string(array.type) else array
    return pa.table(found).replace_schema_metadata({"people": str(len(values))})


@engine
def sliced_arrow(columns, path):
    """A view of a larger table: its buffers hold a row that is not published."""
    longer = {name: [values[-1] if values else None, *values] for name, values in columns.items()}
    return pa.table(longer).slice(1)


@engine
def plain_pandas(columns, path):
    return pd.DataFrame(columns)


@engine
def coded_pandas(columns, path):
    frame = pd.DataFrame(columns)
    for name in ("sex", "area", "label"):
        if name in frame:
            frame[name] = frame[name].astype("category")
    frame.attrs["people"] = len(frame)
    frame.columns.name = "people"
    return frame


@engine
def small_pandas(columns, path):
    """Numbers in the smallest type that holds them, which tells the largest."""
    frame = pd.DataFrame(columns)
    for name in ("cases", "tests", "age", "code"):
        if name in frame:
            frame[name] = pd.to_numeric(frame[name], downcast="unsigned")
    return frame


@engine
def arrow_pandas(columns, path):
    return coded_arrow(columns, path).to_pandas(types_mapper=pd.ArrowDtype)


@engine
def plain_polars(columns, path):
    return pl.DataFrame(columns)


@engine
def coded_polars(columns, path):
    frame = pl.DataFrame(columns)
    words = [name for name in frame.columns if frame.schema[name] == pl.String]
    return frame.with_columns(pl.col(words).cast(pl.Categorical))


@engine
def lazy_polars(columns, path):
    return pl.DataFrame(columns).lazy()


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in ("area", "sex", "age", "code", "who")}


def with_labels(columns, rng):
    """Public columns beside the counts, some of them without values in places."""
    size = len(columns["cases"])
    labels = [rng.choice(["x", "y", None]) for _ in range(size)]
    notes = [rng.choice([1.5, None, 2.0]) for _ in range(size)]
    return {**columns, "label": labels, "note": notes}


def try_micro(compare, rng, name, engine, place):
    rows = people(rng, rng.choice([0, 1, 5, 40]))
    somebody = another_person(rng)
    if rng.random() < 0.3 and rows:  # changed instead of added
        other = [*rows[1:], somebody]
    else:
        other = [*rows, somebody]
        rng.shuffle(other)
    options = MICRO[name]
    if not rows and engine in (
        "plain arrow",
        "coded arrow",
        "sliced arrow",
        "parquet",
        "arrow file",
        "arrow pandas",
    ):
        rows = people(rng, 1)  # an empty list has no type in Arrow
    return compare((columns_of(rows), columns_of(other)), options, place, ENGINES[engine])


def try_counted(compare, rng, name, engine, place):
    rows = [row for row in people(rng, 60) if (row["area"], row["sex"]) != ("e", "f")]
    first = aggregate(rows, every=True)
    second = {**first, "cases": list(first["cases"])}
    places = zip(first["area"], first["sex"], strict=True)
    at = rng.choice([at for at, place in enumerate(places) if place != ("e", "f")])
    second["cases"][at] += rng.choice([1, 1, 255, 70_000, 2**40])
    tests = {"tests": [count % 3 for count in first["cases"]]}
    options = {"count": "cases", **COUNTED[name]}
    if "tests" not in options["count"]:
        tests = {}
    state = rng.getstate()
    pair = []
    for columns in (first, second):
        rng.setstate(state)
        pair.append(with_labels({**columns, **tests}, rng))
    return compare(pair, options, place, ENGINES[engine])


def try_grouped(compare, rng, name, engine, place):
    rows = people(rng, rng.choice([3, 10, 40]))
    first = aggregate(rows, every=False)
    second = aggregate([*rows, another_person(rng)], every=False)
    if rng.random() < 0.5:
        first = {column: first[column] for column in ("cases", "area", "sex")}
        second = {column: second[column] for column in ("cases", "area", "sex")}
    return compare((first, second), {"count": "cases", **GROUPED[name]}, place, ENGINES[engine])


CASES = [
    *((try_micro, name) for name in MICRO),
    *((try_counted, name) for name in COUNTED),
    *((try_grouped, name) for name in GROUPED),
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("attempt", "name"), CASES, ids=lambda part: getattr(part, "__name__", part)
)
def test_one_person_changes_nothing_but_the_draws(attempt, name, engine, compare, tmp_path):
    rng = random.Random(f"{attempt.__name__} {name} {engine}")
    assert attempt(compare, rng, name, engine, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_hundreds_of_pairs(engine, compare, tmp_path):
    rng, at = random.Random(engine), numbers()
    for attempt, name in CASES * 3:
        assert attempt(compare, rng, name, engine, tmp_path / str(next(at))) == [], (attempt, name)


def test_the_comparison_would_notice(compare, tmp_path):
    """Columns that are published differ: so do all the parts that are compared."""
    first = {"area": ["n", "s"], "cases": [1, 2]}
    second = {"area": ["n", "e"], "cases": [1, 2]}
    options = {"count": "cases", "keep": "all"}
    for at, engine in enumerate(ENGINES):
        found = compare((first, second), options, tmp_path / str(at), ENGINES[engine])
        assert found == ["folder", "pickles", "memory", "kept"]
