"""What a publisher is warned of, and in which words: keys in Python, flags on a command line."""

import re
import warnings

import pandas as pd
import pytest
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli import app
from tallyveil.errors import TallyveilError
from tests.asking import privatize

FRAME = pd.DataFrame({"county": list("dbca"), "cases": [1, 3, 3, 9]})
OPTIONS = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
FLAG = re.compile(r"--[a-z]")


@pytest.mark.parametrize("call", [tv.privatize, tv.privatize_levels])
def test_rows_in_the_order_of_their_counts_are_warned_of(call, tmp_path):
    options = dict(OPTIONS)
    if call is tv.privatize_levels:
        options["epsilons"] = [2, options.pop("epsilon")]
    with pytest.warns(
        UserWarning, match="in the order of 'cases'.*sort the file by public"
    ) as findings:
        call(FRAME, **options)
    assert findings[0].filename == __file__
    assert not any(FLAG.search(str(warning.message)) for warning in findings)


@pytest.mark.filterwarnings("error")
def test_a_warning_that_is_an_error_comes_before_the_debit(paid):
    with pytest.raises(UserWarning, match="in the order"):
        privatize(FRAME, **OPTIONS, **paid)


MIXED = FRAME.assign(cases=[1, 3, 2, 9])


@pytest.mark.parametrize(
    ("frame", "options", "words"),
    [
        (MIXED.assign(deaths=[3, 0, 2, 1]), {}, "keep='all' releases deaths unchanged. If it"),
        (MIXED.assign(county=["=1+1", "b", "c", "d"]), {}, "Cells of 'county' begin with ="),
        (MIXED.assign(county=["-x", "b", "c", "d"]), {}, "Cells of 'county' begin with ="),
        (MIXED, {"epsilon": 9}, "Epsilon 9 protects little"),
        (MIXED, {"delta": "0.2", "method": "geometric"}, "Delta 0.2 protects little"),
        (MIXED, {"upper": 8}, "Some values of cases exceed 'upper'"),
        (MIXED, {"upper": 8, "epsilon": None, "epsilons": [2, 1]}, "cases exceed 'upper'"),
    ],
    ids=["whole numbers", "formula", "sign", "epsilon", "delta", "cut", "cut levels"],
)
def test_what_else_a_publisher_is_warned_of(frame, options, words):
    with pytest.warns(UserWarning, match=words):
        privatize(frame, **{**OPTIONS, **options})


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        (MIXED.assign(year=2026), {"keep": ["county", "year"]}),
        (MIXED.assign(state=[1, 2, 1, 2]), {"hierarchy": "state", "epsilon": 2}),
        (MIXED.assign(county=["-1", "+2.5", "3", "4"]), {}),
        (FRAME.assign(county=list("abcd")), {}),
        (FRAME.assign(cases=[1, 3, 2, 9]), {}),
        (FRAME.assign(cases=2), {}),
    ],
    ids=["named", "key", "signs of numbers", "a public order", "no order", "all the same"],
)
def test_other_tables_are_not(frame, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        privatize(frame, **{**OPTIONS, **options})


def test_at_a_screen_kept_counts_are_named_as_columns(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("county,cases,deaths,format\nA,5,3,9\nB,7,2,1\nC,4,0,3\n")
    keys = f"privatize {table} --count cases --keep all --epsilon 1 --out {tmp_path / 'r'}"
    text = " ".join(CliRunner().invoke(app.app, keys.split()).stderr.split())
    words = "--keep all releases deaths and format unchanged. If one of them counts people, use "
    assert f"{words}--count, or name the others with --keep." in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "exceed 1,000,000,000, the largest released count,"),
        ("--upper 9", "exceed --upper and"),
    ],
)
def test_at_a_screen_what_is_cut_names_its_bound(options, words, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,n\na,10000000000\nb,1\nc,2\nd,5\n")
    keys = f"privatize {table} --count n --keep id --epsilon 1 {options} --out {tmp_path / 'r'}"
    text = " ".join(CliRunner().invoke(app.app, keys.split()).stderr.split())
    assert words in text
    assert ("--upper" in text) == bool(options)


@pytest.mark.parametrize(
    ("label", "keep", "note"),
    [
        ("Total", "id", "A label of 'place' looks like that of a total"),
        ("", "place", "The last row has no label"),
    ],
)
def test_a_total_that_its_label_does_not_show_is_named(label, keep, note):
    places = [f"p{row}" for row in range(9)]
    table = {"id": range(10), "place": [*places, label], "cases": [1] * 9 + [9]}
    with pytest.warns(UserWarning, match=note):
        privatize(pd.DataFrame(table), count="cases", keep=keep, upper=9, epsilon=1)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("county,cases\na,*\n", {}, "declared with 'source.na_values'"),
        ("county,cases\na,1\na,2\n", {}, "counts.allow_duplicates=True"),
        ("Title\n\ncounty,cases\na,1\n", {}, "source.skiprows=2"),
        ("county,cases\na,1\nNote\n", {}, "source.skipfooter=1"),
        ("county;cases\na;1\n", {}, "source.delimiter=';'"),
        ("county,cases\na,1\nTotal,1\n", {}, "unit.contributions=2, or counts.allow_totals=True"),
        ("county,cases\na,1\n", {"keep": None}, "with 'keep' (county), or use keep='all'"),
    ],
)
def test_errors_of_files_are_spelled_for_python(tmp_path, text, options, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(TallyveilError, match=re.escape(message)) as findings:
        privatize(path, **{**OPTIONS, **options})
    assert not FLAG.search(str(findings.value))


def test_rows_with_a_missing_count_are_told_of(tmp_path):
    path = tmp_path / "t.csv"
    rows = "".join(f"{at},{at % 5},{at % 3}\n" for at in range(30))
    path.write_text(f"county,cases,deaths\n{rows}x,*,2\n")
    words = "1 row has a code.*left out whole, their other counts too"
    with pytest.warns(UserWarning, match=words):
        result = privatize(path, **{**OPTIONS, "count": ["cases", "deaths"]}, na_values="*")
    assert result.table.num_rows == 30
