"""Totals of groups in receipts and on pages: those of `estimate_total`, where they can be told."""

import re
from html import unescape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallyveil as tv
from tallyveil.release import groups as by_group
from tallyveil.release.records import MOST_GROUPS
from tallyveil.release.release import read_receipt, rebuild_methodology
from tests.asking import privatize
from tests.attacks.forging import checks, read, reseal, write

ROWS = 240
WIDE = {"count": "cases", "keep": "all", "upper": 30, "epsilon": 1}
TWO = {**WIDE, "count": ["cases", "deaths"]}
KINDS = {
    "preserve": {**WIDE, "method": "preserve"},
    "geometric": {**WIDE, "method": "geometric"},
    "fair": {**WIDE, "method": "fair"},
    "no upper": {**WIDE, "upper": None},
    "signed": {**WIDE, "upper": None, "signed": True, "method": "geometric"},
    "unbiased": {**WIDE, "unbiased": True},
    "zeros": {**WIDE, "method": "geometric", "structural_zeros": "state = S0"},
    "hierarchy": {**WIDE, "hierarchy": "region,state"},
    "exact": {**WIDE, "hierarchy": "region,state", "invariant": "region"},
    "hierarchy, unbiased": {**WIDE, "hierarchy": "region,state", "unbiased": True},
    "margins": {**WIDE, "margins": "state+half,age"},
    "strata": {**WIDE, "strata": "region", "unbiased": True},
    "nested": {**TWO, "nested": "deaths,cases", "method": "preserve"},
    "two": TWO,
}


@pytest.fixture
def frame():
    index = np.arange(ROWS)
    return pd.DataFrame(
        {
            "area": index,
            "state": [f"S{i % 8}" for i in index],
            "region": ["NS"[i % 8 // 4] for i in index],
            "half": ["ab"[i // 8 % 2] for i in index],
            "age": [f"{i // 16 % 5}0+" for i in index],
            "cases": np.where(index % 8, index * index % 13, 0),
            "deaths": np.where(index % 8, index * index % 13 // 4, 0),
        }
    )


def publish(frame, **options):
    counts = options["count"]
    return privatize(frame if "deaths" in counts else frame.drop(columns="deaths"), **options)


def read_page(text):
    """The tables of the page: by their title, lines of text."""
    findings = {}
    for title, body in re.findall(r"<h3>(Totals of .*?)</h3>\s*(<div.*?</div>)", text, re.DOTALL):
        lines = re.findall(r"<tr>(<td.*?)</tr>", body, re.DOTALL)
        cells = [re.findall(r'<td(?: class="number")?>(.*?)</td>', line) for line in lines]
        findings[unescape(title)] = [[unescape(cell) for cell in one] for one in cells]
    return findings


def show(number):
    return f"{round(number):,}".replace("-", "−")


@pytest.mark.parametrize("kind", KINDS)
def test_page_and_folder_give_what_estimate_total_gives(frame, kind, tmp_path):
    rel = publish(frame, **KINDS[kind], out=tmp_path / "r")
    assert read_receipt(tmp_path / "r") == rel.receipt
    checked = {finding.name: finding.ok for finding in tv.check_package(tmp_path / "r")}
    assert all(checked.values())
    assert "groups" in checked
    shown = read_page(rel.files["METHODOLOGY.html"].decode())
    titles = set()
    for column in rel.receipt.columns:
        for made in column.groups:
            title = f"Totals of {column.name} by {' and '.join(made.by)}"
            titles.add(title)
            by = made.by[0] if len(made.by) == 1 else made.by
            findings = tv.estimate_total(rel, column=column.name, by=by)
            names = [key if isinstance(key, str) else " · ".join(key) for key in findings]
            assert [line[0] for line in shown[title]] == names == made.groups
            for line, one in zip(shown[title], findings.values(), strict=True):
                assert line[1] == f"{one.groups:,}"
                assert line[-2:] == [show(one.value), f"{show(one.low)} to {show(one.high)}"]
            if column.method.adds_up:
                sums = rel.table.groupby(list(made.by), sort=False)[column.name].sum()
                assert [line[2] for line in shown[title]] == [f"{s:,}" for s in sums]
            else:
                assert {len(line) for line in shown[title]} == {4}
    assert set(shown) == titles
    kinds = {c.name: [made.by for made in c.groups] for c in rel.receipt.columns}
    assert kinds["cases"][:2] == [("state",), ("region",)]
    assert (("age",) in kinds["cases"]) == (kind not in ("hierarchy", "exact"))
    assert (("state", "half") in kinds["cases"]) == (kind == "margins")
    assert kind != "nested" or not kinds["deaths"]


def forge(folder, change):
    """Change a receipt's totals of groups, and make the page and the checksums again."""
    document = read(folder)
    change(document["columns"][0])
    write(folder, document)
    page = rebuild_methodology(folder)
    (folder / "METHODOLOGY.html").write_text(page, encoding="utf-8")
    reseal(folder)
    return [finding.name for finding in tv.check_package(folder) if not finding.ok]


def set_first(part, index, value):
    def change(column):
        column["groups"][0][part][index] = value

    return change


def move(part, index, by):
    """Away from what is stated, so that a forgery never says what is true by chance."""

    def change(column):
        column["groups"][0][part][index] += by

    return change


FORGERIES = {
    "estimate": move("estimate", 0, 0.5),
    "low": move("low", 0, -1),
    "high": move("high", 1, 1),
    "rows": move("rows", 0, 1),
    "label": lambda column: column["groups"][0]["labels"][0].__setitem__(0, "S9"),
    "other column": set_first("by", 0, "half"),
    "twice": lambda column: column["groups"].append(column["groups"][0]),
    "added": lambda column: column["groups"][0].update(published=column["groups"][0]["rows"]),
    "sums": move("published", 0, 1),
}
SILENCE = {
    "nothing": lambda column: None,
    "left out": lambda column: column["groups"].pop(),
    "all left out": lambda column: column.pop("groups"),
    "swapped": lambda column: column["groups"].reverse(),
}


@pytest.mark.parametrize("name", [*FORGERIES, *SILENCE])
def test_forged_totals_of_groups_do_not_pass_but_silence_does(frame, tmp_path, name):
    """Nothing wrong is said so. Which columns make groups depends on what a file can tell apart."""
    publish(frame, **KINDS["hierarchy" if name == "sums" else "preserve"], out=tmp_path / "r")
    expected = ["groups"] if name in FORGERIES else []
    assert forge(tmp_path / "r", {**FORGERIES, **SILENCE}[name]) == expected


@pytest.mark.parametrize("shift", [3, 1500])
@pytest.mark.parametrize("place", ["groups", "figures"])
def test_totals_of_large_counts_cannot_be_moved(tmp_path, shift, place):
    """Noise of 60 is little beside totals of 10^9, and so is what a forger may move."""
    counts = np.random.default_rng(1).integers(999_000, 1_001_000, 2000)
    table = pd.DataFrame({"id": range(2000), "half": ["a", "b"] * 1000, "cases": counts})
    options = {"count": "cases", "keep": "all", "method": "geometric", "epsilon": 1}
    privatize(table, **options, out=tmp_path / "r")

    def change(column):
        for part in ("estimate" if place == "groups" else "value", "low", "high"):
            if place == "groups":
                column["groups"][0][part][0] += shift
            else:
                column["total"][part] += shift

    assert forge(tmp_path / "r", change) == [place]


HOSTILE = {
    "no list": lambda column: column.update(groups={}),
    "an empty list": lambda column: column["groups"].clear(),
    "null": lambda column: column.update(groups=None),
    "very many": lambda column: column.update(groups=column["groups"][:1] * 5000),
    "no groups": lambda column: column["groups"][0].update(
        labels=[[]], rows=[], estimate=[], low=[], high=[]
    ),
    "one missing": lambda column: column["groups"][0]["rows"].pop(),
    "no labels": lambda column: column["groups"][0].update(labels=[]),
    "labels of two": lambda column: column["groups"][0]["labels"].append(["x"] * 8),
    "a label that is a number": lambda column: column["groups"][0]["labels"][0].append(7),
    "by twice": lambda column: column["groups"][0].update(by=["state", "state"]),
    "not finite": set_first("estimate", 0, float("inf")),
    "a huge estimate": set_first("estimate", 0, 1e300),
    "a whole estimate": set_first("estimate", 0, 12),
    "a huge end": set_first("high", 0, 10**60),
    "an end that is a word": set_first("low", 0, "1"),
    "true for a number": set_first("rows", 0, True),
    "a part that is missing": lambda column: column["groups"][0].pop("low"),
    "too many groups": lambda column: column["groups"][0].update(
        labels=[[f"g{i}" for i in range(99)]],
        rows=[2] * 99, estimate=[1.0] * 99, low=[0] * 99, high=[2] * 99,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_totals_of_groups_are_refused_in_words(frame, tmp_path, name):
    publish(frame, **KINDS["preserve"], out=tmp_path / "r")
    document = read(tmp_path / "r")
    HOSTILE[name](document["columns"][0])
    write(tmp_path / "r", document)
    with pytest.raises(tv.PackageError, match="receipt"):
        read_receipt(tmp_path / "r")


def grouped(**columns):
    """Which columns of a small table make groups."""
    size = len(next(iter(columns.values())))
    table = pd.DataFrame({**columns, "cases": [i % 5 for i in range(size)]})
    options = {**WIDE, "method": "geometric", "allow_duplicates": True}
    (column,) = privatize(table, **options).receipt.columns
    return [made.by for made in column.groups]


def cycle(*labels, size=120):
    return [labels[i % len(labels)] for i in range(size)]


MANY = [f"g{i % (MOST_GROUPS + 1)}" for i in range(200)]
CODES, NAMES, ALSO = cycle(1, 2, 3), cycle("x", "y", "z"), cycle("k", "l", "m")
ODD = [
    ("a\nb", "c"),
    ("x" * 81, "c"),
    (0.5, 1.5),
    ("1e3", "1000"),
    (2**60, 2**60 + 1),
    ("a", " a"),
    ("None", ""),
    ("2026-01-31 12:30:00", "2026-02-01 00:00:00"),
]


@pytest.mark.parametrize(
    ("columns", "groups"),
    [
        ({"a": cycle("x", size=200), "b": MANY, "c": list(range(200))}, []),
        ({"few": [f"g{i % MOST_GROUPS}" for i in range(200)]}, [("few",)]),
        ({"pairs": [i // 2 for i in range(10)]}, [("pairs",)]),
        ({"alone": [i // 2 for i in range(9)] + [9, 10]}, []),
        ({"code": CODES, "name": NAMES, "also": ALSO}, [("name",)]),  # before codes of the same
        ({"name": NAMES, "code": CODES}, [("name",)]),
        *(({"odd": cycle(*odd), "plain": cycle("p", "p", "q")}, [("plain",)]) for odd in ODD),
    ],
)
def test_only_a_few_groups_of_several_rows_and_plain_labels_are_stated(columns, groups):
    assert grouped(**columns) == groups


HELD = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "index": lambda columns: pd.DataFrame(columns).set_index("code"),
    "float32": lambda columns: pd.DataFrame(columns).astype({"code": "float32"}),
}


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_kind_of_table_and_file_agrees_on_its_groups(kind, ending, tmp_path):
    columns = {
        "word": cycle("a", None, "c"),
        "code": cycle(1.0, 2.0, float("nan"), 7.0),
        "measure": cycle(0.1, 0.2),
        "cases": [i % 5 for i in range(120)],
    }
    options = {**WIDE, "method": "geometric", "allow_duplicates": True, "out": tmp_path / "r"}
    rel = privatize(HELD[kind](columns), **options, format=ending)
    made = {made.by for made in rel.receipt.columns[0].groups}
    assert made == {("word",), ("code",)} or (kind == "index" and made == {("word",)})
    assert checks(tmp_path / "r")
    assert ">(empty)</td>" in rel.files["METHODOLOGY.html"].decode()


def test_labels_cannot_write_on_the_page(frame):
    frame["state"] = ["<script>x</script>" if i % 2 else '"&<b>' for i in range(ROWS)]
    text = publish(frame, **KINDS["geometric"]).files["METHODOLOGY.html"].decode()
    assert "<script" not in text
    assert "&lt;script&gt;x&lt;/script&gt;</td>" in text


def test_long_tables_and_many_lines_state_no_totals(frame, monkeypatch):
    monkeypatch.setattr(by_group, "MOST_LINES", 10)
    rel = publish(frame, **KINDS["geometric"])
    assert [made.by for made in rel.receipt.columns[0].groups] == [("state",), ("region",)]
    monkeypatch.setattr(by_group, "MOST_ROWS", ROWS - 1)
    monkeypatch.setattr(by_group, "group_rows", lambda *_: pytest.fail("labels were read"))
    rel = publish(frame, **KINDS["geometric"])
    assert rel.receipt.columns[0].groups == ()


def test_the_tables_have_marks_that_lie_where_the_numbers_do(frame):
    rel = publish(frame, **KINDS["geometric"])
    text = rel.files["METHODOLOGY.html"].decode()
    (body,) = re.findall(r"<h3>Totals of cases by state</h3>\s*(<div.*?</div>)", text, re.DOTALL)
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', body)]
    bars = [float(x) for x in re.findall(r'<rect x="([\d.]+)"', body)]
    made = rel.receipt.columns[0].groups[0]
    assert (np.diff(np.array(dots)[np.argsort(made.estimate)]) >= 0).all()
    assert all(bar <= dot for bar, dot in zip(bars, dots, strict=True))
