"""What leaves depends on the confidential table through the draws alone: without exceptions.

Tables that differ by one person are published with the draws held fixed (they look at counts that
are not the table's). Then every byte of the folder, the pickled release and every buffer of the
table in memory must be the same, over all engines, formats and options. One pair that differs
shows a way in which the form of a release tells of a person.
"""

import datetime as dt
import pickle
import random
from itertools import count as numbers

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import tallyveil as tv
from tallyveil.publish import prepare, transaction

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
    "no upper": {"keep": "all", "upper": None, "method": "preserve"},
    "no upper by row": {"keep": "all", "upper": None, "order": "sorted"},
    "zeros": {"keep": "all", "zero": "area = nowhere"},
}
GROUPED = {  # options for the result of a GROUP BY: a category without people has no row
    "all rows": {"by": ["sex", "area"], "categories": {"sex": SEXES, "area": AREAS}},
    "other": {"by": ["sex", "area"], "categories": [("f", "n"), ("m", "s")], "other": "rest"},
}


class FixedEntropy(tv.SeededNotPrivate):
    """A seed that passes for random bits of the operating system, in these tests only."""

    private = True

    def __init__(self):
        super().__init__(11)

    @classmethod
    def fresh(cls, given):
        return cls()


class FixedTime(dt.datetime):
    """A clock that stands still."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 1, tzinfo=tz)


@pytest.fixture(autouse=True)
def fixed(monkeypatch):
    """Draws look at zeros instead of the true counts; names and times are always the same."""
    monkeypatch.setattr(transaction, "Entropy", FixedEntropy)
    monkeypatch.setattr(transaction.uuid, "uuid4", lambda: "one-name")
    monkeypatch.setattr(transaction, "datetime", FixedTime)
    monkeypatch.setattr(
        prepare.Prepared, "clamp_to", lambda self, plan: np.zeros(self.rows, dtype=np.int64)
    )
    find = prepare.find_upper
    monkeypatch.setattr(
        prepare, "find_upper", lambda counts, *rest: find(np.zeros_like(counts) + 3, *rest)
    )


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


def publish(table, folder, options):
    """Everything that leaves: the folder's bytes, the pickled release, the table's memory."""
    given = {"upper": 9, "epsilon": 1, **options}
    if "levels" in given:
        releases = tv.privatize_levels(table, out=folder, **given)
    else:
        releases = [tv.privatize(table, out=folder, **given)]
    files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {
        "folder": files,
        "pickles": [pickle.dumps((release, release.table)) for release in releases],
        "memory": [memory_of(release.table) for release in releases],
        "kept": [memory_of(release.data.native()) for release in releases],
    }


def memory_of(table):
    """The types, index, levels and every buffer of a table."""
    if isinstance(table, pa.Table):
        chunks = [chunk for column in table.columns for chunk in column.chunks]
        return [str(table.schema), table.schema.metadata, [buffers_of(chunk) for chunk in chunks]]
    if isinstance(table, pl.DataFrame):
        return [
            [str(dtype) for dtype in table.dtypes],
            [series.to_physical().to_list() for series in table],
            [series.flags for series in table],
            [memory_of(pa.table({s.name: s.to_arrow()})) for s in table],
        ]
    if isinstance(table, pd.DataFrame):
        arrays = [table.iloc[:, at].array for at in range(table.shape[1])]
        return [
            [str(array.dtype) for array in arrays],
            [repr(array.dtype) for array in arrays],
            table.attrs,
            table.columns.names,
            repr(table.index),
            [array_memory(array) for array in arrays],
        ]
    return repr(table)


def array_memory(array):
    if isinstance(array, pd.Categorical):
        return [array.codes.tobytes(), array.codes.dtype.name, list(array.categories)]
    if isinstance(array.dtype, pd.ArrowDtype) or getattr(array.dtype, "storage", "") == "pyarrow":
        return [buffers_of(chunk) for chunk in array.__arrow_array__().chunks]
    if hasattr(array, "_data") and hasattr(array, "_mask"):
        return [array._data.tobytes(), array._mask.tobytes()]
    values = np.asarray(array)
    return values.tolist() if values.dtype == object else [values.tobytes(), values.base is None]


def buffers_of(array):
    found = [array.offset, [None if b is None else b.to_pybytes() for b in array.buffers()]]
    if pa.types.is_dictionary(array.type):
        found.append(buffers_of(array.dictionary))
    return found


def compare(pair, options, place, engine):
    """Publish both tables; the names of what differs."""
    found = []
    for side, columns in zip("ab", pair, strict=True):
        folder = place / side
        folder.mkdir(parents=True)
        table = ENGINES[engine](columns, folder / "table") if engine else columns
        found.append(publish(table, folder / "out", options))
    return [part for part in found[0] if found[0][part] != found[1][part]]


def columns_of(rows):
    return {name: [row[name] for row in rows] for name in ("area", "sex", "age", "code", "who")}


def with_labels(columns, rng):
    """Public columns beside the counts, some of them without values in places."""
    size = len(columns["cases"])
    labels = [rng.choice(["x", "y", None]) for _ in range(size)]
    notes = [rng.choice([1.5, None, 2.0]) for _ in range(size)]
    return {**columns, "label": labels, "note": notes}


def try_micro(rng, name, engine, place):
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
    return compare((columns_of(rows), columns_of(other)), options, place, engine)


def try_counted(rng, name, engine, place):
    rows = people(rng, 60)
    first = aggregate(rows, every=True)
    second = {**first, "cases": list(first["cases"])}
    at = rng.randrange(len(first["cases"]))
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
    return compare(pair, options, place, engine)


def try_grouped(rng, name, engine, place):
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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("attempt", "name"), CASES, ids=lambda part: getattr(part, "__name__", part)
)
def test_one_person_changes_nothing_but_the_draws(attempt, name, engine, tmp_path):
    rng = random.Random(f"{attempt.__name__} {name} {engine}")
    assert attempt(rng, name, engine, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_hundreds_of_pairs(engine, tmp_path):
    rng, at = random.Random(engine), numbers()
    for attempt, name in CASES * 3:
        assert attempt(rng, name, engine, tmp_path / str(next(at))) == [], (attempt, name)


def test_the_comparison_would_notice(tmp_path):
    """Columns that are published differ: so do all the parts that are compared."""
    first = {"area": ["n", "s"], "cases": [1, 2]}
    second = {"area": ["n", "e"], "cases": [1, 2]}
    options = {"count": "cases", "keep": "all"}
    for at, engine in enumerate(ENGINES):
        found = compare((first, second), options, tmp_path / str(at), engine)
        assert found == ["folder", "pickles", "memory", "kept"]


def mask_int64(values):
    array = pd.array(values, dtype="Int64")
    array[1] = pd.NA
    return array


def views(values):
    return pa.array(values, pa.string_view())


def struct_of(levels, codes):
    coded = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(levels))
    field = pa.field("x", coded.type, metadata={"note": levels[0]})
    return pa.StructArray.from_arrays([coded], fields=[field])


def beneath(values, hidden):
    """Integers with a null in the second place, and `hidden` beneath it."""
    kept = np.array([values[0], hidden, values[2]], dtype=np.int64)
    return pa.Array.from_buffers(
        pa.int64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(kept.tobytes())]
    )


def levelled(labels, keep):
    index = pd.MultiIndex.from_product([labels, ["x"]], names=["a", "b"])
    frame = pd.DataFrame({"cases": [1] * len(labels)}, index=index)
    return frame[frame.index.get_level_values("a").isin(list(keep))]


LONG = "a label of more than twelve letters"
CASES3 = [1, 2, 3]
HIDDEN = {  # the same public values, with and without something else in memory
    "masked pandas": [
        pd.DataFrame({"x": mask_int64([1, hidden, 3]), "cases": CASES3}) for hidden in (0, 424242)
    ],
    "values beneath nulls": [
        pa.table({"x": beneath([1, 0, 3], hidden), "cases": CASES3}) for hidden in (0, 424242)
    ],
    "string views": [
        pa.table({"x": views([LONG, "b", "c"]), "cases": CASES3}),
        pa.table({"x": views([LONG, "b", "c", f"{LONG} of a secret"]), "cases": [1, 2, 3, 4]})[:3],
    ],
    "nested dictionaries": [
        pa.table({"x": struct_of(["a", "b"], [0, 1, 0]), "cases": CASES3}),
        pa.table({"x": struct_of(["secret", "b", "a"], [2, 1, 2]), "cases": CASES3}),
    ],
    "lists": [
        pa.table({"x": pa.array([["a"], None, []]), "cases": CASES3}),
        pa.table({"x": pa.array([["s"], ["a"], None, [], ["t"]]), "cases": [0, 1, 2, 3, 4]})[1:4],
    ],
    "bitmaps": [
        pa.table({"x": ["a", "b", "c"], "y": [True, False, True], "cases": CASES3}),
        pa.table(
            {"x": [None, "a", "b", "c"], "y": [None, True, False, True], "cases": [9, 1, 2, 3]}
        )[1:],
    ],
    "chunks": [
        pa.table({"x": ["a", "b", "c"], "cases": CASES3}),
        pa.concat_tables(
            [pa.table({"x": ["a"], "cases": [1]}), pa.table({"x": ["b", "c"], "cases": [2, 3]})]
        ),
    ],
    "polars slices": [
        pl.DataFrame({"x": [LONG, "b", None], "y": [1, None, 3], "cases": CASES3}),
        pl.DataFrame(
            {"x": ["s" * 40, LONG, "b", None], "y": [4, 1, None, 3], "cases": [0, 1, 2, 3]}
        )[1:],
    ],
    "polars categories": [
        pl.DataFrame({"x": ["b", "a", "c"], "cases": CASES3}, schema_overrides={"x": kind})
        for kind in (pl.Categorical, pl.Categorical(pl.Categories("hidden", "attack")))
    ],
    "polars enums": [
        pl.DataFrame(
            {"x": ["b", "a", "b"], "cases": CASES3}, schema_overrides={"x": pl.Enum(known)}
        )
        for known in (["a", "b"], ["a", "secret", "b"])
    ],
    "pandas levels": [levelled(["p", "q", "r"], "pqr"), levelled(["p", "q", "r", "s"], "pqr")],
    "pandas categories": [
        pd.DataFrame({"x": pd.Categorical(["b", "a", "b"], known), "cases": CASES3})
        for known in (["a", "b"], ["secret", "b", "a"])
    ],
    "pandas row numbers": [
        pd.DataFrame({"x": list("abc"), "cases": CASES3}),
        pd.DataFrame({"x": list("sabc"), "cases": [0, 1, 2, 3]})[1:],
    ],
    "pandas columns": [
        pd.DataFrame({"x": list("abc"), "cases": CASES3}),
        pd.DataFrame(
            [["a", 1], ["b", 2], ["c", 3]],
            columns=pd.CategoricalIndex(["x", "cases"], ["secret", "x", "cases"], name="secret"),
        ).astype({"cases": int}),
    ],
    "arrow in pandas": [
        pd.DataFrame({"x": pd.Series(values, dtype="string[pyarrow]").iloc[cut], "cases": CASES3})
        for values, cut in ((list("abc"), slice(None)), (list("abcs"), slice(3)))
    ],
    "labels of a series": [
        pd.Series(CASES3, index=index) for index in (range(3), ["anna", "bert", "carl"])
    ],
}


@pytest.mark.parametrize("order", ["input", "sorted"])
@pytest.mark.parametrize("name", HIDDEN)
def test_what_is_not_published_leaves_no_trace_in_memory(name, order, tmp_path):
    pair = HIDDEN[name]
    options = {"count": "cases", "keep": "all", "allow_duplicates": True, "order": order}
    if isinstance(pair[0], pd.Series):
        options = {}
    assert compare(pair, options, tmp_path, None) == []


@pytest.mark.parametrize(
    "kind", [pa.map_(pa.string(), pa.int8()), pa.list_(pa.int8(), 2)], ids=["map", "fixed list"]
)
def test_what_cannot_be_built_anew_is_refused_before_anything_is_spent(kind, tmp_path):
    book = tv.Ledger.create(tmp_path / "budget.db")
    book.open("cases", 5)
    table = pa.table({"x": pa.array([None, None], kind), "cases": [1, 2]})
    account = {"ledger": book, "dataset": "cases", "out": tmp_path / "out"}
    with pytest.raises(tv.TableError, match="Convert it to a plain type"):
        tv.privatize(
            table, "cases", keep="all", allow_duplicates=True, upper=9, epsilon=1, **account
        )
    assert book.history("cases") == []
