"""Both doors name an argument as it is typed there."""

import re

import pandas as pd
import pytest

from tallyveil.errors import TallyveilError
from tallyveil.request.spelling import spell_for_python
from tests.asking import privatize

BASE = {"count": "cases", "keep": "all", "upper": 9, "epsilon": 1}
FLAG = re.compile(r"--[a-z]")


@pytest.mark.parametrize(
    ("message", "python"),
    [
        ("say --skip-rows 3.", "say skiprows=3."),
        ("with --comment '#'.", "with comment='#'."),
        ("others (--other LABEL), or --where.", "others (other=LABEL), or 'where'."),
        ("give --encoding utf-16-le.", "give encoding='utf-16-le'."),
        ("Leave --encoding out.", "Leave 'encoding' out."),
        ("or say --allow-duplicates if", "or say allow_duplicates=True if"),
        ("a --property and --epsilons", "a 'properties' and 'levels'"),
        ("no option --unknown 3", "no option --unknown 3"),
        (
            "Make one with: tallyveil ledger init --ledger FILE",
            "Make one with: tallyveil ledger init --ledger FILE",
        ),
    ],
)
def test_options_become_arguments(message, python):
    assert spell_for_python(message) == python


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("county,cases\na,*\n", {}, "declared with 'missing'"),
        ("county,cases\na,1\na,2\n", {}, "allow_duplicates=True"),
        ("Title\n\ncounty,cases\na,1\n", {}, "say skiprows=2"),
        ("county,cases\na,1\nNote\n", {}, "skip_footer=1"),
        ("county;cases\na;1\n", {}, "delimiter=';'"),
        ("county,cases\na,1\nTotal,1\n", {}, "contributions=2, or allow_totals=True"),
        ("county,cases\na,1\n", {"keep": None}, "with 'keep' ('county'), or use keep='all'"),
    ],
)
def test_errors_of_files_are_spelled_for_python(tmp_path, text, options, told):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(TallyveilError, match=re.escape(told)) as found:
        privatize(path, **{**BASE, **options})
    assert not FLAG.search(str(found.value))


def test_warnings_are_spelled_for_python():
    frame = pd.DataFrame({"county": list("bca"), "cases": [1, 2, 3], "deaths": [1, 1, 0]})
    with pytest.warns(UserWarning, match="sort the file by public columns") as found:
        privatize(frame, **BASE)
    assert not any(FLAG.search(str(warning.message)) for warning in found)


def test_rows_with_a_missing_count_are_told_of(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "county,cases,deaths\n" + "".join(f"{at},{at % 5},{at % 3}\n" for at in range(30))
    )
    path.write_text(path.read_text() + "x,*,2\n")
    with pytest.warns(
        UserWarning, match="1 row has a code.*left out whole, their other counts too"
    ):
        made = privatize(path, **{**BASE, "count": ["cases", "deaths"]}, na_values="*")
    assert made.table.num_rows == 30
