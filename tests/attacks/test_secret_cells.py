"""No refusal repeats what a table holds, whichever library read it and however it broke.

Arrow quotes the row that it cannot split, pandas the value that it cannot convert: what they say
never reaches a message, nor the causes that a traceback shows. And every refusal comes before the
draw, so before the debit.
"""

import random
import traceback
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

import tallyveil as tv
from tallyveil.release.methods.base import Plan
from tests.asking import privatize
from tests.attacks.engines import ENGINES, hold

SECRET, NUMBER = "Anna-Schmidt", 7919.25
HALF = "\ud800"
COLUMNS = {
    "area": ["n", "e", "s", "w"],
    "code": [1, 2, 3, 4],
    "day": ["2026-01-01"] * 4,
    "cases": [4, 3, 2, 1],
}
COUNTED = {"count": "cases", "keep": ["area"], "upper": 9, "epsilon": 1}
LISTED = {"upper": 9, "epsilon": 1}
FAULTS = {  # a column with a fault in the third row, and what is asked for
    "text as a count": ("cases", SECRET, COUNTED),
    "a fraction": ("cases", NUMBER, COUNTED),
    "a negative number": ("cases", -7919, COUNTED),
    "a category that is not listed": (
        "area",
        SECRET,
        {**LISTED, "by": "area", "categories": "n,e"},
    ),
    "a number that is not listed": ("code", 7919, {**LISTED, "by": "code", "categories": "1,2"}),
    "no number to bin": (
        *("code", SECRET),
        {**LISTED, "by": "code", "bins": {"code": [0, 2]}},
    ),
    "no bound": (
        *("code", SECRET),
        {**COUNTED, "keep": ["area", "code"], "hierarchy": "area", "upper_column": "code"},
    ),
    "a bound below 0": (
        *("code", -7919),
        {**COUNTED, "keep": ["area", "code"], "hierarchy": "area", "upper_column": "code"},
    ),
}
MIXED = ("indexed pandas", "plain pandas")
"""Frames that hold text beside numbers; elsewhere a column with text holds only text."""


def break_column(name, value, engine):
    columns = {key: list(cells) for key, cells in COLUMNS.items()}
    columns[name][2] = value
    if engine not in MIXED:
        columns[name] = list(map(type(value), columns[name]))
    return columns


IN_MEMORY = ("arrow", "batch", "pandas", "polars")
"""The last words of the sources that are no files."""


@pytest.fixture
def require_no_secret(monkeypatch, capfd):
    """Nothing that a user can see of a refusal holds a cell; return the refusal if there is one."""
    drawn, draw = [], Plan.draw
    monkeypatch.setattr(Plan, "draw", lambda *given: drawn.append(1) or draw(*given))

    def require(table, options):
        drawn.clear()
        try:
            privatize(table, **options)
        except tv.TallyveilError as refused:
            words = "".join(traceback.format_exception(refused))
            is_alone = refused.__cause__ is refused.__context__ is None
        else:
            return None
        assert not drawn, "refused after the debit"
        assert is_alone
        words += "".join(capfd.readouterr())
        for cell in (SECRET, "Anna", "7919", "\\ud800"):
            assert cell not in words, words
        return words

    return require


@pytest.mark.parametrize("name", FAULTS)
def test_a_cell_is_not_quoted(name, tmp_path, require_no_secret):
    column, value, options = FAULTS[name]
    for engine in ENGINES:
        broken = break_column(column, value, engine)
        source, more = hold(engine, broken, tmp_path / engine / "table")
        assert require_no_secret(source, options | more), engine


@pytest.mark.parametrize("engine", [n for n in ENGINES if n.split()[-1] not in IN_MEMORY])
def test_a_damaged_file_quotes_nothing(engine, tmp_path, require_no_secret):
    rng = random.Random(engine)
    columns = {key: cells * 9 for key, cells in COLUMNS.items()} | {"who": [SECRET, "x"] * 18}
    source, more = hold(engine, columns, tmp_path / "table")
    path = Path(str(source).removeprefix("duckdb:"))
    content = path.read_bytes()
    options = {**COUNTED, "keep": ["area", "who"], "allow_duplicates": True, **more}
    refused = 0
    for _ in range(40):
        broken = bytearray(content)
        for _ in range(rng.choice([1, 3, 30])):
            broken[rng.randrange(len(broken))] = rng.choice([rng.randrange(256), *b'",;\r\n\0'])
        path.write_bytes(broken[: rng.choice([len(broken), len(broken) // 2])])
        refused += require_no_secret(source, options) is not None
    assert refused


@pytest.mark.parametrize(
    "column",
    [
        [SECRET, 1, 2.5, None],
        [SECRET, "x", "y", SECRET + HALF],
        [pd.Timestamp("2026-01-01"), SECRET, 3, b"\xff" + SECRET.encode()],
        [{"name": SECRET}, {"name": 1}, {"name": None}, SECRET],
        [[SECRET], [1], SECRET, None],
        [10**40 + 7919, 1, 2, SECRET],
    ],
    ids=["mixed", "half a character", "bytes", "mappings", "lists", "large"],
)
@pytest.mark.parametrize("options", [COUNTED, {**LISTED, "by": "odd", "categories": ["x", "y"]}])
def test_an_odd_object_is_not_quoted(column, options, require_no_secret):
    frame = pd.DataFrame({**COLUMNS, "odd": pd.Series(column, dtype=object)})
    if "count" in options:
        for more in ({"keep": ["odd"]}, {"count": "odd"}):
            assert require_no_secret(frame, options | more)
    else:
        assert require_no_secret(frame, options)


class Loud:
    """An object that raises what it is."""

    def __str__(self):
        raise RuntimeError(SECRET)

    __array__ = __repr__ = __str__


CELLS = pl.DataFrame({"area": ["n", "e"], "cases": ["1", f"7919 {SECRET}"]})


def write_stata(path):
    frame = pd.DataFrame(COLUMNS).assign(born=[1.0, 2.0, 3.0, 1_500_007_919.0])
    pyreadstat.write_dta(frame, path / "t.dta", variable_format={"born": "%td"})
    return path / "t.dta"


def scan_text(path):
    CELLS.write_csv(path / "t.csv")
    return pl.scan_csv(path / "t.csv", schema={"area": pl.String, "cases": pl.Int64})


LOUD = {
    "cast": lambda _: CELLS.lazy().with_columns(pl.col("cases").cast(pl.Int64)),
    "scan": scan_text,
    "dates": write_stata,
    "array": lambda _: Loud(),
    "list": lambda _: [Loud(), 1, 2],
    "half a character": lambda _: [HALF + SECRET, 1, 2],
    "column": lambda _: pd.DataFrame({"area": ["n", "e"], "cases": [Loud(), 1]}),
    "labels": lambda _: pd.DataFrame({"area": [Loud(), "e"], "cases": [1, 2]}),
    "128 bits": lambda _: pl.Series([7919, 1, 2], dtype=pl.Int128),
}


@pytest.mark.parametrize("name", LOUD)
def test_what_a_library_raises_is_not_shown(name, tmp_path, require_no_secret):
    source = LOUD[name](tmp_path)
    is_array = isinstance(source, (list, Loud, pl.Series))
    assert require_no_secret(source, COUNTED | ({"keep": ()} if is_array else {}))


@pytest.mark.parametrize("kind", ["memory", "parquet", "feather"])
@pytest.mark.parametrize(
    "options",
    [
        {**COUNTED, "count": "odd"},
        {**COUNTED, "keep": "odd"},
        {**LISTED, "by": "odd", "categories": "x"},
        {**LISTED, "by": "area", "categories": "n,e,s,w", "id_column": "odd"},
        {**LISTED, "by": "area", "categories": "n,e,s,w", "where": "odd == x"},
        COUNTED,
    ],
)
def test_bytes_that_are_no_text_are_not_quoted(kind, options, tmp_path, require_no_secret):
    cells = pa.array([b"1", SECRET.encode() + b"\xff", b"3", b"4"], pa.binary())
    odd = pa.Array.from_buffers(pa.string(), 4, cells.buffers())
    source = pa.table({**COLUMNS, "odd": odd})
    if kind == "parquet":
        pq.write_table(source, tmp_path / "t.parquet")
        source = tmp_path / "t.parquet"
    elif kind == "feather":
        with pa.ipc.new_file(tmp_path / "t.arrow", source.schema) as writer:
            writer.write_table(source)
        source = tmp_path / "t.arrow"
    is_used = "odd" in options.values() or "odd == x" in options.values()
    assert (require_no_secret(source, options) is not None) == is_used
