"""What leaves depends on the confidential table through the draws alone: without exceptions.

Tables that differ by one person are published with the draws held fixed (they look at counts that
are not the table's). Then every byte of the folder, the pickled release and every buffer of the
table in memory must be the same, over all engines, formats and options. One pair that differs
shows a way in which the form of a release tells of a person.
"""

import gzip
import random
from itertools import count as numbers

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

from tallyveil.tables import columnar, text
from tallyveil.tables.write import FORMATS

AREAS = ["n", "e", "s", "w"]
SEXES = ["f", "m"]
CELLS = {"by": ["sex", "area"], "categories": {"sex": SEXES, "area": AREAS}}
MICRO = {  # options for one row per person
    "one column": {"by": "area", "categories": AREAS},
    "two columns": CELLS,
    "bins": {"by": ["age", "sex"], "bins": {"age": [0, 18, 50]}, "categories": {"sex": SEXES}},
    "delta": {"by": "area", "categories": AREAS, "delta": "1e-6"},
    "one row": {"by": "area", "categories": AREAS, "contributions": 3, "one_row": True},
    "separate rows": {**CELLS, "contributions": 2, "delta": "0.05", "separate_rows": True},
    "margins": {**CELLS, "margins": "sex,area"},
    "strata": {**CELLS, "strata": "sex"},
    "zeros": {**CELLS, "categories": {"sex": [*SEXES, "d"], "area": AREAS}, "zero": "sex = d"},
    "signed": {**CELLS, "signed": True, "upper": None},
    "no upper": {**CELLS, "upper": None, "unbiased": True},
    "levels": {**CELLS, "levels": [2, 1], "epsilon": None},
    "best guesses": {**CELLS, "method": "preserve", "tradeoff": 0},
    "alone": {**CELLS, "alone": True},
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
    "sums, unbiased": {"keep": "all", "hierarchy": "area", "unbiased": True, "order": "sorted"},
    "bounds": {"keep": "all", "hierarchy": "area", "bounds": "people", "unbiased": True},
    "bounds, sorted": {
        **{"keep": "all", "hierarchy": "area", "bounds": "people", "order": "sorted"},
        **{"keep_distribution": False, "level_weights": "1,5,1", "contributions": 2},
    },
    "bounds, zeros": {
        **{"keep": "all", "hierarchy": "sex", "bounds": "people", "order": "sorted"},
        **{"zero": "area = e and sex = f", "unbiased": True, "neighbours": "change_one"},
    },
    "balanced": {"keep": "all", "method": "preserve", "priority": "balanced"},
    "best guesses": {"keep": "all", "method": "preserve", "tradeoff": 0, "order": "sorted"},
    "no upper": {"keep": "all", "upper": None, "method": "preserve"},
    "no upper by row": {"keep": "all", "upper": None, "order": "sorted"},
    "zeros": {"keep": "all", "zero": "area = e and sex = f"},
    "delta": {"keep": "all", "delta": "1e-6"},
    "delta, two counts": {
        "count": ["cases", "tests"],
        "keep": "all",
        "delta": "1/1000",
        "disjoint": ["cases", "tests"],
    },
    "designed": {"keep": "all", "method": "design", "delta": "1/100", "order": "sorted"},
    "one row": {"keep": "all", "contributions": 2, "one_row": True},
    "strata": {"keep": "all", "strata": "sex,area", "order": "sorted"},
    "margins": {"keep": "all", "margins": "sex,area", "order": "sorted"},
    "margins, unbiased": {
        **{"keep": "all", "margins": "sex,area", "unbiased": True},
        **{"zero": "area = e and sex = f", "order": "sorted"},
    },
    "strata, unbiased": {"keep": "all", "strata": "sex", "unbiased": True, "zero": "people = 0"},
    "zeros, sums": {"keep": "all", "zero": "area = e and sex = f", "hierarchy": "area"},
    "signed": {"keep": "all", "upper": None, "signed": True, "zero": "area = e and sex = f"},
    "unbiased, no upper": {"keep": "all", "upper": None, "method": "preserve", "unbiased": True},
    "a wide range": {"keep": "all", "upper": 10**7, "unbiased": True},
    "alone": {"keep": "all", "alone": True},
    "alone, sorted": {"keep": "all", "alone": True, "order": "sorted", "strata": "area"},
    "nested": {"count": ["cases", "tests"], "keep": "all", "nested": "tests,cases"},
    "hierarchy of two counts": {
        **{"count": ["cases", "tests"], "keep": "all", "hierarchy": "sex", "bounds": "people"},
        **{"disjoint": ["cases", "tests"], "format": "parquet"},
    },
} | {f"as {kind}": {"keep": "all", "format": kind, "unbiased": True} for kind in FORMATS}
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
def windows_csv(columns, path):
    """Line ends of two characters."""
    content = csv(columns, path).read_bytes().replace(b"\n", b"\r\n")
    path.with_suffix(".csv").write_bytes(content)
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
def feather_file(columns, path):
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


@engine
def streamed_csv(columns, path):
    text.HELD = -1
    return csv(columns, path)


@engine
def streamed_parquet(columns, path):
    columnar.BATCH_ROWS = 3
    pq.write_table(pa.table(columns), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@engine
def streamed_arrow(columns, path):
    columnar.BATCH_ROWS = 3
    pa.feather.write_feather(pa.table(columns), path.with_suffix(".arrow"), chunksize=2)
    return path.with_suffix(".arrow")


@engine
def parquet_at_the_limit(columns, path):
    """The larger table is read in two batches, the other in one."""
    columnar.BATCH_ROWS = min(columnar.BATCH_ROWS, len(next(iter(columns.values()))))
    pq.write_table(pa.table(columns), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@engine
def csv_at_the_limit(columns, path):
    path = csv(columns, path)
    text.HELD = min(text.HELD, path.stat().st_size - 1)
    return path


@engine
def packed_csv(columns, path):
    content = csv(columns, path).read_bytes()
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(content))
    return path.with_suffix(".csv.gz")


@engine
def zstandard_csv(columns, path):
    content = csv(columns, path).read_bytes()
    with pa.CompressedOutputStream(str(path.with_suffix(".csv.zst")), "zstd") as stream:
        stream.write(content)
    return path.with_suffix(".csv.zst")


@engine
def wide_text(columns, path):
    """Text in UTF-16, as spreadsheets save it."""
    content = csv(columns, path).read_text(encoding="utf-8")
    path.with_suffix(".csv").write_bytes(content.encode("utf-16"))
    return path.with_suffix(".csv")


@engine
def excel(columns, path):
    pd.DataFrame(columns, dtype=object).to_excel(
        path.with_suffix(".xlsx"), index=False, engine="xlsxwriter"
    )
    return path.with_suffix(".xlsx")


@engine
def stata(columns, path):
    pyreadstat.write_dta(labelled(columns), path.with_suffix(".dta"), file_label="people")
    return path.with_suffix(".dta")


@engine
def spss(columns, path):
    """Labels of values, and a row for each person's own code."""
    labels = {"area": {area: f"label {at}" for at, area in enumerate(columns.get("area", ()))}}
    labels = {name: found for name, found in labels.items() if found}
    frame = labelled(columns)
    path = path.with_suffix(".sav")
    pyreadstat.write_sav(frame, path, variable_value_labels=labels, compress=True)
    return path


def labelled(columns):
    """Empty cells of words are empty words: statistics programs know no other."""
    words = {n for n, values in columns.items() if any(isinstance(v, str) for v in values)}
    return pd.DataFrame(
        {n: ["" if v is None and n in words else v for v in c] for n, c in columns.items()}
    )


@engine
def database(columns, path):
    address = path.with_suffix(".db")
    with duckdb.connect(address) as opened:
        opened.register("people", pa.table(columns))
        opened.execute("CREATE TABLE held AS SELECT * FROM people")
    return f"duckdb:{address}", {"query": "SELECT * FROM held"}


HOLDS_NOBODY = (
    *("csv", "windows csv", "tsv", "streamed csv", "csv at the limit", "packed csv"),
    *("zstandard csv", "wide text", "excel", "plain pandas", "coded pandas", "small pandas"),
    *("plain polars", "coded polars", "lazy polars"),
)


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
    if not rows and engine not in HOLDS_NOBODY:
        rows = people(rng, 1)  # an empty list has no type in Arrow, nor in other files
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
    if "people" in str(options):  # some bounds lie below the counts
        places = zip(first["area"], first["sex"], strict=True)
        tests["people"] = [0 if place == ("e", "f") else 9 for place in places]
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


EACH = 6
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


def test_the_comparison_would_notice(compare, tmp_path):
    """Columns that are published differ: so do all the parts that are compared."""
    first = {"area": ["n", "s"], "cases": [1, 2]}
    second = {"area": ["n", "e"], "cases": [1, 2]}
    options = {"count": "cases", "keep": "all"}
    for at, engine in enumerate(ENGINES):
        found = compare((first, second), options, tmp_path / str(at), ENGINES[engine])
        assert [part for part in found if part != "pickles"] == ["folder", "memory", "kept"]
        assert "pickles" in found or "streamed" in engine  # there the file holds what differs
